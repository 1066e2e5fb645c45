// cluster.<name>.circuit_breakers.<priority>.*: worked out from the cluster's record when read. The counts
// are totals over all workers, so no worker alone could say that a limit is reached.

import { type RetryBudget, retryLimit } from '../base/circuit-limits.ts';
import { ClusterCount, ClusterPriority, type SharedRecords } from '../wasm/shared-memory.ts';
import { type DerivedTable, derivedTable } from './derived-table.ts';
import type { Scope } from './scope.ts';

const PRIORITIES = ['default', 'high'] as const;
type Priority = (typeof PRIORITIES)[number];

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

/** What the gauges of one cluster are worked out from. */
export interface CircuitBreakerSource {
  readonly records: SharedRecords;
  readonly recordAddress: number;
  /** `value` is asked each time: the runtime may change the limits. */
  readonly limits: { readonly value: { readonly default: CircuitBreakerLimits; readonly high: CircuitBreakerLimits } };
}

export interface CircuitBreakerOptions extends CircuitBreakerSource {
  /** `cluster.<name>.` */
  readonly scope: Scope;
  /** Which priorities show the remaining_* gauges too. */
  readonly tracksRemaining: Readonly<Record<Priority, boolean>>;
}

interface Breaker {
  readonly name: string;
  readonly open: string;
  readonly remaining: string;
  readonly count: ClusterCount;
  limit(limits: CircuitBreakerLimits): number;
}

const BREAKERS: readonly Breaker[] = [
  {
    name: 'connections',
    open: 'cx_open',
    remaining: 'remaining_cx',
    count: ClusterCount.connections,
    limit: (l) => l.maxConnections,
  },
  {
    name: 'connection pools',
    open: 'cx_pool_open',
    remaining: 'remaining_cx_pools',
    count: ClusterCount.connectionPools,
    limit: (l) => l.maxConnectionPools ?? 2 ** 32 - 1,
  },
  {
    name: 'pending requests',
    open: 'rq_pending_open',
    remaining: 'remaining_pending',
    count: ClusterCount.pendingRequests,
    limit: (l) => l.maxPendingRequests,
  },
  {
    name: 'requests',
    open: 'rq_open',
    remaining: 'remaining_rq',
    count: ClusterCount.requests,
    limit: (l) => l.maxRequests,
  },
  {
    name: 'retries',
    open: 'rq_retry_open',
    remaining: 'remaining_retries',
    count: ClusterCount.retries,
    limit: (l) => l.maxRetries,
  },
];

type Gauges = Record<string, (source: CircuitBreakerSource) => number>;

function gauges(tracksRemaining: CircuitBreakerOptions['tracksRemaining']): DerivedTable<CircuitBreakerSource> {
  const reads: Gauges = {};
  for (const priority of PRIORITIES) {
    for (const breaker of BREAKERS) {
      const prefix = `circuit_breakers.${priority}.`;
      const left = (source: CircuitBreakerSource): number =>
        limitOf(breaker, source, priority) - countOf(breaker.count, source, priority);
      reads[prefix + breaker.open] = (source) => (left(source) <= 0 ? 1 : 0);
      if (!tracksRemaining[priority]) continue;
      // What a budget leaves depends on requests that come and go.
      reads[prefix + breaker.remaining] = (source) =>
        hasBudget(breaker, source, priority) ? 0 : Math.max(0, left(source));
    }
  }
  return derivedTable(reads);
}

/** One table for each choice, which all clusters share. */
const WITHOUT_DEFAULT = {
  withoutHigh: gauges({ default: false, high: false }),
  withHigh: gauges({ default: false, high: true }),
};
const WITH_DEFAULT = {
  withoutHigh: gauges({ default: true, high: false }),
  withHigh: gauges({ default: true, high: true }),
};

/** Adds the gauges of both priorities to the cluster's scope; they go with it. */
export function addCircuitBreakerGauges({ scope, tracksRemaining, ...source }: CircuitBreakerOptions): void {
  const tables = tracksRemaining.default ? WITH_DEFAULT : WITHOUT_DEFAULT;
  scope.derive<CircuitBreakerSource>(tracksRemaining.high ? tables.withHigh : tables.withoutHigh, source);
}

export interface BreakerUse {
  readonly name: string;
  readonly used: number;
  readonly limit: number;
}

/** How full each breaker is, at the priority where it is fuller; those of connection pools have a limit seldom. */
export function breakerUses(source: CircuitBreakerSource): readonly BreakerUse[] {
  const shown = BREAKERS.filter(({ count }) => count !== ClusterCount.connectionPools);
  return shown.map((breaker) => {
    const uses = PRIORITIES.map((priority) => ({
      name: breaker.name,
      used: countOf(breaker.count, source, priority),
      limit: limitOf(breaker, source, priority),
    }));
    return uses.reduce((fuller, use) => (use.used * fuller.limit > fuller.used * use.limit ? use : fuller));
  });
}

function countOf(count: ClusterCount, { records, recordAddress }: CircuitBreakerSource, priority: Priority): number {
  return records.clusterCount(recordAddress, ClusterPriority[priority], count);
}

function hasBudget({ count }: Breaker, { limits }: CircuitBreakerSource, priority: Priority): boolean {
  return count === ClusterCount.retries && limits.value[priority].retryBudget !== undefined;
}

function limitOf(breaker: Breaker, source: CircuitBreakerSource, priority: Priority): number {
  const limits = source.limits.value[priority];
  if (!hasBudget(breaker, source, priority)) return breaker.limit(limits);
  const running =
    countOf(ClusterCount.requests, source, priority) + countOf(ClusterCount.pendingRequests, source, priority);
  return retryLimit(limits, running);
}
