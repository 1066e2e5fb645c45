// Facade of the stats module: sums and clears of whole stretches of cells over all slabs. Main only; workers
// count through their view of the memory, which is cheaper than a call.

import { CELL_SIZE, CELLS_PER_SLAB, LAYOUT_VERSION, SLAB_SIZE } from '../../assembly/layout/shared-memory.ts';
import { WeirError } from '../base/errors.ts';
import { instantiateModule } from './instantiate.ts';
import type { SharedMemoryOwner } from './shared-memory-owner.ts';
import type { StatsExports } from './stats-exports.ts';

export class StatsKernel {
  readonly #owner: SharedMemoryOwner;
  readonly #exports: StatsExports;
  /** Address of the sums of one call. */
  readonly #sums: number;

  /** @throws WeirError when the module is of another layout or the memory is full. */
  constructor(owner: SharedMemoryOwner, module: WebAssembly.Module) {
    this.#owner = owner;
    this.#exports = instantiateModule<StatsExports>('stats', module, owner.memory, LAYOUT_VERSION);
    this.#sums = owner.heap.allocate(SLAB_SIZE);
  }

  /**
   * Totals of `count` consecutive cells over all slabs, less what they stood at when last reset.
   * @returns a view that is valid until the next call; -0 where no slab has ever touched the cell.
   */
  sum(cell: number, count: number): Float64Array<ArrayBufferLike> {
    checkStretch(cell, count);
    this.#exports.sumCells(cell * CELL_SIZE, count, this.#owner.shared.slabCount, this.#sums);
    const first = this.#sums / CELL_SIZE;
    return this.#owner.shared.f64.subarray(first, first + count);
  }

  /** One total; two slabs are read quicker here than by a call. */
  total(cell: number): number {
    const { f64, slabCount } = this.#owner.shared;
    let sum = f64[cell]!;
    let at = cell;
    for (let slab = 1; slab < slabCount; slab++) {
      at += CELLS_PER_SLAB;
      sum += f64[at]!;
    }
    // A baseline of -0 must not turn an untouched -0 into 0: -0 - (+0) stays -0.
    return sum - (f64[at + CELLS_PER_SLAB]! + 0);
  }

  /** One total since the cell was made: what it was reset at counts. */
  counted(cell: number): number {
    const { f64, slabCount } = this.#owner.shared;
    return this.total(cell) + f64[cell + slabCount * CELLS_PER_SLAB]!;
  }

  /** Has the total of a gauge, which is never reset, hold a part that no thread of this process counts; 0 for none. */
  setForeignPart(cell: number, value: number): void {
    checkStretch(cell, 1);
    const { f64, slabCount } = this.#owner.shared;
    f64[cell + slabCount * CELLS_PER_SLAB] = -value;
  }

  /** Makes the totals of `count` counters 0 from here on, without touching the cells that workers write. */
  reset(cell: number, count: number): void {
    checkStretch(cell, count);
    this.#exports.resetCells(cell * CELL_SIZE, count, this.#owner.shared.slabCount);
  }

  /** Sets the gauges of a slab whose worker has ended to 0; those never touched stay so. */
  zeroSlab(cell: number, count: number, slab: number): void {
    checkStretch(cell, count);
    this.#exports.zeroTouchedCells((cell + slab * CELLS_PER_SLAB) * CELL_SIZE, count);
  }
}

function checkStretch(cell: number, count: number): void {
  if (cell > 0 && count >= 0 && count <= CELLS_PER_SLAB) return;
  throw new WeirError('WEIR_SHARED_MEMORY_ADDRESS', `${count} cells from ${cell} are no stretch of a slab`);
}
