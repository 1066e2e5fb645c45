import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createWallClock } from '../../../src/base/wall-clock.ts';

describe('the wall clock', () => {
  it('tells the time of day with fractions of a millisecond', () => {
    const now = createWallClock();
    const times = Array.from({ length: 1000 }, () => now());
    assert.ok(times.some((time) => time % 1 !== 0));
    for (const time of times) assert.ok(Math.abs(time - Date.now()) < 60_000);
  });

  it('follows when the system time is set', (t) => {
    const now = createWallClock();
    const later = Date.now() + 3_600_000;
    t.mock.method(Date, 'now', () => later);
    assert.equal(now(), later);
    assert.ok(Math.abs(now() - later) <= 2);
  });
});
