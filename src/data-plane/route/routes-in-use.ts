// One route table as requests find it. A request goes by the table that it began with until it is over; one that has been replaced
// gives everything back when the last such request has ended.

import type { Clock } from '../../base/clock.ts';
import type { RuntimeValues } from '../../base/runtime.ts';
import type { PublishedRoutes } from '../../snapshot/index.ts';
import type { WorkerStats } from '../../stats/index.ts';
import type { LbKernel } from '../../wasm/lb.ts';
import type { ProxyHeaders } from '../http/proxy-headers.ts';
import { TallyScopes } from './request-tally.ts';
import { RouteTable } from './route-table.ts';

/** Parts of the worker that every table is made with. */
export interface RouteParts {
  readonly clock: Clock;
  readonly stats: WorkerStats;
  readonly proxyHeaders: ProxyHeaders;
  readonly runtime: RuntimeValues;
  readonly lbKernel: LbKernel;
}

/** Has made something out of a table, which it lets go together with it. */
export interface RoutesUser {
  forget(routes: RoutesInUse): void;
}

export class RoutesInUse {
  readonly table: RouteTable;
  /** By which main knows it; undefined for one that stands in the configuration of its listener. */
  readonly id: number | undefined;
  /** Of what its routes have filters count; null where filter chains know the cells. */
  readonly filterCells: Readonly<Record<string, number>> | null;
  readonly users = new Set<RoutesUser>();
  readonly #tallies: TallyScopes;
  readonly #clock: Clock;
  #streams = 0;
  /** What is called when the last request has ended; null while others may come. */
  #onGone: (() => void) | null = null;

  constructor(
    parts: RouteParts,
    { table, statBlocks }: Pick<PublishedRoutes, 'table' | 'statBlocks'>,
    filterCells: Readonly<Record<string, number>> | null,
    id?: number,
  ) {
    this.id = id;
    const { proxyHeaders, runtime, lbKernel: kernel } = parts;
    this.#clock = parts.clock;
    this.filterCells = filterCells;
    this.#tallies = new TallyScopes(parts.stats, statBlocks);
    try {
      this.table = new RouteTable(table, proxyHeaders, runtime, { tallies: this.#tallies, kernel });
    } catch (error) {
      this.#tallies.close();
      throw error;
    }
  }

  /** A request begins; it calls `leave` once, at its end. */
  enter(): void {
    this.#streams += 1;
  }

  leave(): void {
    this.#streams -= 1;
    if (this.#streams === 0 && this.#onGone !== null) this.#go(this.#onGone);
  }

  /** No other request begins. @param onGone called once, in a later turn, when the last one has ended. */
  retire(onGone: () => void): void {
    this.#onGone = onGone;
    if (this.#streams === 0) this.#go(onGone);
  }

  /** What ends with a request may still count in the same turn. */
  #go(onGone: () => void): void {
    this.#onGone = null;
    this.#clock.after(0, () => {
      this.close();
      onGone();
    });
  }

  /** No request goes by it any more. */
  close(): void {
    for (const user of this.users) user.forget(this);
    this.users.clear();
    this.#tallies.close();
  }
}
