// What a flush to sinks costs the main thread: 100,000 counters and 5,000 histograms with ten new samples each, to statsd over UDP
// with a line a datagram (150,000 of them), to DogStatsD with 1400 bytes a datagram, to an OpenTelemetry collector, to both the first
// and the last, and to nobody. Bar: main is held for 20 ms at most.
//
//   npm run bench -- stat-sinks

import { once } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { SYSTEM_CLOCK } from '../src/base/clock.ts';
import type { StatSinkContext } from '../src/control-plane/index.ts';
import { createDogStatsdSink } from '../src/extensions/stat_sinks/dog_statsd/sink.ts';
import { createOpenTelemetrySink } from '../src/extensions/stat_sinks/open_telemetry/sink.ts';
import { createStatsdSink } from '../src/extensions/stat_sinks/statsd/sink.ts';
import { SinkFlush, STAT_SINK_STATS, type StatSink, StatsStore, statTable } from '../src/stats/index.ts';
import { compileModule } from '../src/wasm/instantiate.ts';
import { SharedMemoryOwner } from '../src/wasm/shared-memory-owner.ts';
import { NO_FAULTS } from '../test/support/faults.ts';
import { median } from './support/contest.ts';

const CLUSTERS = 5000;
const COUNTERS = 20;
const ROUNDS = 7;
const LATENCIES = [1, 3, 3, 7, 12, 20, 45, 80, 230, 1100];
const NAMES = Array.from({ length: COUNTERS }, (_, at) => `upstream_rq_outcome_${at}`);
const TABLE = statTable({
  ...Object.fromEntries(NAMES.map((name) => [name, 'counter' as const])),
  upstream_rq_time: 'histogram:ms',
});

function newStore(): StatsStore {
  const owner = new SharedMemoryOwner({ workerCount: 2, maxBytes: 2 ** 31 });
  return new StatsStore({ owner, module: compileModule('stats') });
}

const store = newStore();
const blocks = Array.from({ length: CLUSTERS }, (_, at) => store.scope(`cluster.service-${at}.`).allocate(TABLE));
const own = newStore();
const scope = own.scope('stat_sinks.measured.');
const counts = scope.allocate(STAT_SINK_STATS);

const receivers = new Worker(new URL('./support/metric-receiver-worker.ts', import.meta.url));
const [ports] = (await once(receivers, 'message')) as [{ udp: number; otlp: number }];

const context: StatSinkContext = {
  clock: SYSTEM_CLOCK,
  faults: NO_FAULTS,
  log: { debug() {} } as unknown as StatSinkContext['log'],
  scope,
  counts,
  stats: own,
  cluster: () => undefined,
  clusters: () => [],
  hostOf: () => undefined,
  node: { id: '', cluster: '', locality: { region: '', zone: '', subZone: '' }, metadata: {} },
  flushIntervalMs: 5000,
};
const udp = { kind: 'udp', ip: '127.0.0.1', port: ports.udp } as const;
const statsd = createStatsdSink({ prefix: 'proxy', target: udp }, context);
const dogStatsd = createDogStatsdSink({ prefix: 'proxy', target: udp, maxBytes: 1400 }, context);
const openTelemetry = createOpenTelemetrySink(
  {
    service: { target: { kind: 'uri', uri: `127.0.0.1:${ports.otlp}` }, metadata: [], timeoutMs: 60_000 },
    countersAsDeltas: false,
    histogramsAsDeltas: false,
    tagsAsAttributes: true,
    usesExtractedNames: true,
    prefix: '',
  },
  context,
);
const CASES: Readonly<Record<string, readonly StatSink[]>> = {
  'no sink': [],
  'statsd, a line a datagram': [statsd],
  'DogStatsD, 1400 bytes a datagram': [dogStatsd],
  OpenTelemetry: [openTelemetry],
  'statsd and OpenTelemetry': [statsd, openTelemetry],
};

const flush = new SinkFlush(store, (_, error) => {
  throw error;
});

async function recordAndMerge(): Promise<void> {
  for (const [at, block] of blocks.entries()) {
    for (const name of NAMES) block.add(name as never, at + 1);
    for (const latency of LATENCIES) block.record('upstream_rq_time' as never, latency);
    if (at % 500 === 499) await nextTurn();
  }
  await store.mergeHistograms();
}

interface Measured {
  readonly wallMs: number;
  readonly cpuMs: number;
  /** The longest work between two turns of main's event loop. */
  readonly heldMs: number;
  readonly dropped: number;
}

/** By the processor's clock: on a crowded machine the other one shows the neighbours. */
function cpuSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

async function measure(sinks: readonly StatSink[]): Promise<Measured> {
  await recordAndMerge();
  const droppedBefore = counts.value('metrics_dropped');
  let heldMs = 0;
  let isOver = false;
  let last = process.threadCpuUsage();
  const look = (): void => {
    heldMs = Math.max(heldMs, cpuSince(last));
    last = process.threadCpuUsage();
    if (!isOver) setImmediate(look);
  };
  await nextTurn();
  last = process.threadCpuUsage();
  setImmediate(look);
  const start = performance.now();
  const before = process.threadCpuUsage();
  const nowMs = SYSTEM_CLOCK.wallMs();
  await flush.run(sinks, { nowMs, lastMs: nowMs - 5000, startMs: nowMs - 60_000 });
  const wallMs = performance.now() - start;
  // Until all answers are there.
  while (counts.value('queued_bytes') > 0) await nextTurn();
  const cpuMs = cpuSince(before);
  isOver = true;
  return { wallMs, cpuMs, heldMs, dropped: counts.value('metrics_dropped') - droppedBefore };
}

const results = new Map(Object.keys(CASES).map((name) => [name, [] as Measured[]]));
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, sinks] of Object.entries(CASES)) results.get(name)!.push(await measure(sinks));
}
console.log(`\na flush of ${CLUSTERS * COUNTERS} counters and ${CLUSTERS} histograms, median of ${ROUNDS} rounds`);
const rows = [...results].map(([name, all]) => [
  name,
  {
    'first ms': Math.round(all[0]!.wallMs),
    ms: Math.round(median(all.map(({ wallMs }) => wallMs))),
    'ms of processor': Math.round(median(all.map(({ cpuMs }) => cpuMs))),
    'main held, ms of processor': Number(median(all.map(({ heldMs }) => heldMs)).toFixed(1)),
    'at most': Number(Math.max(...all.map(({ heldMs }) => heldMs)).toFixed(1)),
    dropped: Math.max(...all.map(({ dropped }) => dropped)),
  },
]);
console.table(Object.fromEntries(rows));
await Promise.all([statsd.close(), dogStatsd.close(), openTelemetry.close()]);
await receivers.terminate();
