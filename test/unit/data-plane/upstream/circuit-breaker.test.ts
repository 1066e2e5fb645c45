// The limits of one routing priority of a cluster, which all workers share: each counts for itself, and the runtime has the
// last word. Who waits for a place for a connection: stream-pool.test.ts.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { CircuitBreaker } from '../../../../src/data-plane/upstream/circuit-breaker.ts';
import type { CircuitBreakerThresholds } from '../../../../src/snapshot/index.ts';
import { ClusterCount, ClusterPriority } from '../../../../src/wasm/shared-memory.ts';
import { UpstreamWorkers } from '../../../support/upstream-workers.ts';

const LIMITS = { maxConnections: 1, maxPendingRequests: 2, maxRequests: 3, maxRetries: 4 };

/** What is limited, with how a place is taken and given back. */
const PLACES = {
  connections: [(of: CircuitBreaker) => of.tryAcquireConnection(), (of: CircuitBreaker) => of.releaseConnection()],
  pendingRequests: [(of: CircuitBreaker) => of.tryAcquirePending(), (of: CircuitBreaker) => of.releasePending()],
  requests: [(of: CircuitBreaker) => of.tryAcquireRequest(), (of: CircuitBreaker) => of.releaseRequest()],
  retries: [(of: CircuitBreaker) => of.tryAcquireRetry(), (of: CircuitBreaker) => of.releaseRetry()],
} as const;

const KINDS = ['connections', 'pendingRequests', 'requests', 'retries'] as const;

class Bench {
  readonly workers = new UpstreamWorkers(2, () => {});
  readonly record = this.workers.cluster(1, {}).recordAddress;

  breaker(priority: ClusterPriority, limits: CircuitBreakerThresholds = LIMITS, worker = 0): CircuitBreaker {
    return new CircuitBreaker(this.workers.contexts[worker]!, this.record, 'web', priority, limits);
  }

  counts(priority: ClusterPriority): number[] {
    return KINDS.map((kind) => this.workers.records.clusterCount(this.record, priority, ClusterCount[kind]));
  }

  setRuntime(texts: Readonly<Record<string, string>>): void {
    for (const { runtime } of this.workers.contexts) runtime.replace(new Map(Object.entries(texts)));
  }
}

/** Takes places until there are none. @returns how many there were. */
function take(breaker: CircuitBreaker, kind: keyof typeof PLACES): number {
  for (let taken = 0; taken < 1000; taken++) if (!PLACES[kind][0](breaker)) return taken;
  return assert.fail('without any limit');
}

describe('places under a circuit breaker', () => {
  for (const priority of [ClusterPriority.default, ClusterPriority.high]) {
    test(`are as many as its limits say, each kind for itself, over all workers: priority ${priority}`, () => {
      const bench = new Bench();
      const breaker = bench.breaker(priority);
      const elsewhere = bench.breaker(priority, LIMITS, 1);
      assert.deepEqual(
        KINDS.map((kind) => take(breaker, kind)),
        [1, 2, 3, 4],
      );
      assert.deepEqual(bench.counts(priority), [1, 2, 3, 4]);
      for (const kind of KINDS) {
        assert.equal(take(elsewhere, kind), 0);
        PLACES[kind][1](breaker);
        assert.equal(take(elsewhere, kind), 1);
      }
      const other = priority === ClusterPriority.default ? ClusterPriority.high : ClusterPriority.default;
      assert.deepEqual(bench.counts(other), [0, 0, 0, 0]);
    });
  }

  test('may be passed by a first connection, which counts as any other', () => {
    const bench = new Bench();
    const breaker = bench.breaker(ClusterPriority.high, { ...LIMITS, maxConnections: 0 });
    assert.ok(!breaker.tryAcquireConnection());
    breaker.acquireConnection();
    assert.deepEqual(bench.counts(ClusterPriority.high), [1, 0, 0, 0]);
    breaker.releaseConnection();
    assert.deepEqual(bench.counts(ClusterPriority.high), [0, 0, 0, 0]);
    assert.ok(!breaker.isAwaited);
  });

  test('may be passed by a retry that has been decided on elsewhere, which counts as any other', () => {
    const bench = new Bench();
    const breaker = bench.breaker(ClusterPriority.default, { ...LIMITS, maxRetries: 0 });
    breaker.acquireRetry();
    assert.deepEqual(bench.counts(ClusterPriority.default), [0, 0, 0, 1]);
    breaker.releaseRetry();
    assert.deepEqual(bench.counts(ClusterPriority.default), [0, 0, 0, 0]);
  });

  test('are as many as the runtime says of the cluster and the priority', () => {
    const bench = new Bench();
    const [breaker, high] = [bench.breaker(ClusterPriority.default), bench.breaker(ClusterPriority.high)];
    bench.setRuntime({
      'circuit_breakers.web.default.max_requests': '5',
      'circuit_breakers.web.high.max_requests': '6',
      'circuit_breakers.other.default.max_requests': '7',
    });
    assert.deepEqual([take(breaker, 'requests'), take(high, 'requests')], [5, 6]);
  });

  test('of one host are without limit unless there is one', () => {
    const bench = new Bench();
    assert.equal(bench.breaker(ClusterPriority.default).maxConnectionsPerHost, Number.POSITIVE_INFINITY);
    const limits = { ...LIMITS, maxConnectionsPerHost: 0 };
    assert.equal(bench.breaker(ClusterPriority.default, limits).maxConnectionsPerHost, 0);
  });
});

test('a budget lets retries be a share of the requests that run and wait, and a few at least', () => {
  const count = fc.nat(40);
  const bench = new Bench();
  fc.assert(
    fc.property(count, count, fc.integer({ min: 1, max: 100 }), fc.nat(5), (running, waiting, percent, least) => {
      const retryBudget = { percent, minConcurrency: least };
      const many = { ...LIMITS, maxRequests: 100, maxPendingRequests: 100, retryBudget };
      const breaker = bench.breaker(ClusterPriority.default, many);
      for (let n = 0; n < running; n++) breaker.tryAcquireRequest();
      for (let n = 0; n < waiting; n++) breaker.tryAcquirePending();
      const retries = take(breaker, 'retries');
      assert.equal(retries, Math.max(least, Math.trunc((percent / 100) * (running + waiting))));
      for (let n = 0; n < retries; n++) breaker.releaseRetry();
      for (let n = 0; n < running; n++) breaker.releaseRequest();
      for (let n = 0; n < waiting; n++) breaker.releasePending();
      assert.deepEqual(bench.counts(ClusterPriority.default), [0, 0, 0, 0]);
    }),
    { numRuns: 30 },
  );
});
