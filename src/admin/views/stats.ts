// Statistics, as the admin interface reads them.

import type { NameFilter } from '../../base/name-filter.ts';

export interface TagView {
  readonly name: string;
  readonly value: string;
}

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
  /** Without the values of its tags. */
  readonly extractedName: string;
  readonly tags: readonly TagView[];
  readonly value: string;
  readonly isUsed: boolean;
}

/** What was recorded between the last two merges, or since the start. */
export type HistogramSpanName = 'interval' | 'cumulative';

export interface HistogramBinView {
  readonly left: number;
  readonly width: number;
  readonly count: number;
}

export interface HistogramView {
  readonly name: string;
  /** A merge has seen a sample. */
  readonly isUsed: boolean;
  readonly unit: 'ms' | 'us' | 'bytes' | 'percent' | 'count';
  /** Upper bounds of the buckets that are shown of it, ascending. */
  readonly bucketBounds: readonly number[];
  count(span: HistogramSpanName): number;
  sum(span: HistogramSpanName): number;
  /** Values at ascending quantiles of 0 to 1; NaN for each where there are no samples. */
  quantiles(span: HistogramSpanName, qs: readonly number[]): Float64Array;
  /** Samples at or below each of the ascending bounds. */
  buckets(span: HistogramSpanName, bounds: readonly number[]): Float64Array;
  /** Bins with samples, ascending. */
  bins(span: HistogramSpanName): readonly HistogramBinView[];
}

/** Some stats whose names are the same without the values of their tags; those of one family follow each other. */
export interface FamilyView<Stat> {
  /** Without the values of tags. */
  readonly name: string;
  readonly stats: readonly Stat[];
  /** Of each of the stats. */
  readonly tags: readonly (readonly TagView[])[];
}

/**
 * StatsStore of src/stats. Every list is sorted by name, families by theirs first; batches leave the main thread free between
 * them. A filter says which names are asked for.
 */
export interface StatsView {
  countersAndGauges(filter?: NameFilter): AsyncIterable<readonly NumericStatView[]>;
  histograms(filter?: NameFilter): AsyncIterable<readonly HistogramView[]>;
  textReadouts(filter?: NameFilter): readonly TextStatView[];
  numericFamilies(kind: 'counter' | 'gauge', filter?: NameFilter): AsyncIterable<FamilyView<NumericStatView>>;
  histogramFamilies(filter?: NameFilter): AsyncIterable<FamilyView<HistogramView>>;
  /** What a name is without the values of its tags, and those; also of a name that no stat of it has. */
  tagged(name: string): { readonly extractedName: string; readonly tags: readonly TagView[] };
}
