// cluster.<name>.circuit_breakers.<priority>.*: worked out from the cluster's record when read. The counts
// are totals over all workers, so no worker alone could say that a limit is reached.

import { type RetryBudget, retryLimit } from '../base/circuit-limits.ts';
import { ClusterCount, ClusterPriority, type SharedRecords } from '../wasm/shared-memory.ts';
import type { Scope } from './scope.ts';

/** Limits of one priority over all workers. */
export interface CircuitBreakerLimits {
  readonly maxConnections: number;
  readonly maxPendingRequests: number;
  readonly maxRequests: number;
  readonly maxRetries: number;
  /** Takes the place of `maxRetries`, and grows with the requests. */
  readonly retryBudget?: RetryBudget;
  /** Connection pools have no limit unless one is given. */
  readonly maxConnectionPools?: number;
}

export interface CircuitBreakerOptions {
  /** `cluster.<name>.` */
  readonly scope: Scope;
  readonly records: SharedRecords;
  readonly recordAddress: number;
  /** `value` is asked each time: the runtime may change the limits. */
  readonly limits: { readonly value: { readonly default: CircuitBreakerLimits; readonly high: CircuitBreakerLimits } };
  /** Show the remaining_* gauges too. */
  readonly trackRemaining: boolean;
}

interface Breaker {
  readonly open: string;
  readonly remaining: string;
  readonly count: ClusterCount;
  limit(limits: CircuitBreakerLimits): number;
}

const BREAKERS: readonly Breaker[] = [
  { open: 'cx_open', remaining: 'remaining_cx', count: ClusterCount.connections, limit: (l) => l.maxConnections },
  {
    open: 'cx_pool_open',
    remaining: 'remaining_cx_pools',
    count: ClusterCount.connectionPools,
    limit: (l) => l.maxConnectionPools ?? 2 ** 32 - 1,
  },
  {
    open: 'rq_pending_open',
    remaining: 'remaining_pending',
    count: ClusterCount.pendingRequests,
    limit: (l) => l.maxPendingRequests,
  },
  { open: 'rq_open', remaining: 'remaining_rq', count: ClusterCount.requests, limit: (l) => l.maxRequests },
  { open: 'rq_retry_open', remaining: 'remaining_retries', count: ClusterCount.retries, limit: (l) => l.maxRetries },
];

/** Adds the gauges of both priorities to the cluster's scope; they go with it. */
export function addCircuitBreakerGauges(options: CircuitBreakerOptions): void {
  const { scope, records, recordAddress, trackRemaining } = options;
  for (const priority of ['default', 'high'] as const) {
    for (const breaker of BREAKERS) {
      const count = (): number => records.clusterCount(recordAddress, ClusterPriority[priority], breaker.count);
      const isRetries = breaker.count === ClusterCount.retries;
      const hasBudget = (): boolean => isRetries && options.limits.value[priority].retryBudget !== undefined;
      const limit = (): number => {
        const limits = options.limits.value[priority];
        return hasBudget() ? retryLimit(limits, runningRequests(options, priority)) : breaker.limit(limits);
      };
      const prefix = `circuit_breakers.${priority}.`;
      scope.derivedGauge(prefix + breaker.open, () => (count() >= limit() ? 1 : 0));
      // What a budget leaves depends on requests that come and go.
      const remaining = (): number => (hasBudget() ? 0 : Math.max(0, limit() - count()));
      if (trackRemaining) scope.derivedGauge(prefix + breaker.remaining, () => remaining());
    }
  }
}

function runningRequests({ records, recordAddress }: CircuitBreakerOptions, priority: 'default' | 'high'): number {
  const line = ClusterPriority[priority];
  return (
    records.clusterCount(recordAddress, line, ClusterCount.requests) +
    records.clusterCount(recordAddress, line, ClusterCount.pendingRequests)
  );
}
