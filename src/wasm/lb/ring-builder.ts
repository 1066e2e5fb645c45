// Lays out a ring of hashes and what its building needs, and has the module fill it. Main only.
// Source: ketama as the specification's ring hash policy describes it. The ring is as large as lets the lightest host
// have a whole number of entries, within the limits; sums run in doubles and in the order of the hosts, so that each
// host gets exactly the entries that the reference gives it.

import {
  RING_BUCKET_SHIFT,
  RING_BUCKETS,
  RING_HOST_COUNT,
  RING_HOST_KEY,
  RING_HOST_KEY_LENGTH,
  RING_HOST_SIZE,
  RING_KEY_SUFFIX,
  RING_MAX_ENTRIES,
  RING_MAX_SIZE,
  RING_MIN_ENTRIES,
  RING_NOMINAL_SIZE,
  RING_OWNER_SHIFT,
  RING_OWNERS,
  RING_SIZE,
  TABLE_BODY,
  TABLE_HOSTS,
} from '../../../assembly/layout/lb.ts';
import type { SharedMemoryOwner } from '../shared-memory-owner.ts';
import { allocateFor, argumentError, checkWhole } from './arguments.ts';
import { HASH_FUNCTIONS, type HashFunction } from './exports.ts';
import { type HashedHost, KeyWriter, keyBytes, weightShares } from './hashed-hosts.ts';
import type { LbKernel } from './kernel.ts';

export interface RingOptions {
  /** Least entries, 1 to 8388608, default 1024. */
  readonly minimumRingSize?: number;
  /** Most entries, minimumRingSize to 8388608, default 8388608. */
  readonly maximumRingSize?: number;
  /** Places the hosts' entries; default XX_HASH. Requests are hashed by XX_HASH either way. */
  readonly hashFunction?: HashFunction;
  /** What each host has of 1, in the order of the hosts; default by their weights. */
  readonly shares?: Float64Array;
}

const DEFAULT_MINIMUM = 1024;

/** Entries of each host. */
interface RingShape {
  readonly counts: Uint32Array;
  /** Sum of the counts. */
  readonly size: number;
  readonly nominalSize: number;
}

/** Returns the address of the finished table. @throws WeirError WEIR_LB_ARGUMENT or WEIR_SHARED_MEMORY_FULL. */
export function buildRing(
  owner: SharedMemoryOwner,
  kernel: LbKernel,
  hosts: readonly HashedHost[],
  options: RingOptions,
): number {
  const { minimumRingSize = DEFAULT_MINIMUM, maximumRingSize = RING_MAX_SIZE, hashFunction = 'XX_HASH' } = options;
  checkLimits(minimumRingSize, maximumRingSize);
  const hash = HASH_FUNCTIONS[hashFunction];
  if (hash === undefined) throw argumentError('hashFunction', `${hashFunction} is none of XX_HASH, MURMUR_HASH_2`);
  const shape = shapeOf(options.shares ?? weightShares(hosts), minimumRingSize, maximumRingSize);
  const { heap } = owner;
  const what = `minimumRingSize: ${minimumRingSize}`;
  const table = allocateTable(owner, shape, what);
  const hashesAt = Math.ceil((hosts.length * RING_HOST_SIZE) / 8) * 8;
  const keysAt = hashesAt + shape.size * 8;
  let work = 0;
  try {
    work = allocateFor(heap, keysAt + keyBytes(hosts, RING_KEY_SUFFIX), what);
    writeHosts(owner, work, work + keysAt, hosts, shape.counts);
    kernel.exports.buildRing(table, work, work + hashesAt, hash);
  } catch (error) {
    heap.free(table);
    throw error;
  } finally {
    if (work !== 0) heap.free(work);
  }
  return table;
}

function checkLimits(minimum: number, maximum: number): void {
  checkWhole('minimumRingSize', minimum, 1, RING_MAX_SIZE);
  checkWhole('maximumRingSize', maximum, 1, RING_MAX_SIZE);
  if (minimum <= maximum) return;
  throw argumentError('minimumRingSize', `${minimum} exceeds the maximumRingSize ${maximum}`);
}

function shapeOf(shares: Float64Array, minimum: number, maximum: number): RingShape {
  const smallest = shares.reduce((least, share) => Math.min(least, share), 1);
  const scale = Math.min(Math.ceil(smallest * minimum) / smallest, maximum);
  const counts = new Uint32Array(shares.length);
  let size = 0;
  let target = 0;
  for (let at = 0; at < shares.length; at += 1) {
    target += scale * shares[at]!;
    const before = size;
    // As many as adding one at a time while the size is below the target.
    size = Math.max(size, Math.ceil(target));
    counts[at] = size - before;
  }
  return { counts, size, nominalSize: Math.ceil(scale) };
}

function allocateTable(
  { heap, shared }: SharedMemoryOwner,
  { counts, size, nominalSize }: RingShape,
  what: string,
): number {
  // At least one bit: a shift by all 64 would be one by none.
  const bucketBits = Math.max(1, Math.ceil(Math.log2(size)));
  const buckets = TABLE_BODY + size * 8;
  const owners = buckets + (2 ** bucketBits + 1) * 4;
  const ownerShift = counts.length <= 0x10000 ? 1 : 2;
  const table = allocateFor(heap, owners + (size << ownerShift), what);
  const { i32 } = shared;
  i32[(table + TABLE_HOSTS) >>> 2] = counts.length;
  i32[(table + RING_SIZE) >>> 2] = size;
  i32[(table + RING_NOMINAL_SIZE) >>> 2] = nominalSize;
  i32[(table + RING_BUCKET_SHIFT) >>> 2] = 64 - bucketBits;
  i32[(table + RING_BUCKETS) >>> 2] = buckets;
  i32[(table + RING_OWNERS) >>> 2] = owners;
  i32[(table + RING_OWNER_SHIFT) >>> 2] = ownerShift;
  i32[(table + RING_MIN_ENTRIES) >>> 2] = counts.reduce((least, count) => Math.min(least, count));
  i32[(table + RING_MAX_ENTRIES) >>> 2] = counts.reduce((most, count) => Math.max(most, count));
  return table;
}

function writeHosts(
  { shared, memory }: SharedMemoryOwner,
  at: number,
  keysAt: number,
  hosts: readonly HashedHost[],
  counts: Uint32Array,
): void {
  const { i32 } = shared;
  const keys = new KeyWriter(memory, keysAt, RING_KEY_SUFFIX);
  let host = at;
  for (let index = 0; index < hosts.length; index += 1) {
    i32[(host + RING_HOST_KEY) >>> 2] = keys.address;
    i32[(host + RING_HOST_KEY_LENGTH) >>> 2] = keys.write(hosts[index]!.key);
    i32[(host + RING_HOST_COUNT) >>> 2] = counts[index]!;
    host += RING_HOST_SIZE;
  }
}
