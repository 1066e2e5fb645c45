// The one memory that all threads map: creation on main, attachment in a worker, and the typed views that
// the other facades of this folder read and write through. Owns the views, which are rebuilt here alone
// when the memory has grown. Layout: assembly/layout/shared-memory.ts.

import {
  CELL_SIZE,
  CELLS_PER_SLAB,
  HEADER_CELLS_PER_SLAB,
  HEADER_LAYOUT_VERSION,
  HEADER_MAGIC,
  HEADER_SLAB_COUNT,
  HEAP_AT,
  LAYOUT_VERSION,
  MAGIC,
  MAX_SLABS,
} from '../../assembly/layout/shared-memory.ts';
import { errorMessage, WeirError } from '../base/errors.ts';
import { writeDecadeTables } from './decade-tables.ts';
import { SharedRecords } from './shared-records.ts';

export { ClusterCount, ClusterPriority, FailureRow, HealthFlag, HealthMask, SharedRecords } from './shared-records.ts';

const PAGE_SIZE = 65536;
const MIB = 1024 * 1024;
/** Address space, not memory: pages cost nothing before they are used. */
const DEFAULT_MAX_BYTES = 1024 * MIB;
/** WASM addresses are 32 bits wide. */
const LARGEST_MAX_BYTES = 4096 * MIB;
const GROWTH_STEP_BYTES = MIB;

export interface SharedMemoryOptions {
  /** Worker threads that will attach, 1 to 511; main has a slab of its own beside theirs. */
  readonly workerCount: number;
  /** Upper bound that the memory may ever grow to, default 1 GiB, at most 4 GiB; rounded up to 64 KiB. */
  readonly maxBytes?: number;
}

/** Slab that main itself writes. */
export const MAIN_SLAB = 0;

/** Slab of the worker with this index (0 to concurrency - 1); a restarted worker gets the same one. */
export function workerSlab(workerIndex: number): number {
  return workerIndex + 1;
}

export class SharedMemory {
  /** Posted to workers as it is. */
  readonly memory: WebAssembly.Memory;
  /** Workers + 1. */
  readonly slabCount: number;
  /** The slab that this thread writes. */
  readonly slab: number;
  /** Host and cluster records, with this thread's ledger. */
  readonly records: SharedRecords;
  /** The memory as f64; replaced when the memory has grown, so do not keep it. */
  f64: Float64Array<ArrayBufferLike>;
  /** The memory as i32; replaced when the memory has grown, so do not keep it. */
  i32: Int32Array<ArrayBufferLike>;

  private constructor(memory: WebAssembly.Memory, slab: number) {
    this.memory = memory;
    this.slab = slab;
    this.f64 = new Float64Array(memory.buffer);
    this.i32 = new Int32Array(memory.buffer);
    this.slabCount = Atomics.load(this.i32, HEADER_SLAB_COUNT / 4);
    this.records = new SharedRecords(this, slab);
  }

  /**
   * Main: reserves the address space and writes the header.
   * @throws WeirError WEIR_SHARED_MEMORY_OPTIONS for a count out of range, WEIR_SHARED_MEMORY_FULL when the
   * system does not give the address space.
   */
  static create(options: SharedMemoryOptions): SharedMemory {
    const { workerCount, maxBytes = DEFAULT_MAX_BYTES } = options;
    checkRange('workerCount', workerCount, 1, MAX_SLABS - 1);
    checkRange('maxBytes', maxBytes, HEAP_AT + PAGE_SIZE, LARGEST_MAX_BYTES);
    const memory = reserve(maxBytes);
    const header = new Int32Array(memory.buffer);
    header[HEADER_LAYOUT_VERSION / 4] = LAYOUT_VERSION;
    header[HEADER_SLAB_COUNT / 4] = workerCount + 1;
    header[HEADER_CELLS_PER_SLAB / 4] = CELLS_PER_SLAB;
    writeDecadeTables(memory.buffer);
    Atomics.store(header, HEADER_MAGIC / 4, MAGIC);
    return new SharedMemory(memory, MAIN_SLAB);
  }

  /**
   * A worker: maps the memory that main has posted.
   * @throws WeirError WEIR_SHARED_MEMORY_INVALID when its header is not that of this layout, or when main has
   * reserved no slab for a worker of this index.
   */
  static attach(memory: WebAssembly.Memory, workerIndex: number): SharedMemory {
    const header = new Int32Array(memory.buffer);
    const magic = Atomics.load(header, HEADER_MAGIC / 4);
    const version = header[HEADER_LAYOUT_VERSION / 4];
    const cellsPerSlab = header[HEADER_CELLS_PER_SLAB / 4];
    if (magic !== MAGIC || version !== LAYOUT_VERSION || cellsPerSlab !== CELLS_PER_SLAB) {
      throw new WeirError(
        'WEIR_SHARED_MEMORY_INVALID',
        `shared memory has magic ${magic}, layout ${version} and ${cellsPerSlab} cells per slab, expected ${MAGIC}, ${LAYOUT_VERSION} and ${CELLS_PER_SLAB}`,
      );
    }
    const slabCount = header[HEADER_SLAB_COUNT / 4]!;
    const slab = workerSlab(workerIndex);
    if (!(slab > MAIN_SLAB && slab < slabCount)) {
      throw new WeirError(
        'WEIR_SHARED_MEMORY_INVALID',
        `worker ${workerIndex} has no slab in a shared memory for ${slabCount - 1} workers`,
      );
    }
    return new SharedMemory(memory, slab);
  }

  get byteLength(): number {
    return this.f64.byteLength;
  }

  /**
   * Makes the views cover the byte before `end`. Cheap when they do already; otherwise main has grown the
   * memory since, and growing by nothing is what makes this thread see the new size.
   * @throws WeirError WEIR_SHARED_MEMORY_ADDRESS when the memory ends before.
   */
  reach(end: number): void {
    if (end <= this.f64.byteLength) return;
    this.memory.grow(0);
    this.#rebuildViews();
    if (end > this.f64.byteLength) {
      throw new WeirError(
        'WEIR_SHARED_MEMORY_ADDRESS',
        `address ${end} lies outside the shared memory of ${this.f64.byteLength} bytes`,
      );
    }
  }

  /** Index in `f64` of a slab's copy of a cell, by default this thread's; makes the views reach it. */
  cellIndex(cell: number, slab: number = this.slab): number {
    const index = cell + slab * CELLS_PER_SLAB;
    // The baseline slab that ends the chunk lies behind every slab's copy, so this much is always mapped.
    this.reach((cell + this.slabCount * CELLS_PER_SLAB) * CELL_SIZE);
    return index;
  }

  /**
   * Main: grows in steps, at least to `byteLength`; never shrinks.
   * @returns the new length, or undefined when the reserved space does not reach that far.
   */
  grow(byteLength: number): number | undefined {
    const current = this.f64.byteLength;
    if (byteLength <= current) return current;
    const step = Math.max(GROWTH_STEP_BYTES, current / 8);
    for (const target of [Math.max(byteLength, current + step), byteLength]) {
      if (!this.#tryGrow(Math.ceil((target - current) / PAGE_SIZE))) continue;
      this.#rebuildViews();
      return this.f64.byteLength;
    }
    return undefined;
  }

  #tryGrow(pages: number): boolean {
    try {
      this.memory.grow(pages);
      return true;
    } catch (error) {
      // A RangeError says that the maximum is passed; anything else is a bug.
      if (error instanceof RangeError) return false;
      throw error;
    }
  }

  #rebuildViews(): void {
    this.f64 = new Float64Array(this.memory.buffer);
    this.i32 = new Int32Array(this.memory.buffer);
  }
}

function reserve(maxBytes: number): WebAssembly.Memory {
  try {
    return new WebAssembly.Memory({
      shared: true,
      initial: Math.ceil(HEAP_AT / PAGE_SIZE),
      maximum: Math.ceil(maxBytes / PAGE_SIZE),
    });
  } catch (cause) {
    throw new WeirError(
      'WEIR_SHARED_MEMORY_FULL',
      `cannot reserve ${maxBytes} bytes of address space for the shared memory: ${errorMessage(cause)}`,
      { cause },
    );
  }
}

function checkRange(name: string, value: number, least: number, most: number): void {
  if (Number.isInteger(value) && value >= least && value <= most) return;
  throw new WeirError('WEIR_SHARED_MEMORY_OPTIONS', `${name}: ${value} is not a whole number from ${least} to ${most}`);
}
