// Upstreams that answer before they have read all of a request, and close: what they said before the reset that
// follows belongs to the client, also when the proxy meets the reset with a write.

import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { DataPlaneFixture, loopback, routeTo } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { connectRoute } from '../support/routes.ts';
import { upgrade } from '../support/tunnel-bench.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

type ReadMode = 'lean' | 'events';

const TRIES = 30;
const BODY = 'no more of it, please';
const HEAD = 'HTTP/1.1 413 Payload Too Large\r\n';
const LAST_CHUNKS = `15\r\n${BODY}\r\n0\r\n\r\n`;
const ANSWERS = {
  'a length': `${HEAD}content-length: ${BODY.length}\r\n\r\n${BODY}`,
  chunks: `${HEAD}transfer-encoding: chunked\r\n\r\n${LAST_CHUNKS}`,
  'the end of its connection': `${HEAD}\r\n${BODY}`,
};
const PIECE = 'u'.repeat(20_000);
const UPLOADS = {
  'with a length': { fields: 'content-length: 99999999', piece: PIECE },
  'in chunks': { fields: 'transfer-encoding: chunked', piece: `${PIECE.length.toString(16)}\r\n${PIECE}\r\n` },
};
/** More than an upstream that does not read takes from its system. */
const PIECES_FIRST = 20;
/** Ways to close; since bytes of the request are unread, each leads to a reset. */
const CLOSES: readonly ((socket: Socket) => void)[] = [
  (socket) => socket.destroy(),
  (socket) => socket.resetAndDestroy(),
  (socket) => socket.end(() => socket.destroy()),
];

interface Setup {
  readonly proxy: DataPlaneFixture;
  readonly upstream: WireUpstream;
  readonly client: () => WireClient;
}

/** An upstream that reads nothing by itself. @param listen opens a listener, and returns its port. */
async function setUp(
  t: TestContext,
  readMode: ReadMode,
  listen: (proxy: DataPlaneFixture) => Promise<number>,
): Promise<Setup> {
  const upstream = await WireUpstream.start((socket) => void socket.setNoDelay(true).pause());
  const proxy = new DataPlaneFixture({ readMode });
  proxy.cluster('web', [loopback(upstream.port)]);
  const port = await listen(proxy);
  const clients: WireClient[] = [];
  t.after(async () => {
    for (const client of clients) client.close();
    await proxy.close();
    await upstream.close();
  });
  return {
    proxy,
    upstream,
    client: () => {
      const client = new WireClient(port);
      clients.push(client);
      return client;
    },
  };
}

/**
 * Sends the start of an upload, and waits until it is on its way to the upstream, or lies before it.
 * @param greeting asks the proxy for a tunnel; none if empty.
 */
async function upload(setup: Setup, start: string, greeting = ''): Promise<[WireClient, Socket]> {
  const { proxy, upstream, client } = setup;
  const connections = upstream.sockets.length;
  const before = proxy.clusterStat('web', 'upstream_cx_tx_bytes_total');
  const wire = client();
  if (greeting !== '') await wire.write(greeting).until('\r\n\r\n');
  wire.write(start);
  const isSent = (): boolean =>
    upstream.sockets.length > connections &&
    wire.socket.writableLength === 0 &&
    proxy.clusterStat('web', 'upstream_cx_tx_bytes_total') >= before + start.length;
  await eventually(isSent, 'the upload is under way');
  return [wire, upstream.sockets.at(-1)!];
}

/** Has the client read nothing until the proxy stops reading the upstream. @returns how many pieces that took. */
async function sendUntilPaused({ proxy }: Setup, wire: WireClient, socket: Socket, piece: string): Promise<number> {
  const isPaused = (): boolean => proxy.clusterStat('web', 'upstream_flow_control_paused_reading_total') > 0;
  wire.socket.pause();
  let pieces = 0;
  while (!isPaused()) {
    const before = proxy.clusterStat('web', 'upstream_cx_rx_bytes_total');
    socket.write(piece);
    pieces++;
    await eventually(
      () => isPaused() || proxy.clusterStat('web', 'upstream_cx_rx_bytes_total') > before,
      'the proxy reads',
    );
  }
  return pieces;
}

/** Closes the upstream's end, and waits until the proxy has written to it after that. */
async function closeAndMeet({ proxy }: Setup, socket: Socket): Promise<void> {
  const before = proxy.clusterStat('web', 'upstream_cx_tx_bytes_total');
  socket.destroy();
  await eventually(() => proxy.clusterStat('web', 'upstream_cx_tx_bytes_total') > before, 'the proxy meets the reset');
}

/** Has the client take a read at a time until the proxy has done with the upstream: much of what it sent is still to come. */
async function takeUntilGone({ proxy }: Setup, wire: WireClient): Promise<void> {
  const pause = (): void => void wire.socket.pause();
  wire.socket.on('data', pause);
  await eventually(() => {
    wire.socket.resume();
    return proxy.clusterStat('web', 'upstream_cx_active') === 0;
  }, 'the proxy has done with the upstream');
  wire.socket.off('data', pause);
}

for (const readMode of ['lean', 'events'] as const) {
  const http = (proxy: DataPlaneFixture): Promise<number> => proxy.http([routeTo('web')]);
  const uploadOf = (way: keyof typeof UPLOADS): string => {
    const { fields, piece } = UPLOADS[way];
    return `POST / HTTP/1.1\r\nhost: x\r\n${fields}\r\n\r\n${piece.repeat(PIECES_FIRST)}`;
  };

  describe(`an early answer and a close, reading by ${readMode}`, () => {
    for (const [framing, answer] of Object.entries(ANSWERS)) {
      for (const way of ['with a length', 'in chunks'] as const) {
        test(`is delivered: an answer framed by ${framing}, an upload ${way}`, async (t) => {
          const setup = await setUp(t, readMode, http);
          let delivered = 0;
          for (let n = 0; n < TRIES; n++) {
            const [wire, socket] = await upload(setup, uploadOf(way));
            // In this order the proxy finds bytes for the upstream before it finds the answer, and the reset by then.
            wire.write(UPLOADS[way].piece);
            socket.write(answer);
            CLOSES[n % CLOSES.length]!(socket);
            const text = await wire.rest();
            if (text.startsWith(HEAD) && text.includes(BODY)) delivered++;
            wire.close();
          }
          assert.equal(delivered, TRIES);
          const { proxy } = setup;
          assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 0);
          assert.equal(proxy.clusterStat('web', 'upstream_rq_active'), 0);
        });
      }
    }

    test('leaves the client its connection until it has the answer, whatever else it sends', async (t) => {
      const setup = await setUp(t, readMode, http);
      const [wire, socket] = await upload(setup, uploadOf('with a length'));
      wire.write(PIECE);
      socket.write(ANSWERS['a length']);
      socket.destroy();
      const { status, head, body } = await wire.response();
      assert.deepEqual([status, body], [413, BODY]);
      assert.match(head, /\r\nconnection: close\r\n/);
      for (let n = 0; n < 50; n++) wire.write(PIECE);
      wire.socket.end();
      assert.equal(await wire.rest(), '');
      assert.equal(wire.error, null);
    });

    for (const [way, close] of Object.entries({ 'a close': CLOSES[0]!, 'a reset': CLOSES[1]! })) {
      test(`that only its end frames is cut when ${way} follows it`, async (t) => {
        const setup = await setUp(t, readMode, http);
        const [wire, socket] = await upload(setup, uploadOf('with a length'));
        wire.write(PIECE);
        socket.write(ANSWERS['the end of its connection']);
        close(socket);
        assert.match(await wire.rest(), new RegExp(`${BODY}\r\n$`));
        await eventually(() => wire.error !== null, 'the client is reset');
      });
    }

    test('that only its end frames is whole when an end follows it', async (t) => {
      const setup = await setUp(t, readMode, http);
      const [wire, socket] = await upload(setup, uploadOf('with a length'));
      wire.write(PIECE);
      socket.write(ANSWERS['the end of its connection']);
      socket.end(() => socket.destroy());
      assert.match(await wire.rest(), new RegExp(`${BODY}\r\n0\r\n\r\n$`));
      assert.equal(wire.error, null);
    });

    test('reaches a client that was slow to take what came before', async (t) => {
      const setup = await setUp(t, readMode, http);
      const [wire, socket] = await upload(setup, uploadOf('with a length'));
      socket.write(`${HEAD}transfer-encoding: chunked\r\n\r\n`);
      const chunks = await sendUntilPaused(setup, wire, socket, UPLOADS['in chunks'].piece);
      wire.write(PIECE);
      socket.write(LAST_CHUNKS);
      await closeAndMeet(setup, socket);
      wire.socket.resume();
      const text = await wire.rest();
      assert.equal(text.split(PIECE).length - 1, chunks);
      assert.ok(text.endsWith(LAST_CHUNKS));
    });
  });
}

const LAST_WORDS = 'these were my last words';

const CONNECT_SETTINGS = { upgrades: [upgrade('connect')] };
const TUNNELS: Readonly<Record<string, { listen: (proxy: DataPlaneFixture) => Promise<number>; greeting: string }>> = {
  'a TCP proxy': { listen: (proxy) => proxy.tcp('web'), greeting: '' },
  'a CONNECT that ends here': {
    listen: (proxy) => proxy.http([connectRoute({ terminatesConnect: true })], CONNECT_SETTINGS),
    greeting: 'CONNECT target.test:443 HTTP/1.1\r\nhost: x\r\n\r\n',
  },
};

for (const readMode of ['lean', 'events'] as const) {
  for (const [name, { listen, greeting }] of Object.entries(TUNNELS)) {
    describe(`the last words of the upstream of ${name}, reading by ${readMode}`, () => {
      test('reach the client before the reset that follows them', async (t) => {
        const setup = await setUp(t, readMode, listen);
        let delivered = 0;
        for (let n = 0; n < TRIES; n++) {
          const [wire, socket] = await upload(setup, PIECE.repeat(PIECES_FIRST), greeting);
          wire.write(PIECE);
          socket.write(LAST_WORDS);
          if (n % 2 === 0) socket.destroy();
          else socket.resetAndDestroy();
          if ((await wire.rest()) === LAST_WORDS) delivered++;
          await eventually(() => wire.error !== null, 'the client is reset');
        }
        assert.equal(delivered, TRIES);
        assert.equal(setup.proxy.clusterStat('web', 'upstream_cx_active'), 0);
      });

      test('reach the client with the end that follows them', async (t) => {
        const setup = await setUp(t, readMode, listen);
        for (let n = 0; n < TRIES; n++) {
          const [wire, socket] = await upload(setup, PIECE.repeat(PIECES_FIRST), greeting);
          wire.write(PIECE);
          socket.end(LAST_WORDS, () => socket.destroy());
          assert.equal(await wire.rest(), LAST_WORDS);
          assert.equal(wire.error, null);
          wire.close();
        }
      });

      test('reach a client that was slow to take what came before', async (t) => {
        const setup = await setUp(t, readMode, listen);
        const [wire, socket] = await upload(setup, PIECE.repeat(PIECES_FIRST), greeting);
        const pieces = await sendUntilPaused(setup, wire, socket, PIECE);
        wire.write(PIECE);
        socket.write(LAST_WORDS);
        await closeAndMeet(setup, socket);
        await takeUntilGone(setup, wire);
        wire.socket.resume();
        const text = await wire.rest();
        assert.equal(text.length, pieces * PIECE.length + LAST_WORDS.length);
        assert.ok(text.endsWith(LAST_WORDS));
        await eventually(() => wire.error !== null, 'the client is reset');
      });
    });
  }
}
