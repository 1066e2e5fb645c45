// The pool of workers on main: what it sends them, what it makes of their words, and how it gets over their ends. The threads
// are real and hear nothing; the test speaks for them.

import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, it, type TestContext } from 'node:test';
import { Worker } from 'node:worker_threads';
import { FaultBoundary } from '../../../../src/base/fault-boundary.ts';
import { WorkerPool, type WorkerService } from '../../../../src/control-plane/workers/worker-pool.ts';
import { Loggers } from '../../../../src/log/index.ts';
import {
  type ClusterSnapshot,
  type DrainState,
  type HostsUpdate,
  type ListenerSnapshot,
  type MainToWorker,
  type PackedCluster,
  type TapSession,
  unpackCluster,
  type WorkerInit,
  type WorkerToMain,
} from '../../../../src/snapshot/index.ts';
import { eventually } from '../../../support/eventually.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { leaveSocket } from '../../../support/stale-socket.ts';

const GRACE_MS = 10_000;
const LATE_MS = 2000;
const ADDRESS = { kind: 'ip', ip: '127.0.0.1', port: 0 } as const;
const PIPE = { kind: 'pipe', path: '/nowhere/a', mode: 0 } as const;

function listener(id: number, settings: object = {}): ListenerSnapshot {
  const all = { addresses: [ADDRESS], reusePort: true, bindsToPort: true, ...settings };
  return { id, settings: all } as unknown as ListenerSnapshot;
}

const folder = mkdtempSync(path.join(tmpdir(), 'weir-workers-'));
after(() => rmSync(folder, { recursive: true }));

function open(t: TestContext, concurrency = 2) {
  /** Indexes of workers by their threads, in the order in which these are made. */
  const threads = new Map<Worker, number>();
  const nextIndexes = Array.from({ length: concurrency }, (_, index) => index);
  const sent: (readonly [worker: number, message: MainToWorker])[] = [];
  const ended: number[] = [];
  const told: unknown[][] = [];
  const messages: string[] = [];
  /** So many threads more cannot be had. */
  let refusals = 0;
  const { on, terminate } = Worker.prototype;
  t.mock.method(Worker.prototype, 'on', function (this: Worker, name: string, heard: () => void) {
    if (!threads.has(this)) threads.set(this, nextIndexes.shift()!);
    if (refusals > 0 && name === 'message') {
      refusals -= 1;
      nextIndexes.unshift(threads.get(this)!);
      throw new Error('no thread');
    }
    return on.call(this, name as 'exit', heard);
  });
  t.mock.method(Worker.prototype, 'postMessage', function (this: Worker, message: MainToWorker) {
    sent.push([threads.get(this)!, message]);
  });
  t.mock.method(Worker.prototype, 'terminate', async function (this: Worker) {
    ended.push(threads.get(this)!);
    return 0;
  });
  const sink = { write: ({ message }: { message: string }) => void messages.push(message) };
  const loggers = new Loggers({ levels: { default: 'info' }, threadId: 0, sink });
  const clock = new ManualClock();
  const faults = new FaultBoundary((where) => void messages.push(`a fault in ${where}`));
  const pool = new WorkerPool({ concurrency, loggers, clock, faults });
  t.after(async () => {
    for (const thread of threads.keys()) {
      thread.removeAllListeners();
      await terminate.call(thread);
    }
  });
  const service = {
    shared: {},
    clusters: () => [],
    dynamicStatCell: () => 7,
    onHostFailed: (...args: unknown[]) => void told.push(['failed', ...args]),
    onHostWanted: (_cluster: string, { port }: { port: number }) => port !== 1,
    onHostFailedInRow: (...args: unknown[]) => void told.push(['in row', ...args]),
    onTapTrace: (...args: unknown[]) => void told.push(['traced', ...args]),
    onTapDropped: (...args: unknown[]) => void told.push(['dropped', ...args]),
    onWorkerLost: (index: number) => void told.push(['lost', index]),
    onWorkerRestarted: (index: number) => void told.push(['restarted', index]),
  } as unknown as WorkerService;
  /** The latest. */
  const threadOf = (wanted: number): Worker => [...threads].findLast(([, index]) => index === wanted)![0];
  return {
    pool,
    service,
    loggers,
    clock,
    told,
    messages,
    ended,
    threads,
    /** What has been sent since this was asked last, without the values of an `init`. */
    take: (): unknown[] => sent.splice(0).map(([index, { type, ...fields }]) => [index, type, fields]),
    types: (): string[] => sent.splice(0).map(([index, { type }]) => `${index} ${type}`),
    say: (index: number, message: object): void => void threadOf(index).emit('message', message as WorkerToMain),
    /** Ends as a crash does. */
    crash: (index: number): void => {
      nextIndexes.push(index);
      const thread = threadOf(index);
      thread.emit('error', new Error('crashed'));
      thread.emit('exit', 1);
    },
    exit: (index: number): void => void threadOf(index).emit('exit', 1),
    refuseThreads: (count: number): void => {
      refusals = count;
    },
    turn: (ms: number): void => clock.turn(ms),
    /** All are ready. */
    start: async (): Promise<void> => {
      const started = pool.start(service);
      for (let index = 0; index < concurrency; index++) {
        threadOf(index).emit('message', { type: 'ready' });
      }
      await started;
      sent.splice(0);
    },
  };
}

describe('the pool of workers', () => {
  it('gives each its work, with what has been said before, and has started when all are ready', async (t) => {
    const { pool, service, take, say } = open(t);
    let applied = 0;
    pool.publishRuntime(new Map([['a', '1']]));
    pool.failHealthChecks(true);
    const drains: DrainState = { inbound: { strategy: 'gradual', elapsedMs: 7, durationMs: 600 }, others: null };
    pool.publishDrains(() => drains);
    const tap = { id: 3 } as TapSession;
    pool.publishTap(tap);
    pool.removeCluster('web', () => {
      applied += 1;
    });
    assert.deepEqual([take(), applied], [[], 1]);
    let isStarted = false;
    const started = pool.start(service).then(() => {
      isStarted = true;
    });
    const init = { clusters: [], runtime: new Map([['a', '1']]), logLevels: { default: 'info' } };
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
    const { pool, start, take, loggers } = open(t);
    await start();
    pool.failHealthChecks(true);
    pool.publishRuntime(new Map([['b', '2']]));
    pool.reopenAccessLogs();
    const drains = { inbound: { strategy: 'gradual', elapsedMs: 0, durationMs: 600 }, others: null } as const;
    pool.publishDrains(() => drains);
    pool.publishTap(null);
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
    ]);
    assert.equal(pool.concurrency, 2);
    assert.equal(loggers.dropped, 0);
  });

  it('hears from all of them that something is applied', async (t) => {
    const { pool, start, take, say } = open(t);
    await start();
    const applied: string[] = [];
    const update = { cluster: 'web' } as HostsUpdate;
    pool.publishHosts(update, () => applied.push('hosts'));
    pool.removeCluster('web', () => applied.push('removed'));
    pool.stopListener(3, 4, 5, () => applied.push('stopped'));
    pool.stopAccepting(6, () => applied.push('quiet'));
    const said = take() as [number, string, { generation: number }][];
    const { generation } = said[0]![2];
    assert.deepEqual(said, [
      [0, 'hosts', { generation, update }],
      [1, 'hosts', { generation, update }],
      [0, 'cluster-removed', { generation: generation + 1, name: 'web' }],
      [1, 'cluster-removed', { generation: generation + 1, name: 'web' }],
      [0, 'stop-listener', { generation: generation + 2, listenerId: 3, successor: 4, drainMs: 5 }],
      [1, 'stop-listener', { generation: generation + 2, listenerId: 3, successor: 4, drainMs: 5 }],
      [0, 'stop-accepting', { generation: generation + 3, listenerId: 6 }],
      [1, 'stop-accepting', { generation: generation + 3, listenerId: 6 }],
    ]);
    for (let step = 0; step < 3; step++) say(0, { type: 'applied', generation: generation + step });
    assert.deepEqual(applied, []);
    say(1, { type: 'applied', generation });
    assert.deepEqual(applied, ['hosts']);
  });

  it('brings a cluster to all of them', async (t) => {
    const { pool, start, take, say } = open(t);
    await start();
    let applied = 0;
    const cluster = { settings: { name: 'web' }, hosts: [] } as unknown as ClusterSnapshot;
    pool.publishCluster(cluster, () => {
      applied += 1;
    });
    const said = take() as [number, string, { generation: number; cluster: PackedCluster }][];
    assert.deepEqual(
      said.map(([index, type, fields]) => [index, type, unpackCluster(fields.cluster)]),
      [0, 1].map((index) => [index, 'cluster', cluster]),
    );
    for (const [index, , { generation }] of said) {
      assert.equal(applied, 0);
      say(index, { type: 'applied', generation });
    }
    assert.equal(applied, 1);
  });

  it('opens a listener in the first, and with its ports in the others', async (t) => {
    const { pool, start, take, say } = open(t, 3);
    await start();
    const snapshot = listener(1);
    const opened = pool.openListener(snapshot, 9);
    assert.deepEqual(take(), [[0, 'listen', { listener: snapshot, ports: [0], predecessor: 9 }]]);
    say(0, { type: 'listening', listenerId: 1, ports: [4000] });
    await new Promise(setImmediate);
    assert.deepEqual(
      take(),
      [1, 2].map((index) => [index, 'listen', { listener: snapshot, ports: [4000], predecessor: 9 }]),
    );
    say(1, { type: 'listening', listenerId: 1, ports: [4000] });
    say(2, { type: 'listening', listenerId: 1, ports: [4000] });
    assert.deepEqual(await opened, [4000]);
  });

  for (const { name, settings } of [
    { name: 'that is not to be shared', settings: { reusePort: false } },
    { name: 'with a pipe', settings: { addresses: [ADDRESS, PIPE] } },
  ]) {
    it(`opens a listener ${name} in the first alone`, async (t) => {
      const { pool, start, types, say } = open(t);
      await start();
      const opened = pool.openListener(listener(1, settings));
      say(0, { type: 'listening', listenerId: 1, ports: [4000] });
      assert.deepEqual(await opened, [4000]);
      assert.deepEqual(types(), ['0 listen']);
    });
  }

  it('opens one that binds to no port in all of them, whatever it says of sharing', async (t) => {
    const { pool, start, types, say } = open(t);
    await start();
    const opened = pool.openListener(listener(1, { bindsToPort: false, reusePort: false }));
    for (const index of [0, 1]) {
      say(index, { type: 'listening', listenerId: 1, ports: [0] });
      await new Promise(setImmediate);
    }
    await opened;
    assert.deepEqual(types(), ['0 listen', '1 listen']);
  });

  it('waits for all before it tells of a listener that one could not open', async (t) => {
    const { pool, start, say, messages } = open(t, 3);
    await start();
    let isOver = false;
    const opened = pool.openListener(listener(1)).finally(() => {
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

  it('passes on what workers say of hosts, and answers what they ask', async (t) => {
    const { start, say, take, told } = open(t);
    await start();
    say(1, { type: 'host-failed', cluster: 'web', recordAddress: 8 });
    say(1, { type: 'outlier', cluster: 'web', recordAddress: 8, kind: 'consecutive-5xx' });
    say(0, { type: 'host-wanted', cluster: 'web', address: { ...ADDRESS, port: 2 } });
    assert.deepEqual(told, [
      ['failed', 'web', 8],
      ['in row', 'web', 8, 'consecutive-5xx'],
    ]);
    assert.deepEqual(take(), []);
    say(0, { type: 'host-wanted', cluster: 'web', address: { ...ADDRESS, port: 1 } });
    const key = { scope: 'a.', name: 'b' };
    say(1, { type: 'dynamic-stat', key });
    assert.deepEqual(take(), [
      [0, 'host-refused', { cluster: 'web', address: '127.0.0.1:1' }],
      [1, 'dynamic-stat', { key, cell: 7 }],
    ]);
  });

  it('passes on what workers record for a tap, and has them send more', async (t) => {
    const { start, say, take, told } = open(t);
    await start();
    const trace = { kind: 'piece' };
    say(1, { type: 'tap-trace', sessionId: 3, trace, cost: 500, dropped: 2 });
    say(1, { type: 'tap-dropped', sessionId: 3, count: 4 });
    assert.deepEqual(told, [
      ['traced', 3, trace, 2],
      ['dropped', 3, 4],
    ]);
    assert.deepEqual(take(), [[1, 'tap-taken', { cost: 500 }]]);
  });

  it('asks for the ports that a listener names, and none of a pipe', async (t) => {
    const { pool, start, take, say, messages } = open(t, 1);
    await start();
    const opened = pool.openListener(listener(1, { addresses: [{ ...ADDRESS, port: 4444 }, PIPE] }));
    const [[, , { ports }]] = take() as [[number, string, { ports: number[] }]];
    assert.deepEqual(ports, [4444, 0]);
    say(0, { type: 'listening', listenerId: 1, ports });
    // What nobody waits for any more is no fault.
    say(0, { type: 'listening', listenerId: 1, ports });
    assert.deepEqual([await opened, messages], [[4444, 0], []]);
  });

  it('tells of other log levels, and writes the lines of workers', async (t) => {
    const { start, loggers, types, say, messages } = open(t);
    await start();
    loggers.setAll('warning');
    assert.deepEqual(types(), ['0 log-levels', '1 log-levels']);
    const place = { file: '', line: 0, functionName: '' };
    const record = { logger: 'main', level: 'info', message: 'x'.repeat(1_000_000), stack: '', timeMs: 0, ...place };
    say(1, { type: 'log', record, dropped: 2 });
    assert.deepEqual(messages, ['2 lines of worker 1 are missing here: the main thread was behind', record.message]);
    assert.deepEqual([loggers.dropped, types()], [2, ['1 log-taken']]);
  });

  it('counts the lines that it was too late for', async (t) => {
    const { start, say, loggers, messages } = open(t);
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

describe('a worker that ends', () => {
  it('before it is ready is why nothing starts', async (t) => {
    const early = open(t, 1);
    early.crash(0);
    await assert.rejects(early.pool.start(early.service), {
      code: 'WEIR_WORKER_START',
      message: 'worker 0 could not start: Error: crashed',
    });
    assert.deepEqual(early.messages, ['worker 0 ended before it was ready: Error: crashed']);
    assert.equal(early.clock.timerCount, 0);
  });

  it('before it is ready without having failed has nothing to show', async (t) => {
    const { pool, service, exit, messages } = open(t, 1);
    exit(0);
    await assert.rejects(pool.start(service), { message: 'worker 0 could not start: exit code 1' });
    assert.deepEqual(messages, []);
  });

  it('while others start ends the start', async (t) => {
    const { pool, service, say, crash, clock } = open(t);
    const started = pool.start(service);
    say(0, { type: 'ready' });
    crash(1);
    await assert.rejects(started, { code: 'WEIR_WORKER_START' });
    assert.equal(clock.timerCount, 0);
  });

  it('is waited for by nobody, and started again with all that is open', async (t) => {
    const { pool, start, say, crash, turn, types, take, told, messages } = open(t);
    await start();
    const alone = pool.openListener(listener(1, { reusePort: false }));
    say(0, { type: 'listening', listenerId: 1, ports: [4000] });
    await alone;
    const shared = pool.openListener(listener(2));
    say(0, { type: 'listening', listenerId: 2, ports: [4001] });
    await new Promise(setImmediate);
    let applied = 0;
    pool.removeCluster('web', () => {
      applied += 1;
    });
    const [, , { generation }] = take().at(-1) as [number, string, { generation: number }];
    say(0, { type: 'applied', generation });
    assert.equal(applied, 0);
    const ending = { code: 'WEIR_LISTEN_FAILED', message: 'worker 1 ended while it opened the listener' };
    const refused = assert.rejects(shared, ending);
    crash(1);
    await refused;
    assert.deepEqual([applied, told], [1, [['lost', 1]]]);
    assert.deepEqual(messages, ['worker 1 ended unexpectedly, its connections are lost: Error: crashed']);
    types();
    pool.reopenAccessLogs();
    assert.deepEqual(types(), ['0 reopen-access-logs']);
    // One that is not there opens its listeners later.
    const late = pool.openListener(listener(3));
    say(0, { type: 'listening', listenerId: 3, ports: [4002] });
    assert.deepEqual(await late, [4002]);
    types();
    turn(0);
    const [[index, type, { init }]] = take() as [[number, string, { init: WorkerInit }]];
    assert.deepEqual([index, type, init.isHealthCheckFailing], [1, 'init', false]);
    assert.deepEqual(init.drains, { inbound: null, others: null });
    say(1, { type: 'ready' });
    await new Promise(setImmediate);
    assert.deepEqual(
      (take() as [number, string, { listener: ListenerSnapshot; ports: number[]; predecessor: null }][]).map(
        ([index, type, fields]) => [index, type, fields.listener.id, fields.ports, fields.predecessor],
      ),
      [
        [1, 'listen', 2, [4001], null],
        [1, 'listen', 3, [4002], null],
      ],
    );
    assert.deepEqual([told.at(-1), messages.at(-1)], [['restarted', 1], 'worker 1 is running again']);
    pool.stopAccepting(2, () => {});
    crash(0);
    turn(0);
    types();
    say(0, { type: 'ready' });
    await new Promise(setImmediate);
    assert.deepEqual(types(), ['0 listen', '0 listen']);
  });

  it('opens a pipe once again, for the listener that has it from its predecessor', async (t) => {
    const { pool, start, say, crash, take, types, turn } = open(t, 1);
    await start();
    const stale = path.join(folder, 'pipe');
    const pipe = { addresses: [{ ...PIPE, path: stale }] };
    const opened = pool.openListener(listener(1, pipe));
    say(0, { type: 'listening', listenerId: 1, ports: [0] });
    await opened;
    let applied = 0;
    const handedOver = pool.openListener(listener(2, pipe), 1).then(() =>
      pool.stopListener(1, 2, GRACE_MS, () => {
        applied += 1;
      }),
    );
    types();
    // Before anybody has heard that it has opened the second.
    say(0, { type: 'listening', listenerId: 2, ports: [0] });
    crash(0);
    await handedOver;
    assert.equal(applied, 1);
    turn(0);
    assert.deepEqual(types(), ['0 init']);
    await leaveSocket(stale);
    say(0, { type: 'ready' });
    const again: unknown[] = [];
    await eventually(() => again.push(...take()) > 0, 'it is opened');
    await new Promise(setImmediate);
    assert.deepEqual(
      [...again, ...take()],
      [[0, 'listen', { listener: listener(2, pipe), ports: [0], predecessor: null }]],
    );
    assert.equal(existsSync(stale), false);
  });

  it('again and again is started later each time, and at once after a while', async (t) => {
    const { start, say, crash, turn, types, clock } = open(t, 1);
    await start();
    turn(100_000);
    for (const delayMs of [0, 100, 1000, 5000, 5000]) {
      crash(0);
      if (delayMs > 0) turn(delayMs - 1);
      assert.deepEqual([types(), clock.timerCount], [[], 1], `${delayMs}`);
      turn(delayMs > 0 ? 1 : 0);
      assert.deepEqual(types(), ['0 init'], `${delayMs}`);
      say(0, { type: 'ready' });
    }
    // Since its last end.
    turn(30_000 - 5000);
    crash(0);
    turn(0);
    assert.deepEqual(types(), ['0 init']);
  });

  it('is started again later where no thread can be had', async (t) => {
    const { start, crash, turn, types, messages, refuseThreads } = open(t, 1);
    await start();
    crash(0);
    refuseThreads(2);
    turn(0);
    turn(100 + 1000 - 1);
    assert.deepEqual(types(), []);
    turn(1);
    const refusal = 'worker 0 cannot be started again: no thread';
    assert.deepEqual([types(), messages.slice(1)], [['0 init'], [refusal, refusal]]);
  });
});

describe('the end of the pool', () => {
  it('is that of its workers, which are ended when they say so, or are late', async (t) => {
    const { pool, start, say, take, ended, exit, clock } = open(t);
    await start();
    let isOver = false;
    const stopped = pool.stop(GRACE_MS).then(() => {
      isOver = true;
    });
    assert.deepEqual(
      take(),
      [0, 1].map((index) => [index, 'shutdown', { graceMs: GRACE_MS }]),
    );
    say(0, { type: 'stopped' });
    assert.deepEqual(ended, [0]);
    exit(0);
    await new Promise(setImmediate);
    clock.turn(GRACE_MS + LATE_MS - 1);
    assert.deepEqual([isOver, ended], [false, [0]]);
    clock.turn(1);
    assert.deepEqual(ended, [0, 0, 1]);
    exit(1);
    await stopped;
    assert.equal(clock.timerCount, 0);
    await pool.stop(GRACE_MS);
  });

  it('is waited for by all who ask for it, also while they start', async (t) => {
    const { pool, service, say, exit, clock, messages } = open(t);
    void pool.start(service);
    const stopped = [GRACE_MS, 0].map((graceMs) => pool.stop(graceMs));
    exit(0);
    say(1, { type: 'ready' });
    exit(1);
    await Promise.all(stopped);
    assert.deepEqual([clock.timerCount, messages], [0, []]);
  });

  it('comes at once where they have no work yet', async (t) => {
    const { pool, ended, exit, clock, take } = open(t);
    const stopped = pool.stop(GRACE_MS);
    assert.deepEqual([ended, take()], [[0, 1], []]);
    for (const index of [0, 1]) exit(index);
    await stopped;
    assert.equal(clock.timerCount, 0);
  });

  it('lets nobody be started again', async (t) => {
    const { pool, start, crash, turn, types, say, threads, clock, messages } = open(t);
    const cancelled: number[] = [];
    const { after } = clock;
    t.mock.method(clock, 'after', (delayMs: number, callback: () => void) => {
      const cancel = after.call(clock, delayMs, callback);
      return () => {
        cancelled.push(delayMs);
        cancel();
      };
    });
    await start();
    crash(0);
    turn(0);
    say(0, { type: 'ready' });
    turn(0);
    for (const index of [0, 1]) crash(index);
    assert.equal(clock.timerCount, 2);
    types();
    await pool.stop(GRACE_MS);
    // Not the one that is over.
    assert.deepEqual(cancelled, [100, 0]);
    assert.equal(clock.timerCount, 0);
    turn(GRACE_MS);
    assert.deepEqual([types(), threads.size, messages.length], [[], 3, 4]);
  });
});
