// Which balancer of a cluster lies in shared memory. Main thread. Policies that look at the requests of all workers, or
// at unequal weights, are picked there in one call; hosts in turn and at random need nothing but a number of the worker.

import { WeirError } from '../../base/errors.ts';
import type { ClusterSnapshot, HostSnapshot, PickPlan } from '../../snapshot/index.ts';
import type { LbTables } from '../../wasm/lb.ts';

const DEFAULT_BIAS = 1;

/** @returns undefined when the policy needs none, or when there is no room: workers then pick by themselves. */
export function buildPickPlan(
  tables: LbTables,
  { lbPolicy, leastRequest }: Pick<ClusterSnapshot['settings'], 'lbPolicy' | 'leastRequest'>,
  hosts: readonly Pick<HostSnapshot, 'recordAddress' | 'weight'>[],
): PickPlan | undefined {
  if (hosts.length < 2) return undefined;
  const members = hosts.map(({ recordAddress, weight }) => ({ record: recordAddress, weight }));
  const { choiceCount, activeRequestBias: bias } = leastRequest;
  // A negative bias would prefer busy hosts; the reference falls back, too.
  const activeRequestBias = bias !== undefined && bias < 0 ? DEFAULT_BIAS : bias;
  try {
    if (lbPolicy === 'LEAST_REQUEST') {
      const options = { choiceCount, ...(activeRequestBias === undefined ? {} : { activeRequestBias }) };
      return inSharedMemory(tables.buildLeastRequest(members, options));
    }
    return lbPolicy === 'ROUND_ROBIN' ? inSharedMemory(tables.buildRoundRobin(members)) : undefined;
  } catch (error) {
    if (error instanceof WeirError && error.code === 'WEIR_SHARED_MEMORY_FULL') return undefined;
    throw error;
  }
}

function inSharedMemory(plan: ReturnType<LbTables['buildLeastRequest']>): PickPlan | undefined {
  return plan.kind === 'least-request' || plan.kind === 'schedule' ? { ...plan, kind: plan.kind } : undefined;
}
