// The pool of workers on main: what it sends them, and what it makes of their words.

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { type MessagePort, Worker } from 'node:worker_threads';
import {
  type ClusterSnapshot,
  type DrainState,
  type HostsUpdate,
  NO_OVERLOAD,
  type PackedCluster,
  type TapSession,
  unpackCluster,
} from '../../../../src/snapshot/index.ts';
import { eventually } from '../../../support/eventually.ts';
import { ADDRESS, openPool, PIPE, pooledListener } from '../../../support/spoken-workers.ts';

const PROFILE_OPTIONS = { sampleInterval: 1, stackDepth: 2, maxBufferSize: 3 };

/** Of the orders to both workers. One that stays open keeps the test alive. */
function portsOf(t: TestContext, sent: readonly unknown[]): [MessagePort, MessagePort] {
  const orders = sent as readonly [number, string, { readonly port: MessagePort }][];
  const ports = orders.map(([, , { port }]) => port);
  t.after(() => {
    for (const port of ports) port.close();
  });
  return ports as [MessagePort, MessagePort];
}

describe('the pool of workers', () => {
  it('gives each its work, with what has been said before, and has started when all are ready', async (t) => {
    const { pool, service, take, say } = openPool(t);
    let applied = 0;
    pool.publishRuntime(new Map([['a', '1']]));
    pool.failHealthChecks(true);
    const drains: DrainState = { inbound: { strategy: 'gradual', elapsedMs: 7, durationMs: 600 }, others: null };
    pool.publishDrains(() => drains);
    const tap = { id: 3 } as TapSession;
    pool.publishTap(tap);
    const overload = { ...NO_OVERLOAD, refusedRequests: 0.5 };
    pool.publishOverload(overload);
    pool.shrinkHeaps();
    pool.resetStreams({ fromBytes: 1, countCell: 2 });
    pool.removeCluster('web', () => {
      applied += 1;
    });
    assert.deepEqual([take(), applied], [[], 1]);
    let isStarted = false;
    const started = pool.start(service).then(() => {
      isStarted = true;
    });
    const init = {
      clusters: [],
      routeTables: [],
      scopeSets: [],
      discoveredFilters: [],
      runtime: new Map([['a', '1']]),
      logLevels: { default: 'info' },
    };
    const inits = take() as [number, string, { init: object }][];
    for (const [index, [worker, type, fields]] of inits.entries()) {
      assert.deepEqual([worker, type], [index, 'init']);
      const { logLevels: _, ...expected } = init;
      assert.deepEqual(fields.init, {
        ...expected,
        logLevels: (fields.init as { logLevels: object }).logLevels,
        workerIndex: index,
        isHealthCheckFailing: true,
        drains,
        tap,
        overload,
        watchdog: null,
        loopBlock: null,
      });
    }
    assert.equal(inits.length, 2);
    say(0, { type: 'ready' });
    await new Promise(setImmediate);
    assert.equal(isStarted, false);
    say(1, { type: 'ready' });
    await started;
  });

  it('tells all of them what is new', async (t) => {
    const { pool, start, take, loggers } = openPool(t);
    await start();
    pool.failHealthChecks(true);
    pool.publishRuntime(new Map([['b', '2']]));
    pool.reopenAccessLogs();
    const drains = { inbound: { strategy: 'gradual', elapsedMs: 0, durationMs: 600 }, others: null } as const;
    pool.publishDrains(() => drains);
    pool.publishTap(null);
    pool.publishOverload(NO_OVERLOAD);
    pool.shrinkHeaps();
    pool.settle();
    const reset = { fromBytes: 1, countCell: 2 };
    pool.resetStreams(reset);
    assert.deepEqual(take(), [
      [0, 'fail-health-checks', { isFailing: true }],
      [1, 'fail-health-checks', { isFailing: true }],
      [0, 'runtime', { texts: new Map([['b', '2']]) }],
      [1, 'runtime', { texts: new Map([['b', '2']]) }],
      [0, 'reopen-access-logs', {}],
      [1, 'reopen-access-logs', {}],
      [0, 'drains', { drains }],
      [1, 'drains', { drains }],
      [0, 'tap', { session: null }],
      [1, 'tap', { session: null }],
      [0, 'overload', { state: NO_OVERLOAD }],
      [1, 'overload', { state: NO_OVERLOAD }],
      [0, 'shrink-heap', {}],
      [1, 'shrink-heap', {}],
      [0, 'settle', {}],
      [1, 'settle', {}],
      [0, 'reset-streams', { reset }],
      [1, 'reset-streams', { reset }],
    ]);
    assert.equal(pool.concurrency, 2);
    assert.equal(loggers.dropped, 0);
  });

  it('hears from all of them that something is applied', async (t) => {
    const { pool, start, take, say } = openPool(t);
    await start();
    const applied: string[] = [];
    const update = { cluster: 'web' } as HostsUpdate;
    pool.publishHosts(update, () => applied.push('hosts'));
    pool.removeCluster('web', () => applied.push('removed'));
    const drain = { strategy: 'gradual', elapsedMs: 0, durationMs: 5 } as const;
    pool.stopListener(3, 4, drain, () => applied.push('stopped'));
    pool.stopAccepting(6, () => applied.push('quiet'), true);
    const said = take() as [number, string, { updates: { generation: number }[] }][];
    const { generation } = said[0]![2].updates[0]!;
    const updates = [
      { type: 'hosts', generation, update },
      { type: 'cluster-removed', generation: generation + 1, name: 'web' },
    ];
    assert.deepEqual(said, [
      [0, 'updates', { updates }],
      [1, 'updates', { updates }],
      [0, 'stop-listener', { generation: generation + 2, listenerId: 3, successor: 4, drain }],
      [1, 'stop-listener', { generation: generation + 2, listenerId: 3, successor: 4, drain }],
      [0, 'stop-accepting', { generation: generation + 3, listenerId: 6, leavesPaths: true }],
      [1, 'stop-accepting', { generation: generation + 3, listenerId: 6, leavesPaths: true }],
    ]);
    for (let step = 0; step < 3; step++) say(0, { type: 'applied', generations: [generation + step] });
    assert.deepEqual(applied, []);
    say(1, { type: 'applied', generations: [generation] });
    assert.deepEqual(applied, ['hosts']);
  });

  it('brings a cluster to all of them', async (t) => {
    const { pool, start, take, say } = openPool(t);
    await start();
    let applied = 0;
    const cluster = { settings: { name: 'web' }, hosts: [] } as unknown as ClusterSnapshot;
    pool.publishCluster(cluster, () => {
      applied += 1;
    });
    await new Promise(setImmediate);
    const said = take() as [number, string, { generation: number; cluster: PackedCluster }][];
    assert.deepEqual(
      said.map(([index, type, fields]) => [index, type, unpackCluster(fields.cluster)]),
      [0, 1].map((index) => [index, 'cluster', cluster]),
    );
    for (const [index, , { generation }] of said) {
      assert.equal(applied, 0);
      say(index, { type: 'applied', generations: [generation] });
    }
    assert.equal(applied, 1);
  });

  it('opens a listener in the first, and with its ports in the others', async (t) => {
    const { pool, start, take, say } = openPool(t, 3);
    await start();
    const snapshot = pooledListener(1);
    const opened = pool.openListener(snapshot, 9);
    assert.deepEqual(take(), [[0, 'listen', { listener: snapshot, ports: [0], predecessor: 9, inherited: null }]]);
    say(0, { type: 'listening', listenerId: 1, ports: [4000] });
    await new Promise(setImmediate);
    assert.deepEqual(
      take(),
      [1, 2].map((index) => [index, 'listen', { listener: snapshot, ports: [4000], predecessor: 9, inherited: null }]),
    );
    say(1, { type: 'listening', listenerId: 1, ports: [4000] });
    say(2, { type: 'listening', listenerId: 1, ports: [4000] });
    assert.deepEqual(await opened, [4000]);
  });

  it('opens a listener in all at once where the system has no port to choose, and waits for each', async (t) => {
    const { pool, start, take, say } = openPool(t);
    await start();
    const snapshot = pooledListener(1, { addresses: [{ ...ADDRESS, port: 4444 }] });
    let isOpen = false;
    const opened = pool.openListener(snapshot).finally(() => {
      isOpen = true;
    });
    assert.deepEqual(
      take(),
      [0, 1].map((index) => [
        index,
        'listen',
        { listener: snapshot, ports: [4444], predecessor: null, inherited: null },
      ]),
    );
    say(1, { type: 'listening', listenerId: 1, ports: [4444] });
    await new Promise(setImmediate);
    assert.equal(isOpen, false);
    say(0, { type: 'listening', listenerId: 1, ports: [4444] });
    assert.deepEqual(await opened, [4444]);
  });

  it('tells of the failure of the first where none can open a listener', async (t) => {
    const { pool, start, say } = openPool(t);
    await start();
    const opened = pool.openListener(pooledListener(1, { addresses: [{ ...ADDRESS, port: 4444 }] }));
    say(1, { type: 'listen-failed', listenerId: 1, reason: 'the second' });
    say(0, { type: 'listen-failed', listenerId: 1, reason: 'the first' });
    await assert.rejects(opened, { code: 'WEIR_LISTEN_FAILED', message: 'the first' });
  });

  it('tells workers of a listener right behind their work, before they are ready', async (t) => {
    const { pool, service, types, say } = openPool(t);
    const started = pool.start(service);
    const opened = pool.openListener(pooledListener(1, { addresses: [{ ...ADDRESS, port: 4444 }] }));
    assert.deepEqual(types(), ['0 init', '1 init', '0 listen', '1 listen']);
    for (const index of [0, 1]) {
      say(index, { type: 'ready' });
      say(index, { type: 'listening', listenerId: 1, ports: [4444] });
    }
    await started;
    await opened;
    assert.deepEqual(types(), []);
  });

  it('shares out the sockets of another process', async (t) => {
    const { pool, start, take, say } = openPool(t, 2);
    await start();
    const opened = pool.openListener(pooledListener(1), null, [[11, 12, 13], []]);
    say(0, { type: 'listening', listenerId: 1, ports: [4000] });
    await new Promise(setImmediate);
    say(1, { type: 'listening', listenerId: 1, ports: [4000] });
    await opened;
    const told = take() as [number, string, { inherited: unknown }][];
    assert.deepEqual(
      told.map(([index, , { inherited }]) => [index, inherited]),
      [
        [0, [[11, 13], []]],
        [1, [[12], []]],
      ],
    );
  });

  it('gives all sockets of another process to the first, where that alone serves the listener', async (t) => {
    const { pool, start, take, say } = openPool(t, 2);
    await start();
    const opened = pool.openListener(pooledListener(1, { reusePort: false }), null, [[11, 12]]);
    say(0, { type: 'listening', listenerId: 1, ports: [4000] });
    await opened;
    const [[, , { inherited }]] = take() as [[number, string, { inherited: unknown }]];
    assert.deepEqual(inherited, [[11, 12]]);
  });

  it('asks all of them for their sockets on an address', async (t) => {
    const { pool, start, take, say } = openPool(t, 2);
    await start();
    const shared = pool.shareSockets(3, 1);
    const told = take() as [number, string, { question: number }][];
    const { question } = told[0]![2];
    assert.deepEqual(told, [
      [0, 'share-sockets', { question, listenerId: 3, addressIndex: 1 }],
      [1, 'share-sockets', { question, listenerId: 3, addressIndex: 1 }],
    ]);
    say(1, { type: 'shared-sockets', question, descriptors: [21] });
    say(0, { type: 'shared-sockets', question, descriptors: [20, 22] });
    assert.deepEqual(await shared, [21, 20, 22]);
  });

  for (const { name, settings } of [
    { name: 'that is not to be shared', settings: { reusePort: false } },
    { name: 'with a pipe', settings: { addresses: [ADDRESS, PIPE] } },
  ]) {
    it(`opens a listener ${name} in the first alone`, async (t) => {
      const { pool, start, types, say } = openPool(t);
      await start();
      const opened = pool.openListener(pooledListener(1, settings));
      say(0, { type: 'listening', listenerId: 1, ports: [4000] });
      assert.deepEqual(await opened, [4000]);
      assert.deepEqual(types(), ['0 listen']);
    });
  }

  it('opens one that binds to no port in all of them, whatever it says of sharing', async (t) => {
    const { pool, start, types, say } = openPool(t);
    await start();
    const opened = pool.openListener(pooledListener(1, { bindsToPort: false, reusePort: false }));
    for (const index of [0, 1]) {
      say(index, { type: 'listening', listenerId: 1, ports: [0] });
      await new Promise(setImmediate);
    }
    await opened;
    assert.deepEqual(types(), ['0 listen', '1 listen']);
  });

  it('waits for all before it tells of a listener that one could not open', async (t) => {
    const { pool, start, say, messages } = openPool(t, 3);
    await start();
    let isOver = false;
    const opened = pool.openListener(pooledListener(1)).finally(() => {
      isOver = true;
    });
    const refused = assert.rejects(opened, { code: 'WEIR_LISTEN_FAILED', message: 'in use' });
    say(0, { type: 'listening', listenerId: 1, ports: [4000] });
    await new Promise(setImmediate);
    say(1, { type: 'listen-failed', listenerId: 1, reason: 'in use' });
    await new Promise(setImmediate);
    assert.equal(isOver, false);
    say(2, { type: 'listening', listenerId: 1, ports: [4000] });
    await refused;
    // Of an opening that nobody waits for.
    say(2, { type: 'listen-failed', listenerId: 1, reason: 'gone' });
    assert.deepEqual(messages, ['worker 2 cannot open listener 1 again: gone']);
  });

  it('passes on what workers say of hosts and filters, and answers what they ask', async (t) => {
    const { start, say, take, told } = openPool(t);
    await start();
    say(1, { type: 'host-failed', cluster: 'web', recordAddress: 8 });
    say(1, { type: 'outlier', cluster: 'web', recordAddress: 8, kind: 'consecutive-5xx' });
    say(0, { type: 'filter-unfit', place: { id: 3, edition: 4 }, reason: 'too much' });
    say(0, { type: 'host-wanted', cluster: 'web', address: { ...ADDRESS, port: 2 } });
    assert.deepEqual(told, [
      ['failed', 'web', 8],
      ['in row', 'web', 8, 'consecutive-5xx'],
      ['unfit', { id: 3, edition: 4 }, 'too much'],
    ]);
    assert.deepEqual(take(), []);
    say(0, { type: 'host-wanted', cluster: 'web', address: { ...ADDRESS, port: 1 } });
    const key = { scope: 'a.', name: 'b' };
    say(1, { type: 'dynamic-stat', key });
    assert.deepEqual(take(), [
      [0, 'host-refused', { cluster: 'web', address: '127.0.0.1:1', reason: 'overflow' }],
      [1, 'dynamic-stat', { key, cell: 7 }],
    ]);
  });

  it('passes on what workers record for a tap, and has them send more', async (t) => {
    const { start, say, take, told } = openPool(t);
    await start();
    const trace = { kind: 'piece' };
    say(1, { type: 'tap-trace', to: 3, trace, cost: 500, dropped: 2 });
    say(1, { type: 'tap-dropped', from: 3, count: 4 });
    assert.deepEqual(told, [
      ['traced', 3, trace, 2],
      ['dropped', 3, 4],
    ]);
    assert.deepEqual(take(), [[1, 'tap-taken', { cost: 500 }]]);
  });

  it('asks for the ports that a listener names, and none of a pipe', async (t) => {
    const { pool, start, take, say, messages } = openPool(t, 1);
    await start();
    const opened = pool.openListener(pooledListener(1, { addresses: [{ ...ADDRESS, port: 4444 }, PIPE] }));
    const [[, , { ports }]] = take() as [[number, string, { ports: number[] }]];
    assert.deepEqual(ports, [4444, 0]);
    say(0, { type: 'listening', listenerId: 1, ports });
    // What nobody waits for any more is no fault.
    say(0, { type: 'listening', listenerId: 1, ports });
    assert.deepEqual([await opened, messages], [[4444, 0], []]);
  });

  it('tells of other log levels, and writes the lines of workers', async (t) => {
    const { start, loggers, types, say, messages } = openPool(t);
    await start();
    loggers.setAll('warning');
    assert.deepEqual(types(), ['0 log-levels', '1 log-levels']);
    const place = { file: '', line: 0, functionName: '' };
    const record = { logger: 'main', level: 'info', message: 'x'.repeat(1_000_000), stack: '', timeMs: 0, ...place };
    say(1, { type: 'log', record, dropped: 2 });
    assert.deepEqual(messages, ['2 lines of worker 1 are missing here: the main thread was behind', record.message]);
    assert.deepEqual([loggers.dropped, types()], [2, ['1 log-taken']]);
  });

  it('asks the engines of all of them, and waits for none for ever', async (t) => {
    const { pool, start, clock } = openPool(t);
    const mock = (name: 'getHeapStatistics', answers: unknown[]) =>
      t.mock.method(Worker.prototype, name, async () => answers.shift() ?? Promise.reject(new Error('no')));
    const never = new Promise(() => {});
    mock('getHeapStatistics', [Promise.resolve({ used_heap_size: 7 }), never]);
    const late = Promise.withResolvers<object>();
    const stops: string[] = [];
    const handleOf = (name: string): object => ({ stop: async () => name + stops.push(name) });
    mock('startCpuProfile' as 'getHeapStatistics', [late.promise, handleOf('a')]);
    await start();
    const statistics = pool.heapStatistics();
    const starting = pool.startProfile('cpu', PROFILE_OPTIONS);
    await new Promise(setImmediate);
    clock.turn(120_000);
    assert.deepEqual(await statistics, [{ used_heap_size: 7 }]);
    const [profile, ...others] = await starting;
    assert.deepEqual([profile!.thread, await profile!.stop(), others], ['worker_1', 'a1', []]);
    // One that begins when nobody waits for it is stopped.
    late.resolve(handleOf('late'));
    await new Promise(setImmediate);
    assert.deepEqual(stops, ['a', 'late']);
    assert.equal(clock.timerCount, 0);
  });

  it('has all of them sample their heaps, and ends the order for one that does not answer', async (t) => {
    const { pool, start, take, clock } = openPool(t);
    await start();
    const starting = pool.startProfile('heap', PROFILE_OPTIONS);
    const asked = take() as [number, string, { options: object }][];
    assert.deepEqual(
      asked.map(([worker, type, { options }]) => [worker, type, options]),
      [0, 1].map((worker) => [worker, 'sample-heap', PROFILE_OPTIONS]),
    );
    const [silent, sampling] = portsOf(t, asked);
    const closed = [silent, sampling].map((port) => new Promise((resolve) => port.once('close', resolve)));
    sampling.once('message', (order: string) => sampling.postMessage(`profile after ${order}`));
    sampling.postMessage('sampling');
    // It comes in its own turn of the loop; the other is given up then.
    await eventually(() => clock.timerCount === 1, 'the answer of one');
    clock.turn(2_000);
    const [profile, ...others] = await starting;
    assert.deepEqual([profile!.thread, others], ['worker_1', []]);
    await closed[0];
    assert.equal(await profile!.stop(), 'profile after stop');
    await closed[1];
    const again = pool.startProfile('heap', PROFILE_OPTIONS);
    const ports = portsOf(t, take());
    const given = ports.map((port) => new Promise((resolve) => port.once('close', resolve)));
    for (const port of ports) port.postMessage('sampling');
    const running = await again;
    assert.equal(running.length, 2);
    for (const each of running) each.giveUp();
    await Promise.all(given);
    assert.equal(clock.timerCount, 0);
  });

  it('passes on the pieces of snapshots until the thread has ended', async (t) => {
    const { pool, start, take, clock } = openPool(t);
    await start();
    const heaps = pool.heaps();
    assert.deepEqual(
      heaps.map(({ thread }) => thread),
      ['worker_0', 'worker_1'],
    );
    const snapshots = heaps.map((heap) => heap.snapshot());
    const [whole, ended] = portsOf(t, take());
    ended.close();
    for (const message of ['begun', 'one', 'two']) whole.postMessage(message);
    whole.close();
    assert.equal(await snapshots[1], undefined);
    assert.deepEqual(await Array.fromAsync((await snapshots[0])!), ['one', 'two']);
    assert.equal(clock.timerCount, 0);
  });

  it('knows how busy each is that runs', async (t) => {
    const { pool, start, crash } = openPool(t, 3);
    const before = pool.takeEventLoopUses();
    assert.deepEqual(before, [undefined, undefined, undefined]);
    await start();
    crash(1);
    const uses = pool.takeEventLoopUses();
    assert.deepEqual(
      uses.map((use) => typeof use),
      ['number', 'undefined', 'number'],
    );
    assert.deepEqual(
      pool.heaps().map(({ thread }) => thread),
      ['worker_0', 'worker_2'],
    );
  });

  it('counts the lines that it was too late for', async (t) => {
    const { start, say, loggers, messages } = openPool(t);
    await start();
    say(0, { type: 'log-dropped', count: 0 });
    assert.deepEqual([loggers.dropped, messages], [0, []]);
    say(1, { type: 'log-dropped', count: 3 });
    assert.deepEqual(
      [loggers.dropped, messages],
      [3, ['3 lines of worker 1 are missing here: the main thread was behind']],
    );
  });
});
