// What a worker does by order of the overload manager: shares, timeouts, and connections of a real data plane.

import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import fc from 'fast-check';
import { RandomSequence } from '../../../src/base/random.ts';
import { Overload } from '../../../src/data-plane/overload.ts';
import { NO_OVERLOAD, type OverloadState } from '../../../src/snapshot/index.ts';
import { DataPlaneFixture, directRoute, httpManager, loopback, routeTo } from '../../support/data-plane.ts';
import { eventually } from '../../support/eventually.ts';
import { filterChain } from '../../support/listeners.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { WireClient, WireUpstream } from '../../support/wire.ts';

const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
/** Of two bytes the first. */
const POST = 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\na';
const HALF = 'GET / HTTP/1.1\r\nho';
const ASKED = 20_000;

function overloadWith(state: Partial<OverloadState>) {
  const values: Record<number, number> = { 7: 0 };
  const overload = new Overload(new RandomSequence(1), { values, base: (block) => block });
  overload.update({ ...NO_OVERLOAD, ...state });
  return { overload, values };
}

function shareOf(decide: () => boolean): number {
  let count = 0;
  for (let index = 0; index < ASKED; index += 1) if (decide()) count += 1;
  return count / ASKED;
}

describe('an order of the overload manager', () => {
  it('is followed as often as its share says, and each by the places that it is meant for', () => {
    const orders = [
      { state: (share: number) => ({ refusedRequests: share }), asks: 'refusesRequest' },
      { state: (share: number) => ({ endedConnections: share }), asks: 'endsConnection' },
      { state: (share: number) => ({ rejectedConnections: share }), asks: 'rejectsConnection' },
    ] as const;
    const questions = [...orders.map(({ asks }) => asks), 'refusesCodec', 'refusesForwarding'] as const;
    for (const { state, asks } of orders) {
      for (const share of [0, 0.25, 1]) {
        const { overload } = overloadWith(state(share));
        const seen = shareOf(() => overload[asks]());
        assert.ok(Math.abs(seen - share) < (share === 0.25 ? 0.02 : Number.EPSILON), `${asks}: ${seen} of ${share}`);
        for (const other of questions) if (other !== asks) assert.equal(overload[other](), false);
      }
    }
  });

  it('is followed beside others', () => {
    const { overload } = overloadWith({ refusedRequests: 1, endedConnections: 1, rejectedConnections: 1 });
    for (const asks of ['refusesRequest', 'endsConnection', 'rejectsConnection'] as const) {
      assert.equal(overload[asks](), true, asks);
    }
    assert.equal(overload.refusesForwarding(), false);
  });

  it('sheds at the points that are named, and counts there', () => {
    const points = {
      tcp_listener_accept: 'rejectsConnection',
      hcm_ondata_creating_codec: 'refusesCodec',
      http_connection_manager_decode_headers: 'refusesRequest',
      http_downstream_filter_check: 'refusesForwarding',
      http1_server_abort_dispatch: 'abortsDispatch',
      connection_pool_new_connection: 'refusesUpstreamConnection',
    } as const;
    for (const [point, asks] of Object.entries(points)) {
      const { overload, values } = overloadWith({ shedding: { [point]: { share: 1, countCell: 7 } } });
      for (const other of Object.values(points)) assert.equal(overload[other](), other === asks);
      assert.equal(values[7], 1, point);
    }
    const { overload, values } = overloadWith({ shedding: { tcp_listener_accept: { share: 0.5, countCell: 7 } } });
    const shed = shareOf(() => overload.rejectsConnection());
    assert.ok(Math.abs(shed - 0.5) < 0.02);
    assert.equal(values[7], Math.round(shed * ASKED));
  });

  it('shortens timeouts in proportion, never below their floor, and leaves those alone that are off', () => {
    const ms = fc.integer({ min: 1, max: 1_000_000 });
    const share = fc.integer({ min: 0, max: 100 }).map((percent) => percent / 100);
    fc.assert(
      fc.property(ms, ms, share, share, (configuredMs, minMs, minScale, shortenedTimeouts) => {
        const timeoutFloors = { HTTP_DOWNSTREAM_STREAM_IDLE: { minMs, minScale } };
        const { overload } = overloadWith({ shortenedTimeouts, timeoutFloors });
        const now = overload.timeoutMs('HTTP_DOWNSTREAM_STREAM_IDLE', configuredMs);
        const leastMs = Math.min(Math.max(minMs, minScale * configuredMs), configuredMs);
        assert.ok(now <= configuredMs && now >= leastMs - 1e-6 && now > 0);
        if (shortenedTimeouts === 1) assert.ok(Math.abs(now - leastMs) < 1e-6);
        assert.equal(overload.timeoutMs('HTTP_DOWNSTREAM_STREAM_IDLE', 0), 0);
        assert.equal(overload.timeoutMs('HTTP_DOWNSTREAM_CONNECTION_IDLE', configuredMs), configuredMs);
      }),
    );
    const half = overloadWith({
      shortenedTimeouts: 0.7,
      timeoutFloors: { HTTP_DOWNSTREAM_CONNECTION_IDLE: { minMs: 2000, minScale: 0 } },
    });
    // 2 s + (600 s - 2 s) * 30 %.
    assert.ok(Math.abs(half.overload.timeoutMs('HTTP_DOWNSTREAM_CONNECTION_IDLE', 600_000) - 181_400) < 1e-6);
    const none = overloadWith({
      shortenedTimeouts: 1,
      timeoutFloors: { HTTP_DOWNSTREAM_CONNECTION_IDLE: { minMs: 0, minScale: 0 } },
    });
    assert.equal(none.overload.timeoutMs('HTTP_DOWNSTREAM_CONNECTION_IDLE', 600_000), 1);
  });
});

function open(t: TestContext, clock?: ManualClock): DataPlaneFixture {
  const proxy = new DataPlaneFixture(clock === undefined ? {} : { clock });
  t.after(() => proxy.close());
  return proxy;
}

function client(t: TestContext, port: number): WireClient {
  const made = new WireClient(port);
  t.after(() => made.close());
  return made;
}

describe('a data plane that is told of overload', () => {
  it('lets clients wait while it is to accept none, also those of listeners that come later', async (t) => {
    const proxy = open(t);
    const port = await proxy.http([directRoute('/', 200, '')]);
    const present = client(t, port).write(GET);
    assert.equal((await present.response()).status, 200);
    proxy.dataPlane.updateOverload({ ...NO_OVERLOAD, stopsAccepting: true });
    const later = await proxy.listen(httpManager([directRoute('/', 200, '')]));
    const waiting = [client(t, port).write(GET), client(t, later).write(GET)];
    for (let round = 0; round < 20; round += 1) assert.equal((await present.write(GET).response()).status, 200);
    assert.equal(proxy.listenerStat('downstream_cx_total'), 1);
    proxy.dataPlane.updateOverload(NO_OVERLOAD);
    for (const each of waiting) assert.equal((await each.response()).status, 200);
    assert.equal(proxy.listenerStat('downstream_cx_overload_reject'), 0);
    assert.equal(proxy.listenerStat('downstream_cx_accept_paused'), 0);
  });

  it('asks nothing of a listener that bypasses the overload manager', async (t) => {
    const proxy = open(t);
    const filterChains = [filterChain(httpManager([directRoute('/', 200, '')]))];
    const [port] = await proxy.listenWith({ bypassesOverload: true, filterChains });
    const shedding = { hcm_ondata_creating_codec: { share: 1, countCell: proxy.counter().cell } };
    const all = { refusedRequests: 1, endedConnections: 1, stopsAccepting: true, rejectedConnections: 1, shedding };
    proxy.dataPlane.updateOverload({ ...NO_OVERLOAD, ...all });
    const { head, status } = await client(t, port!).write(GET).response();
    assert.equal(status, 200);
    assert.doesNotMatch(head, /connection: close/);
  });

  it('closes connections before their first byte where a shed point says so, and counts them', async (t) => {
    const proxy = open(t);
    const port = await proxy.http([directRoute('/', 200, '')]);
    const counter = proxy.counter();
    const shedding = { hcm_ondata_creating_codec: { share: 1, countCell: counter.cell } };
    proxy.dataPlane.updateOverload({ ...NO_OVERLOAD, shedding });
    assert.equal(await client(t, port).rest(), '');
    assert.equal(counter.read(), 1);
    await eventually(() => proxy.listenerStat('downstream_cx_active') === 0, 'the connection is over');
    assert.equal(proxy.httpStat('downstream_cx_total'), 0);
  });

  it('reads nothing more of a client where a shed point says so: 500, or a reset behind the head of a response', async (t) => {
    const proxy = open(t);
    const upstream = await WireUpstream.start((socket) => {
      socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345'));
    });
    t.after(() => upstream.close());
    proxy.cluster('web', [loopback(upstream.port)]);
    const port = await proxy.http([directRoute('/direct', 200, ''), routeTo('web')]);
    const before = client(t, port).write('GET /direct HTTP/1.1\r\nhost: x\r\n\r\n');
    assert.equal((await before.response()).status, 200);
    const begun = client(t, port).write(POST);
    await begun.until('12345');
    const halfway = client(t, port).write(HALF);
    const sent = 'GET /direct HTTP/1.1\r\nhost: x\r\n\r\n'.length + POST.length + HALF.length;
    await eventually(() => proxy.httpStat('downstream_cx_rx_bytes_total') === sent, 'half a head');
    const counter = proxy.counter();
    const shedding = { http1_server_abort_dispatch: { share: 1, countCell: counter.cell } };
    proxy.dataPlane.updateOverload({ ...NO_OVERLOAD, shedding });
    for (const each of [before, halfway, client(t, port)]) {
      const { status, head } = await each.write(GET).response();
      assert.deepEqual([status, /connection: close/.test(head)], [500, true]);
      assert.equal(await each.rest(), '');
    }
    begun.write('b');
    await eventually(
      () => proxy.httpStat('downstream_rq_rx_reset') + proxy.httpStat('downstream_rq_overload_close') >= 4,
      'all of them',
    );
    await eventually(() => proxy.httpStat('downstream_cx_active') === 0, 'no connection is left');
    assert.deepEqual([counter.read(), proxy.httpStat('downstream_rq_overload_close')], [4, 4]);
  });

  it('opens no further connections to hosts where a shed point says so, and uses those that there are', async (t) => {
    const proxy = open(t);
    const held: Socket[] = [];
    const upstream = await WireUpstream.start((socket) => {
      socket.on('data', (data) => {
        if (data.includes('GET /held')) held.push(socket);
        else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
      });
    });
    t.after(() => upstream.close());
    proxy.cluster('web', [loopback(upstream.port)]);
    const port = await proxy.http([routeTo('web')]);
    const first = client(t, port);
    assert.equal((await first.write(GET).response()).status, 200);
    const counter = proxy.counter();
    const shedding = { connection_pool_new_connection: { share: 1, countCell: counter.cell } };
    proxy.dataPlane.updateOverload({ ...NO_OVERLOAD, shedding });
    assert.equal((await first.write(GET).response()).status, 200);
    first.write('GET /held HTTP/1.1\r\nhost: x\r\n\r\n');
    await eventually(() => held.length === 1, 'a request that keeps the connection');
    const { status, head } = await client(t, port).write(GET).response();
    assert.deepEqual([status, /x-proxy-overloaded: true/.test(head)], [503, true]);
    assert.equal(counter.read(), 1);
    proxy.dataPlane.updateOverload(NO_OVERLOAD);
    assert.equal((await client(t, port).write(GET).response()).status, 200);
  });

  it('moves timeouts that run, back and forth', async (t) => {
    const clock = new ManualClock();
    const proxy = open(t, clock);
    const port = await proxy.http([directRoute('/', 200, '')], { idleTimeoutMs: 10_000 });
    const idle = client(t, port).write(GET);
    await idle.response();
    const timeoutFloors = { HTTP_DOWNSTREAM_CONNECTION_IDLE: { minMs: 1000, minScale: 0 } };
    const shortened = { ...NO_OVERLOAD, shortenedTimeouts: 1, timeoutFloors };
    clock.turn(900);
    proxy.dataPlane.updateOverload(shortened);
    proxy.dataPlane.updateOverload(NO_OVERLOAD);
    clock.turn(1000);
    assert.equal(proxy.httpStat('downstream_cx_idle_timeout'), 0);
    await idle.write(GET).response();
    proxy.dataPlane.updateOverload(shortened);
    clock.turn(990);
    assert.equal(proxy.httpStat('downstream_cx_idle_timeout'), 0);
    clock.turn(20);
    assert.equal(proxy.httpStat('downstream_cx_idle_timeout'), 1);
    assert.equal(await idle.rest(), '');
  });

  it('shortens the wait for the next byte of a stream that runs', async (t) => {
    const clock = new ManualClock();
    const proxy = open(t, clock);
    const upstream = await WireUpstream.start(() => {});
    t.after(() => upstream.close());
    proxy.cluster('web', [loopback(upstream.port)]);
    const port = await proxy.http([routeTo('web')], { streamIdleTimeoutMs: 10_000 });
    const waiting = client(t, port).write(GET);
    await eventually(() => proxy.clusterStat('web', 'upstream_rq_active') === 1, 'the request is on its way');
    const timeoutFloors = { HTTP_DOWNSTREAM_STREAM_IDLE: { minMs: 0, minScale: 0.1 } };
    proxy.dataPlane.updateOverload({ ...NO_OVERLOAD, shortenedTimeouts: 1, timeoutFloors });
    clock.turn(1010);
    assert.equal((await waiting.response()).status, 504);
    assert.equal(proxy.httpStat('downstream_rq_idle_timeout'), 1);
  });
});

/** More than the kernel keeps for a reader that does not read. */
const BODY = Buffer.alloc(24 * 1024 * 1024, 'x');

describe('streams that hold much', () => {
  /** One that holds part of a response for a client that does not read, beside one that holds nothing. */
  async function slowReader(t: TestContext) {
    const upstream = await WireUpstream.start((socket: Socket) => {
      socket.once('data', () => {
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${BODY.length}\r\n\r\n`);
        socket.write(BODY);
      });
    });
    t.after(() => upstream.close());
    const silent = await WireUpstream.start(() => {});
    t.after(() => silent.close());
    const proxy = open(t);
    proxy.cluster('web', [loopback(upstream.port)]);
    proxy.cluster('silent', [loopback(silent.port)]);
    const port = await proxy.http([routeTo('web')]);
    const cheapPort = await proxy.listen(httpManager([routeTo('silent')]));
    const cheap = client(t, cheapPort).write(GET);
    await eventually(() => proxy.clusterStat('silent', 'upstream_rq_active') === 1, 'the other request is on its way');
    const slow = new WireClient(port);
    t.after(() => slow.close());
    slow.socket.pause();
    slow.write(GET);
    await eventually(() => proxy.httpStat('downstream_cx_tx_bytes_buffered') > 1024, 'bytes wait for the client');
    return { proxy, slow, cheap, counter: proxy.counter() };
  }

  it('are ended first, and those that hold less than is asked for stay', async (t) => {
    const { proxy, counter } = await slowReader(t);
    const reset = (fromBytes: number): void => proxy.dataPlane.resetStreams({ fromBytes, countCell: counter.cell });
    reset(2 ** 30);
    assert.equal(counter.read(), 0);
    reset(1024);
    assert.equal(counter.read(), 1);
    assert.equal(proxy.httpStat('downstream_rq_tx_reset'), 1);
    assert.equal(proxy.clusterStat('silent', 'upstream_rq_active'), 1);
    await eventually(() => proxy.clusterStat('web', 'upstream_cx_active') === 0, 'the upstream is let go');
  });
});
