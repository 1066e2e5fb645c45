// The route tables of a worker that are resources of their own, by their ids. Whoever refers to one has a slot, in which the
// table of the moment lies.

import type { PublishedRoutes, RouteTableSnapshot } from '../../snapshot/index.ts';
import { type RouteParts, RoutesInUse } from './routes-in-use.ts';

/** No request finds a route. */
const NO_ROUTES: RouteTableSnapshot = { name: '', virtualHosts: [], ignoresPort: false, internalOnlyHeaders: [] };
const NO_CELLS: Readonly<Record<string, number>> = {};

export interface RouteSlot {
  /** What requests go by that begin now. */
  readonly current: RoutesInUse;
}

class OpenSlot implements RouteSlot {
  current: RoutesInUse;

  constructor(current: RoutesInUse) {
    this.current = current;
  }
}

export class RouteTables {
  readonly #parts: RouteParts;
  readonly #slots = new Map<number, OpenSlot>();

  constructor(parts: RouteParts) {
    this.#parts = parts;
  }

  /** Empty until a table of this id has come. */
  slot(id: number): RouteSlot {
    return this.#slot(id);
  }

  /**
   * Takes the place of what there was of this id, from the next request on. What it throws leaves all as it was.
   * @param onGone called once, in a later turn, when nothing uses what there was.
   */
  publish(published: PublishedRoutes, onGone: () => void): void {
    const { table, statBlocks, filterCells } = published;
    const routes = new RoutesInUse(this.#parts, { table, statBlocks }, filterCells, published.id);
    const slot = this.#slot(published.id);
    const former = slot.current;
    slot.current = routes;
    former.retire(onGone);
  }

  /** No connection manager refers to it any more. @param onGone as for publish. */
  remove(id: number, onGone: () => void): void {
    const slot = this.#slots.get(id);
    if (slot === undefined) {
      onGone();
      return;
    }
    this.#slots.delete(id);
    const former = slot.current;
    slot.current = this.#none();
    former.retire(onGone);
  }

  #slot(id: number): OpenSlot {
    let slot = this.#slots.get(id);
    if (slot === undefined) {
      slot = new OpenSlot(this.#none());
      this.#slots.set(id, slot);
    }
    return slot;
  }

  #none(): RoutesInUse {
    return new RoutesInUse(this.#parts, { table: NO_ROUTES, statBlocks: NO_CELLS }, NO_CELLS);
  }
}
