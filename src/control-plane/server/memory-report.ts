// Memory of the whole process: the heaps of all threads, and what they share. Main thread.

import type { HeapInfo } from 'node:v8';

/** In bytes; `heap` is the sum of all but the last. */
export interface MemoryReport {
  /** In use: objects, what lies beside the heaps for them, and blocks of the shared memory. */
  readonly allocated: number;
  /** Reserved, in use or not. */
  readonly heap: number;
  /** Of the heaps, what is not in physical memory. */
  readonly unmapped: number;
  /** Of the heaps and the shared memory, what waits for use. */
  readonly free: number;
  /** What engines hold for themselves. */
  readonly threadCaches: number;
  /** Of the process, in physical memory. */
  readonly physical: number;
}

type Heap = Pick<
  HeapInfo,
  'used_heap_size' | 'total_heap_size' | 'total_physical_size' | 'external_memory' | 'malloced_memory'
>;

/** The memory that all threads share. */
export interface SharedUse {
  readonly usedBytes: number;
  readonly byteLength: number;
}

export function memoryReport(heaps: readonly Heap[], shared: SharedUse, physical: number): MemoryReport {
  const sum = (of: (heap: Heap) => number): number => heaps.reduce((total, heap) => total + of(heap), 0);
  // What is in physical memory and what is in use are read one after the other.
  const mapped = (heap: Heap): number =>
    Math.min(Math.max(heap.total_physical_size, heap.used_heap_size), heap.total_heap_size);
  return {
    allocated: sum(({ used_heap_size: used, external_memory: external }) => used + external) + shared.usedBytes,
    heap:
      sum(({ total_heap_size: total, external_memory: external, malloced_memory: own }) => total + external + own) +
      shared.byteLength,
    unmapped: sum((heap) => heap.total_heap_size - mapped(heap)),
    free: sum((heap) => mapped(heap) - heap.used_heap_size) + shared.byteLength - shared.usedBytes,
    threadCaches: sum(({ malloced_memory: own }) => own),
    physical,
  };
}
