// Requests that go out together: how many, to whom, which answer is taken, and what becomes of the others, by bytes on the
// wire.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { ForwardAction } from '../../src/snapshot/index.ts';
import { retrySettings } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { assertBalanced, GET, type HttpBenchOptions, httpBench, OK } from '../support/http-bench.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { type Received, type SilentUpstream, silent } from '../support/silent-upstream.ts';
import { upgrade } from '../support/tunnel-bench.ts';

const UNAVAILABLE = 'HTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n';
const POST = 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 8\r\n\r\n';

/** Three hosts, unless said otherwise. */
async function hedging(
  t: TestContext,
  route: Partial<ForwardAction>,
  { hosts = 3, ...options }: Partial<HttpBenchOptions> & { readonly hosts?: number } = {},
) {
  const upstreams: SilentUpstream[] = [];
  for (let i = 0; i < hosts; i += 1) upstreams.push(await silent());
  const bench = await httpBench(t, { upstreams, ...options, route });
  const received = (): readonly Received[] => upstreams.flatMap(({ requests }) => requests);
  return { ...bench, upstreams, received };
}

async function countOf(received: () => readonly Received[], count: number): Promise<void> {
  await eventually(() => received().length === count, `${count} requests have come`);
}

function closed({ socket }: Received): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()));
}

describe('requests that go out together', () => {
  test('go to different hosts, the first answer is taken, and the others are reset', async (t) => {
    const { client, proxy, upstreams, received } = await hedging(t, { initialRequests: 3 });
    const wire = client().write(GET);
    await countOf(received, 3);
    assert.deepEqual(
      upstreams.map(({ requests }) => requests.length),
      [1, 1, 1],
    );
    assert.equal(proxy.breakerCount('web', 12), 2);
    const others = [received()[0]!, received()[2]!].map(closed);
    received()[1]!.socket.write(OK);
    assert.equal((await wire.response()).status, 200);
    await Promise.all(others);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_total'), 3);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_tx_reset'), 2);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_retry'), 0);
    assert.equal(proxy.dynamicStat('cluster.web.', 'upstream_rq_200'), 1);
    assertBalanced(proxy);
  });

  test('wait for the end of the body, and carry all of it', async (t) => {
    const { client, proxy, received } = await hedging(t, { initialRequests: 3 });
    const wire = client().write(`${POST}half`);
    await eventually(() => received()[0]?.body === 'half', 'the first has the beginning');
    assert.equal(received().length, 1);
    wire.write('more');
    await eventually(() => received().filter(({ body }) => body === 'halfmore').length === 3, 'all have it whole');
    received()[2]!.socket.write(OK);
    assert.equal((await wire.response()).status, 200);
    assertBalanced(proxy);
  });

  test('do not go out when the first one has been answered before the end of the body', async (t) => {
    const { client, proxy, received } = await hedging(t, { initialRequests: 3 });
    const wire = client().write(`${POST}half`);
    await countOf(received, 1);
    received()[0]!.socket.write(OK);
    assert.equal((await wire.response()).status, 200);
    wire.write('more');
    await eventually(() => received()[0]!.body === 'halfmore' || proxy.httpStat('downstream_rq_active') === 0, 'over');
    assert.equal(proxy.clusterStat('web', 'upstream_rq_total'), 1);
    assertBalanced(proxy);
  });

  test('are one when more of a body comes than is kept', async (t) => {
    const route = { initialRequests: 3, replayLimitBytes: 5 };
    const { client, proxy, received } = await hedging(t, route);
    const wire = client().write(`${POST}half`);
    await countOf(received, 1);
    wire.write('more');
    await eventually(() => received()[0]!.body === 'halfmore', 'the body has come');
    assert.equal(proxy.clusterStat('web', 'retry_or_shadow_abandoned'), 1);
    received()[0]!.socket.write(OK);
    assert.equal((await wire.response()).status, 200);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_total'), 1);
    assertBalanced(proxy);
  });

  test('are two for the share of requests that chance chooses', async (t) => {
    for (const [draw, expected] of [
      [49, 2],
      [50, 1],
    ] as const) {
      const additionalRequestShare = { numerator: 50, denominator: 100 };
      const { client, proxy, received } = await hedging(t, { additionalRequestShare }, { random: { u32: () => draw } });
      const wire = client().write(GET);
      await countOf(received, expected);
      received()[0]!.socket.write(OK);
      assert.equal((await wire.response()).status, 200);
      assert.equal(proxy.clusterStat('web', 'upstream_rq_total'), expected);
      assertBalanced(proxy);
    }
  });

  test('beyond the first have places for retries, and are fewer where there are none', async (t) => {
    const limits = { maxConnections: 1024, maxPendingRequests: 1024, maxRequests: 1024, maxRetries: 1 };
    const cluster = { circuitBreakers: { default: limits, high: limits } };
    const { client, proxy, received } = await hedging(t, { initialRequests: 3 }, { cluster });
    const wire = client().write(GET);
    await countOf(received, 2);
    received()[0]!.socket.write(OK);
    assert.equal((await wire.response()).status, 200);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_total'), 2);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_retry_overflow'), 1);
    assertBalanced(proxy);
  });

  test('leave the answer to the others when one is bad, fails or takes too long', async (t) => {
    const retry = retrySettings({ perTryTimeoutMs: 100, maxRetries: 0 });
    for (const end of ['bad answer', 'reset', 'time'] as const) {
      const clock = new ManualClock();
      const { client, proxy, received } = await hedging(t, { initialRequests: 2, retry }, { clock, hosts: 2 });
      const wire = client().write(GET);
      await countOf(received, 2);
      const [first, second] = [received()[0]!, received()[1]!];
      if (end === 'bad answer') first.socket.write(UNAVAILABLE);
      else if (end === 'reset') first.socket.resetAndDestroy();
      if (end !== 'time') {
        await eventually(() => proxy.clusterStat('web', 'upstream_rq_active') === 1, 'the first is gone');
        second.socket.write(OK);
        assert.equal((await wire.response()).status, 200);
      } else {
        clock.turn(120);
        assert.equal((await wire.response()).status, 504);
        assert.equal(proxy.clusterStat('web', 'upstream_rq_per_try_timeout'), 2);
      }
      assert.equal(proxy.clusterStat('web', 'upstream_rq_retry_limit_exceeded'), end === 'time' ? 1 : 0);
      assertBalanced(proxy);
    }
  });

  test('are tried again when all answers are bad', async (t) => {
    const clock = new ManualClock();
    const { client, proxy, received } = await hedging(t, { initialRequests: 2, retry: retrySettings() }, { clock });
    const wire = client().write(GET);
    await countOf(received, 2);
    const [first, second] = [received()[0]!, received()[1]!];
    first.socket.write(UNAVAILABLE);
    await eventually(() => proxy.clusterStat('web', 'upstream_rq_active') === 1, 'the first is gone');
    assert.equal(proxy.clusterStat('web', 'upstream_rq_retry'), 0);
    second.socket.resetAndDestroy();
    await eventually(() => proxy.clusterStat('web', 'upstream_rq_retry') === 1, 'a retry waits');
    assert.equal(proxy.breakerCount('web', 12), 1);
    clock.turn(1000);
    await countOf(received, 3);
    const third = received().find((each) => each !== first && each !== second)!;
    third.socket.write(OK);
    assert.equal((await wire.response()).status, 200);
    assertBalanced(proxy);
  });

  test('without a policy for retries take whatever comes first', async (t) => {
    const { client, proxy, received } = await hedging(t, { initialRequests: 2 });
    const wire = client().write(GET);
    await countOf(received, 2);
    received()[0]!.socket.write(UNAVAILABLE);
    assert.equal((await wire.response()).status, 503);
    assertBalanced(proxy);
  });

  test('all fail: the client is told of one failure, and of no retry', async (t) => {
    const { client, proxy, received } = await hedging(t, { initialRequests: 2 }, { hosts: 2 });
    const wire = client().write(GET);
    await countOf(received, 2);
    for (const { socket } of received()) socket.resetAndDestroy();
    const { status, body } = await wire.response();
    assert.equal(status, 503);
    assert.doesNotMatch(body, /retried/);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_rx_reset'), 2);
    assertBalanced(proxy);
  });

  test('end with their client', async (t) => {
    const { client, proxy, received } = await hedging(t, { initialRequests: 3 });
    const wire = client().write(GET);
    await countOf(received, 3);
    const ends = received().map(closed);
    wire.close();
    await Promise.all(ends);
    await eventually(() => proxy.httpStat('downstream_rq_active') === 0, 'the request is over');
    assertBalanced(proxy);
  });

  test('go out neither for a tunnel nor where there is no host', async (t) => {
    const tunnel = await hedging(t, { initialRequests: 3 }, { settings: { upgrades: [upgrade('websocket')] } });
    const asking = 'GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n';
    const wire = tunnel.client().write(asking);
    await countOf(tunnel.received, 1);
    tunnel.received()[0]!.socket.write(UNAVAILABLE);
    assert.equal((await wire.response()).status, 503);
    assert.equal(tunnel.proxy.clusterStat('web', 'upstream_rq_total'), 1);
    const empty = await hedging(t, { initialRequests: 3 }, { hosts: 0 });
    assert.equal((await empty.client().write(GET).response()).status, 503);
    assert.equal(empty.proxy.clusterStat('web', 'upstream_cx_none_healthy'), 1);
    for (const { proxy } of [tunnel, empty]) assertBalanced(proxy);
  });
});
