// How much a connection keeps for a peer that does not read: no more than its limits, also when these are small, and all
// of it comes in the end. By the gauges of bytes that wait, at every turn while the other side sends.

import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { NODE_READ_BYTES } from '../../src/data-plane/network/shared-reads.ts';
import type { ReadMode } from '../../src/data-plane/network/socket-events.ts';
import type { TerminalFilterSettings } from '../../src/snapshot/index.ts';
import { DataPlaneFixture, httpManager, loopback, routeTo, tcpProxy } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { filterChain } from '../support/listeners.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

/** More than the kernel keeps for a reader that does not read. */
const BODY_BYTES = 24 * 1024 * 1024;
const DEFAULT_LIMIT = 1024 * 1024;
/** Room for the head before the first bytes of a body. */
const HEAD_BYTES = 500;
/** Turns without a byte after which nothing is on its way any more; fewer would only make the test weaker. */
const QUIET_TURNS = 300;

interface Limits {
  readonly listener: number;
  readonly cluster: number;
  /** Bytes that may wait. */
  readonly expected: number;
  readonly readMode?: ReadMode;
}

const LIMITS: readonly Limits[] = [
  { listener: 1000, cluster: DEFAULT_LIMIT, expected: 1024 },
  { listener: 1000, cluster: DEFAULT_LIMIT, expected: 1024, readMode: 'events' },
  { listener: 20_000, cluster: 20_000, expected: 20_000 },
  { listener: DEFAULT_LIMIT, cluster: DEFAULT_LIMIT, expected: DEFAULT_LIMIT },
];
/**
 * Of what comes from upstreams the lower limit holds; what comes from clients has been read under the listener's. Where Node
 * reads from upstreams in its own way, it reads as much as it likes to.
 */
const RESPONSE_LIMITS: readonly Limits[] = [
  ...LIMITS.map((limits) => (limits.readMode === 'events' ? { ...limits, expected: NODE_READ_BYTES } : limits)),
  { listener: DEFAULT_LIMIT, cluster: 1000, expected: 1024 },
];

interface Wire {
  readonly proxy: DataPlaneFixture;
  readonly client: WireClient;
  /** The upstream's end of the connection. */
  readonly upstream: Promise<Socket>;
}

async function wire(t: TestContext, limits: Limits, filter: TerminalFilterSettings): Promise<Wire> {
  const connected = Promise.withResolvers<Socket>();
  const server = await WireUpstream.start((socket) => {
    socket.pause();
    connected.resolve(socket);
  });
  const proxy = new DataPlaneFixture(limits.readMode === undefined ? {} : { readMode: limits.readMode });
  proxy.cluster('web', [loopback(server.port)], { bufferLimitBytes: limits.cluster });
  const [port] = await proxy.listenWith({ bufferLimitBytes: limits.listener, filterChains: [filterChain(filter)] });
  const client = new WireClient(port!);
  t.after(async () => {
    client.close();
    await proxy.close();
    await server.close();
  });
  return { proxy, client, upstream: connected.promise };
}

/** Waits until nothing moves. @returns the most that has waited. */
async function mostWaiting(waiting: () => number, moved: () => number): Promise<number> {
  let most = 0;
  let last = -1;
  let quietTurns = 0;
  await eventually(() => {
    most = Math.max(most, waiting());
    quietTurns = moved() === last && waiting() > 0 ? quietTurns + 1 : 0;
    last = moved();
    return quietTurns > QUIET_TURNS;
  }, 'a stall');
  return most;
}

function assertLimited(most: number, { expected }: Limits): void {
  assert.ok(most > 0 && most <= expected + HEAD_BYTES, `${most} bytes waited, ${expected} may`);
}

/** Reads so many bytes, of which none has been read yet. */
async function readAll(socket: Socket, count: number): Promise<void> {
  let received = 0;
  socket.on('data', (chunk: Buffer) => {
    received += chunk.length;
  });
  socket.resume();
  await eventually(() => received >= count, 'the last byte');
  assert.equal(received, count);
}

const BODY = Buffer.alloc(BODY_BYTES, 'x');
const ANSWER = `HTTP/1.1 200 OK\r\ncontent-length: ${BODY_BYTES}\r\n\r\n`;
const GET = 'GET / HTTP/1.1\r\nhost: h\r\n\r\n';
const POST = `POST / HTTP/1.1\r\nhost: h\r\ncontent-length: ${BODY_BYTES}\r\n\r\n`;
const HTTP = httpManager([routeTo('web', { timeoutMs: 0 })]);

describe('bytes that wait', () => {
  for (const limits of RESPONSE_LIMITS) {
    const { listener, cluster, readMode = 'lean' } = limits;
    const name = `under limits of ${listener} and ${cluster} (${readMode})`;

    test(`for a client of HTTP ${name}`, async (t) => {
      const { proxy, client, upstream } = await wire(t, limits, HTTP);
      client.socket.pause();
      client.write(GET);
      (await upstream).write(ANSWER);
      (await upstream).write(BODY);
      const most = await mostWaiting(
        () => proxy.httpStat('downstream_cx_tx_bytes_buffered'),
        () => proxy.clusterStat('web', 'upstream_cx_rx_bytes_total'),
      );
      assertLimited(most, limits);
      client.socket.removeAllListeners('data');
      let received = '';
      let bodyBytes = 0;
      client.socket.on('data', (chunk: Buffer) => {
        const isHead = !received.includes('\r\n\r\n');
        if (isHead) received += chunk.toString('latin1');
        bodyBytes = isHead ? received.length - received.indexOf('\r\n\r\n') - 4 : bodyBytes + chunk.length;
      });
      client.socket.resume();
      await eventually(() => bodyBytes === BODY_BYTES, 'the whole body');
      await eventually(() => proxy.httpStat('downstream_cx_tx_bytes_buffered') === 0, 'an empty gauge');
    });

    test(`for a client of TCP ${name}`, async (t) => {
      const { proxy, client, upstream } = await wire(t, limits, tcpProxy('web'));
      client.socket.pause();
      client.socket.removeAllListeners('data');
      (await upstream).write(BODY);
      const most = await mostWaiting(
        () => proxy.tcpStat('downstream_cx_tx_bytes_buffered'),
        () => proxy.clusterStat('web', 'upstream_cx_rx_bytes_total'),
      );
      assertLimited(most, limits);
      await readAll(client.socket, BODY_BYTES);
      await eventually(() => proxy.tcpStat('downstream_cx_tx_bytes_buffered') === 0, 'an empty gauge');
    });
  }

  for (const limits of LIMITS) {
    const { listener, readMode = 'lean' } = limits;
    const name = `under a limit of ${listener} (${readMode})`;

    test(`for an upstream of HTTP ${name}`, async (t) => {
      const { proxy, client, upstream } = await wire(t, limits, HTTP);
      client.write(POST).write(BODY);
      const most = await mostWaiting(
        () => proxy.clusterStat('web', 'upstream_cx_tx_bytes_buffered'),
        () => proxy.httpStat('downstream_cx_rx_bytes_total'),
      );
      assertLimited(most, limits);
      const head = proxy.clusterStat('web', 'upstream_cx_tx_bytes_total') - bodyBytesRead(proxy);
      await readAll(await upstream, BODY_BYTES + head);
      await eventually(() => proxy.clusterStat('web', 'upstream_cx_tx_bytes_buffered') === 0, 'an empty gauge');
    });

    test(`for an upstream of TCP ${name}`, async (t) => {
      const { proxy, client, upstream } = await wire(t, limits, tcpProxy('web'));
      client.write(BODY);
      const most = await mostWaiting(
        () => proxy.clusterStat('web', 'upstream_cx_tx_bytes_buffered'),
        () => proxy.tcpStat('downstream_cx_rx_bytes_total'),
      );
      assertLimited(most, limits);
      await readAll(await upstream, BODY_BYTES);
      await eventually(() => proxy.clusterStat('web', 'upstream_cx_tx_bytes_buffered') === 0, 'an empty gauge');
    });
  }

  test('are given back to the gauges by connections that end', async (t) => {
    const limits = LIMITS[0]!;
    const { proxy, client } = await wire(t, limits, HTTP);
    client.write(POST).write(BODY);
    await mostWaiting(
      () => proxy.clusterStat('web', 'upstream_cx_tx_bytes_buffered'),
      () => proxy.httpStat('downstream_cx_rx_bytes_total'),
    );
    // An end would wait behind bytes that nobody reads.
    client.socket.resetAndDestroy();
    await eventually(() => proxy.clusterStat('web', 'upstream_cx_active') === 0, 'no connection');
    assert.equal(proxy.clusterStat('web', 'upstream_cx_tx_bytes_buffered'), 0);
    assert.equal(proxy.httpStat('downstream_cx_rx_bytes_buffered'), 0);
  });

  test('for their turn are counted until it comes', async (t) => {
    const { proxy, client, upstream } = await wire(t, LIMITS[0]!, HTTP);
    client.write(GET);
    await upstream;
    client.write(GET);
    await eventually(() => proxy.httpStat('downstream_cx_rx_bytes_buffered') === GET.length, 'a request that waits');
    const socket = await upstream;
    socket.write('HTTP/1.1 200 OK\r\nx-half');
    await eventually(() => proxy.clusterStat('web', 'upstream_cx_rx_bytes_buffered') === 23, 'half a head');
    socket.write(': 1\r\ncontent-length: 0\r\n\r\n');
    await client.response();
    assert.equal(proxy.clusterStat('web', 'upstream_cx_rx_bytes_buffered'), 0);
    assert.equal(proxy.httpStat('downstream_cx_rx_bytes_buffered'), 0);
  });
});

function bodyBytesRead(proxy: DataPlaneFixture): number {
  return proxy.httpStat('downstream_cx_rx_bytes_total') - POST.length;
}
