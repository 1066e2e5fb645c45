// GET /page/overview: what the home page shows at its top, with the points of the last minutes that it does not have yet.

import { formatAddress } from '../../../base/address.ts';
import { SYSTEM_CLOCK } from '../../../base/clock.ts';
import { TimeSlice } from '../../../base/time-slice.ts';
import { formatVersion } from '../../../base/version.ts';
import type { Cluster, Head, Listener, Overview, Points } from '../../../page/data.ts';
import { type AdminContext, endpoint } from '../../endpoint.ts';
import { parsed, text } from '../../parameter.ts';
import { textResponse } from '../../response.ts';
import type { ClusterUseView, OverviewView, ReadPoints } from '../../views/index.ts';
import { pageJson } from './page-json.ts';

/** Rows that one look can take in, and one second can bring up to date. */
const MOST_CLUSTERS = 200;
const MOST_LISTENERS = 64;
const MOST_WARNINGS = 100;

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
      const uses = await usesOf(overview);
      const matching = uses.filter(({ name }) => name.includes(part));
      return pageJson(pieces(context, overview, { since, matching, head: head(context, overview, uses, isReadOnly) }));
    },
  });
}

interface Shown {
  readonly since: number;
  readonly matching: readonly NamedUse[];
  readonly head: Head;
}

/** The first answer to a page has 300 points of each series, which are many to write at once. */
async function* pieces(context: AdminContext, overview: OverviewView, shown: Shown): AsyncGenerator<string> {
  const { history } = overview;
  const { tick } = history;
  const from = history.firstAfter(shown.since);
  const busy = new Map(history.clusters());
  const start: Omit<Overview, 'clusters'> = {
    nowMs: SYSTEM_CLOCK.wallMs(),
    head: shown.head,
    tick,
    times: history.times(from),
    listeners: listeners(context, overview, from),
    clusterCount: shown.matching.length,
  };
  yield `${JSON.stringify(start).slice(0, -1)},"clusters":[`;
  const slice = new TimeSlice();
  let separator = '';
  for (const { name, use } of mostTelling(shown.matching, busy)) {
    yield separator + JSON.stringify(clusterRow(name, use, busy.get(name)?.(from, tick)));
    separator = ',';
    if (slice.isOver()) await slice.rest();
  }
  yield ']}';
}

interface NamedUse {
  readonly name: string;
  readonly use: ClusterUseView;
}

/** There may be very many clusters. */
async function usesOf({ clusters }: OverviewView): Promise<NamedUse[]> {
  const slice = new TimeSlice();
  const uses: NamedUse[] = [];
  for (const cluster of [...clusters()]) {
    uses.push({ name: cluster.name, use: cluster.use() });
    if (slice.isOver()) await slice.rest();
  }
  return uses;
}

/** By name, so that rows stay where they are; of too many those that have traffic or lack members. */
function mostTelling(uses: readonly NamedUse[], busy: ReadonlyMap<string, unknown>): NamedUse[] {
  const tellsNothing = ({ name, use }: NamedUse): number =>
    Number(!busy.has(name) && use.membersHealthy === use.members);
  const telling = uses.length <= MOST_CLUSTERS ? uses : uses.toSorted((a, b) => tellsNothing(a) - tellsNothing(b));
  return telling.slice(0, MOST_CLUSTERS).toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function head(
  { server }: AdminContext,
  { process }: OverviewView,
  uses: readonly NamedUse[],
  isReadOnly: boolean,
): Head {
  const descriptors = process.descriptors();
  const breakers = uses
    .filter(({ use }) => use.overflows > 0)
    .map(({ name, use }) => `circuit breakers of ${name} were full ${use.overflows} times`);
  return {
    state: server.state(),
    isReadOnly,
    version: formatVersion(server.version),
    uptimeSeconds: server.uptimeCurrentEpochSeconds(),
    epoch: process.epoch,
    residentBytes: process.memory.residentBytes(),
    heapBytes: process.memory.heapBytes(),
    descriptors: descriptors?.open ?? null,
    descriptorLimit: descriptors?.limit ?? null,
    threads: process.eventLoopUses().map(({ name, use }) => ({ name, use: use ?? null })),
    warnings: [...breakers, ...process.warnings].slice(0, MOST_WARNINGS),
  };
}

function listeners({ listeners: view }: AdminContext, { history }: OverviewView, from: number): Listener[] {
  const known = new Map(history.listeners());
  return [...view.listeners()].slice(0, MOST_LISTENERS).map(({ name, addresses }) => ({
    name,
    addresses: addresses.map(formatAddress),
    points: numbers(known.get(name)?.(from, history.tick)),
  }));
}

function clusterRow(name: string, counted: ClusterUseView, series: ReturnType<ReadPoints> | undefined): Cluster {
  const { overflows: _, ...use } = counted;
  return { name, ...use, points: numbers(series) };
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
