// When the timer of the flush runs, and when not.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StatsFlush } from '../../../src/stats/index.ts';
import { ManualClock } from '../../support/manual-clock.ts';

function tickingFlush(clock: ManualClock, onTick: () => void): StatsFlush {
  const flush = new StatsFlush({ clock, intervalMs: 250, onDropped: () => {}, onError: () => {} });
  flush.add('gauges', onTick);
  return flush;
}

/** Lets the promises of a flush settle. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('each interval flushes by itself, until the flush is stopped', async () => {
  const clock = new ManualClock();
  let ticks = 0;
  const flush = tickingFlush(clock, () => {
    ticks += 1;
  });
  flush.start();
  for (const expected of [1, 2, 3]) {
    clock.turn(249);
    await settled();
    assert.equal(ticks, expected - 1);
    clock.turn(1);
    await settled();
    assert.equal(ticks, expected);
  }
  flush.stop();
  clock.turn(1000);
  await settled();
  assert.equal(ticks, 3);
});

test('a stop in the middle of a flush is the end of the timer as well', async () => {
  const clock = new ManualClock();
  const flush = tickingFlush(clock, () => flush.stop());
  flush.start();
  clock.turn(250);
  await settled();
  assert.equal(clock.timerCount, 0);
});

test('a flush that was never started can be stopped', () => {
  const clock = new ManualClock();
  const flush = tickingFlush(clock, () => {});
  flush.stop();
  flush.start();
  assert.equal(clock.timerCount, 0);
});
