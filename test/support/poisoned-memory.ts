// Shared memory that shows who writes where he should not: what is given back is filled with a pattern and hardly ever given
// to anybody else, so that a former user who still writes to it leaves a trace.

import assert from 'node:assert/strict';
import { CELLS_PER_SLAB, CLUSTER_RECORD_SIZE, HOST_RECORD_SIZE } from '../../assembly/layout/shared-memory.ts';
import type { SharedHeap } from '../../src/wasm/heap.ts';
import type { SharedMemoryOwner } from '../../src/wasm/shared-memory-owner.ts';

const CELL = 12_345.5;
const WORD = 0x5eed;

export class PoisonedMemory {
  readonly #owner: SharedMemoryOwner;
  /** For those who build tables. */
  readonly forTables: SharedMemoryOwner;
  readonly #cells: (readonly [first: number, count: number])[] = [];
  /** Bytes by address. */
  readonly #blocks = new Map<number, number>();
  /** By what is in use: cells, records, bytes of tables. */
  readonly used = { cells: 0, records: 0, bytes: 0 };

  /** Takes over what is given back from now on. */
  constructor(owner: SharedMemoryOwner) {
    this.#owner = owner;
    const { used } = this;
    const { cells, recordAllocator } = owner;
    const allocateCells = cells.allocate.bind(cells);
    cells.allocate = (count) => {
      used.cells += count;
      return allocateCells(count);
    };
    cells.free = (cell, count) => {
      used.cells -= count;
      this.#cells.push([cell, count]);
      for (let slab = 0; slab < owner.shared.slabCount; slab++) {
        const at = cell + slab * CELLS_PER_SLAB;
        owner.shared.f64.fill(CELL, at, at + count);
      }
    };
    const sizes = new Map<number, number>();
    const allocateHost = recordAllocator.allocateHost.bind(recordAllocator);
    recordAllocator.allocateHost = (weight) => this.#keep(sizes, () => allocateHost(weight), HOST_RECORD_SIZE);
    const allocateCluster = recordAllocator.allocateCluster.bind(recordAllocator);
    recordAllocator.allocateCluster = () => this.#keep(sizes, allocateCluster, CLUSTER_RECORD_SIZE);
    const freeRecord = recordAllocator.free.bind(recordAllocator);
    recordAllocator.free = (address) => {
      used.records -= 1;
      freeRecord(address);
      this.#poison(address, sizes.get(address)!);
    };
    this.forTables = Object.create(owner, { heap: { value: this.#tableHeap() } });
  }

  /** Nobody has written to what was given back. */
  check(): void {
    const { f64, slabCount } = this.#owner.shared;
    for (const [cell, count] of this.#cells) {
      for (let slab = 0; slab < slabCount; slab++) {
        const at = cell + slab * CELLS_PER_SLAB;
        for (let index = at; index < at + count; index++) assert.equal(f64[index], CELL, `cell ${cell} of ${count}`);
      }
    }
    this.#checkBlocks();
  }

  #checkBlocks(): void {
    const { i32 } = this.#owner.shared;
    for (const [address, bytes] of this.#blocks) {
      for (let at = address >>> 2; at < (address + bytes) >>> 2; at++) assert.equal(i32[at], WORD, `${bytes} bytes`);
    }
  }

  #tableHeap(): Pick<SharedHeap, 'allocate' | 'free' | 'sizeOf'> {
    const { heap } = this.#owner;
    const { used } = this;
    return {
      sizeOf: (address) => heap.sizeOf(address),
      allocate: (bytes) => {
        const address = heap.allocate(bytes);
        used.bytes += heap.sizeOf(address);
        return address;
      },
      free: (address) => {
        const bytes = heap.sizeOf(address);
        used.bytes -= bytes;
        this.#poison(address, bytes);
      },
    };
  }

  /** Records are given to others: what was written to them until now counts. */
  #keep(sizes: Map<number, number>, allocate: () => number, size: number): number {
    this.#checkBlocks();
    const address = allocate();
    this.#blocks.delete(address);
    this.used.records += 1;
    sizes.set(address, size);
    return address;
  }

  #poison(address: number, bytes: number): void {
    this.#blocks.set(address, bytes);
    this.#owner.shared.i32.fill(WORD, address >>> 2, (address + bytes) >>> 2);
  }
}
