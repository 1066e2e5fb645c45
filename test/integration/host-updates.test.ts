// Members of a cluster that come and go while a worker carries traffic, and how its connections to them are opened.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { type ClusterSnapshot, packClusters } from '../../src/snapshot/index.ts';
import { type ClusterOverrides, DataPlaneFixture, loopback, routeTo } from '../support/data-plane.ts';
import { type EchoUpstream, startEchoUpstream } from '../support/echo-upstream.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { forwardTo, routeFor } from '../support/routes.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

/** Publishes other members; resolves when the worker has confirmed. */
function publish(proxy: DataPlaneFixture, snapshot: ClusterSnapshot): Promise<void> {
  return new Promise((resolve) => proxy.dataPlane.updateClusters(packClusters([snapshot]), [], resolve));
}

/** Whether the promise is still pending once everything that is due has happened. */
async function isPending(promise: Promise<void>): Promise<boolean> {
  let isSettled = false;
  void promise.then(() => {
    isSettled = true;
  });
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  return !isSettled;
}

describe('a set of upstreams that changes under load', () => {
  const CLIENTS = 16;
  const UPDATES = 120;
  let upstreams: EchoUpstream[];

  before(async () => {
    upstreams = await Promise.all(['a', 'b', 'c', 'd'].map(startEchoUpstream));
  });
  after(async () => {
    for (const upstream of upstreams) await upstream[Symbol.asyncDispose]();
  });

  for (const lbPolicy of ['ROUND_ROBIN', 'RANDOM', 'LEAST_REQUEST'] as const) {
    it(`fails no request and loses no count with ${lbPolicy}`, async () => {
      const proxy = new DataPlaneFixture();
      const all = proxy.cluster(
        'web',
        upstreams.map(({ port }) => loopback(port)),
        { lbPolicy },
      );
      const port = await proxy.http([routeTo('web')]);
      let isOver = false;
      let answered = 0;
      const statuses = new Set<number>();
      const client = async (): Promise<void> => {
        const wire = new WireClient(port);
        while (!isOver) {
          statuses.add((await wire.write(GET).response()).status);
          answered++;
        }
        wire.close();
      };
      const clients = Array.from({ length: CLIENTS }, client);
      const applied: Promise<void>[] = [];
      for (let update = 0; update < UPDATES; update++) {
        // Every combination of one to four members comes up.
        const members = [0, 1, 2, 3].filter((index) => ((1 + (update % 15)) >> index) & 1);
        applied.push(publish(proxy, proxy.withMembers(all, ...members)));
        const target = answered + CLIENTS;
        while (answered < target) await new Promise((resolve) => setImmediate(resolve));
      }
      isOver = true;
      await Promise.all(clients);
      applied.push(publish(proxy, proxy.withMembers(all)));
      await Promise.all(applied);
      assert.deepEqual([...statuses], [200]);
      const stat = (name: Parameters<DataPlaneFixture['clusterStat']>[1]): number => proxy.clusterStat('web', name);
      assert.equal(stat('upstream_rq_total'), answered);
      assert.equal(stat('upstream_rq_completed'), answered);
      assert.equal(stat('upstream_rq_active'), 0);
      assert.equal(stat('upstream_cx_total') - stat('upstream_cx_destroy'), stat('upstream_cx_active'));
      assert.equal(stat('upstream_cx_active'), 0);
      for (const count of [0, 4, 8] as const) assert.equal(proxy.breakerCount('web', count), 0);
      await proxy.close();
    });
  }

  it('loses only what is in flight on a host that dies', async () => {
    const dying = await WireUpstream.start((socket) => socket.on('data', () => {}));
    const proxy = new DataPlaneFixture();
    const all = proxy.cluster('web', [loopback(dying.port), loopback(upstreams[0]!.port)]);
    const port = await proxy.http([routeTo('web')]);
    const clients = Array.from({ length: 8 }, () => new WireClient(port).write(GET));
    const answers = Promise.all(clients.map((wire) => wire.response()));
    while (dying.sockets.length < 4) await new Promise((resolve) => setImmediate(resolve));
    const applied = publish(proxy, proxy.withMembers(all, 1));
    for (const socket of dying.sockets) socket.resetAndDestroy();
    await dying.close();
    const statuses = (await answers).map(({ status }) => status).toSorted();
    assert.deepEqual(statuses, [200, 200, 200, 200, 503, 503, 503, 503]);
    await applied;
    for (const wire of clients) assert.equal((await wire.write(GET).response()).status, 200);
    for (const wire of clients) wire.close();
    await proxy.close();
  });
});

describe('a host that has left', () => {
  it('ends its request, and only then does the worker confirm', async () => {
    const upstream = await WireUpstream.start((socket) => socket.on('end', () => socket.end()));
    const other = await WireUpstream.answering(OK);
    const proxy = new DataPlaneFixture();
    const all = proxy.cluster('web', [loopback(upstream.port), loopback(other.port)]);
    await publish(proxy, proxy.withMembers(all, 0));
    const port = await proxy.http([routeTo('web')]);
    const client = new WireClient(port).write(GET);
    while (upstream.sockets.length === 0) await new Promise((resolve) => setImmediate(resolve));
    const [socket] = upstream.sockets;
    await once(socket!, 'data');
    const applied = publish(proxy, proxy.withMembers(all, 1));
    assert.ok(await isPending(applied));
    const second = new WireClient(port).write(GET);
    assert.equal((await second.response()).status, 200);
    // A later update does not wait for the earlier one.
    await publish(proxy, proxy.withMembers(all, 1));
    assert.ok(await isPending(applied));
    const closed = once(socket!, 'end');
    socket!.write(OK);
    assert.equal((await client.response()).body, 'ok');
    await Promise.all([applied, closed]);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 1);
    for (const wire of [client, second]) wire.close();
    await proxy.close();
    await upstream.close();
    await other.close();
  });

  it('keeps a proxied TCP connection, which delays the confirmation until it ends', async () => {
    const upstream = await WireUpstream.start((socket) => socket.pipe(socket));
    const proxy = new DataPlaneFixture();
    const all = proxy.cluster('raw', [loopback(upstream.port)]);
    const client = new WireClient(await proxy.tcp('raw'));
    assert.equal(await client.write('one').until('one'), 'one');
    const applied = publish(proxy, proxy.withMembers(all));
    assert.equal(await client.write('two').until('two'), 'two');
    assert.ok(await isPending(applied));
    client.close();
    await applied;
    await proxy.close();
    await upstream.close();
  });

  it('confirms at once when nobody uses it', async () => {
    const proxy = new DataPlaneFixture();
    const all = proxy.cluster('web', [loopback(1), loopback(2)]);
    await publish(proxy, proxy.withMembers(all));
    await proxy.close();
  });
});

describe('connections of a cluster', () => {
  const running: { proxy: DataPlaneFixture; upstream: WireUpstream }[] = [];
  after(async () => {
    for (const { proxy, upstream } of running) {
      await proxy.close();
      await upstream.close();
    }
  });

  async function setUp(
    overrides: ClusterOverrides = {},
    clock?: ManualClock,
  ): Promise<{ proxy: DataPlaneFixture; upstream: WireUpstream; snapshot: ClusterSnapshot; port: number }> {
    const upstream = await WireUpstream.answering(OK);
    const proxy = new DataPlaneFixture(clock === undefined ? {} : { clock });
    const snapshot = proxy.cluster('web', [loopback(upstream.port), loopback(1)], overrides);
    await publish(proxy, proxy.withMembers(snapshot, 0));
    const port = await proxy.http([routeTo('web')]);
    running.push({ proxy, upstream });
    return { proxy, upstream, snapshot, port };
  }

  it('stay when other hosts come, unless every change of hosts is to renew them', async () => {
    for (const closeConnectionsOnHostSetChange of [false, true]) {
      const { proxy, upstream, snapshot, port } = await setUp({ closeConnectionsOnHostSetChange });
      const client = new WireClient(port).write(GET);
      await client.response();
      await publish(proxy, snapshot);
      await publish(proxy, proxy.withMembers(snapshot, 0));
      await client.write(GET).response();
      client.close();
      assert.equal(upstream.sockets.length, closeConnectionsOnHostSetChange ? 2 : 1);
    }
  });

  it('end after their maximum duration, idle or with the request at hand', async () => {
    const clock = new ManualClock();
    const { proxy, upstream, port } = await setUp({ maxConnectionDurationMs: 10_000 }, clock);
    const client = new WireClient(port).write(GET);
    await client.response();
    clock.turn(9_000);
    await client.write(GET).response();
    assert.equal(upstream.sockets.length, 1);
    clock.turn(2_000);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_max_duration_reached'), 1);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 0);
    await client.write(GET).response();
    assert.equal(upstream.sockets.length, 2);
    client.close();
  });

  it('come from the source address', async () => {
    const { upstream, port } = await setUp({ sourceAddress: { kind: 'ip', ip: '127.0.0.9', port: 0 } });
    const client = new WireClient(port).write(GET);
    assert.equal((await client.response()).status, 200);
    assert.equal(upstream.sockets[0]!.remoteAddress, '127.0.0.9');
    client.close();
  });

  it('fail, and are counted, when the source address is not of this machine', async () => {
    const { proxy, port } = await setUp({ sourceAddress: { kind: 'ip', ip: '192.0.2.1', port: 0 } });
    const client = new WireClient(port).write(GET);
    assert.equal((await client.response()).status, 503);
    assert.equal(proxy.clusterStat('web', 'bind_errors'), 1);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_connect_fail'), 1);
    client.close();
  });

  it('are probed when that is configured', async (test) => {
    const setKeepAlive = test.mock.method(Socket.prototype, 'setKeepAlive');
    const { port } = await setUp({ tcpKeepalive: { probes: 3, timeSeconds: 30, intervalSeconds: 5 } });
    const client = new WireClient(port).write(GET);
    await client.response();
    assert.deepEqual(
      setKeepAlive.mock.calls.map((call) => call.arguments),
      [[true, 30_000, 5000, 3]],
    );
    client.close();
  });

  it('have pools and limits of their own for each routing priority', async () => {
    const limits = { maxConnections: 1, maxPendingRequests: 1, maxRequests: 1, maxRetries: 3 };
    const none = { ...limits, maxPendingRequests: 0 };
    const { proxy } = await setUp({ circuitBreakers: { default: none, high: limits } });
    const port = await proxy.http([
      routeFor('/high', forwardTo('web', { isHighPriority: true })),
      routeFor('/', forwardTo('web')),
    ]);
    const client = new WireClient(port);
    assert.equal((await client.write(GET).response()).status, 503);
    assert.equal((await client.write(GET.replace('/', '/high')).response()).status, 200);
    assert.equal((await client.write(GET).response()).status, 503);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_pending_overflow'), 2);
    client.close();
  });
});
