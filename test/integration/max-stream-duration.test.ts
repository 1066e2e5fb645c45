// How long a cluster lets a try take, by bytes on the wire and a clock that the test turns.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { loopback, retrySettings } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { assertBalanced, GET, type HttpBenchOptions, httpBench, OK, TELL_FLAGS } from '../support/http-bench.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openTunnel } from '../support/raw-paths.ts';
import { arrived, silent } from '../support/silent-upstream.ts';
import { peerEnd } from '../support/wire.ts';

const DURATION_MS = 100;
/** Longer than the timer wheel's grain. */
const GRAIN_MS = 20;

async function bench(t: Parameters<typeof httpBench>[0], options: Partial<HttpBenchOptions> = {}) {
  const [upstream, clock] = [await silent(), new ManualClock()];
  const found = await httpBench(t, {
    upstream,
    clock,
    routeFields: { responseEdits: [TELL_FLAGS] },
    cluster: { maxStreamDurationMs: DURATION_MS },
    ...options,
  });
  const stat = (name: Parameters<typeof found.proxy.clusterStat>[1]): number => found.proxy.clusterStat('web', name);
  return { ...found, upstream, clock, stat };
}

describe('the duration of a stream, as a cluster bounds it', () => {
  test('ends a try without a response: 504', async (t) => {
    const { client, proxy, upstream, clock, stat } = await bench(t);
    const wire = client().write(GET);
    const { socket } = await arrived(upstream.requests, 1);
    const closed = new Promise((resolve) => socket.once('close', resolve));
    clock.turn(DURATION_MS - 1);
    assert.equal(stat('upstream_rq_max_duration_reached'), 0);
    clock.turn(GRAIN_MS);
    const reply = await wire.response();
    assert.deepEqual([reply.status, reply.body], [504, 'upstream max stream duration reached']);
    assert.match(reply.head, /\r\nx-flags: UMSDR\r\n/);
    assert.equal(stat('upstream_rq_max_duration_reached'), 1);
    assert.equal(stat('upstream_rq_tx_reset'), 1);
    await closed;
    assertBalanced(proxy);
  });

  test('is told by 408 while the client still sends', async (t) => {
    const { client, proxy, upstream, clock } = await bench(t);
    const wire = client().write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nhalf');
    await arrived(upstream.requests, 1);
    clock.turn(DURATION_MS + GRAIN_MS);
    const { head, status } = await wire.response();
    assert.equal(status, 408);
    assert.match(head, /\r\nx-flags: UMSDR\r\n/);
    wire.close();
    await eventually(() => proxy.httpStat('downstream_cx_active') === 0, 'the client has left');
    assertBalanced(proxy);
  });

  test('cuts a response that trickles for ever', async (t) => {
    const { client, proxy, upstream, clock, stat } = await bench(t);
    const wire = client().write(GET);
    const { socket } = await arrived(upstream.requests, 1);
    socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
    for (let n = 0; n < 5; n++) {
      socket.write('1\r\nx\r\n');
      await wire.until('1\r\nx\r\n');
      clock.turn(DURATION_MS / 5);
    }
    clock.turn(GRAIN_MS);
    assert.doesNotMatch(await wire.rest(), /0\r\n\r\n$/);
    assert.equal(stat('upstream_rq_max_duration_reached'), 1);
    await eventually(() => proxy.httpStat('downstream_rq_active') === 0, 'the request is over');
    assertBalanced(proxy);
  });

  test('begins with the connection of the try, and is over with its response', async (t) => {
    const { client, proxy, upstream, clock, stat } = await bench(t);
    const wire = client().write(GET);
    (await arrived(upstream.requests, 1)).socket.write(OK);
    assert.equal((await wire.response()).status, 200);
    clock.turn(DURATION_MS - 1);
    wire.write(GET);
    const { socket } = await arrived(upstream.requests, 2);
    clock.turn(DURATION_MS - 1);
    socket.write(OK);
    assert.equal((await wire.response()).status, 200);
    clock.turn(DURATION_MS);
    assert.equal(stat('upstream_rq_max_duration_reached'), 0);
    assertBalanced(proxy);
  });

  test('is one of each try: what has taken too long is tried again where resets are', async (t) => {
    for (const [conditions, requests, status] of [
      [['reset'], 2, 200],
      [['connect-failure'], 1, 504],
    ] as const) {
      const retry = retrySettings({ conditions });
      const { client, proxy, upstream, clock, stat } = await bench(t, { route: { retry } });
      const wire = client().write(GET);
      await arrived(upstream.requests, 1);
      clock.turn(DURATION_MS + GRAIN_MS);
      clock.turn(GRAIN_MS);
      if (requests === 2) {
        const { socket } = await arrived(upstream.requests, 2);
        clock.turn(DURATION_MS - 1);
        socket.write(OK);
      }
      assert.equal((await wire.response()).status, status);
      assert.equal(upstream.requests.length, requests);
      assert.equal(stat('upstream_rq_max_duration_reached'), 1);
      assertBalanced(proxy);
    }
  });

  test('is never hedged: no answer is waited for any more', async (t) => {
    const route = { retry: retrySettings({ perTryTimeoutMs: 1000 }), hedgesOnPerTryTimeout: true };
    const { client, proxy, upstream, clock } = await bench(t, { route });
    const wire = client().write(GET);
    const first = await arrived(upstream.requests, 1);
    const closed = new Promise((resolve) => first.socket.once('close', resolve));
    clock.turn(DURATION_MS + GRAIN_MS);
    await closed;
    clock.turn(GRAIN_MS);
    (await arrived(upstream.requests, 2)).socket.write(OK);
    assert.equal((await wire.response()).status, 200);
    assertBalanced(proxy);
  });

  test('gives way to what a client inside asks for', async (t) => {
    const { client, proxy, upstream, clock, stat } = await bench(t, { settings: { useRemoteAddress: true } });
    const wire = client().write('GET / HTTP/1.1\r\nhost: x\r\nx-proxy-upstream-stream-duration-ms: 500\r\n\r\n');
    await arrived(upstream.requests, 1);
    clock.turn(DURATION_MS * 4);
    assert.equal(stat('upstream_rq_max_duration_reached'), 0);
    clock.turn(DURATION_MS + GRAIN_MS);
    assert.equal((await wire.response()).status, 504);
    assert.equal(stat('upstream_rq_max_duration_reached'), 1);
    assertBalanced(proxy);
  });

  test('ends copies of requests, too', async (t) => {
    const shadow = await silent();
    t.after(() => shadow.close());
    const mirror = {
      cluster: 'shadow',
      clusterHeader: '',
      fraction: { key: '', default: { numerator: 100, denominator: 100 } },
      appendsHostSuffix: true,
      hostRewrite: '',
      headEdits: [],
    };
    const { client, proxy, upstream, clock } = await bench(t, { cluster: {}, route: { mirrors: [mirror] } });
    proxy.cluster('shadow', [loopback(shadow.port)], { maxStreamDurationMs: DURATION_MS });
    const wire = client().write(GET);
    (await arrived(upstream.requests, 1)).socket.write(OK);
    assert.equal((await wire.response()).status, 200);
    await arrived(shadow.requests, 1);
    clock.turn(DURATION_MS - 1);
    assert.equal(proxy.clusterStat('shadow', 'upstream_rq_max_duration_reached'), 0);
    clock.turn(GRAIN_MS);
    assert.equal(proxy.clusterStat('shadow', 'upstream_rq_max_duration_reached'), 1);
    assert.equal(proxy.clusterStat('shadow', 'upstream_rq_timeout'), 0);
  });
});

test('a tunnel of a cluster that bounds streams is broken off on both sides', async (t) => {
  for (const terminatesConnect of [true, false]) {
    const clock = new ManualClock();
    const cluster = { maxStreamDurationMs: 1000 };
    const { wire, server } = await openTunnel(t, { clock, cluster }, { terminatesConnect });
    wire.socket.removeAllListeners('error');
    const ends = [peerEnd(server), peerEnd(wire.socket)];
    clock.turn(1020);
    assert.deepEqual(await Promise.all(ends), ['ECONNRESET', 'ECONNRESET']);
  }
});
