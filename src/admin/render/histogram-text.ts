// One histogram as text in GET /stats: quantiles, buckets or bins, each for the interval and since the start.

import type { HistogramSpanName, HistogramView } from '../views/index.ts';
import { formatG } from './number.ts';
import { type Quantile, USUAL_QUANTILES } from './stat-selection.ts';

/** The values of `histogram_buckets`, the default first; `none` and `summary` are the same but for Prometheus. */
export const HISTOGRAM_FORMS = ['none', 'cumulative', 'disjoint', 'detailed', 'summary'] as const;
export type HistogramForm = (typeof HISTOGRAM_FORMS)[number];

/** The line (lines for `detailed`) of a histogram, with its final line break. */
export function histogramText(
  histogram: HistogramView,
  form: HistogramForm,
  quantiles: readonly Quantile[] = USUAL_QUANTILES,
): string {
  const { name } = histogram;
  if (!histogram.isUsed) return `${name}: No recorded values\n`;
  switch (form) {
    case 'cumulative':
    case 'disjoint':
      return `${name}: ${bucketsText(histogram, form)}\n`;
    case 'detailed':
      return `${name}:\n  totals=${binsText(histogram, 'cumulative')}\n  intervals=${binsText(histogram, 'interval')}\n  summary=${quantilesText(histogram, quantiles)}\n`;
    default:
      return `${name}: ${quantilesText(histogram, quantiles)}\n`;
  }
}

/** Samples in each bucket; those at or below its bound, or only those that are in no bucket before. */
export function bucketCounts(
  histogram: HistogramView,
  span: HistogramSpanName,
  form: 'cumulative' | 'disjoint',
): Float64Array {
  const atOrBelow = histogram.buckets(span, histogram.bucketBounds);
  return form === 'cumulative' ? atOrBelow : atOrBelow.map((count, at) => count - (atOrBelow[at - 1] ?? 0));
}

function quantilesText(histogram: HistogramView, quantiles: readonly Quantile[]): string {
  const shares = quantiles.map(({ share }) => share);
  return pairs(
    quantiles.map(({ label }) => `P${label}`),
    histogram.quantiles('interval', shares),
    histogram.quantiles('cumulative', shares),
  );
}

function bucketsText(histogram: HistogramView, form: 'cumulative' | 'disjoint'): string {
  return pairs(
    histogram.bucketBounds.map((bound) => `B${formatG(bound)}`),
    bucketCounts(histogram, 'interval', form),
    bucketCounts(histogram, 'cumulative', form),
  );
}

function pairs(labels: readonly string[], interval: Float64Array, cumulative: Float64Array): string {
  return labels.map((label, at) => `${label}(${number(interval[at]!)},${number(cumulative[at]!)})`).join(' ');
}

function binsText(histogram: HistogramView, span: HistogramSpanName): string {
  return histogram
    .bins(span)
    .map(({ left, width, count }) => `${number(left)},${number(width)}:${count}`)
    .join(', ');
}

/** The shortest text that reads back as the same number. */
function number(value: number): string {
  return Number.isNaN(value) ? 'nan' : String(value);
}
