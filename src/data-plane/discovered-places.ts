// The places in a chain of filters whose configurations come by discovery, in one worker: what has been made of the one in force, for whichever
// kind of filter. A place is empty while there is none, or none that a filter can be made of.

import { errorMessage } from '../base/errors.ts';
import type { PublishedExtension } from '../snapshot/index.ts';
import { FilterInUse } from './filter-in-use.ts';
import type { WorkerContext } from './worker-context.ts';

/** Of one configuration. */
export interface FilterInPlace<Made> {
  readonly made: Made;
  /** Whoever meets it is in there until he is done. */
  readonly use: FilterInUse;
}

export interface PlaceKind<Published extends PublishedExtension, Made> {
  /** As the log names such a filter. */
  readonly what: string;
  /** @returns null without a configuration; what it has made is closed once. @throws where none can be made of it. */
  make(at: number, published: Published): { readonly made: Made; close(): void } | null;
  /** A place is another one, which holds for whoever comes from now on; once for each at the beginning. */
  onPlaced(at: number, filter: FilterInPlace<Made> | null): void;
}

export class DiscoveredPlaces<Published extends PublishedExtension, Made> {
  readonly #context: WorkerContext;
  readonly #kind: PlaceKind<Published, Made>;
  readonly #places = new Map<number, FilterInPlace<Made>>();
  readonly #leaving: (() => void)[] = [];

  constructor(context: WorkerContext, kind: PlaceKind<Published, Made>) {
    this.#context = context;
    this.#kind = kind;
  }

  /** A filter of the chain comes by discovery. @param at its place. @param name that it has there. @param id of its configurations. */
  join(at: number, name: string, id: number): void {
    const leave = this.#context.discoveredFilters.join<Published>(id, {
      onUnfit: (error, published) => {
        this.#context.logFault(`${this.#kind.what} ${name}`, error);
        if (published === null) return;
        const { id, edition } = published;
        this.#context.reportUnfitFilter({ id, edition }, errorMessage(error));
      },
      configure: (published) => {
        const made = published === null ? null : this.#kind.make(at, published);
        return this.#place(at, made);
      },
    });
    this.#leaving.push(leave);
  }

  /** The chain is not any more, and nobody is left in it. */
  close(): void {
    for (const leave of this.#leaving.splice(0)) leave();
    for (const { use } of this.#places.values()) use.close();
    this.#places.clear();
  }

  #place(at: number, made: ReturnType<PlaceKind<Published, Made>['make']>): (onGone: () => void) => void {
    const former = this.#places.get(at);
    const filter = made && { made: made.made, use: new FilterInUse(this.#context.clock, () => made.close()) };
    if (filter === null) this.#places.delete(at);
    else this.#places.set(at, filter);
    this.#kind.onPlaced(at, filter);
    return (onGone) => (former === undefined ? onGone() : former.use.retire(onGone));
  }
}
