// A counter of the core. One thread adds to it, so it is a number of that thread: a cell of the shared memory would
// cost a way through memory for each addition. Exact up to 2^53; what goes beyond is carried over into a bigint, so that
// the total is exact without a bigint in every addition.

import { argumentError, show } from './arguments.ts';
import type { Counter } from './types.ts';

/** The sum below this and any one addition is still exact. */
const CARRY_AT = 2 ** 52;

export class PlainCounter implements Counter {
  #sum = 0;
  #carried = 0n;

  add(n = 1): void {
    const sum = this.#sum + n;
    // One comparison serves the common case; NaN and what is too large or negative fail it.
    if (n >= 0 && sum < CARRY_AT && Math.floor(n) === n) this.#sum = sum;
    else this.#addLarge(n);
  }

  get value(): bigint {
    return this.#carried + BigInt(this.#sum);
  }

  #addLarge(n: number): void {
    if (!(Number.isSafeInteger(n) && n >= 0)) {
      throw argumentError('n', `${show(n)} is not a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`);
    }
    this.#carried += BigInt(this.#sum) + BigInt(n);
    this.#sum = 0;
  }
}
