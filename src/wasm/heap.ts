// Main's allocator over the heap part of the shared memory. The book-keeping lies in JavaScript, so that a
// worker's stray write can never break it. Free ranges are kept sorted by address and melt with their
// neighbours; the best fitting one is taken, which keeps tables of many sizes from cutting the heap up.

import { BLOCK_ALIGNMENT, HEAP_AT } from '../../assembly/layout/shared-memory.ts';
import { WeirError } from '../base/errors.ts';
import type { SharedMemory } from './shared-memory.ts';

interface FreeRange {
  start: number;
  end: number;
}

export class SharedHeap {
  readonly #memory: SharedMemory;
  /** Sorted by address; no two touch. */
  readonly #free: FreeRange[] = [];
  /** Size of each block in use, by address. */
  readonly #blocks = new Map<number, number>();
  /** First byte that no block has ever used. */
  #top = HEAP_AT;
  #usedBytes = 0;

  constructor(memory: SharedMemory) {
    this.#memory = memory;
  }

  /** Bytes in blocks that are in use, with their alignment. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Bytes from the heap's start to the highest block ever used. */
  get spannedBytes(): number {
    return this.#top - HEAP_AT;
  }

  /** Holes between blocks; few, since neighbours melt. */
  get freeRangeCount(): number {
    return this.#free.length;
  }

  /**
   * A block of at least `size` bytes, aligned to two cache lines, with whatever bytes were there before.
   * @throws WeirError WEIR_SHARED_MEMORY_FULL; nothing has changed then.
   */
  allocate(size: number): number {
    if (!(size > 0)) throw new WeirError('WEIR_SHARED_MEMORY_OPTIONS', `cannot allocate ${size} bytes`);
    const length = Math.ceil(size / BLOCK_ALIGNMENT) * BLOCK_ALIGNMENT;
    const start = this.#takeFree(length) ?? this.#takeTop(length);
    this.#blocks.set(start, length);
    this.#usedBytes += length;
    return start;
  }

  /** Bytes of the block at an address, with its alignment. */
  sizeOf(address: number): number {
    const length = this.#blocks.get(address);
    if (length === undefined) throw new WeirError('WEIR_SHARED_MEMORY_ADDRESS', `no block starts at ${address}`);
    return length;
  }

  /** Gives a block back. No thread may use it any more: see Reclaimer. */
  free(address: number): void {
    const length = this.sizeOf(address);
    this.#blocks.delete(address);
    this.#usedBytes -= length;
    this.#insertFree(address, address + length);
  }

  #takeFree(length: number): number | undefined {
    let best = -1;
    let bestSize = Number.POSITIVE_INFINITY;
    for (let at = 0; at < this.#free.length; at++) {
      const range = this.#free[at]!;
      const size = range.end - range.start;
      if (size < length || size >= bestSize) continue;
      best = at;
      bestSize = size;
      if (size === length) break;
    }
    if (best === -1) return undefined;
    const range = this.#free[best]!;
    const start = range.start;
    range.start += length;
    if (range.start === range.end) this.#free.splice(best, 1);
    return start;
  }

  /** A hole at the very end is used up first, so that growing needs no more than what is missing. */
  #takeTop(length: number): number {
    const last = this.#free.at(-1);
    const start = last?.end === this.#top ? last.start : this.#top;
    if (this.#memory.grow(start + length) === undefined) {
      throw new WeirError(
        'WEIR_SHARED_MEMORY_FULL',
        `shared memory is full: ${length} bytes asked for, ${this.#usedBytes} in use of ${this.#memory.byteLength} that could be had`,
      );
    }
    if (start < this.#top) this.#free.pop();
    this.#top = start + length;
    return start;
  }

  #insertFree(start: number, end: number): void {
    const at = this.#firstRangeAfter(start);
    const before = this.#free[at - 1];
    const after = this.#free[at];
    const joinsBefore = before?.end === start;
    const joinsAfter = after?.start === end;
    if (before && joinsBefore && after && joinsAfter) {
      before.end = after.end;
      this.#free.splice(at, 1);
    } else if (before && joinsBefore) {
      before.end = end;
    } else if (after && joinsAfter) {
      after.start = start;
    } else {
      this.#free.splice(at, 0, { start, end });
    }
  }

  #firstRangeAfter(address: number): number {
    let low = 0;
    let high = this.#free.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#free[middle]!.start < address) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
