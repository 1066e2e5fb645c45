// Which lists of hosts the requests of a cluster go to, and in what shares. Worked out when members or their health
// change, never per request. Pure.

import { type PriorityLimits, priorityLoads } from './priority-load.ts';
import { type HostClasses, type ListedHost, priorityState } from './priority-members.ts';

export interface ShareLimits extends PriorityLimits {
  readonly weightedPriorityHealth: boolean;
}

/** One list's part of the requests. */
export interface ListShare {
  /** Percent of the requests; those of all shares make 100. */
  readonly load: number;
  readonly priority: number;
  /** `all` in panic. */
  readonly hosts: 'all' | 'healthy' | 'degraded';
  /** Percent of all requests that these hosts could take, were others not there. */
  readonly availability: number;
}

/**
 * Healthy hosts first, each by priority. Where there are several priorities, one that could take requests has a share
 * even if it gets none: requests may have used up the others.
 * @param priorities the hosts' indexes by priority.
 */
export function shareOut(
  hosts: readonly ListedHost[],
  priorities: readonly HostClasses[],
  limits: ShareLimits,
): ListShare[] {
  const states = priorities.map((classes) => priorityState(hosts, classes, limits.weightedPriorityHealth));
  const loads = priorityLoads(states, limits);
  const sharesOf = (usable: 'healthy' | 'degraded'): ListShare[] =>
    loads[usable].map((load, priority) => ({
      load,
      priority,
      hosts: loads.isPanic[priority]! ? 'all' : usable,
      availability: loads.availability[usable][priority]!,
    }));
  const isNeeded = ({ load, availability }: ListShare): boolean =>
    load > 0 || (priorities.length > 1 && availability > 0);
  return [...sharesOf('healthy'), ...sharesOf('degraded')].filter(isNeeded);
}
