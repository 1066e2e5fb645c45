// All stats of the process: makes their cells, knows their names, adds up what the threads have counted.
// Main thread. Names live in scopes; reading asks nothing of the workers, it looks at their cells.

import { WeirError } from '../base/errors.ts';
import type { NameFilter } from '../base/name-filter.ts';
import { TimeSlice } from '../base/time-slice.ts';
import { HistogramMerger } from '../wasm/histogram-merger.ts';
import { HistogramRecorder, isRecordable, MAX_HISTOGRAM_VALUE } from '../wasm/histogram-recorder.ts';
import { MAIN_SLAB, workerSlab } from '../wasm/shared-memory.ts';
import type { SharedMemoryOwner } from '../wasm/shared-memory-owner.ts';
import { StatsKernel } from '../wasm/stats.ts';
import { HistogramSpan } from '../wasm/stats-exports.ts';
import { CounterLatch } from './counter-latch.ts';
import { Families, type FamiliesOptions, type FamilyBatch } from './families.ts';
import { DEFAULT_BUCKET_BOUNDS, type HistogramReader, type HistogramSpanName } from './histogram-stat.ts';
import { Listing, type ListingOptions, type NameSelection } from './listing.ts';
import { NameParts } from './name-parts.ts';
import { type PrefixHost, PrefixStats } from './prefix-stats.ts';
import { RecentLookups } from './recent-lookups.ts';
import { Scope } from './scope.ts';
import { SortedList } from './sorted-list.ts';
import { CombinedStat, type NamedStat, type NumericStat, type TextReadoutStat } from './stat.ts';
import { type CellStore, StatBlock } from './stat-block.ts';
import { byName, type StatRows, type StatTable } from './stat-table.ts';
import { STATISTICS_STATS } from './tables/statistics.ts';
import { type TaggedName, type TagOptions, TagProducer } from './tags/tag-producer.ts';
import type { DynamicStatName } from './worker-stats.ts';

export interface StatsStoreOptions {
  readonly owner: SharedMemoryOwner;
  /** The compiled stats module. */
  readonly module: WebAssembly.Module;
  readonly tags?: TagOptions;
  /** Which stats are shown, by their whole names; all of them without it. */
  readonly accepts?: (name: string) => boolean;
  /** Upper bounds of the buckets of histograms, by their whole names; undefined for the default ones. */
  readonly bucketBounds?: (name: string) => readonly number[] | undefined;
}

const NUMERIC = {
  listsOf: (owner: PrefixStats) => owner.numericLists(),
  combine: (a: NumericStat, b: NumericStat) => (a.kind === b.kind ? new CombinedStat(a, b) : undefined),
};
const HISTOGRAMS = { listsOf: (owner: PrefixStats) => owner.histogramLists(), combine: () => undefined };

/** Stats handed out at a time by listings. */
const BATCH_SIZE = 256;
/** Names that workers may make up under one prefix: a client must not be able to fill the memory. */
const MAX_DYNAMIC_STATS_PER_SCOPE = 16_384;

export class StatsStore {
  /** How handles write and read cells. */
  readonly cells: CellStore;
  /** Of stats by their names as text. */
  readonly lookups = new RecentLookups();
  readonly accepts: ((name: string) => boolean) | undefined;
  readonly #owner: SharedMemoryOwner;
  readonly #kernel: StatsKernel;
  readonly #merger: HistogramMerger;
  readonly #recorder: HistogramRecorder;
  readonly #tags: TagProducer;
  readonly #bucketBounds: (name: string) => readonly number[] | undefined;
  readonly #latch: CounterLatch;
  readonly #host: PrefixHost;
  readonly #prefixes = new Map<string, PrefixStats>();
  /** Blocks without names: per-host stats, which listings show in their own way. */
  readonly #unnamed = new Map<StatTable, Set<number>>();
  /** Stats and samples that found no room. Made beforehand: when it is needed there is none for it. */
  readonly #counts: StatBlock<{ readonly overflow: 'counter' }>;
  readonly #owners = new SortedList<PrefixStats>();

  /** @throws WeirError WEIR_STAT_TAG or WEIR_WASM_LAYOUT. */
  constructor(options: StatsStoreOptions) {
    this.#owner = options.owner;
    this.#kernel = new StatsKernel(options.owner, options.module);
    this.#merger = new HistogramMerger(options.owner, options.module);
    this.#recorder = new HistogramRecorder(options.owner.shared, options.module);
    this.#tags = new TagProducer(options.tags);
    this.accepts = options.accepts;
    this.#bucketBounds = options.bucketBounds ?? (() => undefined);
    this.cells = this.#cellStore();
    this.#latch = this.newLatch();
    this.#host = this.#prefixHost();
    this.#counts = this.scope('stats.').allocate(STATISTICS_STATS);
  }

  /** Opens a scope; `prefix` ends with a dot, or is empty for names at the top. */
  scope(prefix: string): Scope {
    const stats = this.#prefixes.get(prefix) ?? this.#addPrefix(prefix);
    stats.openScopes += 1;
    return new Scope(this, stats);
  }

  /** Called by Scope.close. */
  release(stats: PrefixStats): void {
    stats.openScopes -= 1;
    if (stats.openScopes > 0) return;
    this.#prefixes.delete(stats.prefix);
    stats.retire();
  }

  /**
   * Cells that no listing of stats shows, such as those of a host. There are very many of them, so that nothing is kept but
   * their numbers. @returns the first cell.
   */
  allocateUnnamed(table: StatTable): number {
    const cell = this.#owner.cells.allocate(table.size);
    const cells = this.#unnamed.get(table) ?? new Set();
    this.#unnamed.set(table, cells.add(cell));
    return cell;
  }

  /** To read and write cells of allocateUnnamed. */
  unnamedBlock<Rows extends StatRows>(table: StatTable<Rows>, cell: number): StatBlock<Rows> {
    return new StatBlock(table, cell, this.cells);
  }

  /** For one who wants increments of his own of such cells, whatever is reset. */
  newLatch(): CounterLatch {
    return new CounterLatch((cell) => this.#kernel.counted(cell));
  }

  /** Gives cells of allocateUnnamed back once no worker can write them any more. */
  retireUnnamed(table: StatTable, cell: number): void {
    if (this.#unnamed.get(table)?.delete(cell)) this.#host.retireBlock(table, cell);
  }

  /**
   * Cell of a counter, or of a histogram of times, that a worker has met at run time; the same name gets the same cell.
   * @returns 0 when no scope of that prefix is open any more, when it would not be shown, or when there is no room: the worker then
   * counts no further. Refusals for want of room count in `stats.overflow`.
   */
  dynamicCell({ scope, name, isTime = false }: DynamicStatName): number {
    // A worker that waits for histogram memory asks this way too.
    this.#unlessFull(() => this.#merger.arenas.refillAll());
    this.lookups.record(scope + name);
    const owner = this.#openPrefix(scope);
    if (!owner) return 0;
    const ownName = scope.slice(owner.prefix.length) + name;
    const known = isTime ? owner.timeCell(ownName) : owner.cellOf('counter', ownName);
    if (known !== undefined) return known;
    // What nobody is shown needs no cell.
    if (this.accepts?.(scope + name) === false) return 0;
    if (owner.dynamicCount < MAX_DYNAMIC_STATS_PER_SCOPE) {
      return this.#unlessFull(() => (isTime ? owner.time(ownName) : owner.single('counter', ownName))) ?? 0;
    }
    this.#counts.add('overflow');
    return 0;
  }

  /** The tags of a name, whether or not there is a stat of it. */
  tagged(name: string): TaggedName {
    return this.#tags.produce(name);
  }

  /** Value of a counter or gauge by its full name; undefined when there is none. For tests and the library. */
  value(name: string): number | undefined {
    this.lookups.record(name);
    const cell = this.#cellNamed('counter', name) ?? this.#cellNamed('gauge', name);
    return cell === undefined ? undefined : this.cells.total(cell) + 0;
  }

  #cellNamed(kind: 'counter' | 'gauge', name: string): number | undefined {
    for (let dot = name.length; dot >= 0; dot = dot === 0 ? -1 : name.lastIndexOf('.', dot - 1)) {
      const cell = this.#prefixes.get(name.slice(0, dot + 1))?.cellOf(kind, name.slice(dot + 1));
      if (cell !== undefined) return cell;
    }
    return undefined;
  }

  /**
   * Cell of a counter or gauge by the full name that another process has it under; made where somebody has a scope for it.
   * @returns undefined where nobody has, or there is no room, or it would not be shown.
   */
  cellForImport(kind: 'counter' | 'gauge', name: string): number | undefined {
    const known = this.#cellNamed(kind, name);
    if (known !== undefined || this.accepts?.(name) === false) return known;
    const owner = this.#openPrefix(name);
    return owner && this.#unlessFull(() => owner.single(kind, name.slice(owner.prefix.length)));
  }

  /** Adds what another process has counted. @param flushed the part of it that its sinks have been told of. */
  importCounter(cell: number, count: number, flushed: number): void {
    this.cells.add(cell, count);
    this.#latch.skip(cell, flushed);
  }

  /** What another process's part of a gauge is now; 0 for none. */
  importGauge(cell: number, value: number): void {
    this.#kernel.setForeignPart(cell, value);
  }

  /** Cell of a counter for whoever reads it again and again: no text is looked up that counts as a lookup. */
  counterCell(prefix: string, name: string): number | undefined {
    return this.#prefixes.get(prefix)?.cellOf('counter', name);
  }

  /** The same for a gauge. */
  gaugeCell(prefix: string, name: string): number | undefined {
    return this.#prefixes.get(prefix)?.cellOf('gauge', name);
  }

  /** Samples of a histogram by its cell. */
  histogramCount(cell: number, span: HistogramSpanName): number {
    return this.#merger.count(cell, HistogramSpan[span]);
  }

  /** Values at ascending quantiles of 0 to 1 as they were recorded; NaN for each where there are no samples. */
  histogramQuantiles(cell: number, span: HistogramSpanName, qs: readonly number[]): Float64Array {
    return this.#merger.quantiles(cell, HistogramSpan[span], qs);
  }

  /**
   * Counters and gauges together, in the order of their names, in batches. Between batches main's event loop
   * runs when it is due, so a listing of any length does not stop it; owners that are added meanwhile are not shown.
   * @param filter the names that are asked for; all without one.
   */
  countersAndGauges(filter?: NameFilter): AsyncGenerator<readonly NumericStat[]> {
    return this.#inBatches<NumericStat>({ ...NUMERIC, selection: this.#selection(filter) });
  }

  /** Histograms in the order of their names, in batches. */
  histograms(filter?: NameFilter): AsyncGenerator<readonly HistogramReader[]> {
    return this.#inBatches<HistogramReader>({ ...HISTOGRAMS, selection: this.#selection(filter) });
  }

  /** Counters or gauges by family, in the order of the families' names, then of their own. */
  numericFamilies(kind: 'counter' | 'gauge', filter?: NameFilter): AsyncGenerator<FamilyBatch<NumericStat>> {
    return this.#byFamily({ ...NUMERIC, kind, selection: this.#selection(filter) });
  }

  /** Histograms in the same way. */
  histogramFamilies(filter?: NameFilter): AsyncGenerator<FamilyBatch<HistogramReader>> {
    return this.#byFamily<HistogramReader>({ ...HISTOGRAMS, kind: 'histogram', selection: this.#selection(filter) });
  }

  /** Text readouts in the order of their names; there are few. */
  textReadouts(filter?: NameFilter): readonly TextReadoutStat[] {
    const texts = [...this.#prefixes.values()].flatMap((stats) => [...stats.texts]).sort(byName);
    const { pick } = this.#selection(filter);
    return pick === undefined ? texts : pick(texts.map(({ name }) => name)).map((at) => texts[at]!);
  }

  /**
   * All counters read 0 from here on, and lookups are forgotten. The cells stay as they are: workers may be writing them.
   */
  resetCounters(): void {
    this.lookups.clear();
    for (const stats of this.#prefixes.values()) {
      stats.eachStretch('counter', (cell, count) => this.#kernel.reset(cell, count));
    }
    for (const [table, cells] of this.#unnamed) {
      for (const cell of cells) this.#kernel.reset(cell, table.gaugesAt);
    }
  }

  /**
   * Merges what all threads have recorded since the last time: it becomes the interval of each histogram and
   * joins its cumulative counts. In slices, like listings.
   * @throws WeirError WEIR_SHARED_MEMORY_FULL; no sample is lost, the next merge finds it.
   */
  async mergeHistograms(): Promise<void> {
    const slice = new TimeSlice();
    for (const stats of this.#prefixes.values()) {
      for (const cell of stats.histogramCells()) {
        this.#merger.merge(cell);
        if (!slice.isOver()) continue;
        await slice.rest();
        if (stats.openScopes === 0) break;
      }
    }
    this.#unlessFull(() => this.#merger.arenas.refillAll());
  }

  /** The same for one histogram of `allocateUnnamed`, whose owner says when its intervals begin. */
  mergeUnnamed(cell: number): void {
    this.#unlessFull(() => this.#merger.merge(cell));
  }

  /** Takes what a worker that has ended held in gauges and in host and cluster records; its counters stay. */
  clearWorker(workerIndex: number): void {
    const slab = workerSlab(workerIndex);
    for (const stats of this.#prefixes.values()) {
      stats.eachStretch('gauge', (cell, count) => this.#kernel.zeroSlab(cell, count, slab));
    }
    for (const [{ gaugesAt, histogramsAt }, cells] of this.#unnamed) {
      for (const cell of cells) this.#kernel.zeroSlab(cell + gaugesAt, histogramsAt - gaugesAt, slab);
    }
    this.#owner.clearWorker(workerIndex);
  }

  /** Main makes its own offer of blocks when it needs one. */
  #record(cell: number, value: number): void {
    if (!isRecordable(value)) {
      throw new WeirError('WEIR_HISTOGRAM', `value: ${value} is not within 0 to ${MAX_HISTOGRAM_VALUE}`);
    }
    if (this.#recorder.record(cell, value)) return;
    this.#unlessFull(() => {
      this.#merger.arenas.refill(MAIN_SLAB);
      this.#recorder.record(cell, value);
    });
  }

  /** Statistics never stop the traffic that they count: for want of memory they count the want. */
  #unlessFull<Result>(step: () => Result): Result | undefined {
    try {
      return step();
    } catch (error) {
      if (!(error instanceof WeirError && error.code === 'WEIR_SHARED_MEMORY_FULL')) throw error;
      this.#counts.add('overflow');
      return undefined;
    }
  }

  #addPrefix(prefix: string): PrefixStats {
    const stats = new PrefixStats(prefix, this.#host);
    this.#prefixes.set(prefix, stats);
    this.#owners.add(stats);
    return stats;
  }

  #selection(filter: NameFilter | undefined): NameSelection {
    const { accepts } = this;
    const picked = (names: readonly string[]): readonly number[] => filter?.pick(names) ?? [...names.keys()];
    const pick =
      accepts === undefined
        ? filter?.pick
        : (names: readonly string[]) => picked(names).filter((at) => accepts(names[at]!));
    return { parts: new NameParts(filter?.prefix, filter?.parts), pick };
  }

  async *#inBatches<Stat extends NamedStat>(
    options: Omit<ListingOptions<PrefixStats, Stat>, 'owners'>,
  ): AsyncGenerator<readonly Stat[]> {
    const listing = new Listing({ ...options, owners: await this.#owners.items() });
    const slice = new TimeSlice();
    for (;;) {
      // What the caller does with a batch counts as well: that is most of the work.
      if (slice.isOverNow()) await slice.rest();
      const batch = listing.take(BATCH_SIZE);
      if (batch === undefined) return;
      if (batch.length > 0) yield batch;
    }
  }

  async *#byFamily<Stat extends NamedStat>(
    options: Omit<FamiliesOptions<PrefixStats, Stat>, 'owners' | 'tags' | 'batchSize'>,
  ): AsyncGenerator<FamilyBatch<Stat>> {
    const owners = await this.#owners.items();
    const families = new Families({ ...options, owners, tags: this.#tags, batchSize: BATCH_SIZE });
    yield* families.batches(new TimeSlice());
  }

  /** The longest open prefix that `scope` begins with. */
  #openPrefix(scope: string): PrefixStats | undefined {
    for (let end = scope.length; end > 0; end = scope.lastIndexOf('.', end - 2) + 1) {
      const stats = this.#prefixes.get(scope.slice(0, end));
      if (stats) return stats;
    }
    return undefined;
  }

  #cellStore(): CellStore {
    const { shared } = this.#owner;
    const kernel = this.#kernel;
    return {
      add(cell, n) {
        shared.f64[cell]! += n;
      },
      set(cell, value) {
        shared.f64[cell] = value;
      },
      total: (cell) => kernel.total(cell),
      record: (cell, value) => this.#record(cell, value),
    };
  }

  #prefixHost(): PrefixHost {
    const { cells, reclaimer } = this.#owner;
    const merger = this.#merger;
    const latch = this.#latch;
    return {
      histograms: merger,
      allocateCells: (count) => cells.allocate(count),
      retireBlock: (table, cell) =>
        reclaimer.retire(() => {
          for (let index = table.histogramsAt; index < table.size; index++) merger.release(cell + index);
          latch.forget(cell, table.gaugesAt);
          cells.free(cell, table.size);
        }),
      retireCell: (cell) =>
        reclaimer.retire(() => {
          latch.forget(cell, 1);
          cells.free(cell, 1);
        }),
      total: (cell) => this.cells.total(cell),
      takeIncrement: (cell) => latch.take(cell),
      increment: (cell) => latch.peek(cell),
      tagged: (name) => this.tagged(name),
      bucketBounds: (name) => this.#bucketBounds(name) ?? DEFAULT_BUCKET_BOUNDS,
    };
  }
}
