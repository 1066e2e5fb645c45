// How much memory the process uses. Node opens a file of /proc for the answer, and throws when the process is out of
// descriptors; the heap is known without one. Main thread; its heap is that of its own isolate.

export interface MemoryUse {
  /** Bytes in use on the heap and beside it. */
  readonly allocatedBytes: number;
  /** Bytes of the whole heap, with what lies beside it. */
  readonly heapBytes: number;
  /** Bytes of the process that are in physical memory. */
  readonly residentBytes: number;
}

export class ProcessMemory {
  #residentBytes = 0;

  /** Never throws; what the system does not tell is as it was when it last did. */
  read(): MemoryUse {
    const { heapUsed, heapTotal, external } = this.#ask();
    return { allocatedBytes: heapUsed + external, heapBytes: heapTotal + external, residentBytes: this.#residentBytes };
  }

  #ask(): Pick<NodeJS.MemoryUsage, 'heapUsed' | 'heapTotal' | 'external'> {
    try {
      const usage = process.memoryUsage();
      this.#residentBytes = usage.rss;
      return usage;
    } catch {
      // Loading this module takes milliseconds, which the start does not have.
      const heap = process.getBuiltinModule('node:v8').getHeapStatistics();
      return { heapUsed: heap.used_heap_size, heapTotal: heap.total_heap_size, external: heap.external_memory };
    }
  }
}
