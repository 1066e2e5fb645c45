// Main's allocator of stat cells. Cells come in chunks: one stretch of CELLS_PER_SLAB cells for main, one
// for each worker and a last one that holds what counters stood at when they were last reset.
//
//   chunk  | slab 0 (main) | slab 1 (worker 0) | … | slab n (worker n-1) | baseline |
//
// A cell starts as -0. Adding or storing anything, even 0, turns it into another value, and sums of -0 stay
// -0: that is how a stat that was never touched is told from one that is 0 again, without a second cell.

import { CELL_SIZE, CELLS_PER_SLAB, SLAB_SIZE } from '../../assembly/layout/shared-memory.ts';
import { WeirError } from '../base/errors.ts';
import type { SharedHeap } from './heap.ts';
import type { SharedMemory } from './shared-memory.ts';

/** Value of a cell that was never written. */
export const UNTOUCHED = -0;

/** The unused end of a chunk. */
interface Tail {
  next: number;
  readonly end: number;
}

/** Tails kept for blocks that still fit; beyond that the smallest serves single cells. */
const MAX_TAILS = 8;

export class CellAllocator {
  readonly #memory: SharedMemory;
  readonly #heap: SharedHeap;
  readonly #tails: Tail[] = [];
  /** Freed blocks by size: tables come in few sizes, so an equal one is soon wanted again. */
  readonly #freed = new Map<number, number[]>();
  #chunkCount = 0;
  #usedCells = 0;

  constructor(memory: SharedMemory, heap: SharedHeap) {
    this.#memory = memory;
    this.#heap = heap;
  }

  get chunkCount(): number {
    return this.#chunkCount;
  }

  /** Cells in use, each of which exists once per slab. */
  get usedCells(): number {
    return this.#usedCells;
  }

  /**
   * `count` consecutive cells, untouched in every slab.
   * @returns the id of the first, never 0.
   * @throws WeirError WEIR_SHARED_MEMORY_FULL; nothing has changed then.
   */
  allocate(count: number): number {
    if (!Number.isInteger(count) || count < 1 || count > CELLS_PER_SLAB) {
      throw new WeirError('WEIR_SHARED_MEMORY_OPTIONS', `cannot allocate ${count} cells: 1 to ${CELLS_PER_SLAB}`);
    }
    const reused = this.#freed.get(count)?.pop();
    if (reused !== undefined) this.#fill(reused, count);
    const cell = reused ?? this.#takeFromTails(count) ?? this.#takeFromNewChunk(count);
    this.#usedCells += count;
    return cell;
  }

  /** Gives back what allocate gave. No thread may write it any more: see Reclaimer. */
  free(cell: number, count: number): void {
    this.#usedCells -= count;
    const freed = this.#freed.get(count);
    if (freed) freed.push(cell);
    else this.#freed.set(count, [cell]);
  }

  #takeFromTails(count: number): number | undefined {
    const at = this.#tails.findIndex((tail) => tail.end - tail.next >= count);
    if (at === -1) return undefined;
    const tail = this.#tails[at]!;
    const cell = tail.next;
    tail.next += count;
    if (tail.next === tail.end) this.#tails.splice(at, 1);
    return cell;
  }

  #takeFromNewChunk(count: number): number {
    const slabs = this.#memory.slabCount + 1;
    const first = this.#heap.allocate(slabs * SLAB_SIZE) / CELL_SIZE;
    this.#memory.f64.fill(UNTOUCHED, first, first + slabs * CELLS_PER_SLAB);
    this.#chunkCount += 1;
    if (count < CELLS_PER_SLAB) this.#tails.push({ next: first + count, end: first + CELLS_PER_SLAB });
    if (this.#tails.length > MAX_TAILS) this.#breakUpSmallestTail();
    return first;
  }

  #breakUpSmallestTail(): void {
    const smallest = this.#tails.reduce((a, b) => (b.end - b.next < a.end - a.next ? b : a));
    this.#tails.splice(this.#tails.indexOf(smallest), 1);
    const singles = this.#freed.get(1) ?? [];
    for (let cell = smallest.end - 1; cell >= smallest.next; cell--) singles.push(cell);
    this.#freed.set(1, singles);
  }

  #fill(cell: number, count: number): void {
    for (let slab = 0; slab <= this.#memory.slabCount; slab++) {
      const at = cell + slab * CELLS_PER_SLAB;
      this.#memory.f64.fill(UNTOUCHED, at, at + count);
    }
  }
}
