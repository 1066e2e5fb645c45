// Cells that main has allocated, with main's own way to write and read them. Main writes its own slab, so
// it may add to the same counter as the workers.

import type { StatRows, StatTable } from './stat-table.ts';

/** What handles need of their store. */
export interface CellStore {
  /** Adds to main's copy of a cell. */
  add(cell: number, n: number): void;
  /** Sets main's copy of a cell. */
  set(cell: number, value: number): void;
  /** Total over all slabs, less the baseline. */
  total(cell: number): number;
  /** Counts a value in main's copy of a histogram. */
  record(cell: number, value: number): void;
}

type NameOf<Rows extends StatRows> = keyof Rows & string;

/** All stats of one table, in consecutive cells. */
export class StatBlock<Rows extends StatRows = StatRows> {
  readonly table: StatTable<Rows>;
  /** Id of the first cell: what a snapshot carries as its stat block. */
  readonly cell: number;
  readonly #store: CellStore;

  constructor(table: StatTable<Rows>, cell: number, store: CellStore) {
    this.table = table;
    this.cell = cell;
    this.#store = store;
  }

  /** Adds to a counter, or to main's part of a gauge. */
  add(name: NameOf<Rows>, n = 1): void {
    this.#store.add(this.cell + this.table.index[name], n);
  }

  /** Sets main's part of a gauge: the gauge itself where no worker writes it. */
  set(name: NameOf<Rows>, value: number): void {
    this.#store.set(this.cell + this.table.index[name], value);
  }

  /** Records a value of 0 to 2^53 in a histogram; fractions are cut off. */
  record(name: NameOf<Rows>, value: number): void {
    this.#store.record(this.cell + this.table.index[name], value);
  }

  /** Total over all threads. */
  value(name: NameOf<Rows>): number {
    return this.#store.total(this.cell + this.table.index[name]) + 0;
  }
}

/** The block of a table, by the type of the table. */
export type StatBlockOf<Table> = Table extends StatTable<infer Rows> ? StatBlock<Rows> : never;

/** A counter of its own, outside any table. Main only. */
export class Counter {
  readonly cell: number;
  readonly #store: CellStore;

  constructor(cell: number, store: CellStore) {
    this.cell = cell;
    this.#store = store;
  }

  get value(): number {
    return this.#store.total(this.cell) + 0;
  }

  add(n = 1): void {
    this.#store.add(this.cell, n);
  }
}

/** A gauge of its own, outside any table. Main only. */
export class Gauge extends Counter {
  readonly #cells: CellStore;

  constructor(cell: number, store: CellStore) {
    super(cell, store);
    this.#cells = store;
  }

  set(value: number): void {
    this.#cells.set(this.cell, value);
  }
}
