// HTTP/2 clients to HTTP/1.1 upstreams: node:http2 and bare frames, over a real data plane.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, type TestContext, test } from 'node:test';
import { DEFAULT_HTTP2_SETTINGS } from '../../src/config/resources/http2-options.ts';
import { ErrorCode, FrameFlag, FrameType } from '../../src/data-plane/http/codec/http2/frames.ts';
import type { HttpConnectionManagerSettings } from '../../src/snapshot/index.ts';
import { DataPlaneFixture, directRoute, loopback, routeTo } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { answerOf, FrameClient, Http2Client } from '../support/http2-clients.ts';
import { data, frame, headers, POST, word } from '../support/http2-session.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

interface Bench {
  readonly proxy: DataPlaneFixture;
  readonly port: number;
}

async function upstreamOf(t: TestContext, listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

async function proxyTo(
  t: TestContext,
  upstreamPort: number,
  settings: Partial<HttpConnectionManagerSettings> = {},
): Promise<Bench> {
  const proxy = new DataPlaneFixture();
  proxy.cluster('web', [loopback(upstreamPort)], { enableTrailers: true });
  const port = await proxy.http([directRoute('/direct', 200, 'direct'), routeTo('web')], settings);
  t.after(() => proxy.close());
  return { proxy, port };
}

/** Says what it was asked, in JSON. */
const telling: RequestListener = async (request, response) => {
  const body = await text(request);
  const { method, url, headers: fields, trailers } = request;
  response.setHeader('x-told', 'yes');
  response.end(JSON.stringify({ method, url, host: fields.host, fields, body, trailers }));
};

describe('an HTTP/2 client', () => {
  test('is known by its first bytes, and gets answers of an HTTP/1.1 upstream', async (t) => {
    const { proxy, port } = await proxyTo(t, await upstreamOf(t, telling));
    const client = new Http2Client(t, port);
    const [first, second] = await Promise.all([
      client.get('/a?b'),
      client.fetch({ ':method': 'POST', ':path': '/c' }, 'body'),
    ]);
    assert.equal(first.status, 200);
    assert.equal(first.headers['x-told'], 'yes');
    const told = JSON.parse(first.body);
    assert.deepEqual([told.method, told.url, told.host, told.body], ['GET', '/a?b', `127.0.0.1:${port}`, '']);
    const posted = JSON.parse(second.body);
    assert.deepEqual([posted.method, posted.url, posted.body], ['POST', '/c', 'body']);
    assert.equal(proxy.httpStat('downstream_cx_http2_total'), 1);
    assert.equal(proxy.httpStat('downstream_cx_http2_active'), 1);
    assert.equal(proxy.httpStat('downstream_cx_http1_total'), 0);
    assert.equal(proxy.httpStat('downstream_rq_http2_total'), 2);
    assert.equal(proxy.httpStat('downstream_rq_2xx'), 2);
    client.session.destroy();
    await eventually(() => proxy.httpStat('downstream_cx_http2_active') === 0, '0');
    assert.equal(proxy.http2Stat('streams_active'), 0);
  });

  test('is known in whatever pieces its first bytes come', async (t) => {
    const { port } = await proxyTo(t, 1);
    const client = new FrameClient(t, port, Buffer.from('PRI * HT'));
    client.socket.write('TP/2.0\r\n');
    await new Promise((resolve) => client.socket.write('\r\nS', resolve));
    client.send(
      Buffer.from('M\r\n\r\n'),
      frame(FrameType.SETTINGS, 0, 0),
      headers(1, [
        [':method', 'GET'],
        [':scheme', 'http'],
        [':authority', 'a'],
        [':path', '/direct'],
      ]),
    );
    assert.equal(
      (await client.find(({ type, streamId }) => type === FrameType.DATA && streamId === 1))?.payload.toString(),
      'direct',
    );
  });

  test('is refused where only HTTP/1.1 is spoken, and HTTP/1.1 where only HTTP/2 is', async (t) => {
    const one = await proxyTo(t, 1, { codec: 'http1' });
    const client = new WireClient(one.port);
    client.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    assert.match(await client.rest(), /^HTTP\/1.1 (400|505) /);
    assert.equal(one.proxy.httpStat('downstream_cx_http1_total'), 1);
    const two = await proxyTo(t, 1, { codec: 'http2' });
    const other = new FrameClient(t, two.port, Buffer.from('GET / HTTP/1.1\r\nhost: a\r\n\r\n'));
    assert.equal(await other.goaway(), ErrorCode.PROTOCOL_ERROR);
    await other.ended();
    assert.equal(two.proxy.httpStat('downstream_cx_protocol_error'), 1);
  });

  test('gets replies of the proxy, with their body and without', async (t) => {
    const { port } = await proxyTo(t, 1);
    const client = new Http2Client(t, port);
    const direct = await client.get('/direct');
    assert.deepEqual([direct.status, direct.body, direct.headers['content-length']], [200, 'direct', '6']);
    const head = await client.fetch({ ':method': 'HEAD', ':path': '/direct' });
    assert.deepEqual([head.status, head.body], [200, '']);
    const failed = await client.get('/');
    assert.equal(failed.status, 503);
    assert.match(failed.body, /upstream connect error/);
  });

  test('has its large upload taken at the pace of the upstream, and its large answer at its own', async (t) => {
    const size = 3_000_000;
    const { port } = await proxyTo(
      t,
      await upstreamOf(t, (request, response) => {
        response.writeHead(200);
        request.pipe(response);
      }),
      { http2: { ...DEFAULT_HTTP2_SETTINGS, streamWindowBytes: 65_535, connectionWindowBytes: 65_535 } },
    );
    const client = new Http2Client(t, port);
    const bodies = ['a', 'b', 'c'].map((letter) => letter.repeat(size));
    const answers = await Promise.all(bodies.map((body) => client.fetch({ ':method': 'POST', ':path': '/' }, body)));
    assert.deepEqual(
      answers.map(({ body }, index) => body === bodies[index]),
      [true, true, true],
    );
  });

  test('has trailers passed both ways', async (t) => {
    const port = await upstreamOf(t, async (request, response) => {
      await text(request);
      response.writeHead(200, { trailer: 'x-answer' });
      response.write('body');
      response.addTrailers({ 'x-answer': `${request.trailers['x-asked']}` });
      response.end();
    });
    const bench = await proxyTo(t, port);
    const client = new Http2Client(t, bench.port);
    const stream = client.open({ ':method': 'POST', ':path': '/' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-asked': 'yes', 'content-length': '5' }));
    stream.end('asked');
    const answer = await answerOf(stream);
    assert.equal(answer.body, 'body');
    assert.equal(answer.trailers['x-answer'], 'yes');
  });

  test('has its stream reset, and no clean end, when an answer is cut', async (t) => {
    const upstream = await WireUpstream.start((socket) => {
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf'));
    });
    t.after(() => upstream.close());
    const { proxy, port } = await proxyTo(t, upstream.port);
    const client = new Http2Client(t, port);
    const stream = client.open({ ':path': '/' }, { endStream: true });
    stream.on('data', () => {});
    await assert.rejects(once(stream, 'end'), { code: 'ERR_HTTP2_STREAM_ERROR' });
    assert.equal(stream.rstCode, ErrorCode.INTERNAL_ERROR);
    assert.equal((await client.get('/direct')).status, 200);
    assert.equal(proxy.httpStat('downstream_rq_tx_reset'), 1);
  });

  test('ends its request upstream when it resets the stream', async (t) => {
    const closed = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const port = await upstreamOf(t, (request) => {
      asked.resolve();
      request.socket.once('close', () => closed.resolve());
    });
    const { proxy, port: listened } = await proxyTo(t, port);
    const client = new Http2Client(t, listened);
    const stream = client.open({ ':path': '/' }, { endStream: true });
    stream.on('error', () => {});
    await asked.promise;
    stream.close(ErrorCode.CANCEL);
    await closed.promise;
    assert.equal(proxy.httpStat('downstream_rq_rx_reset'), 1);
    assert.equal(proxy.http2Stat('rx_reset'), 1);
    assert.equal((await client.get('/direct')).status, 200);
  });

  test('is told to go on with a request that waits for leave', async (t) => {
    const { port } = await proxyTo(t, await upstreamOf(t, telling));
    const client = new Http2Client(t, port);
    const stream = client.open({ ':method': 'POST', ':path': '/', expect: '100-continue' });
    await once(stream, 'continue');
    stream.end('now');
    assert.equal(JSON.parse((await answerOf(stream)).body).body, 'now');
  });

  test('gets no content of an answer beyond its window, and the upstream is not read ahead', async (t) => {
    const size = 8_000_000;
    let sent = 0;
    const port = await upstreamOf(t, (_request, response) => {
      const chunk = Buffer.alloc(65_536, 'x');
      const write = (): void => {
        while (sent < size) {
          sent += chunk.length;
          if (!response.write(chunk)) return void response.once('drain', write);
        }
        response.end();
      };
      write();
    });
    const { proxy, port: listened } = await proxyTo(t, port);
    const client = new FrameClient(t, listened);
    client.send(headers(1));
    await client.find(({ type }) => type === FrameType.DATA);
    await eventually(() => proxy.clusterStat('web', 'upstream_flow_control_paused_reading_total') > 0, 'a pause');
    const received = (): number =>
      client.frames.filter(({ type }) => type === FrameType.DATA).reduce((sum, { payload }) => sum + payload.length, 0);
    await eventually(() => received() === 65_535, '65_535');
    assert.ok(sent < size, `${sent} bytes were taken`);
    assert.ok(proxy.http2Stat('pending_send_bytes') > 0);
    client.send(
      frame(FrameType.WINDOW_UPDATE, 0, 0, word(20_000_000)),
      frame(FrameType.WINDOW_UPDATE, 0, 1, word(20_000_000)),
    );
    await client.find(({ type, flags }) => type === FrameType.DATA && (flags & FrameFlag.END_STREAM) !== 0);
    assert.equal(received(), sent);
    await eventually(() => proxy.http2Stat('pending_send_bytes') === 0, '0');
  });

  test('gets no credit for content that its upstream does not take', async (t) => {
    const upstream = await WireUpstream.start((socket) => void socket.pause());
    t.after(() => upstream.close());
    const http2 = { ...DEFAULT_HTTP2_SETTINGS, streamWindowBytes: 65_535 };
    const { proxy, port } = await proxyTo(t, upstream.port, { http2 });
    const client = new Http2Client(t, port);
    const stream = client.open({ ':method': 'POST', ':path': '/' });
    stream.on('error', () => {});
    stream.write(Buffer.alloc(9_000_000));
    await eventually(() => proxy.httpStat('downstream_flow_control_paused_reading_total') > 0, 'a pause');
    const before = proxy.httpStat('downstream_cx_rx_bytes_total');
    assert.equal((await client.get('/direct')).body, 'direct');
    assert.ok(proxy.httpStat('downstream_cx_rx_bytes_total') - before < 200_000);
  });

  test('is refused a stream above the number that was announced', async (t) => {
    const { proxy, port } = await proxyTo(t, await upstreamOf(t, () => {}), {
      http2: { ...DEFAULT_HTTP2_SETTINGS, maxConcurrentStreams: 1 },
    });
    const client = new FrameClient(t, port);
    client.send(headers(1), headers(3));
    const reset = await client.ofType(FrameType.RST_STREAM);
    assert.deepEqual([reset?.streamId, reset?.payload.readUInt32BE(0)], [3, ErrorCode.REFUSED_STREAM]);
    assert.equal(proxy.http2Stat('stream_refused_errors'), 1);
  });

  test('has its connection ended by a fault in its message, or with the option its stream', async (t) => {
    const broken = headers(1, [...POST, ['Upper', 'x']]);
    const strict = await proxyTo(t, 1);
    const client = new FrameClient(t, strict.port);
    client.send(broken);
    assert.equal(await client.goaway(), ErrorCode.PROTOCOL_ERROR);
    await client.ended();
    const lenient = await proxyTo(t, 1, { http2: { ...DEFAULT_HTTP2_SETTINGS, isStreamErrorOnInvalidMessage: true } });
    const other = new FrameClient(t, lenient.port);
    other.send(broken);
    assert.equal((await other.ofType(FrameType.RST_STREAM))?.payload.readUInt32BE(0), ErrorCode.PROTOCOL_ERROR);
    assert.equal(lenient.proxy.http2Stat('rx_messaging_error'), 1);
    other.send(data(3, ''));
    assert.equal(await other.goaway(), ErrorCode.PROTOCOL_ERROR);
  });
});
