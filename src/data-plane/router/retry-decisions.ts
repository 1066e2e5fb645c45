// Decides for one request whether what an attempt came to is tried again, and how long to wait before that. Knows no
// attempt: whoever makes them asks.

import type { Random } from '../../base/random.ts';
import { USE_RETRY } from '../../base/runtime-values.ts';
import { CLUSTER_STATS, ROUTE_STATS } from '../../stats/index.ts';
import { HEADER_ID, type ResponseHead } from '../../wasm/http1.ts';
import type { RequestTally } from '../route/request-tally.ts';
import { RetryOn, type RetryPolicy, type RetryTerms } from '../route/retry-policy.ts';
import type { CircuitBreaker } from '../upstream/circuit-breaker.ts';
import type { Cluster } from '../upstream/cluster.ts';
import type { UpstreamFailure } from '../upstream/pool/failure.ts';
import type { WorkerContext } from '../worker-context.ts';
import { backOffMs, defaultBackOff, requestedBackOffMs } from './back-off.ts';

const {
  upstream_rq_retry,
  upstream_rq_retry_backoff_exponential,
  upstream_rq_retry_backoff_ratelimited,
  upstream_rq_retry_limit_exceeded,
  upstream_rq_retry_overflow,
  upstream_rq_retry_success,
} = CLUSTER_STATS.index;

/** What requests count of retries beside their cluster, by its stats. */
const TALLIED: ReadonlyMap<number, number> = new Map([
  [upstream_rq_retry, ROUTE_STATS.index.upstream_rq_retry],
  [upstream_rq_retry_limit_exceeded, ROUTE_STATS.index.upstream_rq_retry_limit_exceeded],
  [upstream_rq_retry_overflow, ROUTE_STATS.index.upstream_rq_retry_overflow],
  [upstream_rq_retry_success, ROUTE_STATS.index.upstream_rq_retry_success],
]);

const RATE_LIMITED = HEADER_ID['x-proxy-ratelimited'];
const OVERLOADED = HEADER_ID['x-proxy-overloaded'];
const GRPC_STATUS = HEADER_ID['grpc-status'];

/** What is decided. */
export const Decision = {
  /** Nothing asks for a retry. */
  no: 0,
  /** There is one; it has its place under the circuit breaker. */
  retry: 1,
  /** There would be one, had there not been so many. */
  limit: 2,
  /** There would be one if there was a place for it. */
  overflow: 3,
} as const;
export type Decision = (typeof Decision)[keyof typeof Decision];

/** A try that ran out of time counts as one of these. */
export type AttemptFailure = UpstreamFailure | 'timeout';

const CONNECT_FAILURES: ReadonlySet<AttemptFailure> = new Set([
  'local connection failure',
  'remote connection failure',
  'connection timeout',
]);
const ANY_RESET = RetryOn['5xx'] | RetryOn['gateway-error'] | RetryOn.reset;
const CONDITION_OF_GRPC_STATUS: ReadonlyMap<string | undefined, number> = new Map([
  ['1', RetryOn.cancelled],
  ['4', RetryOn['deadline-exceeded']],
  ['8', RetryOn['resource-exhausted']],
  ['13', RetryOn.internal],
  ['14', RetryOn.unavailable],
]);
const ANY_GRPC_STATUS = [...CONDITION_OF_GRPC_STATUS.values()].reduce((all, condition) => all | condition, 0);

export interface RetryDecisionsOptions {
  readonly cluster: Cluster;
  readonly breaker: CircuitBreaker;
  readonly policy: RetryPolicy;
  readonly terms: RetryTerms;
  readonly random: Random;
  /** Where the request is counted beside its cluster; null for nowhere. */
  readonly tally: Pick<RequestTally, 'add'> | null;
}

/** A stream that its upstream refuses is a retry like any other. */
export function triesRefusedAgain({ conditions }: RetryTerms): boolean {
  return (conditions & (ANY_RESET | RetryOn['refused-stream'])) !== 0;
}

/** Of a response whose head lies in the codec, apart from how many retries there may be. */
export function wantsAnother({ conditions, statusCodes, responseTests }: RetryTerms, head: ResponseHead): boolean {
  // Who is overloaded does not want to hear the same again.
  if (head.has(OVERLOADED)) return false;
  if (head.has(RATE_LIMITED)) return (conditions & RetryOn.ratelimited) !== 0;
  const { status } = head;
  if ((conditions & RetryOn['5xx']) !== 0 && status >= 500 && status <= 599) return true;
  if ((conditions & RetryOn['gateway-error']) !== 0 && status >= 502 && status <= 504) return true;
  if ((conditions & RetryOn['retriable-4xx']) !== 0 && status === 409) return true;
  if ((conditions & RetryOn['retriable-status-codes']) !== 0 && statusCodes.includes(status)) return true;
  if ((conditions & RetryOn['retriable-headers']) !== 0 && responseTests.some((holds) => holds(head))) return true;
  if ((conditions & ANY_GRPC_STATUS) === 0) return false;
  return (conditions & (CONDITION_OF_GRPC_STATUS.get(head.header(GRPC_STATUS)) ?? 0)) !== 0;
}

export class RetryDecisions {
  readonly #context: WorkerContext;
  readonly #options: RetryDecisionsOptions;
  /** Where the next try goes. */
  #cluster: Cluster;
  #breaker: CircuitBreaker;
  #remaining: number;
  /** Retries that were decided on. */
  #count = 0;
  /** What the last response asks for; 0 for nothing. */
  #requestedMs = 0;

  constructor(context: WorkerContext, options: RetryDecisionsOptions) {
    this.#context = context;
    this.#options = options;
    this.#cluster = options.cluster;
    this.#breaker = options.breaker;
    this.#remaining = options.terms.maxRetries;
  }

  /** The cluster has been replaced: what is left of the retries counts for its successor. */
  moveTo(cluster: Cluster, breaker: CircuitBreaker): void {
    this.#cluster = cluster;
    this.#breaker = breaker;
  }

  /** @param isRetry the response is that of a retry. */
  onResponse(head: ResponseHead, isRetry: boolean): Decision {
    if (!wantsAnother(this.#options.terms, head)) {
      if (isRetry) this.#note(upstream_rq_retry_success);
      return Decision.no;
    }
    const { rateLimitedBackOff } = this.#options.policy;
    this.#requestedMs =
      rateLimitedBackOff === null ? 0 : requestedBackOffMs(head, rateLimitedBackOff, this.#context.clock.wallMs());
    return this.#decide();
  }

  /** An attempt has failed without a response. @param wasSent a byte of the request may have reached the upstream. */
  onFailure(failure: AttemptFailure, wasSent: boolean): Decision {
    this.#requestedMs = 0;
    return this.#concerns(failure, wasSent) ? this.#decide() : Decision.no;
  }

  /** An attempt has taken too long, and goes on: whatever the conditions are, another may try. */
  onSlowness(): Decision {
    this.#requestedMs = 0;
    return this.#decide();
  }

  /** How long the retry that was decided on waits. */
  nextDelayMs(): number {
    const { policy, random } = this.#options;
    if (this.#requestedMs > 0) {
      this.#note(upstream_rq_retry_backoff_ratelimited);
      return this.#requestedMs + (random.u32() / 2 ** 32) * (this.#requestedMs / 2);
    }
    this.#note(upstream_rq_retry_backoff_exponential);
    const range = policy.backOff ?? defaultBackOff(this.#context.runtime);
    return backOffMs(range, this.#count, random.u32());
  }

  #concerns(failure: AttemptFailure, wasSent: boolean): boolean {
    const { conditions } = this.#options.terms;
    if (failure === 'overflow') return false;
    if ((conditions & ANY_RESET) !== 0) return true;
    if (failure === 'remote refused stream reset' && triesRefusedAgain(this.#options.terms)) return true;
    if ((conditions & RetryOn['reset-before-request']) !== 0 && !wasSent) return true;
    return (conditions & RetryOn['connect-failure']) !== 0 && CONNECT_FAILURES.has(failure);
  }

  #decide(): Decision {
    if (this.#remaining === 0) {
      this.#note(upstream_rq_retry_limit_exceeded);
      return Decision.limit;
    }
    this.#remaining -= 1;
    const { random } = this.#options;
    if (!this.#breaker.tryAcquireRetry()) {
      this.#note(upstream_rq_retry_overflow);
      return Decision.overflow;
    }
    if (!this.#context.runtime.happens(USE_RETRY, 100, random.u32())) {
      this.#breaker.releaseRetry();
      return Decision.no;
    }
    this.#count += 1;
    this.#note(upstream_rq_retry);
    return Decision.retry;
  }

  #note(stat: number): void {
    this.#context.stats.values[this.#cluster.statBase + stat]! += 1;
    const { tally } = this.#options;
    const tallied = tally === null ? undefined : TALLIED.get(stat);
    if (tallied !== undefined) tally!.add(tallied);
  }
}
