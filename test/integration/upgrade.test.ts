// HTTP/1.1 upgrades by bytes on the wire: which are admitted, what both sides see of the heads, when the connection
// becomes a tunnel, and what becomes of bytes that come at the wrong moment.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { directRoute, forwardTo, routeFor, routeTo } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SWITCHING, tunnelBench, UPGRADE, upgrade } from '../support/tunnel-bench.ts';
import { peerEnd, type WireClient, WireUpstream } from '../support/wire.ts';

const GET = 'GET /plain HTTP/1.1\r\nhost: x\r\n\r\n';
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

/** Bytes of one upstream connection, as they come. */
class Received {
  readonly socket: Socket;
  text = '';
  isEnded = false;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.text += chunk.toString('latin1');
    });
    socket.on('end', () => {
      this.isEnded = true;
    });
  }

  async until(part: string): Promise<void> {
    while (!this.text.includes(part)) {
      if (this.isEnded || this.socket.destroyed) throw new Error(`ended before ${part}; received: ${this.text}`);
      await Promise.race(['data', 'end', 'close'].map((event) => once(this.socket, event)));
    }
  }
}

interface Scripted {
  readonly port: number;
  /** The next connection. */
  next(): Promise<Received>;
}

/** An upstream that a test drives, connection by connection. */
async function scripted(t: TestContext): Promise<Scripted> {
  const waiting: Received[] = [];
  const askers: ((received: Received) => void)[] = [];
  const upstream = await WireUpstream.start((socket) => {
    const received = new Received(socket);
    const ask = askers.shift();
    if (ask === undefined) waiting.push(received);
    else ask(received);
  });
  t.after(() => upstream.close());
  return {
    port: upstream.port,
    next: async () => waiting.shift() ?? (await new Promise<Received>((resolve) => askers.push(resolve))),
  };
}

/** Both ends of a tunnel, with nothing sent through it yet. */
async function openTunnel(wire: WireClient, upstream: Scripted): Promise<{ wire: WireClient; server: Received }> {
  wire.write(UPGRADE);
  const server = await upstream.next();
  await server.until('\r\n\r\n');
  server.socket.write(SWITCHING);
  await wire.until('\r\n\r\n');
  return { wire, server };
}

for (const readMode of ['lean', 'events'] as const) {
  describe(`an upgrade, reading by ${readMode}`, () => {
    test('makes a tunnel of both connections, and leaves an entry with its bytes', async (t) => {
      const upstream = await scripted(t);
      const { proxy, client, entries } = await tunnelBench(t, { upstreamPort: upstream.port, readMode });
      const wire = client().write(UPGRADE);
      const server = await upstream.next();
      await server.until('\r\n\r\n');
      assert.match(server.text, /^GET \/chat HTTP\/1\.1\r\n/);
      assert.match(server.text, /\r\nupgrade: websocket\r\n/);
      assert.equal(server.text.match(/\r\nconnection: upgrade\r\n/g)?.length, 1);
      assert.doesNotMatch(server.text, /keep-alive/);
      assert.equal(proxy.httpStat('downstream_cx_upgrades_active'), 1);
      // The first bytes of the new protocol come right behind the head.
      server.socket.write(`${SWITCHING}hello`);
      const head = await wire.until('\r\n\r\n');
      assert.match(head, /^HTTP\/1\.1 101 Switching Protocols\r\n/);
      assert.match(head, /\r\nupgrade: websocket\r\n/);
      assert.match(head, /\r\nconnection: upgrade\r\n/);
      assert.doesNotMatch(head, /content-length|transfer-encoding|close/);
      assert.equal((await wire.bytes(5)).toString(), 'hello');
      // What looks like a request is none.
      wire.write(GET);
      await server.until(GET);
      server.socket.write(OK);
      assert.equal((await wire.bytes(OK.length)).toString(), OK);
      assert.equal(proxy.clusterStat('web', 'upstream_rq_active'), 1);
      assert.equal(proxy.breakerCount('web', 8), 1);
      server.socket.end('bye');
      assert.equal(await wire.rest(), 'bye');
      await eventually(() => proxy.httpStat('downstream_rq_active') === 0, 'the end of the stream');
      assert.equal(proxy.httpStat('downstream_cx_upgrades_active'), 0);
      assert.equal(proxy.httpStat('downstream_cx_upgrades_total'), 1);
      assert.equal(proxy.httpStat('downstream_rq_1xx'), 1);
      assert.equal(proxy.clusterStat('web', 'upstream_rq_active'), 0);
      assert.equal(proxy.breakerCount('web', 8), 0);
      assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 0);
      assert.deepEqual(await entries(), [`101 - via_upstream ${GET.length} ${5 + OK.length + 3}`]);
    });

    test('holds what the client sends before the answer, and sends it on behind a 101', async (t) => {
      const upstream = await scripted(t);
      const { client } = await tunnelBench(t, { upstreamPort: upstream.port, readMode });
      const wire = client().write(`${UPGRADE}${GET}`);
      const server = await upstream.next();
      await server.until('\r\n\r\n');
      wire.write('more');
      assert.ok(server.text.endsWith('\r\n\r\n') && !server.text.includes('/plain'));
      server.socket.write(SWITCHING);
      await wire.until('\r\n\r\n');
      await server.until(`${GET}more`);
    });

    test('that is refused leaves the connection to the next request', async (t) => {
      const upstream = await scripted(t);
      const { proxy, client, entries } = await tunnelBench(t, { upstreamPort: upstream.port, readMode });
      const wire = client().write(UPGRADE);
      const first = await upstream.next();
      await first.until('\r\n\r\n');
      first.socket.write('HTTP/1.1 400 Bad Request\r\ncontent-length: 3\r\nupgrade: other\r\n\r\nno!');
      const { status, head, body } = await wire.response();
      assert.equal(status, 400);
      assert.equal(body, 'no!');
      assert.doesNotMatch(head, /upgrade|connection/);
      wire.write(GET);
      const second = await upstream.next();
      await second.until('\r\n\r\n');
      assert.equal(first.text.includes('/plain'), false);
      second.socket.write(OK);
      assert.equal((await wire.response()).body, 'ok');
      assert.equal(proxy.httpStat('downstream_cx_upgrades_active'), 0);
      assert.deepEqual(await entries(), ['400 - via_upstream 0 3', '200 - via_upstream 0 2']);
    });

    test('that is refused ends the connection when bytes have come too early', async (t) => {
      const upstream = await scripted(t);
      const { proxy, client } = await tunnelBench(t, { upstreamPort: upstream.port, readMode });
      const wire = client().write(`${UPGRADE}${GET}`);
      const server = await upstream.next();
      await server.until('\r\n\r\n');
      server.socket.write('HTTP/1.1 426 Upgrade Required\r\ncontent-length: 2\r\n\r\n');
      assert.match(await wire.until('\r\n\r\n'), /\r\nconnection: close\r\n/);
      server.socket.write('no');
      assert.equal(await wire.rest(), 'no');
      assert.doesNotMatch(server.text, /plain/);
      assert.equal(proxy.httpStat('downstream_rq_total'), 1);
    });

    test('that is refused ends the connection when bytes come while the answer is on its way', async (t) => {
      const upstream = await scripted(t);
      const { proxy, client } = await tunnelBench(t, { upstreamPort: upstream.port, readMode });
      const wire = client().write(UPGRADE);
      const server = await upstream.next();
      await server.until('\r\n\r\n');
      server.socket.write('HTTP/1.1 426 Upgrade Required\r\ncontent-length: 2\r\n\r\n');
      await wire.until('\r\n\r\n');
      const before = proxy.httpStat('downstream_cx_rx_bytes_total');
      wire.write(GET);
      await eventually(
        () => proxy.httpStat('downstream_cx_rx_bytes_total') === before + GET.length,
        'the arrival of the early bytes',
      );
      server.socket.write('no');
      assert.equal(await wire.rest(), 'no');
      assert.equal(proxy.httpStat('downstream_rq_total'), 1);
    });

    test('passes on the end of the client, and goes on the other way', async (t) => {
      const upstream = await scripted(t);
      const { proxy, client, entries } = await tunnelBench(t, { upstreamPort: upstream.port, readMode });
      const { wire, server } = await openTunnel(client(), upstream);
      wire.socket.end('last');
      await server.until('last');
      await eventually(() => server.isEnded, 'the end of the client');
      server.socket.end('answer');
      assert.equal(await wire.rest(), 'answer');
      await eventually(() => proxy.httpStat('downstream_cx_active') === 0, 'the end of the connection');
      assert.equal(proxy.httpStat('downstream_rq_rx_reset'), 0);
      assert.deepEqual(await entries(), ['101 - via_upstream 4 6']);
    });

    test('tells the upstream of a client that has vanished', async (t) => {
      const upstream = await scripted(t);
      const { proxy, client, entries } = await tunnelBench(t, { upstreamPort: upstream.port, readMode });
      const { wire, server } = await openTunnel(client(), upstream);
      wire.socket.resetAndDestroy();
      assert.equal(await peerEnd(server.socket), 'ECONNRESET');
      await eventually(() => proxy.httpStat('downstream_rq_active') === 0, 'the end of the stream');
      assert.equal(proxy.httpStat('downstream_rq_rx_reset'), 1);
      assert.equal(proxy.httpStat('downstream_cx_upgrades_active'), 0);
      assert.deepEqual(await entries(), ['101 DC downstream_remote_disconnect 0 0']);
    });

    test('is reset when the upstream has vanished', async (t) => {
      const upstream = await scripted(t);
      const { proxy, client, entries } = await tunnelBench(t, { upstreamPort: upstream.port, readMode });
      const { wire, server } = await openTunnel(client(), upstream);
      server.socket.resetAndDestroy();
      await wire.rest();
      assert.equal((wire.error as NodeJS.ErrnoException | null)?.code, 'ECONNRESET');
      assert.equal(proxy.httpStat('downstream_rq_tx_reset'), 1);
      const details = 'upstream_reset_after_response_started{connection_termination}';
      assert.deepEqual(await entries(), [`101 UC ${details} 0 0`]);
    });
  });
}

describe('an upgrade', () => {
  test('that nobody has enabled gets a 403, wherever it leads', async (t) => {
    const upstream = await scripted(t);
    const { proxy, client, entries } = await tunnelBench(t, {
      upstreamPort: upstream.port,
      routes: [directRoute('/plain', 200, 'plain'), routeTo('web')],
      settings: { upgrades: [upgrade('websocket', { isEnabled: false })] },
    });
    const wire = client().write(UPGRADE);
    const { status, body, head } = await wire.response();
    assert.equal(status, 403);
    assert.equal(body, '');
    assert.doesNotMatch(head, /connection: close/);
    wire.write(UPGRADE.replace('websocket', 'tcp'));
    assert.equal((await wire.response()).status, 403);
    wire.write(GET);
    assert.equal((await wire.response()).body, 'plain');
    assert.equal(proxy.httpStat('downstream_rq_ws_on_non_ws_route'), 2);
    assert.equal(proxy.httpStat('downstream_cx_upgrades_total'), 0);
    // What follows at once is not taken for a request.
    const eager = client().write(`${UPGRADE}${GET}`);
    assert.match(await eager.rest(), /^HTTP\/1\.1 403 .*\r\nconnection: close\r\n\r\n$/s);
    assert.equal(proxy.httpStat('downstream_rq_total'), 4);
    const refused = '403 - upgrade_failed 0 0';
    assert.deepEqual(await entries(), [refused, refused, '200 - direct_response 0 5', refused]);
  });

  test('is allowed or forbidden by its route, whatever the listener says', async (t) => {
    const upstream = await scripted(t);
    const allowed = forwardTo('web', { upgrades: [{ type: 'other', isEnabled: true }] });
    const forbidden = forwardTo('web', { upgrades: [{ type: 'websocket', isEnabled: false }] });
    const { client } = await tunnelBench(t, {
      upstreamPort: upstream.port,
      routes: [routeFor('/allowed', allowed), routeFor('/forbidden', forbidden)],
    });
    const ask = (path: string, type: string): string =>
      UPGRADE.replace('/chat', path).replace('upgrade: websocket', `upgrade: ${type}`);
    const wire = client().write(ask('/forbidden', 'websocket'));
    assert.equal((await wire.response()).status, 403);
    wire.write(ask('/forbidden', 'other'));
    assert.equal((await wire.response()).status, 403);
    // No route, but the listener would allow it.
    wire.write(ask('/nowhere', 'WebSocket'));
    assert.equal((await wire.response()).status, 404);
    wire.write(ask('/allowed', 'OTHER'));
    const server = await upstream.next();
    await server.until('upgrade: OTHER\r\n');
    server.socket.write(SWITCHING);
    assert.match(await wire.until('\r\n\r\n'), / 101 /);
  });

  test('means nothing from an HTTP/1.0 client, to h2c, or without Connection', async (t) => {
    const upstream = await WireUpstream.answering(OK);
    t.after(() => upstream.close());
    const { client } = await tunnelBench(t, { upstreamPort: upstream.port, settings: { upgrades: [upgrade('h2c')] } });
    const old = client().write(UPGRADE.replace('HTTP/1.1', 'HTTP/1.0'));
    assert.equal((await old.response()).body, 'ok');
    const wire = client();
    wire.write(
      'GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AA\r\n\r\n',
    );
    assert.equal((await wire.response()).body, 'ok');
    wire.write('GET / HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\n\r\n');
    assert.equal((await wire.response()).body, 'ok');
    for (const head of upstream.heads) assert.doesNotMatch(head, /upgrade|http2-settings/i);
    assert.equal(upstream.heads.length, 3);
  });

  test('may bring a body, which goes before it', async (t) => {
    const upstream = await scripted(t);
    const { client } = await tunnelBench(t, { upstreamPort: upstream.port });
    const head =
      'POST /exec HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\ncontent-length: 10\r\n\r\n';
    const wire = client().write(`${head}01234`);
    const server = await upstream.next();
    await server.until('01234');
    wire.write('56789early');
    await server.until('56789');
    server.socket.write(SWITCHING);
    await wire.until('\r\n\r\n');
    await server.until('56789early');
    server.socket.write('late');
    assert.equal((await wire.bytes(4)).toString(), 'late');
  });

  test('is a fault of the upstream before the whole request, unasked for, or without saying to what', async (t) => {
    const upstream = await scripted(t);
    const { client } = await tunnelBench(t, { upstreamPort: upstream.port });
    const post =
      'POST / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\ncontent-length: 9\r\n\r\n1';
    const cases = [
      { request: post, answer: SWITCHING },
      { request: GET, answer: SWITCHING },
      { request: UPGRADE, answer: 'HTTP/1.1 101 Switching Protocols\r\n\r\n' },
    ];
    for (const { request, answer } of cases) {
      const wire = client().write(request);
      const server = await upstream.next();
      await server.until('\r\n\r\n');
      server.socket.write(answer);
      assert.equal((await wire.response()).status, 502);
      await eventually(() => server.isEnded, 'the end of the upstream connection');
    }
  });

  test('outlasts the timeout of its route; silence ends it after the idle timeout of streams', async (t) => {
    const upstream = await scripted(t);
    const clock = new ManualClock();
    const { proxy, client, entries } = await tunnelBench(t, {
      upstreamPort: upstream.port,
      clock,
      routes: [routeTo('web', { timeoutMs: 1000 })],
      settings: { streamIdleTimeoutMs: 10_000 },
    });
    const wire = client().write(UPGRADE);
    const server = await upstream.next();
    await server.until('\r\n\r\n');
    clock.turn(5000);
    server.socket.write(SWITCHING);
    await wire.until('\r\n\r\n');
    for (const text of ['one', 'two']) {
      clock.turn(8000);
      wire.write(text);
      await server.until(text);
      clock.turn(8000);
      server.socket.write(text);
      assert.equal((await wire.bytes(3)).toString(), text);
    }
    clock.turn(10_100);
    await wire.rest();
    assert.equal(proxy.httpStat('downstream_rq_idle_timeout'), 1);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_timeout'), 0);
    assert.deepEqual(await entries(), ['101 SI stream_idle_timeout 6 6']);
  });

  test('without an answer ends with the idle timeout of streams', async (t) => {
    const upstream = await scripted(t);
    const clock = new ManualClock();
    const { client } = await tunnelBench(t, {
      upstreamPort: upstream.port,
      clock,
      settings: { streamIdleTimeoutMs: 10_000 },
    });
    const wire = client().write(UPGRADE);
    const server = await upstream.next();
    await server.until('\r\n\r\n');
    clock.turn(10_100);
    assert.equal((await wire.response()).status, 408);
  });

  test('is sent once more when its pooled connection had been closed', async (t) => {
    const upstream = await scripted(t);
    const { proxy, client } = await tunnelBench(t, { upstreamPort: upstream.port });
    const wire = client().write(GET);
    const first = await upstream.next();
    await first.until('\r\n\r\n');
    first.socket.write(OK);
    await wire.response();
    // The upstream closes as soon as it hears anything more.
    first.socket.once('data', () => first.socket.destroy());
    wire.write(UPGRADE);
    const second = await upstream.next();
    await second.until('\r\n\r\n');
    second.socket.write(SWITCHING);
    assert.match(await wire.until('\r\n\r\n'), / 101 /);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_retry'), 1);
  });

  test('when the process ends, goes on while bytes move, and ends when they do not', async (t) => {
    const upstream = await scripted(t);
    const clock = new ManualClock();
    const settings = { streamIdleTimeoutMs: 0 };
    const { proxy, client } = await tunnelBench(t, { upstreamPort: upstream.port, clock, settings });
    const busy = await openTunnel(client(), upstream);
    const silent = await openTunnel(client(), upstream);
    const ended = proxy.dataPlane.shutdown(60_000);
    await eventually(() => clock.timerCount > 0, 'the stop waits');
    for (let i = 0; i < 5; i += 1) {
      clock.turn(200);
      if (i % 2 === 0) {
        busy.wire.write(`client ${i}.`);
        await busy.server.until(`client ${i}.`);
      } else {
        busy.server.socket.write('upstream');
        await busy.wire.bytes(8);
      }
    }
    assert.equal(await silent.wire.rest(), '');
    assert.equal(proxy.dataPlane.connectionCount, 1);
    clock.turn(300);
    assert.equal(await busy.wire.rest(), '');
    clock.turn(100);
    await ended;
    assert.equal(proxy.httpStat('downstream_rq_idle_timeout'), 0);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 0);
  });

  test('ends with the data plane, within its time', async (t) => {
    const upstream = await scripted(t);
    const clock = new ManualClock();
    const { proxy, client } = await tunnelBench(t, { upstreamPort: upstream.port, clock });
    const { wire, server } = await openTunnel(client(), upstream);
    const ended = proxy.dataPlane.shutdown(1000);
    wire.write('still');
    await server.until('still');
    let hasEnded = false;
    void ended.then(() => {
      hasEnded = true;
    });
    await eventually(() => {
      clock.turn(100);
      return hasEnded;
    }, 'the end of the shutdown');
    await wire.rest();
    assert.equal(proxy.httpStat('downstream_cx_upgrades_active'), 0);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 0);
  });
});
