import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ProxyHeaders } from '../../../../src/data-plane/http/proxy-headers.ts';
import { RetryHead, type RetryHeadOptions } from '../../../../src/data-plane/router/retry-head.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const HEAD = 'GET / HTTP/1.1\r\nhost: h\r\nx-proxy-expected-rq-timeout-ms: 1000\r\na: 1\r\n\r\n';

interface Retried extends Partial<RetryHeadOptions> {
  /** Since the request had come in full; negative while it has not. */
  readonly elapsedMs: number;
  readonly followsTimeout?: boolean;
  readonly head?: string;
}

function retried({ elapsedMs, followsTimeout = false, head = HEAD, ...options }: Retried): string {
  const clock = new ManualClock();
  const requestCompleteMs = clock.monotonicMs();
  clock.turn(Math.max(0, elapsedMs));
  const plan = { timeoutMs: 1000, expectedMs: 1000, grpcExpectedMs: 0, tellsTimeoutRetry: false, ...options };
  const times = { isRequestComplete: elapsedMs >= 0, requestCompleteMs };
  return new RetryHead(new ProxyHeaders(), clock, plan).apply(head, times, followsTimeout);
}

function expected(text: string): string | undefined {
  return /^x-proxy-expected-rq-timeout-ms: (.*)\r$/m.exec(text)?.[1];
}

describe('the head of a retry', () => {
  for (const [elapsedMs, left] of [
    [0, '1000'],
    [1, '999'],
    [300.4, '699'],
    [999, '1'],
    [1000, '1'],
    [5000, '1'],
    [-1, '1000'],
  ] as const) {
    test(`says that ${left} ms are left after ${elapsedMs} ms`, () => {
      assert.equal(retried({ elapsedMs }), HEAD.replace(': 1000\r\n', `: ${left}\r\n`));
    });
  }

  test('says what is left of the whole time where a try may have less', () => {
    const first = HEAD.replace('1000', '300');
    assert.equal(expected(retried({ elapsedMs: 100, expectedMs: 300, head: first })), '300');
    assert.equal(expected(retried({ elapsedMs: 700, expectedMs: 300, head: first })), '300');
    assert.equal(expected(retried({ elapsedMs: 800, expectedMs: 300, head: first })), '200');
  });

  test('says what is left in the words of gRPC, too', () => {
    const head = HEAD.replace('a: 1', 'grpc-timeout: 400m');
    const said = (options: Retried): string => /^grpc-timeout: (.*)\r$/m.exec(retried({ head, ...options }))![1]!;
    assert.equal(said({ elapsedMs: 500, grpcExpectedMs: 400 }), '400m');
    assert.equal(said({ elapsedMs: 900, grpcExpectedMs: 400 }), '100m');
    assert.equal(said({ elapsedMs: 900, grpcExpectedMs: 400, expectedMs: 0 }), '100m');
    // The caller's own, or another's.
    assert.equal(said({ elapsedMs: 900 }), '400m');
    assert.equal(said({ elapsedMs: 900, grpcExpectedMs: 300 }), '400m');
    const long = { timeoutMs: 2e8, elapsedMs: 1e8, head: head.replace('400m', '200000S'), grpcExpectedMs: 2e8 };
    assert.equal(said(long), '100000S');
  });

  test('is the first one where that says nothing of time, or any time will do', () => {
    assert.equal(retried({ elapsedMs: 500, expectedMs: 0 }), HEAD);
    assert.equal(retried({ elapsedMs: 500, timeoutMs: 0 }), HEAD);
    // Others may have written a field of the name.
    const other = HEAD.replace('1000', '20');
    assert.equal(retried({ elapsedMs: 500, head: other }), other);
    const head = `GET / HTTP/1.1\r\nhost: h\r\nx: x-proxy-expected-rq-timeout-ms: 1000\r\n\r\n`;
    assert.equal(retried({ elapsedMs: 500, head }), head);
  });

  for (const followsTimeout of [true, false]) {
    test(`tells of a timeout where the route wants it: ${followsTimeout}`, () => {
      const text = retried({ elapsedMs: 0, tellsTimeoutRetry: true, followsTimeout });
      assert.equal(text, HEAD.replace(/\r\n$/, `x-proxy-is-timeout-retry: ${followsTimeout}\r\n\r\n`));
      assert.equal(retried({ elapsedMs: 0, followsTimeout }), HEAD);
    });
  }
});
