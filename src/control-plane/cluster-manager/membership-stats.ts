// What a cluster's stats say of its members and subsets. Main thread.

import type { CLUSTER_STATS, StatBlockOf } from '../../stats/index.ts';
import { HealthMask } from '../../wasm/shared-memory.ts';
import type { ListedHost } from './host-lists/priority-members.ts';
import type { Subsets } from './host-lists/subsets.ts';

type ClusterStats = StatBlockOf<typeof CLUSTER_STATS>;

const { unhealthy: UNHEALTHY, degraded: DEGRADED, excluded: EXCLUDED } = HealthMask;

export function countMembers(stats: ClusterStats, hosts: readonly Pick<ListedHost, 'healthFlags' | 'weight'>[]): void {
  let [healthy, degraded, excluded, highest] = [0, 0, 0, 0];
  // One walk, without closures: there may be ten thousand.
  for (const { healthFlags, weight } of hosts) {
    if ((healthFlags & (UNHEALTHY | DEGRADED)) === 0) healthy += 1;
    else if ((healthFlags & UNHEALTHY) === 0) degraded += 1;
    if ((healthFlags & EXCLUDED) !== 0) excluded += 1;
    highest = Math.max(highest, weight);
  }
  stats.set('membership_total', hosts.length);
  stats.set('membership_healthy', healthy);
  stats.set('membership_degraded', degraded);
  stats.set('membership_excluded', excluded);
  stats.set('max_host_weight', highest);
}

/** A member that joins as all of them begin: healthy, and with the same weight as the others. */
export function countJoined(stats: ClusterStats, weight: number): void {
  stats.add('membership_change');
  stats.add('membership_total');
  stats.add('membership_healthy');
  stats.set('max_host_weight', weight);
}

/** Both are null where there are none by the settings. */
export function countSubsets(stats: ClusterStats, former: Subsets | null, latest: Subsets | null): void {
  if (latest === null) return;
  const { members, duplicates } = latest;
  const missingIn = (others: Subsets['members'], names: Iterable<string>): number =>
    [...names].filter((name) => !others.has(name)).length;
  stats.add('lb_subsets_created', missingIn(former!.members, members.keys()));
  stats.add('lb_subsets_removed', missingIn(members, former!.members.keys()));
  stats.set('lb_subsets_active', members.size);
  stats.set('lb_subsets_single_host_per_subset_duplicate', duplicates);
}
