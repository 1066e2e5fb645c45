// Whether what an attempt came to is tried again, how long that waits, and what is counted of it.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  compileRetryPolicy,
  type ResponseTest,
  RetryOn,
  type RetryPolicy,
  type RetryTerms,
} from '../../../../src/data-plane/route/retry-policy.ts';
import {
  type AttemptFailure,
  Decision,
  RetryDecisions,
  wantsAnother,
} from '../../../../src/data-plane/router/retry-decisions.ts';
import type { Cluster } from '../../../../src/data-plane/upstream/cluster.ts';
import type { ClusterSnapshot, RetryCondition, RetrySettings } from '../../../../src/snapshot/index.ts';
import { ROUTE_STATS } from '../../../../src/stats/index.ts';
import { ClusterCount, ClusterPriority } from '../../../../src/wasm/shared-records.ts';
import { NO_LIMITS } from '../../../support/clusters.ts';
import { responseHead } from '../../../support/heads.ts';
import { retrySettings } from '../../../support/routes.ts';
import { UpstreamWorkers } from '../../../support/upstream-workers.ts';

const CONDITIONS = Object.keys(RetryOn) as RetryCondition[];

function termsFor(conditions: number, more: Partial<RetryTerms> = {}): RetryTerms {
  return { conditions, maxRetries: 1, statusCodes: [404, 418], responseTests: [], ...more };
}

/** The conditions for which a response is tried again. */
function conditionsFor(status: number, ...lines: readonly string[]): RetryCondition[] {
  const responseTests: ResponseTest[] = [() => false, (head) => head.headerByName('again') === 'yes'];
  return CONDITIONS.filter((condition) =>
    wantsAnother(termsFor(RetryOn[condition], { responseTests }), responseHead(status, ...lines)),
  );
}

describe('a response is tried again', () => {
  for (const [status, lines, conditions] of [
    [200, [], []],
    [404, [], ['retriable-status-codes']],
    [408, [], []],
    [409, [], ['retriable-4xx']],
    [410, [], []],
    [418, [], ['retriable-status-codes']],
    [499, [], []],
    [500, [], ['5xx']],
    [501, [], ['5xx']],
    [502, [], ['5xx', 'gateway-error']],
    [503, [], ['5xx', 'gateway-error']],
    [504, [], ['5xx', 'gateway-error']],
    [505, [], ['5xx']],
    [599, [], ['5xx']],
    [600, [], []],
    [200, ['again: yes'], ['retriable-headers']],
    [200, ['again: no'], []],
    [503, ['x-proxy-overloaded: true', 'again: yes'], []],
    [503, ['x-envoy-ratelimited: true', 'again: yes', 'grpc-status: 1'], ['ratelimited']],
    [200, ['x-proxy-ratelimited: true'], ['ratelimited']],
    [200, ['x-proxy-ratelimited: true', 'x-proxy-overloaded: true'], []],
    [200, ['grpc-status: 0'], []],
    [200, ['grpc-status: 1'], ['cancelled']],
    [200, ['grpc-status: 4'], ['deadline-exceeded']],
    [200, ['grpc-status: 8'], ['resource-exhausted']],
    [200, ['grpc-status: 13'], ['internal']],
    [200, ['grpc-status: 14'], ['unavailable']],
    [200, ['grpc-status: 2'], []],
  ] as const) {
    test(`with ${status} ${lines.join(', ')} for ${conditions.join(' and ') || 'nothing'}`, () => {
      assert.deepEqual(conditionsFor(status, ...lines), conditions);
    });
  }

  test('for any of several conditions', () => {
    const terms = termsFor(RetryOn['5xx'] | RetryOn.unavailable);
    assert.ok(wantsAnother(terms, responseHead(500)));
    assert.ok(wantsAnother(terms, responseHead(200, 'grpc-status: 14')));
    assert.ok(!wantsAnother(terms, responseHead(200, 'grpc-status: 13')));
  });
});

interface BenchOptions {
  readonly policy?: Partial<RetrySettings>;
  readonly maxRetries?: number;
  readonly random?: readonly number[];
}

/** The decisions of one request. */
class Bench {
  readonly workers = new UpstreamWorkers(1, () => {});
  readonly snapshot: ClusterSnapshot;
  readonly cluster: Cluster;
  readonly policy: RetryPolicy;
  readonly decisions: RetryDecisions;
  /** Names of what was counted of the request beside its cluster. */
  readonly tallied: string[] = [];

  constructor({ policy, maxRetries = 3, random = [] }: BenchOptions = {}) {
    const limits = { default: { ...NO_LIMITS, maxRetries }, high: NO_LIMITS };
    this.snapshot = this.workers.cluster(1, { circuitBreakers: limits });
    this.cluster = this.workers.open(0, this.snapshot);
    this.policy = compileRetryPolicy(retrySettings({ conditions: ['5xx'], maxRetries: 2, ...policy }));
    const drawn = [...random];
    this.decisions = new RetryDecisions(this.context, {
      cluster: this.cluster,
      breaker: this.cluster.breakerFor(ClusterPriority.default),
      policy: this.policy,
      terms: this.policy,
      random: { u32: () => drawn.shift() ?? 0 },
      tally: { add: (stat) => this.tallied.push(ROUTE_STATS.rows[stat]!.name) },
    });
  }

  get context() {
    return this.workers.contexts[0]!;
  }

  /** Places under the circuit breaker. */
  get places(): number {
    const { recordAddress } = this.snapshot;
    return this.workers.records.clusterCount(recordAddress, ClusterPriority.default, ClusterCount.retries);
  }

  /** Counters of retries that are not 0, without `upstream_rq_`. */
  get counted(): Record<string, number> {
    const names = [
      'upstream_rq_retry',
      'upstream_rq_retry_backoff_exponential',
      'upstream_rq_retry_backoff_ratelimited',
      'upstream_rq_retry_limit_exceeded',
      'upstream_rq_retry_overflow',
      'upstream_rq_retry_success',
    ] as const;
    const counts = names.map((name) => [name.slice(12), this.workers.clusterStat(this.snapshot, name)] as const);
    return Object.fromEntries(counts.filter(([, count]) => count > 0));
  }
}

describe('an attempt that has failed is tried again', () => {
  const FAILURES: readonly AttemptFailure[] = [
    'local connection failure',
    'remote connection failure',
    'connection timeout',
    'connection termination',
    'protocol error',
    'timeout',
    'overflow',
  ];
  const failing = (condition: RetryCondition, wasSent: boolean): AttemptFailure[] =>
    FAILURES.filter((failure) => {
      const { decisions } = new Bench({ policy: { conditions: [condition] } });
      return decisions.onFailure(failure, wasSent) === Decision.retry;
    });
  const anyReset = FAILURES.filter((failure) => failure !== 'overflow');
  const connecting = anyReset.filter(
    (failure) => failure.includes('connection') && failure !== 'connection termination',
  );

  for (const condition of CONDITIONS) {
    const isAny = ['5xx', 'gateway-error', 'reset'].includes(condition);
    const isUnsent = condition === 'reset-before-request';
    test(`for ${condition} after what concerns it`, () => {
      const other = condition === 'connect-failure' ? connecting : [];
      assert.deepEqual(failing(condition, true), isAny ? anyReset : other);
      assert.deepEqual(failing(condition, false), isAny || isUnsent ? anyReset : other);
    });
  }

  test('and counted', () => {
    const bench = new Bench();
    assert.equal(bench.decisions.onFailure('timeout', true), Decision.retry);
    assert.deepEqual(bench.counted, { retry: 1 });
    assert.equal(bench.places, 1);
  });
});

describe('retries of one request', () => {
  test('are as many as its terms allow', () => {
    const bench = new Bench();
    const decided = [1, 2, 3, 4].map(() => bench.decisions.onResponse(responseHead(503), false));
    assert.deepEqual(decided, [Decision.retry, Decision.retry, Decision.limit, Decision.limit]);
    assert.deepEqual(bench.counted, { retry: 2, retry_limit_exceeded: 2 });
    assert.equal(bench.places, 2);
  });

  test('may be none', () => {
    const bench = new Bench({ policy: { maxRetries: 0 } });
    assert.equal(bench.decisions.onResponse(responseHead(503), false), Decision.limit);
    assert.deepEqual(bench.counted, { retry_limit_exceeded: 1 });
  });

  test('need a place under the circuit breaker', () => {
    const bench = new Bench({ maxRetries: 1, policy: { maxRetries: 3 } });
    const decided = [1, 2, 3, 4].map(() => bench.decisions.onSlowness());
    assert.deepEqual(decided, [Decision.retry, Decision.overflow, Decision.overflow, Decision.limit]);
    assert.deepEqual(bench.counted, { retry: 1, retry_overflow: 2, retry_limit_exceeded: 1 });
    assert.deepEqual(bench.tallied, [
      'upstream_rq_retry',
      'upstream_rq_retry_overflow',
      'upstream_rq_retry_overflow',
      'upstream_rq_retry_limit_exceeded',
    ]);
    assert.equal(bench.places, 1);
  });

  test('are as many as the runtime lets happen, and give their places back', () => {
    const bench = new Bench({ random: [50, 49] });
    bench.context.runtime.replace(new Map([['upstream.use_retry', '50']]));
    assert.equal(bench.decisions.onResponse(responseHead(503), false), Decision.no);
    assert.equal(bench.places, 0);
    assert.deepEqual(bench.counted, {});
    assert.equal(bench.decisions.onResponse(responseHead(503), false), Decision.retry);
    assert.equal(bench.places, 1);
  });

  test('happen always where the runtime says nothing', () => {
    const bench = new Bench({ random: [99] });
    assert.equal(bench.decisions.onResponse(responseHead(503), false), Decision.retry);
  });

  test('have succeeded when the response of one passes', () => {
    const bench = new Bench();
    assert.equal(bench.decisions.onResponse(responseHead(200), false), Decision.no);
    assert.deepEqual(bench.counted, {});
    assert.equal(bench.decisions.onResponse(responseHead(200), true), Decision.no);
    assert.deepEqual(bench.counted, { retry_success: 1 });
    assert.deepEqual(bench.tallied, ['upstream_rq_retry_success']);
    assert.equal(bench.places, 0);
  });

  test('are made for slowness whatever the conditions are', () => {
    const bench = new Bench({ policy: { conditions: ['unavailable'] } });
    assert.equal(bench.decisions.onSlowness(), Decision.retry);
  });
});

describe('the wait of a retry', () => {
  const BACK_OFF = { baseMs: 100, maxMs: 1000 };
  const rateLimitedBackOff = { headers: [{ name: 'retry-after', format: 'seconds' }], maxMs: 60_000 } as const;

  test('is drawn from a range that grows with each one', () => {
    const bench = new Bench({ policy: { backOff: BACK_OFF }, random: [0, 399, 0, 399] });
    bench.decisions.onFailure('timeout', true);
    assert.equal(bench.decisions.nextDelayMs(), 99);
    bench.decisions.onFailure('timeout', true);
    assert.equal(bench.decisions.nextDelayMs(), 99);
    assert.deepEqual(bench.counted, { retry: 2, retry_backoff_exponential: 2 });
  });

  test('grows with those that were decided on, not with those that were not', () => {
    const bench = new Bench({ maxRetries: 1, policy: { backOff: BACK_OFF, maxRetries: 9 }, random: [0, 0, 399] });
    bench.decisions.onFailure('timeout', true);
    for (let more = 0; more < 5; more++) bench.decisions.onFailure('timeout', true);
    bench.cluster.breakerFor(ClusterPriority.default).releaseRetry();
    bench.decisions.onFailure('timeout', true);
    assert.equal(bench.decisions.nextDelayMs(), 399 % 300);
  });

  test('is by the runtime where the policy does not say', () => {
    const bench = new Bench({ random: [0, 39] });
    bench.context.runtime.replace(new Map([['upstream.base_retry_backoff_ms', '40']]));
    bench.decisions.onFailure('timeout', true);
    assert.equal(bench.decisions.nextDelayMs(), 39);
  });

  test('is what the response has asked for, and up to half of it more', () => {
    const random = [0, 2 ** 31];
    const bench = new Bench({ policy: { rateLimitedBackOff }, random });
    bench.decisions.onResponse(responseHead(503, 'retry-after: 4'), false);
    assert.equal(bench.decisions.nextDelayMs(), 5000);
    assert.deepEqual(bench.counted, { retry: 1, retry_backoff_ratelimited: 1 });
  });

  test('is not what a response before it has asked for', () => {
    for (const after of ['response', 'failure', 'slowness'] as const) {
      const bench = new Bench({ policy: { rateLimitedBackOff, backOff: BACK_OFF } });
      bench.decisions.onResponse(responseHead(503, 'retry-after: 4'), false);
      if (after === 'response') bench.decisions.onResponse(responseHead(503), false);
      else if (after === 'failure') bench.decisions.onFailure('timeout', true);
      else bench.decisions.onSlowness();
      assert.equal(bench.decisions.nextDelayMs(), 0);
      assert.deepEqual(bench.counted, { retry: 2, retry_backoff_exponential: 1 });
    }
  });

  test('is not what a response asks for where the policy does not want to hear it', () => {
    const bench = new Bench();
    bench.decisions.onResponse(responseHead(503, 'retry-after: 4'), false);
    assert.equal(bench.decisions.nextDelayMs(), 0);
  });

  test('is by the time of day where the response names one', () => {
    const headers = [{ name: 'x-reset', format: 'unix-timestamp' }] as const;
    const bench = new Bench({ policy: { rateLimitedBackOff: { headers, maxMs: 60_000 } } });
    const { clock } = bench.workers;
    clock.turn(1000 - (clock.wallMs() % 1000));
    bench.decisions.onResponse(responseHead(503, `x-reset: ${clock.wallMs() / 1000 + 7}`), false);
    assert.equal(bench.decisions.nextDelayMs(), 7000);
  });
});
