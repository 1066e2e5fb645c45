// Maglev tables and rings as every thread reads them: from a hash or a key to a host, in one call. A table never
// changes once it is published; who frees it makes sure that nobody reads it any more (Reclaimer).

import {
  MAGLEV_MAX_ENTRIES,
  MAGLEV_MIN_ENTRIES,
  MAGLEV_SIZE,
  RING_MAX_ENTRIES,
  RING_MIN_ENTRIES,
  RING_NOMINAL_SIZE,
  RING_OWNER_SHIFT,
  RING_OWNERS,
  RING_SIZE,
  TABLE_BODY,
  TABLE_HOSTS,
} from '../../../assembly/layout/lb.ts';
import type { SharedMemory } from '../shared-memory.ts';
import type { LbExports } from './exports.ts';
import type { HashKey, LbKernel } from './kernel.ts';

/** What both kinds answer: the index of a host in the list that the table was built from. */
export interface HashTable {
  /** Address of the block in shared memory, which is all that another thread needs. */
  readonly address: number;
  readonly hostCount: number;
  /** Entries of the host with the fewest and the most. */
  readonly minEntriesPerHost: number;
  readonly maxEntriesPerHost: number;
  /** @param attempt  0, or the number of a retry. Hot: one call. */
  lookup(hashHi: number, hashLo: number, attempt: number): number;
  lookupHash(hash: bigint, attempt?: number): number;
  /** By the XXH64 of a key. Hot for keys of up to 960 bytes: one call. */
  hashAndLookup(key: HashKey, attempt?: number): number;
}

export interface RingEntry {
  readonly hash: bigint;
  readonly host: number;
}

export class MaglevTable implements HashTable {
  readonly address: number;
  readonly hostCount: number;
  /** Slots; 1 when there is one host, which needs no table. */
  readonly size: number;
  readonly minEntriesPerHost: number;
  readonly maxEntriesPerHost: number;
  readonly #kernel: LbKernel;
  /** The kernel's: one step less on the way of every lookup. */
  readonly #exports: LbExports;

  constructor(kernel: LbKernel, address: number) {
    this.#kernel = kernel;
    this.#exports = kernel.exports;
    this.address = address;
    const field = headerOf(kernel.shared, address);
    this.hostCount = field(TABLE_HOSTS);
    this.size = field(MAGLEV_SIZE);
    this.minEntriesPerHost = field(MAGLEV_MIN_ENTRIES);
    this.maxEntriesPerHost = field(MAGLEV_MAX_ENTRIES);
  }

  lookup(hashHi: number, hashLo: number, attempt: number): number {
    return this.#exports.maglevLookup(this.address, hashHi, hashLo, attempt);
  }

  lookupHash(hash: bigint, attempt = 0): number {
    const kernel = this.#kernel;
    kernel.split(hash);
    return this.#exports.maglevLookup(this.address, kernel.hashHi, kernel.hashLo, attempt);
  }

  hashAndLookup(key: HashKey, attempt = 0): number {
    const kernel = this.#kernel;
    const length = kernel.placeKey(key);
    if (length >= 0) return this.#exports.maglevLookupKey(this.address, kernel.keyAddress, length, attempt);
    kernel.hash(key);
    return this.#exports.maglevLookup(this.address, kernel.hashHi, kernel.hashLo, attempt);
  }
}

export class HashRing implements HashTable {
  readonly address: number;
  readonly hostCount: number;
  /** Entries on the ring. */
  readonly size: number;
  /** The size that follows from the weights, which gauges show; rounding may have made one entry more or less. */
  readonly nominalSize: number;
  readonly minEntriesPerHost: number;
  readonly maxEntriesPerHost: number;
  readonly #kernel: LbKernel;
  /** The kernel's: one step less on the way of every lookup. */
  readonly #exports: LbExports;

  constructor(kernel: LbKernel, address: number) {
    this.#kernel = kernel;
    this.#exports = kernel.exports;
    this.address = address;
    const field = headerOf(kernel.shared, address);
    this.hostCount = field(TABLE_HOSTS);
    this.size = field(RING_SIZE);
    this.nominalSize = field(RING_NOMINAL_SIZE);
    this.minEntriesPerHost = field(RING_MIN_ENTRIES);
    this.maxEntriesPerHost = field(RING_MAX_ENTRIES);
  }

  lookup(hashHi: number, hashLo: number, attempt: number): number {
    return this.#exports.ringLookup(this.address, hashHi, hashLo, attempt);
  }

  lookupHash(hash: bigint, attempt = 0): number {
    const kernel = this.#kernel;
    kernel.split(hash);
    return this.#exports.ringLookup(this.address, kernel.hashHi, kernel.hashLo, attempt);
  }

  hashAndLookup(key: HashKey, attempt = 0): number {
    const kernel = this.#kernel;
    const length = kernel.placeKey(key);
    if (length >= 0) return this.#exports.ringLookupKey(this.address, kernel.keyAddress, length, attempt);
    kernel.hash(key);
    return this.#exports.ringLookup(this.address, kernel.hashHi, kernel.hashLo, attempt);
  }

  /** All entries, ascending by hash; a copy. */
  entries(): RingEntry[] {
    const { shared } = this.#kernel;
    const field = headerOf(shared, this.address);
    const owners = this.address + field(RING_OWNERS);
    const isWide = field(RING_OWNER_SHIFT) === 2;
    shared.reach(owners + this.size * (isWide ? 4 : 2));
    const { buffer } = shared.memory;
    const hashes = new BigUint64Array(buffer, this.address + TABLE_BODY, this.size);
    const hosts = isWide ? new Uint32Array(buffer, owners, this.size) : new Uint16Array(buffer, owners, this.size);
    return Array.from(hashes, (hash, at) => ({ hash, host: hosts[at]! }));
  }
}

/** Reads the u32 fields of a table's header. */
function headerOf(shared: SharedMemory, address: number): (offset: number) => number {
  shared.reach(address + TABLE_BODY);
  return (offset) => shared.i32[(address + offset) >>> 2]! >>> 0;
}
