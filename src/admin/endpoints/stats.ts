// GET /stats and /stats/prometheus: all statistics, as text, JSON or for Prometheus.

import { compileEcmaNameFilter, FILTER_TIME } from '../../base/ecma-name-filter.ts';
import { WeirError } from '../../base/errors.ts';
import { type CompiledFilter, compileNameFilter, type NameFilter } from '../../base/name-filter.ts';
import { formatQualities } from '../accept.ts';
import { type AdminContext, type AdminRequest, type Endpoint, endpoint } from '../endpoint.ts';
import { type Arguments, choice, flag, type Parsed, parsed } from '../parameter.ts';
import { HISTOGRAM_FORMS } from '../render/histogram-text.ts';
import { homePage } from '../render/home-page.ts';
import { trackedHosts } from '../render/host-series.ts';
import { METRIC_STYLES } from '../render/metric-style.ts';
import { type Quantile, quantilesOf, type StatSelection } from '../render/stat-selection.ts';
import { statsJson } from '../render/stats-json.ts';
import { statsPrometheus } from '../render/stats-prometheus.ts';
import { statsText } from '../render/stats-text.ts';
import { type AdminResponse, JSON_TYPE, TEXT, textResponse } from '../response.ts';

const PROMETHEUS = 'text/plain; version=0.0.4; charset=UTF-8';
const OPEN_METRICS = 'application/openmetrics-text; version=1.0.0; charset=utf-8';
const MOST_QUANTILES = 100;
const MOST_NAMESPACE_CHARACTERS = 64;
/** Of an answer whose filter may still turn out to be too slow. */
const MOST_HELD_CHARACTERS = 16 * 1024 * 1024;

/** Of both paths. */
const SELECTION = {
  usedonly: flag('Only include stats that have been written since the server started'),
  filter: parsed('Regular expression that the name of a stat must match somewhere', readFilter),
  type: choice({
    help: 'Kind of stats to include',
    values: ['All', 'Counters', 'Gauges', 'Histograms', 'TextReadouts'],
    refusal: 'invalid &type= param',
  }),
  histogram_buckets: choice({
    help: 'Show histograms as buckets',
    values: HISTOGRAM_FORMS,
    refusal: `usage: /stats?histogram_buckets=(${[...HISTOGRAM_FORMS].sort().join('|')})\n`,
  }),
  quantiles: parsed('Quantiles to show, in percent: 50,95,99.99', readQuantiles),
  hidden: choice({
    help: 'Stats that are not shown otherwise; this build has none',
    values: ['exclude', 'include', 'only'],
    aliases: { showonly: 'only' },
    refusal: 'usage: /stats?hidden=(include|only|exclude)\n\n',
  }),
};

/** What only Prometheus knows. */
const PROMETHEUS_ONLY = {
  text_readouts: flag('Prometheus: show texts as gauges, with the text as a label'),
  per_host: flag('Prometheus: add series of each upstream host'),
  namespace: parsed('Prometheus: first word of all names; envoy when not given', readNamespace),
  naming: choice({
    help: 'Prometheus: names as dashboards know them, or by its own rules, in base units and with help',
    values: METRIC_STYLES,
    refusal: 'usage: /stats?naming=(native|strict)\n',
  }),
};

type StatsArguments = Arguments<typeof SELECTION & typeof PROMETHEUS_ONLY>;

export const STATS: Endpoint = endpoint({
  path: '/stats',
  help: 'Statistics of the server',
  parameters: {
    ...SELECTION,
    format: choice({
      help: 'Format of the output',
      values: ['text', 'json', 'prometheus', 'html', 'active-html'],
      refusal: 'usage: /stats?format=(html|active-html|json|prometheus|text)\n\n',
    }),
    ...PROMETHEUS_ONLY,
  },
  async handle(context, given, request) {
    if (given.format === 'prometheus') return prometheus(context, given, request);
    if (given.format === 'html' || given.format === 'active-html') {
      const pattern = request.query.value('filter');
      return homePage(context.server, request, { view: 'stats', filter: pattern && `/${pattern}/` });
    }
    await context.server.beforeStatsRead();
    const selection = selectionOf(given);
    const isJson = given.format === 'json';
    if (given.hidden === 'only')
      return { status: 200, contentType: isJson ? JSON_TYPE : TEXT, body: isJson ? '{"stats":[]}' : '' };
    const render = isJson ? statsJson : statsText;
    const body = render(context.stats, selection, trackedHosts(context.clusters));
    return streamed(body, { contentType: isJson ? JSON_TYPE : TEXT, mayFail: mayTakeTooLong(context, given) });
  },
});

export const STATS_PROMETHEUS: Endpoint = endpoint({
  path: '/stats/prometheus',
  help: 'Statistics of the server in the form that Prometheus reads',
  parameters: { ...SELECTION, ...PROMETHEUS_ONLY },
  handle: prometheus,
});

async function prometheus(
  context: AdminContext,
  given: StatsArguments,
  { headers }: AdminRequest,
): Promise<AdminResponse> {
  await context.server.beforeStatsRead();
  const isOpenMetrics = isOpenMetricsFor(headers.accept, given.naming);
  const contentType = isOpenMetrics ? OPEN_METRICS : PROMETHEUS;
  if (given.hidden === 'only') return { status: 200, contentType, body: isOpenMetrics ? '# EOF\n' : '' };
  const body = statsPrometheus(context.stats, {
    selection: selectionOf(given),
    namespace: given.namespace ?? 'envoy',
    style: given.naming,
    isOpenMetrics,
    showsTexts: given.text_readouts,
    hostsOf: given.per_host ? context.clusters.clusters() : trackedHosts(context.clusters),
  });
  return streamed(body, { contentType, mayFail: mayTakeTooLong(context, given) });
}

/**
 * OpenMetrics cannot hold the names that dashboards know as counters, since those do not end with `_total`; a scraper that takes
 * both formats, as Prometheus does, gets them with their types in the other one.
 */
function isOpenMetricsFor(accept: string | undefined, naming: StatsArguments['naming']): boolean {
  const { openMetrics, text } = formatQualities(accept);
  return naming === 'strict' ? openMetrics > 0 && openMetrics >= text : openMetrics > 0 && text === 0;
}

function selectionOf(given: StatsArguments): StatSelection {
  return {
    usedOnly: given.usedonly,
    filter: given.filter,
    type: given.type,
    histogramForm: given.histogram_buckets,
    quantiles: given.quantiles,
  };
}

function readFilter(pattern: string, { server }: AdminContext): Parsed<NameFilter> {
  const isRe2 = server.filtersByRe2();
  const { filter, error }: CompiledFilter = isRe2 ? compileNameFilter(pattern) : compileEcmaNameFilter(pattern);
  if (error === undefined) return { value: filter };
  return { error: isRe2 ? 'Invalid re2 regex' : `Invalid regex: "${error}"\n` };
}

function readQuantiles(text: string): Parsed<readonly Quantile[]> {
  const words = text.split(',');
  const areNumbers = words.every((word) => /^\d{1,3}(?:\.\d{1,12})?$/.test(word) && Number(word) <= 100);
  if (!areNumbers || words.length > MOST_QUANTILES) {
    return { error: `usage: /stats?quantiles=50,95,99.99 (0 to 100, at most ${MOST_QUANTILES} of them)\n` };
  }
  const numbers = [...new Set(words.map(Number))].sort((a, b) => a - b);
  return { value: quantilesOf(numbers.map(String)) };
}

function readNamespace(text: string): Parsed<string> {
  return /^[a-zA-Z_][a-zA-Z0-9_]*$/.test(text) && text.length <= MOST_NAMESPACE_CHARACTERS
    ? { value: text }
    : { error: `usage: /stats/prometheus?namespace=<letters, digits and _, at most ${MOST_NAMESPACE_CHARACTERS}>\n` };
}

function mayTakeTooLong({ server }: AdminContext, { filter }: StatsArguments): boolean {
  return filter !== undefined && !server.filtersByRe2();
}

interface Streaming {
  readonly contentType: string;
  /** Making the pieces may throw FILTER_TIME. */
  readonly mayFail: boolean;
}

/** What a filter that may be too slow lets through is held back until it has seen all names, so that it can still be refused. */
async function streamed(pieces: AsyncGenerator<string>, { contentType, mayFail }: Streaming): Promise<AdminResponse> {
  if (!mayFail) return { status: 200, contentType, body: pieces };
  const held: string[] = [];
  let characters = 0;
  try {
    while (characters < MOST_HELD_CHARACTERS) {
      const { done, value } = await pieces.next();
      if (done) return { status: 200, contentType, body: held.join('') };
      held.push(value);
      characters += value.length;
    }
  } catch (error) {
    if (!(error instanceof WeirError && error.code === FILTER_TIME)) throw error;
    return textResponse(`Invalid regex: "${error.message}"\n`, 400);
  }
  async function* all(): AsyncGenerator<string> {
    yield* held;
    yield* pieces;
  }
  return { status: 200, contentType, body: all() };
}
