// The two records of a cluster in the event stream of a circuit breaker dashboard. What this proxy has no notion of is 0, as
// dashboards expect; the circuit never opens, because what breakers of a cluster refuse counts as rejected.

import type { RollingCounts } from './rolling-counts.ts';

/** Quantiles of request times, in percent, by the keys of the record. */
const LATENCY_QUANTILES = ['0', '25', '50', '75', '90', '95', '99', '99.5', '100'] as const;
export const LATENCY_FRACTIONS: readonly number[] = LATENCY_QUANTILES.map((percent) => Number(percent) / 100);

/** Order of the counters in a cluster's window. */
const SERIES = ['timeouts', 'errors', 'success', 'rejected', 'total'] as const;

/** Counters of a cluster that the records are made of. */
export interface ClusterCounts {
  readonly upstream_rq_timeout: number;
  readonly upstream_rq_per_try_timeout: number;
  readonly upstream_rq_pending_overflow: number;
  readonly upstream_rq_2xx: number;
  readonly upstream_rq_4xx: number;
  readonly upstream_rq_5xx: number;
  readonly 'retry.upstream_rq_4xx': number;
  readonly 'retry.upstream_rq_5xx': number;
}

export interface ClusterRecordSource {
  readonly name: string;
  readonly rolling: RollingCounts;
  /** Values at LATENCY_FRACTIONS since the last flush, in milliseconds; NaN for each without samples. */
  readonly latencies: Float64Array;
  readonly maxPendingRequests: number;
  readonly hosts: number;
}

/** The values of a cluster's window. */
export function seriesOf(counts: ClusterCounts): readonly number[] {
  const timeouts = counts.upstream_rq_timeout + counts.upstream_rq_per_try_timeout;
  const errors =
    counts.upstream_rq_5xx +
    counts['retry.upstream_rq_5xx'] +
    counts.upstream_rq_4xx +
    counts['retry.upstream_rq_4xx'] -
    // A timeout is answered with 504, which is among them.
    counts.upstream_rq_timeout;
  const success = counts.upstream_rq_2xx;
  const rejected = counts.upstream_rq_pending_overflow;
  return [timeouts, errors, success, rejected, errors + timeouts + success + rejected];
}

/** Two events. @param timeMs of the flush, since the Unix epoch. @param intervalMs between flushes. */
export function clusterEvents(source: ClusterRecordSource, timeMs: number, intervalMs: number): string {
  return event(commandRecord(source, timeMs, intervalMs)) + event(threadPoolRecord(source, intervalMs));
}

/** What keeps a connection open on which no cluster is told of. */
export const KEEP_ALIVE = ':\n\n';

function event(members: string): string {
  return `data: {${members}}\n\n`;
}

function membersOf(record: Readonly<Record<string, string | number | boolean>>): string {
  return Object.entries(record)
    .map(([key, value]) => `${JSON.stringify(key)}: ${JSON.stringify(value)}`)
    .join(', ');
}

function commandRecord(
  { name, rolling, latencies, maxPendingRequests, hosts }: ClusterRecordSource,
  timeMs: number,
  intervalMs: number,
): string {
  const [timeouts, errors, success, rejected, total] = SERIES.map((_, series) => rolling.grown(series)) as [
    number,
    number,
    number,
    number,
    number,
  ];
  const failed = errors + timeouts + rejected;
  const counts = membersOf({
    type: 'HystrixCommand',
    name,
    group: 'NA',
    currentTime: Math.floor(timeMs / 1000),
    isCircuitBreakerOpen: false,
    // Counters that were set back leave a total below its parts.
    errorPercentage: total === 0 ? 0 : Math.min(100, Math.floor((100 * failed) / total)),
    errorCount: errors,
    requestCount: total,
    rollingCountCollapsedRequests: 0,
    rollingCountExceptionsThrown: 0,
    rollingCountFailure: errors,
    rollingCountFallbackFailure: 0,
    rollingCountFallbackRejection: 0,
    rollingCountFallbackSuccess: 0,
    rollingCountResponsesFromCache: 0,
    rollingCountSemaphoreRejected: rejected,
    rollingCountShortCircuited: 0,
    rollingCountSuccess: success,
    rollingCountThreadPoolRejected: 0,
    rollingCountTimeout: timeouts,
    rollingCountBadRequests: 0,
    currentConcurrentExecutionCount: 0,
    latencyExecute_mean: 'null',
  });
  const properties = membersOf({
    propertyValue_circuitBreakerRequestVolumeThreshold: 0,
    propertyValue_circuitBreakerSleepWindowInMilliseconds: 0,
    propertyValue_circuitBreakerErrorThresholdPercentage: 0,
    propertyValue_circuitBreakerForceOpen: false,
    propertyValue_circuitBreakerForceClosed: true,
    propertyValue_executionIsolationStrategy: 'SEMAPHORE',
    propertyValue_executionIsolationThreadTimeoutInMilliseconds: 0,
    propertyValue_executionIsolationThreadInterruptOnTimeout: false,
    propertyValue_executionIsolationSemaphoreMaxConcurrentRequests: maxPendingRequests,
    propertyValue_fallbackIsolationSemaphoreMaxConcurrentRequests: 0,
    propertyValue_requestCacheEnabled: false,
    propertyValue_requestLogEnabled: true,
    reportingHosts: hosts,
    propertyValue_metricsRollingStatisticalWindowInMilliseconds: intervalMs,
  });
  return `${counts}, "latencyExecute": {${latencyMembers(latencies)}}, ${properties}`;
}

function threadPoolRecord({ name, maxPendingRequests, hosts }: ClusterRecordSource, intervalMs: number): string {
  return membersOf({
    currentPoolSize: 0,
    rollingMaxActiveThreads: 0,
    currentActiveCount: 0,
    currentCompletedTaskCount: 0,
    propertyValue_queueSizeRejectionThreshold: maxPendingRequests,
    type: 'HystrixThreadPool',
    reportingHosts: hosts,
    propertyValue_metricsRollingStatisticalWindowInMilliseconds: intervalMs,
    name,
    currentLargestPoolSize: 0,
    currentCorePoolSize: 0,
    currentQueueSize: 0,
    currentTaskCount: 0,
    rollingCountThreadsExecuted: 0,
    currentMaximumPoolSize: 0,
  });
}

/** In the order of the quantiles. JSON knows no NaN, and dashboards draw numbers: nobody has waited without requests. */
function latencyMembers(latencies: Float64Array): string {
  return LATENCY_QUANTILES.map((key, at) => `"${key}": ${(latencies[at]! || 0).toFixed(6)}`).join(', ');
}
