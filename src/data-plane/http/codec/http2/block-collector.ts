// The header block of a message out of HEADERS and its CONTINUATIONs (RFC 9113 section 6.2, 6.10), which nothing may come
// between. A block of one frame stays where it lies; of several, a copy is kept until the last one.

import { BLOCK_LIMIT_BYTES } from '../../../../wasm/http2.ts';
import type { FloodGuard } from './flood-guard.ts';
import { FrameFlag } from './frames.ts';
import { Fault, type SessionFault } from './options.ts';

const PRIORITY_BYTES = 5;
const NOTHING = Buffer.alloc(0);

export class BlockCollector {
  /** The block is whole: bytes[start..end), until the next frame. */
  isWhole = false;
  bytes: Buffer = NOTHING;
  start = 0;
  end = 0;
  /** Stream that it is of, and whether its message ends with it. */
  streamId = 0;
  endsStream = false;
  readonly #guard: FloodGuard;
  /** Of a block that goes on. */
  #parts: Buffer[] = [];
  #keptBytes = 0;
  #isOpen = false;

  constructor(guard: FloodGuard) {
    this.#guard = guard;
  }

  /** A block has begun and not ended. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Whether a frame may come now. */
  admits(isContinuation: boolean, streamId: number): boolean {
    return this.#isOpen ? isContinuation && streamId === this.streamId : !isContinuation;
  }

  /** The block has been read: its memory is let go. */
  clear(): void {
    this.bytes = NOTHING;
  }

  /** Payload of HEADERS; what is wrong with it, or null. */
  begin(flags: number, streamId: number, bytes: Buffer, start: number, end: number): SessionFault | null {
    let from = start;
    let to = end;
    const isPadded = (flags & FrameFlag.PADDED) !== 0;
    if (isPadded) {
      if (from === to) return Fault.frameSize;
      to -= bytes[from]!;
      from += 1;
    }
    if ((flags & FrameFlag.PRIORITY) !== 0) from += PRIORITY_BYTES;
    if (from > to) return isPadded ? Fault.padding : Fault.frameSize;
    this.endsStream = (flags & FrameFlag.END_STREAM) !== 0;
    this.streamId = streamId;
    const flood = this.#guard.onContent(to - from, this.endsStream);
    if (flood !== null) return flood;
    this.isWhole = (flags & FrameFlag.END_HEADERS) !== 0;
    if (this.isWhole) {
      this.bytes = bytes;
      this.start = from;
      this.end = to;
      return null;
    }
    this.#guard.beginBlock();
    this.#isOpen = true;
    this.#parts = [];
    this.#keptBytes = 0;
    return this.#keep(bytes, from, to);
  }

  /** Payload of CONTINUATION; the same answer. */
  continue(flags: number, bytes: Buffer, start: number, end: number): SessionFault | null {
    this.isWhole = (flags & FrameFlag.END_HEADERS) !== 0;
    const fault =
      this.#guard.onContent(end - start, this.isWhole) ?? this.#guard.onContinuation() ?? this.#keep(bytes, start, end);
    if (fault !== null || !this.isWhole) return fault;
    this.bytes = Buffer.concat(this.#parts);
    this.start = 0;
    this.end = this.bytes.length;
    this.#isOpen = false;
    this.#parts = [];
    return null;
  }

  #keep(bytes: Buffer, start: number, end: number): SessionFault | null {
    this.#keptBytes += end - start;
    if (this.#keptBytes > BLOCK_LIMIT_BYTES) return Fault.blockTooLarge;
    this.#parts.push(Buffer.from(bytes.subarray(start, end)));
    return null;
  }
}
