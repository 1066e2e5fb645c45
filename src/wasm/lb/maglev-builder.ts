// Lays out a Maglev table and what its building needs, and has the module fill it. Main only.
// Source: Maglev, NSDI 2016, section 3.4, with weights: a host takes its turn in round r unless r times its weight is
// below a target that grows by the largest weight with each turn it has taken.

import {
  MAGLEV_HOST_INDEX,
  MAGLEV_HOST_KEY,
  MAGLEV_HOST_KEY_LENGTH,
  MAGLEV_HOST_SIZE,
  MAGLEV_HOST_WEIGHT,
  MAGLEV_MAX_SIZE,
  MAGLEV_SIZE,
  MAGLEV_SLOT_SHIFT,
  TABLE_BODY,
  TABLE_HOSTS,
} from '../../../assembly/layout/lb.ts';
import { isPrime } from '../../base/prime.ts';
import type { SharedMemoryOwner } from '../shared-memory-owner.ts';
import { allocateFor, argumentError, checkWhole } from './arguments.ts';
import { type HashedHost, KeyWriter, keyBytes, orderByKey, weightShares } from './hashed-hosts.ts';
import type { LbKernel } from './kernel.ts';

export interface MaglevOptions {
  /** Slots: a prime of 2 to 5000011, default 65537. */
  readonly tableSize?: number;
  /** What each host has of 1, in the order of the hosts; default by their weights. */
  readonly shares?: Float64Array;
  /** Positions of the hosts by their keys, where they are known. */
  readonly order?: Uint32Array;
}

const DEFAULT_SIZE = 65537;

/** Returns the address of the finished table. @throws WeirError WEIR_LB_ARGUMENT or WEIR_SHARED_MEMORY_FULL. */
export function buildMaglev(
  owner: SharedMemoryOwner,
  kernel: LbKernel,
  hosts: readonly HashedHost[],
  { tableSize = DEFAULT_SIZE, shares = weightShares(hosts), order = orderByKey(hosts) }: MaglevOptions,
): number {
  checkWhole('tableSize', tableSize, 2, MAGLEV_MAX_SIZE);
  if (!isPrime(tableSize)) throw argumentError('tableSize', `${tableSize} is not a prime number`);
  const { heap, shared } = owner;
  // One host needs no table: a single slot answers alike.
  const size = hosts.length === 1 ? 1 : tableSize;
  const slotShift = hosts.length <= 0x100 ? 0 : hosts.length <= 0x10000 ? 1 : 2;
  const what = `tableSize: ${tableSize}`;
  const table = allocateFor(heap, TABLE_BODY + (size << slotShift), what);
  const takenAt = hosts.length * MAGLEV_HOST_SIZE;
  const keysAt = takenAt + size;
  let work = 0;
  try {
    work = allocateFor(heap, keysAt + keyBytes(hosts, 0), what);
    const { i32 } = shared;
    i32[(table + TABLE_HOSTS) >>> 2] = hosts.length;
    i32[(table + MAGLEV_SIZE) >>> 2] = size;
    i32[(table + MAGLEV_SLOT_SHIFT) >>> 2] = slotShift;
    writeHosts(owner, work, work + keysAt, hosts, shares, order);
    kernel.exports.buildMaglev(table, work, work + takenAt);
  } catch (error) {
    heap.free(table);
    throw error;
  } finally {
    if (work !== 0) heap.free(work);
  }
  return table;
}

function writeHosts(
  { shared, memory }: SharedMemoryOwner,
  at: number,
  keysAt: number,
  hosts: readonly HashedHost[],
  shares: Float64Array,
  order: Uint32Array,
): void {
  const { i32, f64 } = shared;
  const keys = new KeyWriter(memory, keysAt, 0);
  let host = at;
  for (const index of order) {
    i32[(host + MAGLEV_HOST_KEY) >>> 2] = keys.address;
    i32[(host + MAGLEV_HOST_KEY_LENGTH) >>> 2] = keys.write(hosts[index]!.key);
    f64[(host + MAGLEV_HOST_WEIGHT) / 8] = shares[index]!;
    i32[(host + MAGLEV_HOST_INDEX) >>> 2] = index;
    host += MAGLEV_HOST_SIZE;
  }
}
