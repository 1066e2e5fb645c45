// Where a connection manager, or one of its upgrades, has its filter chain: one for good, or one that is another whenever a filter of
// it that comes by discovery is configured anew. A request keeps to the chain that it began with.

import type { HttpFilterSettings, PublishedFilter } from '../../snapshot/index.ts';
import { DiscoveredPlaces } from '../discovered-places.ts';
import { UpstreamCalls } from '../router/upstream-call.ts';
import type { ClusterMap } from '../upstream/cluster-map.ts';
import type { WorkerContext } from '../worker-context.ts';
import { type ChainMember, compileMember, FilterChain } from './filter-chain.ts';
import { ChainContext } from './filter-context.ts';
import type { LocalReply } from './local-reply.ts';

export interface ChainSlot {
  /** What requests meet that begin now; null when they meet only the router. */
  readonly current: FilterChain | null;
  /** No request is left. */
  close(): void;
}

export interface ChainParts {
  readonly context: WorkerContext;
  readonly clusters: ClusterMap;
  /** Of the connection manager, with its final dot. */
  readonly statScope: string;
  /** Of what the filters of its configuration count, by name. */
  readonly cells: Readonly<Record<string, number>>;
  /** Told of contexts, which their owner closes, before anything is made with them. */
  readonly opened: (context: ChainContext) => void;
  /** The id of the next filter that comes by discovery. */
  readonly nextId: () => number;
}

/** @throws WeirError for a filter that this build lacks. */
export function openChain(filters: readonly HttpFilterSettings[], parts: ChainParts): ChainSlot {
  if (filters.some(({ discovered }) => discovered !== undefined)) return new DiscoveringChain(filters, parts);
  const { context, clusters, statScope, cells, opened } = parts;
  return { current: FilterChain.compile(context, clusters, filters, statScope, cells, opened), close: () => {} };
}

const NO_CONFIGURATION: LocalReply = { status: 500, body: '', flag: 'NFCF', details: 'missing_filter_configuration' };

class DiscoveringChain implements ChainSlot {
  current: FilterChain | null = null;
  readonly #filters: readonly HttpFilterSettings[];
  readonly #parts: ChainParts;
  readonly #calls: UpstreamCalls;
  /** In the order of the chain. */
  readonly #members: ChainMember[];
  readonly #places: DiscoveredPlaces<PublishedFilter, ChainMember>;

  constructor(filters: readonly HttpFilterSettings[], parts: ChainParts) {
    this.#filters = filters;
    this.#parts = parts;
    const { context, clusters, statScope, cells, opened, nextId } = parts;
    const own = new ChainContext(context, clusters, statScope, cells);
    opened(own);
    this.#calls = new UpstreamCalls(context, clusters);
    this.#members = filters.map((filter) =>
      filter.discovered === undefined ? compileMember(context, filter, own) : withoutConfiguration(filter),
    );
    this.#places = new DiscoveredPlaces(context, {
      what: 'the HTTP filter',
      make: (at, published) => this.#make(filters[at]!, published),
      onPlaced: (at, placed) => this.#put(at, placed && { ...placed.made, use: placed.use }),
    });
    try {
      for (const [at, { name, configName = name, discovered }] of filters.entries())
        if (discovered !== undefined) this.#places.join(at, configName, nextId());
    } catch (error) {
      this.close();
      throw error;
    }
    this.#renew();
  }

  close(): void {
    this.#places.close();
  }

  #make(
    filter: HttpFilterSettings,
    { configured, cells }: PublishedFilter,
  ): { made: ChainMember; close(): void } | null {
    if (configured === null) return null;
    const { context, clusters, statScope, cells: others } = this.#parts;
    const own = new ChainContext(context, clusters, statScope, { ...others, ...cells });
    try {
      const member = compileMember(context, { ...filter, ...configured.filter }, own);
      return { made: { ...member, routeType: configured.routeType ?? null }, close: () => own.close() };
    } catch (error) {
      own.close();
      throw error;
    }
  }

  #put(at: number, member: ChainMember | null): void {
    this.#members[at] = member ?? withoutConfiguration(this.#filters[at]!);
    this.#renew();
  }

  #renew(): void {
    this.current = FilterChain.of(this.#members, this.#calls);
  }
}

/** Nobody knows what it would have done with requests: none goes past it. */
function withoutConfiguration({ name, configName = name, isDisabled = false }: HttpFilterSettings): ChainMember {
  return {
    requestBody: 'none',
    encodes: false,
    responseBody: 'none',
    create: (callbacks) => ({
      decodeHeaders: () => {
        callbacks.reply(NO_CONFIGURATION);
        return 'stop';
      },
    }),
    isAwake: null,
    configName,
    isDisabled,
    prepared: (settings) => settings,
    routeType: null,
    use: null,
  };
}
