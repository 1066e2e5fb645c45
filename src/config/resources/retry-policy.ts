// RetryPolicy message → RetrySettings: of the route, or, where it has none, of its virtual host.

import type {
  RateLimitedBackOffSettings,
  RetryCondition,
  RetryHostPredicate,
  RetrySettings,
} from '../../snapshot/index.ts';
import { RetryPolicy_ResetHeaderFormat as ResetFormat } from '../proto/generated/enums.ts';
import { int64ToNumber } from '../proto/int64.ts';
import { quote } from '../source/node.ts';
import { balancerMetadata } from './balancer-metadata.ts';
import { openExtension } from './extension.ts';
import type { FaultSink } from './fault-sink.ts';
import type {
  CoreRetryPolicy,
  OmitHostMetadataConfig,
  PreviousPrioritiesConfig,
  RetryPolicyMessage,
} from './messages.ts';
import { convertHeaderMatchers } from './route-match.ts';
import { valueToJson } from './struct.ts';
import { durationMs, durationMsOr, valueOr } from './units.ts';

const DEFAULT_RETRIES = 1;
const LOWEST_STATUS = 100;
const STATUSES_END = 600;
/** Of the base. */
const DEFAULT_MAX_FACTOR = 10;
const DEFAULT_RATE_LIMIT_MAX_MS = 300_000;
const DEFAULT_FURTHER_DRAWS = 1;
/** Of requests of the proxy's own. */
const OWN_BACK_OFF = { baseMs: 1000, maxMs: 10_000 };

/** As they are written, in both spellings of those that name the proxy. */
const CONDITIONS: Readonly<Record<string, RetryCondition>> = {
  '5xx': '5xx',
  'gateway-error': 'gateway-error',
  reset: 'reset',
  'reset-before-request': 'reset-before-request',
  'connect-failure': 'connect-failure',
  'retriable-4xx': 'retriable-4xx',
  'refused-stream': 'refused-stream',
  'retriable-status-codes': 'retriable-status-codes',
  'retriable-headers': 'retriable-headers',
  'envoy-ratelimited': 'ratelimited',
  'proxy-ratelimited': 'ratelimited',
  cancelled: 'cancelled',
  'deadline-exceeded': 'deadline-exceeded',
  internal: 'internal',
  'resource-exhausted': 'resource-exhausted',
  unavailable: 'unavailable',
};
/** The words of `retry_on`. */
export const RETRY_CONDITIONS: readonly string[] = Object.keys(CONDITIONS);
/** Never happens where there is no HTTP/3. */
const WITHOUT_EFFECT: ReadonlySet<string> = new Set(['http3-post-connect-failure']);

const PREDICATES: Readonly<Record<string, (message: object) => RetryHostPredicate | undefined>> = {
  'proxy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate': () => ({ kind: 'previous-hosts' }),
  'proxy.extensions.retry.host.omit_canary_hosts.v3.OmitCanaryHostsPredicate': () => ({ kind: 'canary-hosts' }),
  'proxy.extensions.retry.host.omit_host_metadata.v3.OmitHostMetadataConfig': (message) =>
    convertMetadataPredicate(message as OmitHostMetadataConfig),
};

/** @returns null without a policy. */
export function convertRetryPolicy(
  message: RetryPolicyMessage | null,
  at: string,
  faults: FaultSink,
): RetrySettings | null {
  if (message === null) return null;
  checkStatusCodes(message.retriable_status_codes, `${at}.retriable_status_codes`, faults);
  return {
    conditions: convertConditions(message.retry_on, `${at}.retry_on`, faults),
    maxRetries: valueOr(message.num_retries, DEFAULT_RETRIES),
    perTryTimeoutMs: durationMsOr(message.per_try_timeout, 0),
    perTryIdleTimeoutMs: durationMsOr(message.per_try_idle_timeout, 0),
    backOff: convertBackOff(message.retry_back_off, `${at}.retry_back_off`, faults),
    rateLimitedBackOff: convertRateLimited(message.rate_limited_retry_back_off),
    retriableStatusCodes: message.retriable_status_codes,
    retriableHeaders: convertHeaderMatchers(message.retriable_headers, `${at}.retriable_headers`, faults),
    retriableRequestHeaders: convertHeaderMatchers(
      message.retriable_request_headers,
      `${at}.retriable_request_headers`,
      faults,
    ),
    hostPredicates: convertPredicates(message),
    maxFurtherDraws: furtherDraws(message, at, faults),
    previousPrioritiesFrequency: previousPriorities(message),
  };
}

/** Of requests of the proxy's own, which say less. @param byDefault conditions where `retry_on` names none. */
export function convertOwnRetries(
  message: CoreRetryPolicy | null,
  byDefault: readonly RetryCondition[],
  at: string,
  faults: FaultSink,
): RetrySettings | null {
  if (message === null) return null;
  const conditions = convertConditions(message.retry_on, `${at}.retry_on`, faults);
  return {
    conditions: message.retry_on === '' ? byDefault : conditions,
    maxRetries: valueOr(message.num_retries, DEFAULT_RETRIES),
    perTryTimeoutMs: 0,
    perTryIdleTimeoutMs: 0,
    backOff: convertBackOff(message.retry_back_off, `${at}.retry_back_off`, faults) ?? OWN_BACK_OFF,
    rateLimitedBackOff: null,
    retriableStatusCodes: [],
    retriableHeaders: [],
    retriableRequestHeaders: [],
    hostPredicates: [],
    maxFurtherDraws: 0,
    previousPrioritiesFrequency: 0,
  };
}

function checkStatusCodes(codes: readonly number[], at: string, faults: FaultSink): void {
  for (const [index, code] of codes.entries()) {
    if (code < LOWEST_STATUS || code >= STATUSES_END)
      faults.warning(`${at}[${index}]`, `no response has status ${code}`);
  }
}

function convertConditions(text: string, at: string, faults: FaultSink): readonly RetryCondition[] {
  const conditions = new Set<RetryCondition>();
  for (const name of text.split(',').map((part) => part.trim())) {
    const condition = Object.hasOwn(CONDITIONS, name) ? CONDITIONS[name] : undefined;
    if (condition !== undefined) conditions.add(condition);
    else if (name !== '' && !WITHOUT_EFFECT.has(name)) faults.warning(at, `no condition is called ${quote(name)}`);
  }
  return [...conditions];
}

function convertBackOff(
  message: RetryPolicyMessage['retry_back_off'] | CoreRetryPolicy['retry_back_off'],
  at: string,
  faults: FaultSink,
): RetrySettings['backOff'] {
  if (message === null || message.base_interval === null) return null;
  const baseMs = durationMs(message.base_interval);
  const maxMs = durationMsOr(message.max_interval, baseMs * DEFAULT_MAX_FACTOR);
  if (maxMs < baseMs) faults.error(`${at}.max_interval`, `${maxMs}ms is below base_interval ${baseMs}ms`);
  return { baseMs, maxMs };
}

function convertRateLimited(
  message: RetryPolicyMessage['rate_limited_retry_back_off'],
): RateLimitedBackOffSettings | null {
  if (message === null) return null;
  return {
    headers: message.reset_headers.map(({ name, format }) => ({
      name: name.toLowerCase(),
      format: format === ResetFormat.UNIX_TIMESTAMP ? 'unix-timestamp' : 'seconds',
    })),
    maxMs: message.max_interval === null ? DEFAULT_RATE_LIMIT_MAX_MS : durationMs(message.max_interval),
  };
}

/** Those that this build lacks are refused by the support table. */
function convertPredicates(message: RetryPolicyMessage): readonly RetryHostPredicate[] {
  return message.retry_host_predicate.flatMap(({ typed_config }) => {
    const opened = openExtension(typed_config);
    const predicate = opened && PREDICATES[opened.typeName]?.(opened.message);
    return predicate === undefined ? [] : [predicate];
  });
}

/** @returns undefined when no host is meant. */
function convertMetadataPredicate({ metadata_match }: OmitHostMetadataConfig): RetryHostPredicate | undefined {
  const values = [...balancerMetadata(metadata_match)].map(([key, value]) => [key, valueToJson(value)] as const);
  return values.length === 0 ? undefined : { kind: 'metadata', values: Object.fromEntries(values) };
}

function furtherDraws(message: RetryPolicyMessage, at: string, faults: FaultSink): number {
  const draws = int64ToNumber(message.host_selection_retry_max_attempts);
  if (draws < 0) faults.error(`${at}.host_selection_retry_max_attempts`, `${draws} is below 0`);
  return draws === 0 ? DEFAULT_FURTHER_DRAWS : draws;
}

function previousPriorities({ retry_priority }: RetryPolicyMessage): number {
  const opened = openExtension(retry_priority?.typed_config ?? null);
  return opened === undefined ? 0 : (opened.message as PreviousPrioritiesConfig).update_frequency;
}
