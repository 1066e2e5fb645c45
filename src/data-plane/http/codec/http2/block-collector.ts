// The header block of a message out of HEADERS and its CONTINUATIONs (RFC 9113 section 6.2, 6.10), which nothing may come
// between. A block of one frame stays where it lies; of several, a copy is kept until the last one, unless it turns out to be
// larger than any that is read.

import { BLOCK_LIMIT_BYTES } from '../../../../wasm/http2.ts';
import type { FloodGuard } from './flood-guard.ts';
import { FrameFlag } from './frames.ts';
import { LargeBlock } from './large-block.ts';
import { Fault, type SessionFault } from './options.ts';
import type { SessionState } from './session-state.ts';

const PRIORITY_BYTES = 5;
const NOTHING = Buffer.alloc(0);

export class BlockCollector {
  /** The block is whole: bytes[start..end), until the next frame; nothing of one that is `large`. */
  isWhole = false;
  /** The block at hand, once it is larger than any that is read. */
  large: LargeBlock | null = null;
  bytes: Buffer = NOTHING;
  start = 0;
  end = 0;
  /** Stream that it is of, and whether its message ends with it. */
  streamId = 0;
  endsStream = false;
  readonly #session: SessionState;
  readonly #guard: FloodGuard;
  /** Of a block that goes on. */
  #parts: Buffer[] = [];
  #keptBytes = 0;
  #isOpen = false;

  constructor(session: SessionState) {
    this.#session = session;
    this.#guard = session.guard;
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
    this.large = null;
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
    this.#isOpen = false;
    if (this.large !== null) return this.large.end();
    this.bytes = Buffer.concat(this.#parts);
    this.start = 0;
    this.end = this.bytes.length;
    this.#parts = [];
    return null;
  }

  #keep(bytes: Buffer, start: number, end: number): SessionFault | null {
    if (this.large !== null) return this.large.add(bytes, start, end);
    this.#keptBytes += end - start;
    if (this.#keptBytes > BLOCK_LIMIT_BYTES) return this.#grow(bytes, start, end);
    this.#parts.push(Buffer.from(bytes.subarray(start, end)));
    return null;
  }

  #grow(bytes: Buffer, start: number, end: number): SessionFault | null {
    this.large = new LargeBlock(this.#session);
    const parts = this.#parts;
    this.#parts = [];
    for (const part of parts) {
      const fault = this.large.add(part, 0, part.length);
      if (fault !== null) return fault;
    }
    return this.large.add(bytes, start, end);
  }
}
