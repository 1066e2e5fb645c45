// Facade of recording: counts values in the histograms of one thread's slab.

import {
  ARENA_REFUSED,
  ARENA_STAGING,
  CELL_SIZE,
  HISTOGRAM_BINS,
  LAYOUT_VERSION,
  STAGED_VALUES,
} from '../../assembly/layout/shared-memory.ts';
import { arenaAddress } from './histogram-arenas.ts';
import { instantiateModule } from './instantiate.ts';
import type { SharedMemory } from './shared-memory.ts';
import type { StatsExports } from './stats-exports.ts';

/** Largest value that can be recorded: integers are exact up to here. */
export const MAX_HISTOGRAM_VALUE = 2 ** 53;

/** Whether record takes this value; NaN, infinities and negative values have no bin. */
export function isRecordable(value: number): boolean {
  return value >= 0 && value <= MAX_HISTOGRAM_VALUE;
}

/** Values from here on take the call: they are few, and every further decade costs the others a comparison. */
const QUICK_LIMIT = 1_000_000;

/** Where the values of one call are put, as either kind; shared memory grows, but never moves. */
interface Staging {
  readonly address: number;
  readonly doubles: Float64Array<ArrayBufferLike>;
  readonly integers: Uint32Array<ArrayBufferLike>;
}

export class HistogramRecorder {
  readonly #memory: SharedMemory;
  readonly #arena: number;
  #staging: Staging | undefined;
  // Each export by itself: a call through a field is inlined, one through the table of exports is not.
  readonly #record: StatsExports['record'];
  readonly #recordMany: StatsExports['recordMany'];
  readonly #recordManyIntegers: StatsExports['recordManyIntegers'];

  constructor(memory: SharedMemory, module: WebAssembly.Module) {
    const exports = instantiateModule<StatsExports>('stats', module, memory.memory, LAYOUT_VERSION);
    this.#record = exports.record;
    this.#recordMany = exports.recordMany;
    this.#recordManyIntegers = exports.recordManyIntegers;
    this.#memory = memory;
    this.#arena = arenaAddress(memory.slab);
  }

  /** Values that recordMany has refused since the slab was made, whichever thread owned it. */
  get refusedCount(): number {
    return this.#memory.f64[(this.#arena + ARENA_REFUSED) / CELL_SIZE]!;
  }

  /**
   * Counts a value that isRecordable, fractions cut off. Hot: where the bins exist already this writes the
   * count through the view of the memory, which costs half of a call.
   * @param cellIndex  f64 index of this slab's copy of the histogram's cell.
   * @returns false when bins were needed and main's offer is used up: keep the value and try again later.
   */
  record(cellIndex: number, value: number): boolean {
    const { i32 } = this.#memory;
    const head = i32[cellIndex * 2]! >>> 2;
    if (head === 0 || value >= QUICK_LIMIT) return this.#call(cellIndex, value);
    const whole = value | 0;
    let page = 0;
    let entry = whole;
    // One chain for both, with divisions by constants, which are multiplications.
    if (whole >= 1000) {
      if (whole < 10_000) {
        page = 2;
        entry = (whole / 100) | 0;
      } else if (whole < 100_000) {
        page = 3;
        entry = (whole / 1000) | 0;
      } else {
        page = 4;
        entry = (whole / 10_000) | 0;
      }
    } else if (whole >= 100) {
      page = 1;
      entry = (whole / 10) | 0;
    }
    const bins = i32[head + page];
    const bin = (bins! >>> 2) + entry;
    if (bin < HISTOGRAM_BINS || bin >= i32.length) {
      // No bins yet, or main has grown the memory and they lie in what this thread has not mapped.
      if (bins !== 0) this.#memory.reach(4 * Math.max(bin, head + page) + 4);
      return this.#call(cellIndex, value);
    }
    i32[bin]!++;
    return true;
  }

  /**
   * Counts each value, fractions cut off; those that have no bin are refused and counted in refusedCount.
   * Hot: one call for 512 values.
   * @returns how many values were seen, refused ones included; fewer than given when bins were needed and
   * main's offer is used up: keep the rest and try again later.
   */
  recordMany(cellIndex: number, values: Float64Array | Uint32Array): number {
    const staging = this.#staging ?? this.#openStaging();
    if (values.length <= STAGED_VALUES) return this.#recordBatch(cellIndex, values, staging);
    for (let first = 0; first < values.length; first += STAGED_VALUES) {
      const batch = values.subarray(first, first + STAGED_VALUES);
      const seen = this.#recordBatch(cellIndex, batch, staging);
      if (seen < batch.length) return first + seen;
    }
    return values.length;
  }

  #call(cellIndex: number, value: number): boolean {
    return this.#record(cellIndex * CELL_SIZE, value, this.#arena) !== 0;
  }

  #recordBatch(cellIndex: number, values: Float64Array | Uint32Array, staging: Staging): number {
    const cell = cellIndex * CELL_SIZE;
    const { length } = values;
    if (values instanceof Uint32Array) {
      staging.integers.set(values);
      return this.#recordManyIntegers(cell, staging.address, length, this.#arena) >>> 0;
    }
    staging.doubles.set(values);
    return this.#recordMany(cell, staging.address, length, this.#arena) >>> 0;
  }

  /** On first use: main places the staging with its first offer, which may come after this was made. */
  #openStaging(): Staging {
    const address = this.#memory.i32[(this.#arena + ARENA_STAGING) >>> 2]! >>> 0;
    this.#memory.reach(address + STAGED_VALUES * CELL_SIZE);
    const { buffer } = this.#memory.memory;
    this.#staging = {
      address,
      doubles: new Float64Array(buffer, address, STAGED_VALUES),
      integers: new Uint32Array(buffer, address, STAGED_VALUES),
    };
    return this.#staging;
  }
}
