// A host with several addresses: which of them is tried when, which becomes the connection, and what is counted.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Http1ClientConnection } from '../../../../src/data-plane/http/codec/http1/client-connection.ts';
import { TICK_MS } from '../../../../src/data-plane/network/timer-wheel.ts';
import { TcpUpstream, type TcpUpstreamOwner } from '../../../../src/data-plane/tcp-proxy/tcp-upstream.ts';
import type { PoolClient } from '../../../../src/data-plane/upstream/pool/connection-pool.ts';
import { eventually } from '../../../support/eventually.ts';
import { type FakeUpstreamSocket, UpstreamWorkers } from '../../../support/upstream-workers.ts';

const IPS = ['127.0.0.1', '::1', '127.0.0.2'];
/** After it the next address is tried, at the latest. */
const DELAY_MS = 300;
const CONNECT_TIMEOUT_MS = 5000;

class Client implements PoolClient, TcpUpstreamOwner {
  readonly bufferLimitBytes = 1 << 20;
  readonly events: string[] = [];
  connection: Http1ClientConnection | null = null;

  onStream(connection: Http1ClientConnection): void {
    this.connection = connection;
    this.events.push('connected');
  }

  onPoolFailure(failure: string): void {
    this.events.push(failure);
  }

  onUpstreamConnected(): void {
    this.events.push('connected');
  }

  onUpstreamConnectFailed(_detail: string, failure: string): void {
    this.events.push(failure);
  }

  onUpstreamBytes(_bytes: Buffer, length: number): boolean {
    this.events.push(`${length} bytes`);
    return true;
  }

  onUpstreamEnd(): void {
    this.events.push('end');
  }

  onUpstreamDrain(): void {
    this.events.push('drain');
  }

  onUpstreamClosed(): void {
    this.events.push('closed');
  }
}

function bench(ips: readonly string[] | null = IPS) {
  const sockets: FakeUpstreamSocket[] = [];
  const workers = new UpstreamWorkers(1, (socket) => sockets.push(socket));
  const plain = workers.cluster(1, { connectTimeoutMs: CONNECT_TIMEOUT_MS });
  const connectOrder = ips?.map((ip) => ({ kind: 'ip', ip, port: 1 }) as const);
  const snapshot = { ...plain, hosts: [{ ...plain.hosts[0]!, ...(connectOrder && { connectOrder }) }] };
  const cluster = workers.open(0, snapshot);
  const [host] = cluster.hosts;
  const client = new Client();
  const context = workers.contexts[0]!;
  return {
    client,
    sockets,
    context,
    /** By HTTP. */
    request: () => host!.pools.default.newStream(client),
    /** By TCP. */
    connect: () => {
      assert.ok(host!.tryAcquireConnection(cluster.breaker));
      return new TcpUpstream(context, host!, client, context.clock.monotonicMs(), cluster.breaker);
    },
    pass: (ms: number) => workers.clock.turn(ms),
    tried: () => sockets.map(({ address }) => (address as { readonly ip: string }).ip),
    live: () => sockets.map(({ isLive }) => isLive),
    stat: (name: Parameters<UpstreamWorkers['clusterStat']>[1]) => workers.clusterStat(snapshot, name),
    hostStat: (name: Parameters<UpstreamWorkers['hostStat']>[2]) => workers.hostStat(snapshot, 0, name),
  };
}

describe('a host with several addresses', () => {
  test('is reached at the first of them when that answers in time', () => {
    const { request, client, sockets, tried, pass, stat } = bench();
    request();
    assert.deepEqual(tried(), ['127.0.0.1']);
    pass(DELAY_MS - TICK_MS);
    sockets[0]!.accept();
    assert.deepEqual(client.events, ['connected']);
    assert.deepEqual(client.connection!.remoteAddress, { kind: 'ip', ip: '127.0.0.1', port: 1 });
    pass(10 * DELAY_MS);
    assert.deepEqual(tried(), ['127.0.0.1']);
    assert.equal(stat('upstream_cx_total'), 1);
  });

  test('is tried at the next while one does not answer, and the first to answer is taken', async () => {
    const { request, client, sockets, tried, live, pass, stat, hostStat } = bench();
    request();
    pass(DELAY_MS - TICK_MS);
    assert.deepEqual(tried(), ['127.0.0.1']);
    pass(2 * TICK_MS);
    assert.deepEqual(tried(), ['127.0.0.1', '::1']);
    pass(DELAY_MS + TICK_MS);
    assert.deepEqual(tried(), IPS);
    pass(DELAY_MS + TICK_MS);
    assert.deepEqual(live(), [true, true, true]);
    sockets[1]!.accept();
    assert.deepEqual(client.events, ['connected']);
    assert.deepEqual(live(), [false, true, false]);
    assert.deepEqual(client.connection!.remoteAddress, { kind: 'ip', ip: '::1', port: 1 });
    await null;
    assert.equal(stat('upstream_cx_total'), 3);
    assert.equal(hostStat('cx_total'), 3);
    assert.equal(stat('upstream_cx_active'), 1);
    assert.equal(stat('upstream_cx_connect_fail'), 0);
    assert.equal(stat('upstream_cx_destroy'), 0);
  });

  test('is tried at the next at once when an attempt fails, and with the full time for that one', () => {
    const { request, sockets, tried, pass } = bench();
    request();
    pass(DELAY_MS / 2);
    sockets[0]!.refuse();
    assert.deepEqual(tried(), ['127.0.0.1', '::1']);
    pass(DELAY_MS - TICK_MS);
    assert.deepEqual(tried(), ['127.0.0.1', '::1']);
    pass(2 * TICK_MS);
    assert.deepEqual(tried(), IPS);
  });

  for (const then of ['is tried', 'has failed']) {
    test(`has no more than its addresses, and no time for a next when the last of them ${then}`, () => {
      const { request, sockets, tried, pass, context } = bench();
      request();
      sockets[0]!.refuse();
      sockets[1]!.refuse();
      if (then === 'has failed') {
        sockets[2]!.refuse();
        assert.equal(context.wheel.size, 0);
      }
      assert.deepEqual(tried(), IPS);
      pass(2 * DELAY_MS);
      assert.deepEqual(tried(), IPS);
    });
  }

  test('has failed when the last attempt has, which counts once', () => {
    const { request, client, sockets, stat, hostStat, pass } = bench();
    request();
    sockets[0]!.refuse();
    pass(DELAY_MS + TICK_MS);
    sockets[2]!.refuse();
    assert.deepEqual(client.events, []);
    sockets[1]!.refuse();
    assert.deepEqual(client.events, ['remote connection failure']);
    assert.equal(stat('upstream_cx_connect_fail'), 1);
    assert.equal(hostStat('cx_connect_fail'), 1);
    assert.equal(stat('upstream_cx_total'), 3);
    assert.equal(stat('upstream_cx_active'), 0);
    assert.equal(stat('upstream_cx_destroy'), 1);
  });

  test('has failed after the connect timeout, and all attempts are called off', async () => {
    const { request, client, live, pass, stat, tried } = bench();
    request();
    pass(DELAY_MS + TICK_MS);
    pass(CONNECT_TIMEOUT_MS);
    assert.deepEqual(client.events, ['connection timeout']);
    await eventually(() => live().every((isLive) => !isLive), 'the end of all attempts');
    const count = tried().length;
    pass(10 * DELAY_MS);
    assert.equal(tried().length, count);
    assert.equal(stat('upstream_cx_connect_timeout'), 1);
    assert.equal(stat('upstream_cx_connect_fail'), 1);
  });

  test('brings bytes and its end over the socket that was chosen', () => {
    const { connect, client, sockets, pass, stat, context } = bench();
    const upstream = connect();
    pass(DELAY_MS + TICK_MS);
    assert.equal(stat('upstream_cx_total'), 2);
    sockets[1]!.accept();
    assert.equal(context.wheel.size, 0);
    assert.equal(upstream.remoteAddress, sockets[1]!.address);
    upstream.write(Buffer.from('question'), 8);
    assert.equal(sockets[1]!.received, 'question');
    sockets[1]!.send('answer');
    sockets[1]!.isSlow = true;
    upstream.write(Buffer.from('more'), 4);
    sockets[1]!.take();
    sockets[1]!.close();
    sockets[1]!.finish();
    assert.deepEqual(client.events, ['connected', '6 bytes', 'drain', 'end', 'closed']);
  });

  for (const [what, happens] of [
    ['answers', (socket: FakeUpstreamSocket) => socket.accept()],
    ['fails', (socket: FakeUpstreamSocket) => socket.refuse()],
  ] as const) {
    test(`is let go of by one that gives up, also when an attempt ${what} in the same moment`, async () => {
      const { connect, client, sockets, live, tried, pass } = bench();
      const upstream = connect();
      pass(DELAY_MS + TICK_MS);
      upstream.destroy();
      happens(sockets[0]!);
      // The time for the next attempt comes before the news of the end.
      pass(DELAY_MS + TICK_MS);
      await eventually(() => live().every((isLive) => !isLive), 'the end of all attempts');
      pass(10 * DELAY_MS);
      assert.equal(tried().length, 2);
      assert.deepEqual(client.events, []);
    });
  }

  test('takes nothing more over a socket that was chosen, and says so', () => {
    const { connect, client, sockets, pass } = bench();
    connect();
    sockets[0]!.accept();
    sockets[0]!.failSending();
    pass(CONNECT_TIMEOUT_MS);
    assert.deepEqual(client.events, ['connected', 'closed']);
  });

  test('meets a fault over the socket that was chosen, which is broken off by who tells of that', () => {
    const { connect, client, sockets } = bench();
    connect();
    sockets[0]!.accept();
    sockets[0]!.owner.onFault(new Error('deliberate'));
    assert.deepEqual(client.events, ['connected', 'closed']);
    assert.ok(sockets[0]!.isLive);
  });

  test('is let go of when a fault ends an attempt', () => {
    const { connect, client, sockets, live, pass } = bench();
    connect();
    pass(DELAY_MS + TICK_MS);
    sockets[0]!.owner.onFault(new Error('deliberate'));
    assert.deepEqual(client.events, ['remote connection failure']);
    assert.deepEqual(live(), [false, false]);
  });
});

test('a host with one address is connected to there, and nowhere else', () => {
  const { connect, client, sockets, tried, pass } = bench(null);
  const upstream = connect();
  pass(10 * DELAY_MS);
  sockets[0]!.accept();
  assert.deepEqual(tried(), ['127.0.0.1']);
  assert.deepEqual(client.events, ['connected']);
  assert.equal(upstream.remoteAddress, sockets[0]!.address);
});
