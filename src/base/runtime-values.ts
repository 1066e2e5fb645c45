// Runtime values as text: the keys that this build reads, and how a value becomes a number.

import type { Fraction } from './runtime.ts';

/** Most connections from clients over all listeners. */
export const GLOBAL_CONNECTION_LIMIT = 'overload.global_downstream_max_connections';
/** Around the name of a listener, the key of its own limit. */
export const LISTENER_LIMITS = 'proxy.resource_limits.listener.';
export const CONNECTION_LIMIT = '.connection_limit';

/** Bounds of the waits between health checks, in milliseconds, and the percent of them that verify the service. */
export const MIN_CHECK_INTERVAL = 'health_check.min_interval';
export const MAX_CHECK_INTERVAL = 'health_check.max_interval';
export const VERIFY_CLUSTER = 'health_check.verify_cluster';

/** Percent of available hosts below which a priority is in panic. */
export const PANIC_THRESHOLD = 'upstream.healthy_panic_threshold';

/** Percent of requests that go by locality, and how many healthy hosts that takes. */
export const ZONE_ROUTING_ENABLED = 'upstream.zone_routing.enabled';
export const ZONE_MIN_CLUSTER_SIZE = 'upstream.zone_routing.min_cluster_size';
/** How many healthy hosts in the own locality take all requests, where a cluster has such a rule. */
export const ZONE_FORCED_FROM = 'upstream.zone_routing.force_local_zone.min_size';

/** How many hosts an ORIGINAL_DST cluster makes on demand. */
export const ORIGINAL_DST_HOSTS = 'upstream.original_dst.max_hosts';

/** Before the name of a cluster: percent of its requests that are turned away. */
export const MAINTENANCE_MODE = 'upstream.maintenance_mode.';
/** Most percent of requests that a load assignment may have dropped. */
export const DROP_OVERLOAD_LIMIT = 'load_balancing_policy.drop_overload_limit';

/** Percent of the retries that a policy wants which are made. */
export const USE_RETRY = 'upstream.use_retry';
/** The shortest back-off of retry policies that name none, in milliseconds. */
export const BASE_RETRY_BACKOFF = 'upstream.base_retry_backoff_ms';

/** Percent of requests that are traced: those whose clients ask for it, by chance, and of all that have been chosen. */
export const TRACING_KEYS = {
  client: 'tracing.client_enabled',
  random: 'tracing.random_sampling',
  overall: 'tracing.global_enabled',
} as const;
/** Last parts of the keys `tracing.<tracer>.<part>`: how many spans are enough for a call, and times in milliseconds. */
export const TRACER_KEYS = {
  minSpans: 'min_flush_spans',
  flushIntervalMs: 'flush_interval_ms',
  timeoutMs: 'request_timeout',
} as const;
const TRACING = 'tracing.';

/** Lookups by a service of another operating system, which takes neither servers nor a transport. */
export const APPLE_DNS_LOOKUPS = 'proxy.restart_features.use_apple_api_for_dns_lookups';

/** Whether filters of stats are regular expressions of RE2 rather than of ECMAScript. */
export const STATS_FILTER_BY_RE2 = 'proxy.reloadable_features.admin_stats_filter_use_re2';

/** Last parts of the keys `circuit_breakers.<cluster>.<default or high>.<limit>`. */
export const CIRCUIT_BREAKER_KEYS = {
  maxConnections: 'max_connections',
  maxPendingRequests: 'max_pending_requests',
  maxRequests: 'max_requests',
  maxRetries: 'max_retries',
  maxConnectionPools: 'max_connection_pools',
} as const;
/** The same of `circuit_breakers.<cluster>.<default or high>.<part>`. */
export const RETRY_BUDGET_KEYS = {
  percent: 'retry_budget.budget_percent',
  minConcurrency: 'retry_budget.min_retry_concurrency',
} as const;
const CIRCUIT_BREAKERS = 'circuit_breakers.';

/** Last parts of the keys `outlier_detection.<setting>`, by the names of settings. */
export const OUTLIER_KEYS = {
  intervalMs: 'interval_ms',
  baseEjectionTimeMs: 'base_ejection_time_ms',
  maxEjectionTimeMs: 'max_ejection_time_ms',
  maxEjectionTimeJitterMs: 'max_ejection_time_jitter_ms',
  maxEjectionPercent: 'max_ejection_percent',
  consecutive5xx: 'consecutive_5xx',
  consecutiveGatewayFailure: 'consecutive_gateway_failure',
  consecutiveLocalOriginFailure: 'consecutive_local_origin_failure',
  successRateMinimumHosts: 'success_rate_minimum_hosts',
  successRateRequestVolume: 'success_rate_request_volume',
  successRateStdevFactor: 'success_rate_stdev_factor',
  failurePercentageThreshold: 'failure_percentage_threshold',
  failurePercentageMinimumHosts: 'failure_percentage_minimum_hosts',
  failurePercentageRequestVolume: 'failure_percentage_request_volume',
} as const;
/** The same of the percent of detections that are acted on, by detector. */
export const OUTLIER_SHARE_KEYS = {
  'consecutive-5xx': 'enforcing_consecutive_5xx',
  'consecutive-gateway-failure': 'enforcing_consecutive_gateway_failure',
  'consecutive-local-origin-failure': 'enforcing_consecutive_local_origin_failure',
  'success-rate': 'enforcing_success_rate',
  'local-origin-success-rate': 'enforcing_local_origin_success_rate',
  'failure-percentage': 'enforcing_failure_percentage',
  'local-origin-failure-percentage': 'enforcing_failure_percentage_local_origin',
} as const;
export const OUTLIER_DETECTION = 'outlier_detection.';

const INTEGER_KEYS: ReadonlySet<string> = new Set([
  GLOBAL_CONNECTION_LIMIT,
  MIN_CHECK_INTERVAL,
  MAX_CHECK_INTERVAL,
  PANIC_THRESHOLD,
  DROP_OVERLOAD_LIMIT,
  ZONE_MIN_CLUSTER_SIZE,
  ZONE_FORCED_FROM,
  ORIGINAL_DST_HOSTS,
  BASE_RETRY_BACKOFF,
  ...Object.values(OUTLIER_KEYS).map((key) => OUTLIER_DETECTION + key),
]);
const INTEGER_LIMITS: readonly string[] = [...Object.values(CIRCUIT_BREAKER_KEYS), RETRY_BUDGET_KEYS.minConcurrency];
const SHARE_KEYS: ReadonlySet<string> = new Set([
  VERIFY_CLUSTER,
  ZONE_ROUTING_ENABLED,
  USE_RETRY,
  ...Object.values(TRACING_KEYS),
  ...Object.values(OUTLIER_SHARE_KEYS).map((key) => OUTLIER_DETECTION + key),
]);
const FLAG_KEYS: ReadonlySet<string> = new Set([APPLE_DNS_LOOKUPS, STATS_FILTER_BY_RE2]);
/** Below these a proxy has keys of its own; all others are free to be named by configurations. */
const OWN_KEYS =
  /^(?:proxy|upstream|outlier_detection|circuit_breakers|health_check|overload|tracing|re2|regex|ratelimit)\./;

/**
 * What a value under a key should be: `any` of a key that a configuration may name, `none` of one that stands for
 * something this build does not have.
 */
export function expectedValue(key: string): 'integer' | 'share' | 'flag' | 'any' | 'none' {
  if (INTEGER_KEYS.has(key) || isCircuitBreakerKey(key, INTEGER_LIMITS) || isTracerKey(key)) return 'integer';
  if (key.startsWith(LISTENER_LIMITS) && key.endsWith(CONNECTION_LIMIT)) return 'integer';
  // A percentage with its fraction.
  if (isCircuitBreakerKey(key, [RETRY_BUDGET_KEYS.percent])) return 'any';
  if (SHARE_KEYS.has(key) || key.startsWith(MAINTENANCE_MODE)) return 'share';
  if (FLAG_KEYS.has(key)) return 'flag';
  return OWN_KEYS.test(key) ? 'none' : 'any';
}

function isTracerKey(key: string): boolean {
  return key.startsWith(TRACING) && Object.values(TRACER_KEYS).some((part) => key.endsWith(`.${part}`));
}

function isCircuitBreakerKey(key: string, limits: readonly string[]): boolean {
  if (!key.startsWith(CIRCUIT_BREAKERS)) return false;
  return limits.some((limit) => key.endsWith(`.default.${limit}`) || key.endsWith(`.high.${limit}`));
}

/** Why a value cannot have the effect of its key, in words that go on behind it; undefined when it can. */
export function runtimeValueFault(key: string, value: string): string | undefined {
  switch (expectedValue(runtimeKey(key))) {
    case 'integer':
      return runtimeInteger(value) === undefined ? 'is not a whole number' : undefined;
    case 'share':
      return runtimeFraction(value) === undefined ? 'is neither a whole number of percent nor a fraction' : undefined;
    case 'flag':
      return runtimeFlag(value) === undefined ? 'is neither true nor false' : undefined;
    default:
      return undefined;
  }
}

/** Key of the most connections of one listener. */
export function listenerConnectionLimit(name: string): string {
  return `${LISTENER_LIMITS}${name}${CONNECTION_LIMIT}`;
}

/** The two spellings of the proxy's own keys are one. */
export function runtimeKey(key: string): string {
  return key.startsWith('envoy.') ? `proxy.${key.slice('envoy.'.length)}` : key;
}

/** A value read as a whole number of 0 or more, fractions cut off; undefined when it is none. */
export function runtimeInteger(value: string): number | undefined {
  const number = runtimeNumber(value);
  return number === undefined || number < 0 || Object.is(number, -0) ? undefined : Math.floor(number);
}

/** A value read as a number; undefined when it is none. */
export function runtimeNumber(value: string): number | undefined {
  if (!/^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i.test(value)) return undefined;
  const number = Number(value);
  return Number.isFinite(number) ? number : undefined;
}

/** A value read as a flag, a word or a number of which 0 says no; undefined when it is none. */
export function runtimeFlag(value: string): boolean | undefined {
  const number = runtimeNumber(value);
  if (number !== undefined) return number !== 0;
  const word = value.toLowerCase();
  return word === 'true' || word === 'false' ? word === 'true' : undefined;
}

const DENOMINATORS: Readonly<Record<string, number>> = {
  HUNDRED: 100,
  TEN_THOUSAND: 10_000,
  MILLION: 1_000_000,
  // By the numbers of the schema's enumeration.
  0: 100,
  1: 10_000,
  2: 1_000_000,
};
const FRACTION_FIELD = /^\s*(["']?)(numerator|denominator)\1\s*:\s*(["']?)(\w+)\3\s*$/;

/**
 * A value read as a share: a whole number of percent, or `numerator` and `denominator` as YAML or JSON has them; undefined
 * when it is none.
 */
export function runtimeFraction(value: string): Fraction | undefined {
  const percent = runtimeInteger(value);
  if (percent !== undefined) return { numerator: percent, denominator: DENOMINATORS.HUNDRED! };
  const fields = new Map<string, string>();
  const trimmed = value.trim();
  const inner = trimmed.startsWith('{') && trimmed.endsWith('}') ? trimmed.slice(1, -1) : trimmed;
  for (const line of inner.split(/[\n,]/)) {
    if (line.trim() === '') continue;
    const field = FRACTION_FIELD.exec(line);
    if (field === null) return undefined;
    fields.set(field[2]!, field[4]!);
  }
  const numerator = runtimeInteger(fields.get('numerator') ?? '0');
  const denominator = DENOMINATORS[fields.get('denominator') ?? 'HUNDRED'];
  return numerator === undefined || denominator === undefined ? undefined : { numerator, denominator };
}
