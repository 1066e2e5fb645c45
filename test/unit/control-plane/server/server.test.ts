// The server over workers that only note what they are told: what it makes of a bootstrap, when it is in which state, and
// what it has done when.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { FaultBoundary } from '../../../../src/base/fault-boundary.ts';
import type { RuntimeTexts } from '../../../../src/base/runtime.ts';
import { DynamicResources } from '../../../../src/control-plane/discovery/dynamic-resources.ts';
import { Server, type ServerDependencies } from '../../../../src/control-plane/server/server.ts';
import type { WorkerPool } from '../../../../src/control-plane/workers/worker-pool.ts';
import type { WorkerService } from '../../../../src/control-plane/workers/worker-service.ts';
import { Loggers } from '../../../../src/log/index.ts';
import type { ListenerSnapshot } from '../../../../src/snapshot/index.ts';
import { FILESYSTEM_STATS, statTable } from '../../../../src/stats/index.ts';
import {
  clusterNamed,
  type JsonObject,
  listenerWith,
  mustLoad,
  socketAddress,
  tcpFilter,
} from '../../../support/bootstrap.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const FLUSH_MS = 5000;
const PORT = 4711;

/** In the place of the threads; a test says when they are ready. */
class Workers {
  readonly concurrency = 2;
  readonly runtimes: RuntimeTexts[] = [];
  readonly listeners: ListenerSnapshot[] = [];
  /** How many had come when the first listener did. */
  runtimesBeforeListeners: number | undefined;
  readonly healthChecks: boolean[] = [];
  readonly stops: number[] = [];
  readonly ready = Promise.withResolvers<void>();
  service: WorkerService | undefined;

  async start(service: WorkerService): Promise<void> {
    this.service = service;
    await this.ready.promise;
  }

  async openListener(listener: ListenerSnapshot): Promise<readonly number[]> {
    this.runtimesBeforeListeners ??= this.runtimes.length;
    this.listeners.push(listener);
    return [PORT];
  }

  publishRuntime(texts: RuntimeTexts): void {
    this.runtimes.push(texts);
  }

  failHealthChecks(isFailing: boolean): void {
    this.healthChecks.push(isFailing);
  }

  stopListener(): void {}

  publishCluster(): void {}

  isRunning(): boolean {
    return false;
  }

  async heapStatistics(): Promise<never[]> {
    return [];
  }

  async stop(graceMs: number): Promise<void> {
    this.stops.push(graceMs);
  }
}

const LISTENERS = ['first', 'second'].map((name) =>
  listenerWith([tcpFilter({})], { name, address: { socket_address: { address: '127.0.0.1', port_value: 0 } } }),
);

interface OpenOptions {
  readonly isReady?: boolean;
  readonly statTags?: readonly { readonly name: string; readonly value: string }[];
  readonly parts?: ServerDependencies['parts'];
}

function openServer(
  t: TestContext,
  fields: JsonObject = {},
  { isReady = true, statTags = [], parts = {} }: OpenOptions = {},
) {
  const workers = new Workers();
  if (isReady) workers.ready.resolve();
  const clock = new ManualClock();
  const log: string[] = [];
  const loggers = new Loggers({
    levels: { default: 'info' },
    threadId: 0,
    sink: { write: ({ logger, message }) => void log.push(`${logger}: ${message}`) },
  });
  const faults: string[] = [];
  const server = new Server({
    bootstrap: mustLoad({
      static_resources: { listeners: LISTENERS, clusters: [clusterNamed('web'), clusterNamed('api')] },
      ...('stats_flush_on_admin' in fields ? {} : { stats_flush_interval: `${FLUSH_MS / 1000}s` }),
      ...fields,
    }),
    parts,
    workers: workers as unknown as WorkerPool,
    loggers,
    clock,
    faults: new FaultBoundary((where, error) => faults.push(`${where}: ${(error as Error).message}`)),
    revisionNumber: 42,
    versionText: 'abc/1.2.3/Clean/RELEASE/none',
    unknownFields: 3,
    statTags,
    drainMs: 1000,
    drainStrategy: 'gradual',
    fileFlushIntervalMs: 250,
  });
  t.after(() => server.stop(0));
  const stat = (name: string): number | undefined => server.stats.value(name);
  return { server, workers, clock, loggers, log, faults, stat };
}

describe('a server', () => {
  it('is live when its clusters are warm and its workers and listeners are ready, in that order', async (t) => {
    const { server, workers, clock, log, stat } = openServer(t, {}, { isReady: false });
    const warm = Promise.withResolvers<void>();
    t.mock.method(server.clusterManager, 'start', () => warm.promise);
    assert.equal(server.state, 'PRE_INITIALIZING');
    const started = server.start();
    assert.deepEqual([server.state, stat('server.state')], ['INITIALIZING', 3]);
    assert.equal(stat('server.live'), 0);
    workers.ready.resolve();
    await new Promise(setImmediate);
    assert.equal(workers.listeners.length, 0);
    clock.turn(700);
    warm.resolve();
    await started;
    assert.deepEqual(
      workers.listeners.map(({ settings }) => settings.name),
      ['first', 'second'],
    );
    assert.equal(server.state, 'LIVE');
    assert.deepEqual([stat('server.state'), stat('server.live'), stat('server.uptime')], [0, 1, 0]);
    assert.equal(stat('listener_manager.workers_started'), 1);
    assert.equal(log.at(-1), 'main: all clusters and listeners initialized, serving');
    clock.turn(300);
    assert.equal(server.uptimeSeconds, 1);
    await server.stats.mergeHistograms();
    const times: number[] = [];
    for await (const batch of server.stats.histograms()) {
      const time = batch.find(({ name }) => name === 'server.initialization_time_ms');
      if (time !== undefined) times.push(...time.quantiles('cumulative', [0.5]));
    }
    // A bucket holds 700 to 710.
    assert.ok(times.length === 1 && times[0]! >= 700 && times[0]! <= 710, String(times));
  });

  it('opens its listeners all at once, without waiting for workers, and is live when those are ready', async (t) => {
    const { server, workers } = openServer(t, {}, { isReady: false });
    const gate = Promise.withResolvers<readonly number[]>();
    const opened: string[] = [];
    t.mock.method(workers, 'openListener', ({ settings }: ListenerSnapshot) => {
      opened.push(settings.name);
      return gate.promise;
    });
    const started = server.start();
    await new Promise(setImmediate);
    assert.deepEqual(opened, ['first', 'second']);
    gate.resolve([PORT]);
    await new Promise(setImmediate);
    assert.equal(server.state, 'INITIALIZING');
    workers.ready.resolve();
    await started;
    assert.equal(server.state, 'LIVE');
  });

  it('says why workers could not start rather than that they opened no listener', async (t) => {
    const { server, workers } = openServer(t, {}, { isReady: false });
    t.mock.method(workers, 'openListener', () => Promise.reject(new Error('ended while it opened')));
    const started = assert.rejects(server.start(), /no thread/);
    await new Promise(setImmediate);
    workers.ready.reject(new Error('no thread'));
    await started;
  });

  it('tells of the first of its listeners that fails, whichever fails first', async (t) => {
    const { server, workers } = openServer(t);
    const failure = Promise.withResolvers<never>();
    t.mock.method(workers, 'openListener', ({ settings }: ListenerSnapshot) =>
      settings.name === 'first' ? failure.promise : Promise.reject(new Error('busy')),
    );
    const started = assert.rejects(server.start(), /\(first\)/);
    await new Promise(setImmediate);
    failure.reject(new Error('busy, too'));
    await started;
  });

  it('has the version of its build as a number, or the one that the bootstrap says', async (t) => {
    assert.equal(openServer(t).stat('server.version'), 42);
    assert.equal(openServer(t, { stats_server_version_override: 7 }).stat('server.version'), 7);
    assert.equal(openServer(t, { stats_server_version_override: 0 }).stat('server.version'), 0);
  });

  it('does not become live when a worker cannot start', async (t) => {
    const { server, workers, clock } = openServer(t, {}, { isReady: false });
    const started = server.start();
    workers.ready.reject(new Error('no thread'));
    await assert.rejects(started, /no thread/);
    assert.equal(server.state, 'INITIALIZING');
    assert.equal(clock.timerCount, 0);
  });

  it('counts what it is made of, once', async (t) => {
    const { stat } = openServer(t);
    assert.equal(stat('cluster_manager.active_clusters'), 2);
    assert.equal(stat('server.static_unknown_fields'), 3);
    assert.deepEqual([stat('server.concurrency'), stat('server.version')], [2, 42]);
  });

  it('gives its workers what all of them share, and takes what they tell', async (t) => {
    const { server, workers, stat } = openServer(t, {
      header_prefix: 'x-other',
      node: { id: 'a', cluster: 'b', locality: { zone: 'east' } },
    });
    await server.start();
    const { shared, ...service } = workers.service!;
    assert.deepEqual([shared.headerPrefix, shared.localZone], ['x-other', 'east']);
    assert.equal(shared.accessLogFiles.flushIntervalMs, 250);
    const { statBlock } = shared.accessLogFiles;
    assert.equal(server.stats.scope('filesystem.').allocate(FILESYSTEM_STATS).cell, statBlock);
    assert.deepEqual([...service.clusters()], server.clusterManager.snapshots());
    const cell = service.dynamicStatCell({ scope: 'http.x.', name: 'found' });
    assert.equal(server.stats.dynamicCell({ scope: 'http.x.', name: 'found' }), cell);
    const failed = t.mock.method(server.clusterManager, 'hostFailed', () => {});
    const inRow = t.mock.method(server.clusterManager, 'hostFailedInRow', () => {});
    const unfit = t.mock.method(server.filterConfigs, 'noteUnfit', () => {});
    const cleared = t.mock.method(server.stats, 'clearWorker', () => {});
    service.onHostFailed('web', 64);
    service.onHostFailedInRow('api', 128, 'consecutive-gateway-failure');
    service.onFilterUnfit({ id: 3, edition: 4 }, 'too much');
    service.onWorkerLost(1);
    service.onWorkerRestarted(1);
    const told = [failed, inRow, unfit, cleared].map(({ mock }) => mock.calls.map((call) => [...call.arguments]));
    assert.deepEqual(told, [
      [['web', 64]],
      [['api', 128, 'consecutive-gateway-failure']],
      [[{ id: 3, edition: 4 }, 'too much']],
      [[1]],
    ]);
    assert.equal(stat('server.worker_restarts'), 1);
  });

  it('has a prefix of its headers also where none is configured', async (t) => {
    const { server, workers } = openServer(t);
    await server.start();
    assert.equal(workers.service!.shared.headerPrefix, 'x-proxy');
  });

  it('has the runtime in force before its listeners are made', async (t) => {
    const layers = [{ name: 'static', static_layer: { 'overload.global_downstream_max_connections': 7 } }];
    const { server, workers } = openServer(t, { layered_runtime: { layers } });
    await server.start();
    assert.deepEqual(
      workers.runtimes.map((texts) => [...texts]),
      [[['overload.global_downstream_max_connections', '7']]],
    );
    assert.equal(workers.runtimesBeforeListeners, 1);
  });

  it('waits for runtime layers from elsewhere, says so, and has them in force before its listeners are made', async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-server-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const root = path.join(folder, 'root');
    mkdirSync(root);
    writeFileSync(path.join(root, 'overload.global_downstream_max_connections'), '7');
    const file = path.join(folder, 'layer.json');
    const resource = { '@type': 'type.googleapis.com/envoy.service.runtime.v3.Runtime', name: 'some', layer: { x: 1 } };
    writeFileSync(file, JSON.stringify({ odd: 1, resources: [resource] }));
    const layers = [
      { name: 'disk', disk_layer: { symlink_root: root } },
      { name: 'far', rtds_layer: { name: 'some', rtds_config: { path_config_source: { path: file } } } },
    ];
    const { server, workers, stat } = openServer(t, { layered_runtime: { layers } });
    const started = server.start();
    const [waiting] = [...server.unready()];
    assert.deepEqual(waiting!.targets.slice(0, 4), [
      'worker threads',
      'cluster manager',
      'runtime layer disk',
      'RTDS some',
    ]);
    await started;
    assert.deepEqual([server.runtime.layers(), server.runtime.values.integer('x')], [['disk', 'far'], 1]);
    assert.equal(workers.runtimes.at(0)!.get('overload.global_downstream_max_connections'), '7');
    assert.equal(workers.runtimesBeforeListeners, 1);
    assert.equal(stat('server.dynamic_unknown_fields'), 1);
  });

  it('opens listeners of its own before those that it discovers, behind the clusters of the first answer', async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-server-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const write = (name: string, type: string, resource: JsonObject): JsonObject => {
      const file = path.join(folder, name);
      const resources = [{ '@type': `type.googleapis.com/envoy.config.${type}`, ...resource }];
      writeFileSync(file, JSON.stringify({ version_info: name, resources }));
      return { path_config_source: { path: file } };
    };
    const found = listenerWith([tcpFilter({ cluster: 'late' })], { name: 'found', address: socketAddress('::1', 0) });
    const dynamic_resources = {
      cds_config: write('clusters.json', 'cluster.v3.Cluster', clusterNamed('late')),
      lds_config: write('listeners.json', 'listener.v3.Listener', found),
    };
    const fields = { node: { id: 'me', cluster: 'us' }, dynamic_resources };
    const { server, workers, log } = openServer(t, fields, { parts: { DynamicResources } });
    const clustersBefore: number[] = [];
    const open = workers.openListener.bind(workers);
    t.mock.method(workers, 'openListener', (listener: ListenerSnapshot) => {
      clustersBefore.push([...server.clusterManager.clusters()].length);
      return open(listener);
    });
    const started = server.start();
    assert.ok([...server.unready()][0]!.targets.includes('LDS'));
    await started;
    assert.deepEqual(
      workers.listeners.map(({ settings }) => settings.name),
      ['first', 'second', 'found'],
    );
    assert.deepEqual(clustersBefore, [3, 3, 3]);
    assert.equal(log.at(-1), 'main: all clusters and listeners initialized, serving');
    assert.deepEqual(
      [server.clusterManager.version, server.listenerManager.version],
      ['clusters.json', 'listeners.json'],
    );
  });

  it('gives its stats the tags of the bootstrap', async (t) => {
    const stats_config = { stats_tags: [{ tag_name: 'site', fixed_value: 'lab' }], use_all_default_tags: false };
    const { server } = openServer(t, { stats_config });
    for await (const batch of server.stats.countersAndGauges()) {
      for (const { name, tags } of batch) assert.deepEqual(tags, [{ name: 'site', value: 'lab' }], name);
    }
  });

  it('takes tags out of names as the bootstrap says, and tags of the command line before its own', async (t) => {
    const stats_tags = [
      { tag_name: 'site', fixed_value: 'lab' },
      { tag_name: 'level', regex: '^server\\.((state|live)$)' },
      { tag_name: 'envoy.response_code' },
    ];
    const stats_config = { stats_tags, use_all_default_tags: false };
    const { server } = openServer(t, { stats_config }, { statTags: [{ name: 'site', value: 'here' }] });
    server.stats.scope('cluster.x.').counter('upstream_rq_503');
    const tagsOf: Record<string, unknown> = {};
    for await (const batch of server.stats.countersAndGauges()) {
      for (const { name, tags, extractedName } of batch)
        tagsOf[name] = [extractedName, ...tags.map(({ value }) => value)];
    }
    assert.deepEqual(tagsOf['server.state'], ['server', 'state', 'here']);
    assert.deepEqual(tagsOf['cluster.x.upstream_rq_503'], ['cluster.x.upstream_rq', '503', 'here']);
  });

  const matchers: [name: string, matcher: JsonObject, has: string[], hasNot: string[]][] = [
    ['all', { reject_all: false }, ['server.state', 'runtime.num_keys'], []],
    ['none', { reject_all: true }, [], ['server.state', 'runtime.num_keys']],
    ['those listed', { inclusion_list: { patterns: [{ prefix: 'server.' }] } }, ['server.state'], ['runtime.num_keys']],
    [
      'all but those listed',
      { exclusion_list: { patterns: [{ safe_regex: { regex: 'server\\..*' } }, { exact: 'runtime' }] } },
      ['runtime.num_keys'],
      ['server.state'],
    ],
  ];
  for (const [name, stats_matcher, has, hasNot] of matchers) {
    it(`shows of its stats ${name}`, async (t) => {
      const { server } = openServer(t, { stats_config: { stats_matcher } });
      const names = new Set<string>();
      for await (const batch of server.stats.countersAndGauges()) for (const stat of batch) names.add(stat.name);
      for (const kind of ['counter', 'gauge'] as const) {
        for await (const { stats } of server.stats.numericFamilies(kind)) {
          for (const stat of stats) assert.ok(names.has(stat.name));
        }
      }
      for (const each of has) assert.ok(names.has(each), each);
      for (const each of hasNot) assert.ok(!names.has(each), each);
    });
  }

  it('shows histograms in the buckets of the first settings that match', async (t) => {
    const histogram_bucket_settings = [
      { match: { suffix: 'time_ms' }, buckets: [300, 1.5, 20] },
      { match: { prefix: 'server.' }, buckets: [7] },
    ];
    const { server } = openServer(t, { stats_config: { histogram_bucket_settings } });
    for await (const batch of server.stats.histograms()) {
      for (const { name, bucketBounds } of batch) {
        if (name === 'server.initialization_time_ms') assert.deepEqual(bucketBounds, [1.5, 20, 300]);
        else assert.equal(bucketBounds.length, 19);
      }
    }
  });

  it('shows its version as text, and how often stats were looked up by name', async (t) => {
    const { server, stat } = openServer(t);
    await server.start();
    const texts = server.stats.textReadouts().map(({ name, value }) => [name, value]);
    assert.deepEqual(texts, [['server.version_text', 'abc/1.2.3/Clean/RELEASE/none']]);
    const { total } = server.stats.lookups;
    await server.beforeStatsRead();
    assert.equal(stat('server.stats_recent_lookups'), total);
  });

  it('merges no histogram before it is initialised, though it flushes for whoever asks', async (t) => {
    const { server } = openServer(t, { stats_flush_on_admin: true }, { isReady: false });
    const block = server.stats.scope('early.').allocate(statTable({ time_ms: 'histogram:ms' }));
    const isUsed = async (): Promise<boolean | undefined> => {
      await server.beforeStatsRead();
      for await (const batch of server.stats.histograms()) {
        for (const each of batch) if (each.name === 'early.time_ms') return each.isUsed;
      }
      return undefined;
    };
    block.record('time_ms', 5);
    assert.equal(await isUsed(), false);
  });

  it('fails the health checks of its clients for as long as it is told to', async (t) => {
    const { server, workers, stat } = openServer(t);
    server.failHealthChecks(true);
    assert.equal(server.state, 'PRE_INITIALIZING');
    await server.start();
    assert.deepEqual([server.state, stat('server.state'), stat('server.live')], ['DRAINING', 1, 0]);
    server.failHealthChecks(false);
    assert.deepEqual([server.state, stat('server.state'), stat('server.live')], ['LIVE', 0, 1]);
    assert.deepEqual(workers.healthChecks, [true, false]);
  });

  it('looks for members no longer and flushes no longer once it is stopped, and passes on the grace', async (t) => {
    const { server, workers, clock } = openServer(t);
    const stopped = t.mock.method(server.clusterManager, 'stop');
    await server.start();
    // The flush, and the watchdog.
    assert.equal(clock.timerCount, 2);
    const stopping = server.stop(1234);
    assert.equal(server.state, 'DRAINING');
    await stopping;
    assert.deepEqual(workers.stops, [1234]);
    assert.equal(stopped.mock.callCount(), 1);
    assert.equal(clock.timerCount, 0);
  });
});

describe('the flush of a server', () => {
  it('brings gauges up to date and merges histograms, from time to time', async (t) => {
    const { server, clock, loggers, stat } = openServer(t);
    const merge = t.mock.method(server.stats, 'mergeHistograms');
    t.mock.method(server.listenerManager, 'activeConnections', () => 9);
    clock.turn(FLUSH_MS);
    assert.equal(merge.mock.callCount(), 0);
    await server.start();
    for (let round = 1; round < 4; round++) {
      loggers.countDropped(round);
      clock.turn(FLUSH_MS);
      await new Promise(setImmediate);
      assert.equal(merge.mock.callCount(), round);
      assert.equal(stat('server.uptime'), ((round + 1) * FLUSH_MS) / 1000);
    }
    assert.equal(stat('server.total_connections'), 9);
    assert.equal(stat('server.dropped_log_lines'), 6);
  });

  it('reports a step that fails, which is counted, and goes on', async (t) => {
    const { server, clock, faults, stat } = openServer(t);
    await server.start();
    t.mock.method(server.stats, 'mergeHistograms', () => {
      throw new Error('no memory');
    });
    for (let round = 0; round < 2; round++) {
      clock.turn(FLUSH_MS);
      await new Promise(setImmediate);
    }
    assert.deepEqual(faults, ['a stats flush: no memory', 'a stats flush: no memory']);
    await server.beforeStatsRead();
    assert.equal(stat('server.contained_faults'), 2);
  });

  it('is whole before stats are read where the bootstrap says so, and one at a time', async (t) => {
    const { server, clock, stat } = openServer(t, { stats_flush_on_admin: true });
    await server.start();
    const merge = t.mock.method(server.stats, 'mergeHistograms');
    clock.turn(2000);
    await Promise.all([server.beforeStatsRead(), server.beforeStatsRead()]);
    assert.equal(merge.mock.callCount(), 1);
    assert.deepEqual([stat('server.uptime'), stat('server.dropped_stat_flushes')], [2, 1]);
  });

  it('is otherwise of gauges alone before stats are read', async (t) => {
    const { server, clock, stat } = openServer(t);
    const merge = t.mock.method(server.stats, 'mergeHistograms');
    clock.turn(2000);
    await server.beforeStatsRead();
    assert.equal(merge.mock.callCount(), 0);
    assert.equal(stat('server.uptime'), 2);
  });
});
