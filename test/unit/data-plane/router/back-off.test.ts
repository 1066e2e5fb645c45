import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { DEFAULT_RETRY_BUDGET, retryLimit } from '../../../../src/base/circuit-limits.ts';
import { RuntimeValues } from '../../../../src/base/runtime.ts';
import { backOffMs, defaultBackOff, requestedBackOffMs } from '../../../../src/data-plane/router/back-off.ts';
import { CircuitBreaker } from '../../../../src/data-plane/upstream/circuit-breaker.ts';
import type { ResponseHead } from '../../../../src/wasm/http1.ts';
import { ClusterPriority } from '../../../../src/wasm/shared-records.ts';
import { NO_LIMITS } from '../../../support/clusters.ts';
import { DataPlaneFixture } from '../../../support/data-plane.ts';

const U32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });

describe('the back-off of retries', () => {
  test('draws the documented ranges', () => {
    const range = { baseMs: 25, maxMs: 250 };
    const longest = [1, 2, 3, 4, 100].map((number) => {
      let most = 0;
      for (let random = 0; random < 2000; random++) most = Math.max(most, backOffMs(range, number, random));
      return most;
    });
    assert.deepEqual(longest, [24, 74, 174, 250, 250]);
  });

  test('stays below its range and its longest wait, however often', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1_000_000 }),
        fc.integer({ min: 0, max: 1_000_000 }),
        fc.integer({ min: 1, max: 5000 }),
        U32,
        (baseMs, more, number, random) => {
          const ms = backOffMs({ baseMs, maxMs: baseMs + more }, number, random);
          assert.ok(Number.isInteger(ms) && ms >= 0 && ms <= baseMs + more);
          assert.ok(number > 1 || ms < baseMs);
        },
      ),
    );
  });

  test('begins with what the runtime says', () => {
    assert.deepEqual(defaultBackOff(new RuntimeValues()), { baseMs: 25, maxMs: 250 });
    const values = new RuntimeValues(new Map([['upstream.base_retry_backoff_ms', '40']]));
    assert.deepEqual(defaultBackOff(values), { baseMs: 40, maxMs: 400 });
    assert.deepEqual(defaultBackOff(new RuntimeValues(new Map([['upstream.base_retry_backoff_ms', '0']]))), {
      baseMs: 1,
      maxMs: 10,
    });
  });
});

describe('the wait that a response asks for', () => {
  const WALL_MS = 1_700_000_000_000;
  const asks = (values: Readonly<Record<string, string>>, maxMs = 300_000): number => {
    const head = { headerByName: (name: string) => values[name] } as ResponseHead;
    const headers = [
      { name: 'retry-after', format: 'seconds' },
      { name: 'x-reset', format: 'unix-timestamp' },
    ] as const;
    return requestedBackOffMs(head, { headers, maxMs }, WALL_MS);
  };

  test('is that of the first header that says one, in seconds from now or as a time', () => {
    assert.equal(asks({ 'retry-after': '2' }), 2000);
    assert.equal(asks({ 'retry-after': ' 300 ', 'x-reset': '1700000007' }), 300_000);
    assert.equal(asks({ 'x-reset': '1700000007' }), 7000);
    assert.equal(asks({ 'retry-after': 'soon', 'x-reset': '1700000007' }), 7000);
    assert.equal(asks({ 'retry-after': '301', 'x-reset': '1700000007' }), 7000);
  });

  test('is none above the longest or below a moment, nor one that is no number', () => {
    const nothing = [{}, { 'retry-after': '301' }, { 'retry-after': '0' }, { 'x-reset': '1700000000' }];
    const past = [{ 'x-reset': '1600000000' }, { 'x-reset': '1700000301' }];
    const noise = ['-1', '1.5', '1e3', '', 'Wed, 21 Oct 2026 07:28:00 GMT', '9'.repeat(40)];
    for (const values of [...nothing, ...past, ...noise.map((text) => ({ 'retry-after': text }))]) {
      assert.equal(asks(values), 0, JSON.stringify(values));
    }
    assert.equal(asks({ 'retry-after': '11' }, 10_000), 0);
  });
});

describe('the retry budget', () => {
  test('is a share of the requests, and at least its minimum', () => {
    const limits = { maxRetries: 7, retryBudget: { percent: 25, minConcurrency: 3 } };
    assert.deepEqual(
      [0, 12, 13, 15, 16, 19, 20].map((running) => retryLimit(limits, running)),
      [3, 3, 3, 3, 4, 4, 5],
    );
    assert.equal(retryLimit({ maxRetries: 7 }, 1000), 7);
  });

  test('is never passed, whatever comes and goes', (t) => {
    const proxy = new DataPlaneFixture();
    t.after(() => proxy.close());
    const { recordAddress } = proxy.cluster('web', []);
    const step = fc.constantFrom('request', 'response', 'wait', 'go', 'retry', 'done');
    const budgets = fc.record({ percent: fc.double({ min: 0, max: 100, noNaN: true }), minConcurrency: fc.nat(5) });
    fc.assert(
      fc.property(budgets, fc.array(step, { maxLength: 120 }), (retryBudget, steps) => {
        const limits = { ...NO_LIMITS, retryBudget };
        const breaker = new CircuitBreaker(proxy.context, recordAddress, 'web', ClusterPriority.default, limits);
        const [running, waiting, retries] = [{ count: 0 }, { count: 0 }, { count: 0 }];
        for (const each of steps) {
          if (each === 'request' && breaker.tryAcquireRequest()) running.count++;
          else if (each === 'response' && running.count-- > 0) breaker.releaseRequest();
          else if (each === 'wait' && breaker.tryAcquirePending()) waiting.count++;
          else if (each === 'go' && waiting.count-- > 0) breaker.releasePending();
          else if (each === 'done' && retries.count-- > 0) breaker.releaseRetry();
          for (const owned of [running, waiting, retries]) owned.count = Math.max(0, owned.count);
          if (each !== 'retry') continue;
          const most = Math.max(
            Math.trunc((retryBudget.percent / 100) * (running.count + waiting.count)),
            retryBudget.minConcurrency,
          );
          assert.equal(breaker.tryAcquireRetry(), retries.count < most);
          if (retries.count < most) retries.count++;
        }
        for (let i = 0; i < running.count; i++) breaker.releaseRequest();
        for (let i = 0; i < waiting.count; i++) breaker.releasePending();
        for (let i = 0; i < retries.count; i++) breaker.releaseRetry();
        assert.equal(proxy.breakerCount('web', 12), 0);
      }),
    );
  });

  test('comes to be by the runtime', (t) => {
    const proxy = new DataPlaneFixture();
    t.after(() => proxy.close());
    const { recordAddress } = proxy.cluster('web', []);
    const breaker = new CircuitBreaker(proxy.context, recordAddress, 'web', ClusterPriority.default, NO_LIMITS);
    proxy.context.runtime.replace(new Map([['circuit_breakers.web.default.retry_budget.min_retry_concurrency', '1']]));
    assert.deepEqual([breaker.tryAcquireRetry(), breaker.tryAcquireRetry()], [true, false]);
    proxy.context.runtime.replace(new Map([['circuit_breakers.web.default.retry_budget.budget_percent', '100']]));
    assert.equal(DEFAULT_RETRY_BUDGET.minConcurrency, 3);
    assert.deepEqual(
      [breaker.tryAcquireRetry(), breaker.tryAcquireRetry(), breaker.tryAcquireRetry()],
      [true, true, false],
    );
  });
});
