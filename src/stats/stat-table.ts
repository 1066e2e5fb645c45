// Stat tables: the names and kinds of one owner's stats (a cluster, a listener), declared once. Main makes
// a block of consecutive cells from a table, workers reach each stat at a constant index in that block.
// A name may hold dots; it is what follows the scope's prefix.

/** Unit of a histogram's values: ms and us are times, percent is recorded as a ratio times 1,000,000. */
export type HistogramUnit = 'ms' | 'us' | 'bytes' | 'percent' | 'count';

export type StatRowKind = 'counter' | 'gauge' | `histogram:${HistogramUnit}`;
export type StatRows = Readonly<Record<string, StatRowKind>>;

export interface StatRow {
  readonly name: string;
  readonly kind: 'counter' | 'gauge' | 'histogram';
  /** Only of histograms. */
  readonly unit: HistogramUnit | undefined;
  /** Place of the row's cell in the block. */
  readonly index: number;
}

export interface StatTable<Rows extends StatRows = StatRows> {
  /** Place of each stat's cell in a block of this table. */
  readonly index: Readonly<Record<keyof Rows, number>>;
  /** In cell order: counters, then gauges, then histograms. */
  readonly rows: readonly StatRow[];
  /** First gauge; all counters lie before it. */
  readonly gaugesAt: number;
  /** First histogram; all gauges lie before it. A histogram's cell holds the address of its bins. */
  readonly histogramsAt: number;
  /** Cells of a block. */
  readonly size: number;
  /** Counters and gauges in the order of their names, as listings show them. */
  readonly numericByName: readonly NumericRow[];
  readonly histogramsByName: readonly HistogramRow[];
}

export interface NumericRow extends StatRow {
  readonly kind: 'counter' | 'gauge';
}

export interface HistogramRow extends StatRow {
  readonly kind: 'histogram';
  readonly unit: HistogramUnit;
}

const KIND_ORDER = ['counter', 'gauge', 'histogram'] as const;

/**
 * Declares the stats of one owner.
 *
 *   const TCP = statTable({ downstream_cx_total: 'counter', downstream_cx_length_ms: 'histogram:ms' });
 *   stats.values[stats.base(block) + TCP.index.downstream_cx_total]! += 1;
 */
export function statTable<const Rows extends StatRows>(declared: Rows): StatTable<Rows> {
  const parsed = Object.entries(declared).map(([name, kind]) => {
    const [rowKind, unit] = kind.split(':') as [StatRow['kind'], HistogramUnit | undefined];
    return { name, kind: rowKind, unit };
  });
  const rows = KIND_ORDER.flatMap((kind) => parsed.filter((row) => row.kind === kind)).map((row, index) => ({
    ...row,
    index,
  }));
  const count = (kind: StatRow['kind']): number => rows.filter((row) => row.kind === kind).length;
  return Object.freeze({
    index: Object.freeze(Object.fromEntries(rows.map((row) => [row.name, row.index]))) as StatTable<Rows>['index'],
    rows: Object.freeze(rows.map((row) => Object.freeze(row))),
    gaugesAt: count('counter'),
    histogramsAt: count('counter') + count('gauge'),
    size: rows.length,
    numericByName: rows.filter((row) => row.kind !== 'histogram').sort(byName) as NumericRow[],
    histogramsByName: rows.filter((row) => row.kind === 'histogram').sort(byName) as HistogramRow[],
  });
}

/** UTF-16 order, which is byte order for all that stat names hold in practice. */
export function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  if (a.name === b.name) return 0;
  return a.name < b.name ? -1 : 1;
}
