// A body on its way through a stream of zlib, for a filter that stops it and lets go on what comes out. One step at a
// time: what a filter holds back lies in the stream's queue until the step that has read it is done, so whoever sends
// waits at the buffer limit; and nothing is read from zlib, which then waits, too, while nobody has room.
//
//   see ──► held ──► step: at most STEP_BYTES to a thread ──► out ──► exchange, the step's bytes for what came of them

import type { Transform } from 'node:stream';
import { type FilterCounter, type FilterStatus, freeGiven } from '../../data-plane/index.ts';
import type { InflationLimit } from './settings.ts';

/** What waits for a thread is worked off in turns: one body's step does not keep others waiting for long. */
const STEP_BYTES = 64 * 1024;
const NO_BYTES = Buffer.alloc(0);

/** `bomb`: it has grown by more than its limit allows. */
export type RecodingFailure = 'bomb' | 'broken';

/** The filter, which has stopped the body. */
export interface RecodingOwner {
  /** As FilterCallbacks.exchangeRequest. What is given away is alone in its memory. */
  exchange(taken: number, bytes: Buffer, isLast: boolean): boolean;
  /** Nothing else follows. @param code of zlib, empty where it has said nothing. */
  onRecodingFailure(failure: RecodingFailure, code: string): void;
}

export interface RecoderOptions {
  /** @param first at least `headBytes` of the body, unless it is shorter. */
  readonly create: (first: Buffer) => Transform;
  /** Bytes to wait for before a stream is made. */
  readonly headBytes: number;
  /** Null for what cannot outgrow what has come by much: all that comes of a step then goes on at once. */
  readonly limit: InflationLimit | null;
  /** Of bytes before and behind it. */
  readonly inBytes: FilterCounter;
  readonly outBytes: FilterCounter;
  /** A body without any bytes becomes one; otherwise it stays as it is. */
  readonly wrapsNothing: boolean;
}

export class Recoder {
  readonly #options: RecoderOptions;
  readonly #owner: RecodingOwner;
  #engine: Transform | null = null;
  /** Seen, and in no step yet. */
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  /** What has come out of the step at hand and waits for its end, in memory of the engine's. */
  #output: Buffer[] = [];
  /** What the step at hand works on, where it has been made of several pieces. */
  #joined = NO_BYTES;
  #stepBytes = 0;
  #isStepping = false;
  #hasSeenEnd = false;
  #hasRoom = true;
  #isOver = false;
  #inBytes = 0;
  #outBytes = 0;

  constructor(options: RecoderOptions, owner: RecodingOwner) {
    this.#options = options;
    this.#owner = owner;
  }

  /** The bytes stay untouched until they are exchanged. @returns what the filter does about them. */
  see(bytes: Buffer, isEnd: boolean): FilterStatus {
    if (bytes.length > 0) this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    this.#options.inBytes.add(bytes.length);
    this.#hasSeenEnd ||= isEnd;
    const isNothing = isEnd && this.#engine === null && this.#waitingBytes === 0 && !this.#options.wrapsNothing;
    if (isNothing) {
      this.#isOver = true;
      return 'continue';
    }
    this.#step();
    return 'stop-and-pause';
  }

  /** The body has ended, and trailers follow. */
  seeTrailers(): FilterStatus {
    return this.see(NO_BYTES, true);
  }

  /** More may go on. */
  onRoom(): void {
    this.#hasRoom = true;
    this.#read();
    this.#step();
  }

  /** Gives back what zlib has, as soon as its thread lets go of it. */
  destroy(): void {
    this.#isOver = true;
    this.#waiting = [];
    this.#output = [];
    this.#engine?.destroy();
  }

  #step(): void {
    if (this.#isStepping || this.#isOver || !this.#hasRoom) return;
    if (this.#waitingBytes === 0 && !this.#hasSeenEnd) return;
    if (this.#engine === null && this.#waitingBytes < this.#options.headBytes && !this.#hasSeenEnd) return;
    const piece = this.#nextPiece();
    const isLast = this.#hasSeenEnd && this.#waitingBytes === 0;
    this.#engine ??= this.#open(piece);
    this.#isStepping = true;
    this.#stepBytes = piece.length;
    this.#inBytes += piece.length;
    if (isLast) this.#engine.end(piece);
    // A stream that has waited for a reader says so inside its read, which is not to be entered again.
    else this.#engine.write(piece, () => process.nextTick(() => this.#endStep()));
  }

  #nextPiece(): Buffer {
    const pieces: Buffer[] = [];
    let bytes = 0;
    while (bytes < STEP_BYTES && this.#waiting.length > 0) {
      const first = this.#waiting[0]!;
      const taken = first.subarray(0, STEP_BYTES - bytes);
      pieces.push(taken);
      bytes += taken.length;
      if (taken.length === first.length) this.#waiting.shift();
      else this.#waiting[0] = first.subarray(taken.length);
    }
    this.#waitingBytes -= bytes;
    if (pieces.length === 1) return pieces[0]!;
    this.#joined = Buffer.concat(pieces);
    return this.#joined;
  }

  #open(first: Buffer): Transform {
    const engine = this.#options.create(first);
    engine.on('readable', () => this.#read());
    engine.on('end', () => this.#end());
    engine.on('error', (error: NodeJS.ErrnoException) => this.#fail('broken', error.code ?? ''));
    return engine;
  }

  #read(): void {
    while (!this.#isOver && this.#hasRoom) {
      const bytes = this.#engine?.read() as Buffer | null | undefined;
      if (!bytes) return;
      this.#outBytes += bytes.length;
      const { limit, outBytes } = this.#options;
      outBytes.add(bytes.length);
      this.#output.push(bytes);
      if (limit === null) continue;
      if (this.#outBytes > Math.max(limit.freeBytes, limit.ratio * this.#inBytes)) this.#fail('bomb', '');
      else this.#hasRoom = this.#owner.exchange(0, this.#takeOutput(), false);
    }
  }

  #endStep(): void {
    this.#read();
    // It has been given up, perhaps long before.
    if (this.#isOver) return;
    this.#isStepping = false;
    freeGiven(this.#joined);
    this.#joined = NO_BYTES;
    const taken = this.#stepBytes;
    this.#stepBytes = 0;
    const hasRoom = this.#owner.exchange(taken, this.#takeOutput(), false);
    if (this.#isOver) return;
    this.#hasRoom &&= hasRoom;
    this.#step();
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    freeGiven(this.#joined);
    this.#owner.exchange(this.#stepBytes, this.#takeOutput(), true);
  }

  /** Copied out of the engine's buffers, which would fill the memory outside of the heap faster than anything else (given-memory.ts). */
  #takeOutput(): Buffer {
    const output = this.#output;
    if (output.length === 0) return NO_BYTES;
    this.#output = [];
    const taken = Buffer.allocUnsafeSlow(output.reduce((bytes, { length }) => bytes + length, 0));
    let at = 0;
    for (const piece of output) at += piece.copy(taken, at);
    for (const memory of new Set(output.map(({ buffer }) => buffer))) {
      if (this.#hasLeft(memory)) freeGiven(Buffer.from(memory));
    }
    return taken;
  }

  /** Nobody will write into this buffer of the engine's any more. What Node does not say under this name is left to the collector. */
  #hasLeft(memory: ArrayBufferLike): boolean {
    const { _outBuffer: current } = this.#engine as { readonly _outBuffer?: Buffer };
    if (current === undefined || current.length !== memory.byteLength) return false;
    // Node's pool is everybody's.
    if (memory.byteLength === Buffer.poolSize) return false;
    return this.#isOver || current.buffer !== memory;
  }

  #fail(failure: RecodingFailure, code: string): void {
    if (this.#isOver) return;
    this.destroy();
    this.#owner.onRecodingFailure(failure, code);
  }
}
