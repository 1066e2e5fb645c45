// The listener filters of one listener in one worker: those that stay as long as it does, and those that come by discovery. A connection
// keeps to what it has met. While one has no configuration nobody is let in.

import type {
  ListenerFilterSnapshot,
  OwnListenerFilterSettings,
  PublishedListenerFilter,
} from '../../../snapshot/index.ts';
import { DiscoveredPlaces, type FilterInPlace } from '../../discovered-places.ts';
import type { FilterInUse } from '../../filter-in-use.ts';
import type { WorkerContext } from '../../worker-context.ts';
import { ConditionalFilter } from './conditional-filter.ts';
import { createListenerFilter } from './create.ts';
import type { ListenerFilter } from './filter.ts';

/** What connections meet that come now, in their order. */
export interface CurrentListenerFilters {
  readonly filters: readonly ListenerFilter[];
  /** Of those that come by discovery; a connection that waits at a filter is in there. */
  readonly uses: readonly FilterInUse[];
}

export class ListenerFilters {
  readonly #context: WorkerContext;
  readonly #snapshots: readonly ListenerFilterSnapshot[];
  readonly #filters: (ListenerFilter | null)[];
  readonly #uses = new Map<number, FilterInUse>();
  readonly #places: DiscoveredPlaces<PublishedListenerFilter, ListenerFilter>;
  #current: CurrentListenerFilters | null = null;

  /** @throws as filters of their configurations do. */
  constructor(context: WorkerContext, snapshots: readonly ListenerFilterSnapshot[]) {
    this.#context = context;
    this.#snapshots = snapshots;
    this.#filters = snapshots.map((snapshot) => (isOwn(snapshot) ? this.#make(snapshot, snapshot) : null));
    this.#places = new DiscoveredPlaces(context, {
      what: 'the listener filter',
      make: (at, { configured }) =>
        configured && { made: this.#make(configured, this.#snapshots[at]!), close: () => {} },
      onPlaced: (at, placed) => this.#put(at, placed),
    });
    for (const [at, { settings, discoveredId }] of snapshots.entries())
      if (settings.kind === 'discovered') this.#places.join(at, settings.name, discoveredId!);
    this.#renew();
  }

  /** Null while a configuration is missing. */
  get current(): CurrentListenerFilters | null {
    return this.#current;
  }

  /** No connection is left. */
  close(): void {
    this.#places.close();
  }

  /** @param place says which connections it does not look at. */
  #make(own: ListenerFilterSnapshot<OwnListenerFilterSettings>, { settings }: ListenerFilterSnapshot): ListenerFilter {
    const filter = createListenerFilter(this.#context, own);
    const { disabledFor } = settings;
    return disabledFor === undefined ? filter : new ConditionalFilter(filter, disabledFor);
  }

  #put(at: number, placed: FilterInPlace<ListenerFilter> | null): void {
    this.#filters[at] = placed?.made ?? null;
    if (placed === null) this.#uses.delete(at);
    else this.#uses.set(at, placed.use);
    this.#renew();
  }

  #renew(): void {
    const filters = this.#filters.filter((filter) => filter !== null);
    this.#current = filters.length < this.#filters.length ? null : { filters, uses: [...this.#uses.values()] };
  }
}

function isOwn(snapshot: ListenerFilterSnapshot): snapshot is ListenerFilterSnapshot<OwnListenerFilterSettings> {
  return snapshot.settings.kind !== 'discovered';
}
