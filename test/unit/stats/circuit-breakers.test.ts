// The gauges of a cluster's circuit breakers, each by itself.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  addCircuitBreakerGauges,
  type CircuitBreakerLimits,
  type CircuitBreakerOptions,
} from '../../../src/stats/index.ts';
import { ClusterCount, ClusterPriority } from '../../../src/wasm/shared-memory.ts';
import { listing, type StatsFixture, statsFixture } from '../../support/stats.ts';

const LIMITS: Required<Omit<CircuitBreakerLimits, 'retryBudget'>> = {
  maxConnections: 2,
  maxConnectionPools: 3,
  maxPendingRequests: 4,
  maxRequests: 5,
  maxRetries: 6,
};
const PREFIX = 'cluster.web.circuit_breakers.';

function breakersOf(
  tracksRemaining: CircuitBreakerOptions['tracksRemaining'],
): StatsFixture & { readonly recordAddress: number } {
  const fixture = statsFixture();
  const recordAddress = fixture.owner.recordAllocator.allocateCluster();
  addCircuitBreakerGauges({
    scope: fixture.store.scope('cluster.web.'),
    records: fixture.owner.shared.records,
    recordAddress,
    limits: { value: { default: LIMITS, high: LIMITS } },
    tracksRemaining,
  });
  return { ...fixture, recordAddress };
}

const BREAKERS = [
  { count: ClusterCount.connections, limit: 2, open: 'cx_open', remaining: 'remaining_cx' },
  { count: ClusterCount.connectionPools, limit: 3, open: 'cx_pool_open', remaining: 'remaining_cx_pools' },
  { count: ClusterCount.pendingRequests, limit: 4, open: 'rq_pending_open', remaining: 'remaining_pending' },
  { count: ClusterCount.requests, limit: 5, open: 'rq_open', remaining: 'remaining_rq' },
  { count: ClusterCount.retries, limit: 6, open: 'rq_retry_open', remaining: 'remaining_retries' },
] as const;

for (const { count, limit, open, remaining } of BREAKERS) {
  test(`${open} says that its own limit is reached, and ${remaining} what is left below it`, async () => {
    const { store, workers, recordAddress } = breakersOf({ default: true, high: true });
    const { records } = workers[0]!.memory;
    const changed = async (): Promise<string[]> =>
      (await listing(store)).filter((line) => /_open: 1$/.test(line) || line.includes(`.${remaining}: `));
    records.addClusterCount(recordAddress, ClusterPriority.high, count, limit - 1);
    assert.deepEqual(await changed(), [`${PREFIX}default.${remaining}: ${limit}`, `${PREFIX}high.${remaining}: 1`]);
    records.addClusterCount(recordAddress, ClusterPriority.high, count, 1);
    assert.deepEqual(
      await changed(),
      [`${PREFIX}default.${remaining}: ${limit}`, `${PREFIX}high.${open}: 1`, `${PREFIX}high.${remaining}: 0`].sort(),
    );
  });
}

for (const tracksRemaining of [
  { default: false, high: false },
  { default: true, high: false },
  { default: false, high: true },
]) {
  const shown = Object.entries(tracksRemaining).flatMap(([priority, isShown]) => (isShown ? [priority] : []));
  test(`what remains is shown for the priorities that ask for it: ${shown.join() || 'none'}`, async () => {
    const lines = await listing(breakersOf(tracksRemaining).store);
    assert.deepEqual(
      lines,
      (['default', 'high'] as const)
        .flatMap((priority) => [
          ...BREAKERS.map(({ open }) => `${PREFIX}${priority}.${open}: 0`),
          ...BREAKERS.filter(() => tracksRemaining[priority]).map(
            ({ remaining, limit }) => `${PREFIX}${priority}.${remaining}: ${limit}`,
          ),
        ])
        .sort(),
    );
  });
}
