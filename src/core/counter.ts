// A counter over one cell of the shared memory. A cell is a double, exact up to 2^53; what goes beyond is carried over
// into a bigint, so that the total is exact without a bigint in every addition.

import type { SharedMemory } from '../wasm/shared-memory.ts';
import { argumentError, show } from './arguments.ts';
import type { Counter } from './types.ts';

/** The sum of a cell below this and any one addition is still exact. */
const CARRY_AT = 2 ** 52;

export class CellCounter implements Counter {
  /** Covers the cell, and goes on doing so when the memory has grown: one load less than asking the memory for its view. */
  readonly #cells: Float64Array<ArrayBufferLike>;
  readonly #index: number;
  #carried = 0n;

  constructor(memory: SharedMemory, cell: number) {
    this.#index = memory.cellIndex(cell);
    this.#cells = memory.f64;
  }

  add(n = 1): void {
    const f64 = this.#cells;
    const sum = f64[this.#index]! + n;
    // One comparison serves the common case; NaN and what is too large or negative fail it.
    if (n >= 0 && sum < CARRY_AT && Math.floor(n) === n) f64[this.#index] = sum;
    else this.#addLarge(n);
  }

  get value(): bigint {
    return this.#carried + BigInt(this.#cells[this.#index]!);
  }

  #addLarge(n: number): void {
    if (!(Number.isSafeInteger(n) && n >= 0)) {
      throw argumentError('n', `${show(n)} is not a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`);
    }
    this.#carried += BigInt(this.#cells[this.#index]!) + BigInt(n);
    this.#cells[this.#index] = 0;
  }
}
