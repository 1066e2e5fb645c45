// The hosts of a cluster by priority and by what they may be used for, as indexes in the cluster's order. Worked out when
// members or their health change. Pure.

import type { HostSnapshot } from '../../../snapshot/index.ts';
import { HealthMask } from '../../../wasm/shared-memory.ts';
import type { PriorityMembers, PriorityState } from './priority-load.ts';

const { unhealthy: UNHEALTHY, degraded: DEGRADED, excluded: EXCLUDED } = HealthMask;

/** A host as main sees it at the moment. */
export interface ListedHost
  extends Pick<
    HostSnapshot,
    | 'address'
    | 'hostname'
    | 'hashKey'
    | 'subsetValues'
    | 'weight'
    | 'locality'
    | 'localityWeight'
    | 'priority'
    | 'recordAddress'
  > {
  /** HealthFlag bits. */
  readonly healthFlags: number;
}

/** Indexes of hosts. A host can be excluded and unhealthy at once. */
export interface HostClasses {
  readonly all: readonly number[];
  readonly healthy: readonly number[];
  readonly degraded: readonly number[];
  readonly excluded: readonly number[];
}

/**
 * By priority, up to the highest that is used; at least one.
 * @param indexes of the hosts that count.
 */
export function hostsByPriority(hosts: readonly ListedHost[], indexes: Iterable<number>): HostClasses[] {
  const members: number[][] = [[]];
  for (const index of indexes) {
    const { priority } = hosts[index]!;
    while (members.length <= priority) members.push([]);
    members[priority]!.push(index);
  }
  return members.map((all) => classify(hosts, all));
}

/** Sorts some of the hosts by what they may be used for. */
export function classify(hosts: readonly ListedHost[], all: readonly number[]): HostClasses {
  const healthy: number[] = [];
  const degraded: number[] = [];
  const excluded: number[] = [];
  for (const index of all) {
    const { healthFlags } = hosts[index]!;
    if ((healthFlags & (UNHEALTHY | DEGRADED)) === 0) healthy.push(index);
    else if ((healthFlags & UNHEALTHY) === 0) degraded.push(index);
    if ((healthFlags & EXCLUDED) !== 0) excluded.push(index);
  }
  return { all, healthy, degraded, excluded };
}

/** @param isWeighted whether the health of a priority goes by the weights of its hosts instead of their number. */
export function priorityState(hosts: readonly ListedHost[], classes: HostClasses, isWeighted: boolean): PriorityState {
  const measure = (size: (list: readonly number[]) => number): PriorityMembers => ({
    hosts: size(classes.all),
    excluded: size(classes.excluded),
    healthy: size(classes.healthy),
    degraded: size(classes.degraded),
  });
  const counts = measure((list) => list.length);
  if (!isWeighted) return { counts, capacity: counts };
  return { counts, capacity: measure((list) => list.reduce((sum, index) => sum + hosts[index]!.weight, 0)) };
}
