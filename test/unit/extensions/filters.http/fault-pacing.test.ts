import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Pacing, PIECE_MS } from '../../../../src/extensions/filters.http/fault/pacing.ts';

test('whatever the times of the questions, no more than the rate goes on, and no less once a piece is due', () => {
  const waits = fc.array(fc.double({ min: 0, max: 500, noNaN: true }), { minLength: 1, maxLength: 30 });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10_000_000 }), waits, (bytesPerSecond, waitsMs) => {
      const pacing = new Pacing(bytesPerSecond);
      pacing.begin(1000);
      const piece = Math.max(1, Math.floor((bytesPerSecond * PIECE_MS) / 1000));
      let nowMs = 1000;
      let taken = pacing.take(nowMs);
      assert.equal(taken, piece, 'the first piece goes at once');
      for (const waitMs of waitsMs) {
        nowMs += waitMs;
        const bytes = pacing.take(nowMs);
        assert.ok(bytes >= 0);
        taken += bytes;
        const due = piece + ((nowMs - 1000) * bytesPerSecond) / 1000;
        assert.ok(taken <= due && taken > due - 1.001, `${taken} of ${due}`);
      }
    }),
  );
});

test('nothing is saved up while there is nothing to send', () => {
  const pacing = new Pacing(1600);
  pacing.begin(0);
  assert.equal(pacing.take(0), 100);
  pacing.begin(10_000);
  assert.equal(pacing.take(10_000), 100);
  assert.equal(pacing.take(10_000), 0);
});
