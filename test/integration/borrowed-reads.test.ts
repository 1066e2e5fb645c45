// All clients of a worker that speak HTTP are read into the same memory. What a request waits with must not lie there: here
// another client's bytes come in between.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { FrameFlag, FrameType, PREFACE } from '../../src/data-plane/http/codec/http2/frames.ts';
import type { HttpFilter, HttpFilterRegistry } from '../../src/data-plane/index.ts';
import type { HttpConnectionManagerSettings, ListenerSettings } from '../../src/snapshot/index.ts';
import { DataPlaneFixture, directRoute, httpManager, loopback, routeTo } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { FrameClient, Http2Client } from '../support/http2-clients.ts';
import { plainBlock } from '../support/http2-heads.ts';
import { blockFrames, data, frame, headers, POST, SETTINGS } from '../support/http2-session.ts';
import { filterChain, PROXY_PROTOCOL } from '../support/listeners.ts';
import { digest, flood, SWITCHING, UPGRADE, upgrade } from '../support/tunnel-bench.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
/** One at a time: those behind it wait. */
const ONE_CONNECTION = { maxConnections: 1, maxPendingRequests: 10, maxRequests: 10, maxRetries: 3 };
/** Longer than what any other test has read when it is written over. */
const FILL_BYTES = 50_000;
/** More than any body here has. */
const LONG = 10_000_000_000;

interface Bench {
  readonly proxy: DataPlaneFixture;
  readonly upstream: WireUpstream;
  /** What has come over all of its connections. */
  received(): string;
  /** Answers the request that has come. */
  answer(): void;
  client(): WireClient;
  /** Bytes of another client fill what all are read into. */
  overwrite(): Promise<void>;
  /** Waits until the proxy has read so many bytes more. */
  hasRead(bytes: number, before: number): Promise<void>;
  readonly port: number;
}

type Codec = HttpConnectionManagerSettings['codec'];

async function open(
  t: TestContext,
  listener: Partial<ListenerSettings> = {},
  filter?: HttpFilter,
  codec: Codec = 'auto',
): Promise<Bench> {
  let text = '';
  const upstream = await WireUpstream.start((socket) => {
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
    });
    socket.on('end', () => socket.end());
  });
  const httpFilters: HttpFilterRegistry = {
    test: { requestBody: 'reads', encodes: false, responseBody: 'none', compile: () => () => filter! },
  };
  const proxy = new DataPlaneFixture({ readMode: 'lean', httpFilters });
  proxy.cluster('web', [loopback(upstream.port)], {
    enableTrailers: true,
    circuitBreakers: { default: ONE_CONNECTION, high: ONE_CONNECTION },
  });
  const routes = [directRoute('/here', 200, 'here'), routeTo('web', { timeoutMs: 0 })];
  const overrides = {
    upgrades: [upgrade('websocket')],
    enableTrailers: true,
    httpFilters: filter === undefined ? [] : [{ name: 'test', settings: null }],
  };
  const chains = (of: Codec): ListenerSettings['filterChains'] => [
    filterChain(httpManager(routes, { ...overrides, codec: of })),
  ];
  const [port, direct] = [
    (await proxy.listenWith({ ...listener, filterChains: chains(codec) }))[0]!,
    (await proxy.listenWith({ filterChains: chains('auto') }))[0]!,
  ];
  const clients: WireClient[] = [];
  const client = (to = port): WireClient => {
    const made = new WireClient(to);
    made.socket.setNoDelay(true);
    clients.push(made);
    return made;
  };
  t.after(async () => {
    for (const made of clients) made.close();
    await proxy.close();
    await upstream.close();
  });
  return {
    proxy,
    upstream,
    port,
    client,
    received: () => text,
    answer: () => void upstream.sockets.at(-1)!.write(OK),
    overwrite: async () => {
      const other = client(direct);
      other.write(`GET /here HTTP/1.1\r\nhost: x\r\nx-fill: ${'z'.repeat(FILL_BYTES)}\r\n\r\n`);
      assert.equal((await other.response()).body, 'here');
      other.close();
    },
    hasRead: (bytes, before) =>
      eventually(() => proxy.httpStat('downstream_cx_rx_bytes_total') === before + bytes, `${bytes} bytes`),
  };
}

/** Occupies the one connection, so that what comes next waits. */
async function occupied(
  t: TestContext,
  listener?: Partial<ListenerSettings>,
  opening = '',
  codec: Codec = 'auto',
): Promise<Bench> {
  const bench = await open(t, listener, undefined, codec);
  if (codec === 'http2') new FrameClient(t, bench.port).send(headers(1));
  else bench.client().write(opening + GET);
  await eventually(() => bench.received().endsWith('\r\n\r\n'), 'the first request');
  return bench;
}

/** Writes it at once, and fills the memory when it has been read. */
async function sendOver(
  bench: Bench,
  client: { write(bytes: string | Buffer): void },
  bytes: string | Buffer,
  counted = bytes.length,
): Promise<void> {
  const before = bench.proxy.httpStat('downstream_cx_rx_bytes_total');
  client.write(bytes);
  await bench.hasRead(counted, before);
  await bench.overwrite();
}

/** Frees the connection, and waits for what the upstream gets next. */
async function next(bench: Bench, end: string): Promise<string> {
  const from = bench.received().length;
  bench.answer();
  await eventually(() => bench.received().slice(from).includes('\r\n\r\n') && bench.received().endsWith(end), end);
  return bench.received().slice(from);
}

/** What has come behind the first head from there on. */
function bodyFrom(bench: Bench, from: number): string {
  const text = bench.received().slice(from);
  const end = text.indexOf('\r\n\r\n');
  return end === -1 ? '' : text.slice(end + 4);
}

/** Some client is not read any more, for want of room on the way to its upstream. */
function isPaused({ proxy }: Bench): boolean {
  const resumed = proxy.httpStat('downstream_flow_control_resumed_reading_total');
  return proxy.httpStat('downstream_flow_control_paused_reading_total') > resumed;
}

const BODY = 'abcdefghij'.repeat(30);

describe('another client does not touch', () => {
  test('a body that waits for a connection', async (t) => {
    const bench = await occupied(t);
    const client = bench.client();
    await sendOver(bench, client, `POST /b HTTP/1.1\r\nhost: x\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`);
    const from = bench.received().length;
    bench.answer();
    await eventually(() => bodyFrom(bench, from).length === BODY.length, 'all of its body');
    assert.equal(bodyFrom(bench, from), BODY);
    bench.answer();
    assert.equal((await client.response()).body, 'ok');
  });

  test('chunks whose trailers have begun', async (t) => {
    const bench = await occupied(t);
    const client = bench.client();
    const head = 'POST /c HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n';
    const chunk = `${BODY.length.toString(16)}\r\n${BODY}\r\n`;
    await sendOver(bench, client, `${head}${chunk}0\r\nx-one: 1\r\n`);
    client.write('x-two: 2\r\n\r\n');
    const expected = `${chunk}0\r\nx-one: 1\r\nx-two: 2\r\n\r\n`;
    const from = bench.received().length;
    bench.answer();
    await eventually(() => bodyFrom(bench, from).length === expected.length, 'the request');
    assert.equal(bodyFrom(bench, from), expected);
  });

  test('a request that waits for the answer to the one before', async (t) => {
    const bench = await open(t);
    const client = bench.client();
    client.write(GET);
    await eventually(() => bench.received().endsWith('\r\n\r\n'), 'the first request');
    await sendOver(bench, client, `GET /${BODY} HTTP/1.1\r\nhost: x\r\n\r\n`);
    assert.ok((await next(bench, '\r\n\r\n')).startsWith(`GET /${BODY} HTTP/1.1\r\n`));
  });

  test('the rest of a body behind which another request lies', async (t) => {
    const bench = await open(t);
    const client = bench.client();
    const post = `POST /p HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nbody`;
    await sendOver(bench, client, `${post}GET /${BODY} HTTP/1.1\r\nhost: x\r\n\r\n`);
    await eventually(() => bench.received().endsWith('body'), 'the first request');
    assert.ok((await next(bench, '\r\n\r\n')).startsWith(`GET /${BODY} HTTP/1.1\r\n`));
  });

  test('a head of which a part has come', async (t) => {
    const bench = await open(t);
    const client = bench.client();
    await sendOver(bench, client, `GET /${BODY}`);
    await sendOver(bench, client, ' HTTP/1.1\r\nhost: ');
    client.write('x\r\n\r\n');
    await eventually(() => bench.received().endsWith('\r\n\r\n'), 'the request');
    assert.ok(bench.received().startsWith(`GET /${BODY} HTTP/1.1\r\nhost: x\r\n`));
  });

  test('a long body that the upstream does not read', async (t) => {
    const bench = await open(t);
    const client = bench.client();
    client.write(`POST /l HTTP/1.1\r\nhost: x\r\ncontent-length: ${LONG}\r\n\r\n`);
    await eventually(() => bench.received().endsWith('\r\n\r\n'), 'the head');
    const socket = bench.upstream.sockets[0]!.pause();
    socket.removeAllListeners('data');
    const sent = await flood(
      (bytes) => client.write(bytes),
      () => isPaused(bench),
    );
    await bench.overwrite();
    assert.equal(await digest(socket, sent.bytes), sent.sha256);
  });

  test('what waits in a tunnel', async (t) => {
    const bench = await open(t);
    const client = bench.client();
    client.write(UPGRADE);
    await eventually(() => bench.received().endsWith('\r\n\r\n'), 'the head');
    // It comes before the tunnel does.
    await sendOver(bench, client, BODY);
    const socket = bench.upstream.sockets[0]!;
    const from = bench.received().length;
    socket.write(SWITCHING);
    await eventually(() => bench.received().length === from + BODY.length, 'the first bytes');
    assert.equal(bench.received().slice(from), BODY);
    socket.pause();
    socket.removeAllListeners('data');
    const sent = await flood(
      (bytes) => client.write(bytes),
      () => isPaused(bench),
    );
    await bench.overwrite();
    assert.equal(await digest(socket, sent.bytes), sent.sha256);
  });

  test('the beginning of what turns out to be HTTP/2', async (t) => {
    let kept = 0;
    const filter: HttpFilter = {
      decodeHeaders: (_head, isEnd) => (isEnd ? 'continue' : 'stop'),
      decodeData: ({ bytes, isEnd }) => {
        kept += bytes.length;
        return isEnd ? 'continue' : 'stop';
      },
    };
    const bench = await open(t, {}, filter);
    const fields = [...POST, ['content-length', String(BODY.length + 3)] as const];
    const opening = Buffer.concat([PREFACE, SETTINGS, headers(1, fields, 0), data(1, BODY)]);
    const client = new FrameClient(t, bench.port, opening);
    await eventually(() => kept === BODY.length, 'the first bytes');
    await bench.overwrite();
    client.send(data(1, 'end', FrameFlag.END_STREAM));
    await eventually(() => bodyFrom(bench, 0).length === BODY.length + 3, 'the request');
    assert.equal(bodyFrom(bench, 0), `${BODY}end`);
  });

  for (const codec of ['auto', 'http2'] as const) {
    /** A client whose settings have been read: what it sends from here on is read as HTTP/2 at once. */
    async function frameClient(t: TestContext, { port }: Bench): Promise<{ write(bytes: string | Buffer): void }> {
      const client = new FrameClient(t, port);
      await client.find(({ type, flags }) => type === FrameType.SETTINGS && flags === FrameFlag.ACK);
      return client.socket;
    }

    const name = `over HTTP/2 (${codec})`;

    test(`${name} content that waits for a connection`, async (t) => {
      const bench = await occupied(t, {}, '', codec);
      const client = await frameClient(t, bench);
      const fields = [...POST, ['content-length', String(3 * BODY.length)] as const];
      await sendOver(bench, client, Buffer.concat([headers(1, fields, 0), data(1, BODY)]));
      await sendOver(bench, client, data(1, BODY.toUpperCase()));
      await sendOver(bench, client, data(1, BODY, FrameFlag.END_STREAM));
      const from = bench.received().length;
      bench.answer();
      await eventually(() => bodyFrom(bench, from).length === 3 * BODY.length, 'all of its body');
      assert.equal(bodyFrom(bench, from), BODY + BODY.toUpperCase() + BODY);
    });

    test(`${name} frames of which a part has come`, async (t) => {
      const bench = await open(t, {}, undefined, codec);
      const fields = [...POST, ['content-length', String(BODY.length)] as const, ['x-long', BODY] as const];
      const [first, second] = blockFrames(1, plainBlock(fields), [BODY.length / 2]);
      const ping = frame(FrameType.PING, 0, 0, Buffer.from('12345678'));
      const bytes = Buffer.concat([ping, first!, second!, data(1, BODY, FrameFlag.END_STREAM)]);
      const heads = ping.length + first!.length + second!.length;
      const within = [4, 14, ping.length + 5, ping.length + 100, heads - 10, heads + 7, heads + 50];
      const between = [ping.length, ping.length + first!.length, heads];
      for (const cuts of [within, between]) {
        const client = await frameClient(t, bench);
        const from = bench.received().length;
        let at = 0;
        for (const cut of [...cuts, bytes.length]) {
          await sendOver(bench, client, bytes.subarray(at, cut));
          at = cut;
        }
        await eventually(() => bodyFrom(bench, from).length === BODY.length, 'the body');
        assert.ok(bench.received().slice(from).includes(`\r\nx-long: ${BODY}\r\n`));
        assert.equal(bodyFrom(bench, from), BODY);
        bench.answer();
      }
    });

    test(`${name} a body that the upstream does not read`, async (t) => {
      const bench = await open(t, {}, undefined, codec);
      const client = new Http2Client(t, bench.port);
      const stream = client.open({ ':method': 'POST', ':path': '/l', 'content-length': LONG });
      await eventually(() => bench.received().endsWith('\r\n\r\n'), 'the head');
      const socket = bench.upstream.sockets[0]!.pause();
      socket.removeAllListeners('data');
      const sent = await flood(
        (bytes) => stream.write(bytes),
        () => isPaused(bench),
      );
      await bench.overwrite();
      assert.equal(await digest(socket, sent.bytes), sent.sha256);
    });
  }

  test('what comes behind a listener filter', async (t) => {
    const introduction = 'PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n';
    const bench = await occupied(t, { listenerFilters: [PROXY_PROTOCOL] }, introduction);
    const client = bench.client();
    const post = `POST /b HTTP/1.1\r\nhost: x\r\ncontent-length: ${BODY.length}\r\n\r\n`;
    await sendOver(bench, client, introduction + post + BODY, post.length + BODY.length);
    const from = bench.received().length;
    bench.answer();
    await eventually(() => bodyFrom(bench, from).length === BODY.length, 'all of its body');
    assert.equal(bodyFrom(bench, from), BODY);
  });
});

test('a head that fills the memory to its last byte leaves it to those who come next', async (t) => {
  // Less than Node reads by itself, so that one read brings all of it.
  const limitBytes = 32 * 1024;
  const bench = await open(t, { bufferLimitBytes: limitBytes });
  const client = bench.client();
  const [start, end] = ['GET / HTTP/1.1\r\nhost: x\r\nx-fill: ', '\r\n\r\n'];
  for (let request = 0; request < 3; request++) {
    const from = bench.received().length;
    client.write(`${start}${'f'.repeat(limitBytes - start.length - end.length)}${end}`);
    await eventually(() => bench.received().slice(from).endsWith('\r\n\r\n'), 'the request');
    bench.answer();
    assert.equal((await client.response()).body, 'ok');
  }
});
