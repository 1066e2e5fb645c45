// When a request that has failed is tried again, and how.

import type { JsonObject } from '../base/json.ts';
import type { HeaderMatch } from './route-table.ts';

/** What a request may fail by. Those of gRPC are told by the status that stands in a response's head. */
export type RetryCondition =
  | '5xx'
  | 'gateway-error'
  | 'reset'
  | 'reset-before-request'
  | 'connect-failure'
  | 'retriable-4xx'
  | 'refused-stream'
  | 'retriable-status-codes'
  | 'retriable-headers'
  | 'ratelimited'
  | 'cancelled'
  | 'deadline-exceeded'
  | 'internal'
  | 'resource-exhausted'
  | 'unavailable';

/** Waits are drawn by chance from a range that grows with each retry. */
export interface BackOffSettings {
  readonly baseMs: number;
  /** No wait is longer; the base or more. */
  readonly maxMs: number;
}

/** Waits that an upstream asks for. */
export interface RateLimitedBackOffSettings {
  /** Response headers by their lower-case names, the first that says something counts. */
  readonly headers: readonly { readonly name: string; readonly format: 'seconds' | 'unix-timestamp' }[];
  /** Longer waits are not obeyed. */
  readonly maxMs: number;
}

/** Hosts that a retry does not go to as long as others are drawn. */
export type RetryHostPredicate =
  | { readonly kind: 'previous-hosts' }
  | { readonly kind: 'canary-hosts' }
  /** Those whose balancer metadata says all of this. */
  | { readonly kind: 'metadata'; readonly values: JsonObject };

export interface RetrySettings {
  readonly conditions: readonly RetryCondition[];
  /** Retries of one request at most. */
  readonly maxRetries: number;
  /** For the head of each response, 0 for none. */
  readonly perTryTimeoutMs: number;
  /** Without progress of a try, 0 for any. */
  readonly perTryIdleTimeoutMs: number;
  /** Null for what the runtime says. */
  readonly backOff: BackOffSettings | null;
  readonly rateLimitedBackOff: RateLimitedBackOffSettings | null;
  /** For the condition of their name. */
  readonly retriableStatusCodes: readonly number[];
  /** Of responses; one of them is enough. */
  readonly retriableHeaders: readonly HeaderMatch[];
  /** Of requests: one of them must match, if there are any. */
  readonly retriableRequestHeaders: readonly HeaderMatch[];
  readonly hostPredicates: readonly RetryHostPredicate[];
  /** Further hosts that are drawn when predicates turn one down. */
  readonly maxFurtherDraws: number;
  /** After so many tries retries leave the priorities that were tried; 0 for never. */
  readonly previousPrioritiesFrequency: number;
}
