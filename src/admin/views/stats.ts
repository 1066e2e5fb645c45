// Statistics, as the admin interface reads them.

/** One counter or gauge. */
export interface NumericStatView {
  readonly name: string;
  readonly kind: 'counter' | 'gauge';
  /** Sum over all workers. */
  readonly value: number;
  /** Written at least once. */
  readonly isUsed: boolean;
}

export interface TextStatView {
  readonly name: string;
  readonly value: string;
  readonly isUsed: boolean;
}

/** What was recorded between the last two merges, or since the start. */
export type HistogramSpanName = 'interval' | 'cumulative';

export interface HistogramView {
  readonly name: string;
  /** A merge has seen a sample. */
  readonly isUsed: boolean;
  /** Values at ascending quantiles of 0 to 1; NaN for each where there are no samples. */
  quantiles(span: HistogramSpanName, qs: readonly number[]): Float64Array;
  /** Samples at or below each of the ascending bounds. */
  buckets(span: HistogramSpanName, bounds: readonly number[]): Float64Array;
  /** Bins with samples, ascending. */
  bins(span: HistogramSpanName): readonly { readonly left: number; readonly width: number; readonly count: number }[];
}

/**
 * StatsStore of src/stats. Every list is sorted by name; batches leave the main thread free between them. With a prefix of
 * names, stats that do not begin so may be missing.
 */
export interface StatsView {
  countersAndGauges(namePrefix: string): AsyncIterable<readonly NumericStatView[]>;
  histograms(namePrefix: string): AsyncIterable<readonly HistogramView[]>;
  textReadouts(): readonly TextStatView[];
}
