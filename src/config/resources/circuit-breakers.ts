// CircuitBreakers message → limits of the two routing priorities, of the cluster and of each host. Missing entries and
// fields keep their defaults; a second entry for one priority is a fault, because only one of them could apply.

import { DEFAULT_RETRY_BUDGET } from '../../base/circuit-limits.ts';
import type { CircuitBreakerThresholds, ClusterSettings, RetryBudget } from '../../snapshot/index.ts';
import { RoutingPriority } from '../proto/generated/enums.ts';
import { enumName } from './enum-name.ts';
import type { FaultSink } from './fault-sink.ts';
import type { CircuitBreakers, Thresholds } from './messages.ts';
import { valueOr } from './units.ts';

const DEFAULT_THRESHOLDS: CircuitBreakerThresholds = {
  maxConnections: 1024,
  maxPendingRequests: 1024,
  maxRequests: 1024,
  maxRetries: 3,
};

export function convertCircuitBreakers(
  message: CircuitBreakers | null,
  at: string,
  faults: FaultSink,
): ClusterSettings['circuitBreakers'] {
  const ofCluster = byPriority(message?.thresholds ?? [], `${at}.thresholds`, faults);
  const ofHost = byPriority(message?.per_host_thresholds ?? [], `${at}.per_host_thresholds`, faults);
  const limits = (priority: number): CircuitBreakerThresholds => {
    const entry = ofCluster.get(priority);
    const converted = entry === undefined ? DEFAULT_THRESHOLDS : convertThresholds(entry);
    const maxConnectionsPerHost = ofHost.get(priority)?.max_connections?.value;
    return maxConnectionsPerHost === undefined ? converted : { ...converted, maxConnectionsPerHost };
  };
  return { default: limits(RoutingPriority.DEFAULT), high: limits(RoutingPriority.HIGH) };
}

function byPriority(entries: readonly Thresholds[], at: string, faults: FaultSink): ReadonlyMap<number, Thresholds> {
  const found = new Map<number, Thresholds>();
  for (const [index, entry] of entries.entries()) {
    const { priority } = entry;
    if (!found.has(priority)) found.set(priority, entry);
    else faults.error(`${at}[${index}].priority`, `a second entry for priority ${enumName(RoutingPriority, priority)}`);
  }
  return found;
}

function convertThresholds(entry: Thresholds): CircuitBreakerThresholds {
  return {
    maxConnections: valueOr(entry.max_connections, DEFAULT_THRESHOLDS.maxConnections),
    maxPendingRequests: valueOr(entry.max_pending_requests, DEFAULT_THRESHOLDS.maxPendingRequests),
    maxRequests: valueOr(entry.max_requests, DEFAULT_THRESHOLDS.maxRequests),
    maxRetries: valueOr(entry.max_retries, DEFAULT_THRESHOLDS.maxRetries),
    ...(entry.max_connection_pools === null ? {} : { maxConnectionPools: entry.max_connection_pools.value }),
    ...(entry.retry_budget === null ? {} : { retryBudget: convertBudget(entry.retry_budget) }),
    ...(entry.track_remaining ? { tracksRemaining: true } : {}),
  };
}

function convertBudget(message: NonNullable<Thresholds['retry_budget']>): RetryBudget {
  return {
    percent: message.budget_percent?.value ?? DEFAULT_RETRY_BUDGET.percent,
    minConcurrency: valueOr(message.min_retry_concurrency, DEFAULT_RETRY_BUDGET.minConcurrency),
  };
}
