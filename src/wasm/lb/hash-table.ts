// Maglev tables and rings as every thread reads them: from a hash or a key to a host, in one call at most. A table
// never changes once it is published; who frees it makes sure that nobody reads it any more (Reclaimer).

import {
  MAGLEV_MAX_ENTRIES,
  MAGLEV_MIN_ENTRIES,
  MAGLEV_SIZE,
  MAGLEV_SLOT_SHIFT,
  RING_MAX_ENTRIES,
  RING_MIN_ENTRIES,
  RING_NOMINAL_SIZE,
  RING_OWNER_SHIFT,
  RING_OWNERS,
  RING_SIZE,
  TABLE_BODY,
  TABLE_HOSTS,
} from '../../../assembly/layout/lb.ts';
import type { LbExports } from './exports.ts';
import type { HashKey, LbKernel } from './kernel.ts';

/** A table of hashes, ready to be published; plain data. */
export interface HashPlan {
  readonly kind: 'ring' | 'maglev';
  readonly hostCount: number;
  readonly address: number;
}

export function isHashPlan(plan: { readonly kind: string }): plan is HashPlan {
  return plan.kind === 'ring' || plan.kind === 'maglev';
}

/** Makes this thread's reader of a table. */
export function openHashTable(kernel: LbKernel, { kind, address }: HashPlan): HashTable {
  return kind === 'ring' ? new HashRing(kernel, address) : new MaglevTable(kernel, address);
}

/** Offsets of the header's fields that both kinds have. */
interface HeaderFields {
  readonly size: number;
  readonly minEntries: number;
  readonly maxEntries: number;
}

/** What both kinds answer: the index of a host in the list that the table was built from. */
export abstract class HashTable {
  /** Address of the block in shared memory, which is all that another thread needs. */
  readonly address: number;
  readonly hostCount: number;
  /** Entries: slots of a Maglev table, which is 1 when there is one host, or places on a ring. */
  readonly size: number;
  /** Entries of the host with the fewest and the most. */
  readonly minEntriesPerHost: number;
  readonly maxEntriesPerHost: number;
  protected readonly kernel: LbKernel;
  /** The kernel's: one step less on the way of every lookup. */
  protected readonly exports: LbExports;

  constructor(kernel: LbKernel, address: number, { size, minEntries, maxEntries }: HeaderFields) {
    this.kernel = kernel;
    this.exports = kernel.exports;
    this.address = address;
    kernel.shared.reach(address + TABLE_BODY);
    this.hostCount = this.field(TABLE_HOSTS);
    this.size = this.field(size);
    this.minEntriesPerHost = this.field(minEntries);
    this.maxEntriesPerHost = this.field(maxEntries);
  }

  /**
   * By the halves of a hash, 32 bits each.
   * @param attempt  0, or the number of a retry. Hot: one call at most.
   */
  abstract lookup(hashHi: number, hashLo: number, attempt: number): number;

  /** By the XXH64 of the key of so many bytes that the kernel has just placed. */
  protected abstract lookupPlacedKey(length: number, attempt: number): number;

  /** Hot: each kind has its own, since a choice between two kinds of lookup() would cost a sixth more. */
  abstract lookupHash(hash: bigint, attempt?: number): number;

  /** By the XXH64 of a key. Hot for keys of up to 960 bytes: one call. */
  hashAndLookup(key: HashKey, attempt = 0): number {
    const { kernel } = this;
    const length = kernel.placeKey(key);
    if (length >= 0) return this.lookupPlacedKey(length, attempt);
    kernel.hash(key);
    return this.lookup(kernel.hashHi, kernel.hashLo, attempt);
  }

  /** A u32 field of the header. */
  protected field(offset: number): number {
    return this.kernel.shared.i32[(this.address + offset) >>> 2]! >>> 0;
  }
}

export interface RingEntry {
  readonly hash: bigint;
  readonly host: number;
}

const TWO_TO_32 = 0x1_0000_0000;

export class MaglevTable extends HashTable {
  /** The hosts of the slots. The view stays valid when the memory grows: shared memory never moves. */
  readonly #slots: Uint8Array<ArrayBufferLike> | Uint16Array<ArrayBufferLike> | Uint32Array<ArrayBufferLike>;
  // Begun with values of their kinds: a field that was undefined once is looked at anew by every lookup.
  readonly #size: number = 0;
  readonly #slotsPerUnit: number = 0.5;

  constructor(kernel: LbKernel, address: number) {
    super(kernel, address, { size: MAGLEV_SIZE, minEntries: MAGLEV_MIN_ENTRIES, maxEntries: MAGLEV_MAX_ENTRIES });
    const { size } = this;
    const shift = this.field(MAGLEV_SLOT_SHIFT);
    const View = shift === 0 ? Uint8Array : shift === 1 ? Uint16Array : Uint32Array;
    kernel.shared.reach(address + TABLE_BODY + (size << shift));
    this.#slots = new View(kernel.shared.memory.buffer, address + TABLE_BODY, size);
    this.#size = size;
    this.#slotsPerUnit = 1 / size;
  }

  /**
   * Read from here, which is quicker than a call. The remainder of a hash comes without a division of 64 bits: a
   * quotient in doubles is off by 6144 / size + 1 at most, and the low 32 bits of what it leaves tell by how much.
   */
  lookup(hashHi: number, hashLo: number, attempt: number): number {
    const size = this.#size;
    let high = hashHi >>> 0;
    let low = hashLo >>> 0;
    if (attempt > 0) {
      // The hash XOR the negative attempt, in 64 bits.
      high = ~high >>> 0;
      low = (low ^ -attempt) >>> 0;
    }
    const quotient = (high * TWO_TO_32 + low) * this.#slotsPerUnit;
    let slot = (low - Math.imul(quotient | 0, size)) | 0;
    if (slot >>> 0 >= size) slot = remainder(slot, size);
    return this.#slots[slot]!;
  }

  lookupHash(hash: bigint, attempt = 0): number {
    const { kernel } = this;
    kernel.split(hash);
    return this.lookup(kernel.hashHi, kernel.hashLo, attempt);
  }

  protected lookupPlacedKey(length: number, attempt: number): number {
    return this.exports.maglevLookupKey(this.address, this.kernel.keyAddress, length, attempt);
  }
}

export class HashRing extends HashTable {
  /** The size that follows from the weights, which gauges show; rounding may have made one entry more or less. */
  readonly nominalSize: number;

  constructor(kernel: LbKernel, address: number) {
    super(kernel, address, { size: RING_SIZE, minEntries: RING_MIN_ENTRIES, maxEntries: RING_MAX_ENTRIES });
    this.nominalSize = this.field(RING_NOMINAL_SIZE);
  }

  lookup(hashHi: number, hashLo: number, attempt: number): number {
    return this.exports.ringLookup(this.address, hashHi, hashLo, attempt);
  }

  lookupHash(hash: bigint, attempt = 0): number {
    const { kernel } = this;
    kernel.split(hash);
    return this.lookup(kernel.hashHi, kernel.hashLo, attempt);
  }

  protected lookupPlacedKey(length: number, attempt: number): number {
    return this.exports.ringLookupKey(this.address, this.kernel.keyAddress, length, attempt);
  }

  /** All entries, ascending by hash; a copy. */
  entries(): RingEntry[] {
    const { shared } = this.kernel;
    const owners = this.address + this.field(RING_OWNERS);
    const isWide = this.field(RING_OWNER_SHIFT) === 2;
    shared.reach(owners + this.size * (isWide ? 4 : 2));
    const { buffer } = shared.memory;
    const hashes = new BigUint64Array(buffer, this.address + TABLE_BODY, this.size);
    const hosts = isWide ? new Uint32Array(buffer, owners, this.size) : new Uint16Array(buffer, owners, this.size);
    return Array.from(hashes, (hash, at) => ({ hash, host: hosts[at]! }));
  }
}

/** Of a number that may be negative, 0 to divisor - 1. */
function remainder(value: number, divisor: number): number {
  const rest = value % divisor;
  return rest < 0 ? rest + divisor : rest;
}
