// The configurations of HTTP and network filters that come by discovery: one for each kind, name and source, whoever wants it, for as long
// as anybody does. Main thread.

import type { DiscoveredFilter, DiscoveredNetworkFilter, PublishedExtension } from '../../snapshot/index.ts';
import { cleanStatName } from '../../stats/index.ts';
import type { DumpedResource } from '../discovery/named-resource.ts';
import { PublishedResources } from '../discovery/published-resources.ts';
import type { PublishedLease } from '../discovery/resource-lease.ts';
import type { FilterConfigsDependencies } from './filter-kind.ts';
import { httpFilterKind } from './http-filter-kind.ts';
import { networkFilterKind } from './network-filter-kind.ts';

export interface FilterLeases {
  /** @param name of the filter in its chain. @param statPrefix of the connection manager, under which the filter counts. */
  lease(name: string, wanted: DiscoveredFilter, statPrefix: string): PublishedLease;
  /** The same of a network filter. */
  leaseNetwork(name: string, wanted: DiscoveredNetworkFilter): PublishedLease;
}

export class FilterConfigs implements FilterLeases {
  readonly #http;
  readonly #network;

  constructor(deps: FilterConfigsDependencies) {
    // Workers know filters of all kinds by ids of one row.
    let lastId = 0;
    const nextId = (): number => ++lastId;
    this.#http = new PublishedResources(httpFilterKind(deps), deps, nextId);
    this.#network = new PublishedResources(networkFilterKind(deps), deps, nextId);
  }

  lease(name: string, wanted: DiscoveredFilter, statPrefix: string): PublishedLease {
    return this.#http.leaseOne(requestOf('http_filter', name, wanted), { wanted, statPrefix });
  }

  leaseNetwork(name: string, wanted: DiscoveredNetworkFilter): PublishedLease {
    return this.#network.leaseOne(requestOf('network_filter', name, wanted), { wanted });
  }

  /** What workers are to know that start now. */
  *published(): Iterable<PublishedExtension> {
    yield* this.#http.published();
    yield* this.#network.published();
  }

  /** All that there are, and those that could not be had. */
  dump(): DumpedResource[] {
    return [...this.#http.dump(), ...this.#network.dump()];
  }

  /** Those that could not be had, and why. */
  *failures(): Iterable<{ readonly name: string; readonly error: string }> {
    yield* this.#http.failures();
    yield* this.#network.failures();
  }

  /** Nothing is asked for any more. */
  close(): void {
    this.#http.close();
    this.#network.close();
  }
}

/** @param kind as stats name it. */
function requestOf(kind: string, name: string, { source }: Pick<DiscoveredFilter, 'source'>) {
  return { name, source, statPrefix: `extension_config_discovery.${kind}.${cleanStatName(name)}.` };
}
