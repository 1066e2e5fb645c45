import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { every, isOver, lookIntervalMs, StallWatch } from '../../../src/base/stall-watch.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const INTERVAL_MS = 100;

describe('a watch over a thread', () => {
  const watch = () => new StallWatch({ missMs: 200, megaMissMs: 500 }, INTERVAL_MS);

  it('notices each length of a silence once, and again with the next silence', () => {
    const thread = watch();
    assert.deepEqual(thread.look(1, INTERVAL_MS), []);
    const silence = () => Array.from({ length: 6 }, () => thread.look(1, INTERVAL_MS).join());
    const expected = ['', 'miss', '', '', 'mega-miss', ''];
    assert.deepEqual(silence(), expected);
    assert.equal(thread.silentMs, 600);
    thread.look(2, INTERVAL_MS);
    assert.equal(thread.silentMs, 0);
    thread.look(1, INTERVAL_MS);
    assert.deepEqual(silence(), expected);
  });

  it('waits for the first beat of a thread for as long as it takes', () => {
    const thread = watch();
    for (let look = 0; look < 100; look += 1) assert.deepEqual(thread.look(0, INTERVAL_MS), []);
    assert.equal(thread.silentMs, 0);
  });

  it('takes no time in which nobody looked for silence: a machine that slept has missed nothing', () => {
    const thread = watch();
    thread.look(1, INTERVAL_MS);
    assert.deepEqual(thread.look(1, 3_600_000), ['miss']);
    assert.equal(thread.silentMs, 2 * INTERVAL_MS);
    assert.deepEqual(thread.look(1, 3_600_000), []);
    assert.deepEqual(thread.look(1, 3_600_000), ['mega-miss']);
  });

  it('notices both at once where they are the same, and nothing where there are no limits', () => {
    const same = new StallWatch({ missMs: 100, megaMissMs: 100 }, INTERVAL_MS);
    same.look(1, INTERVAL_MS);
    assert.deepEqual(same.look(1, INTERVAL_MS), ['miss', 'mega-miss']);
    const none = new StallWatch({ missMs: 0, megaMissMs: 0 }, INTERVAL_MS);
    none.look(1, INTERVAL_MS);
    for (let look = 0; look < 100; look += 1) assert.deepEqual(none.look(1, INTERVAL_MS), []);
    assert.equal(isOver(0, 1e9), false);
    assert.equal(isOver(100, 99), false);
    assert.equal(isOver(100, 100), true);
  });
});

it('looks are half as far apart as the shortest limit, within reason', () => {
  assert.equal(lookIntervalMs([200, 1000, 0, 0]), 100);
  assert.equal(lookIntervalMs([0, 0]), 1000);
  assert.equal(lookIntervalMs([60_000]), 1000);
  assert.equal(lookIntervalMs([1]), 5);
});

it('what runs again and again does so until it is ended, also by itself', () => {
  const clock = new ManualClock();
  let runs = 0;
  const end = every(clock, 10, () => {
    runs += 1;
    if (runs === 3) end();
  });
  clock.turn(9);
  assert.equal(runs, 0);
  clock.turn(100);
  assert.deepEqual([runs, clock.timerCount], [3, 0]);
  every(clock, 10, () => {})();
  assert.equal(clock.timerCount, 0);
});
