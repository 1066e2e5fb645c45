// Where a connection manager, or one of its upgrades, has its filter chain: one for good, or one that is another whenever a filter of
// it that comes by discovery is configured anew. A request keeps to the chain that it began with.

import type { HttpFilterSettings, PublishedFilter } from '../../snapshot/index.ts';
import { FilterInUse } from '../filter-in-use.ts';
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
  readonly #parts: ChainParts;
  readonly #calls: UpstreamCalls;
  /** In the order of the chain. */
  readonly #members: ChainMember[];
  /** By place: of those that come by discovery. */
  readonly #uses = new Map<number, FilterInUse>();
  readonly #leaving: (() => void)[] = [];

  constructor(filters: readonly HttpFilterSettings[], parts: ChainParts) {
    this.#parts = parts;
    const { context, clusters, statScope, cells, opened, nextId } = parts;
    const own = new ChainContext(context, clusters, statScope, cells);
    opened(own);
    this.#calls = new UpstreamCalls(context, clusters);
    this.#members = filters.map((filter) =>
      filter.discovered === undefined ? compileMember(context, filter, own) : withoutConfiguration(filter),
    );
    try {
      for (const [at, filter] of filters.entries())
        if (filter.discovered !== undefined) this.#join(at, filter, nextId());
    } catch (error) {
      this.close();
      throw error;
    }
    this.#renew();
  }

  close(): void {
    for (const leave of this.#leaving.splice(0)) leave();
    for (const use of this.#uses.values()) use.close();
    this.#uses.clear();
  }

  #join(at: number, filter: HttpFilterSettings, id: number): void {
    const { context } = this.#parts;
    const leave = context.discoveredFilters.join<PublishedFilter>(id, {
      onUnfit: (error) => context.logFault(`a filter of a chain, ${filter.configName}`, error),
      configure: (published) => {
        const { configured = null, cells = {} } = published ?? {};
        const former = this.#uses.get(at);
        if (configured === null) {
          this.#uses.delete(at);
          this.#members[at] = withoutConfiguration(filter);
        } else this.#configure(at, { ...filter, ...configured.filter }, configured.routeType, cells);
        this.#renew();
        return (onGone) => (former === undefined ? onGone() : former.retire(onGone));
      },
    });
    this.#leaving.push(leave);
  }

  #configure(
    at: number,
    filter: HttpFilterSettings,
    routeType: string | undefined,
    cells: Readonly<Record<string, number>>,
  ): void {
    const { context, clusters, statScope, cells: others } = this.#parts;
    const own = new ChainContext(context, clusters, statScope, { ...others, ...cells });
    try {
      const use = new FilterInUse(context.clock, () => own.close());
      this.#members[at] = { ...compileMember(context, filter, own), routeType: routeType ?? null, use };
      this.#uses.set(at, use);
    } catch (error) {
      own.close();
      throw error;
    }
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
