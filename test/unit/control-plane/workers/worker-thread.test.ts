// A worker as the main thread sees it: real threads, which are given their work, told to stop, or fail.

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { Worker } from 'node:worker_threads';
import { HeapSnapshotReader } from '../../../../src/control-plane/profiling/heap-snapshot.ts';
import type { Answers } from '../../../../src/control-plane/workers/answers.ts';
import { type WorkerEvents, WorkerThread } from '../../../../src/control-plane/workers/worker-thread.ts';
import { NO_OVERLOAD, type WorkerInit } from '../../../../src/snapshot/index.ts';
import { FILESYSTEM_STATS } from '../../../../src/stats/index.ts';
import { compileHttp1 } from '../../../../src/wasm/http1.ts';
import { compileHttp2 } from '../../../../src/wasm/http2.ts';
import { compileModule } from '../../../../src/wasm/instantiate.ts';
import { NO_FAULTS } from '../../../support/faults.ts';
import { statsFixture } from '../../../support/stats.ts';

const PROFILE_OPTIONS = { sampleInterval: 100_000, stackDepth: 3, maxBufferSize: 100 };

interface Ending {
  readonly reason: string;
  readonly stack: string;
}

function init(): WorkerInit {
  const { store, owner } = statsFixture({ workerCount: 1 });
  return {
    workerIndex: 0,
    statsModule: compileModule('stats'),
    lbModule: compileModule('lb'),
    http1: compileHttp1(),
    http2: compileHttp2(),
    http2Block: 0,
    sharedMemory: owner.memory,
    accessLogFiles: {
      flushIntervalMs: 1000,
      statBlock: store.scope('filesystem.').allocate(FILESYSTEM_STATS).cell,
    },
    headerPrefix: 'x-proxy',
    localAddress: '',
    localZone: '',
    isHealthCheckFailing: false,
    drains: { inbound: null, others: null },
    runtime: new Map(),
    clusters: [],
    routeTables: [],
    scopeSets: [],
    discoveredFilters: [],
    tap: null,
    overload: NO_OVERLOAD,
    loopBlock: null,
    watchdog: {
      intervalMs: 100,
      beats: owner.recordAllocator.allocateCount(),
      mainBeats: owner.recordAllocator.allocateCount(),
      limits: { missMs: 0, megaMissMs: 0 },
      killMs: 0,
      statBlocks: null,
    },
    logLevels: { default: 'off' },
  };
}

/** A thread, and Node's own object for it. */
function start(t: TestContext) {
  const on = t.mock.method(Worker.prototype, 'on');
  const messages: string[] = [];
  const endings: Ending[] = [];
  const ended = Promise.withResolvers<void>();
  const waiting = new Map<string, () => void>();
  const events: WorkerEvents = {
    onMessage: (sender, { type }) => {
      assert.equal(sender, worker);
      messages.push(type);
      waiting.get(type)?.();
    },
    onEnd: (sender, reason, stack) => {
      assert.equal(sender, worker);
      endings.push({ reason, stack });
      ended.resolve();
    },
  };
  const worker: WorkerThread = new WorkerThread(3, events, NO_FAULTS);
  const thread = on.mock.calls[0]!.this as unknown as Worker;
  on.mock.restore();
  t.after(() => thread.terminate());
  const message = (type: string): Promise<void> => new Promise((resolve) => waiting.set(type, resolve));
  return { worker, thread, messages, endings, ended: ended.promise, message };
}

describe('a worker thread', () => {
  it('runs once it has its work, and ends without a reason when it is ended', async (t) => {
    const { worker, thread, messages, endings, ended, message } = start(t);
    assert.deepEqual([worker.index, worker.isRunning], [3, false]);
    assert.ok(worker.threadId > 0);
    assert.deepEqual([worker.threadId, thread.threadName], [thread.threadId, 'worker_3']);
    thread.emit('message', { type: 'log-dropped', count: 0 });
    assert.ok(!worker.isRunning);
    messages.splice(0);
    const ready = message('ready');
    worker.send({ type: 'init', init: init() });
    await ready;
    assert.ok(worker.isRunning);
    await worker.terminate();
    await ended;
    assert.ok(!worker.isRunning);
    assert.deepEqual([messages, endings], [['ready'], [{ reason: '', stack: '' }]]);
    await worker.terminate();
    assert.equal(endings.length, 1);
  });

  it('is stopping from the moment that it is told to, whatever it says behind that', async (t) => {
    const { worker, thread, endings, ended, message } = start(t);
    const stopped = message('stopped');
    worker.send({ type: 'shutdown', graceMs: 0 });
    thread.emit('message', { type: 'ready' });
    assert.ok(!worker.isRunning);
    await stopped;
    await thread.terminate();
    await ended;
    assert.deepEqual(endings, [{ reason: '', stack: '' }]);
  });

  it('that cannot begin ends with what it has thrown, and where', async (t) => {
    const { worker, endings, ended } = start(t);
    worker.send({ type: 'init', init: {} as WorkerInit });
    await ended;
    const [{ reason, stack }] = endings as [Ending];
    assert.match(reason, /^TypeError: /);
    assert.match(stack, /^\s+at .*worker/m);
    assert.ok(!worker.isRunning);
  });

  it('that exits by itself ends with its code', (t) => {
    const { thread, endings } = start(t);
    thread.emit('exit', 7);
    assert.deepEqual(endings, [{ reason: 'exit code 7', stack: '' }]);
  });

  it('tells how busy it was since it was asked last, which is never less than not at all', (t) => {
    const { worker, thread } = start(t);
    const [first, second] = [{ utilization: 0 }, { utilization: 0 }];
    const asked: unknown[][] = [];
    const answers = [first, { utilization: 0.5 }, second, { utilization: -0.1 }];
    t.mock.method(thread.performance, 'eventLoopUtilization', (...args: unknown[]) => {
      asked.push(args);
      return answers.shift()!;
    });
    assert.deepEqual([worker.takeEventLoopUse(), worker.takeEventLoopUse()], [0.5, 0]);
    assert.deepEqual(asked, [[], [first, undefined], [], [second, first]]);
  });

  it('has its engine take profiles, and tell of its heap', async (t) => {
    const { worker, thread } = start(t);
    for (const name of ['startCpuProfile', 'getHeapStatistics'] as const) {
      t.mock.method(thread, name, (...args: unknown[]) => [name, ...args]);
    }
    assert.deepEqual(await Promise.all([worker.startCpuProfile(PROFILE_OPTIONS), worker.heapStatistics()]), [
      ['startCpuProfile', PROFILE_OPTIONS],
      ['getHeapStatistics'],
    ]);
  });

  it('samples its heap until it is told to stop, nobody wants to know, or it ends', async (t) => {
    const { worker, message } = start(t);
    const ready = message('ready');
    worker.send({ type: 'init', init: init() });
    await ready;
    const sampled = worker.sampleHeap(PROFILE_OPTIONS);
    assert.equal(await sampled.next(), 'sampling');
    const second = worker.sampleHeap(PROFILE_OPTIONS);
    assert.equal(await second.next(), undefined);
    sampled.send('stop');
    assert.deepEqual(Object.keys(JSON.parse((await sampled.next())!)), ['head', 'samples']);
    assert.equal(await sampled.next(), undefined);
    const unwanted = worker.sampleHeap(PROFILE_OPTIONS);
    unwanted.close();
    // Orders come in their order, and the end of one in its own time.
    let last: Answers;
    do last = worker.sampleHeap(PROFILE_OPTIONS);
    while ((await last.next()) === undefined);
    await worker.terminate();
    assert.equal(await last.next(), undefined);
    assert.equal(await worker.sampleHeap(PROFILE_OPTIONS).next(), undefined);
  });

  it('tells what is on its heap, in the pieces of a snapshot, or as much as there is time for', async (t) => {
    const { worker, message } = start(t);
    const ready = message('ready');
    worker.send({ type: 'init', init: init() });
    await ready;
    const answers = worker.dumpHeap();
    assert.equal(await answers.next(), 'begun');
    const reader = new HeapSnapshotReader();
    for (let piece = await answers.next(); piece !== undefined; piece = await answers.next())
      reader.push(Buffer.from(piece));
    assert.ok(reader.classes().some(({ name }) => name === 'DataPlane'));
    const cut = worker.dumpHeap();
    assert.equal(await cut.next(), 'begun');
    await worker.terminate();
    while ((await cut.next()) !== undefined);
  });

  it('is told what has been taken of its log', async (t) => {
    const { worker, thread } = start(t);
    const posted = t.mock.method(thread, 'postMessage');
    const place = { file: '', line: 0, functionName: '' };
    const message = 'x'.repeat(1_000_000);
    worker.logRelay.taken({ logger: 'main', level: 'info', message, stack: '', timeMs: 0, ...place });
    assert.deepEqual(
      posted.mock.calls.map(({ arguments: [posting] }) => (posting as { readonly type: string }).type),
      ['log-taken'],
    );
  });
});
