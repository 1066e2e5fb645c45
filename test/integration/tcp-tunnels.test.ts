// The TCP proxy whose bytes go through HTTP proxies: by CONNECT and POST, over HTTP/1.1 and HTTP/2, with another data plane at the
// far end or with servers that see what is on the wire.

import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { parseFormat } from '../../src/config/resources/format/format-string.ts';
import { DEFAULT_HTTP2_SETTINGS } from '../../src/config/resources/http2-options.ts';
import type { HeaderAddition, TcpProxySettings, TcpTunnelSettings } from '../../src/snapshot/index.ts';
import { NO_LIMITS } from '../support/clusters.ts';
import { type ClusterOverrides, DataPlaneFixture, loopback } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { Http2Upstream, readAll } from '../support/http2-upstream.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { connectRoute } from '../support/routes.ts';
import { upgrade } from '../support/tunnel-bench.ts';
import { unusedPort, WireClient, WireUpstream } from '../support/wire.ts';

const HTTP2: ClusterOverrides = { http2: { settings: DEFAULT_HTTP2_SETTINGS, use: 'always' } };
const PROTOCOLS = [
  ['HTTP/1.1', {}],
  ['HTTP/2', HTTP2],
] as const;
const ESTABLISHED = 'HTTP/1.1 200 Connection established\r\nx-via: far\r\n\r\n';
const LOG = '%RESPONSE_FLAGS% %UPSTREAM_REQUEST_ATTEMPT_COUNT% %UPSTREAM_TRANSPORT_FAILURE_REASON% %RESP(X-VIA)%\n';

function tunnel(fields: Partial<TcpTunnelSettings> = {}, hostname = 'target.test:443'): TcpTunnelSettings {
  return {
    method: 'CONNECT',
    hostname: parseFormat(hostname).segments!,
    postPath: '/',
    headerEdits: [],
    keepsResponseHeaders: false,
    keepsResponseTrailers: false,
    ...fields,
  };
}

function added(name: string, value: string): HeaderAddition {
  return { name, value: parseFormat(value).segments!, action: 'append', keepsEmptyValue: false };
}

interface Near {
  readonly proxy: DataPlaneFixture;
  readonly port: number;
  /** Ends the data plane, which flushes its log, and reads it. */
  entries(): Promise<string[]>;
}

/** A TCP proxy whose cluster `raw` holds the HTTP proxies at these ports. */
async function near(
  t: TestContext,
  ports: readonly number[],
  settings: Partial<TcpProxySettings> = {},
  cluster: ClusterOverrides = {},
  clock?: ManualClock,
): Promise<Near> {
  const proxy = new DataPlaneFixture(clock === undefined ? {} : { clock });
  proxy.cluster('raw', ports.map(loopback), cluster);
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-tunnels-'));
  const log = path.join(folder, 'access.log');
  const content = { kind: 'text', segments: parseFormat(LOG).segments! } as const;
  const port = await proxy.tcp('raw', {
    accessLogs: [
      { destination: { kind: 'file', path: log }, format: { content, omitEmptyValues: false }, filter: null },
    ],
    tunnel: tunnel(),
    ...settings,
  });
  const close = async (): Promise<void> => {
    const closed = proxy.close();
    clock?.turn(1000);
    await closed;
  };
  t.after(async () => {
    await close();
    rmSync(folder, { recursive: true });
  });
  return {
    proxy,
    port,
    async entries() {
      await close();
      return readFileSync(log, 'latin1').split('\n').slice(0, -1);
    },
  };
}

/** A data plane that ends CONNECT, in front of an upstream; its port. */
async function far(t: TestContext, upstream: WireUpstream): Promise<{ proxy: DataPlaneFixture; port: number }> {
  const proxy = new DataPlaneFixture();
  proxy.cluster('web', [loopback(upstream.port)]);
  const port = await proxy.http([connectRoute({ terminatesConnect: true })], { upgrades: [upgrade('connect')] });
  t.after(async () => {
    await proxy.close();
    await upstream.close();
  });
  return { proxy, port };
}

/** An HTTP proxy by bytes: says `opening` to a head, and sends back what comes behind it, or what `say` makes of it. */
async function wireProxy(
  t: TestContext,
  opening: (index: number) => string | null,
  say: (text: string) => string = (text) => text,
): Promise<WireUpstream & { heads: string[] }> {
  const heads: string[] = [];
  const upstream = await WireUpstream.start((socket, index) => {
    let head = '';
    socket.on('data', (chunk: Buffer) => {
      if (head.endsWith('\r\n\r\n')) {
        socket.write(say(chunk.toString('latin1')), 'latin1');
        return;
      }
      head += chunk.toString('latin1');
      if (!head.endsWith('\r\n\r\n')) return;
      heads.push(head);
      const answer = opening(index);
      if (answer !== null) socket.write(answer);
    });
    socket.on('end', () => socket.end());
  });
  t.after(() => upstream.close());
  return Object.assign(upstream, { heads });
}

for (const [name, cluster] of PROTOCOLS) {
  describe(`a tunnel by CONNECT over ${name}, ended by another proxy`, () => {
    test('carries 5 MB each way at once to a slow reader on either side', async (t) => {
      const down = randomBytes(5_000_000);
      const up = randomBytes(5_000_000);
      const hash = createHash('sha256');
      const received = Promise.withResolvers<string>();
      const upstream = await WireUpstream.start((socket) => {
        socket.write(down);
        socket.on('data', (chunk: Buffer) => {
          hash.update(chunk);
          socket.pause();
          setImmediate(() => socket.resume());
        });
        socket.on('end', () => received.resolve(hash.digest('hex')));
      });
      const { proxy, port } = await near(t, [(await far(t, upstream)).port], {}, cluster);
      const wire = new WireClient(port);
      const slowly = setInterval(() => (wire.socket.isPaused() ? wire.socket.resume() : wire.socket.pause()), 1);
      t.after(() => clearInterval(slowly));
      wire.socket.end(up);
      assert.ok((await wire.bytes(down.length)).equals(down));
      assert.equal(await received.promise, createHash('sha256').update(up).digest('hex'));
      assert.equal(proxy.tcpStat('downstream_cx_rx_bytes_total'), up.length);
      assert.equal(proxy.tcpStat('downstream_cx_tx_bytes_total'), down.length);
      assert.equal(proxy.clusterStat('raw', 'upstream_rq_total'), 1);
    });

    test('brings the answer that comes behind the end of its client', async (t) => {
      const upstream = await WireUpstream.start((socket) => {
        socket.resume().on('end', () => socket.end('late answer'));
      });
      const { proxy, port, entries } = await near(t, [(await far(t, upstream)).port], {}, cluster);
      const wire = new WireClient(port);
      wire.socket.end('question');
      assert.equal(await wire.rest(), 'late answer');
      await eventually(() => proxy.dataPlane.connectionCount === 0, 'the end');
      assert.equal(proxy.clusterStat('raw', 'upstream_rq_active'), 0);
      assert.deepEqual(await entries(), ['- 1 - -']);
    });

    test('ends behind the last byte of an upstream that ends first', async (t) => {
      const upstream = await WireUpstream.start((socket) => socket.end('greeting'));
      const { proxy, port } = await near(t, [(await far(t, upstream)).port], {}, cluster);
      const wire = new WireClient(port);
      assert.equal(await wire.rest(), 'greeting');
      wire.socket.end();
      await eventually(() => proxy.dataPlane.connectionCount === 0, 'the end');
    });

    test('is seen to have been reset by its client when the upstream has been', async (t) => {
      const upstream = await WireUpstream.start((socket) => socket.once('data', () => socket.resetAndDestroy()));
      const { port } = await near(t, [(await far(t, upstream)).port], {}, cluster);
      const wire = new WireClient(port).write('x');
      await wire.rest();
      assert.equal((wire.error as NodeJS.ErrnoException | null)?.code, 'ECONNRESET');
    });

    test('is broken off for the upstream when its client resets', async (t) => {
      const upstream = await WireUpstream.start((socket) => socket.pipe(socket));
      const { proxy: end, port: farPort } = await far(t, upstream);
      const { port } = await near(t, [farPort], {}, cluster);
      const wire = new WireClient(port).write('x');
      await wire.bytes(1);
      wire.socket.resetAndDestroy();
      await eventually(() => end.clusterStat('web', 'upstream_cx_active') === 0, 'the end behind the far proxy');
    });

    test('holds its client back as long as the upstream does not read, and goes on when it does', async (t) => {
      let received = 0;
      const upstream = await WireUpstream.start((socket) => {
        socket.on('data', (chunk: Buffer) => (received += chunk.length)).pause();
      });
      const { proxy, port } = await near(t, [(await far(t, upstream)).port], {}, cluster);
      const wire = new WireClient(port).write(Buffer.alloc(64_000_000));
      const isHeldBack = (): boolean => proxy.tcpStat('downstream_flow_control_paused_reading_total') > 0;
      await eventually(isHeldBack, 'the client is held back');
      upstream.sockets[0]!.resume();
      await eventually(() => received === 64_000_000, 'all of it');
      wire.close();
    });
  });
}

describe('a TCP proxy that asks for tunnels', () => {
  test('shares one HTTP/2 connection among its clients', async (t) => {
    const upstream = await WireUpstream.start((socket) => socket.pipe(socket));
    const { proxy, port } = await near(t, [(await far(t, upstream)).port], {}, HTTP2);
    const wires = ['a', 'b', 'c'].map((text) => new WireClient(port).write(text));
    for (const [index, wire] of wires.entries()) assert.equal(String(await wire.bytes(1)), 'abc'[index]);
    assert.equal(proxy.clusterStat('raw', 'upstream_cx_total'), 1);
    assert.equal(proxy.clusterStat('raw', 'upstream_rq_active'), 3);
    for (const wire of wires) wire.close();
    await eventually(() => proxy.clusterStat('raw', 'upstream_rq_active') === 0, 'the end of all');
    assert.equal(proxy.clusterStat('raw', 'upstream_cx_active'), 1);
  });

  test('says what its settings say, filled in for each connection', async (t) => {
    const upstream = await wireProxy(t, () => ESTABLISHED);
    const headerEdits = [{ remove: [], add: [added('x-client', '%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%')] }];
    const hostname = '%DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT%:8443';
    const { port } = await near(t, [upstream.port], { tunnel: tunnel({ headerEdits }, hostname) });
    const wire = new WireClient(port).write('ping');
    assert.equal(String(await wire.bytes(4)), 'ping');
    assert.deepEqual(upstream.heads, [
      'CONNECT 127.0.0.1:8443 HTTP/1.1\r\nhost: 127.0.0.1:8443\r\nx-client: 127.0.0.1\r\n\r\n',
    ]);
  });

  test('closes a client whose connection says no name to ask for', async (t) => {
    const upstream = await wireProxy(t, () => ESTABLISHED);
    const { port, entries } = await near(t, [upstream.port], { tunnel: tunnel({}, '%REQUESTED_SERVER_NAME%') });
    assert.equal(await new WireClient(port).rest(), '');
    assert.deepEqual(upstream.heads, []);
    assert.deepEqual(await entries(), ['NR 1 - -']);
  });

  test('asks again while attempts are left, and logs what the last answer said', async (t) => {
    const refusal = 'HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno';
    const upstream = await wireProxy(t, (index) => (index < 2 ? refusal : ESTABLISHED));
    const settings = { maxConnectAttempts: 3, tunnel: tunnel({ keepsResponseHeaders: true }) };
    const { proxy, port, entries } = await near(t, [upstream.port], settings);
    const wire = new WireClient(port).write('ping');
    assert.equal(String(await wire.bytes(4)), 'ping');
    assert.equal(upstream.heads.length, 3);
    wire.socket.end();
    await wire.rest();
    await eventually(() => proxy.dataPlane.connectionCount === 0, 'the end');
    assert.deepEqual(await entries(), ['UF 3 the tunnel was answered with 403 far']);
  });

  test('closes its client when no attempt is left', async (t) => {
    const upstream = await wireProxy(t, () => 'HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n');
    const { proxy, port, entries } = await near(t, [upstream.port], { maxConnectAttempts: 2 });
    assert.equal(await new WireClient(port).rest(), '');
    assert.equal(proxy.clusterStat('raw', 'upstream_cx_connect_attempts_exceeded'), 1);
    assert.deepEqual(await entries(), ['UF,URX 2 the tunnel was answered with 503 -']);
  });

  test('closes its client when there is no host, or nobody who accepts', async (t) => {
    const none = await near(t, []);
    assert.equal(await new WireClient(none.port).rest(), '');
    assert.equal(none.proxy.clusterStat('raw', 'upstream_cx_none_healthy'), 1);
    assert.deepEqual(await none.entries(), ['UH 1 - -']);
    const nobody = await near(t, [await unusedPort()]);
    assert.equal(await new WireClient(nobody.port).rest(), '');
    assert.match((await nobody.entries())[0]!, /^UF,URX 1 delayed connect error:/);
  });

  test('gives up an answer that does not come within the time of a connect', async (t) => {
    const clock = new ManualClock();
    const upstream = await wireProxy(t, () => null);
    const { proxy, port, entries } = await near(t, [upstream.port], {}, { connectTimeoutMs: 5000 }, clock);
    const wire = new WireClient(port);
    await eventually(() => upstream.heads.length === 1, 'the request');
    clock.turn(4900);
    assert.equal(wire.isEnded, false);
    clock.turn(200);
    assert.equal(await wire.rest(), '');
    assert.equal(proxy.clusterStat('raw', 'upstream_rq_timeout'), 1);
    assert.deepEqual(await entries(), ['UF,URX 1 - -']);
  });

  test('gives up a client for which there is no connection in that time', async (t) => {
    const clock = new ManualClock();
    const upstream = await wireProxy(t, () => ESTABLISHED);
    const circuitBreakers = { default: { ...NO_LIMITS, maxConnections: 1 }, high: NO_LIMITS };
    const cluster = { connectTimeoutMs: 5000, circuitBreakers };
    const { proxy, port } = await near(t, [upstream.port], {}, cluster, clock);
    const first = new WireClient(port).write('ping');
    assert.equal(String(await first.bytes(4)), 'ping');
    const second = new WireClient(port);
    await eventually(() => proxy.tcpStat('downstream_cx_total') === 2, 'the other client');
    clock.turn(5100);
    assert.equal(await second.rest(), '');
    assert.equal(upstream.heads.length, 1);
    assert.equal(proxy.clusterStat('raw', 'upstream_rq_pending_active'), 0);
  });

  test('lets go of a request whose client leaves before the answer', async (t) => {
    const upstream = await wireProxy(t, () => null);
    const { proxy, port } = await near(t, [upstream.port]);
    const wire = new WireClient(port);
    await eventually(() => upstream.heads.length === 1, 'the request');
    wire.socket.resetAndDestroy();
    await eventually(() => proxy.clusterStat('raw', 'upstream_rq_active') === 0, 'the end of the request');
    assert.equal(proxy.dataPlane.connectionCount, 0);
  });
});

describe('a tunnel by POST', () => {
  const POST = tunnel({ method: 'POST', postPath: '/carry' }, 'carrier.test');

  test('goes in chunks both ways over HTTP/1.1', async (t) => {
    const opening = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
    const upstream = await wireProxy(t, () => opening);
    const { proxy, port } = await near(t, [upstream.port], { tunnel: POST });
    const wire = new WireClient(port).write('ping');
    assert.equal(String(await wire.bytes(4)), 'ping');
    wire.write('pong!');
    assert.equal(String(await wire.bytes(5)), 'pong!');
    assert.deepEqual(upstream.heads, [
      'POST /carry HTTP/1.1\r\nhost: carrier.test\r\ntransfer-encoding: chunked\r\n\r\n',
    ]);
    // The last chunk comes back, and ends the response.
    wire.socket.end();
    assert.equal(await wire.rest(), '');
    await eventually(() => proxy.dataPlane.connectionCount === 0, 'the end');
  });

  test('is the body of a stream over HTTP/2', async (t) => {
    const seen = Promise.withResolvers<Record<string, unknown>>();
    const body = Promise.withResolvers<Buffer>();
    const upstream = await Http2Upstream.start(t, (stream, headers) => {
      seen.resolve(headers);
      stream.respond({ ':status': 200 });
      stream.write('greeting');
      void readAll(stream).then((bytes) => {
        body.resolve(bytes);
        stream.end(' and farewell');
      });
    });
    const { port } = await near(t, [upstream.port], { tunnel: POST }, HTTP2);
    const wire = new WireClient(port);
    assert.equal(String(await wire.bytes(8)), 'greeting');
    wire.write('one ').socket.end('two');
    assert.equal(await wire.rest(), ' and farewell');
    assert.equal(String(await body.promise), 'one two');
    const { ':method': method, ':path': target, ':authority': authority } = await seen.promise;
    assert.deepEqual([method, target, authority], ['POST', '/carry', 'carrier.test']);
  });

  test('that is answered at once with all there is to say ends with that', async (t) => {
    const upstream = await wireProxy(t, () => 'HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nbye');
    const { port } = await near(t, [upstream.port], { tunnel: POST });
    assert.equal(await new WireClient(port).rest(), 'bye');
  });
});

describe('a TCP proxy whose upstreams wait for data', () => {
  test('connects with the first bytes of its client, and not before', async (t) => {
    const upstream = await WireUpstream.start((socket) => socket.pipe(socket));
    t.after(() => upstream.close());
    const { proxy, port } = await near(t, [upstream.port], { awaitsData: true, tunnel: null });
    const silent = new WireClient(port);
    const talking = new WireClient(port).write('hello');
    assert.equal(String(await talking.bytes(5)), 'hello');
    assert.equal(proxy.tcpStat('downstream_cx_total'), 2);
    assert.equal(proxy.clusterStat('raw', 'upstream_cx_total'), 1);
    // Who leaves without a word has had no upstream.
    silent.socket.end();
    assert.equal(await silent.rest(), '');
    assert.equal(proxy.clusterStat('raw', 'upstream_cx_total'), 1);
  });

  test('closes who says nothing for the idle time', async (t) => {
    const clock = new ManualClock();
    const settings = { awaitsData: true, tunnel: null, idleTimeoutMs: 10_000 };
    const { proxy, port } = await near(t, [await unusedPort()], settings, {}, clock);
    const silent = new WireClient(port);
    await once(silent.socket, 'connect');
    await eventually(() => proxy.tcpStat('downstream_cx_total') === 1, 'the connection');
    clock.turn(10_100);
    assert.equal(await silent.rest(), '');
    assert.equal(proxy.tcpStat('idle_timeout'), 1);
  });
});
