// GET /stats as text: text readouts, then counters and gauges in one list, then histograms, each sorted by name.

import { compileRegex, literalPrefix, type Regex } from '../../base/regex.ts';
import { endpoint } from '../endpoint.ts';
import { choice, flag, parsed } from '../parameter.ts';
import { HISTOGRAM_FORMS, type HistogramForm, histogramText } from '../render/histogram-text.ts';
import { textResponse } from '../response.ts';
import type { HistogramView, NumericStatView, StatsView, TextStatView } from '../views/index.ts';

/** Known elsewhere, not to this build. */
const FOREIGN_FORMATS = ['html', 'active-html', 'json', 'prometheus'];

interface NameFilter {
  readonly regex: Regex;
  /** Of all names that it lets through; spares making the others. */
  readonly literalPrefix: string;
}

export const STATS = endpoint({
  path: '/stats',
  help: 'Statistics of the server',
  parameters: {
    usedonly: flag('Only include stats that have been written since the server started'),
    filter: parsed<NameFilter>('Regular expression (RE2 syntax) that the name of a stat must match', (pattern) => {
      const { regex, error } = compileRegex(pattern);
      if (error !== undefined) return { error: 'Invalid re2 regex' };
      return { value: { regex, literalPrefix: literalPrefix(pattern) } };
    }),
    format: choice({
      help: 'Format of the output',
      values: ['text'],
      refusal: (_context, format) =>
        FOREIGN_FORMATS.includes(format)
          ? textResponse(`format=${format} is not supported by this build\n`, 501)
          : 'usage: /stats?format=(html|active-html|json|prometheus|text)\n\n',
    }),
    type: choice({
      help: 'Kind of stats to include',
      values: ['All', 'Counters', 'Gauges', 'Histograms', 'TextReadouts'],
      refusal: 'invalid &type= param',
    }),
    histogram_buckets: choice({
      help: 'Show histograms as buckets',
      values: HISTOGRAM_FORMS,
      refusal: 'usage: /stats?histogram_buckets=(cumulative|disjoint|none)\n',
    }),
  },
  async handle({ server, stats }, { usedonly, filter, type, histogram_buckets: histogramForm }) {
    await server.beforeStatsRead();
    const includes = makeFilter(usedonly, filter?.regex);
    return textResponse(statsText(stats, { type, histogramForm, includes, namePrefix: filter?.literalPrefix ?? '' }));
  },
});

export const STATS_PROMETHEUS = endpoint({
  path: '/stats/prometheus',
  help: 'Statistics of the server in the form that Prometheus reads',
});

interface StatsRequest {
  readonly type: string;
  readonly histogramForm: HistogramForm;
  /** True for stats that the request's `usedonly` and `filter` let through. */
  readonly includes: (name: string, isUsed: boolean) => boolean;
  /** Of all names that `filter` lets through; spares making the others. */
  readonly namePrefix: string;
}

function makeFilter(usedOnly: boolean, filter: Regex | undefined): StatsRequest['includes'] {
  return (name, isUsed) => (isUsed || !usedOnly) && (filter === undefined || filter.search(name));
}

async function* statsText(stats: StatsView, request: StatsRequest): AsyncGenerator<string> {
  const { type, namePrefix } = request;
  if (type === 'All' || type === 'TextReadouts') yield textLines(stats.textReadouts(), request);
  if (type === 'All' || type === 'Counters' || type === 'Gauges') {
    for await (const batch of stats.countersAndGauges(namePrefix)) yield numericLines(batch, request);
  }
  if (type === 'All' || type === 'Histograms') {
    for await (const batch of stats.histograms(namePrefix)) yield histogramLines(batch, request);
  }
}

function textLines(texts: readonly TextStatView[], { includes }: StatsRequest): string {
  let lines = '';
  for (const { name, value, isUsed } of texts) if (includes(name, isUsed)) lines += `${name}: "${value}"\n`;
  return lines;
}

function numericLines(stats: readonly NumericStatView[], { type, includes }: StatsRequest): string {
  const kind = type === 'Counters' ? 'counter' : type === 'Gauges' ? 'gauge' : undefined;
  let lines = '';
  for (const stat of stats) {
    if (kind !== undefined && stat.kind !== kind) continue;
    if (includes(stat.name, stat.isUsed)) lines += `${stat.name}: ${stat.value}\n`;
  }
  return lines;
}

function histogramLines(histograms: readonly HistogramView[], { histogramForm, includes }: StatsRequest): string {
  let lines = '';
  for (const histogram of histograms) {
    if (includes(histogram.name, histogram.isUsed)) lines += histogramText(histogram, histogramForm);
  }
  return lines;
}
