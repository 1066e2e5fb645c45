// A dotted prefix under which one owner (a cluster, a listener) keeps its stats. Several owners may open the
// same prefix, as two versions of a listener do while the older one drains: they share cells, and the stats
// go when the last of them closes.

import type { DerivedTable } from './derived-table.ts';
import type { HistogramReader } from './histogram-stat.ts';
import type { PrefixStats } from './prefix-stats.ts';
import type { RecentLookups } from './recent-lookups.ts';
import type { TextReadout } from './stat.ts';
import { type CellStore, Counter, Gauge, StatBlock } from './stat-block.ts';
import type { StatRows, StatTable } from './stat-table.ts';

/** What a scope needs of its store. */
export interface ScopeHost {
  readonly cells: CellStore;
  readonly lookups: RecentLookups;
  release(stats: PrefixStats): void;
}

export class Scope {
  /** With its final dot; empty for the root. */
  readonly prefix: string;
  readonly #store: ScopeHost;
  readonly #stats: PrefixStats;
  #isClosed = false;

  /** Scopes are opened by StatsStore.scope. */
  constructor(store: ScopeHost, stats: PrefixStats) {
    this.prefix = stats.prefix;
    this.#store = store;
    this.#stats = stats;
  }

  /**
   * The block of a table; the same cells for everyone who asks under this prefix.
   * @throws WeirError WEIR_SHARED_MEMORY_FULL; nothing has changed then.
   */
  allocate<Rows extends StatRows>(table: StatTable<Rows>): StatBlock<Rows> {
    return new StatBlock(table, this.#stats.block(table), this.#store.cells);
  }

  counter(name: string): Counter {
    this.#store.lookups.record(this.prefix + name);
    return new Counter(this.#stats.single('counter', name), this.#store.cells);
  }

  gauge(name: string): Gauge {
    this.#store.lookups.record(this.prefix + name);
    return new Gauge(this.#stats.single('gauge', name), this.#store.cells);
  }

  /** Cell of a histogram of milliseconds. */
  time(name: string): number {
    this.#store.lookups.record(this.prefix + name);
    return this.#stats.time(name);
  }

  /** Total over all threads of a counter or gauge of this prefix; 0 while there is none of that name. */
  value(name: string): number {
    const cell = this.#stats.cellOf('counter', name) ?? this.#stats.cellOf('gauge', name);
    return cell === undefined ? 0 : this.#store.cells.total(cell) + 0;
  }

  /** What was merged of a histogram of a block. @param block of this scope. */
  histogram<Rows extends StatRows>({ table, cell }: StatBlock<Rows>, name: keyof Rows & string): HistogramReader {
    return this.#stats.histogram(table, cell, name);
  }

  /** Gauges that are worked out whenever they are read; a later source takes the place of the one before. */
  derive<Source>(table: DerivedTable<Source>, source: Source): void {
    this.#stats.derive(table, source);
  }

  textReadout(name: string): TextReadout {
    this.#store.lookups.record(this.prefix + name);
    return this.#stats.text(name);
  }

  /** Idempotent. The names go at once when this was the last scope of its prefix. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#store.release(this.#stats);
  }
}
