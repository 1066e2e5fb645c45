// Counts of latencies by size, in memory that several threads add to. A latency of v microseconds is counted with those of the
// same first five binary digits behind the leading one, so that what is read is off by 3 % at most.
//
//   i32[0 … 63]                 v itself
//   i32[64 + 32 (e - 6) + d]    2^e <= v < 2^(e+1), digits d; e = 6 … 31

const EXACT = 64;
const EXACT_BITS = 6;
const DIGIT_BITS = 5;
const DIGITS = 1 << DIGIT_BITS;
const MOST_US = 2 ** 32 - 1;
const COUNTS = EXACT + (32 - EXACT_BITS) * DIGITS;

export const LATENCY_COUNTS_BYTES: number = COUNTS * Int32Array.BYTES_PER_ELEMENT;

export class LatencyCounts {
  readonly #counts: Int32Array<ArrayBufferLike>;

  /** @param memory zeros at first. @param offset in bytes. */
  constructor(memory: ArrayBufferLike, offset: number) {
    this.#counts = new Int32Array(memory, offset, COUNTS);
  }

  add(us: number): void {
    Atomics.add(this.#counts, placeOf(Math.min(MOST_US, Math.floor(us))), 1);
  }

  /** Forgets all. What another thread adds meanwhile may be forgotten as well. */
  clear(): void {
    for (let place = 0; place < COUNTS; place += 1) Atomics.store(this.#counts, place, 0);
  }

  /** @param share of all that are not above what is returned, 0 to 1. @returns microseconds; undefined where there are none. */
  quantile(share: number): number | undefined {
    let sum = 0;
    for (let place = 0; place < COUNTS; place += 1) sum += Atomics.load(this.#counts, place);
    if (sum === 0) return undefined;
    let left = Math.max(1, share * sum);
    let last = 0;
    for (let place = 0; place < COUNTS; place += 1) {
      const count = Atomics.load(this.#counts, place);
      if (count === 0) continue;
      last = place;
      if (count >= left) break;
      left -= count;
    }
    return leastOf(last) + widthOf(last) / 2;
  }
}

function placeOf(us: number): number {
  if (us < EXACT) return us;
  const exponent = 31 - Math.clz32(us);
  const digits = (us >>> (exponent - DIGIT_BITS)) - DIGITS;
  return EXACT + (exponent - EXACT_BITS) * DIGITS + digits;
}

function leastOf(place: number): number {
  if (place < EXACT) return place;
  const exponent = EXACT_BITS + Math.floor((place - EXACT) / DIGITS);
  return (DIGITS + ((place - EXACT) % DIGITS)) * 2 ** (exponent - DIGIT_BITS);
}

/** Whole microseconds in one place beyond the first. */
function widthOf(place: number): number {
  return place < EXACT ? 0 : 2 ** (EXACT_BITS + Math.floor((place - EXACT) / DIGITS) - DIGIT_BITS) - 1;
}
