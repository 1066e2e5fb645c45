import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Clock } from '../../../src/base/clock.ts';
import { StatsFlush } from '../../../src/stats/index.ts';

/** A clock whose timers fire when told. */
class HandClock implements Clock {
  readonly #timers = new Set<() => void>();
  lastDelayMs = 0;

  monotonicMs(): number {
    return 0;
  }

  wallMs(): number {
    return 0;
  }

  after(delayMs: number, callback: () => void): () => void {
    this.lastDelayMs = delayMs;
    this.#timers.add(callback);
    return () => this.#timers.delete(callback);
  }

  get waiting(): number {
    return this.#timers.size;
  }

  fire(): void {
    for (const timer of [...this.#timers]) {
      this.#timers.delete(timer);
      timer();
    }
  }
}

function flushWith(clock: Clock, intervalMs = 5000): { flush: StatsFlush; events: string[] } {
  const events: string[] = [];
  const flush = new StatsFlush({
    clock,
    intervalMs,
    onDropped: () => events.push('dropped'),
    onError: (error) => events.push(`error: ${(error as Error).message}`),
  });
  return { flush, events };
}

test('a flush updates gauges, merges, then feeds sinks, each after the one before has ended', async () => {
  const { flush, events } = flushWith(new HandClock());
  flush.add('sinks', () => void events.push('sink'));
  flush.add('merge', async () => {
    await null;
    events.push('merge');
  });
  flush.add('gauges', () => void events.push('gauges'));
  const remove = flush.add('sinks', () => void events.push('removed sink'));
  remove();
  await flush.flush();
  assert.deepEqual(events, ['gauges', 'merge', 'sink']);
});

test('a flush asked for while one runs waits for that one and is counted as dropped', async () => {
  const { flush, events } = flushWith(new HandClock());
  let finish = (): void => {};
  flush.add(
    'merge',
    () =>
      new Promise<void>((resolve) => {
        finish = resolve;
      }),
  );
  flush.add('sinks', () => void events.push('sink'));
  const first = flush.flush();
  const second = flush.flush();
  assert.deepEqual(events, ['dropped']);
  finish();
  await Promise.all([first, second]);
  assert.deepEqual(events, ['dropped', 'sink']);
});

test('a step that fails is reported and the others still run', async () => {
  const { flush, events } = flushWith(new HandClock());
  flush.add('gauges', () => {
    throw new Error('no gauge');
  });
  flush.add('sinks', () => Promise.reject(new Error('no sink')));
  flush.add('sinks', () => void events.push('sink'));
  await flush.flush();
  assert.deepEqual(events, ['error: no gauge', 'error: no sink', 'sink']);
});

test('the timer flushes at every interval until it is stopped', async () => {
  const clock = new HandClock();
  const { flush, events } = flushWith(clock, 250);
  flush.add('gauges', () => void events.push('tick'));
  flush.start();
  assert.equal(clock.lastDelayMs, 250);
  clock.fire();
  await flush.flush();
  clock.fire();
  await flush.flush();
  assert.deepEqual(events.filter((event) => event === 'tick').length, 2);
  flush.stop();
  flush.stop();
  assert.equal(clock.waiting, 0);
  flush.start();
  assert.equal(clock.waiting, 0, 'stopped for good');
});

test('an interval of 0 flushes on demand only', () => {
  const clock = new HandClock();
  flushWith(clock, 0).flush.start();
  assert.equal(clock.waiting, 0);
});

test('the last flush waits for the one that runs, and is another one', async () => {
  const { flush, events } = flushWith(new HandClock());
  const running = Promise.withResolvers<void>();
  let count = 0;
  flush.add('sinks', async () => {
    count += 1;
    events.push(`begin ${count}`);
    if (count === 1) await running.promise;
    events.push(`end ${count}`);
  });
  void flush.flush();
  await null;
  flush.stop();
  const finished = flush.finish();
  running.resolve();
  await finished;
  assert.deepEqual(events, ['begin 1', 'end 1', 'begin 2', 'end 2']);
});
