// All stats under one prefix, shared by the scopes that have opened it.

import { HistogramStat } from './histogram-stat.ts';
import { SingleBatch } from './single-batch.ts';
import type { Additions } from './sorted-list.ts';
import { CellStat, DerivedGauge, type NumericStat, type StatLife, type StatSource, TextReadout } from './stat.ts';
import { type StatTable, statTable } from './stat-table.ts';

/** What the stats of a prefix need of their store. */
export interface PrefixHost extends StatSource {
  allocateCells(count: number): number;
  retireBlock(table: StatTable, cell: number): void;
  retireCell(cell: number): void;
  /** Names were added: the next listing has to take them in. */
  announceNumeric(added: Additions<NumericStat>): void;
  announceHistograms(added: Additions<HistogramStat>): void;
}

export type SingleKind = 'counter' | 'gauge';

export class PrefixStats {
  readonly prefix: string;
  /** Scopes open under this prefix. */
  openScopes = 0;
  readonly #host: PrefixHost;
  readonly #life: StatLife = { isLive: true };
  readonly #blocks = new Map<StatTable, number>();
  readonly #singles: Record<SingleKind, Map<string, number>> = { counter: new Map(), gauge: new Map() };
  /** Singles that the next listing takes in. */
  #batch: SingleBatch | undefined;
  /** Histograms with a block of their own. */
  readonly #times = new Map<string, StatTable>();
  readonly #derived = new Map<string, StatLife>();
  readonly #texts = new Map<string, TextReadout>();

  constructor(prefix: string, host: PrefixHost) {
    this.prefix = prefix;
    this.#host = host;
  }

  get texts(): Iterable<TextReadout> {
    return this.#texts.values();
  }

  /** Stats by name that workers have asked for. */
  get dynamicCount(): number {
    return this.#singles.counter.size + this.#times.size;
  }

  /** First cell of the table's block, allocated on first demand. */
  block(table: StatTable): number {
    const known = this.#blocks.get(table);
    if (known !== undefined) return known;
    const cell = this.#host.allocateCells(table.size);
    this.#blocks.set(table, cell);
    const isLive = (): boolean => this.#life.isLive;
    this.#host.announceNumeric(additions(isLive, () => this.#tableStats(table, cell)));
    this.#host.announceHistograms(additions(isLive, () => this.#tableHistograms(table, cell)));
    return cell;
  }

  /** Cell of a stat by name: that of a table's row where one has it, otherwise one of its own. */
  single(kind: SingleKind, name: string): number {
    const known = this.cellOf(kind, name);
    if (known !== undefined) return known;
    const cell = this.#host.allocateCells(1);
    this.#singles[kind].set(name, cell);
    this.#openBatch().add(kind, this.prefix + name, cell);
    return cell;
  }

  cellOf(kind: SingleKind, name: string): number | undefined {
    const single = this.#singles[kind].get(name);
    if (single !== undefined) return single;
    for (const [table, cell] of this.#blocks) {
      if (!Object.hasOwn(table.index, name)) continue;
      const row = table.rows[table.index[name]!]!;
      if (row.kind === kind) return cell + row.index;
    }
    return undefined;
  }

  /** Cell of a histogram of milliseconds by name. */
  time(name: string): number {
    const table = this.#times.get(name) ?? statTable({ [name]: 'histogram:ms' });
    const cell = this.block(table);
    this.#times.set(name, table);
    return cell;
  }

  /** Cell of a histogram that `time` has made. */
  timeCell(name: string): number | undefined {
    const table = this.#times.get(name);
    return table && this.#blocks.get(table);
  }

  derive(name: string, read: () => number): void {
    const before = this.#derived.get(name);
    if (before) before.isLive = false;
    const life: StatLife = { isLive: true };
    this.#derived.set(name, life);
    const stat = new DerivedGauge(this.prefix + name, read, this.#host, life);
    this.#host.announceNumeric(
      additions(
        () => life.isLive,
        () => [stat],
      ),
    );
  }

  text(name: string): TextReadout {
    const known = this.#texts.get(name);
    if (known) return known;
    const text = new TextReadout(this.prefix + name, this.#host, this.#life);
    this.#texts.set(name, text);
    return text;
  }

  /** Calls back for each stretch of cells of one kind. */
  eachStretch(kind: SingleKind, visit: (cell: number, count: number) => void): void {
    for (const [table, cell] of this.#blocks) {
      const [from, to] = kind === 'counter' ? [0, table.gaugesAt] : [table.gaugesAt, table.histogramsAt];
      visit(cell + from, to - from);
    }
    for (const cell of this.#singles[kind].values()) visit(cell, 1);
  }

  /** Cells of all histograms. */
  *histogramCells(): Generator<number> {
    for (const [table, cell] of this.#blocks) {
      for (let index = table.histogramsAt; index < table.size; index++) yield cell + index;
    }
  }

  /** Makes all stats of the prefix disappear; the cells are freed when no worker can write them any more. */
  retire(): void {
    this.#life.isLive = false;
    for (const life of this.#derived.values()) life.isLive = false;
    for (const [table, cell] of this.#blocks) this.#host.retireBlock(table, cell);
    for (const singles of Object.values(this.#singles)) {
      for (const cell of singles.values()) this.#host.retireCell(cell);
    }
  }

  #openBatch(): SingleBatch {
    if (this.#batch?.isOpen) return this.#batch;
    this.#batch = new SingleBatch(this.#host, this.#life);
    this.#host.announceNumeric(this.#batch);
    return this.#batch;
  }

  #tableStats(table: StatTable, cell: number): NumericStat[] {
    const stats: NumericStat[] = [];
    for (const row of table.rows) {
      if (row.kind === 'histogram') break;
      stats.push(new CellStat(row.kind, this.prefix + row.name, cell + row.index, this.#host, this.#life));
    }
    return stats;
  }

  #tableHistograms(table: StatTable, cell: number): HistogramStat[] {
    return table.rows
      .slice(table.histogramsAt)
      .map((row) => new HistogramStat(this.prefix + row.name, row.unit!, cell + row.index, this.#host, this.#life));
  }
}

function additions<Item>(isLive: () => boolean, make: () => Item[]): Additions<Item> {
  return {
    get isLive() {
      return isLive();
    },
    make,
  };
}
