// Counts of latencies beside the latencies themselves.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { LATENCY_COUNTS_BYTES, LatencyCounts } from '../../../src/base/latency-counts.ts';

describe('counts of latencies', () => {
  it('find any quantile, off by 3 % at most', () => {
    const us = fc.oneof(fc.nat(200), fc.nat(1_000_000), fc.integer({ min: 0, max: 2 ** 32 - 1 }));
    fc.assert(
      fc.property(fc.array(us, { minLength: 1, maxLength: 50 }), fc.nat(100), (latencies, percent) => {
        const counts = new LatencyCounts(new SharedArrayBuffer(LATENCY_COUNTS_BYTES), 0);
        for (const latency of latencies) counts.add(latency);
        const sorted = latencies.toSorted((a, b) => a - b);
        const expected = sorted[Math.max(0, Math.ceil((percent * sorted.length) / 100) - 1)]!;
        const found = counts.quantile(percent / 100)!;
        assert.ok(Math.abs(found - expected) <= expected * 0.03, `${found}, not ${expected}`);
      }),
    );
  });

  it('take what is longer than they know for the longest, and forget', () => {
    const counts = new LatencyCounts(new SharedArrayBuffer(LATENCY_COUNTS_BYTES), 0);
    assert.equal(counts.quantile(0.5), undefined);
    counts.add(1e15);
    assert.ok(counts.quantile(0.5)! > 0.97 * 2 ** 32);
    counts.clear();
    assert.equal(counts.quantile(0.5), undefined);
  });
});
