// One histogram as text in GET /stats: quantiles, buckets or bins, each for the interval and since the start.

import { DEFAULT_BUCKET_BOUNDS, LISTED_QUANTILES } from '../../stats/index.ts';
import type { HistogramSpanName, HistogramView } from '../views/index.ts';
import { formatG } from './number.ts';

/** The values of `histogram_buckets`, the default first; `none` and `summary` are the same. */
export const HISTOGRAM_FORMS = ['none', 'cumulative', 'disjoint', 'detailed', 'summary'] as const;
export type HistogramForm = (typeof HISTOGRAM_FORMS)[number];

const QUANTILE_LABELS = LISTED_QUANTILES.map((quantile) => `P${formatG(quantile * 100)}`);
const BOUND_LABELS = DEFAULT_BUCKET_BOUNDS.map((bound) => `B${formatG(bound)}`);

/** The line (lines for `detailed`) of a histogram, with its final line break. */
export function histogramText(histogram: HistogramView, form: HistogramForm): string {
  const { name } = histogram;
  if (!histogram.isUsed) return `${name}: No recorded values\n`;
  switch (form) {
    case 'cumulative':
    case 'disjoint':
      return `${name}: ${bucketsText(histogram, form)}\n`;
    case 'detailed':
      return `${name}:\n  totals=${binsText(histogram, 'cumulative')}\n  intervals=${binsText(histogram, 'interval')}\n  summary=${quantilesText(histogram)}\n`;
    default:
      return `${name}: ${quantilesText(histogram)}\n`;
  }
}

function quantilesText(histogram: HistogramView): string {
  const interval = histogram.quantiles('interval', LISTED_QUANTILES);
  const cumulative = histogram.quantiles('cumulative', LISTED_QUANTILES);
  return pairs(QUANTILE_LABELS, interval, cumulative);
}

function bucketsText(histogram: HistogramView, form: 'cumulative' | 'disjoint'): string {
  const counts = (span: HistogramSpanName): Float64Array => {
    const atOrBelow = histogram.buckets(span, DEFAULT_BUCKET_BOUNDS);
    return form === 'cumulative' ? atOrBelow : atOrBelow.map((count, at) => count - (atOrBelow[at - 1] ?? 0));
  };
  return pairs(BOUND_LABELS, counts('interval'), counts('cumulative'));
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
