// How requests of an aggregate cluster are shared out: the priorities of its clusters stand one behind the other, as if they
// were those of one cluster. Each counts by its own cluster's rules of health; the aggregate's threshold says when
// all are in panic. Worked out when members or their health change. Pure.

import type { AggregateShare, AggregateShares, ClusterSettings } from '../../../snapshot/index.ts';
import { type PriorityState, priorityLoads } from './priority-load.ts';
import { hostsByPriority, type ListedHost, priorityState } from './priority-members.ts';

/** A cluster whose hosts take requests of the aggregate. */
export interface AggregateMember {
  readonly name: string;
  readonly settings: Pick<ClusterSettings, 'overprovisioningFactor' | 'weightedPriorityHealth'>;
  readonly hosts: readonly ListedHost[];
}

interface Place {
  readonly cluster: string;
  readonly ownPriority: number;
  readonly state: PriorityState;
}

/** Priorities without hosts count for nothing. @param members the most preferred first. @param healthyPanicThreshold in percent. */
export function aggregateShares(members: readonly AggregateMember[], healthyPanicThreshold: number): AggregateShares {
  const places = members.flatMap(placesOf);
  const priorities = places.map(({ cluster, ownPriority }) => ({ cluster, ownPriority }));
  if (places.length === 0) return { shares: [], priorities };
  const states = places.map(({ state }) => state);
  // Each has a factor of its own.
  const loads = priorityLoads(states, { overprovisioningFactor: 0, healthyPanicThreshold });
  let upTo = 0;
  const sharesOf = (usable: 'healthy' | 'degraded'): AggregateShare[] =>
    priorities.map((place, priority) => {
      upTo += loads[usable][priority]!;
      const availability = loads.availability[usable][priority]!;
      return { upTo, priority, ...place, isDegraded: usable === 'degraded', availability };
    });
  const all = [...sharesOf('healthy'), ...sharesOf('degraded')];
  const isNeeded = ({ upTo: end, availability }: AggregateShare, at: number): boolean =>
    availability > 0 || end > (all[at - 1]?.upTo ?? 0);
  return { shares: all.filter(isNeeded), priorities };
}

function placesOf({ name, settings, hosts }: AggregateMember): Place[] {
  const { overprovisioningFactor, weightedPriorityHealth } = settings;
  return hostsByPriority(hosts, hosts.keys()).flatMap((classes, ownPriority) => {
    if (classes.all.length === 0) return [];
    const state = { ...priorityState(hosts, classes, weightedPriorityHealth), overprovisioningFactor };
    return [{ cluster: name, ownPriority, state }];
  });
}
