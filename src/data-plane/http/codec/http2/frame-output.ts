// Frames to send, one behind the other in slabs: what a session has to say in one turn of the event loop leaves in one
// write, or in one for each slab that it fills. A slab that the kernel has not taken whole is left to it (I8); an idle
// session has none.
//
//   full: [ slab 0 ][ slab 1 ]   at hand: [ frames ....      ]      given: what the kernel still reads from

import type { Http2Heads } from '../../../../wasm/http2.ts';
import { DEFAULT_FRAME_BYTES, FRAME_HEADER_BYTES, FrameFlag, FrameType } from './frames.ts';

/** What most turns need. */
const SMALL_BYTES = 8192;
/** Room for four full frames of content with their heads: larger ones would leave the processor's cache before they are written. */
const LARGE_BYTES = 69632;
/**
 * Slabs that wait for the next session of the worker. Of small ones as many as connections may well have something to say in one
 * turn, 4 MiB: what goes beyond is allocated in each turn, and keeps the garbage collector busy. Large ones are given back while others fill.
 */
const FREE_SMALL = 512;
const FREE_LARGE = 64;

/** Slabs of one worker that nobody writes from or to. */
export class FrameSlabs {
  readonly #small: Buffer[] = [];
  readonly #large: Buffer[] = [];

  /** @param bytes at most one frame with its header. */
  take(bytes: number): Buffer {
    if (bytes <= SMALL_BYTES) return this.#small.pop() ?? Buffer.allocUnsafeSlow(SMALL_BYTES);
    return this.#large.pop() ?? Buffer.allocUnsafeSlow(LARGE_BYTES);
  }

  give(slab: Buffer): void {
    const isSmall = slab.length === SMALL_BYTES;
    const free = isSmall ? this.#small : this.#large;
    if (free.length < (isSmall ? FREE_SMALL : FREE_LARGE)) free.push(slab);
  }
}

export class FrameOutput {
  readonly #pool: FrameSlabs;
  /** The one at hand, and how far it is written. */
  #slab: Buffer | null = null;
  #length = 0;
  /** Those that are full, oldest first, and how far each is. */
  readonly #full: Buffer[] = [];
  readonly #fullLengths: number[] = [];
  #fullBytes = 0;
  /** Slabs that the kernel has not taken whole. */
  #given: Buffer[] = [];
  /** Frames since the kernel had taken all of them, and those of them that carry neither heads nor bodies. */
  frames = 0;
  controlFrames = 0;

  constructor(pool: FrameSlabs) {
    this.#pool = pool;
  }

  /** Bytes to be written. */
  get length(): number {
    return this.#fullBytes + this.#length;
  }

  /** A slab is full: to wait with it until the turn ends saves nothing. */
  get hasFull(): boolean {
    return this.#full.length > 0;
  }

  /** What is to be written first: a slab up to `nextLength`; valid until `done`. */
  get next(): Buffer {
    return this.#full.length > 0 ? this.#full[0]! : this.#slab!;
  }

  get nextLength(): number {
    return this.#full.length > 0 ? this.#fullLengths[0]! : this.#length;
  }

  /** `next` has been given to a socket. @param isTaken it has taken all of it. */
  done(isTaken: boolean): void {
    let slab = this.#slab!;
    if (this.#full.length > 0) {
      slab = this.#full.shift()!;
      this.#fullBytes -= this.#fullLengths.shift()!;
    } else {
      this.#slab = null;
      this.#length = 0;
    }
    if (isTaken) this.#pool.give(slab);
    else this.#given.push(slab);
  }

  /** All that was written has left. */
  forget(): void {
    this.frames = 0;
    this.controlFrames = 0;
    if (this.#given.length === 0) return;
    for (const slab of this.#given) this.#pool.give(slab);
    this.#given = [];
  }

  raw(bytes: Buffer): void {
    const slab = this.#reserve(bytes.length);
    this.#length += bytes.copy(slab, this.#length);
  }

  /** A control frame of one or two words, or of none. */
  control(type: number, flags: number, streamId: number, words: number, first = 0, second = 0): void {
    const slab = this.#header(words * 4, type, flags, streamId);
    if (words > 0) this.#length = slab.writeUInt32BE(first, this.#length);
    if (words > 1) this.#length = slab.writeUInt32BE(second, this.#length);
    this.controlFrames += 1;
  }

  /** An answer to PING has its eight octets. */
  pong(bytes: Buffer, start: number): void {
    const slab = this.#header(8, FrameType.PING, FrameFlag.ACK, 0);
    this.#length += bytes.copy(slab, this.#length, start, start + 8);
    this.controlFrames += 1;
  }

  /** @param settings (identifier, value) after (identifier, value) */
  settings(settings: readonly number[]): void {
    const slab = this.#header(settings.length * 3, FrameType.SETTINGS, 0, 0);
    for (let at = 0; at < settings.length; at += 2) {
      this.#length = slab.writeUInt16BE(settings[at]!, this.#length);
      this.#length = slab.writeUInt32BE(settings[at + 1]!, this.#length);
    }
    this.controlFrames += 1;
  }

  data(streamId: number, bytes: Buffer, start: number, end: number, isEnd: boolean): void {
    const slab = this.#header(end - start, FrameType.DATA, isEnd ? FrameFlag.END_STREAM : 0, streamId);
    this.#length += bytes.copy(slab, this.#length, start, end);
  }

  /** The block that `heads` has written last, as HEADERS and as many CONTINUATIONs as it takes. */
  block(streamId: number, heads: Http2Heads, length: number, isEnd: boolean): void {
    let from = 0;
    do {
      const to = Math.min(length, from + DEFAULT_FRAME_BYTES);
      const isFirst = from === 0;
      const flags = (to === length ? FrameFlag.END_HEADERS : 0) | (isFirst && isEnd ? FrameFlag.END_STREAM : 0);
      const slab = this.#header(to - from, isFirst ? FrameType.HEADERS : FrameType.CONTINUATION, flags, streamId);
      this.#length = heads.copyBlock(from, to, slab, this.#length);
      from = to;
    } while (from < length);
  }

  #header(length: number, type: number, flags: number, streamId: number): Buffer {
    const slab = this.#reserve(FRAME_HEADER_BYTES + length);
    let at = this.#length;
    slab[at++] = length >>> 16;
    slab[at++] = length >>> 8;
    slab[at++] = length;
    slab[at++] = type;
    slab[at++] = flags;
    this.#length = slab.writeUInt32BE(streamId, at);
    this.frames += 1;
    return slab;
  }

  #reserve(bytes: number): Buffer {
    const slab = this.#slab;
    if (slab !== null && this.#length + bytes <= slab.length) return slab;
    return slab?.length === SMALL_BYTES ? this.#enlarge(slab) : this.#begin(slab, bytes);
  }

  /** A small slab has turned out to be too small. */
  #enlarge(slab: Buffer): Buffer {
    const larger = this.#pool.take(LARGE_BYTES);
    slab.copy(larger, 0, 0, this.#length);
    this.#pool.give(slab);
    this.#slab = larger;
    return larger;
  }

  #begin(full: Buffer | null, bytes: number): Buffer {
    if (full !== null) {
      this.#full.push(full);
      this.#fullLengths.push(this.#length);
      this.#fullBytes += this.#length;
      this.#length = 0;
    }
    const slab = this.#pool.take(bytes);
    this.#slab = slab;
    return slab;
  }
}
