// The interval of a histogram as single values, as receivers of timers want them (docs/decisions/0034-histograms-at-statsd-are-samples.md): all of them while there
// are few, and otherwise a fixed number at evenly spaced ranks, each standing for as many samples as any other. A receiver
// that counts a value as 1 / rate of them comes to the right count and mean, and one that makes percentiles of the values alone to
// percentiles that are right by as much as a rank is wide.

import type { HistogramReader } from '../../../stats/index.ts';

/** Values of one histogram in one flush at most. */
export const MOST_VALUES = 100;
/** Digits of a rate that count: the receiver divides by it. */
const RATE_DIGITS = 9;

export interface IntervalSample {
  /** Ascending, each as often as it stands. */
  readonly values: readonly number[];
  /** The share of all samples that the values are, as the protocol writes it; empty for all of them. */
  readonly rate: string;
}

const NOTHING: IntervalSample = { values: [], rate: '' };

export function sampleInterval(histogram: HistogramReader): IntervalSample {
  const total = histogram.count('interval');
  if (total === 0) return NOTHING;
  const bins = histogram.bins('interval');
  const size = Math.min(total, MOST_VALUES);
  const values: number[] = [];
  let at = 0;
  let upTo = bins[0]!.count;
  for (let index = 0; index < size; index++) {
    // The middle of the samples that the value stands for; of all samples, each one.
    const rank = ((index + 0.5) * total) / size;
    while (upTo < rank) {
      at += 1;
      upTo += bins[at]!.count;
    }
    values.push(sampleOf(bins[at]!.left, bins[at]!.width, histogram.unit === 'percent'));
  }
  return { values, rate: size === total ? '' : rateText(size / total) };
}

/** What the samples of a bin were: whole numbers, which below 100 have a bin each. */
function sampleOf(left: number, width: number, isRatio: boolean): number {
  if (isRatio) return Number((left + width / 2).toPrecision(4));
  return width < 1 ? Math.round(left) : Math.round(left + (width - 1) / 2);
}

/** Without an exponent, which receivers do not read. */
function rateText(rate: number): string {
  const digits = Math.ceil(-Math.log10(rate)) + RATE_DIGITS;
  return rate.toFixed(Math.min(digits, 20)).replace(/0+$/, '');
}
