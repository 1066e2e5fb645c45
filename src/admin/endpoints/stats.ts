// GET /stats as text: text readouts, then counters and gauges in one list, then histograms, each sorted by name.

import { compileRegex, literalPrefix, type Regex } from '../../base/regex.ts';
import { type AdminContext, type AdminResponse, type EndpointParameter, textResponse } from '../endpoint.ts';
import type { AdminQuery } from '../query.ts';
import { HISTOGRAM_FORMS, type HistogramForm, histogramText } from '../render/histogram-text.ts';
import type { HistogramView, NumericStatView, StatsView, TextStatView } from '../views.ts';

const FORMATS = ['html', 'active-html', 'json', 'prometheus', 'text'];
const TYPES = ['All', 'Counters', 'Gauges', 'Histograms', 'TextReadouts'];

export const STATS_PARAMETERS: readonly EndpointParameter[] = [
  { id: 'usedonly', kind: 'flag', help: 'Only include stats that have been written since the server started' },
  { id: 'filter', kind: 'text', help: 'Regular expression (RE2 syntax) that the name of a stat must match' },
  { id: 'format', kind: 'choice', choices: ['text'], help: 'Format of the output' },
  { id: 'type', kind: 'choice', choices: TYPES, help: 'Kind of stats to include' },
  { id: 'histogram_buckets', kind: 'choice', choices: HISTOGRAM_FORMS, help: 'Show histograms as buckets' },
];

export async function handleStats({ server, stats }: AdminContext, query: AdminQuery): Promise<AdminResponse> {
  const read = readRequest(query);
  if (read.refusal !== undefined) return read.refusal;
  await server.beforeStatsRead();
  return textResponse(statsText(stats, read.request));
}

interface StatsRequest {
  readonly type: string;
  readonly histogramForm: HistogramForm;
  /** True for stats that the request's `usedonly` and `filter` let through. */
  readonly includes: (name: string, isUsed: boolean) => boolean;
  /** Of all names that `filter` lets through; spares making the others. */
  readonly namePrefix: string;
}

type ReadRequest =
  | { readonly refusal: AdminResponse; readonly request?: undefined }
  | { readonly refusal: undefined; readonly request: StatsRequest };

function readRequest(query: AdminQuery): ReadRequest {
  const format = query.value('format') ?? 'text';
  if (!FORMATS.includes(format)) return refuse('usage: /stats?format=(html|active-html|json|prometheus|text)\n\n');
  if (format !== 'text') return refuse(`format=${format} is not supported by this build\n`, 501);
  const type = query.value('type') ?? 'All';
  if (!TYPES.includes(type)) return refuse('invalid &type= param');
  const form = query.value('histogram_buckets') ?? 'none';
  const histogramForm = HISTOGRAM_FORMS.find((known) => known === form);
  if (!histogramForm) return refuse('usage: /stats?histogram_buckets=(cumulative|disjoint|none)\n');
  const pattern = query.value('filter');
  const compiled = pattern === undefined ? undefined : compileRegex(pattern);
  if (compiled?.error !== undefined) return refuse('Invalid re2 regex');
  const includes = makeFilter(query.flag('usedonly'), compiled?.regex);
  return { refusal: undefined, request: { type, histogramForm, includes, namePrefix: literalPrefix(pattern ?? '') } };
}

function refuse(body: string, status = 400): ReadRequest {
  return { refusal: textResponse(body, status) };
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
