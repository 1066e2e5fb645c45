// Clients of HTTP/1 and an upstream that speaks HTTP/2: what either sees of the other's messages.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import type { IncomingHttpHeaders } from 'node:http2';
import { describe, test } from 'node:test';
import { FrameType } from '../../src/data-plane/http/codec/http2/frames.ts';
import { eventually } from '../support/eventually.ts';
import { data, frame, headers, word } from '../support/http2-session.ts';
import { ECHO, FrameUpstream, Http2Upstream, http2Proxy, readAll } from '../support/http2-upstream.ts';
import { WireClient } from '../support/wire.ts';

const GET = 'GET / HTTP/1.1\r\nhost: a.example\r\n\r\n';

/** A whole exchange by Node's client. */
async function exchange(
  port: number,
  options: http.RequestOptions = {},
  body: readonly Buffer[] = [],
): Promise<{ response: http.IncomingMessage; body: Buffer }> {
  const request = http.request({ port, host: '127.0.0.1', agent: false, ...options });
  for (const part of body) request.write(part);
  request.end();
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  return { response, body: await readAll(response) };
}

describe('a request to an upstream of HTTP/2', () => {
  test('goes out with pseudo fields, without those of a connection, and is answered', async (t) => {
    let seen: IncomingHttpHeaders = {};
    const upstream = await Http2Upstream.start(t, (stream, headers) => {
      seen = headers;
      stream.respond({ ':status': 203, 'x-told': 'yes' });
      stream.end('answer');
    });
    const { proxy, port } = await http2Proxy(t, upstream.port);
    const headers = { host: 'a.example', connection: 'keep-alive, x-mine', 'x-mine': '1', 'X-Kept': '2' };
    const { response, body } = await exchange(port, { path: '/p?q=1', headers });
    assert.deepEqual(
      [seen[':method'], seen[':path'], seen[':authority'], seen[':scheme'], seen['x-kept']],
      ['GET', '/p?q=1', 'a.example', 'http', '2'],
    );
    assert.deepEqual(
      ['host', 'connection', 'x-mine', 'transfer-encoding'].filter((name) => name in seen),
      [],
    );
    assert.deepEqual(
      [response.statusCode, response.statusMessage, response.headers['x-told'], body.toString()],
      [203, 'Non-Authoritative Information', 'yes', 'answer'],
    );
    assert.equal(proxy.clusterStat('web', 'upstream_cx_http2_total'), 1);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_http1_total'), 0);
  });

  test('shares its connection with all others', async (t) => {
    const upstream = await Http2Upstream.start(t, ECHO);
    const { proxy, port } = await http2Proxy(t, upstream.port);
    const all = Array.from({ length: 50 }, (_, n) => exchange(port, { method: 'POST' }, [Buffer.from(`body ${n}`)]));
    const bodies = (await Promise.all(all)).map(({ body }) => body.toString());
    assert.deepEqual(
      bodies,
      bodies.map((_, n) => `body ${n}`),
    );
    assert.equal(upstream.sessions.length, 1);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_total'), 50);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_active'), 0);
  });

  for (const size of [0, 1, 16_384, 1_000_000]) {
    for (const isAnnounced of [true, false]) {
      test(`takes and brings a body of ${size} bytes ${isAnnounced ? 'of a length' : 'in chunks'}`, async (t) => {
        const upstream = await Http2Upstream.start(t, (stream, headers) => {
          const length = isAnnounced ? { 'content-length': headers['content-length'] } : {};
          stream.respond({ ':status': 200, ...length });
          stream.pipe(stream);
        });
        const { port } = await http2Proxy(t, upstream.port);
        const sent = Buffer.alloc(size, 'abcdefghijklmnop1');
        const headers = isAnnounced ? { 'content-length': size } : { 'transfer-encoding': 'chunked' };
        const { body } = await exchange(port, { method: 'POST', headers }, size === 0 ? [] : [sent]);
        assert.ok(body.equals(sent), `${body.length} of ${size} bytes`);
      });
    }
  }

  test('takes its trailers along, and brings those of the answer', async (t) => {
    const upstream = await Http2Upstream.start(t, (stream) => {
      const trailers = new Promise<string>((resolve) => {
        stream.on('trailers', (fields) => resolve(String(fields['x-end'])));
      });
      stream.respond({ ':status': 200 }, { waitForTrailers: true });
      stream.on('wantTrailers', () => void trailers.then((value) => stream.sendTrailers({ 'x-back': value })));
      stream.resume();
      stream.end('body');
    });
    const { port } = await http2Proxy(t, upstream.port, { manager: { enableTrailers: true } });
    const client = new WireClient(port);
    const chunks = '4\r\nbody\r\n0\r\nX-End: there\r\n\r\n';
    client.write(`POST / HTTP/1.1\r\nhost: a\r\nte: trailers\r\ntransfer-encoding: chunked\r\n\r\n${chunks}`);
    const answer = await client.until(/\r\n0\r\n(.+\r\n)*\r\n/);
    assert.match(answer, /4\r\nbody\r\n0\r\nx-back: there\r\n\r\n$/);
    client.close();
  });

  test('is answered behind interim heads, which go nowhere', async (t) => {
    const upstream = await Http2Upstream.start(t, (stream) => {
      stream.additionalHeaders({ ':status': 103, link: '</a>' });
      stream.respond({ ':status': 200, 'content-length': '2' });
      stream.end('ok');
    });
    const { port } = await http2Proxy(t, upstream.port);
    const client = new WireClient(port).write(GET);
    assert.match(await client.until('\r\n\r\nok'), /^HTTP\/1\.1 200 /);
    client.close();
  });

  test('that waits for leave to send its body gets it here', async (t) => {
    const upstream = await Http2Upstream.start(t, ECHO);
    const { port } = await http2Proxy(t, upstream.port);
    const client = new WireClient(port);
    client.write('POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n');
    await client.until('100 Continue\r\n\r\n');
    client.write('body');
    assert.match(await client.until(/body/), /^HTTP\/1\.1 200 /);
    client.close();
  });

  test('whose answer ends before it does is over for both sides', async (t) => {
    const upstream = await Http2Upstream.start(t, (stream) => {
      stream.respond({ ':status': 403, 'content-length': '2' });
      stream.end('no');
    });
    const { proxy, port } = await http2Proxy(t, upstream.port);
    const client = new WireClient(port);
    client.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\nsome');
    assert.match(await client.until('\r\n\r\nno'), /^HTTP\/1\.1 403 /);
    await eventually(() => upstream.streams[0]!.destroyed, 'the end of the request');
    assert.equal(proxy.clusterStat('web', 'upstream_rq_active'), 0);
    // The connection has lost nothing but that stream.
    assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 1);
    client.close();
  });

  test('that its client gives up is broken off, and its neighbours go on', async (t) => {
    const upstream = await Http2Upstream.start(t, ECHO);
    const { port } = await http2Proxy(t, upstream.port);
    const leaving = new WireClient(port).write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\nsome');
    await leaving.until('some');
    const staying = new WireClient(port).write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 8\r\n\r\nmore');
    await staying.until('more');
    leaving.socket.resetAndDestroy();
    await eventually(() => upstream.streams[0]!.rstCode === 8, 'a reset');
    staying.write('last');
    await staying.until('last');
    assert.equal(upstream.sessions.length, 1);
    staying.close();
  });
});

describe('an answer of an upstream of HTTP/2', () => {
  test('that is cut never looks complete', async (t) => {
    const upstream = await FrameUpstream.start(t, ({ type, streamId }) =>
      type === FrameType.HEADERS
        ? Buffer.concat([
            headers(streamId, [[':status', '200']], 0),
            data(streamId, 'part'),
            frame(FrameType.RST_STREAM, 0, streamId, word(2)),
          ])
        : null,
    );
    const { proxy, port } = await http2Proxy(t, upstream.port);
    const client = new WireClient(port).write(GET);
    await client.until('part');
    await assert.rejects(client.until('0\r\n\r\n'));
    assert.equal(proxy.clusterStat('web', 'upstream_rq_rx_reset'), 1);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 1);
  });

  test('that is reset before its head becomes a 503 of its own reason', async (t) => {
    const upstream = await FrameUpstream.start(t, ({ type, streamId }) =>
      type === FrameType.HEADERS ? frame(FrameType.RST_STREAM, 0, streamId, word(2)) : null,
    );
    const { port } = await http2Proxy(t, upstream.port);
    const { response, body } = await exchange(port);
    assert.equal(response.statusCode, 503);
    assert.match(body.toString(), /reset reason: remote reset$/);
  });

  test('that its client does not take waits within bounds, and holds nobody back', async (t) => {
    const large = Buffer.alloc(64 * 1024);
    let sent = 0;
    const upstream = await Http2Upstream.start(t, (stream, headers) => {
      stream.respond({ ':status': 200 });
      if (headers[':path'] === '/small') {
        stream.end('small');
        return;
      }
      const more = (): void => {
        while (!stream.destroyed && sent < 2 ** 28) {
          sent += large.length;
          if (!stream.write(large)) break;
        }
      };
      stream.on('drain', more);
      more();
    });
    const windows = { streamWindowBytes: 2 ** 20, connectionWindowBytes: 2 ** 20 };
    const { proxy, port } = await http2Proxy(t, upstream.port, { http2: windows });
    const slow = new WireClient(port);
    slow.socket.pause();
    slow.write('GET /large HTTP/1.1\r\nhost: a\r\n\r\n');
    const isPaused = (): boolean => proxy.clusterStat('web', 'upstream_flow_control_paused_reading_total') > 0;
    await eventually(isPaused, 'a pause');
    for (let n = 0; n < 10; n++) assert.equal((await exchange(port, { path: '/small' })).body.toString(), 'small');
    assert.ok(sent < 32 * 2 ** 20, `${sent} bytes`);
    const before = sent;
    // Its bytes are of no interest, and joining megabytes of them takes a busy machine a minute.
    slow.socket.removeAllListeners('data').resume();
    await eventually(() => sent > before + 8 * 2 ** 20, 'more of it');
    slow.close();
  });
});
