// Main's side of the shared memory: everything that hands out places in it. There is one per proxy.

import { CellAllocator } from './cells.ts';
import { SharedHeap } from './heap.ts';
import { Reclaimer } from './reclaimer.ts';
import { RecordAllocator } from './record-allocator.ts';
import { SharedMemory, type SharedMemoryOptions, workerSlab } from './shared-memory.ts';

export class SharedMemoryOwner {
  readonly shared: SharedMemory;
  readonly heap: SharedHeap;
  readonly cells: CellAllocator;
  /** Makes and frees host and cluster records. */
  readonly recordAllocator: RecordAllocator;
  readonly reclaimer = new Reclaimer();

  /** @throws WeirError WEIR_SHARED_MEMORY_OPTIONS or WEIR_SHARED_MEMORY_FULL. */
  constructor(options: SharedMemoryOptions) {
    this.shared = SharedMemory.create(options);
    this.heap = new SharedHeap(this.shared);
    this.cells = new CellAllocator(this.shared, this.heap);
    this.recordAllocator = new RecordAllocator(this.shared, this.heap, this.cells);
  }

  /** What is posted to workers. */
  get memory(): WebAssembly.Memory {
    return this.shared.memory;
  }

  /** Frees a record once no worker can write it any more. */
  retireRecord(address: number): void {
    this.reclaimer.retire(() => this.recordAllocator.free(address));
  }

  /** Takes the requests and connections of a worker that has ended out of all records. */
  clearWorker(workerIndex: number): void {
    this.recordAllocator.clearSlab(workerSlab(workerIndex));
  }
}
