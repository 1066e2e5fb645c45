// Bounds of buckets as places among the bins, kept in shared memory for the calls that count by them. Bounds
// come in few lists that are asked for again and again, so the last lists are remembered, by value: a caller
// may change its array.

import { WeirError } from '../base/errors.ts';
import type { SharedHeap } from './heap.ts';
import { positionAfter } from './histogram-bins.ts';
import type { SharedMemory } from './shared-memory.ts';

/** Quantiles or bounds of one call. */
export const MAX_QUESTIONS = 512;
/** Default bounds, those of percent histograms, and some that are configured. */
const REMEMBERED_LISTS = 8;

interface RememberedBounds {
  readonly address: number;
  bounds: Float64Array;
}

export class BucketBounds {
  readonly #memory: SharedMemory;
  readonly #lists: readonly RememberedBounds[];
  #next = 0;

  /** @throws WeirError WEIR_SHARED_MEMORY_FULL. */
  constructor(memory: SharedMemory, heap: SharedHeap) {
    this.#memory = memory;
    const size = MAX_QUESTIONS * 4;
    const first = heap.allocate(REMEMBERED_LISTS * size);
    this.#lists = Array.from({ length: REMEMBERED_LISTS }, (_, at) => ({
      address: first + at * size,
      bounds: new Float64Array(0),
    }));
  }

  /**
   * Address of the u32 positions that follow the last bin of each bound.
   * @throws WeirError WEIR_HISTOGRAM for too many, negative or descending bounds.
   */
  positions(bounds: ArrayLike<number>): number {
    for (const list of this.#lists) if (isEqual(list.bounds, bounds)) return list.address;
    checkAscending('bounds', bounds, Number.POSITIVE_INFINITY);
    const list = this.#lists[this.#next]!;
    this.#next = (this.#next + 1) % REMEMBERED_LISTS;
    list.bounds = Float64Array.from(bounds);
    this.#memory.i32.set(list.bounds.map(positionAfter), list.address >>> 2);
    return list.address;
  }
}

/** @throws WeirError WEIR_HISTOGRAM unless there are at most 512 values, of 0 to `most`, none below the one before. */
export function checkAscending(name: string, values: ArrayLike<number>, most: number): void {
  if (values.length > MAX_QUESTIONS) {
    throw new WeirError('WEIR_HISTOGRAM', `${name}: ${values.length} exceed the limit ${MAX_QUESTIONS}`);
  }
  let before = 0;
  for (let at = 0; at < values.length; at++) {
    const value = values[at]!;
    if (!(value >= before && value <= most)) throw refused(`${name}[${at}]`, value, before, most);
    before = value;
  }
}

function refused(place: string, value: number, before: number, most: number): WeirError {
  return new WeirError(
    'WEIR_HISTOGRAM',
    `${place}: ${value} is not within ${before} (the one before, or 0) to ${most}`,
  );
}

function isEqual(known: Float64Array, asked: ArrayLike<number>): boolean {
  if (known.length !== asked.length || known.length === 0) return false;
  for (let at = 0; at < known.length; at++) if (known[at] !== asked[at]) return false;
  return true;
}
