// What GET /config_dump of 10,000 clusters of 10 hosts costs the main thread: time, memory beside the answer's length, the longest
// piece in one go. In the same process the load of that configuration, and what is kept of it to be shown.
// Bars: memory three times the answer's length; main held for 20 ms at most.
//
//   npm run bench -- config-dump

import { setImmediate as nextTurn } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { configDumps } from '../src/admin/config-dump/dumps.ts';
import { select } from '../src/admin/config-dump/selection.ts';
import { configDumpJson } from '../src/admin/render/config-dump.ts';
import type { ConfigView } from '../src/admin/views/index.ts';
import { collectGarbage } from '../src/base/garbage.ts';
import { compileRegex } from '../src/base/regex.ts';
import { type BootstrapConfig, loadBootstrap } from '../src/config/index.ts';
import { socketAddress } from './proxy/contenders/weir.ts';
import { median } from './support/contest.ts';

const MEGABYTE = 1e6;
const BAR = { times: 3, heldMs: 20 };
const ROUNDS = 5;

const { values } = parseArgs({
  options: { clusters: { type: 'string', default: '10000' }, hosts: { type: 'string', default: '10' } },
});
const [clusters, hosts] = [Number(values.clusters), Number(values.hosts)];

function cluster(index: number): object {
  const name = `service-${index}`;
  const lbEndpoints = Array.from({ length: hosts }, (_, host) => {
    return { endpoint: { address: socketAddress(8080, `10.${index >> 8}.${index & 255}.${host + 1}`) } };
  });
  return {
    name,
    connect_timeout: '0.25s',
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: lbEndpoints }] },
  };
}

function load(): BootstrapConfig {
  const all = Array.from({ length: clusters }, (_, index) => cluster(index));
  const configYaml = JSON.stringify({ static_resources: { clusters: all } });
  const overrides = { serviceCluster: '', serviceNode: '', serviceZone: '' };
  const { bootstrap } = loadBootstrap({ configPath: '', configYaml, allowUnknownStaticFields: false, ...overrides });
  return bootstrap!;
}

function viewOf({ messages, clusters: settings }: BootstrapConfig): ConfigView {
  const fixed = { addedViaApi: false, version: '', updatedMs: 0, state: 'active', error: '' } as const;
  const resources = settings.map(({ name }, at) => ({ ...fixed, name, message: messages.clusters[at]! }));
  return {
    bootstrap: { message: messages.bootstrap, secrets: [], updatedMs: 0 },
    clusters: () => ({ version: '', resources }),
    routes: () => [],
    filters: () => [],
    scopes: () => [],
    secrets: () => [],
    listeners: () => ({ version: '', resources: [] }),
    endpoints: () => [],
  };
}

interface Measured {
  readonly wallMs: number;
  readonly cpuMs: number;
  readonly heldMs: number;
  readonly megabytes: number;
  /** More of it than before, at most. */
  readonly extraMegabytes: number;
}

/** As the server does: each piece becomes bytes, and goes. */
async function measure(pieces: () => AsyncIterable<string>): Promise<Measured> {
  collectGarbage();
  await nextTurn();
  let [heldMs, bytes, isOver] = [0, 0, false];
  const before = process.memoryUsage.rss();
  let most = before;
  // By the processor's clock: on a crowded machine the other one shows the neighbours.
  let last = process.threadCpuUsage();
  const look = (): void => {
    const { user, system } = process.threadCpuUsage(last);
    heldMs = Math.max(heldMs, (user + system) / 1000);
    most = Math.max(most, process.memoryUsage.rss());
    last = process.threadCpuUsage();
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  await nextTurn();
  heldMs = 0;
  const startedAt = performance.now();
  const cpuBefore = process.threadCpuUsage();
  for await (const piece of pieces()) bytes += Buffer.from(piece).length;
  const { user, system } = process.threadCpuUsage(cpuBefore);
  const wallMs = performance.now() - startedAt;
  look();
  isOver = true;
  const megabytes = bytes / MEGABYTE;
  return { wallMs, cpuMs: (user + system) / 1000, heldMs, megabytes, extraMegabytes: (most - before) / MEGABYTE };
}

const cpuBefore = process.threadCpuUsage();
const bootstrap = load();
const { user, system } = process.threadCpuUsage(cpuBefore);
const kept = bootstrap.messages.bootstrap.length / MEGABYTE;
console.log(
  `loaded in ${((user + system) / 1000).toFixed(0)} ms of processor; ${kept.toFixed(1)} MB are kept to be shown`,
);
const view = viewOf(bootstrap);
const name = compileRegex('service-4[0-9]').regex;
const queries = {
  '/config_dump': {},
  'resource=static_clusters': { resource: 'static_clusters' },
  'resource=static_clusters&mask=cluster.name': { resource: 'static_clusters', mask: 'cluster.name' },
  'resource=static_clusters&name_regex=service-4[0-9]': { resource: 'static_clusters', name },
} as const;
const rows: Record<string, object> = {};
let isReached = true;
for (const [query, filter] of Object.entries(queries)) {
  const all: Measured[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const selection = () =>
      select(configDumps(view, false), { resource: undefined, mask: undefined, name: undefined, ...filter });
    all.push(
      await measure(() => {
        const selected = selection();
        if (selected.kind === 'refusal') throw new Error(selected.text);
        return configDumpJson(selected);
      }),
    );
  }
  const of = (key: keyof Measured): number => median(all.map((measured) => measured[key]));
  const times = Math.max(...all.map(({ extraMegabytes, megabytes }) => extraMegabytes / Math.max(megabytes, 10)));
  if (times > BAR.times || of('heldMs') > BAR.heldMs) isReached = false;
  rows[query] = {
    'answer MB': Number(of('megabytes').toFixed(1)),
    ms: Math.round(of('wallMs')),
    'ms of processor': Math.round(of('cpuMs')),
    'main held, ms of processor': Number(of('heldMs').toFixed(1)),
    'memory beside, MB': Number(of('extraMegabytes').toFixed(1)),
  };
}
console.table(rows);
console.log(`bars ${BAR.times} times the answer's length, ${BAR.heldMs} ms: ${isReached ? 'reached' : 'MISSED'}`);
