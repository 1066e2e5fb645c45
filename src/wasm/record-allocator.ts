// Main's allocator of host, cluster and count records. Records are carved from spans of the heap, so that ten
// thousand hosts are a few dozen blocks there; each has a ledger of cells (see shared-records.ts).

import {
  CELLS_PER_SLAB,
  CLUSTER_COUNTS,
  CLUSTER_DEFAULT_PRIORITY,
  CLUSTER_HIGH_PRIORITY,
  CLUSTER_LEDGER,
  CLUSTER_RECORD_SIZE,
  COUNT_LEDGER,
  COUNT_RECORD_SIZE,
  COUNT_VALUE,
  HOST_COUNTS,
  HOST_COUNTS_AT,
  HOST_LEDGER,
  HOST_RECORD_SIZE,
  HOST_WEIGHT,
} from '../../assembly/layout/shared-memory.ts';
import type { CellAllocator } from './cells.ts';
import type { SharedHeap } from './heap.ts';
import type { SharedMemory } from './shared-memory.ts';

const RECORDS_PER_SPAN = 64;

/** Counts with their ledger: what has to be set right when a worker is lost. Offsets within the record. */
interface CountLine {
  readonly countsAt: number;
  readonly counts: number;
  /** Where the id of the ledger stands. */
  readonly ledgerAt: number;
}

interface RecordKind {
  readonly size: number;
  readonly lines: readonly CountLine[];
  readonly unused: number[];
}

export class RecordAllocator {
  readonly #memory: SharedMemory;
  readonly #heap: SharedHeap;
  readonly #cells: CellAllocator;
  readonly #inUse = new Map<number, RecordKind>();
  readonly #hosts: RecordKind = {
    size: HOST_RECORD_SIZE,
    lines: [{ countsAt: HOST_COUNTS_AT, ledgerAt: HOST_LEDGER, counts: HOST_COUNTS }],
    unused: [],
  };
  readonly #clusters: RecordKind = {
    size: CLUSTER_RECORD_SIZE,
    lines: [CLUSTER_DEFAULT_PRIORITY, CLUSTER_HIGH_PRIORITY].map((line) => ({
      countsAt: line,
      ledgerAt: line + CLUSTER_LEDGER,
      counts: CLUSTER_COUNTS,
    })),
    unused: [],
  };
  readonly #counts: RecordKind = {
    size: COUNT_RECORD_SIZE,
    lines: [{ countsAt: COUNT_VALUE, ledgerAt: COUNT_LEDGER, counts: 1 }],
    unused: [],
  };

  constructor(memory: SharedMemory, heap: SharedHeap, cells: CellAllocator) {
    this.#memory = memory;
    this.#heap = heap;
    this.#cells = cells;
  }

  /** A record with no health flags, no load and the given weight; its address goes into HostSnapshot.recordAddress. */
  allocateHost(weight: number): number {
    const address = this.#allocate(this.#hosts);
    this.#memory.i32[(address + HOST_WEIGHT) >>> 2] = weight;
    return address;
  }

  /** A record with no load; its address goes into ClusterSnapshot.recordAddress. */
  allocateCluster(): number {
    return this.#allocate(this.#clusters);
  }

  /** A count of its own, at 0; what a limit over all workers needs. */
  allocateCount(): number {
    return this.#allocate(this.#counts);
  }

  /** Gives a record back. No thread may use it any more. */
  free(address: number): void {
    const kind = this.#inUse.get(address);
    if (!kind) return;
    this.#inUse.delete(address);
    for (const line of kind.lines) this.#cells.free(this.#ledger(address, line), line.counts);
    kind.unused.push(address);
  }

  /** Records in use, of all kinds. */
  get usedRecords(): number {
    return this.#inUse.size;
  }

  /** Takes what a lost worker had added out of all totals. The worker must have ended. */
  clearSlab(slab: number): void {
    for (const [address, { lines }] of this.#inUse) {
      for (const line of lines) this.#settle(address, line, slab);
    }
  }

  #ledger(address: number, { ledgerAt }: CountLine): number {
    return this.#memory.i32[(address + ledgerAt) >>> 2]!;
  }

  #settle(address: number, line: CountLine, slab: number): void {
    const { f64, i32 } = this.#memory;
    const ledger = this.#ledger(address, line) + slab * CELLS_PER_SLAB;
    for (let index = 0; index < line.counts; index++) {
      Atomics.sub(i32, ((address + line.countsAt) >>> 2) + index, f64[ledger + index]!);
      f64[ledger + index] = 0;
    }
  }

  #allocate(kind: RecordKind): number {
    const ledgers = this.#allocateLedgers(kind);
    const address = kind.unused.pop() ?? this.#carve(kind, ledgers);
    this.#memory.i32.fill(0, address >>> 2, (address + kind.size) >>> 2);
    for (const [at, { ledgerAt }] of kind.lines.entries()) {
      this.#memory.i32[(address + ledgerAt) >>> 2] = ledgers[at]!;
    }
    this.#inUse.set(address, kind);
    return address;
  }

  #allocateLedgers(kind: RecordKind): number[] {
    const ledgers: number[] = [];
    try {
      for (const line of kind.lines) ledgers.push(this.#cells.allocate(line.counts));
    } catch (error) {
      this.#freeLedgers(kind, ledgers);
      throw error;
    }
    return ledgers;
  }

  #freeLedgers(kind: RecordKind, ledgers: readonly number[]): void {
    for (const [at, ledger] of ledgers.entries()) this.#cells.free(ledger, kind.lines[at]!.counts);
  }

  #carve(kind: RecordKind, ledgers: readonly number[]): number {
    try {
      const span = this.#heap.allocate(kind.size * RECORDS_PER_SPAN);
      for (let record = RECORDS_PER_SPAN - 1; record > 0; record--) kind.unused.push(span + record * kind.size);
      return span;
    } catch (error) {
      this.#freeLedgers(kind, ledgers);
      throw error;
    }
  }
}
