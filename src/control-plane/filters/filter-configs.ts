// The configurations of HTTP, network and listener filters that come by discovery: one for each kind, name and source, whoever wants it, for as long
// as anybody does. Main thread.

import type {
  DiscoveredFilter,
  DiscoveredListenerFilter,
  DiscoveredNetworkFilter,
  DiscoveredTerminal,
  PublishedExtension,
  PublishedPlace,
} from '../../snapshot/index.ts';
import { cleanStatName } from '../../stats/index.ts';
import type { DumpedResource } from '../discovery/named-resource.ts';
import { PublishedResources } from '../discovery/published-resources.ts';
import type { PublishedLease } from '../discovery/resource-lease.ts';
import type { RouteLeases } from '../routes/route-tables.ts';
import type { FilterConfigsDependencies } from './filter-kind.ts';
import type { FilterLeases } from './filter-leases.ts';
import { httpFilterKind } from './http-filter-kind.ts';
import { listenerFilterKind } from './listener-filter-kind.ts';
import { networkFilterKind } from './network-filter-kind.ts';
import { terminalFilterKind } from './terminal-filter-kind.ts';

export class FilterConfigs implements FilterLeases {
  readonly #http;
  readonly #network;
  readonly #terminal;
  readonly #listener;

  /** @param routes of the tables and scopes that connection managers have by discovery. */
  constructor(deps: FilterConfigsDependencies, routes: RouteLeases) {
    // Workers know filters of all kinds by ids of one row.
    let lastId = 0;
    const nextId = (): number => ++lastId;
    this.#http = new PublishedResources(httpFilterKind(deps), deps, nextId);
    this.#network = new PublishedResources(networkFilterKind(deps), deps, nextId);
    this.#terminal = new PublishedResources(terminalFilterKind(deps, { routes, filters: this }), deps, nextId);
    this.#listener = new PublishedResources(listenerFilterKind(deps), deps, nextId);
  }

  lease(name: string, wanted: DiscoveredFilter, statPrefix: string): PublishedLease {
    return this.#http.leaseOne(requestOf('http_filter', name, wanted), { wanted, statPrefix });
  }

  leaseNetwork(name: string, wanted: DiscoveredNetworkFilter): PublishedLease {
    return this.#network.leaseOne(requestOf('network_filter', name, wanted), { wanted });
  }

  leaseTerminal(name: string, wanted: DiscoveredTerminal, listenerPrefix: string): PublishedLease {
    return this.#terminal.leaseOne(requestOf('network_filter', name, wanted), { wanted, listenerPrefix });
  }

  leaseListener(name: string, wanted: DiscoveredListenerFilter): PublishedLease {
    return this.#listener.leaseOne(requestOf('tcp_listener_filter', name, wanted), { wanted });
  }

  /** What workers are to know that start now. */
  published(): Iterable<PublishedExtension> {
    return this.#kinds.flatMap((kind) => [...kind.published()]);
  }

  /** A worker can make no filter of one, though it has been accepted. */
  noteUnfit({ id, edition }: PublishedPlace, reason: string): void {
    for (const kind of this.#kinds) kind.noteUnfit(id, (published) => published.edition === edition, reason);
  }

  /** All that there are, and those that could not be had. */
  dump(): DumpedResource[] {
    return this.#kinds.flatMap((kind) => kind.dump());
  }

  /** Those that could not be had, and why. */
  failures(): Iterable<{ readonly name: string; readonly error: string }> {
    return this.#kinds.flatMap((kind) => [...kind.failures()]);
  }

  /** Nothing is asked for any more. */
  close(): void {
    for (const kind of this.#kinds) kind.close();
  }

  get #kinds(): readonly Pick<
    PublishedResources<object, unknown, PublishedExtension>,
    'published' | 'noteUnfit' | 'dump' | 'failures' | 'close'
  >[] {
    return [this.#http, this.#network, this.#terminal, this.#listener];
  }
}

/** @param kind as stats name it. */
function requestOf(kind: string, name: string, { source }: Pick<DiscoveredFilter, 'source'>) {
  return { name, source, statPrefix: `extension_config_discovery.${kind}.${cleanStatName(name)}.` };
}
