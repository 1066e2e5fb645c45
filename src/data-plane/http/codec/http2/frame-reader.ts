// Bytes as they arrive to frames: several in one read, or one over many. A DATA frame is handed on in the pieces that it
// comes in; of all other frames the payload comes whole, where it lies or out of a buffer that is kept for the rest of it.

import { DEFAULT_FRAME_BYTES, FRAME_HEADER_BYTES, FrameFlag, FrameType } from './frames.ts';

export interface FrameHandler {
  /** Before any byte of the payload. @returns whether to read on; false ends the reading for good. */
  onFrameStart(type: number, flags: number, streamId: number, length: number): boolean;
  /** The whole payload; bytes are borrowed. The same answer. */
  onFrame(type: number, flags: number, streamId: number, bytes: Buffer, start: number, end: number): boolean;
  /** Content of a DATA frame, padding taken off. `isLast`: of this frame. @param padding octets since the last call */
  onData(bytes: Buffer, start: number, end: number, padding: number, isLast: boolean): boolean;
  /** Padding that is as long as the payload, or longer. */
  onBadPadding(): void;
}

export class FrameReader {
  readonly #handler: FrameHandler;
  readonly #header = Buffer.alloc(FRAME_HEADER_BYTES);
  #headerBytes = 0;
  #type = 0;
  #flags = 0;
  #streamId = 0;
  /** Of the payload, still to come. */
  #rest = 0;
  /** A payload that began in another read; null when there is none. */
  #kept: Buffer | null = null;
  #keptBytes = 0;
  /** DATA: octets of padding at the end, -1 before they are known. */
  #padding = 0;
  #isStopped = false;

  constructor(handler: FrameHandler) {
    this.#handler = handler;
  }

  /** Bytes of a frame that is not complete. */
  get heldBytes(): number {
    return this.#kept === null ? 0 : this.#kept.length;
  }

  /** Reads no more, whatever comes. */
  stop(): void {
    this.#isStopped = true;
    this.#kept = null;
  }

  /** Reads bytes[at..end), which are borrowed. */
  read(bytes: Buffer, at: number, end: number): void {
    while (!this.#isStopped) {
      if (this.#headerBytes === 0 && end - at >= FRAME_HEADER_BYTES) {
        this.#headerBytes = FRAME_HEADER_BYTES;
        if (!this.#start(bytes, at)) return;
        at += FRAME_HEADER_BYTES;
      } else if (this.#headerBytes < FRAME_HEADER_BYTES) {
        if (at === end) return;
        at = this.#readHeader(bytes, at, end);
        if (this.#headerBytes < FRAME_HEADER_BYTES || !this.#start(this.#header, 0)) return;
      }
      if (this.#type === FrameType.DATA) {
        if (at === end && this.#rest > 0) return;
        at = this.#readData(bytes, at, end);
        continue;
      }
      if (this.#kept === null && end - at >= this.#rest) {
        const start = at;
        at += this.#rest;
        this.#finish(bytes, start, at);
        continue;
      }
      at = this.#keep(bytes, at, end);
      if (this.#keptBytes < this.#rest) return;
      const kept = this.#kept!;
      this.#kept = null;
      this.#finish(kept, 0, this.#rest);
    }
  }

  /** Of a header that began in another read, or goes on in the next one. */
  #readHeader(bytes: Buffer, at: number, end: number): number {
    const header = this.#header;
    while (at < end && this.#headerBytes < FRAME_HEADER_BYTES) {
      header[this.#headerBytes] = bytes[at]!;
      this.#headerBytes += 1;
      at += 1;
    }
    return at;
  }

  /** @param at where the header lies in `bytes`. */
  #start(bytes: Buffer, at: number): boolean {
    this.#rest = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
    this.#type = bytes[at + 3]!;
    this.#flags = bytes[at + 4]!;
    this.#streamId = ((bytes[at + 5]! & 0x7f) << 24) | (bytes[at + 6]! << 16) | (bytes[at + 7]! << 8) | bytes[at + 8]!;
    this.#padding = (this.#flags & FrameFlag.PADDED) === 0 ? 0 : -1;
    this.#keptBytes = 0;
    return this.#go(this.#handler.onFrameStart(this.#type, this.#flags, this.#streamId, this.#rest));
  }

  #go(isWanted: boolean): boolean {
    if (!isWanted) this.stop();
    return !this.#isStopped;
  }

  #finish(bytes: Buffer, start: number, end: number): void {
    this.#headerBytes = 0;
    this.#go(this.#handler.onFrame(this.#type, this.#flags, this.#streamId, bytes, start, end));
  }

  #keep(bytes: Buffer, at: number, end: number): number {
    this.#kept ??= Buffer.allocUnsafe(Math.min(this.#rest, DEFAULT_FRAME_BYTES));
    const length = Math.min(end - at, this.#rest - this.#keptBytes);
    bytes.copy(this.#kept, this.#keptBytes, at, at + length);
    this.#keptBytes += length;
    return at + length;
  }

  #readData(bytes: Buffer, at: number, end: number): number {
    let counted = 0;
    if (this.#padding < 0) {
      // The length of the padding counts as padding itself (RFC 9113 section 6.1).
      const padding = this.#rest === 0 ? 0 : bytes[at]!;
      if (padding >= this.#rest) {
        this.#handler.onBadPadding();
        this.stop();
        return end;
      }
      this.#padding = padding;
      this.#rest -= 1;
      counted = 1;
      at += 1;
    }
    const content = Math.min(end - at, this.#rest - this.#padding);
    const start = at;
    at += Math.max(0, content);
    this.#rest -= Math.max(0, content);
    let skipped = 0;
    if (this.#rest === this.#padding) {
      skipped = Math.min(end - at, this.#padding);
      this.#padding -= skipped;
      this.#rest -= skipped;
    }
    const isLast = this.#rest === 0;
    if (isLast) this.#headerBytes = 0;
    this.#go(this.#handler.onData(bytes, start, at, counted + skipped, isLast));
    return at + skipped;
  }
}
