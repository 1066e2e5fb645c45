// The network filters before the terminal one of a chain, in one worker, as they are configured at one time: who is let in, and what each
// connection passes.

import type { NetworkFilterSnapshot } from '../../snapshot/index.ts';
import type { IngressFacts } from '../format/facts.ts';
import { UpstreamCalls } from '../router/upstream-call.ts';
import type { ClusterMap } from '../upstream/cluster-map.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { DownstreamConnection } from './downstream-connection.ts';
import { FilteredConnection, type FilteredConnectionOwner } from './filtered-connection.ts';
import type { CompiledNetworkFilter, NetworkFilter, NetworkFilterCallbacks, Refusal } from './network-filter.ts';
import { ChainFilterContext } from './network-filter-context.ts';

export type CreateNetworkFilter = (callbacks: NetworkFilterCallbacks) => NetworkFilter;

/** What a filter chain has of network filters. */
export interface ConnectionFilters {
  /** Connections that wait for a filter. */
  readonly waitingCount: number;
  /** Takes a place at every filter, or none. @returns why there is none; null for a connection that may go on. */
  admit(connection: DownstreamConnection): Refusal | null;
  /** A connection that was admitted is over. */
  release(connection: DownstreamConnection): void;
  /** Has a connection pass the filters, at the end of which its owner gets it; perhaps within this call. */
  begin(connection: DownstreamConnection, owner: FilteredConnectionOwner): void;
  destroyConnections(): void;
  /** No connection is left. */
  close(): void;
}

/** A filter, made of its configuration. */
export interface MadeFilter {
  readonly filter: CompiledNetworkFilter;
  readonly readsData: boolean;
  readonly context: ChainFilterContext;
}

/** @throws what its code does. */
export function makeFilter(context: WorkerContext, snapshot: NetworkFilterSnapshot): MadeFilter {
  const { name, settings } = snapshot.settings;
  const kind = context.networkFilters[name];
  // Main has let no other name through.
  if (kind === undefined || kind.isTerminal) throw new Error(`${name} is no filter before a terminal one`);
  const ofFilter = new ChainFilterContext(context, snapshot);
  try {
    const filter = kind.compile(settings, ofFilter);
    return { filter, readsData: filter.readsData ?? kind.readsData, context: ofFilter };
  } catch (error) {
    ofFilter.close();
    throw error;
  }
}

export class NetworkFilterChain implements ConnectionFilters {
  readonly calls: UpstreamCalls;
  readonly ingress: IngressFacts;
  readonly create: readonly CreateNetworkFilter[];
  /** Bytes of its connections pass the filters. */
  readonly readsData: boolean;
  readonly #context: WorkerContext;
  readonly #made: readonly MadeFilter[];
  readonly #gates: readonly CompiledNetworkFilter[];
  /** Those that the terminal filter has not got yet. */
  readonly #waiting = new Set<FilteredConnection>();

  /** @returns null where there are none: connections go straight to the terminal filter. */
  static compile(
    context: WorkerContext,
    clusters: ClusterMap,
    snapshots: readonly NetworkFilterSnapshot[],
    ingress: IngressFacts,
  ): NetworkFilterChain | null {
    if (snapshots.length === 0) return null;
    const made = snapshots.map((snapshot) => makeFilter(context, snapshot));
    return new NetworkFilterChain(context, new UpstreamCalls(context, clusters), made, ingress);
  }

  constructor(context: WorkerContext, calls: UpstreamCalls, made: readonly MadeFilter[], ingress: IngressFacts) {
    this.#context = context;
    this.ingress = ingress;
    this.calls = calls;
    this.#made = made;
    const filters = made.map(({ filter }) => filter);
    this.readsData = made.some(({ readsData }) => readsData);
    this.#gates = filters.filter(({ admit }) => admit !== undefined);
    this.create = filters.flatMap(({ create }) => create ?? []);
  }

  get waitingCount(): number {
    return this.#waiting.size;
  }

  admit(): Refusal | null {
    for (const [index, gate] of this.#gates.entries()) {
      const refusal = gate.admit!();
      if (refusal === null) continue;
      for (const passed of this.#gates.slice(0, index)) passed.release?.();
      return refusal;
    }
    return null;
  }

  release(): void {
    for (const gate of this.#gates) gate.release?.();
  }

  begin(connection: DownstreamConnection, owner: FilteredConnectionOwner): void {
    if (this.create.length === 0) {
      owner.onFiltersPassed(connection);
      return;
    }
    const filtered = new FilteredConnection(this.#context, this, connection, owner);
    this.#waiting.add(filtered);
    filtered.begin();
  }

  /** The terminal filter has it, or it is over. */
  leave(filtered: FilteredConnection): void {
    this.#waiting.delete(filtered);
  }

  destroyConnections(): void {
    for (const filtered of [...this.#waiting]) filtered.destroy();
  }

  close(): void {
    for (const { context } of this.#made) context.close();
  }
}
