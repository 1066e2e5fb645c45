// How long tries may take and retries wait, what goes on beside a slow try, and what the heads of tries say, by bytes on
// the wire and a clock that the test turns.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { FormatOperator, HeaderAddition } from '../../src/snapshot/index.ts';
import { retrySettings } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { assertBalanced, GET, type HttpBench, httpBench, OK } from '../support/http-bench.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { arrived, silent } from '../support/silent-upstream.ts';
import { type WireClient, WireUpstream } from '../support/wire.ts';

const UNAVAILABLE = 'HTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n';
/** Longer than the timer wheel's grain. */
const GRAIN_MS = 20;

async function over({ proxy }: HttpBench): Promise<void> {
  await eventually(() => proxy.httpStat('downstream_rq_active') === 0, 'the request is over');
}

function field(head: string, name: string): string | undefined {
  return new RegExp(`^${name}: (.*)\\r$`, 'im').exec(head)?.[1];
}

describe('the time of a try', () => {
  test('ends it, and the next one answers', async (t) => {
    const [upstream, clock] = [await silent(), new ManualClock()];
    const route = { retry: retrySettings({ perTryTimeoutMs: 100 }) };
    const bench = await httpBench(t, { upstream, clock, route });
    const { client, proxy } = bench;
    const wire = client().write(GET);
    await arrived(upstream.requests, 1);
    clock.turn(99);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_per_try_timeout'), 0);
    clock.turn(GRAIN_MS);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_per_try_timeout'), 1);
    clock.turn(GRAIN_MS);
    (await arrived(upstream.requests, 2)).socket.write(OK);
    assert.equal((await wire.response()).status, 200);
    assert.equal(proxy.hostStat('web', 0, 'rq_timeout'), 1);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_retry_success'), 1);
    assertBalanced(proxy);
  });

  test('answers with 504 when there is no further try', async (t) => {
    const [upstream, clock] = [await silent(), new ManualClock()];
    const route = { retry: retrySettings({ perTryTimeoutMs: 100, maxRetries: 0 }) };
    const { client, proxy } = await httpBench(t, { upstream, clock, route });
    const wire = client().write(GET);
    await arrived(upstream.requests, 1);
    clock.turn(100 + GRAIN_MS);
    const reply = await wire.response();
    assert.deepEqual([reply.status, reply.body], [504, 'upstream request timeout']);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_retry_limit_exceeded'), 1);
    assert.equal(proxy.dynamicStat('cluster.web.', 'upstream_rq_504'), 1);
    assert.equal(proxy.dynamicStat('cluster.web.', 'upstream_rq_5xx'), 1);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_completed'), 1);
    assert.equal(proxy.hostStat('web', 0, 'rq_error'), 1);
    assertBalanced(proxy);
  });

  test('does not cut a response that has begun', async (t) => {
    const [upstream, clock] = [await silent(), new ManualClock()];
    const route = { retry: retrySettings({ perTryTimeoutMs: 100 }) };
    const { client, proxy } = await httpBench(t, { upstream, clock, route });
    const wire = client().write(GET);
    const { socket } = await arrived(upstream.requests, 1);
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nha');
    await wire.until('ha');
    clock.turn(1000);
    socket.write('lf');
    await wire.until('lf');
    assert.equal(proxy.clusterStat('web', 'upstream_rq_per_try_timeout'), 0);
    assertBalanced(proxy);
  });

  test('does not count when the whole request has no more of it', async (t) => {
    const [upstream, clock] = [await silent(), new ManualClock()];
    const route = { retry: retrySettings({ perTryTimeoutMs: 100 }) };
    const { client, proxy } = await httpBench(t, { upstream, clock, timeoutMs: 100, route });
    const wire = client().write(GET);
    await arrived(upstream.requests, 1);
    clock.turn(100 + GRAIN_MS);
    assert.equal((await wire.response()).status, 504);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_per_try_timeout'), 0);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_timeout'), 1);
    assertBalanced(proxy);
  });

  test('without progress ends a try, also one whose response has begun', async (t) => {
    const [upstream, clock] = [await silent(), new ManualClock()];
    const route = { retry: retrySettings({ perTryIdleTimeoutMs: 100 }) };
    const bench = await httpBench(t, { upstream, clock, route });
    const wire = bench.client().write(GET);
    await arrived(upstream.requests, 1);
    clock.turn(100 + GRAIN_MS);
    clock.turn(GRAIN_MS);
    const { socket } = await arrived(upstream.requests, 2);
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nha');
    await wire.until('ha');
    clock.turn(90);
    socket.write('lf');
    await wire.until('lf');
    clock.turn(90);
    assert.equal(bench.proxy.clusterStat('web', 'upstream_rq_per_try_idle_timeout'), 1);
    clock.turn(GRAIN_MS);
    assert.equal(bench.proxy.clusterStat('web', 'upstream_rq_per_try_idle_timeout'), 2);
    assert.equal(await wire.rest(), '');
    await over(bench);
    assertBalanced(bench.proxy);
  });
});

describe('the time of a route', () => {
  test('is counted as the 504 that the client gets', async (t) => {
    const [upstream, clock] = [await silent(), new ManualClock()];
    const { client, proxy } = await httpBench(t, { upstream, clock, timeoutMs: 100 });
    const wire = client().write(GET);
    await arrived(upstream.requests, 1);
    clock.turn(100 + GRAIN_MS);
    assert.equal((await wire.response()).status, 504);
    assert.equal(proxy.dynamicStat('cluster.web.', 'upstream_rq_504'), 1);
    assert.equal(proxy.dynamicStat('cluster.web.', 'upstream_rq_5xx'), 1);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_completed'), 1);
    assertBalanced(proxy);
  });

  test('also ends a wait before a retry', async (t) => {
    const [upstream, clock] = [await silent(), new ManualClock()];
    const retry = retrySettings({ backOff: { baseMs: 1000, maxMs: 1000 } });
    const { client, proxy } = await httpBench(t, {
      upstream,
      clock,
      timeoutMs: 100,
      route: { retry },
      random: { u32: () => 999 },
    });
    const wire = client().write(GET);
    (await arrived(upstream.requests, 1)).socket.write(UNAVAILABLE);
    await eventually(() => proxy.clusterStat('web', 'upstream_rq_retry') === 1, 'a retry waits');
    clock.turn(100 + GRAIN_MS);
    assert.equal((await wire.response()).status, 504);
    clock.turn(2000);
    assert.equal(upstream.requests.length, 1);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_timeout'), 0);
    assertBalanced(proxy);
  });
});

describe('the wait before a retry', () => {
  test('is drawn from the range of its policy', async (t) => {
    const [upstream, clock] = [await silent(), new ManualClock()];
    const retry = retrySettings({ backOff: { baseMs: 100, maxMs: 250 }, maxRetries: 2 });
    const { client, proxy } = await httpBench(t, { upstream, clock, route: { retry }, random: { u32: () => 299 } });
    const wire = client().write(GET);
    (await arrived(upstream.requests, 1)).socket.write(UNAVAILABLE);
    await eventually(() => proxy.clusterStat('web', 'upstream_rq_retry') === 1, 'the first retry waits');
    clock.turn(98);
    assert.equal(proxy.hostStat('web', 0, 'rq_active'), 0);
    clock.turn(GRAIN_MS);
    (await arrived(upstream.requests, 2)).socket.write(UNAVAILABLE);
    await eventually(() => proxy.clusterStat('web', 'upstream_rq_retry') === 2, 'the second retry waits');
    clock.turn(249);
    assert.equal(proxy.hostStat('web', 0, 'rq_active'), 0);
    clock.turn(GRAIN_MS);
    (await arrived(upstream.requests, 3)).socket.write(OK);
    assert.equal((await wire.response()).status, 200);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_retry_backoff_exponential'), 2);
    assertBalanced(proxy);
  });

  test('is as long as a response asks for, once', async (t) => {
    const [upstream, clock] = [await silent(), new ManualClock()];
    const retry = retrySettings({
      rateLimitedBackOff: { headers: [{ name: 'retry-after', format: 'seconds' }], maxMs: 10_000 },
      maxRetries: 3,
    });
    const { client, proxy } = await httpBench(t, { upstream, clock, timeoutMs: 0, route: { retry } });
    const wire = client().write(GET);
    (await arrived(upstream.requests, 1)).socket.write('HTTP/1.1 503 X\r\nretry-after: 2\r\ncontent-length: 0\r\n\r\n');
    await eventually(() => proxy.clusterStat('web', 'upstream_rq_retry') === 1, 'the first retry waits');
    clock.turn(1999);
    assert.equal(proxy.hostStat('web', 0, 'rq_active'), 0);
    clock.turn(GRAIN_MS);
    // More than is obeyed.
    (await arrived(upstream.requests, 2)).socket.write(
      'HTTP/1.1 503 X\r\nretry-after: 11\r\ncontent-length: 0\r\n\r\n',
    );
    await eventually(() => proxy.clusterStat('web', 'upstream_rq_retry') === 2, 'the second retry waits');
    clock.turn(GRAIN_MS);
    (await arrived(upstream.requests, 3)).socket.write(OK);
    assert.equal((await wire.response()).status, 200);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_retry_backoff_ratelimited'), 1);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_retry_backoff_exponential'), 1);
    assertBalanced(proxy);
  });

  for (const end of ['close', 'reset'] as const) {
    test(`is over when the client leaves by ${end}`, async (t) => {
      const [upstream, clock] = [await silent(), new ManualClock()];
      const retry = retrySettings({ backOff: { baseMs: 1000, maxMs: 1000 } });
      const bench = await httpBench(t, { upstream, clock, route: { retry }, random: { u32: () => 999 } });
      const wire = bench.client().write(GET);
      (await arrived(upstream.requests, 1)).socket.write(UNAVAILABLE);
      await eventually(() => bench.proxy.clusterStat('web', 'upstream_rq_retry') === 1, 'a retry waits');
      assert.equal(bench.proxy.breakerCount('web', 12), 1);
      if (end === 'close') wire.close();
      else wire.socket.resetAndDestroy();
      await over(bench);
      clock.turn(2000);
      assert.equal(upstream.requests.length, 1);
      assertBalanced(bench.proxy);
    });
  }

  test('ends with 507 when more of a body comes than is kept', async (t) => {
    const [upstream, clock] = [await silent(), new ManualClock()];
    const retry = retrySettings({ backOff: { baseMs: 1000, maxMs: 1000 } });
    const bench = await httpBench(t, {
      upstream,
      clock,
      route: { retry, replayLimitBytes: 10 },
      random: { u32: () => 999 },
    });
    const wire = bench.client().write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n123456789');
    (await arrived(upstream.requests, 1)).socket.resetAndDestroy();
    await eventually(() => bench.proxy.clusterStat('web', 'upstream_rq_retry') === 1, 'a retry waits');
    wire.write('more than one');
    const reply = await wire.response();
    assert.deepEqual([reply.status, reply.body], [507, 'exceeded request buffer limit while retrying upstream']);
    assert.equal(bench.proxy.clusterStat('web', 'retry_or_shadow_abandoned'), 1);
    clock.turn(2000);
    await over(bench);
    assert.equal(upstream.requests.length, 1);
    assertBalanced(bench.proxy);
  });
});

describe('a slow try beside its retry', () => {
  const route = { retry: retrySettings({ perTryTimeoutMs: 100 }), hedgesOnPerTryTimeout: true };

  async function hedged(t: Parameters<typeof httpBench>[0]) {
    const [upstream, clock] = [await silent(), new ManualClock()];
    const bench = await httpBench(t, { upstream, clock, route });
    const wire = bench.client().write(GET);
    const first = await arrived(upstream.requests, 1);
    clock.turn(100 + GRAIN_MS);
    clock.turn(GRAIN_MS);
    const second = await arrived(upstream.requests, 2);
    return { bench, upstream, clock, wire, first, second };
  }

  test('wins when it answers first, and the retry is reset', async (t) => {
    const { bench, wire, first, second } = await hedged(t);
    assert.equal(bench.proxy.hostStat('web', 0, 'rq_active'), 2);
    const closed = new Promise((resolve) => second.socket.once('close', resolve));
    first.socket.write(OK);
    assert.equal((await wire.response()).status, 200);
    await closed;
    assert.equal(bench.proxy.clusterStat('web', 'upstream_rq_per_try_timeout'), 0);
    assertBalanced(bench.proxy);
  });

  test('is reset when the retry answers first', async (t) => {
    const { bench, wire, first, second } = await hedged(t);
    const closed = new Promise((resolve) => first.socket.once('close', resolve));
    second.socket.write(OK);
    assert.equal((await wire.response()).status, 200);
    await closed;
    assert.equal(bench.proxy.clusterStat('web', 'upstream_rq_retry_success'), 1);
    assertBalanced(bench.proxy);
  });

  test('leaves the answer to the other when its own is bad, or when it fails', async (t) => {
    for (const isReset of [true, false]) {
      const { bench, wire, first, second } = await hedged(t);
      if (isReset) first.socket.resetAndDestroy();
      else first.socket.write(UNAVAILABLE);
      await eventually(() => bench.proxy.hostStat('web', 0, 'rq_active') === 1, 'the first is gone');
      second.socket.write(OK);
      assert.equal((await wire.response()).status, 200);
      assertBalanced(bench.proxy);
    }
  });

  test('lets the last bad answer pass when all are bad', async (t) => {
    const { bench, wire, first, second } = await hedged(t);
    second.socket.write('HTTP/1.1 500 X\r\ncontent-length: 0\r\n\r\n');
    await eventually(() => bench.proxy.hostStat('web', 0, 'rq_active') === 1, 'the second is gone');
    first.socket.write(UNAVAILABLE);
    assert.equal((await wire.response()).status, 503);
    assertBalanced(bench.proxy);
  });

  test('ends with it when the client leaves, or the time of the route does', async (t) => {
    for (const isTimeout of [true, false]) {
      const { bench, wire, clock } = await hedged(t);
      if (isTimeout) {
        clock.turn(15_000);
        assert.equal((await wire.response()).status, 504);
        assert.equal(bench.proxy.clusterStat('web', 'upstream_rq_timeout'), 2);
      } else {
        wire.close();
      }
      await over(bench);
      assertBalanced(bench.proxy);
    }
  });
});

describe('what is known of a request after its tries', () => {
  function told(name: string, operator: FormatOperator): HeaderAddition {
    const value = [{ operator, args: [], maxLength: 0 }];
    return { name, value, action: 'append', keepsEmptyValue: true };
  }
  const responseEdits = [
    {
      remove: [],
      add: [
        told('x-port', 'UPSTREAM_REMOTE_PORT'),
        told('x-flags', 'RESPONSE_FLAGS'),
        told('x-attempts', 'UPSTREAM_REQUEST_ATTEMPT_COUNT'),
      ],
    },
  ];

  async function facts(wire: WireClient): Promise<readonly (string | undefined)[]> {
    const { head } = await wire.response();
    return ['x-port', 'x-flags', 'x-attempts'].map((name) => field(head, name));
  }

  test('is the host of the try that has answered, also when a later one went elsewhere', async (t) => {
    const [slow, other, clock] = [await silent(), await silent(), new ManualClock()];
    const route = { retry: retrySettings({ perTryTimeoutMs: 100 }), hedgesOnPerTryTimeout: true };
    const { client, proxy } = await httpBench(t, {
      upstreams: [slow, other],
      clock,
      route,
      routeFields: { responseEdits },
    });
    const wire = client().write(GET);
    await eventually(() => slow.requests.length + other.requests.length === 1, 'the first try has come');
    const first = slow.requests.length === 1 ? slow : other;
    clock.turn(100 + GRAIN_MS);
    clock.turn(GRAIN_MS);
    await eventually(() => slow.requests.length === 1 && other.requests.length === 1, 'the second try has come');
    first.requests[0]!.socket.write(OK);
    assert.deepEqual(await facts(wire), [String(first.port), '-', '2']);
    assertBalanced(proxy);
  });

  test('is that there would have been a retry more, or no place for one', async (t) => {
    for (const { retry, maxRetries, expected } of [
      { retry: retrySettings({ maxRetries: 2 }), maxRetries: 3, expected: ['URX', '3'] },
      { retry: retrySettings(), maxRetries: 0, expected: ['UO', '1'] },
    ]) {
      const upstream = await WireUpstream.answering(UNAVAILABLE);
      const limits = { maxConnections: 1024, maxPendingRequests: 1024, maxRequests: 1024, maxRetries };
      const { client } = await httpBench(t, {
        upstream,
        route: { retry },
        routeFields: { responseEdits },
        cluster: { circuitBreakers: { default: limits, high: limits } },
      });
      assert.deepEqual((await facts(client().write(GET))).slice(1), expected);
    }
  });
});

describe('the head of a try', () => {
  test('counts the attempts, both ways, and says how much time is left', async (t) => {
    const [upstream, clock] = [await silent(), new ManualClock()];
    const { client } = await httpBench(t, {
      upstream,
      clock,
      timeoutMs: 1000,
      route: { retry: retrySettings({ perTryTimeoutMs: 600 }), tellsTimeoutRetry: true },
      routeFields: { countsAttemptsInRequest: true, countsAttemptsInResponse: true },
    });
    const wire = client().write(GET);
    const first = (await arrived(upstream.requests, 1)).head;
    assert.deepEqual(
      ['x-proxy-attempt-count', 'x-proxy-expected-rq-timeout-ms', 'x-proxy-is-timeout-retry'].map((name) =>
        field(first, name),
      ),
      ['1', '600', undefined],
    );
    clock.turn(604);
    clock.turn(GRAIN_MS);
    const second = await arrived(upstream.requests, 2);
    assert.equal(field(second.head, 'x-proxy-attempt-count'), '2');
    assert.equal(field(second.head, 'x-proxy-is-timeout-retry'), 'true');
    const leftMs = Number(field(second.head, 'x-proxy-expected-rq-timeout-ms'));
    assert.ok(leftMs > 0 && leftMs <= 396, String(leftMs));
    second.socket.write(OK);
    assert.equal(field((await wire.response()).head, 'x-proxy-attempt-count'), '2');
  });

  test('says that the try before it did not run out of time', async (t) => {
    const upstream = await silent();
    const { client } = await httpBench(t, { upstream, route: { retry: retrySettings(), tellsTimeoutRetry: true } });
    const wire = client().write(GET);
    (await arrived(upstream.requests, 1)).socket.write(UNAVAILABLE);
    const second = await arrived(upstream.requests, 2);
    assert.equal(field(second.head, 'x-proxy-is-timeout-retry'), 'false');
    second.socket.write(OK);
    assert.equal((await wire.response()).status, 200);
  });
});

describe('the headers of a request from inside', () => {
  const inside = { useRemoteAddress: true };
  const cases = [
    { name: 'retry-on', lines: ['x-proxy-retry-on: gateway-error, 5xx'], answer: UNAVAILABLE, tries: 2 },
    {
      name: 'retry-on with a number',
      lines: ['x-envoy-retry-on: 5xx', 'x-envoy-max-retries: 3'],
      answer: UNAVAILABLE,
      tries: 4,
    },
    {
      name: 'retry-grpc-on',
      lines: ['x-proxy-retry-grpc-on: unavailable'],
      answer: 'HTTP/1.1 200 OK\r\ngrpc-status: 14\r\ncontent-length: 0\r\n\r\n',
      tries: 2,
    },
    {
      name: 'retriable-status-codes',
      lines: ['x-proxy-retry-on: retriable-status-codes', 'x-proxy-retriable-status-codes: 418, 503'],
      answer: UNAVAILABLE,
      tries: 2,
    },
    {
      name: 'retriable-header-names',
      lines: ['x-proxy-retry-on: retriable-headers', 'x-proxy-retriable-header-names: x-a, X-Again'],
      answer: 'HTTP/1.1 200 OK\r\nx-again: 1\r\ncontent-length: 0\r\n\r\n',
      tries: 2,
    },
    { name: 'a number alone', lines: ['x-proxy-max-retries: 3'], answer: UNAVAILABLE, tries: 1 },
    { name: 'no known condition', lines: ['x-proxy-retry-on: whatever'], answer: UNAVAILABLE, tries: 1 },
  ];
  for (const { name, lines, answer, tries } of cases) {
    test(`ask for retries: ${name}`, async (t) => {
      const { heads, ...upstream } = await answering(answer);
      const { client } = await httpBench(t, { upstream: upstream.upstream, settings: inside });
      await client()
        .write(`GET / HTTP/1.1\r\nhost: x\r\n${lines.join('\r\n')}\r\n\r\n`)
        .response();
      assert.equal(heads.length, tries);
      for (const head of heads) assert.doesNotMatch(head, /x-(proxy|envoy)-(retr|max)/);
    });
  }

  test('are not obeyed from outside', async (t) => {
    const { heads, upstream } = await answering(UNAVAILABLE);
    const { client } = await httpBench(t, { upstream });
    await client().write('GET / HTTP/1.1\r\nhost: x\r\nx-proxy-retry-on: 5xx\r\n\r\n').response();
    assert.equal(heads.length, 1);
  });

  test('change a policy, up to no retry at all', async (t) => {
    const { heads, upstream } = await answering(UNAVAILABLE);
    const { client } = await httpBench(t, { upstream, settings: inside, route: { retry: retrySettings() } });
    await client().write('GET / HTTP/1.1\r\nhost: x\r\nx-proxy-max-retries: 0\r\n\r\n').response();
    assert.equal(heads.length, 1);
  });

  async function answering(text: string) {
    const upstream = await WireUpstream.answering(text);
    return { upstream, heads: upstream.heads };
  }
});

describe('hosts that a retry leaves', () => {
  test('one bad host of three is hidden from clients', async (t) => {
    const upstreams = [
      await WireUpstream.answering(OK),
      await WireUpstream.start((socket) => socket.on('data', () => socket.resetAndDestroy())),
      await WireUpstream.answering(OK),
    ];
    const retry = retrySettings({ hostPredicates: [{ kind: 'previous-hosts' }], maxFurtherDraws: 5 });
    const { client, proxy } = await httpBench(t, { upstreams, route: { retry } });
    const wire = client();
    for (let i = 0; i < 30; i++) {
      wire.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nbody');
      assert.equal((await wire.response()).status, 200);
    }
    assert.equal(proxy.clusterStat('web', 'upstream_rq_retry'), proxy.hostStat('web', 1, 'rq_total'));
    assert.ok(proxy.clusterStat('web', 'upstream_rq_retry') >= 5);
    assert.equal(proxy.dynamicStat('cluster.web.', 'upstream_rq_200'), 30);
    assertBalanced(proxy);
  });
});
