// The sending half of a session: heads, content within both windows, what waits for them in turn, credit for the peer.

import type { Http2Heads } from '../../../../wasm/http2.ts';
import type { FloodGuard } from './flood-guard.ts';
import { FrameOutput, type FrameSlabs } from './frame-output.ts';
import { DEFAULT_FRAME_BYTES, DEFAULT_WINDOW, FrameType, LARGEST_WINDOW } from './frames.ts';
import { PeerSettings } from './peer-settings.ts';
import type { SessionStream } from './session-stream.ts';
import type { StreamSet } from './stream-set.ts';

/** Content is not framed ahead of what the peer reads: beyond this it waits in its stream. */
const OUTPUT_LIMIT_BYTES = 262144;

/** Where frames go. */
export interface OutputSink {
  /** Gives slab[0..length) to the socket, which holds nothing. @returns whether it has taken all of it. */
  write(slab: Buffer, length: number): boolean;
}

export class SessionSender {
  /** The socket has not taken all that it was given. */
  isBlocked = false;
  readonly output: FrameOutput;
  readonly peer: PeerSettings;
  readonly #heads: Http2Heads;
  readonly #guard: FloodGuard;
  readonly #flags: number;
  /** Table of its encoder, 0 before the first head. */
  #encoder = 0;
  #window = DEFAULT_WINDOW;
  /** No stream has more credit. */
  #mostCredit = 0;
  /** Streams with content that waits, in turn. */
  readonly #waiting = new Set<SessionStream>();
  /** Of content that waits in its streams. */
  pendingBytes = 0;

  /** @param flags EncodeFlag bits of every block. @param isServer this side is one. */
  constructor(heads: Http2Heads, pool: FrameSlabs, guard: FloodGuard, flags: number, isServer: boolean) {
    this.peer = new PeerSettings(!isServer);
    this.#flags = flags;
    this.#heads = heads;
    this.#guard = guard;
    this.output = new FrameOutput(pool);
  }

  /** Writes what there is, as far as the socket takes it; without `isAll` what will not grow any more. */
  write(sink: OutputSink, isAll: boolean): void {
    const { output } = this;
    while (!this.isBlocked && (output.hasFull || (isAll && output.length > 0))) {
      const isTaken = sink.write(output.next, output.nextLength);
      this.isBlocked = !isTaken;
      output.done(isTaken);
    }
  }

  /** Gives its table back. */
  close(): void {
    if (this.#encoder !== 0) this.#heads.release(this.#encoder);
    this.#encoder = 0;
    this.#waiting.clear();
  }

  /**
   * Writes the head that lies in the codec as a block, to be sent before any other. @param flags EncodeFlag bits.
   * @returns its length, or a negative code of the head's own fault; nothing was written then.
   */
  prepareHead(isRequest: boolean, flags: number): number {
    const encoder = this.#ready();
    const all = flags | this.#flags;
    return isRequest ? this.#heads.encodeRequest(encoder, all) : this.#heads.encodeResponse(encoder, all);
  }

  /** The same of lines, a head with a status, or trailers without one. */
  prepareLines(lines: string, status: number): number {
    return this.#heads.encodeLines(this.#ready(), lines, status, this.#flags);
  }

  /** Sends the block that was prepared last. */
  sendHead(stream: SessionStream, length: number, isEnd: boolean): void {
    this.output.block(stream.id, this.#heads, length, isEnd);
    stream.wire?.sentBlock(length);
  }

  /**
   * Writes as much content as windows and output allow; the rest is copied and waits.
   * @returns whether nothing waits.
   */
  content(stream: SessionStream, bytes: Buffer, start: number, end: number, isEnd: boolean): boolean {
    let at = start;
    if (!stream.isWaiting) at = this.#frames(stream, bytes, start, end, isEnd);
    if (at === end && !(isEnd && !stream.isLocalEnded)) return !stream.isWaiting;
    if (at < end) {
      stream.pending ??= [];
      stream.pending.push(Buffer.from(bytes.subarray(at, end)));
      stream.pendingBytes += end - at;
      this.pendingBytes += end - at;
    }
    stream.isEndPending = isEnd;
    this.#waiting.add(stream);
    return false;
  }

  /** Nothing of the stream is sent any more. */
  drop(stream: SessionStream): void {
    this.pendingBytes -= stream.pendingBytes;
    stream.pending = null;
    stream.pendingBytes = 0;
    stream.isEndPending = false;
    if (this.#waiting.size > 0) this.#waiting.delete(stream);
  }

  /** Sends what waits, a frame of each stream in turn. @returns streams that ended with it, or have no more waiting. */
  flushWaiting(): SessionStream[] {
    const ready: SessionStream[] = [];
    let progress = true;
    while (progress && this.#waiting.size > 0 && this.output.length < OUTPUT_LIMIT_BYTES) {
      progress = false;
      for (const stream of this.#waiting) {
        if (!this.#sendOne(stream)) continue;
        progress = true;
        if (stream.isWaiting) continue;
        this.#waiting.delete(stream);
        ready.push(stream);
      }
    }
    return ready;
  }

  /** More may be sent on the connection; false when that is more than there can be. */
  widen(increment: number): boolean {
    this.#window += increment;
    return this.#window <= LARGEST_WINDOW;
  }

  /** The same of one stream. */
  widenStream(stream: SessionStream, increment: number): boolean {
    stream.sendCredit += increment;
    if (stream.sendCredit > this.#mostCredit) this.#mostCredit = stream.sendCredit;
    return stream.sendCredit + this.peer.windowBytes <= LARGEST_WINDOW;
  }

  /** All streams have a larger window. @returns false when that is more than there can be. */
  fits(streams: StreamSet): boolean {
    if (this.#mostCredit + this.peer.windowBytes <= LARGEST_WINDOW) return true;
    // Of a stream that is no more, perhaps, or that has sent since.
    this.#mostCredit = streams.all().reduce((most, { sendCredit }) => Math.max(most, sendCredit), 0);
    return this.#mostCredit + this.peer.windowBytes <= LARGEST_WINDOW;
  }

  /** The peer's table has another size. */
  resizeTable(): void {
    if (this.#encoder !== 0) this.#heads.setPeerTableSize(this.#encoder, this.peer.tableBytes);
  }

  windowUpdate(streamId: number, increment: number): void {
    this.output.control(FrameType.WINDOW_UPDATE, 0, streamId, 1, increment);
  }

  #ready(): number {
    if (this.#encoder === 0) {
      this.#encoder = this.#heads.createEncoder();
      if (this.#encoder === 0) throw new RangeError('no memory for one more table of an HTTP/2 connection');
      this.#heads.setPeerTableSize(this.#encoder, this.peer.tableBytes);
    }
    return this.#encoder;
  }

  /** Frames of bytes[at..end) as far as they may go; returns how far that was. An end without content needs no window. */
  #frames(stream: SessionStream, bytes: Buffer, at: number, end: number, isEnd: boolean): number {
    do {
      const allowed = Math.min(stream.sendCredit + this.peer.windowBytes, this.#window, DEFAULT_FRAME_BYTES);
      const length = Math.min(end - at, Math.max(0, allowed));
      const isFull = this.output.length >= OUTPUT_LIMIT_BYTES;
      if (end > at && (length === 0 || isFull)) return at;
      const isLast = isEnd && at + length === end && stream.pendingTrailers === null;
      if (length > 0 || isLast) {
        this.output.data(stream.id, bytes, at, at + length, isLast);
        stream.wire?.sentFrame(length);
        this.#guard.onDataSent();
      }
      stream.sendCredit -= length;
      this.#window -= length;
      at += length;
      if (isEnd && at === end) this.#end(stream);
    } while (at < end);
    return at;
  }

  #end(stream: SessionStream): void {
    stream.isLocalEnded = true;
    const trailers = stream.pendingTrailers;
    if (trailers === null) return;
    stream.pendingTrailers = null;
    // A fault leaves an end without them: what they hold has been checked before.
    const length = this.prepareLines(trailers, 0);
    if (length > 0) this.sendHead(stream, length, true);
    else this.output.data(stream.id, EMPTY, 0, 0, true);
  }

  #sendOne(stream: SessionStream): boolean {
    const pending = stream.pending ?? [];
    const [first = EMPTY] = pending;
    const isLast = pending.length <= 1;
    const end = Math.min(first.length, DEFAULT_FRAME_BYTES);
    const isEnd = stream.isEndPending && isLast && end === first.length;
    const sent = this.#frames(stream, first, 0, end, isEnd);
    if (sent === 0 && !stream.isLocalEnded) return false;
    stream.pendingBytes -= sent;
    this.pendingBytes -= sent;
    if (sent === first.length) pending.shift();
    else pending[0] = first.subarray(sent);
    if (stream.isLocalEnded) stream.isEndPending = false;
    return true;
  }
}

const EMPTY = Buffer.alloc(0);
