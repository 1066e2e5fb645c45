// Discovery at scale: clusters with endpoints by discovery (EDS) of a management server in a process of its own, over one stream,
// and from a file. What counts is the processor time of the proxy's main thread, its longest turn (which is for how long nobody
// else was served), memory, and how long updates take to reach traffic.
//
//   --clusters N    10000
//   --hosts N       of each, 10
//   --only A,B      start, one, all, strangers, stream, load, file
//   --before FOLDER another built checkout of weir takes turns with this one
//   --rounds N      1
//   --profile FOLDER profiles of main by the engine, one for each part; figures are worse then
//
// Bars, of 10,000 clusters of 10 hosts: live within 6 s, 700 MB resident also after five full updates; one update reaches traffic
// within 20 ms and costs main 5 ms; no turn of main above 20 ms; 1,000 updates a second of 100 clusters are not fallen behind;
// 1,000 updates of configuration fail no request, and at most double p99.

import type { ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import os, { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { systemMonotonicMs } from '../../src/base/clock.ts';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import { runAtRate } from '../proxy/load.ts';
import { median } from '../support/contest.ts';
import type { Streamed, StreamOrder, TellOrder, Told } from './management-server.ts';
import type { ProbeFigures } from './probe.ts';
import { ask, MeasuredProxy, startServer, startUpstream } from './proxy.ts';
import { clusterName } from './resources.ts';

const PARTS = ['start', 'one', 'all', 'strangers', 'stream', 'load', 'file'] as const;
type Part = (typeof PARTS)[number];

const BAR = { liveMs: 6000, megabytes: 700, reachedMs: 20, cpuMs: 5, turnMs: 20 };
const FULL_UPDATES = 5;
const SINGLE_UPDATES = 20;
/** What was needed for the work alone is given back by then. */
const SETTLE_MS = 3000;
const STRANGERS = 100_000;
const STREAM: StreamOrder = { perSecond: 1000, seconds: 10, clusters: 100, of: 'assignments' };
const LOAD = { clusters: 100, connections: 16, requestsPerSecond: 1000, seconds: 20 };

const { values } = parseArgs({
  options: {
    clusters: { type: 'string', default: '10000' },
    hosts: { type: 'string', default: '10' },
    only: { type: 'string', default: PARTS.join(',') },
    before: { type: 'string' },
    rounds: { type: 'string', default: '1' },
    profile: { type: 'string' },
  },
});
const [clusters, hosts, rounds] = [Number(values.clusters), Number(values.hosts), Number(values.rounds)];
const parts = new Set(values.only.split(',') as Part[]);
const contenders = new Map([['weir', PACKAGE_ROOT]]);
if (values.before !== undefined) contenders.set('weir-before', path.resolve(values.before));
if (values.profile !== undefined) mkdirSync(values.profile, { recursive: true });

/** By row, by contender. */
const table = new Map<string, Map<string, number[]>>();

function note(row: string, contender: string, value: number): void {
  const byContender = table.get(row) ?? new Map<string, number[]>();
  table.set(row, byContender);
  byContender.set(contender, [...(byContender.get(contender) ?? []), value]);
}

function noteMain(what: string, contender: string, figures: ProbeFigures, each = 1): void {
  note(`${what}: main, ms of processor`, contender, figures.cpuMs / each);
  note(`${what}: longest turn of main, ms of processor (bar ${BAR.turnMs})`, contender, figures.longestCpuMs);
  note(`${what}: turns above ${BAR.turnMs} ms`, contender, figures.longTurns);
  note(`${what}: longest turn by the clock, ms`, contender, figures.longestWallMs);
  note(`${what}: longest pause of the collector, ms`, contender, figures.longestPauseMs);
}

function noteMemory(what: string, contender: string, proxy: MeasuredProxy, figures: ProbeFigures): void {
  note(`${what}: resident, MB (bar ${BAR.megabytes})`, contender, proxy.residentMegabytes);
  note(`${what}: heap of main, MB`, contender, figures.heapMegabytes);
  note(`${what}: external of main, MB`, contender, figures.externalMegabytes);
}

async function told(server: ChildProcess, order: TellOrder): Promise<Told> {
  const result = await ask<Told>(server, order);
  if (result.refusal !== '' && order.strangers === undefined) throw new Error(`refused: ${result.refusal}`);
  return result;
}

async function starts(contender: string, proxy: MeasuredProxy): Promise<void> {
  const [ms, figures] = await proxy.during('start', () => proxy.live());
  note(`start: live, ms (bar ${BAR.liveMs})`, contender, ms);
  noteMain('start', contender, figures);
  await proxy.reached('one');
  await delay(SETTLE_MS);
  noteMemory('start', contender, proxy, await proxy.figures());
}

interface Upstreams {
  readonly one: number;
  readonly two: number;
}

/** The first cluster gets other hosts, in a response of `told` assignments. */
async function singleUpdates(
  contender: string,
  what: string,
  { proxy, server, upstreams }: { proxy: MeasuredProxy; server: ChildProcess; upstreams: Upstreams },
  asked: readonly number[] | undefined,
  updates: number,
): Promise<void> {
  const reached: number[] = [];
  const acknowledged: number[] = [];
  const [, figures] = await proxy.during(what.replaceAll(' ', '-'), async () => {
    for (let update = 0; update < updates; update += 1) {
      const name = update % 2 === 0 ? 'two' : 'one';
      const waiting = proxy.reached(name);
      const livePort = upstreams[name];
      const order: TellOrder = { of: 'assignments', changed: [0], livePort, ...(asked && { told: asked }) };
      const { sentMs, acknowledgedMs } = await told(server, order);
      reached.push((await waiting) - sentMs);
      acknowledged.push(acknowledgedMs - sentMs);
    }
  });
  note(`${what}: at traffic, ms`, contender, median(reached));
  note(`${what}: acknowledged, ms`, contender, median(acknowledged));
  noteMain(what, contender, figures, updates);
}

/** All assignments, or all clusters, of which each asks for its assignment anew; these follow at once. */
async function fullUpdates(contender: string, proxy: MeasuredProxy, server: ChildProcess): Promise<void> {
  for (const kind of ['assignments', 'clusters'] as const) {
    const times: number[] = [];
    const [, figures] = await proxy.during(`all-${kind}`, async () => {
      for (let update = 0; update < FULL_UPDATES; update += 1) {
        const { sentMs, acknowledgedMs } = await told(server, { of: kind, changed: 'all' });
        times.push(acknowledgedMs - sentMs);
        if (kind === 'clusters') await told(server, { of: 'assignments', changed: [] });
      }
    });
    note(`all ${kind} others: acknowledged, ms`, contender, median(times));
    noteMain(`all ${kind} others`, contender, figures, FULL_UPDATES);
    await delay(SETTLE_MS);
    noteMemory(`after five of all ${kind}`, contender, proxy, await proxy.figures());
  }
  await proxy.probe('collect');
  note('after five of all clusters: heap of main in use, MB', contender, (await proxy.figures()).heapMegabytes);
  note('after five of all clusters: resident behind a collection, MB', contender, proxy.residentMegabytes);
  const [{ sentMs, acknowledgedMs }, figures] = await proxy.during('one-cluster', () =>
    told(server, { of: 'clusters', changed: [1] }),
  );
  note('one of all clusters other: acknowledged, ms', contender, acknowledgedMs - sentMs);
  noteMain('one of all clusters other', contender, figures);
}

async function strangers(contender: string, proxy: MeasuredProxy, server: ChildProcess): Promise<void> {
  const [{ sentMs, acknowledgedMs }, figures] = await proxy.during('strangers', () =>
    told(server, { of: 'assignments', changed: [], strangers: STRANGERS }),
  );
  note(`${STRANGERS} that nobody has asked for: acknowledged, ms`, contender, acknowledgedMs - sentMs);
  noteMain(`${STRANGERS} that nobody has asked for`, contender, figures);
}

async function stream(contender: string, proxy: MeasuredProxy, server: ChildProcess): Promise<void> {
  const [result, figures] = await proxy.during('stream', () => ask<Streamed>(server, STREAM));
  const what = `${STREAM.perSecond} a second for ${STREAM.seconds} s`;
  note(`${what}: last acknowledged behind its sending, ms`, contender, result.lastAcknowledgedMs - result.lastSentMs);
  note(`${what}: longest wait for an acknowledgement, ms`, contender, result.longestWaitMs);
  note(`${what}: acknowledgements`, contender, result.acknowledgements);
  noteMain(what, contender, figures);
}

async function manyClusters(contender: string, checkout: string, folder: string): Promise<void> {
  const [first, second] = [await startUpstream('one'), await startUpstream('two')];
  const upstreams = { one: first.port, two: second.port };
  const { child: server, port } = await startServer(clusters, hosts, upstreams.one);
  const proxy = new MeasuredProxy(folder, checkout, { serverPort: port }, values.profile);
  try {
    await starts(contender, proxy);
    const scene = { proxy, server, upstreams };
    if (parts.has('one')) {
      await singleUpdates(contender, 'one alone', scene, [0], SINGLE_UPDATES);
      await singleUpdates(contender, 'one among all', scene, undefined, FULL_UPDATES + 1);
    }
    if (parts.has('stream')) await stream(contender, proxy, server);
    if (parts.has('all')) await fullUpdates(contender, proxy, server);
    if (parts.has('strangers')) await strangers(contender, proxy, server);
  } finally {
    await proxy.end();
    server.kill();
    first.stop();
    second.stop();
  }
}

/** Requests at a fixed rate, with updates of clusters and endpoints meanwhile, and without. */
async function load(contender: string, checkout: string, folder: string): Promise<void> {
  const upstream = await startUpstream('one');
  const { child: server, port } = await startServer(LOAD.clusters, hosts, upstream.port);
  const proxy = new MeasuredProxy(folder, checkout, { serverPort: port }, values.profile);
  try {
    await proxy.live();
    await proxy.reached('one');
    const { connections, seconds, requestsPerSecond } = LOAD;
    const cores = `0-${os.availableParallelism() - 1}`;
    const url = `http://127.0.0.1:${await proxy.port()}/`;
    const run = () => runAtRate({ cores, folder, url, connections, seconds }, requestsPerSecond);
    const without = await run();
    const order: StreamOrder = { perSecond: 50, seconds: 20, clusters: LOAD.clusters - 1, of: 'clusters' };
    const [[result], figures] = await proxy.during('load', () =>
      Promise.all([run(), ask<Streamed>(server, order)] as const),
    );
    note('1,000 updates of clusters under load: p99 without, ms', contender, without.p99Ms);
    note('1,000 updates of clusters under load: p99 with, ms (bar: twice)', contender, result.p99Ms);
    noteMain('1,000 updates of clusters under load', contender, figures);
  } finally {
    await proxy.end();
    server.kill();
    upstream.stop();
  }
}

function clustersFile(file: string, upstreamPort: number, edition: number): void {
  const address = (index: number, host: number): object =>
    index === 0
      ? { address: `127.0.0.${host + 1}`, port_value: upstreamPort }
      : { address: `10.${index >> 8}.${index & 255}.${host + 1}`, port_value: 8080 };
  const resources = Array.from({ length: clusters }, (_, index) => {
    const name = clusterName(index);
    const lb_endpoints = Array.from({ length: hosts }, (_, host) => ({
      endpoint: { address: { socket_address: address(index, host) } },
    }));
    return {
      '@type': 'type.googleapis.com/envoy.config.cluster.v3.Cluster',
      name,
      connect_timeout: index === 1 ? `${1 + edition}s` : '1s',
      load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints }] },
    };
  });
  const made = `${file}.new`;
  writeFileSync(made, JSON.stringify({ version_info: String(edition), resources }));
  renameSync(made, file);
}

async function fromFile(contender: string, checkout: string, folder: string): Promise<void> {
  const upstream = await startUpstream('one');
  const file = path.join(folder, 'clusters.json');
  clustersFile(file, upstream.port, 1);
  const proxy = new MeasuredProxy(folder, checkout, { clustersFile: file }, values.profile);
  try {
    const [ms, figures] = await proxy.during('file', () => proxy.live());
    note(`file: live, ms (bar ${BAR.liveMs})`, contender, ms);
    noteMain('file', contender, figures);
    await proxy.reached('one');
    await delay(SETTLE_MS);
    noteMemory('file', contender, proxy, await proxy.figures());
    const [updateMs, ofUpdate] = await proxy.during('file-update', async () => {
      clustersFile(file, upstream.port, 2);
      const beganMs = systemMonotonicMs();
      while (!/^cluster_manager\.cds\.update_success: 2$/m.test(await proxy.admin('/stats?filter=cds')))
        await delay(20);
      return systemMonotonicMs() - beganMs;
    });
    note('file, one cluster other: taken over, ms', contender, updateMs);
    noteMain('file, one cluster other', contender, ofUpdate);
    await delay(SETTLE_MS);
    noteMemory('after an update of the file', contender, proxy, await proxy.figures());
  } finally {
    await proxy.end();
    upstream.stop();
  }
}

const folder = mkdtempSync(path.join(tmpdir(), 'weir-bench-'));
try {
  for (let round = 0; round < rounds; round += 1) {
    for (const [contender, checkout] of contenders) {
      if (['start', 'one', 'all', 'strangers', 'stream'].some((part) => parts.has(part as Part))) {
        await manyClusters(contender, checkout, folder);
      }
      if (parts.has('load')) await load(contender, checkout, folder);
      if (parts.has('file')) await fromFile(contender, checkout, folder);
    }
  }
  console.log(`${clusters} clusters of ${hosts} hosts; medians of ${rounds}; load ${os.loadavg()[0]!.toFixed(1)}`);
  const shown = [...table].map(([row, byContender]) => {
    return [row, Object.fromEntries([...byContender].map(([name, all]) => [name, Number(median(all).toFixed(1))]))];
  });
  console.table(Object.fromEntries(shown));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
