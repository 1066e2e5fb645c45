// Which lists of hosts the requests of a cluster go to, and in what shares. Worked out when members or their health
// change, never per request. Pure.

import { type PriorityLimits, priorityLoads } from './priority-load.ts';
import { type HostClasses, type ListedHost, priorityState } from './priority-members.ts';

export interface ShareLimits extends PriorityLimits {
  readonly weightedPriorityHealth: boolean;
}

/** One list's part of the requests. */
export interface ListShare {
  /** Percent of the requests, 1 or more; those of all shares make 100. */
  readonly load: number;
  readonly priority: number;
  /** `all` in panic. */
  readonly hosts: 'all' | 'healthy' | 'degraded';
}

/** @param priorities the hosts' indexes by priority. */
export function shareOut(
  hosts: readonly ListedHost[],
  priorities: readonly HostClasses[],
  limits: ShareLimits,
): ListShare[] {
  const states = priorities.map((classes) => priorityState(hosts, classes, limits.weightedPriorityHealth));
  const { healthy, degraded, isPanic } = priorityLoads(states, limits);
  const sharesOf = (loads: readonly number[], usable: 'healthy' | 'degraded'): ListShare[] =>
    loads.map((load, priority) => ({ load, priority, hosts: isPanic[priority]! ? 'all' : usable }));
  return [...sharesOf(healthy, 'healthy'), ...sharesOf(degraded, 'degraded')].filter(({ load }) => load > 0);
}
