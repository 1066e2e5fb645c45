// What has been done since the last report, added up by locality and priority. Main thread.

import { type Address, formatAddress } from '../../base/address.ts';
import type { Locality } from '../../snapshot/index.ts';

/** What a host has counted; increments but for the two that say how it is now. */
export interface LoadCounts {
  successful: number;
  failed: number;
  issued: number;
  newConnections: number;
  failedConnections: number;
  /** Now. */
  inProgress: number;
  /** Now. */
  activeConnections: number;
}

/** Whose counts they are. */
export interface LoadedPlace {
  readonly address: Address;
  readonly locality: Locality;
  readonly priority: number;
}

export interface HostLoad {
  readonly address: Address;
  readonly counts: LoadCounts;
}

export interface LocalityLoad {
  readonly locality: Locality;
  readonly priority: number;
  readonly counts: LoadCounts;
  /** By address; empty where nobody asks for hosts. */
  readonly hosts: Map<string, HostLoad>;
}

/** Of one locality, that are told of for themselves: hosts may come and go as long as nobody takes a report. */
const MOST_HOSTS = 16_384;

export class LoadSum {
  /** By priority and name. */
  readonly #localities = new Map<string, LocalityLoad>();
  /** By category. */
  readonly #drops = new Map<string, number>();
  #dropped = 0;

  /** Requests that were turned away, those of categories included. */
  get dropped(): number {
    return this.#dropped;
  }

  get drops(): Iterable<readonly [category: string, count: number]> {
    return this.#drops;
  }

  get localities(): Iterable<LocalityLoad> {
    return this.#localities.values();
  }

  get isEmpty(): boolean {
    return this.#localities.size === 0 && this.#dropped === 0;
  }

  /** @param isOfHost the host is told of for itself. */
  add(place: LoadedPlace, counts: Readonly<LoadCounts>, isOfHost: boolean): void {
    if (isNothing(counts)) return;
    const load = this.#localityOf(place);
    addCounts(load.counts, counts);
    if (isOfHost) addHost(load, place.address, counts);
  }

  /** @param category of `inCategory` among them; empty for none. */
  addDropped(dropped: number, inCategory: number, category: string): void {
    this.#dropped += dropped;
    if (inCategory > 0 && category !== '') this.#drops.set(category, (this.#drops.get(category) ?? 0) + inCategory);
  }

  /** But for what the other says of how things were when it was made. */
  addIncrements(other: LoadSum): void {
    for (const { locality, priority, counts, hosts } of other.localities) {
      const own = incrementsOf(counts);
      if (isNothing(own)) continue;
      const load = this.#localityOf({ locality, priority });
      addCounts(load.counts, own);
      for (const host of hosts.values()) {
        const ownOfHost = incrementsOf(host.counts);
        if (!isNothing(ownOfHost)) addHost(load, host.address, ownOfHost);
      }
    }
    this.#dropped += other.#dropped;
    for (const [category, count] of other.#drops) this.addDropped(0, count, category);
  }

  #localityOf({ locality, priority }: Pick<LoadedPlace, 'locality' | 'priority'>): LocalityLoad {
    const { region, zone, subZone } = locality;
    const key = JSON.stringify([priority, region, zone, subZone]);
    const known = this.#localities.get(key);
    if (known !== undefined) return known;
    const load: LocalityLoad = { locality, priority, counts: noCounts(), hosts: new Map() };
    this.#localities.set(key, load);
    return load;
  }
}

export function noCounts(): LoadCounts {
  return {
    successful: 0,
    failed: 0,
    issued: 0,
    newConnections: 0,
    failedConnections: 0,
    inProgress: 0,
    activeConnections: 0,
  };
}

function incrementsOf(counts: Readonly<LoadCounts>): LoadCounts {
  return { ...counts, inProgress: 0, activeConnections: 0 };
}

/** One that was at this address before counts with the one that is. */
function addHost({ hosts }: LocalityLoad, address: Address, counts: Readonly<LoadCounts>): void {
  const key = formatAddress(address);
  const known = hosts.get(key);
  if (known !== undefined) addCounts(known.counts, counts);
  else if (hosts.size < MOST_HOSTS) hosts.set(key, { address, counts: { ...counts } });
}

function addCounts(to: LoadCounts, counts: Readonly<LoadCounts>): void {
  to.successful += counts.successful;
  to.failed += counts.failed;
  to.issued += counts.issued;
  to.newConnections += counts.newConnections;
  to.failedConnections += counts.failedConnections;
  to.inProgress += counts.inProgress;
  to.activeConnections += counts.activeConnections;
}

function isNothing(counts: Readonly<LoadCounts>): boolean {
  const { successful, failed, issued, newConnections, failedConnections, inProgress, activeConnections } = counts;
  return (
    successful === 0 &&
    failed === 0 &&
    issued === 0 &&
    newConnections === 0 &&
    failedConnections === 0 &&
    inProgress === 0 &&
    activeConnections === 0
  );
}
