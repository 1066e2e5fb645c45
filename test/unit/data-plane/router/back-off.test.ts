import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { DEFAULT_RETRY_BUDGET, retryLimit } from '../../../../src/base/circuit-limits.ts';
import { RuntimeValues } from '../../../../src/base/runtime.ts';
import { backOffMs, defaultBackOff, requestedBackOffMs } from '../../../../src/data-plane/router/back-off.ts';
import { CircuitBreaker } from '../../../../src/data-plane/upstream/circuit-breaker.ts';
import { ClusterCount, ClusterPriority } from '../../../../src/wasm/shared-records.ts';
import { NO_LIMITS } from '../../../support/clusters.ts';
import { DataPlaneFixture } from '../../../support/data-plane.ts';
import { responseHead } from '../../../support/heads.ts';
import { UpstreamWorkers } from '../../../support/upstream-workers.ts';

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

describe('the wait that an upstream asks for', () => {
  const WALL_MS = 1_700_000_000_000;
  const seconds = { name: 'retry-after', format: 'seconds' } as const;
  const until = { name: 'x-reset', format: 'unix-timestamp' } as const;
  const asked = (headers: readonly (typeof seconds | typeof until)[], lines: readonly string[], wallMs = WALL_MS) =>
    requestedBackOffMs(responseHead(503, ...lines), { headers, maxMs: 300_000 }, wallMs);

  for (const [text, ms] of [
    ['1', 1000],
    [' 300 ', 300_000],
    ['301', 0],
    ['0', 0],
    ['', 0],
    ['1.5', 0],
    ['x5', 0],
    ['5x', 0],
    ['-5', 0],
    ['1e3', 0],
    ['Wed, 21 Oct 2026 07:28:00 GMT', 0],
    ['9'.repeat(40), 0],
    ['0000000000005', 0],
    ['000000000005', 5000],
  ] as const) {
    test(`is ${ms} ms for ${JSON.stringify(text)} seconds`, () => {
      assert.equal(asked([seconds], [`retry-after: ${text}`]), ms);
    });
  }

  for (const [wallMs, ms] of [
    [WALL_MS - 5000, 5000],
    [WALL_MS - 300_000, 300_000],
    [WALL_MS - 300_001, 0],
    [WALL_MS - 2, 2],
    [WALL_MS - 1, 0],
    [WALL_MS, 0],
    [WALL_MS + 9000, 0],
  ] as const) {
    test(`is ${ms} ms for a time ${WALL_MS - wallMs} ms away`, () => {
      assert.equal(asked([until], [`x-reset: ${WALL_MS / 1000}`], wallMs), ms);
    });
  }

  test('is what the first of the headers says that says anything', () => {
    assert.equal(asked([seconds, until], ['retry-after: 7', `x-reset: ${WALL_MS / 1000 + 9}`]), 7000);
    assert.equal(asked([seconds, until], ['retry-after: soon', `x-reset: ${WALL_MS / 1000 + 9}`]), 9000);
    assert.equal(asked([seconds, until], ['retry-after: 999', `x-reset: ${WALL_MS / 1000 + 9}`]), 9000);
    assert.equal(asked([seconds, until], [`x-reset: ${WALL_MS / 1000 + 9}`]), 9000);
    assert.equal(asked([seconds, until], []), 0);
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

  test('is never passed, whatever comes and goes, in two workers together', () => {
    const workers = new UpstreamWorkers(2, () => {});
    const { recordAddress } = workers.cluster(0, {});
    const step = fc.record({
      worker: fc.nat(1),
      kind: fc.constantFrom('request', 'response', 'wait', 'go', 'retry', 'retry', 'done'),
    });
    const budgets = fc.record({ percent: fc.double({ min: 0, max: 100, noNaN: true }), minConcurrency: fc.nat(5) });
    fc.assert(
      fc.property(budgets, fc.array(step, { maxLength: 160 }), (retryBudget, steps) => {
        const limits = { ...NO_LIMITS, retryBudget };
        const both = workers.contexts.map((context) => ({
          breaker: new CircuitBreaker(context, recordAddress, 'web', ClusterPriority.default, limits),
          running: 0,
          waiting: 0,
          retries: 0,
        }));
        const all = (count: 'running' | 'waiting' | 'retries'): number => both[0]![count] + both[1]![count];
        for (const { worker, kind } of steps) {
          const own = both[worker]!;
          const { breaker } = own;
          if (kind === 'request') own.running += breaker.tryAcquireRequest() ? 1 : 0;
          else if (kind === 'wait') own.waiting += breaker.tryAcquirePending() ? 1 : 0;
          else if (kind === 'response' && own.running > 0) {
            own.running -= 1;
            breaker.releaseRequest();
          } else if (kind === 'go' && own.waiting > 0) {
            own.waiting -= 1;
            breaker.releasePending();
          } else if (kind === 'done' && own.retries > 0) {
            own.retries -= 1;
            breaker.releaseRetry();
          } else if (kind === 'retry') {
            const share = Math.trunc((retryBudget.percent / 100) * (all('running') + all('waiting')));
            const isWithin = all('retries') < Math.max(share, retryBudget.minConcurrency);
            assert.equal(breaker.tryAcquireRetry(), isWithin);
            own.retries += isWithin ? 1 : 0;
          }
        }
        for (const { breaker, running, waiting, retries } of both) {
          for (let i = 0; i < running; i++) breaker.releaseRequest();
          for (let i = 0; i < waiting; i++) breaker.releasePending();
          for (let i = 0; i < retries; i++) breaker.releaseRetry();
        }
        for (const count of Object.values(ClusterCount)) {
          assert.equal(workers.records.clusterCount(recordAddress, ClusterPriority.default, count), 0);
        }
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
