// The balancing policies by name: which balancer a list of hosts gets. Main thread.

import { WeirError } from '../../../base/errors.ts';
import type { ClusterSettings } from '../../../snapshot/index.ts';
import type { HashPlan, HashTable, LbTables, PickPlan, SchedulePlan } from '../../../wasm/lb.ts';
import type { HashKeys } from './hash-keys.ts';
import type { ListedHost } from './priority-members.ts';

const DEFAULT_BIAS = 1;

export type BalancerSettings = Pick<ClusterSettings, 'lbPolicy' | 'leastRequest' | 'hashing'>;

/** Requests of equal hashes go to the same host. */
export function isHashed({ lbPolicy }: Pick<ClusterSettings, 'lbPolicy'>): boolean {
  return lbPolicy === 'RING_HASH' || lbPolicy === 'MAGLEV';
}

/**
 * The table of a policy that goes by hashes.
 * @param indexes of the hosts, one or more.
 * @param shares what each of them has of 1.
 * @throws WeirError WEIR_SHARED_MEMORY_FULL.
 */
export function buildHashTable(
  tables: LbTables,
  { lbPolicy, hashing }: BalancerSettings,
  keys: HashKeys,
  indexes: readonly number[],
  shares: Float64Array,
): { readonly table: HashTable; readonly plan: HashPlan } {
  const keyed = keys.keyed(indexes);
  const hostCount = indexes.length;
  if (lbPolicy === 'RING_HASH') {
    const table = tables.buildRing(keyed, { ...hashing, shares });
    return { table, plan: { kind: 'ring', hostCount, address: table.address } };
  }
  const table = tables.buildMaglev(keyed, { tableSize: hashing.maglevTableSize, shares, order: keys.order(indexes) });
  return { table, plan: { kind: 'maglev', hostCount, address: table.address } };
}

/**
 * The balancer of a policy that does not go by hashes.
 * @param hosts one or more.
 * @throws WeirError WEIR_SHARED_MEMORY_FULL, or WEIR_LB_POLICY for a policy that the configuration should have refused.
 */
export function buildBalancer(
  tables: LbTables,
  { lbPolicy, leastRequest }: BalancerSettings,
  hosts: readonly ListedHost[],
): PickPlan {
  // There is nothing to choose.
  if (hosts.length === 1) return tables.buildRoundRobin(hosts);
  switch (lbPolicy) {
    case 'ROUND_ROBIN':
      return tables.buildRoundRobin(hosts);
    case 'RANDOM':
      return tables.buildRandom(hosts);
    case 'LEAST_REQUEST':
      return buildLeastRequest(tables, leastRequest, hosts);
    default:
      throw new WeirError('WEIR_LB_POLICY', `no balancer for ${lbPolicy}`);
  }
}

/**
 * The same for hosts of which some have only a part of their weights.
 * @param shares that each host has of its weight, above 0.
 */
export function buildStarting(
  tables: LbTables,
  { lbPolicy, leastRequest: { activeRequestBias = DEFAULT_BIAS } }: BalancerSettings,
  hosts: readonly ListedHost[],
  shares: readonly number[],
): SchedulePlan {
  const weights = Float64Array.from(hosts, ({ weight }, at) => weight * shares[at]!);
  if (lbPolicy !== 'LEAST_REQUEST') return tables.buildTurns(weights);
  const records = hosts.map(({ recordAddress }) => recordAddress);
  return tables.buildTurns(weights, { records, bias: usableBias(activeRequestBias) });
}

function buildLeastRequest(
  tables: LbTables,
  { choiceCount, activeRequestBias: bias, comparesAll }: ClusterSettings['leastRequest'],
  hosts: readonly ListedHost[],
): PickPlan {
  const members = hosts.map(({ recordAddress, weight }) => ({ record: recordAddress, weight }));
  if (bias !== undefined) return tables.buildLeastRequest(members, { activeRequestBias: usableBias(bias) });
  return tables.buildLeastRequest(members, comparesAll ? { selection: 'FULL_SCAN' } : { choiceCount });
}

/** A negative one would prefer busy hosts. */
function usableBias(bias: number): number {
  return bias < 0 ? DEFAULT_BIAS : bias;
}
