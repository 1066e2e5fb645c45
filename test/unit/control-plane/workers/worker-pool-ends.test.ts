// How the pool of workers gets over the ends of its workers, and how it ends itself.

import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, it } from 'node:test';
import type { ListenerSnapshot, WorkerInit } from '../../../../src/snapshot/index.ts';
import { eventually } from '../../../support/eventually.ts';
import { openPool, PIPE, pooledListener } from '../../../support/spoken-workers.ts';
import { leaveSocket } from '../../../support/stale-socket.ts';

const GRACE_MS = 10_000;
const LATE_MS = 2000;

const folder = mkdtempSync(path.join(tmpdir(), 'weir-workers-'));
after(() => rmSync(folder, { recursive: true }));

describe('a worker that ends', () => {
  it('before it is ready is why nothing starts', async (t) => {
    const early = openPool(t, 1);
    early.crash(0);
    await assert.rejects(early.pool.start(early.service), {
      code: 'WEIR_WORKER_START',
      message: 'worker 0 could not start: Error: crashed',
    });
    assert.deepEqual(early.messages, ['worker 0 ended before it was ready: Error: crashed']);
    assert.equal(early.clock.timerCount, 0);
  });

  it('before it is ready without having failed has nothing to show', async (t) => {
    const { pool, service, exit, messages } = openPool(t, 1);
    exit(0);
    await assert.rejects(pool.start(service), { message: 'worker 0 could not start: exit code 1' });
    assert.deepEqual(messages, []);
  });

  it('while others start ends the start', async (t) => {
    const { pool, service, say, crash, clock } = openPool(t);
    const started = pool.start(service);
    say(0, { type: 'ready' });
    crash(1);
    await assert.rejects(started, { code: 'WEIR_WORKER_START' });
    assert.equal(clock.timerCount, 0);
  });

  it('is waited for by nobody, and started again with all that is open', async (t) => {
    const { pool, start, say, crash, turn, types, take, told, messages } = openPool(t);
    await start();
    const alone = pool.openListener(pooledListener(1, { reusePort: false }));
    say(0, { type: 'listening', listenerId: 1, ports: [4000] });
    await alone;
    const shared = pool.openListener(pooledListener(2));
    say(0, { type: 'listening', listenerId: 2, ports: [4001] });
    await new Promise(setImmediate);
    let applied = 0;
    pool.removeCluster('web', () => {
      applied += 1;
    });
    await new Promise(setImmediate);
    const [, , { generation }] = take().at(-1) as [number, string, { generation: number }];
    say(0, { type: 'applied', generations: [generation] });
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
    const late = pool.openListener(pooledListener(3));
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

  it('is given the filter chains of listeners as they are when it opens them, and holds up no change of them', async (t) => {
    const { pool, start, say, crash, take, turn } = openPool(t);
    await start();
    const listener = pooledListener(1, { addresses: [{ ...PIPE, path: path.join(folder, 'chains') }] });
    const opened = pool.openListener(listener);
    say(0, { type: 'listening', listenerId: 1, ports: [0] });
    await opened;
    crash(0);
    take();
    const events: string[] = [];
    const change = (statBlock: number): void => {
      const drain = { strategy: 'immediate', elapsedMs: 0, durationMs: 600 } as const;
      const changed = pool.updateChains({ ...listener, statBlock }, drain, () => events.push(`${statBlock} gone`));
      void changed.then(() => events.push(`${statBlock} applied`));
    };
    change(7);
    type Told = readonly [number, string, { generation: number; goneGeneration: number; listener: ListenerSnapshot }];
    const [[index, type, { generation, goneGeneration }]] = take() as unknown as [Told];
    assert.deepEqual([index, type], [1, 'listener-chains']);
    say(1, { type: 'applied', generations: [generation] });
    await new Promise(setImmediate);
    assert.deepEqual(events, ['7 applied']);
    say(1, { type: 'applied', generations: [goneGeneration] });
    assert.deepEqual(events, ['7 applied', '7 gone']);
    turn(0);
    say(0, { type: 'ready' });
    // While it looks whether anything of the pipe is left behind.
    change(8);
    take();
    await eventually(() => {
      const [told] = take() as unknown as Told[];
      if (told !== undefined) assert.deepEqual([told[0], told[1], told[2].listener.statBlock], [0, 'listen', 8]);
      return told !== undefined;
    }, 'the listener');
  });

  it('opens a pipe once again, for the listener that has it from its predecessor', async (t) => {
    const { pool, start, say, crash, take, types, turn } = openPool(t, 1);
    await start();
    const stale = path.join(folder, 'pipe');
    const pipe = { addresses: [{ ...PIPE, path: stale }] };
    const opened = pool.openListener(pooledListener(1, pipe));
    say(0, { type: 'listening', listenerId: 1, ports: [0] });
    await opened;
    let applied = 0;
    const handedOver = pool.openListener(pooledListener(2, pipe), 1).then(() =>
      pool.stopListener(1, 2, { strategy: 'gradual', elapsedMs: 0, durationMs: GRACE_MS }, () => {
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
      [[0, 'listen', { listener: pooledListener(2, pipe), ports: [0], predecessor: null, inherited: null }]],
    );
    assert.equal(existsSync(stale), false);
  });

  it('again and again is started later each time, and at once after a while', async (t) => {
    const { start, say, crash, turn, types, clock } = openPool(t, 1);
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
    const { start, crash, turn, types, messages, refuseThreads } = openPool(t, 1);
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
    const { pool, start, say, take, ended, exit, clock } = openPool(t);
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
    const { pool, service, say, exit, clock, messages } = openPool(t);
    void pool.start(service);
    const stopped = [GRACE_MS, 0].map((graceMs) => pool.stop(graceMs));
    exit(0);
    say(1, { type: 'ready' });
    exit(1);
    await Promise.all(stopped);
    assert.deepEqual([clock.timerCount, messages], [0, []]);
  });

  it('comes at once where they have no work yet', async (t) => {
    const { pool, ended, exit, clock, take } = openPool(t);
    const stopped = pool.stop(GRACE_MS);
    assert.deepEqual([ended, take()], [[0, 1], []]);
    for (const index of [0, 1]) exit(index);
    await stopped;
    assert.equal(clock.timerCount, 0);
  });

  it('lets nobody be started again', async (t) => {
    const { pool, start, crash, turn, types, say, threads, clock, messages } = openPool(t);
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
