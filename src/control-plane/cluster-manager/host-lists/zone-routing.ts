// Which locality the requests of the first priority go to, where this proxy's own locality goes first: as much as the
// hosts there can take of what the proxies there send, and the rest where others have room. Worked out when members or
// their health change. Pure. Source: upstream semantics of the reference.

import type { Locality, ZoneRoutingSettings } from '../../../snapshot/index.ts';
import type { ZoneShare } from '../../../wasm/lb.ts';
import { hostsByLocality, type LocalityMembers, localityKey } from './localities.ts';
import { hostsByPriority, type ListedHost } from './priority-members.ts';

/** The proxies that send requests, this one among them. */
export interface LocalZones {
  /** Of this proxy. */
  readonly locality: Locality;
  /** Members of the local cluster. */
  readonly hosts: readonly ListedHost[];
  /** Too few of them are available for their numbers to say anything. */
  readonly isPanic: boolean;
}

export interface ZoneRoutes {
  /** The proxy's own first, if it has hosts. */
  readonly localities: readonly LocalityMembers[];
  readonly isDirect: boolean;
  /** Of 10,000 requests, how many go to the first locality before others are considered. */
  readonly localShare: number;
  /** For each locality, how far its part of the rest reaches; the last says what all have room for. */
  readonly upTo: readonly number[];
}

/** Why all hosts are alike; the names are those of stats, null for none. */
export type ZoneRefusal = 'lb_local_cluster_not_ok' | 'lb_zone_cluster_too_small' | null;

const SHARES = 10_000;
const FEWEST_LOCALITIES = 2;

/** @param hosts those of the cluster. @param indexes of its first priority. */
export function routeByZone(
  hosts: readonly ListedHost[],
  indexes: readonly number[],
  zones: LocalZones,
  settings: ZoneRoutingSettings,
): ZoneRoutes | ZoneRefusal {
  const own = localityKey(zones.locality);
  const localities = ownFirst(hostsByLocality(hosts, indexes), own);
  const senders = hostsByLocality(zones.hosts, hostsByPriority(zones.hosts, zones.hosts.keys())[0]!.all);
  const usable = localities.filter((each) => each.hosts.healthy.length > 0);
  if (usable.length < FEWEST_LOCALITIES) return null;
  if (senders.length < FEWEST_LOCALITIES && settings.forcedFrom === null) return null;
  if (!senders.some(({ locality }) => localityKey(locality) === own)) return 'lb_local_cluster_not_ok';
  const healthyCount = localities.reduce((sum, each) => sum + each.hosts.healthy.length, 0);
  if (healthyCount < settings.minClusterSize) return 'lb_zone_cluster_too_small';
  const measure = (members: readonly ListedHost[], { hosts: { healthy } }: LocalityMembers): number =>
    settings.goesByWeight ? healthy.reduce((sum, index) => sum + members[index]!.weight, 0) : healthy.length;
  const receiving = sharesOf(localities.map((each) => measure(hosts, each)));
  const byKey = new Map(
    sharesOf(senders.map((each) => measure(zones.hosts, each))).map((share, at) => [
      localityKey(senders[at]!.locality),
      share,
    ]),
  );
  const sending = localities.map(({ locality }) => byKey.get(localityKey(locality)) ?? 0);
  const hasOwn = localityKey(localities[0]!.locality) === own;
  const takesAll =
    receiving[0]! >= sending[0]! ||
    (settings.forcedFrom !== null && localities[0]!.hosts.healthy.length >= settings.forcedFrom);
  const isDirect = hasOwn && receiving[0]! > 0 && takesAll;
  const localShare = hasOwn && sending[0]! > 0 ? Math.floor((receiving[0]! * SHARES) / sending[0]!) : 0;
  let sum = 0;
  const upTo = receiving.map((share, at) => {
    if (!hasOwn || at > 0) sum += Math.max(0, share - sending[at]!);
    return sum;
  });
  return { localities, isDirect, localShare, upTo };
}

export function isRouted(routes: ZoneRoutes | ZoneRefusal | undefined): routes is ZoneRoutes {
  return typeof routes === 'object' && routes !== null;
}

/** As workers take them. */
export function zoneShares<Source>(
  { localities, upTo }: ZoneRoutes,
  sourceOf: (locality: LocalityMembers, at: number) => Source,
): (Omit<ZoneShare, 'source'> & { readonly source: Source })[] {
  return localities.map((locality, at) => ({ upTo: upTo[at]!, source: sourceOf(locality, at) }));
}

function ownFirst(localities: readonly LocalityMembers[], own: string): LocalityMembers[] {
  const isOwn = ({ locality }: LocalityMembers): boolean => localityKey(locality) === own;
  return [...localities.filter(isOwn), ...localities.filter((each) => !isOwn(each))];
}

/** Each part of the sum, in shares of 10,000, rounded down. */
function sharesOf(sizes: readonly number[]): number[] {
  const sum = sizes.reduce((total, size) => total + size, 0);
  return sizes.map((size) => (sum === 0 ? 0 : Math.floor((SHARES * size) / sum)));
}
