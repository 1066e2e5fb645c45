// Writing under the ownership rule: memory given to `write` belongs to the kernel until `write` has returned true
// or `drain` has come. What is short goes as a string, which Node copies by itself. What is longer goes through
// one scratch buffer of the worker, which is simply replaced when the kernel did not take all of it.

import type { Socket } from 'node:net';
import { freeGiven } from './given-memory.ts';

/** Up to here a latin1 string is cheaper than any buffer. */
const STRING_LIMIT = 2048;
/**
 * Of the scratch buffers, ascending. What the kernel does not take of one keeps all of it, so short texts have short ones.
 * The last holds the largest head next to a full read of the shared read buffer.
 */
const SCRATCH_SIZES = [8 * 1024, 32 * 1024, 144 * 1024] as const;
const LARGEST_SCRATCH = SCRATCH_SIZES[2];

export class SocketWriter {
  readonly #scratches: Buffer[] = SCRATCH_SIZES.map((size) => Buffer.allocUnsafeSlow(size));

  /** Writes text made of latin1 characters. @returns false when a part waits for `drain`. */
  text(socket: Socket, text: string): boolean {
    return socket.write(text, 'latin1');
  }

  /**
   * Writes a head (latin1, may be empty) and the borrowed bytes [start, end) behind it in one go; both may be
   * reused at once, whatever the result.
   * @returns false when a part waits for `drain`.
   */
  copied(socket: Socket, head: string, bytes: Buffer, start: number, end: number): boolean {
    const bodyLength = end - start;
    const total = head.length + bodyLength;
    if (bodyLength === 0) return socket.write(head, 'latin1');
    if (total <= STRING_LIMIT) return socket.write(head + bytes.toString('latin1', start, end), 'latin1');
    if (total > LARGEST_SCRATCH) return this.#writeFresh(socket, head, bytes, start, end);
    const index = total <= SCRATCH_SIZES[0] ? 0 : total <= SCRATCH_SIZES[1] ? 1 : 2;
    const scratch = this.#scratches[index]!;
    scratch.write(head, 0, 'latin1');
    scratch.set(bytes.subarray(start, end), head.length);
    if (socket.write(scratch.subarray(0, total))) return true;
    this.#scratches[index] = Buffer.allocUnsafeSlow(SCRATCH_SIZES[index]!);
    return false;
  }

  /**
   * Writes a head and bytes whose memory is given away: with the last of them nobody reads the buffer again, and it is
   * freed. After false that is the caller's to do, by `freeGiven`, when `drain` has come.
   * @returns false when a part waits for `drain`.
   */
  owned(socket: Socket, head: string, bytes: Buffer, start: number, end: number): boolean {
    const isTaken = this.#writeOwned(socket, head, bytes, start, end);
    if (isTaken && end === bytes.length) freeGiven(bytes);
    return isTaken;
  }

  /**
   * Writes texts around borrowed bytes that stay untouched until `drain` when false is returned, and may be reused
   * at once when true is.
   */
  pinned(socket: Socket, before: string, bytes: Buffer, start: number, end: number, after: string): boolean {
    if (before.length === 0 && after.length === 0) return socket.write(bytes.subarray(start, end));
    socket.cork();
    if (before.length > 0) socket.write(before, 'latin1');
    if (end > start) socket.write(bytes.subarray(start, end));
    if (after.length > 0) socket.write(after, 'latin1');
    socket.uncork();
    return socket.writableLength === 0;
  }

  #writeOwned(socket: Socket, head: string, bytes: Buffer, start: number, end: number): boolean {
    if (head.length === 0)
      return socket.write(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end));
    if (head.length + end - start <= LARGEST_SCRATCH) return this.copied(socket, head, bytes, start, end);
    socket.cork();
    socket.write(head, 'latin1');
    socket.write(bytes.subarray(start, end));
    socket.uncork();
    return socket.writableLength === 0;
  }

  #writeFresh(socket: Socket, head: string, bytes: Buffer, start: number, end: number): boolean {
    const fresh = Buffer.allocUnsafeSlow(head.length + end - start);
    fresh.write(head, 0, 'latin1');
    fresh.set(bytes.subarray(start, end), head.length);
    return socket.write(fresh);
  }
}
