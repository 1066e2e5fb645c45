// A histogram as the main thread shows it: what was merged last. Values are in the histogram's unit; percent
// histograms are recorded as ratios times a million and read back as ratios.

import type { HistogramBin } from '../wasm/histogram-merger.ts';
import { HistogramSpan } from '../wasm/stats-exports.ts';
import { Named, type NamedStat, type StatLife, type StatSource } from './stat.ts';
import type { HistogramUnit } from './stat-table.ts';

/** Quantiles that listings show. */
export const LISTED_QUANTILES: readonly number[] = [0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 1];

/** Upper bounds of buckets where none are configured. */
export const DEFAULT_BUCKET_BOUNDS: readonly number[] = [
  0.5, 1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000, 600_000, 1_800_000,
  3_600_000,
];

/** What a percent of 1 (all) is recorded as. */
export const PERCENT_SCALE = 1_000_000;

/** Samples between the last two merges, or all since the start. */
export type HistogramSpanName = keyof typeof HistogramSpan;

export interface HistogramReader extends NamedStat {
  readonly unit: HistogramUnit;
  /** A merge has seen a sample. */
  readonly isUsed: boolean;
  count(span: HistogramSpanName): number;
  /** As far as bins can tell: within 5% of the samples' own sum. */
  sum(span: HistogramSpanName): number;
  /** Values at ascending quantiles of 0 to 1; NaN for each where there are no samples. */
  quantiles(span: HistogramSpanName, qs: readonly number[]): Float64Array;
  /** Upper bounds of the buckets that are shown of it, ascending. */
  readonly bucketBounds: readonly number[];
  /** Samples at or below each of the ascending bounds. */
  buckets(span: HistogramSpanName, bounds: readonly number[]): Float64Array;
  /** All bins with samples, ascending. */
  bins(span: HistogramSpanName): readonly HistogramBin[];
}

export class HistogramStat extends Named implements HistogramReader {
  readonly unit: HistogramUnit;
  readonly cell: number;

  constructor(name: string, unit: HistogramUnit, cell: number, source: StatSource, life: StatLife) {
    super(name, source, life);
    this.unit = unit;
    this.cell = cell;
  }

  get isUsed(): boolean {
    return this.source.histograms.isUsed(this.cell);
  }

  get bucketBounds(): readonly number[] {
    return this.source.bucketBounds(this.name);
  }

  count(span: HistogramSpanName): number {
    return this.source.histograms.count(this.cell, HistogramSpan[span]);
  }

  sum(span: HistogramSpanName): number {
    return this.source.histograms.sum(this.cell, HistogramSpan[span]) / this.#scale;
  }

  quantiles(span: HistogramSpanName, qs: readonly number[]): Float64Array {
    const values = this.source.histograms.quantiles(this.cell, HistogramSpan[span], qs);
    return values.map((value) => value / this.#scale);
  }

  buckets(span: HistogramSpanName, bounds: readonly number[]): Float64Array {
    const scaled = bounds.map((bound) => bound * this.#scale);
    return this.source.histograms.cumulativeBuckets(this.cell, HistogramSpan[span], scaled);
  }

  bins(span: HistogramSpanName): readonly HistogramBin[] {
    const bins = this.source.histograms.bins(this.cell, HistogramSpan[span]);
    const scale = this.#scale;
    return bins.map((bin) => ({ left: bin.left / scale, width: bin.width / scale, count: bin.count }));
  }

  get #scale(): number {
    return this.unit === 'percent' ? PERCENT_SCALE : 1;
  }
}
