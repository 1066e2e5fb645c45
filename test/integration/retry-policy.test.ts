// Requests that a retry policy has tried again, by bytes on the wire: for which failures, how often, with which body and
// head, and what the books say of it.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { RetryCondition } from '../../src/snapshot/index.ts';
import { retrySettings } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { assertBalanced, GET, type HttpBenchOptions, httpBench, OK, RESET_BODY } from '../support/http-bench.ts';
import { unusedPort, WireUpstream } from '../support/wire.ts';

/** Answers the requests of all connections in order, and the rest like the last; keeps their heads. */
async function answeringInTurn(...answers: readonly string[]): Promise<WireUpstream & { readonly heads: string[] }> {
  const heads: string[] = [];
  const upstream = await WireUpstream.start((socket) => {
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      for (let end = text.indexOf('\r\n\r\n'); end !== -1; end = text.indexOf('\r\n\r\n')) {
        const answer = answers[Math.min(heads.length, answers.length - 1)]!;
        heads.push(text.slice(0, end + 4));
        text = text.slice(end + 4);
        if (answer === RESET) socket.resetAndDestroy();
        else if (answer === HALF_A_HEAD) socket.end(answer);
        else socket.write(answer);
      }
    });
  });
  return Object.assign(upstream, { heads });
}

const RESET = 'reset';
const HALF_A_HEAD = 'HTTP/1.1 200 OK\r\ncontent-';
const NO_HTTP = 'nonsense\r\n\r\n';

function answer(status: number, body = '', ...fields: readonly string[]): string {
  const lines = [`HTTP/1.1 ${status} X`, `content-length: ${body.length}`, ...fields];
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}

function retrying(conditions: readonly RetryCondition[], overrides: Parameters<typeof retrySettings>[0] = {}) {
  return { retry: retrySettings({ conditions, ...overrides }) };
}

describe('a retry policy', () => {
  interface Case {
    readonly on: RetryCondition;
    readonly first: string;
    readonly more?: Parameters<typeof retrySettings>[0];
  }
  const cases: readonly Case[] = [
    { on: '5xx', first: answer(500) },
    { on: '5xx', first: answer(599) },
    { on: '5xx', first: RESET },
    { on: 'gateway-error', first: answer(502) },
    { on: 'gateway-error', first: answer(504) },
    { on: 'gateway-error', first: RESET },
    { on: 'reset', first: RESET },
    { on: 'reset', first: HALF_A_HEAD },
    { on: 'reset', first: NO_HTTP },
    { on: 'retriable-4xx', first: answer(409) },
    { on: 'retriable-status-codes', first: answer(418), more: { retriableStatusCodes: [404, 418] } },
    {
      on: 'retriable-headers',
      first: answer(200, '', 'x-again: yes'),
      more: {
        retriableHeaders: [
          {
            name: 'x-again',
            test: { kind: 'exact', value: 'yes', ignoresCase: false },
            isInverted: false,
            treatMissingAsEmpty: false,
          },
        ],
      },
    },
    { on: 'ratelimited', first: answer(429, '', 'x-envoy-ratelimited: true') },
    { on: 'cancelled', first: answer(200, '', 'grpc-status: 1') },
    { on: 'deadline-exceeded', first: answer(200, '', 'grpc-status: 4') },
    { on: 'resource-exhausted', first: answer(200, '', 'grpc-status: 8') },
    { on: 'internal', first: answer(200, '', 'grpc-status: 13') },
    { on: 'unavailable', first: answer(200, '', 'grpc-status: 14') },
  ];
  for (const { on, first, more } of cases) {
    test(`with ${on} hides ${JSON.stringify(first)}`, async (t) => {
      const upstream = await answeringInTurn(first, OK);
      const { client, proxy } = await httpBench(t, { upstream, route: retrying([on], more) });
      const reply = await client().write(GET).response();
      assert.deepEqual([reply.status, reply.body], [200, 'ok']);
      assert.equal(upstream.heads.length, 2);
      assert.equal(proxy.clusterStat('web', 'upstream_rq_retry'), 1);
      assert.equal(proxy.clusterStat('web', 'upstream_rq_retry_success'), 1);
      assert.equal(proxy.clusterStat('web', 'upstream_rq_retry_backoff_exponential'), 1);
      assert.equal(proxy.clusterStat('web', 'upstream_rq_completed'), 1);
      assert.equal(proxy.hostStat('web', 0, 'rq_error'), 1);
      assert.equal(proxy.hostStat('web', 0, 'rq_success'), 1);
      assertBalanced(proxy);
    });
  }

  const passing: readonly Case[] = [
    { on: '5xx', first: answer(499) },
    { on: 'gateway-error', first: answer(500) },
    { on: 'gateway-error', first: answer(501) },
    { on: 'gateway-error', first: answer(505) },
    { on: 'retriable-4xx', first: answer(408) },
    { on: 'reset', first: answer(503) },
    { on: 'connect-failure', first: answer(503) },
    { on: 'retriable-status-codes', first: answer(503) },
    { on: 'retriable-headers', first: answer(503, '', 'x-again: yes') },
    { on: '5xx', first: answer(503, '', 'x-envoy-ratelimited: true') },
    { on: '5xx', first: answer(503, '', 'x-proxy-overloaded: true') },
    { on: 'unavailable', first: answer(200, '', 'grpc-status: 0') },
    { on: 'unavailable', first: answer(200, '', 'grpc-status: 13') },
    { on: 'unavailable', first: answer(503) },
  ];
  for (const { on, first } of passing) {
    test(`with ${on} lets ${JSON.stringify(first)} pass`, async (t) => {
      const upstream = await answeringInTurn(first, OK);
      const { client, proxy } = await httpBench(t, { upstream, route: retrying([on]) });
      assert.equal((await client().write(GET).response()).head.slice(9, 12), first.slice(9, 12));
      assert.equal(upstream.heads.length, 1);
      assert.equal(proxy.clusterStat('web', 'upstream_rq_retry'), 0);
      assert.equal(proxy.clusterStat('web', 'upstream_rq_retry_limit_exceeded'), 0);
      assertBalanced(proxy);
    });
  }

  test('without a share of retries in the runtime is not followed', async (t) => {
    const upstream = await answeringInTurn(answer(503));
    const { client, proxy } = await httpBench(t, { upstream, route: retrying(['5xx']) });
    proxy.dataPlane.updateRuntime(new Map([['upstream.use_retry', '0']]));
    assert.equal((await client().write(GET).response()).status, 503);
    assert.equal(upstream.heads.length, 1);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_retry'), 0);
    assertBalanced(proxy);
  });

  test('with reset-before-request tries again what was not sent, and nothing else', async (t) => {
    const route = retrying(['reset-before-request']);
    const refusing = await httpBench(t, { upstreamPort: await unusedPort(), route });
    assert.equal((await refusing.client().write(GET).response()).status, 503);
    assert.equal(refusing.proxy.clusterStat('web', 'upstream_cx_connect_fail'), 2);
    const upstream = await answeringInTurn(RESET, OK);
    const { client } = await httpBench(t, { upstream, route });
    assert.equal((await client().write(GET).response()).status, 503);
    assert.equal(upstream.heads.length, 1);
  });

  test('gives up after its number of retries, with the last answer', async (t) => {
    const upstream = await answeringInTurn(answer(500, 'a'), answer(501, 'bb'), answer(502, 'ccc'), OK);
    const { client, proxy } = await httpBench(t, { upstream, route: retrying(['5xx'], { maxRetries: 2 }) });
    const reply = await client().write(GET).response();
    assert.deepEqual([reply.status, reply.body], [502, 'ccc']);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_retry'), 2);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_retry_success'), 0);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_retry_limit_exceeded'), 1);
    assert.equal(proxy.dynamicStat('cluster.web.', 'retry.upstream_rq_500'), 1);
    assert.equal(proxy.dynamicStat('cluster.web.', 'retry.upstream_rq_501'), 1);
    assert.equal(proxy.dynamicStat('cluster.web.', 'retry.upstream_rq_5xx'), 2);
    assert.equal(proxy.dynamicStat('cluster.web.', 'upstream_rq_500'), 0);
    assert.equal(proxy.dynamicStat('cluster.web.', 'upstream_rq_502'), 1);
    assert.equal(proxy.dynamicStat('cluster.web.', 'upstream_rq_5xx'), 1);
    assert.equal(proxy.hostStat('web', 0, 'rq_error'), 3);
    assertBalanced(proxy);
  });

  test('tells the client of the last reset', async (t) => {
    const upstream = await answeringInTurn(RESET);
    const { client, proxy } = await httpBench(t, { upstream, route: retrying(['reset'], { maxRetries: 2 }) });
    const reply = await client().write(GET).response();
    assert.equal(reply.status, 503);
    assert.equal(
      reply.body,
      `${RESET_BODY.replace('. reset', '. retried and the latest reset')}connection termination`,
    );
    assert.equal(upstream.heads.length, 3);
    assert.equal(proxy.dynamicStat('cluster.web.', 'upstream_rq_503'), 1);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_completed'), 1);
    assertBalanced(proxy);
  });

  test('connects again', async (t) => {
    const { client, proxy } = await httpBench(t, {
      upstreamPort: await unusedPort(),
      route: retrying(['connect-failure'], { maxRetries: 3 }),
    });
    const reply = await client().write(GET).response();
    assert.equal(reply.status, 503);
    assert.match(reply.body, /retried and the latest reset reason: remote connection failure/);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_connect_fail'), 4);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_retry'), 3);
    assertBalanced(proxy);
  });

  test('never sends again what has begun to be answered', async (t) => {
    const upstream = await WireUpstream.start((socket) => {
      socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf', () => socket.end()));
    });
    const { client, proxy } = await httpBench(t, { upstream, route: retrying(['5xx', 'reset']) });
    const wire = client().write(GET);
    assert.match(await wire.rest(), /half$/);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_retry'), 0);
    await eventually(() => proxy.httpStat('downstream_rq_active') === 0, 'the request is over');
    assertBalanced(proxy);
  });

  test('drops the rest of an answer that nobody gets with its connection', async (t) => {
    const upstream = await WireUpstream.start((socket, index) => {
      socket.on('data', () => socket.write(index === 0 ? 'HTTP/1.1 503 X\r\ncontent-length: 9\r\n\r\nhalf' : OK));
    });
    const { client, proxy } = await httpBench(t, { upstream, route: retrying(['5xx']) });
    assert.equal((await client().write(GET).response()).status, 200);
    assert.equal(upstream.sockets.length, 2);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_destroy_local_with_active_rq'), 1);
    assertBalanced(proxy);
  });

  test('uses the connection of an answer that nobody gets again', async (t) => {
    const upstream = await answeringInTurn(answer(503, 'all of it'), OK);
    const { client, proxy } = await httpBench(t, { upstream, route: retrying(['5xx']) });
    assert.equal((await client().write(GET).response()).status, 200);
    assert.equal(upstream.sockets.length, 1);
    assertBalanced(proxy);
  });

  test('holds only for requests that one of its matchers knows', async (t) => {
    const upstream = await answeringInTurn(answer(503));
    const retriableRequestHeaders = [
      { name: 'x-safe', test: { kind: 'present', isPresent: true }, isInverted: false, treatMissingAsEmpty: false },
    ] as const;
    const { client } = await httpBench(t, { upstream, route: retrying(['5xx'], { retriableRequestHeaders }) });
    const wire = client().write(GET);
    await wire.response();
    assert.equal(upstream.heads.length, 1);
    wire.write('GET / HTTP/1.1\r\nhost: x\r\nx-safe: 1\r\n\r\n');
    await wire.response();
    assert.equal(upstream.heads.length, 3);
  });
});

describe('the body of a request that is tried again', () => {
  const BODY = 'The quick brown fox. '.repeat(8000);

  /** Reads whole requests, with a body of this length; answers 503 to the first. */
  async function collecting(length: number): Promise<WireUpstream & { readonly bodies: string[] }> {
    const bodies: string[] = [];
    const upstream = await WireUpstream.start((socket) => {
      let text = '';
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString('latin1');
        const start = text.indexOf('\r\n\r\n') + 4;
        if (start < 4 || text.length < start + length) return;
        bodies.push(text.slice(start, start + length));
        text = text.slice(start + length);
        socket.write(bodies.length === 1 ? answer(503) : OK);
      });
    });
    return Object.assign(upstream, { bodies });
  }

  test('is the same again, framed by its length', async (t) => {
    const upstream = await collecting(BODY.length);
    const { client, proxy } = await httpBench(t, { upstream, route: retrying(['5xx']) });
    const wire = client().write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${BODY.length}\r\n\r\n`);
    for (let at = 0; at < BODY.length; at += 40_000) wire.write(BODY.slice(at, at + 40_000));
    assert.equal((await wire.response()).status, 200);
    assert.deepEqual(upstream.bodies, [BODY, BODY]);
    assertBalanced(proxy);
  });

  test('is the same again, in chunks', async (t) => {
    const chunks = `5\r\nfirst\r\n6\r\nsecond\r\n0\r\n\r\n`;
    const upstream = await collecting(chunks.length);
    const { client, proxy } = await httpBench(t, { upstream, route: retrying(['5xx']) });
    const wire = client().write(`POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n${chunks}`);
    assert.equal((await wire.response()).status, 200);
    assert.deepEqual(upstream.bodies, [chunks, chunks]);
    assertBalanced(proxy);
  });

  test('that has come in part is sent as far, and then goes on', async (t) => {
    let requests = 0;
    const received: string[] = [];
    const upstream = await WireUpstream.start((socket, index) => {
      received.push('');
      socket.on('data', (chunk: Buffer) => {
        received[index] += chunk.toString('latin1');
        if (index === 0 && received[0]!.endsWith('part')) socket.resetAndDestroy();
        if (index === 1 && received[1]!.endsWith('whole')) socket.write(OK);
        requests++;
      });
    });
    const { client, proxy } = await httpBench(t, { upstream, route: retrying(['reset']) });
    const wire = client().write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\npart');
    await eventually(() => received[1]?.endsWith('part') ?? false, 'the part has been sent again');
    wire.write('whole');
    assert.equal((await wire.response()).status, 200);
    assert.match(received[1]!, /\r\n\r\npartwhole$/);
    assert.ok(requests >= 3);
    assertBalanced(proxy);
  });

  test('beyond the limit ends all retries, and is counted', async (t) => {
    const upstream = await collecting(BODY.length);
    const route = { ...retrying(['5xx']), replayLimitBytes: BODY.length - 1 };
    const { client, proxy } = await httpBench(t, { upstream, route });
    const wire = client().write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`);
    assert.equal((await wire.response()).status, 503);
    assert.deepEqual(upstream.bodies, [BODY]);
    assert.equal(proxy.clusterStat('web', 'retry_or_shadow_abandoned'), 1);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_retry'), 0);
    assertBalanced(proxy);
  });
});

describe('the circuit breaker of retries', () => {
  const limited = (maxRetries: number): Pick<HttpBenchOptions, 'cluster'> => {
    const limits = { maxConnections: 1024, maxPendingRequests: 1024, maxRequests: 1024, maxRetries };
    return { cluster: { circuitBreakers: { default: limits, high: limits } } };
  };

  test('without a place lets the answer pass', async (t) => {
    const upstream = await answeringInTurn(answer(503));
    const { client, proxy } = await httpBench(t, { upstream, route: retrying(['5xx']), ...limited(0) });
    assert.equal((await client().write(GET).response()).status, 503);
    assert.equal(upstream.heads.length, 1);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_retry_overflow'), 1);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_retry'), 0);
    assertBalanced(proxy);
  });

  test('is held until the retry has its answer', async (t) => {
    let requests = 0;
    const upstream = await WireUpstream.start((socket) => {
      socket.on('data', () => {
        requests++;
        if (requests !== 2) socket.write(answer(503));
      });
    });
    const { client, proxy } = await httpBench(t, { upstream, route: retrying(['5xx']), ...limited(1) });
    const first = client().write(GET);
    await eventually(() => requests === 2, 'the retry of the first runs');
    assert.equal(proxy.breakerCount('web', 12), 1);
    assert.equal((await client().write(GET).response()).status, 503);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_retry_overflow'), 1);
    first.close();
    await eventually(() => proxy.breakerCount('web', 12) === 0, 'the place is free again');
    await eventually(() => proxy.httpStat('downstream_rq_active') === 0, 'the request is over');
    assertBalanced(proxy);
  });
});

describe('the count of attempts, in replies of the proxy itself', () => {
  const COUNT = /\r\nx-proxy-attempt-count: (\d+)\r\n/;
  const counting = { routeFields: { countsAttemptsInResponse: true } };

  test('is that of the tries that have failed', async (t) => {
    const upstream = await answeringInTurn(RESET);
    const { client, proxy } = await httpBench(t, {
      upstream,
      route: retrying(['5xx'], { maxRetries: 2 }),
      ...counting,
    });
    const reply = await client().write(GET).response();
    assert.equal(reply.status, 503);
    assert.equal(COUNT.exec(reply.head)?.[1], '3');
    assertBalanced(proxy);
  });

  test('is 1 where nothing is tried again', async (t) => {
    const upstream = await answeringInTurn(RESET);
    const { client } = await httpBench(t, { upstream, ...counting });
    const reply = await client().write(GET).response();
    assert.equal(COUNT.exec(reply.head)?.[1], '1');
  });

  test('is not there where no host was tried', async (t) => {
    const { client } = await httpBench(t, { upstreams: [], ...counting });
    const reply = await client().write(GET).response();
    assert.deepEqual([reply.status, reply.body], [503, 'no healthy upstream']);
    assert.doesNotMatch(reply.head, COUNT);
  });
});
