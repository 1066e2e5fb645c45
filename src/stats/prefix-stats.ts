// All stats under one prefix, shared by the scopes that have opened it: tables with their cells, and what has come by name. Thousands
// of clusters have a table and nothing else, so the rest is made when it is needed.

import type { Derivation, DerivedTable } from './derived-table.ts';
import { HistogramStat } from './histogram-stat.ts';
import type { StatList } from './listing.ts';
import { CellStat, DerivedGauge, type NumericStat, type StatSource, TextReadout } from './stat.ts';
import { byName, type StatTable, statTable } from './stat-table.ts';

/** What the stats of a prefix need of their store. */
export interface PrefixHost extends StatSource {
  allocateCells(count: number): number;
  retireBlock(table: StatTable, cell: number): void;
  retireCell(cell: number): void;
}

export type SingleKind = 'counter' | 'gauge';

interface Block {
  readonly table: StatTable;
  readonly cell: number;
}

interface Single {
  readonly kind: SingleKind;
  readonly name: string;
  readonly cell: number;
}

type Singles = Record<SingleKind, Map<string, number>>;

export class PrefixStats {
  readonly prefix: string;
  /** Scopes open under this prefix. */
  openScopes = 0;
  readonly #host: PrefixHost;
  #isLive = true;
  readonly #blocks: Block[] = [];
  #singles: Singles | undefined;
  /** Histograms with a block of their own, by name. */
  #times: Map<string, Block> | undefined;
  #derivations: readonly Derivation[] = NONE;
  #texts: Map<string, TextReadout> | undefined;

  constructor(prefix: string, host: PrefixHost) {
    this.prefix = prefix;
    this.#host = host;
  }

  get isLive(): boolean {
    return this.#isLive;
  }

  /** For the order of owners. */
  get name(): string {
    return this.prefix;
  }

  get texts(): Iterable<TextReadout> {
    return this.#texts?.values() ?? NONE;
  }

  /** Stats by name that workers have asked for. */
  get dynamicCount(): number {
    return (this.#singles?.counter.size ?? 0) + (this.#times?.size ?? 0);
  }

  /** First cell of the table's block, allocated on first demand. */
  block(table: StatTable): number {
    const known = this.#blocks.find((block) => block.table === table);
    if (known !== undefined) return known.cell;
    const block = this.#allocate(table);
    this.#blocks.push(block);
    return block.cell;
  }

  /** Cell of a stat by name: that of a table's row where one has it, otherwise one of its own. */
  single(kind: SingleKind, name: string): number {
    const known = this.cellOf(kind, name);
    if (known !== undefined) return known;
    const cell = this.#host.allocateCells(1);
    this.#singles ??= { counter: new Map(), gauge: new Map() };
    this.#singles[kind].set(name, cell);
    return cell;
  }

  cellOf(kind: SingleKind, name: string): number | undefined {
    const single = this.#singles?.[kind].get(name);
    if (single !== undefined) return single;
    for (const { table, cell } of this.#blocks) {
      if (!Object.hasOwn(table.index, name)) continue;
      const row = table.rows[table.index[name]!]!;
      if (row.kind === kind) return cell + row.index;
    }
    return undefined;
  }

  /** Cell of a histogram of milliseconds by name. */
  time(name: string): number {
    const known = this.timeCell(name);
    if (known !== undefined) return known;
    const block = this.#allocate(statTable({ [name]: 'histogram:ms' }));
    this.#times ??= new Map();
    this.#times.set(name, block);
    return block.cell;
  }

  /** Cell of a histogram that `time` has made. */
  timeCell(name: string): number | undefined {
    return this.#times?.get(name)?.cell;
  }

  derive<Source>(table: DerivedTable<Source>, source: Source): void {
    const derivation = { table, source, seen: 0 } as Derivation;
    this.#derivations = [...this.#derivations.filter((before) => before.table !== derivation.table), derivation];
  }

  text(name: string): TextReadout {
    const known = this.#texts?.get(name);
    if (known) return known;
    const text = new TextReadout(this.prefix + name, this.#host, this);
    this.#texts ??= new Map();
    this.#texts.set(name, text);
    return text;
  }

  /** Calls back for each stretch of cells of one kind. */
  eachStretch(kind: SingleKind, visit: (cell: number, count: number) => void): void {
    for (const { table, cell } of this.#blocks) {
      const [from, to] = kind === 'counter' ? [0, table.gaugesAt] : [table.gaugesAt, table.histogramsAt];
      visit(cell + from, to - from);
    }
    for (const cell of this.#singles?.[kind].values() ?? NONE) visit(cell, 1);
  }

  /** Cells of all histograms. A list: they are asked for with each flush, and each step of a generator is an object. */
  histogramCells(): readonly number[] {
    const cells: number[] = [];
    for (const block of this.#blocks) addHistograms(block, cells);
    if (this.#times) for (const block of this.#times.values()) addHistograms(block, cells);
    return cells;
  }

  /** Counters and gauges. */
  numericLists(): StatList<NumericStat>[] {
    const lists: StatList<NumericStat>[] = this.#blocks.map((block) => this.#tableList(block));
    if (this.#singles) lists.push(this.#singlesList(this.#singles));
    for (const derivation of this.#derivations) lists.push(this.#derivedList(derivation));
    return lists;
  }

  histogramLists(): StatList<HistogramStat>[] {
    const lists = this.#blocks.map((block) => this.#histogramList(block));
    if (this.#times) lists.push(this.#timesList(this.#times));
    return lists;
  }

  histogram(table: StatTable, cell: number, name: string): HistogramStat {
    const { unit, index } = table.rows[table.index[name]!]!;
    return new HistogramStat(this.prefix + name, unit!, cell + index, this.#host, this);
  }

  /** Makes all stats of the prefix disappear; the cells are freed when no worker can write them any more. */
  retire(): void {
    this.#isLive = false;
    for (const { table, cell } of this.#allBlocks()) this.#host.retireBlock(table, cell);
    for (const { cell } of this.#allSingles()) this.#host.retireCell(cell);
  }

  #allocate(table: StatTable): Block {
    return { table, cell: this.#host.allocateCells(table.size) };
  }

  *#allBlocks(): Generator<Block> {
    yield* this.#blocks;
    if (this.#times) yield* this.#times.values();
  }

  #histogramList({ table: { histogramsByName: rows }, cell }: Block): StatList<HistogramStat> {
    return {
      shape: rows,
      length: rows.length,
      kindAt: () => 'histogram',
      nameAt: (at) => rows[at]!.name,
      make: (at, name) => new HistogramStat(name, rows[at]!.unit, cell + rows[at]!.index, this.#host, this),
    };
  }

  #tableList({ table: { numericByName: rows }, cell }: Block): StatList<NumericStat> {
    return {
      shape: rows,
      length: rows.length,
      kindAt: (at) => rows[at]!.kind,
      nameAt: (at) => rows[at]!.name,
      make: (at, name) => new CellStat(rows[at]!.kind, name, cell + rows[at]!.index, this.#host, this),
    };
  }

  #singlesList(singles: Singles): StatList<NumericStat> {
    const sorted = [...this.#allSingles(singles)].sort(byName);
    return {
      shape: undefined,
      length: sorted.length,
      kindAt: (at) => sorted[at]!.kind,
      nameAt: (at) => sorted[at]!.name,
      make: (at, name) => new CellStat(sorted[at]!.kind, name, sorted[at]!.cell, this.#host, this),
    };
  }

  #derivedList(derivation: Derivation): StatList<NumericStat> {
    const { rowsByName: rows } = derivation.table;
    return {
      shape: rows,
      length: rows.length,
      kindAt: () => 'gauge',
      nameAt: (at) => rows[at]!.name,
      make: (at, name) => new DerivedGauge(name, rows[at]!, derivation, this.#host, this),
    };
  }

  #timesList(times: ReadonlyMap<string, Block>): StatList<HistogramStat> {
    const sorted = Array.from(times, ([name, { table, cell }]) => ({ name, row: table.histogramsByName[0]!, cell }));
    sorted.sort(byName);
    return {
      shape: undefined,
      length: sorted.length,
      kindAt: () => 'histogram',
      nameAt: (at) => sorted[at]!.name,
      make: (at, name) => new HistogramStat(name, sorted[at]!.row.unit, sorted[at]!.cell, this.#host, this),
    };
  }

  *#allSingles(singles = this.#singles): Generator<Single> {
    if (singles === undefined) return;
    for (const kind of ['counter', 'gauge'] as const) {
      for (const [name, cell] of singles[kind]) yield { kind, name, cell };
    }
  }
}

const NONE: readonly never[] = [];

function addHistograms({ table, cell }: Block, cells: number[]): void {
  for (let index = table.histogramsAt; index < table.size; index++) cells.push(cell + index);
}
