// GET /stats as text: text readouts, then counters and gauges in one list, then histograms, each sorted by name. Those of single
// hosts, of clusters that want them, come before the histograms.

import type { ClusterView, NumericStatView, StatsView } from '../views/index.ts';
import { histogramText } from './histogram-text.ts';
import { hostStats } from './host-series.ts';
import { asksFor, type StatSelection, wanted } from './stat-selection.ts';

/** @param hostsOf clusters whose hosts have stats, too. */
export async function* statsText(
  stats: StatsView,
  selection: StatSelection,
  hostsOf: Iterable<ClusterView>,
): AsyncGenerator<string> {
  const { filter, histogramForm, quantiles } = selection;
  if (asksFor(selection, 'TextReadouts')) {
    const texts = wanted(selection, stats.textReadouts(filter));
    yield texts.map(({ name, value }) => `${name}: "${value}"\n`).join('');
  }
  if (asksFor(selection, 'Counters') || asksFor(selection, 'Gauges')) {
    for await (const batch of stats.countersAndGauges(filter)) yield numericLines(batch, selection);
    for await (const batch of hostStats(hostsOf, selection)) {
      yield batch.map(({ fullName, value }) => `${fullName}: ${value}\n`).join('');
    }
  }
  if (asksFor(selection, 'Histograms')) {
    for await (const batch of stats.histograms(filter)) {
      let lines = '';
      for (const histogram of wanted(selection, batch)) lines += histogramText(histogram, histogramForm, quantiles);
      yield lines;
    }
  }
}

function numericLines(batch: readonly NumericStatView[], selection: StatSelection): string {
  let lines = '';
  for (const { name, value } of wantedNumbers(batch, selection)) lines += `${name}: ${value}\n`;
  return lines;
}

/** Of a list of both, the ones of the kind that is asked for. */
export function wantedNumbers(batch: readonly NumericStatView[], selection: StatSelection): readonly NumericStatView[] {
  const used = wanted(selection, batch);
  if (selection.type === 'All') return used;
  const kind = selection.type === 'Counters' ? 'counter' : 'gauge';
  return used.filter((stat) => stat.kind === kind);
}
