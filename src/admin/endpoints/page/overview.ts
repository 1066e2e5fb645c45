// GET /page/overview: what the home page shows at its top, with the points of the last minutes that it does not have yet. One time
// slice goes through all of it: the first answer is made by code that has never run, and each part would begin a slice of its own.

import { formatAddress } from '../../../base/address.ts';
import { TimeSlice } from '../../../base/time-slice.ts';
import { formatVersion } from '../../../base/version.ts';
import type { Cluster, Head, Listener, Overview, Points, Source } from '../../../page/data.ts';
import { type AdminContext, endpoint } from '../../endpoint.ts';
import { parsed, text } from '../../parameter.ts';
import { textResponse } from '../../response.ts';
import type { OverviewView, ReadPoints, SourceView } from '../../views/index.ts';
import { clusterRow, countsOf, type JudgedCluster, judgedClusters, mostTelling } from './judged-clusters.ts';
import { pageJson } from './page-json.ts';
import { warningsOf } from './warnings.ts';

/** Rows that one look can take in, and one second can bring up to date. */
const MOST_CLUSTERS = 200;
const MOST_LISTENERS = 64;
const MOST_WAITED_FOR = 5;
const MOST_SOURCES = 50;

export function overviewEndpoint(isReadOnly: boolean) {
  return endpoint({
    path: '/page/overview',
    help: 'State, traffic and upstreams',
    parameters: {
      since: parsed('Number of the last point that the caller has', (given) =>
        /^-?\d{1,15}$/.test(given) ? { value: Number(given) } : { error: 'since: a number is wanted\n' },
      ),
      clusters: text('Part of the names of clusters'),
    },
    async handle(context, { since = -1, clusters: part = '' }) {
      const { overview } = context;
      if (overview === undefined) return textResponse('this build has no page\n', 404);
      const slice = new TimeSlice();
      const clusters = await judgedClusters(overview, slice);
      return pageJson(pieces(context, overview, { since, part, clusters, isReadOnly }, slice));
    },
  });
}

interface Shown {
  readonly since: number;
  /** Of the names of clusters that have rows. */
  readonly part: string;
  readonly clusters: readonly JudgedCluster[];
  readonly isReadOnly: boolean;
}

/** The first answer to a page has 300 points of each series, which are many to write at once. */
async function* pieces(
  context: AdminContext,
  overview: OverviewView,
  { since, part, clusters, isReadOnly }: Shown,
  slice: TimeSlice,
): AsyncGenerator<string> {
  const shownHead = await head(context, overview, clusters, isReadOnly, slice);
  const matching = clusters.filter(({ name }) => name.includes(part));
  const { history } = overview;
  const { tick } = history;
  const from = history.firstAfter(since);
  const sources = [...overview.sources()];
  const start: Omit<Overview, 'listeners' | 'clusters'> = {
    nowMs: context.server.wallMs(),
    head: shownHead,
    tick,
    times: history.times(from),
    clusterCount: matching.length,
    conditions: countsOf(matching),
    sources: sources.slice(0, MOST_SOURCES).map(sourceRow),
    sourceCount: sources.length,
  };
  yield `${JSON.stringify(start).slice(0, -1)},"listeners":[`;
  if (slice.isOverNow()) await slice.rest();
  yield* listOf(
    slice,
    listeners(context, overview),
    ({ read, ...row }): Listener => ({
      ...row,
      points: numbers(read?.(from, tick)),
    }),
  );
  yield '],"clusters":[';
  yield* listOf(
    slice,
    mostTelling(matching, MOST_CLUSTERS),
    (cluster): Cluster => ({
      ...clusterRow(cluster),
      breakers: cluster.breakers(),
      points: numbers(cluster.read?.(from, tick)),
    }),
  );
  yield ']}';
}

function sourceRow({ unaskedTypes, complaint, types, ...source }: SourceView): Source {
  const unasked = unaskedTypes.length === 0 ? '' : `has sent what nobody has asked for: ${unaskedTypes.join(', ')}`;
  return {
    ...source,
    complaint: complaint || unasked,
    types: types.map(({ typeName, ...type }) => ({ name: typeName.slice(typeName.lastIndexOf('.') + 1), ...type })),
  };
}

async function* listOf<Item>(
  slice: TimeSlice,
  items: Iterable<Item>,
  row: (item: Item) => object,
): AsyncGenerator<string> {
  let separator = '';
  for (const item of items) {
    yield separator + JSON.stringify(row(item));
    separator = ',';
    if (slice.isOverNow()) await slice.rest();
  }
}

async function head(
  { server, init }: AdminContext,
  { process }: OverviewView,
  clusters: readonly JudgedCluster[],
  isReadOnly: boolean,
  slice: TimeSlice,
): Promise<Head> {
  if (slice.isOverNow()) await slice.rest();
  const descriptors = process.descriptors();
  if (slice.isOverNow()) await slice.rest();
  const warnings = warningsOf(clusters, process);
  if (slice.isOverNow()) await slice.rest();
  return {
    state: server.state(),
    waitsFor: waitsFor(init),
    isReadOnly,
    version: formatVersion(server.version),
    uptimeSeconds: server.uptimeCurrentEpochSeconds(),
    epoch: process.epoch,
    residentBytes: process.memory.residentBytes(),
    heapBytes: process.memory.heapBytes(),
    descriptors: descriptors?.open ?? null,
    descriptorLimit: descriptors?.limit ?? null,
    threads: process.eventLoopUses().map(({ name, use }) => ({ name, use: use ?? null })),
    warnings,
  };
}

/** Nothing once it is initialized, but for what comes later; the first ones are enough. */
function waitsFor(init: AdminContext['init']): string[] {
  const unready = [...init.unready()].slice(0, MOST_WAITED_FOR);
  return unready.map(({ component, name, targets }) => {
    const what = `${component} ${name}`.trim();
    return targets.length === 0 ? what : `${what}: ${targets.join(', ')}`;
  });
}

interface ListenerRow extends Omit<Listener, 'points'> {
  readonly read: ReadPoints | undefined;
}

function listeners({ listeners: view }: AdminContext, { history }: OverviewView): ListenerRow[] {
  const known = new Map(history.listeners());
  return [...view.listeners()].slice(0, MOST_LISTENERS).map(({ name, addresses, accepting }) => ({
    name,
    addresses: addresses.map(formatAddress),
    accepting,
    read: known.get(name),
  }));
}

/** Three digits are more than a curve can show. */
function numbers(series: ReturnType<ReadPoints> = []): Points {
  return series.map((values) => Array.from(values, rounded));
}

function rounded(value: number): number | null {
  if (Number.isNaN(value)) return null;
  if (value >= 100 || value === 0) return Math.round(value);
  return Math.round(value * 1000) / 1000;
}
