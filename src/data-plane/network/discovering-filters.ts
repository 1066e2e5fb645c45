// The network filters of a chain some of which come by discovery: new connections meet them as they are configured at the moment, and keep to
// that. Filters that stay keep what they know. While one has no configuration nobody is let in.

import type { NetworkFilterSnapshot, PublishedNetworkFilter } from '../../snapshot/index.ts';
import { DiscoveredPlaces, type FilterInPlace } from '../discovered-places.ts';
import type { FilterInUse } from '../filter-in-use.ts';
import type { IngressFacts } from '../format/facts.ts';
import { UpstreamCalls } from '../router/upstream-call.ts';
import type { ClusterMap } from '../upstream/cluster-map.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { DownstreamConnection } from './downstream-connection.ts';
import type { FilteredConnectionOwner } from './filtered-connection.ts';
import type { Refusal } from './network-filter.ts';
import { type ConnectionFilters, type MadeFilter, makeFilter, NetworkFilterChain } from './network-filter-chain.ts';

/** Nobody knows what it would have done with connections: none goes past it. */
export const NO_CONFIGURATION: Refusal = { delayMs: 0, details: 'missing_filter_configuration', flag: 'NFCF' };

/** Null where it takes no part, as it is configured. */
type Placed = FilterInPlace<MadeFilter | null>;

/** What connections meet that come now. */
interface CurrentFilters {
  readonly chain: NetworkFilterChain;
  /** Of those that come by discovery. */
  readonly uses: readonly FilterInUse[];
}

export class DiscoveringFilters implements ConnectionFilters {
  readonly #context: WorkerContext;
  readonly #calls: UpstreamCalls;
  readonly #ingress: IngressFacts;
  readonly #onMissing: () => void;
  /** In the order of the chain: one that stays as long as that does, or what is in the place of one that comes by discovery. */
  readonly #filters: (MadeFilter | Placed | null)[];
  readonly #places: DiscoveredPlaces<PublishedNetworkFilter, MadeFilter | null>;
  /** Null while a configuration is missing. */
  #current: CurrentFilters | null = null;
  /** By connection, what it has met. */
  readonly #met = new Map<DownstreamConnection, CurrentFilters>();

  /** @param onMissing told of each connection that is refused for want of a configuration. */
  constructor(
    context: WorkerContext,
    clusters: ClusterMap,
    snapshots: readonly NetworkFilterSnapshot[],
    ingress: IngressFacts,
    onMissing: () => void,
  ) {
    this.#context = context;
    this.#calls = new UpstreamCalls(context, clusters);
    this.#ingress = ingress;
    this.#onMissing = onMissing;
    this.#filters = snapshots.map((snapshot) =>
      snapshot.discoveredId === undefined ? makeFilter(context, snapshot) : null,
    );
    this.#places = new DiscoveredPlaces(context, {
      what: 'the network filter',
      make: (_, { configured }) => this.#make(configured),
      onPlaced: (at, placed) => {
        this.#filters[at] = placed;
        this.#renew();
      },
    });
    for (const [at, { discoveredId, settings }] of snapshots.entries())
      if (discoveredId !== undefined) this.#places.join(at, settings.name, discoveredId);
    this.#renew();
  }

  get waitingCount(): number {
    return this.#chains.reduce((sum, { waitingCount }) => sum + waitingCount, 0);
  }

  admit(connection: DownstreamConnection): Refusal | null {
    const current = this.#current;
    if (current === null) {
      this.#onMissing();
      return NO_CONFIGURATION;
    }
    const refusal = current.chain.admit();
    if (refusal !== null) return refusal;
    this.#met.set(connection, current);
    for (const use of current.uses) use.enter();
    return null;
  }

  release(connection: DownstreamConnection): void {
    const { chain, uses } = this.#met.get(connection)!;
    this.#met.delete(connection);
    chain.release();
    for (const use of uses) use.leave();
  }

  begin(connection: DownstreamConnection, owner: FilteredConnectionOwner): void {
    this.#met.get(connection)!.chain.begin(connection, owner);
  }

  destroyConnections(): void {
    for (const chain of this.#chains) chain.destroyConnections();
  }

  close(): void {
    this.#places.close();
    for (const filter of this.#filters.splice(0)) if (filter !== null && !isPlaced(filter)) filter.context.close();
  }

  /** Those that a connection has met which is still there. */
  get #chains(): readonly NetworkFilterChain[] {
    return [...new Set([...this.#met.values()].map(({ chain }) => chain))];
  }

  #make(configured: PublishedNetworkFilter['configured']): { made: MadeFilter | null; close(): void } | null {
    if (configured === null) return null;
    const made = configured.filter === null ? null : makeFilter(this.#context, configured.filter);
    return { made, close: () => made?.context.close() };
  }

  #renew(): void {
    const there = this.#filters.filter((filter) => filter !== null);
    if (there.length < this.#filters.length) {
      this.#current = null;
      return;
    }
    const made = there.flatMap((filter) => (isPlaced(filter) ? (filter.made ?? []) : filter));
    const chain = new NetworkFilterChain(this.#context, this.#calls, made, this.#ingress);
    this.#current = { chain, uses: there.flatMap((filter) => (isPlaced(filter) ? filter.use : [])) };
  }
}

function isPlaced(filter: MadeFilter | Placed): filter is Placed {
  return 'use' in filter;
}
