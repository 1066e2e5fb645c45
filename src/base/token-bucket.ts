// A token bucket that several threads take from: full at the start, filled up at fixed times, never beyond its size. Its
// state lies in memory that all of them see.
//
//   i32[0]  tokens     i32[1]  fills so far     f64[1]  time of the start, in milliseconds of the system's monotonic clock
//
// Whoever first finds that a time of filling has come does it, once for all: a request that another thread has at the same
// moment may still be refused, as if it had come before.

const TOKENS = 0;
const FILLS = 1;
const START = 1;
const BYTES = 16;
/** What an i32 holds. */
export const MAX_TOKENS = 2 ** 31 - 1;

export interface TokenBucketSettings {
  /** 1 to MAX_TOKENS. */
  readonly maxTokens: number;
  readonly tokensPerFill: number;
  /** Whole milliseconds, 1 or more. */
  readonly fillIntervalMs: number;
  readonly state: ArrayBufferLike;
}

/** Memory that threads share. @param nowMs of the system's monotonic clock. */
export function bucketState(maxTokens: number, nowMs: number): SharedArrayBuffer {
  const state = new SharedArrayBuffer(BYTES);
  new Int32Array(state)[TOKENS] = maxTokens;
  new Float64Array(state)[START] = nowMs;
  return state;
}

export class TokenBucket {
  readonly maxTokens: number;
  readonly #tokensPerFill: number;
  readonly #fillIntervalMs: number;
  readonly #startMs: number;
  readonly #words: Int32Array<ArrayBufferLike>;

  constructor({ maxTokens, tokensPerFill, fillIntervalMs, state }: TokenBucketSettings) {
    this.maxTokens = maxTokens;
    this.#tokensPerFill = tokensPerFill;
    this.#fillIntervalMs = fillIntervalMs;
    this.#startMs = new Float64Array(state)[START]!;
    this.#words = new Int32Array(state);
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

  remaining(nowMs: number): number {
    this.#fill(nowMs);
    return Atomics.load(this.#words, TOKENS);
  }

  /** Until it is filled again. */
  msToFill(nowMs: number): number {
    const sinceFill = (nowMs - this.#startMs) % this.#fillIntervalMs;
    return this.#fillIntervalMs - sinceFill;
  }

  #fill(nowMs: number): void {
    const words = this.#words;
    const due = Math.floor((nowMs - this.#startMs) / this.#fillIntervalMs) | 0;
    const done = Atomics.load(words, FILLS);
    // By the difference, which is right beyond the range of an i32, too.
    const missing = (due - done) | 0;
    if (missing <= 0 || Atomics.compareExchange(words, FILLS, done, due) !== done) return;
    let seen = Atomics.load(words, TOKENS);
    while (seen < this.maxTokens) {
      const full = Math.min(this.maxTokens, seen + missing * this.#tokensPerFill);
      const before = Atomics.compareExchange(words, TOKENS, seen, full);
      if (before === seen) return;
      seen = before;
    }
  }
}
