// Facade of the lb module: hash tables and balancers in shared memory. Main builds (LbTables) and publishes an
// address or a plan; each thread looks up and picks through its own LbKernel.
//
//   main    new LbTables(owner, kernel).buildMaglev(hosts) ── address ──┐
//   worker  new MaglevTable(kernel, address).hashAndLookup(key) <───────┘  index of a host in the list
//   main    tables.buildLeastRequest(hosts) ── plan ──┐
//   worker  openPicker(kernel, plan, seed).pick() <───┘

export type { WeightedHost } from './lb/arguments.ts';
export { HASH_FUNCTIONS, type HashFunction } from './lb/exports.ts';
export {
  type HashPlan,
  HashRing,
  type HashTable,
  isHashPlan,
  MaglevTable,
  openHashTable,
  type RingEntry,
} from './lb/hash-table.ts';
export { type HashedHost, orderByKey } from './lb/hashed-hosts.ts';
export { readHostLists } from './lb/host-lists.ts';
export { CyclePicker, type HostPicker, openPicker, type PickPlan, type SchedulePlan } from './lb/host-picker.ts';
export {
  type BoundedHosts,
  type HostList,
  type HostShare,
  type HostShares,
  type HostSource,
  type HostSubsets,
  type HostTurns,
  type HostZones,
  NO_HOSTS,
  type ZoneShare,
} from './lb/host-source.ts';
export { type HashKey, LbKernel, STD_HASH_SEED } from './lb/kernel.ts';
export type { MaglevOptions } from './lb/maglev-builder.ts';
export type { RingOptions } from './lb/ring-builder.ts';
export { LbTables, type LeastRequestHost, type LeastRequestOptions } from './lb/table-builder.ts';
