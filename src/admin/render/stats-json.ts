// GET /stats as JSON, on one line: text readouts, counters and gauges, then one element that holds all histograms.

import type { ClusterView, HistogramSpanName, HistogramView, StatsView } from '../views/index.ts';
import { bucketCounts, type HistogramForm } from './histogram-text.ts';
import { hostStats } from './host-series.ts';
import { asksFor, type Quantile, quantilesOf, type StatSelection, wanted } from './stat-selection.ts';
import { wantedNumbers } from './stats-text.ts';

/** Quantiles that JSON shows when none are asked for. */
const JSON_QUANTILES = quantilesOf(['0', '25', '50', '75', '90', '95', '99', '99.9', '100']);

/** @param hostsOf clusters whose hosts have stats, too. */
export async function* statsJson(
  stats: StatsView,
  selection: StatSelection,
  hostsOf: Iterable<ClusterView>,
): AsyncGenerator<string> {
  let before = '{"stats":[';
  for await (const elements of simpleElements(stats, selection, hostsOf)) {
    if (elements.length === 0) continue;
    yield before + elements.join(',');
    before = ',';
  }
  const { open, element, close } = histogramForm(selection);
  let end = before === ',' ? ']}' : `${before}]}`;
  before += open;
  if (asksFor(selection, 'Histograms')) {
    for await (const batch of stats.histograms(selection.filter)) {
      const elements = wanted(selection, batch).map(element);
      if (elements.length === 0) continue;
      yield before + elements.join(',');
      before = ',';
      end = `${close}]}`;
    }
  }
  yield end;
}

async function* simpleElements(
  stats: StatsView,
  selection: StatSelection,
  hostsOf: Iterable<ClusterView>,
): AsyncGenerator<readonly string[]> {
  if (asksFor(selection, 'TextReadouts')) {
    const texts = wanted(selection, stats.textReadouts(selection.filter));
    yield texts.map(({ name, value }) => JSON.stringify({ name, value }));
  }
  if (asksFor(selection, 'Counters') || asksFor(selection, 'Gauges')) {
    for await (const batch of stats.countersAndGauges(selection.filter)) {
      yield wantedNumbers(batch, selection).map(({ name, value }) => numberElement(name, value));
    }
    for await (const batch of hostStats(hostsOf, selection)) {
      yield batch.map(({ fullName, value }) => numberElement(fullName, value));
    }
  }
}

function numberElement(name: string, value: number): string {
  return `{"name":${JSON.stringify(name)},"value":${value}}`;
}

/** The element of the histograms: what stands before the first, each of them, and what stands after the last. */
interface JsonForm {
  readonly open: string;
  readonly element: (histogram: HistogramView) => string;
  readonly close: string;
}

function histogramForm({ histogramForm: form, quantiles = JSON_QUANTILES }: StatSelection): JsonForm {
  const labels = quantiles.map(({ label }) => label).join(',');
  switch (form) {
    case 'cumulative':
    case 'disjoint':
      return { open: '{"histograms":[', element: (histogram) => bucketsJson(histogram, form), close: ']}' };
    case 'detailed':
      return {
        open: `{"histograms":{"supported_percentiles":[${labels}],"details":[`,
        element: (histogram) => detailJson(histogram, quantiles),
        close: ']}}',
      };
    default:
      return {
        open: `{"histograms":{"supported_quantiles":[${labels}],"computed_quantiles":[`,
        element: (histogram) =>
          `{"name":${JSON.stringify(histogram.name)},"values":[${valuesJson(histogram, quantiles)}]}`,
        close: ']}}',
      };
  }
}

function valuesJson(histogram: HistogramView, quantiles: readonly Quantile[]): string {
  const shares = quantiles.map(({ share }) => share);
  const interval = histogram.quantiles('interval', shares);
  const cumulative = histogram.quantiles('cumulative', shares);
  let text = '';
  for (let at = 0; at < shares.length; at++) {
    text += `${at === 0 ? '' : ','}{"interval":${number(interval[at]!)},"cumulative":${number(cumulative[at]!)}}`;
  }
  return text;
}

function bucketsJson(histogram: HistogramView, form: HistogramForm & ('cumulative' | 'disjoint')): string {
  const interval = bucketCounts(histogram, 'interval', form);
  const cumulative = bucketCounts(histogram, 'cumulative', form);
  const buckets = histogram.bucketBounds.map(
    (bound, at) => `{"upper_bound":${bound},"interval":${interval[at]},"cumulative":${cumulative[at]}}`,
  );
  return `{"name":${JSON.stringify(histogram.name)},"buckets":[${buckets.join(',')}]}`;
}

function detailJson(histogram: HistogramView, quantiles: readonly Quantile[]): string {
  const name = JSON.stringify(histogram.name);
  const totals = binsJson(histogram, 'cumulative');
  const intervals = binsJson(histogram, 'interval');
  return `{"name":${name},"totals":[${totals}],"intervals":[${intervals}],"percentiles":[${valuesJson(histogram, quantiles)}]}`;
}

function binsJson(histogram: HistogramView, span: HistogramSpanName): string {
  const bins = histogram.bins(span);
  return bins.map(({ left, width, count }) => `{"lower_bound":${left},"width":${width},"count":${count}}`).join(',');
}

/** JSON has no word for what is not there but this one. */
function number(value: number): string {
  return Number.isNaN(value) ? 'null' : String(value);
}
