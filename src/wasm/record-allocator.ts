// Main's allocator of host and cluster records. Records are carved from spans of the heap, so that ten
// thousand hosts are a few dozen blocks there; each has a ledger of cells (see shared-records.ts).

import {
  CELLS_PER_SLAB,
  CLUSTER_COUNTS,
  CLUSTER_DEFAULT_PRIORITY,
  CLUSTER_HIGH_PRIORITY,
  CLUSTER_LEDGER,
  CLUSTER_RECORD_SIZE,
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

/** One line of counts with its ledger: what has to be set right when a worker is lost. */
interface CountLine {
  readonly countsAt: number;
  readonly counts: number;
  readonly ledger: number;
}

interface RecordInUse {
  readonly lines: readonly CountLine[];
  readonly kind: RecordKind;
}

interface RecordKind {
  readonly size: number;
  /** Where each line's counts and the id of its ledger stand in the record. */
  readonly lines: readonly { readonly countsAt: number; readonly ledgerAt: number; readonly counts: number }[];
  readonly unused: number[];
}

export class RecordAllocator {
  readonly #memory: SharedMemory;
  readonly #heap: SharedHeap;
  readonly #cells: CellAllocator;
  readonly #inUse = new Map<number, RecordInUse>();
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

  /** Gives a host's or cluster's record back. No thread may use it any more: see Reclaimer. */
  free(address: number): void {
    const record = this.#inUse.get(address);
    if (!record) return;
    this.#inUse.delete(address);
    for (const line of record.lines) this.#cells.free(line.ledger, line.counts);
    record.kind.unused.push(address);
  }

  /** Takes what a lost worker had added out of all totals. The worker must have ended. */
  clearSlab(slab: number): void {
    for (const { lines } of this.#inUse.values()) {
      for (const line of lines) this.#settle(line, slab);
    }
  }

  #settle(line: CountLine, slab: number): void {
    const { f64, i32 } = this.#memory;
    for (let index = 0; index < line.counts; index++) {
      const cell = line.ledger + slab * CELLS_PER_SLAB + index;
      Atomics.sub(i32, (line.countsAt >>> 2) + index, f64[cell]!);
      f64[cell] = 0;
    }
  }

  #allocate(kind: RecordKind): number {
    const ledgers = this.#allocateLedgers(kind);
    const address = kind.unused.pop() ?? this.#carve(kind, ledgers);
    this.#memory.i32.fill(0, address >>> 2, (address + kind.size) >>> 2);
    const lines = kind.lines.map((line, at) => {
      this.#memory.i32[(address + line.ledgerAt) >>> 2] = ledgers[at]!;
      return { countsAt: address + line.countsAt, counts: line.counts, ledger: ledgers[at]! };
    });
    this.#inUse.set(address, { kind, lines });
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
