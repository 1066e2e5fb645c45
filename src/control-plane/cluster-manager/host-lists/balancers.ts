// The balancing policies by name: which balancer a list of hosts gets. Main thread.

import { WeirError } from '../../../base/errors.ts';
import type { ClusterSettings } from '../../../snapshot/index.ts';
import type { LbTables, PickPlan } from '../../../wasm/lb.ts';
import type { ListedHost } from './priority-members.ts';

const DEFAULT_BIAS = 1;

/**
 * @param hosts one or more.
 * @throws WeirError WEIR_SHARED_MEMORY_FULL, or WEIR_LB_POLICY for a policy that the configuration should have refused.
 */
export function buildBalancer(
  tables: LbTables,
  { lbPolicy, leastRequest }: Pick<ClusterSettings, 'lbPolicy' | 'leastRequest'>,
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

function buildLeastRequest(
  tables: LbTables,
  { choiceCount, activeRequestBias: bias }: ClusterSettings['leastRequest'],
  hosts: readonly ListedHost[],
): PickPlan {
  const members = hosts.map(({ recordAddress, weight }) => ({ record: recordAddress, weight }));
  if (bias === undefined) return tables.buildLeastRequest(members, { choiceCount });
  // A negative bias would prefer busy hosts.
  return tables.buildLeastRequest(members, { choiceCount, activeRequestBias: bias < 0 ? DEFAULT_BIAS : bias });
}
