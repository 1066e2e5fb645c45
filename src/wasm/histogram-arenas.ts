// Main's supply of blocks for histogram bins. Workers make bins when a value first falls into a decade and
// must not wait for main then, so main keeps a chain of zeroed blocks on offer for each slab.

import {
  ARENA_CHAIN,
  ARENA_OFFER,
  ARENA_STAGING,
  ARENA_STRIDE,
  ARENAS_AT,
  CELL_SIZE,
  CELLS_PER_SLAB,
  HISTOGRAM_BINS_AT,
  HISTOGRAM_BLOCK_SIZE,
  HISTOGRAM_PAGES,
  STAGED_VALUES,
} from '../../assembly/layout/shared-memory.ts';
import type { SharedHeap } from './heap.ts';
import type { SharedMemory } from './shared-memory.ts';

const BLOCKS_PER_SPAN = 64;
/** Blocks of the first offer. Later ones have as many more as the histograms of the slab have, up to the largest. */
const FIRST_OFFER = 16;
const LARGEST_OFFER = 4096;

/** Address of a slab's arena record. */
export function arenaAddress(slab: number): number {
  return ARENAS_AT + slab * ARENA_STRIDE;
}

export class HistogramArenas {
  readonly #memory: SharedMemory;
  readonly #heap: SharedHeap;
  /** Blocks that no histogram uses. */
  readonly #unused: number[] = [];
  /** Length of the last offer, by slab. */
  readonly #offered: number[];
  /** Blocks of all offers before the last that were not released, by slab: those of histograms and of the chain. */
  readonly #taken: number[];

  /** @throws WeirError WEIR_SHARED_MEMORY_FULL. */
  constructor(memory: SharedMemory, heap: SharedHeap) {
    this.#memory = memory;
    this.#heap = heap;
    this.#offered = Array.from({ length: memory.slabCount }, () => 0);
    this.#taken = Array.from({ length: memory.slabCount }, () => 0);
    const staging = heap.allocate(memory.slabCount * STAGED_VALUES * CELL_SIZE);
    for (let slab = 0; slab < memory.slabCount; slab++) {
      memory.i32[(arenaAddress(slab) + ARENA_STAGING) >>> 2] = staging + slab * STAGED_VALUES * CELL_SIZE;
    }
    this.refillAll();
  }

  /** Makes an offer to every slab that has taken its last one. Cheap when there is nothing to do. */
  refillAll(): void {
    for (let slab = 0; slab < this.#memory.slabCount; slab++) this.refill(slab);
  }

  /** @throws WeirError WEIR_SHARED_MEMORY_FULL; the blocks got so far stay with main. */
  refill(slab: number): void {
    const offer = (arenaAddress(slab) + ARENA_OFFER) >>> 2;
    if (Atomics.load(this.#memory.i32, offer) !== 0) return;
    const taken = this.#taken[slab]! + this.#offered[slab]!;
    const length = Math.min(LARGEST_OFFER, FIRST_OFFER + this.#usedBlocks(slab));
    this.#stock(length);
    let first = 0;
    for (let n = 0; n < length; n++) {
      const block = this.#unused.pop()!;
      this.#memory.i32.fill(0, block >>> 2, (block + HISTOGRAM_BLOCK_SIZE) >>> 2);
      this.#memory.i32[block >>> 2] = first;
      first = block;
    }
    this.#taken[slab] = taken;
    this.#offered[slab] = length;
    Atomics.store(this.#memory.i32, offer, first);
  }

  /**
   * Blocks that histograms of a slab have, roughly, when the last offer has been taken. Its blocks count only once
   * all of them are used: where histograms come and go, each offer would otherwise be longer than the one before.
   * A worker that is just taking it may look as if it had used it up; that is one offer too long, and the next is not.
   */
  #usedBlocks(slab: number): number {
    const taken = this.#taken[slab]!;
    const isUsedUp = Atomics.load(this.#memory.i32, (arenaAddress(slab) + ARENA_CHAIN) >>> 2) === 0;
    // What was released may be of the last offer, which is not counted then.
    return isUsedUp ? taken + this.#offered[slab]! : Math.max(0, taken);
  }

  /** Takes back the blocks of a histogram in all slabs. No thread may record into it any more. */
  release(cell: number): void {
    for (let slab = 0; slab < this.#memory.slabCount; slab++) {
      const head = this.#memory.i32[(cell + slab * CELLS_PER_SLAB) * 2]! >>> 0;
      if (head !== 0) this.#taken[slab]! -= this.#releaseBlocks(head);
    }
  }

  /** @returns how many. */
  #releaseBlocks(head: number): number {
    let count = 1;
    for (let page = 0; page < HISTOGRAM_PAGES; page++) {
      const bins = this.#memory.i32[(head >>> 2) + page]! >>> 0;
      const block = bins - HISTOGRAM_BINS_AT;
      if (bins === 0 || block === head) continue;
      this.#unused.push(block);
      count += 1;
    }
    this.#unused.push(head);
    return count;
  }

  #stock(count: number): void {
    while (this.#unused.length < count) {
      const span = this.#heap.allocate(BLOCKS_PER_SPAN * HISTOGRAM_BLOCK_SIZE);
      for (let n = BLOCKS_PER_SPAN - 1; n >= 0; n--) this.#unused.push(span + n * HISTOGRAM_BLOCK_SIZE);
    }
  }
}
