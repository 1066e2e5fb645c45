// A token bucket that several threads take from: filled up at fixed times, never beyond its size. Its state lies in memory
// that all of them see.
//
//   i32[0]  tokens     i32[1]  fills so far     f64[1]  time of the start, in milliseconds of the system's monotonic clock
//
// Whoever first finds that a time of filling has come does it, once for all: a request that another thread has at the same
// moment may still be refused, as if it had come before.

const TOKENS = 0;
const FILLS = 1;
const START = 1;
const BYTES = 16;
/** Over so many, parts of tokens are added up. */
const FILLS_IN_STEP = 2 ** 16;
/** What an i32 holds. */
export const MAX_TOKENS = 2 ** 31 - 1;

export interface TokenBucketSettings {
  /** 1 to MAX_TOKENS. */
  readonly maxTokens: number;
  /** May have a fraction, which counts over many fills. */
  readonly tokensPerFill: number;
  /** Whole milliseconds, 1 or more. */
  readonly fillIntervalMs: number;
  readonly state: ArrayBufferLike;
}

/** Memory that threads share. @param tokens in it at first. @param nowMs of the system's monotonic clock. */
export function bucketState(tokens: number, nowMs: number): SharedArrayBuffer {
  const state = new SharedArrayBuffer(BYTES);
  new Int32Array(state)[TOKENS] = tokens;
  new Float64Array(state)[START] = nowMs;
  return state;
}

export class TokenBucket {
  readonly maxTokens: number;
  readonly #tokensPerFill: number;
  readonly #fillIntervalMs: number;
  readonly #startMs: number;
  readonly #words: Int32Array<ArrayBufferLike>;

  /** @param offset of the bucket in the memory, a multiple of 8 bytes. */
  constructor({ maxTokens, tokensPerFill, fillIntervalMs, state }: TokenBucketSettings, offset = 0) {
    this.maxTokens = maxTokens;
    this.#tokensPerFill = tokensPerFill;
    this.#fillIntervalMs = fillIntervalMs;
    this.#startMs = new Float64Array(state, offset, BYTES / 8)[START]!;
    this.#words = new Int32Array(state, offset, BYTES / 4);
  }

  /** In the long run: the less, the scarcer. */
  get tokensPerMs(): number {
    return this.#tokensPerFill / this.#fillIntervalMs;
  }

  /** Takes so many, or none where there are fewer. @param nowMs of the system's monotonic clock. */
  take(count: number, nowMs: number): boolean {
    this.#fill(nowMs);
    const words = this.#words;
    let seen = Atomics.load(words, TOKENS);
    while (seen >= count) {
      const before = Atomics.compareExchange(words, TOKENS, seen, seen - count);
      if (before === seen) return true;
      seen = before;
    }
    return false;
  }

  /** Takes as many as there are, `count` at most. @returns how many. @param nowMs of the system's monotonic clock. */
  takeUpTo(count: number, nowMs: number): number {
    this.#fill(nowMs);
    const words = this.#words;
    let seen = Atomics.load(words, TOKENS);
    while (seen > 0) {
      const taken = Math.min(seen, count);
      const before = Atomics.compareExchange(words, TOKENS, seen, seen - taken);
      if (before === seen) return taken;
      seen = before;
    }
    return 0;
  }

  /** Makes it full, as one that begins now. */
  fillUp(nowMs: number): void {
    Atomics.store(this.#words, FILLS, this.fillsBy(nowMs) | 0);
    Atomics.store(this.#words, TOKENS, this.maxTokens);
  }

  remaining(nowMs: number): number {
    this.#fill(nowMs);
    return Atomics.load(this.#words, TOKENS);
  }

  /** How often it has been filled by then. */
  fillsBy(nowMs: number): number {
    return Math.floor((nowMs - this.#startMs) / this.#fillIntervalMs);
  }

  /** Until it is filled again. */
  msToFill(nowMs: number): number {
    const sinceFill = (nowMs - this.#startMs) % this.#fillIntervalMs;
    return this.#fillIntervalMs - sinceFill;
  }

  #fill(nowMs: number): void {
    const words = this.#words;
    const due = this.fillsBy(nowMs) | 0;
    const done = Atomics.load(words, FILLS);
    // By the difference, which is right beyond the range of an i32, too.
    const missing = (due - done) | 0;
    if (missing <= 0 || Atomics.compareExchange(words, FILLS, done, due) !== done) return;
    const tokens = this.#tokensOf(done, missing);
    let seen = Atomics.load(words, TOKENS);
    while (seen < this.maxTokens) {
      const full = Math.min(this.maxTokens, seen + tokens);
      const before = Atomics.compareExchange(words, TOKENS, seen, full);
      if (before === seen) return;
      seen = before;
    }
  }
  /** Whole ones, also where a fill brings a part of one. @param done fills before them. */
  #tokensOf(done: number, fills: number): number {
    const before = (done >>> 0) % FILLS_IN_STEP;
    return Math.floor((before + fills) * this.#tokensPerFill) - Math.floor(before * this.#tokensPerFill);
  }
}
