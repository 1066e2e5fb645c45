// A route table that stands in the configuration, and goes to the workers for itself all the same: that of a scope. Main thread.

import type { PublishedRoutes, RouteTableSnapshot } from '../../snapshot/index.ts';
import { Holdings, type HoldingsSource } from '../holdings.ts';
import { allocateFilterCells, allocateRouteStats } from './route-stats.ts';
import type { RoutesPublisher } from './route-table-kind.ts';

export interface OwnTableDependencies extends HoldingsSource {
  readonly workers: RoutesPublisher;
}

export class OwnTable {
  readonly published: PublishedRoutes;
  readonly #workers: RoutesPublisher;
  readonly #holdings: Holdings;

  /** @throws WeirError WEIR_SHARED_MEMORY_FULL; nothing has been allocated then. */
  constructor(id: number, table: RouteTableSnapshot, deps: OwnTableDependencies) {
    this.#workers = deps.workers;
    this.#holdings = new Holdings(deps);
    try {
      const statBlocks = allocateRouteStats(table, this.#holdings);
      this.published = { id, table, statBlocks, filterCells: allocateFilterCells(table, this.#holdings) };
    } catch (error) {
      this.#holdings.close();
      throw error;
    }
    this.#workers.publishRoutes(this.published, () => {});
  }

  /** Nothing refers to it any more. Once. */
  close(): void {
    this.#workers.removeRoutes(this.published.id, () => this.#holdings.close());
  }
}
