// What a request may be tried again for: by the policy of its route, and by its own headers where those count.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { compileRetryPolicy, RetryOn, type RetryPolicy } from '../../../../src/data-plane/route/retry-policy.ts';
import { namesConditions, retryTerms } from '../../../../src/data-plane/router/retry-terms.ts';
import type { RetryCondition } from '../../../../src/snapshot/index.ts';
import { requestHead, responseHead, routeRequest } from '../../../support/heads.ts';
import { retrySettings } from '../../../support/routes.ts';

const POLICY = compileRetryPolicy(retrySettings({ conditions: ['reset'], maxRetries: 4, retriableStatusCodes: [404] }));

function terms(policy: RetryPolicy | null, isInternal: boolean, ...lines: readonly string[]) {
  return retryTerms(routeRequest(requestHead('GET /', ...lines), isInternal), policy);
}

/** Of a request from inside, on a route without a policy. */
function ownConditions(...lines: readonly string[]): number {
  return terms(null, true, ...lines)?.conditions ?? 0;
}

describe('a request on a route with a policy', () => {
  test('may be tried again as the policy says', () => {
    assert.equal(terms(POLICY, false), POLICY);
    assert.equal(terms(POLICY, true), POLICY);
  });

  test('may not where the policy has no condition, or there is none', () => {
    assert.equal(terms(compileRetryPolicy(retrySettings({ conditions: [] })), false), null);
    assert.equal(terms(null, false), null);
    assert.equal(terms(null, true), null);
  });

  test('may only when one of the matchers for requests holds', () => {
    const present = (name: string) =>
      ({ name, test: { kind: 'present', isPresent: true }, isInverted: false, treatMissingAsEmpty: false }) as const;
    const retriableRequestHeaders = [present('x-a'), present('x-b')];
    const policy = compileRetryPolicy(retrySettings({ retriableRequestHeaders }));
    assert.equal(terms(policy, false), null);
    assert.equal(terms(policy, false, 'x-b: 1'), policy);
    assert.equal(terms(policy, true, 'x-proxy-retry-on: reset'), null);
  });
});

describe('the headers of a request', () => {
  test('count from inside only', () => {
    assert.equal(terms(null, false, 'x-proxy-retry-on: 5xx'), null);
    assert.equal(terms(POLICY, false, 'x-proxy-retry-on: 5xx', 'x-proxy-max-retries: 9'), POLICY);
  });

  const http = {
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
  } as const satisfies Record<string, RetryCondition>;
  const grpc = {
    cancelled: 'cancelled',
    'deadline-exceeded': 'deadline-exceeded',
    internal: 'internal',
    'resource-exhausted': 'resource-exhausted',
    unavailable: 'unavailable',
  } as const satisfies Record<string, RetryCondition>;
  for (const [kind, header, names, others] of [
    ['http', 'x-proxy-retry-on', http, grpc],
    ['grpc', 'x-proxy-retry-grpc-on', grpc, http],
  ] as const) {
    for (const [word, condition] of Object.entries(names)) {
      test(`name ${word} in ${header} alone`, () => {
        assert.equal(ownConditions(`${header}: ${word}`), RetryOn[condition]);
        assert.ok(namesConditions(word, kind));
      });
    }
    for (const word of Object.keys(others)) {
      test(`say nothing by ${word} in ${header}`, () => {
        assert.equal(terms(null, true, `${header}: ${word}`), null);
        assert.ok(!namesConditions(word, kind));
      });
    }
  }

  test('name several conditions, and others are ignored', () => {
    assert.equal(
      ownConditions('x-proxy-retry-on: ,  reset ,nonsense,5xx,', 'x-proxy-retry-grpc-on: unavailable'),
      RetryOn.reset | RetryOn['5xx'] | RetryOn.unavailable,
    );
    assert.ok(namesConditions(' reset ,,5xx ', 'http'));
    assert.ok(!namesConditions('reset,nonsense,5xx', 'http'));
  });

  test('add to the conditions of the policy', () => {
    assert.equal(terms(POLICY, true, 'x-proxy-retry-on: 5xx')!.conditions, RetryOn.reset | RetryOn['5xx']);
  });

  test('say otherwise how often, if they say it well', () => {
    const most = (text: string): number => terms(POLICY, true, `x-proxy-max-retries: ${text}`)!.maxRetries;
    assert.deepEqual(['7', ' 0 ', '123456789'].map(most), [7, 0, 123_456_789]);
    assert.deepEqual(['1234567890', '', 'x7', '7x', '-7'].map(most), [4, 4, 4, 4, 4]);
    assert.equal(terms(null, true, 'x-proxy-retry-on: 5xx')!.maxRetries, 1);
  });

  test('add status codes', () => {
    const codes = (text: string) => terms(POLICY, true, `x-proxy-retriable-status-codes: ${text}`)!.statusCodes;
    assert.deepEqual(codes('418, 503 ,'), [404, 418, 503]);
    assert.deepEqual(codes('41, 4181, x418, 418x, abc'), [404]);
    assert.deepEqual(terms(POLICY, true, 'x-proxy-retry-on: 5xx')!.statusCodes, [404]);
  });

  test('add names of response headers, any case', () => {
    const { responseTests } = terms(POLICY, true, 'x-proxy-retriable-header-names: X-Again, x-later')!;
    const holds = (...lines: readonly string[]): boolean[] =>
      responseTests.map((test) => test(responseHead(200, ...lines)));
    assert.deepEqual(holds('x-other: 1'), [false, false]);
    assert.deepEqual(holds('X-AGAIN: '), [true, false]);
    assert.deepEqual(holds('a: 1', 'x-later: 1'), [false, true]);
    assert.deepEqual(holds(), [false, false]);
    assert.deepEqual(terms(POLICY, true, 'x-proxy-retry-on: 5xx')!.responseTests, []);
  });
});
