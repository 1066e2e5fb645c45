// A pool of workers whose threads are real and hear nothing: the test speaks for them, and sees what they are sent.

import type { TestContext } from 'node:test';
import { Worker } from 'node:worker_threads';
import { FaultBoundary } from '../../src/base/fault-boundary.ts';
import { WorkerPool } from '../../src/control-plane/workers/worker-pool.ts';
import type { WorkerService } from '../../src/control-plane/workers/worker-service.ts';
import { Loggers } from '../../src/log/index.ts';
import type { ListenerSnapshot, MainToWorker, WorkerToMain } from '../../src/snapshot/index.ts';
import { ManualClock } from './manual-clock.ts';

export const ADDRESS = { kind: 'ip', ip: '127.0.0.1', port: 0 } as const;
export const PIPE = { kind: 'pipe', path: '/nowhere/a', mode: 0 } as const;

export function pooledListener(id: number, settings: object = {}): ListenerSnapshot {
  const all = { addresses: [ADDRESS], reusePort: true, bindsToPort: true, ...settings };
  return { id, settings: all } as unknown as ListenerSnapshot;
}

export function openPool(t: TestContext, concurrency = 2) {
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
    routeTables: () => [],
    discoveredFilters: () => [],
    scopeSets: () => [],
    watchdog: () => null,
    loopBlock: () => null,
    dynamicStatCell: () => 7,
    onHostFailed: (...args: unknown[]) => void told.push(['failed', ...args]),
    onHostWanted: (_cluster: string, { port }: { port: number }) => (port === 1 ? ('overflow' as const) : undefined),
    onHostFailedInRow: (...args: unknown[]) => void told.push(['in row', ...args]),
    onFilterUnfit: (...args: unknown[]) => void told.push(['unfit', ...args]),
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
