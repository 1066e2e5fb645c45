import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { RollingCounts } from '../../../../../src/extensions/stat_sinks/hystrix/rolling-counts.ts';

test('a new window has not grown', () => {
  const counts = new RollingCounts(3, [7, 0]);
  assert.equal(counts.grown(0), 0);
  counts.push([9, 1]);
  assert.equal(counts.grown(0), 2);
  assert.equal(counts.grown(1), 1);
});

test('a window tells what came in its flushes, and nothing below 0', () => {
  const values = fc.integer({ min: 0, max: 1000 });
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 12 }),
      values,
      fc.array(values, { maxLength: 40 }),
      (buckets, first, pushed) => {
        const counts = new RollingCounts(buckets, [0, first]);
        const seen = [first];
        for (const value of pushed) {
          counts.push([0, value]);
          seen.push(value);
          const before = seen[Math.max(0, seen.length - 1 - buckets)]!;
          assert.equal(counts.grown(1), Math.max(0, value - before));
          assert.equal(counts.grown(0), 0);
        }
      },
    ),
  );
});
