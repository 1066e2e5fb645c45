// A fault in what the main thread does by itself reaches neither the process of whoever embeds a proxy nor the end of `weir`: one
// is injected into each kind of turn of the event loop, which then goes on. Those of timers and of single events stand in
// test/unit/base/fault-boundary.test.ts; that there are no others, in test/architecture/imports.test.ts.

import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { IpAddress } from '../../../src/base/address.ts';
import { ResolveTarget } from '../../../src/control-plane/cluster-manager/discovery/resolve-target.ts';
import { ProbeConnection } from '../../../src/control-plane/cluster-manager/health-check/probe-connection.ts';
import { startExchange } from '../../../src/control-plane/dns/exchange.ts';
import { HeldResolver } from '../../../src/control-plane/dns/resolvers.ts';
import { ListenerManager } from '../../../src/control-plane/listener-manager/listener-manager.ts';
import { TicketSecret } from '../../../src/control-plane/listener-manager/ticket-secret.ts';
import { OverloadManager } from '../../../src/control-plane/overload/overload-manager.ts';
import { Runtime } from '../../../src/control-plane/runtime/runtime.ts';
import { BootstrapUpdates } from '../../../src/control-plane/server/bootstrap-update.ts';
import { MoveWatch } from '../../../src/control-plane/subscription/move-watch.ts';
import { TapFilesWriter } from '../../../src/control-plane/tap/tap-files.ts';
import { Watchdog } from '../../../src/control-plane/watchdog/watchdog.ts';
import { WorkerThread } from '../../../src/control-plane/workers/worker-thread.ts';
import { type Logger, Loggers } from '../../../src/log/index.ts';
import {
  clusterNamed,
  httpFilter,
  listenerWith,
  mustLoad,
  socketAddress,
  withClusters,
  withListeners,
} from '../../support/bootstrap.ts';
import { found, RESOLVER, target } from '../../support/dns-discovery.ts';
import { DnsServer } from '../../support/dns-server.ts';
import { eventually } from '../../support/eventually.ts';
import { notedFaults } from '../../support/faults.ts';
import { HealthServer } from '../../support/health-server.ts';
import { ManagedClusters } from '../../support/managed-clusters.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { NO_FILTERS_LEASED } from '../../support/no-filters.ts';
import { NO_ROUTES_LEASED } from '../../support/no-routes.ts';
import { NO_SECRETS_LEASED } from '../../support/no-secrets.ts';
import { statsFixture } from '../../support/stats.ts';
import { fileSources } from '../../support/subscriptions.ts';

const LOGGERS = new Loggers({ levels: { default: 'off' }, threadId: 0, sink: { write() {} } });

function fail(): never {
  throw new Error('injected');
}

/** Fails when it is called first. */
function failOnce<Args extends readonly unknown[]>(callback: (...args: Args) => void = () => {}) {
  let calls = 0;
  return (...args: Args): void => {
    calls += 1;
    if (calls === 1) fail();
    callback(...args);
  };
}

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-faults-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

function linkAt(place: string): void {
  symlinkSync('.', `${place}.next`);
  renameSync(`${place}.next`, place);
}

describe('a fault on the main thread is contained', () => {
  it('when runtime files are read again, and they are the next time', async (t) => {
    const { faults, reports } = notedFaults();
    const root = path.join(folderOf(t), 'root');
    linkAt(root);
    let readings = 0;
    const runtime = new Runtime({
      faults,
      hash: () => 0n,
      stats: statsFixture().store,
      workers: { publishRuntime() {} },
      clock: new ManualClock(),
      log: LOGGERS.get('runtime'),
      subscriptions: fileSources(),
      // biome-ignore lint/correctness/useYield: one step is enough
      *readFiles() {
        readings += 1;
        if (readings === 2) fail();
        return { kind: 'read', values: new Map([['x', String(readings)]]) };
      },
    });
    const files = { symlinkRoot: root, folder: root };
    await runtime.load([{ name: 'files', kind: 'files', values: new Map(), files }]);
    linkAt(root);
    await eventually(() => reports.length === 1, 'the fault');
    assert.deepEqual(reports, [`reading ${root} again: Error: injected`]);
    linkAt(root);
    await eventually(() => runtime.values.text('x') === '3', 'the third reading');
    runtime.close();
  });

  it('when a watched place has been replaced, which is watched on', async (t) => {
    const { faults, reports } = notedFaults();
    const folder = folderOf(t);
    let moves = 0;
    const onMoved = failOnce(() => {
      moves += 1;
    });
    const watch = MoveWatch.ofPlace(path.join(folder, 'place'), faults, { onMoved, onError: fail });
    linkAt(path.join(folder, 'place'));
    await eventually(() => reports.length === 1, 'the fault');
    writeFileSync(path.join(folder, 'place.next'), '');
    renameSync(path.join(folder, 'place.next'), path.join(folder, 'place'));
    await eventually(() => moves > 0, 'another move');
    assert.deepEqual(reports, [`the watch of ${folder}: Error: injected`]);
    watch.close();
  });

  it('at the connection of a health check, however it comes about', async () => {
    for (const event of ['onOpen', 'onBytes', 'onLost'] as const) {
      const { faults, reports } = notedFaults();
      await using server = await HealthServer.start((socket) => socket.end('yes'));
      const noted: string[] = [];
      const listener = {
        onOpen: () => void noted.push('onOpen'),
        onBytes: () => void noted.push('onBytes'),
        onLost: () => void noted.push('onLost'),
        [event]: fail,
      };
      const connection = new ProbeConnection(
        { sourceAddress: undefined, systemCalls: undefined, preamble: Buffer.from('?') },
        [],
        faults,
        listener,
      );
      connection.open({ address: { kind: 'ip', ip: '127.0.0.1', port: server.port }, authority: '' });
      await eventually(() => noted.length + reports.length === 3, 'all events');
      assert.deepEqual(reports, ['the connection of a health check: Error: injected']);
      connection.close();
    }
  });

  it('when a DNS server has answered, over UDP and TCP', async () => {
    await using server = await DnsServer.start();
    server.set('web.test', ['10.0.0.1']);
    for (const transport of ['udp', 'tcp'] as const) {
      const { faults, reports } = notedFaults();
      const question = { id: 4711, name: 'web.test', type: 'A' } as const;
      startExchange(transport, { ip: '127.0.0.1', port: server.port }, question, faults, fail);
      await eventually(() => reports.length > 0, 'the fault');
      assert.deepEqual(reports, ['an exchange with a DNS server: Error: injected']);
    }
  });

  it('when a cluster takes an answer in, or before that, and its name is looked up on', async () => {
    for (const step of ['onLookup', 'warning', 'onAnswer'] as const) {
      const { faults, reports } = notedFaults();
      const clock = new ManualClock();
      const answer = step === 'warning' ? ({ kind: 'failure', reason: 'none' } as const) : found(['10.0.0.1']);
      const resolver = { lookup: async () => answer, cancel() {} };
      const resolvers = { hold: () => new HeldResolver(resolver, () => {}) };
      let steps = 0;
      const failing = failOnce(() => {
        steps += 1;
      });
      const listener = { clusterName: 'shop', onLookup() {}, onAnswer() {}, [step]: failing };
      const settings = {
        kind: 'strict-dns',
        targets: [],
        lookupFamily: 'AUTO',
        familyOrder: undefined as never,
        refreshRateMs: 1000,
        failureRefresh: undefined,
        jitterMs: 0,
        respectTtl: false,
        resolver: RESOLVER,
      } as const;
      const log = { warning: step === 'warning' ? failing : () => {}, info() {} } as unknown as Logger;
      const tools = { clock, faults, random: { u32: () => 0 }, resolvers, log };
      const lookups = new ResolveTarget(target('web.test'), settings, tools, resolver, listener);
      lookups.start();
      await turn();
      assert.deepEqual(reports, ['a DNS lookup: Error: injected']);
      clock.turn(1000);
      await turn();
      assert.equal(steps, 1, step);
      lookups.stop();
    }
  });

  it('when hosts that were wanted are published', async () => {
    const { faults, reports } = notedFaults();
    const clusters = new ManagedClusters([], '', faults);
    const cluster = { name: 'made', type: 'ORIGINAL_DST', lb_policy: 'CLUSTER_PROVIDED' };
    clusters.manager.addStatic(mustLoad(withClusters(cluster)).clusters[0]!);
    await clusters.manager.start();
    Object.defineProperty(clusters, 'published', { get: fail });
    const address: IpAddress = { kind: 'ip', ip: '127.0.0.1', port: 1 };
    assert.equal(clusters.manager.hostWanted('made', address), undefined);
    await eventually(() => reports.length === 1, 'the fault');
    assert.deepEqual(reports, ['taking hosts in: Error: injected']);
    clusters.manager.stop();
  });

  it('when one of several listeners is left to another process, and all come back', async () => {
    const { faults, reports } = notedFaults();
    const { store, owner } = statsFixture();
    const stopped: number[] = [];
    const stopAccepting = failOnce((id: number, applied: () => void) => {
      stopped.push(id);
      applied();
    });
    const listeners = new ListenerManager({
      faults,
      stats: store,
      memory: owner,
      concurrency: 1,
      loggers: LOGGERS,
      clock: new ManualClock(),
      drainMs: 0,
      drainStrategy: 'immediate',
      ticketSecret: new TicketSecret(),
      routes: NO_ROUTES_LEASED,
      secrets: NO_SECRETS_LEASED,
      filters: NO_FILTERS_LEASED,
      workers: {
        openListener: async () => [0],
        secureListener() {},
        updateChains: async () => {},
        shareSockets: async () => [],
        stopAccepting,
        stopListener() {},
      },
    });
    for (const [index, name] of ['one', 'two', 'three'].entries()) {
      const address = socketAddress('127.0.0.1', 4000 + index);
      const config = mustLoad(withListeners(listenerWith([httpFilter({ stat_prefix: name })], { name, address })));
      await listeners.addStatic(config.listeners[0]!);
    }
    const states = () => [...listeners.listeners()].map(({ accepting }) => accepting);
    listeners.leave();
    await eventually(() => stopped.length === 2, 'the other listeners');
    assert.deepEqual(reports, ['stopping listener one: Error: injected']);
    assert.deepEqual(states(), ['stopped', 'stopped', 'stopped']);
    await listeners.takeBack();
    assert.deepEqual(states(), ['yes', 'yes', 'yes']);
  });

  it('when the last connection of a former bootstrap has ended', async () => {
    const { faults, reports } = notedFaults();
    const former = mustLoad(withClusters(clusterNamed('gone'), clusterNamed('here')));
    const next = mustLoad(withClusters(clusterNamed('here')));
    const updates = new BootstrapUpdates(former, {
      faults,
      clock: new ManualClock(),
      clusters: { whenAllServe: async () => {}, put: () => true, remove: fail },
      listeners: { whenNoneDrains: async () => {} },
      config: { replaceBootstrap() {} },
    } as never);
    await updates.apply(next);
    await eventually(() => reports.length === 1, 'the fault');
    assert.deepEqual(reports, ['the removal of clusters: Error: injected']);
  });

  it('when a stuck worker is reported and ended', async () => {
    const { faults, reports } = notedFaults();
    const { store, owner } = statsFixture();
    const clock = new ManualClock();
    const limits = { missMs: 100, megaMissMs: 200, killMs: 400, killJitterMs: 0, multikillMs: 0, multikillPercent: 0 };
    const watchdog = new Watchdog({
      faults,
      settings: { main: { ...limits, killMs: 0 }, workers: limits },
      stats: store,
      allocator: owner.recordAllocator,
      records: owner.shared.records,
      clock,
      random: { u32: () => 0 },
      log: LOGGERS.get('main'),
      workers: { concurrency: 1, isRunning: () => true, whereIs: fail, endStuck: async () => fail() },
      abort: fail,
    });
    const { beats } = watchdog.forWorker(0);
    owner.shared.records.addCount(beats, 1);
    watchdog.start();
    for (let passedMs = 0; passedMs < 600; passedMs += 50) clock.turn(50);
    await turn();
    assert.deepEqual(reports, ['the report on worker 0: Error: injected', 'ending worker 0: Error: injected']);
    watchdog.close();
  });

  it('when an overload monitor has found something out, and it is asked again', async () => {
    const { faults, reports } = notedFaults();
    const clock = new ManualClock();
    let published = 0;
    const publishOverload = failOnce(() => {
      published += 1;
    });
    let heapBytes = 100;
    const monitor = 'proxy.resource_monitors.fixed_heap';
    const manager = new OverloadManager({
      faults,
      settings: {
        refreshIntervalMs: 100,
        monitors: [{ name: monitor, resource: { kind: 'heap', maxBytes: 100 } }],
        actions: [{ name: 'stop_accepting_requests', triggers: [{ monitor, fromPressure: 0.5, toPressure: 0.5 }] }],
        shedPoints: [],
        timeoutFloors: {},
        expensiveFromBytes: 1024,
      },
      stats: statsFixture().store,
      clock,
      log: LOGGERS.get('main'),
      workers: { publishOverload, resetStreams() {}, shrinkHeaps() {} },
      resources: { heapBytes: async () => heapBytes, connections: () => 0 },
      shrinkHeap() {},
    });
    manager.start();
    await turn();
    assert.deepEqual(reports, [`the overload monitor ${monitor}: Error: injected`]);
    heapBytes = 0;
    clock.turn(100);
    await turn();
    assert.equal(published, 1);
    manager.close();
  });

  it('when a tapped exchange is written, and the next one is', async (t) => {
    const { faults, reports } = notedFaults();
    let written = 0;
    const onDropped = fail;
    const log = { warning() {} };
    const writer = new TapFilesWriter({ faults, log, onWritten: () => void written++, onDropped });
    const folder = folderOf(t);
    const piece = { part: 'request_body_chunk', body: { bytes: new Uint8Array(1), isTruncated: false } } as const;
    const trace = { kind: 'piece', exchangeId: 7, piece } as const;
    writer.write({ pathPrefix: path.join(folder, 'missing/edge'), format: 'json-text', exchangeId: 7 }, trace);
    await eventually(() => reports.length === 1, 'the fault');
    assert.deepEqual(reports, ['writing tapped exchanges: Error: injected']);
    writer.write({ pathPrefix: path.join(folder, 'edge'), format: 'json-text', exchangeId: 7 }, trace);
    await eventually(() => written === 1, 'the next file');
  });

  it('when a worker has sent something, or has ended', async () => {
    const { faults, reports } = notedFaults();
    const worker = new WorkerThread(3, { onMessage: fail, onEnd: fail }, faults);
    // Without its first message it knows no other; told to stop, it says that it has.
    worker.send({ type: 'shutdown', graceMs: 0 });
    await eventually(() => reports.length === 1, 'the first fault');
    await worker.terminate();
    await eventually(() => reports.length === 2, 'the second fault');
    assert.deepEqual(reports, [
      "message 'stopped' of worker 3: Error: injected",
      'the end of worker 3: Error: injected',
    ]);
  });
});
