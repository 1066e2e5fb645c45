// Tries that go on beside their retries (`hedge_on_per_try_timeout`), and requests that go out together, where limits, HTTP/2 and gRPC
// have their say: who wins, what becomes of the others, and what is told of it.

import assert from 'node:assert/strict';
import type { ServerHttp2Stream } from 'node:http2';
import { describe, type TestContext, test } from 'node:test';
import { DEFAULT_HTTP2_SETTINGS } from '../../src/config/resources/http2-options.ts';
import type { ForwardAction } from '../../src/snapshot/index.ts';
import { type ClusterOverrides, retrySettings } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { assertBalanced, GET, type HttpBench, httpBench, OK, TELL_FLAGS } from '../support/http-bench.ts';
import { Http2Upstream } from '../support/http2-upstream.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { outlierSettings } from '../support/outliers.ts';
import { type Received, type SilentUpstream, silent } from '../support/silent-upstream.ts';

const LIMIT_MS = 100;
const GRAIN_MS = 20;
const ROUTE_MS = 15_000;
const UNAVAILABLE = 'HTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n';

interface Hedging extends HttpBench {
  readonly clock: ManualClock;
  received(): readonly Received[];
  /** The time of the latest try is over, and its retry goes out, if there is one. */
  passLimit(): void;
}

interface Options {
  readonly maxRetries?: number;
  readonly hosts?: number;
  readonly route?: Partial<ForwardAction>;
  readonly cluster?: ClusterOverrides;
}

/** Responses say their flags. */
async function hedging(t: TestContext, { maxRetries = 1, hosts = 4, route, cluster }: Options = {}): Promise<Hedging> {
  const upstreams: SilentUpstream[] = [];
  for (let i = 0; i < hosts; i += 1) upstreams.push(await silent());
  const clock = new ManualClock();
  const retry = retrySettings({ perTryTimeoutMs: LIMIT_MS, maxRetries });
  const bench = await httpBench(t, {
    upstreams,
    clock,
    timeoutMs: ROUTE_MS,
    route: { retry, hedgesOnPerTryTimeout: true, ...route },
    routeFields: { responseEdits: [TELL_FLAGS] },
    ...(cluster === undefined ? {} : { cluster }),
  });
  return {
    ...bench,
    clock,
    received: () => upstreams.flatMap(({ requests }) => requests),
    passLimit() {
      clock.turn(LIMIT_MS + GRAIN_MS);
      clock.turn(GRAIN_MS);
    },
  };
}

async function countOf({ received }: Pick<Hedging, 'received'>, count: number): Promise<Received> {
  await eventually(() => received().length === count, `${count} requests have come`);
  return received().at(-1)!;
}

function flagsIn(head: string): string | undefined {
  return /^x-flags: (.*?)\r?$/m.exec(head)?.[1];
}

function closed({ socket }: Received): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()));
}

describe('a slow try beside its retries', () => {
  test('has one for each time that passes, and the first good answer ends all others', async (t) => {
    const bench = await hedging(t, { maxRetries: 3 });
    const wire = bench.client().write(GET);
    await countOf(bench, 1);
    const order = [...bench.received()];
    for (const count of [2, 3, 4]) {
      bench.passLimit();
      await countOf(bench, count);
      order.push(bench.received().find((each) => !order.includes(each))!);
    }
    assert.equal(bench.proxy.breakerCount('web', 12), 3);
    const others = order.slice(0, 3).map(closed);
    order[3]!.socket.write(OK);
    const { status, head } = await wire.response();
    assert.deepEqual([status, flagsIn(head)], [200, '-']);
    await Promise.all(others);
    const clusterStat = bench.proxy.clusterStat.bind(bench.proxy);
    assert.equal(clusterStat('web', 'upstream_rq_retry'), 3);
    assert.equal(clusterStat('web', 'upstream_rq_retry_success'), 1);
    assert.equal(clusterStat('web', 'upstream_rq_tx_reset'), 3);
    assert.equal(clusterStat('web', 'upstream_rq_per_try_timeout'), 0);
    assert.equal(bench.proxy.dynamicStat('cluster.web.', 'upstream_rq_200'), 1);
    assertBalanced(bench.proxy);
  });

  const ENDS = [
    {
      name: 'there are no more retries',
      options: { maxRetries: 0 },
      stat: 'upstream_rq_retry_limit_exceeded',
      flag: 'URX',
    },
    {
      name: 'there is no place for one',
      options: {
        cluster: {
          circuitBreakers: {
            default: { maxConnections: 1024, maxPendingRequests: 1024, maxRequests: 1024, maxRetries: 0 },
            high: { maxConnections: 1024, maxPendingRequests: 1024, maxRequests: 1024, maxRetries: 0 },
          },
        },
      },
      stat: 'upstream_rq_retry_overflow',
      flag: 'UO',
    },
    {
      name: 'the budget has none',
      options: {
        cluster: {
          circuitBreakers: {
            default: {
              maxConnections: 1024,
              maxPendingRequests: 1024,
              maxRequests: 1024,
              maxRetries: 3,
              retryBudget: { percent: 20, minConcurrency: 0 },
            },
            high: { maxConnections: 1024, maxPendingRequests: 1024, maxRequests: 1024, maxRetries: 0 },
          },
        },
      },
      stat: 'upstream_rq_retry_overflow',
      flag: 'UO',
    },
  ] as const;
  for (const { name, options, stat, flag } of ENDS) {
    for (const end of ['an answer', 'the time of the route'] as const) {
      test(`goes on alone where ${name}, until ${end}, and the flags say so`, async (t) => {
        const bench = await hedging(t, options as Options);
        const wire = bench.client().write(GET);
        const first = await countOf(bench, 1);
        bench.passLimit();
        assert.equal(bench.proxy.clusterStat('web', stat), 1);
        assert.equal(bench.proxy.clusterStat('web', 'upstream_rq_retry'), 0);
        if (end === 'an answer') first.socket.write(OK);
        else bench.clock.turn(ROUTE_MS);
        const { status, head } = await wire.response();
        assert.equal(status, end === 'an answer' ? 200 : 504);
        const flags = flagsIn(head)!.split(',').sort();
        assert.deepEqual(flags, end === 'an answer' ? [flag] : [flag, 'UT'].sort());
        assert.equal(bench.received().length, 1);
        assertBalanced(bench.proxy);
      });
    }
  }

  test('is an outlier once, whether it answers or not', async (t) => {
    for (const answers of [true, false]) {
      const outlierDetection = outlierSettings({ consecutive_gateway_failure: 1, consecutive_5xx: 100 });
      const bench = await hedging(t, { cluster: { outlierDetection } });
      const wire = bench.client().write(GET);
      const first = await countOf(bench, 1);
      assert.deepEqual(bench.proxy.outliers, []);
      bench.passLimit();
      await countOf(bench, 2);
      assert.equal(bench.proxy.outliers.length, 1);
      if (answers) first.socket.write(OK);
      else bench.clock.turn(ROUTE_MS);
      assert.equal((await wire.response()).status, answers ? 200 : 504);
      // The other was slow for the first time when the time was over.
      const hosts = bench.proxy.outliers.map(({ recordAddress }) => recordAddress);
      assert.equal(hosts.length, answers ? 1 : 2);
      assert.equal(new Set(hosts).size, hosts.length);
      assertBalanced(bench.proxy);
    }
  });

  test('has none when more of its body has come than is kept', async (t) => {
    const bench = await hedging(t, { route: { replayLimitBytes: 5 } });
    const wire = bench.client().write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 8\r\n\r\n');
    const first = await countOf(bench, 1);
    wire.write('halfmore');
    await eventually(() => first.body === 'halfmore', 'the body has come');
    bench.passLimit();
    assert.equal(bench.proxy.clusterStat('web', 'retry_or_shadow_abandoned'), 1);
    first.socket.write(OK);
    assert.equal((await wire.response()).status, 200);
    assert.equal(bench.proxy.clusterStat('web', 'upstream_rq_total'), 1);
    assertBalanced(bench.proxy);
  });

  test('gives its retry the whole body', async (t) => {
    const bench = await hedging(t);
    const wire = bench.client().write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 8\r\n\r\nhalf');
    await countOf(bench, 1);
    // Its time begins with the end of the request.
    bench.passLimit();
    assert.equal(bench.proxy.clusterStat('web', 'upstream_rq_retry'), 0);
    wire.write('more');
    await eventually(() => bench.received()[0]!.body === 'halfmore', 'the first has it');
    bench.passLimit();
    await eventually(() => bench.received().filter(({ body }) => body === 'halfmore').length === 2, 'both have it');
    bench.received()[1]!.socket.write(OK);
    assert.equal((await wire.response()).status, 200);
    assertBalanced(bench.proxy);
  });

  test('is not heard any more behind the head of another, even if that breaks off', async (t) => {
    const bench = await hedging(t, { hosts: 2 });
    const wire = bench.client().write(GET);
    const first = await countOf(bench, 1);
    bench.passLimit();
    await countOf(bench, 2);
    const second = bench.received().find((each) => each !== first)!;
    const ended = closed(first);
    second.socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf');
    assert.match(await wire.until('half'), /^HTTP\/1\.1 200 /);
    await ended;
    second.socket.resetAndDestroy();
    assert.equal(await wire.rest(), '');
    assert.equal(bench.proxy.clusterStat('web', 'upstream_rq_total'), 2);
    await eventually(() => bench.proxy.httpStat('downstream_rq_active') === 0, 'the request is over');
    assertBalanced(bench.proxy);
  });
});

describe('requests that go out together', () => {
  test('are one more than said for those whom chance chooses', async (t) => {
    const additionalRequestShare = { numerator: 100, denominator: 100 };
    const bench = await hedging(t, { route: { initialRequests: 2, additionalRequestShare } });
    const wire = bench.client().write(GET);
    await countOf(bench, 3);
    bench.received()[2]!.socket.write(OK);
    assert.equal((await wire.response()).status, 200);
    assert.equal(bench.proxy.clusterStat('web', 'upstream_rq_tx_reset'), 2);
    assertBalanced(bench.proxy);
  });

  test('are tried again beside them when the time of one passes', async (t) => {
    const bench = await hedging(t, { route: { initialRequests: 2 } });
    const wire = bench.client().write(GET);
    await countOf(bench, 2);
    const both = [...bench.received()];
    bench.passLimit();
    await countOf(bench, 3);
    const third = bench.received().find((each) => !both.includes(each))!;
    for (const { socket } of both) socket.write(UNAVAILABLE);
    await eventually(() => bench.proxy.clusterStat('web', 'upstream_rq_active') === 1, 'two have answered');
    third.socket.write(OK);
    assert.equal((await wire.response()).status, 200);
    assert.equal(bench.proxy.clusterStat('web', 'upstream_rq_retry'), 1);
    assertBalanced(bench.proxy);
  });
});

describe('over HTTP/2', () => {
  async function together(t: TestContext, conditions: readonly string[] = ['5xx'], initialRequests = 3) {
    const streams: ServerHttp2Stream[] = [];
    const upstream = await Http2Upstream.start(t, (stream) => streams.push(stream));
    const retry = retrySettings({ conditions: conditions as ['5xx'], maxRetries: 1 });
    const cluster: ClusterOverrides = { http2: { settings: DEFAULT_HTTP2_SETTINGS, use: 'always' } };
    const bench = await httpBench(t, {
      upstreamPort: upstream.port,
      cluster,
      route: { retry, initialRequests },
      routeFields: { responseEdits: [TELL_FLAGS] },
    });
    return { bench, streams, upstream };
  }

  async function haveCome(streams: readonly ServerHttp2Stream[], count: number): Promise<void> {
    await eventually(() => streams.length === count, `${count} streams have come`);
  }

  test('losers are cancelled, and their connection goes on', async (t) => {
    const { bench, streams, upstream } = await together(t);
    const client = bench.client();
    for (const round of [1, 2]) {
      client.write(GET);
      await haveCome(streams, 3 * round);
      const [first, second, third] = streams.slice(-3) as [ServerHttp2Stream, ServerHttp2Stream, ServerHttp2Stream];
      const ended = [first, third].map((stream) => new Promise((resolve) => stream.once('close', resolve)));
      second.respond({ ':status': 200, 'content-length': 2 });
      second.end('ok');
      assert.equal((await client.response()).status, 200);
      await Promise.all(ended);
      // CANCEL: the host has done nothing wrong.
      assert.deepEqual([first.rstCode, third.rstCode], [8, 8]);
    }
    assert.equal(upstream.sessions.length, 1);
    assert.equal(bench.proxy.clusterStat('web', 'upstream_cx_active'), 1);
    assert.equal(bench.proxy.clusterStat('web', 'upstream_rq_tx_reset'), 4);
    assertBalanced(bench.proxy);
  });

  test('a reset of one leaves the answer to the others, and the last one is tried again', async (t) => {
    // REFUSED_STREAM, INTERNAL_ERROR, CANCEL.
    for (const code of [7, 2, 8]) {
      const { bench, streams } = await together(t, ['reset'], 2);
      const wire = bench.client().write(GET);
      await haveCome(streams, 2);
      streams[0]!.close(code);
      await eventually(() => bench.proxy.clusterStat('web', 'upstream_rq_active') === 1, 'the first is gone');
      assert.equal(bench.proxy.clusterStat('web', 'upstream_rq_retry'), 0);
      streams[1]!.close(code);
      await haveCome(streams, 3);
      streams[2]!.respond({ ':status': 200 });
      streams[2]!.end();
      const { status, head } = await wire.response();
      assert.deepEqual([status, flagsIn(head)], [200, '-'], `code ${code}`);
      assert.equal(bench.proxy.clusterStat('web', 'upstream_rq_retry'), 1);
      assertBalanced(bench.proxy);
    }
  });

  test('the end of the connection ends all of them, and is told once', async (t) => {
    const { bench, streams, upstream } = await together(t, ['retriable-4xx'], 2);
    // No request that may go out again by itself.
    const wire = bench.client().write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n');
    await haveCome(streams, 2);
    upstream.sessions[0]!.socket.destroy();
    const { status, head } = await wire.response();
    assert.equal(status, 503);
    assert.equal(flagsIn(head), 'UC');
    assertBalanced(bench.proxy);
  });

  test('a failure of gRPC in the head is no answer while another may come, and passes when it is the last', async (t) => {
    for (const last of ['0', '14']) {
      const { bench, streams } = await together(t, ['unavailable'], 2);
      const lines = 'content-type: application/grpc\r\nte: trailers\r\ncontent-length: 5\r\n\r\n\0\0\0\0\0';
      const wire = bench.client().write(`POST / HTTP/1.1\r\nhost: x\r\n${lines}`);
      await haveCome(streams, 2);
      const fail = (stream: ServerHttp2Stream, code: string): void =>
        stream.respond(
          { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': code },
          { endStream: true },
        );
      fail(streams[0]!, '14');
      await eventually(() => bench.proxy.clusterStat('web', 'upstream_rq_active') === 1, 'the first is gone');
      fail(streams[1]!, last);
      if (last === '14') {
        // The one retry that there is.
        await haveCome(streams, 3);
        fail(streams[2]!, last);
      }
      const { status, head } = await wire.response();
      assert.equal(status, 200);
      assert.match(head, new RegExp(`^grpc-status: ${last}\\r$`, 'm'));
      assert.equal(flagsIn(head), last === '0' ? '-' : 'URX');
      assertBalanced(bench.proxy);
    }
  });
});
