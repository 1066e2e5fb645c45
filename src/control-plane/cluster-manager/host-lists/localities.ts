// The localities of one priority, and what each gets where localities are weighed: by its weight, less what its health
// lacks. Worked out when members or their health change. Pure.

import type { Locality } from '../../../snapshot/index.ts';
import { classify, type HostClasses, type ListedHost } from './priority-members.ts';

export interface LocalityMembers {
  readonly locality: Locality;
  /** 0 when it has none. */
  readonly weight: number;
  readonly hosts: HostClasses;
}

/** By region, zone and sub-zone, ascending. Of several weights that are given for a locality the last one counts. */
export function hostsByLocality(hosts: readonly ListedHost[], indexes: readonly number[]): LocalityMembers[] {
  const members = new Map<string, number[]>();
  for (const index of indexes) {
    const key = localityKey(hosts[index]!.locality);
    const known = members.get(key);
    if (known === undefined) members.set(key, [index]);
    else known.push(index);
  }
  return [...members.keys()].sort().map((key) => {
    const all = members.get(key)!;
    const { locality } = hosts[all[0]!]!;
    return { locality, weight: hosts[all.at(-1)!]!.localityWeight, hosts: classify(hosts, all) };
  });
}

/** Sorts as the parts do one after the other: what separates them sorts before all that they may hold. */
export function localityKey({ region, zone, subZone }: Locality): string {
  return `${region}\0${zone}\0${subZone}`;
}

/**
 * What each locality gets of a priority's requests; no matter in what unit.
 * @param overprovisioningFactor percent.
 */
export function effectiveWeights(
  localities: readonly LocalityMembers[],
  usable: 'healthy' | 'degraded',
  overprovisioningFactor: number,
): Float64Array {
  return Float64Array.from(localities, ({ weight, hosts }) => {
    const total = hosts.all.length - hosts.excluded.length;
    const availability = total > 0 ? hosts[usable].length / total : 0;
    return weight * Math.min(1, (overprovisioningFactor / 100) * availability);
  });
}
