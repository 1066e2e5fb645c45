// The retry policy of a route, ready to decide: what a request that has failed may be tried again for. Made once per
// snapshot; a request may add conditions of its own (RetryTerms).

import type {
  BackOffSettings,
  RateLimitedBackOffSettings,
  RetryCondition,
  RetryHostPredicate,
  RetrySettings,
} from '../../snapshot/index.ts';
import type { ResponseHead } from '../../wasm/http1.ts';
import { compileHeaderMatch, compileHeaderTest, type RequestTest } from './header-matcher.ts';

/** One bit for each condition. */
export const RetryOn = {
  '5xx': 1 << 0,
  'gateway-error': 1 << 1,
  reset: 1 << 2,
  'reset-before-request': 1 << 3,
  'connect-failure': 1 << 4,
  'retriable-4xx': 1 << 5,
  'refused-stream': 1 << 6,
  'retriable-status-codes': 1 << 7,
  'retriable-headers': 1 << 8,
  ratelimited: 1 << 9,
  cancelled: 1 << 10,
  'deadline-exceeded': 1 << 11,
  internal: 1 << 12,
  'resource-exhausted': 1 << 13,
  unavailable: 1 << 14,
} as const satisfies Record<RetryCondition, number>;

export type ResponseTest = (head: ResponseHead) => boolean;

/** What one request may be tried again for, and how often. */
export interface RetryTerms {
  /** Bits of RetryOn. */
  readonly conditions: number;
  readonly maxRetries: number;
  readonly statusCodes: readonly number[];
  /** One of them is enough. */
  readonly responseTests: readonly ResponseTest[];
}

export interface RetryPolicy extends RetryTerms {
  /** One of them must hold, if there are any. */
  readonly requestTests: readonly RequestTest[];
  readonly perTryTimeoutMs: number;
  readonly perTryIdleTimeoutMs: number;
  /** Null for what the runtime says. */
  readonly backOff: BackOffSettings | null;
  readonly rateLimitedBackOff: RateLimitedBackOffSettings | null;
  readonly hostPredicates: readonly RetryHostPredicate[];
  readonly maxFurtherDraws: number;
  readonly previousPrioritiesFrequency: number;
}

/** Where a route has no policy and the request brings its own conditions. */
export const NO_POLICY: RetryPolicy = {
  conditions: 0,
  maxRetries: 1,
  statusCodes: [],
  responseTests: [],
  requestTests: [],
  perTryTimeoutMs: 0,
  perTryIdleTimeoutMs: 0,
  backOff: null,
  rateLimitedBackOff: null,
  hostPredicates: [],
  maxFurtherDraws: 1,
  previousPrioritiesFrequency: 0,
};

export function compileRetryPolicy(settings: RetrySettings): RetryPolicy {
  return {
    conditions: settings.conditions.reduce((bits, condition) => bits | RetryOn[condition], 0),
    maxRetries: settings.maxRetries,
    statusCodes: settings.retriableStatusCodes,
    responseTests: settings.retriableHeaders.map((match): ResponseTest => {
      const passes = compileHeaderTest(match);
      const read = responseValueReader(match.name);
      return (head) => passes(read(head));
    }),
    requestTests: settings.retriableRequestHeaders.map(compileHeaderMatch),
    perTryTimeoutMs: settings.perTryTimeoutMs,
    perTryIdleTimeoutMs: settings.perTryIdleTimeoutMs,
    backOff: settings.backOff,
    rateLimitedBackOff: settings.rateLimitedBackOff,
    hostPredicates: settings.hostPredicates,
    maxFurtherDraws: settings.maxFurtherDraws,
    previousPrioritiesFrequency: settings.previousPrioritiesFrequency,
  };
}

function responseValueReader(name: string): (head: ResponseHead) => string | undefined {
  return name === ':status' ? (head) => String(head.status) : (head) => head.headerByName(name);
}
