// CONNECT by bytes on the wire: ended here, with plain TCP behind it, or passed on to the next proxy.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { directRoute } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { connectRoute } from '../support/routes.ts';
import { digest, flood, tunnelBench, upgrade } from '../support/tunnel-bench.ts';
import { unusedPort, WireUpstream } from '../support/wire.ts';

const CONNECT = 'CONNECT target.test:443 HTTP/1.1\r\nhost: made.up\r\nx-client: 1\r\n\r\n';
const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
const ESTABLISHED = 'HTTP/1.1 200 Connection established\r\n\r\n';
const SETTINGS = { upgrades: [upgrade('connect')] };

const TERMINATED = { routes: [connectRoute({ terminatesConnect: true })], settings: SETTINGS };
const FORWARDED = { routes: [connectRoute()], settings: SETTINGS };

/** An upstream that sends back what it gets, and ends when the other side has. */
async function echo(t: TestContext): Promise<WireUpstream> {
  const upstream = await WireUpstream.start((socket) => socket.pipe(socket));
  t.after(() => upstream.close());
  return upstream;
}

/** An upstream by hand: its first connection. */
async function oneConnection(t: TestContext): Promise<{ port: number; socket: Promise<Socket> }> {
  const arrived = Promise.withResolvers<Socket>();
  const upstream = await WireUpstream.start((socket) => arrived.resolve(socket));
  t.after(() => upstream.close());
  return { port: upstream.port, socket: arrived.promise };
}

for (const readMode of ['lean', 'events'] as const) {
  describe(`a CONNECT that ends here, reading by ${readMode}`, () => {
    test('is answered with 200 and carries plain bytes', async (t) => {
      const upstream = await echo(t);
      const { proxy, client, entries } = await tunnelBench(t, { ...TERMINATED, upstreamPort: upstream.port, readMode });
      // The first bytes of what is inside come without waiting.
      const wire = client().write(`${CONNECT}early`);
      const head = await wire.until('\r\n\r\n');
      assert.match(head, /^HTTP\/1\.1 200 OK\r\n/);
      assert.doesNotMatch(head, /content-length|transfer-encoding|connection/);
      assert.equal((await wire.bytes(5)).toString(), 'early');
      wire.write(GET);
      assert.equal((await wire.bytes(GET.length)).toString(), GET);
      assert.equal(proxy.httpStat('downstream_cx_upgrades_active'), 1);
      assert.equal(proxy.clusterStat('web', 'upstream_rq_active'), 1);
      assert.equal(proxy.breakerCount('web', 0), 1);
      assert.equal(proxy.breakerCount('web', 8), 1);
      wire.socket.end('last');
      assert.equal(await wire.rest(), 'last');
      await eventually(() => proxy.httpStat('downstream_cx_active') === 0, 'the end of the connection');
      assert.equal(proxy.httpStat('downstream_cx_upgrades_active'), 0);
      assert.equal(proxy.httpStat('downstream_rq_2xx'), 1);
      assert.equal(proxy.clusterStat('web', 'upstream_rq_total'), 1);
      assert.equal(proxy.clusterStat('web', 'upstream_rq_active'), 0);
      assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 0);
      for (const count of [0, 4, 8] as const) assert.equal(proxy.breakerCount('web', count), 0);
      const bytes = 5 + GET.length + 4;
      assert.deepEqual(await entries(), [`200 - via_upstream ${bytes} ${bytes}`]);
    });

    test('tells the upstream whose connection it is, before all else', async (t) => {
      const upstream = await echo(t);
      const routes = [connectRoute({ terminatesConnect: true, connectHeader: { version: 1, tlvs: '' } })];
      const bench = await tunnelBench(t, { ...TERMINATED, routes, upstreamPort: upstream.port, readMode });
      const first = bench.client().write(`${CONNECT}early`);
      await first.until('\r\n\r\n');
      const { localPort } = first.socket;
      const expected = `PROXY TCP4 127.0.0.1 127.0.0.1 ${localPort} ${bench.port}\r\nearly`;
      assert.equal((await first.bytes(expected.length)).toString(), expected);
      // The header of the next one is not a part of the first.
      const second = bench.client().write(CONNECT);
      await second.until('\r\n\r\n');
      assert.match(
        await second.until('\r\n'),
        new RegExp(`^PROXY TCP4 .* ${second.socket.localPort} ${bench.port}\r\n$`),
      );
    });

    test('carries much both ways past a slow reader, unharmed', async (t) => {
      const upstream = await oneConnection(t);
      const { proxy, client } = await tunnelBench(t, { ...TERMINATED, upstreamPort: upstream.port, readMode });
      const wire = client().write(CONNECT);
      await wire.until('\r\n\r\n');
      const server = (await upstream.socket).pause();
      const pausedClient = (): boolean => proxy.httpStat('downstream_flow_control_paused_reading_total') > 0;
      const up = await flood((bytes) => wire.write(bytes), pausedClient);
      assert.equal(await digest(server, up.bytes), up.sha256);
      wire.socket.removeAllListeners('data').pause();
      const pausedServer = (): boolean => proxy.clusterStat('web', 'upstream_flow_control_paused_reading_total') > 0;
      const down = await flood((bytes) => server.write(bytes), pausedServer);
      assert.equal(await digest(wire.socket, down.bytes), down.sha256);
    });

    test('is reset when either side is', async (t) => {
      const first = await oneConnection(t);
      const { proxy, client, entries } = await tunnelBench(t, { ...TERMINATED, upstreamPort: first.port, readMode });
      const wire = client().write(CONNECT);
      await wire.until('\r\n\r\n');
      (await first.socket).resetAndDestroy();
      await wire.rest();
      assert.equal((wire.error as NodeJS.ErrnoException | null)?.code, 'ECONNRESET');
      assert.equal(proxy.clusterStat('web', 'upstream_rq_rx_reset'), 1);
      const other = client().write(CONNECT);
      await other.until('\r\n\r\n');
      other.socket.resetAndDestroy();
      await eventually(() => proxy.httpStat('downstream_rq_active') === 0, 'the end of the stream');
      assert.equal(proxy.clusterStat('web', 'upstream_rq_tx_reset'), 1);
      assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 0);
      const details = 'upstream_reset_after_response_started{connection_termination}';
      assert.deepEqual(await entries(), [`200 UC ${details} 0 0`, '200 DC downstream_remote_disconnect 0 0']);
    });
  });

  describe(`a CONNECT that is passed on, reading by ${readMode}`, () => {
    test('makes a tunnel when the next proxy agrees', async (t) => {
      const upstream = await oneConnection(t);
      const { proxy, client } = await tunnelBench(t, { ...FORWARDED, upstreamPort: upstream.port, readMode });
      const wire = client().write(`${CONNECT}early`);
      const socket = await upstream.socket;
      let text = '';
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString('latin1');
      });
      await eventually(() => text.includes('\r\n\r\n'), 'the request');
      assert.match(text, /^CONNECT target\.test:443 HTTP\/1\.1\r\n/);
      assert.match(text, /\r\nhost: target\.test:443\r\n/);
      assert.doesNotMatch(text, /made\.up|early/);
      // A body is announced in vain (RFC 9110 section 9.3.6).
      socket.write('HTTP/1.1 200 Connection established\r\ncontent-length: 3\r\n\r\nhello');
      const head = await wire.until('\r\n\r\n');
      assert.match(head, /^HTTP\/1\.1 200 Connection established\r\n/);
      assert.doesNotMatch(head, /content-length/);
      assert.equal((await wire.bytes(5)).toString(), 'hello');
      await eventually(() => text.endsWith('early'), 'the early bytes');
      socket.end();
      await wire.rest();
      await eventually(() => proxy.clusterStat('web', 'upstream_cx_active') === 0, 'the end of the upstream');
      assert.equal(proxy.httpStat('downstream_rq_2xx'), 1);
    });

    test('ends its connection when the next proxy refuses', async (t) => {
      const upstream = await oneConnection(t);
      const { proxy, client } = await tunnelBench(t, { ...FORWARDED, upstreamPort: upstream.port, readMode });
      const wire = client().write(CONNECT);
      const socket = await upstream.socket;
      await once(socket, 'data');
      socket.write(
        'HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic\r\ncontent-length: 2\r\n\r\nno',
      );
      const answer = await wire.rest();
      assert.match(answer, /^HTTP\/1\.1 407 .*\r\nproxy-authenticate: Basic\r\n.*\r\n\r\nno$/s);
      assert.match(answer, /\r\nconnection: close\r\n/);
      assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 0);
    });
  });
}

describe('CONNECT', () => {
  test('that nobody has enabled gets a 403; without a route of its own a 404', async (t) => {
    const routes = [directRoute('', 200, 'all')];
    const disabled = await tunnelBench(t, { upstreamPort: 1, routes });
    assert.match(await disabled.client().write(`${CONNECT}${GET}`).rest(), /^HTTP\/1\.1 403 .*\r\n\r\n$/s);
    assert.deepEqual(await disabled.entries(), ['403 - upgrade_failed 0 0']);
    const enabled = await tunnelBench(t, { upstreamPort: 1, routes, settings: SETTINGS });
    assert.match(await enabled.client().write(CONNECT).rest(), /^HTTP\/1\.1 404 .*\r\nconnection: close\r\n\r\n$/s);
    assert.deepEqual(await enabled.entries(), ['404 NR route_not_found 0 0']);
  });

  test('has routes that nothing else matches, enabled there or in the listener', async (t) => {
    const upstream = await echo(t);
    const upgrades = [{ type: 'connect', isEnabled: true }];
    const { client } = await tunnelBench(t, {
      upstreamPort: upstream.port,
      routes: [connectRoute({ terminatesConnect: true, upgrades }), directRoute('/', 200, 'plain')],
      settings: { upgrades: [] },
    });
    assert.equal((await client().write(GET).response()).body, 'plain');
    const wire = client().write(CONNECT);
    assert.match(await wire.until('\r\n\r\n'), / 200 /);
  });

  test('says where its tunnel leads when the route has another host', async (t) => {
    const upstream = await WireUpstream.answering(ESTABLISHED);
    t.after(() => upstream.close());
    const { client } = await tunnelBench(t, {
      upstreamPort: upstream.port,
      routes: [connectRoute({ hostRewrite: { kind: 'literal', value: 'other.test:8443' } })],
      settings: SETTINGS,
    });
    await client().write(CONNECT).until('\r\n\r\n');
    assert.match(upstream.heads[0]!, /^CONNECT other\.test:8443 HTTP\/1\.1\r\nhost: other\.test:8443\r\n/);
  });

  test('answers 503 when there is no connection, and leaves the books balanced', async (t) => {
    const { proxy, client, entries } = await tunnelBench(t, { ...TERMINATED, upstreamPort: await unusedPort() });
    assert.match(await client().write(CONNECT).rest(), /^HTTP\/1\.1 503 .*reset reason: remote connection failure/s);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_connect_fail'), 1);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_pending_active'), 0);
    for (const count of [0, 4, 8] as const) assert.equal(proxy.breakerCount('web', count), 0);
    assert.match((await entries())[0]!, /^503 UF upstream_reset_before_response_started\{remote_connection_failure/);
  });

  test('counts against every limit of its cluster', async (t) => {
    const upstream = await echo(t);
    const limits = { maxConnections: 1, maxPendingRequests: 10, maxRequests: 10, maxRetries: 3 };
    const { proxy, client } = await tunnelBench(t, {
      ...TERMINATED,
      upstreamPort: upstream.port,
      cluster: { circuitBreakers: { default: limits, high: limits } },
    });
    const wire = client().write(CONNECT);
    await wire.until('\r\n\r\n');
    assert.match(await client().write(CONNECT).rest(), /^HTTP\/1\.1 503 .*reset reason: overflow/s);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_overflow'), 1);
    wire.socket.end();
    await wire.rest();
    await eventually(() => proxy.breakerCount('web', 0) === 0, 'the place of the first');
    assert.match(await client().write(CONNECT).until('\r\n\r\n'), / 200 /);
  });

  test('gives up on a connection after the time for it', async (t) => {
    const upstream = await echo(t);
    const clock = new ManualClock();
    const { proxy, client, entries } = await tunnelBench(t, {
      ...TERMINATED,
      upstreamPort: upstream.port,
      clock,
      cluster: { connectTimeoutMs: 100 },
    });
    const wire = client().write(CONNECT);
    await eventually(() => proxy.clusterStat('web', 'upstream_cx_total') === 1, 'an attempt to connect');
    // The loop has not turned since the attempt began: nothing can have come of it.
    clock.turn(200);
    assert.match(await wire.rest(), /^HTTP\/1\.1 503 .*reset reason: connection timeout/s);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_connect_timeout'), 1);
    for (const count of [0, 4, 8] as const) assert.equal(proxy.breakerCount('web', count), 0);
    assert.match((await entries())[0]!, /^503 UF /);
  });
});
