// HTTP/1 and HTTP/2 on either side of the proxy: whatever a client speaks and whatever an upstream speaks, a message is the same.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import http2, { type ClientHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { parseFormat } from '../../src/config/resources/format/format-string.ts';
import { DEFAULT_HTTP2_SETTINGS } from '../../src/config/resources/http2-options.ts';
import { DataPlaneFixture, loopback, routeTo } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { Http2Upstream, readAll } from '../support/http2-upstream.ts';

type Version = 'HTTP/1' | 'HTTP/2';

const VERSIONS: readonly Version[] = ['HTTP/1', 'HTTP/2'];
const SIZES = [0, 1, 16_384, 1_000_000];

const PROTOCOLS = {
  name: 'x-protocols',
  value: parseFormat('%PROTOCOL% to %UPSTREAM_PROTOCOL%').segments!,
  action: 'append',
  keepsEmptyValue: false,
} as const;
const ROUTE = { ...routeTo('web'), responseEdits: [{ remove: [], add: [PROTOCOLS] }] };

interface Answer {
  readonly status: number;
  readonly body: Buffer;
  readonly trailers: Readonly<Record<string, unknown>>;
  /** As the proxy has named them. */
  readonly protocols: unknown;
}

/** Sends back body and the trailer `x-end`; a request for /cut is cut. */
async function echoUpstream(t: TestContext, version: Version): Promise<number> {
  if (version === 'HTTP/2') {
    const upstream = await Http2Upstream.start(t, (stream, headers) => {
      if (headers[':path'] === '/cut') {
        // What was not read would make a reset of the end, which may overtake the answer.
        stream.resume().on('end', () => {
          stream.respond({ ':status': 200 });
          stream.write('part', () => stream.session!.destroy());
        });
        return;
      }
      let end = '';
      stream.on('trailers', (fields) => {
        end = String(fields['x-end'] ?? '');
      });
      stream.respond({ ':status': 200 }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'x-end': end }));
      stream.pipe(stream);
    });
    return upstream.port;
  }
  const server = http.createServer((request, response) => {
    if (request.url === '/cut') {
      request.resume().on('end', () => response.write('part', () => request.socket.destroy()));
      return;
    }
    response.writeHead(200, { trailer: 'x-end' });
    request.on('data', (part) => response.write(part));
    request.on('end', () => {
      response.addTrailers({ 'x-end': request.trailers['x-end'] ?? '' });
      response.end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

function session(t: TestContext, port: number): ClientHttp2Session {
  const client = http2.connect(`http://127.0.0.1:${port}`);
  client.on('error', () => {});
  t.after(() => client.destroy());
  return client;
}

async function exchange(t: TestContext, port: number, version: Version, path: string, body: Buffer): Promise<Answer> {
  if (version === 'HTTP/2') {
    const stream = session(t, port).request({ ':method': 'POST', ':path': path }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-end': 'there' }));
    let trailers = {};
    stream.on('trailers', (fields) => {
      trailers = fields;
    });
    stream.end(body);
    const [headers] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders];
    return {
      status: Number(headers[':status']),
      body: await readAll(stream),
      trailers,
      protocols: headers['x-protocols'],
    };
  }
  const headers = { 'transfer-encoding': 'chunked', trailer: 'x-end' };
  const request = http.request({ port, host: '127.0.0.1', agent: false, method: 'POST', path, headers });
  // A cut answer is told of by both.
  request.on('error', () => {});
  request.addTrailers({ 'x-end': 'there' });
  request.end(body);
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  return {
    status: response.statusCode!,
    body: await readAll(response),
    trailers: response.trailers,
    protocols: response.headers['x-protocols'],
  };
}

for (const client of VERSIONS) {
  for (const upstream of VERSIONS) {
    describe(`${client} to ${upstream}`, () => {
      const proxyTo = async (t: TestContext): Promise<{ proxy: DataPlaneFixture; port: number }> => {
        const proxy = new DataPlaneFixture();
        proxy.cluster('web', [loopback(await echoUpstream(t, upstream))], {
          enableTrailers: true,
          ...(upstream === 'HTTP/1' ? {} : { http2: { settings: DEFAULT_HTTP2_SETTINGS, use: 'always' } }),
        });
        t.after(() => proxy.close());
        return { proxy, port: await proxy.http([ROUTE], { enableTrailers: true }) };
      };

      test('passes bodies of all sizes and trailers, both ways', async (t) => {
        const { proxy, port } = await proxyTo(t);
        for (const size of SIZES) {
          const sent = Buffer.alloc(size, 'abcdefghijklmnop1');
          const { status, body, trailers } = await exchange(t, port, client, '/', sent);
          assert.deepEqual([status, body.length, trailers['x-end']], [200, size, 'there'], `${size} bytes`);
          assert.ok(body.equals(sent));
        }
        await eventually(() => proxy.httpStat('downstream_rq_active') === 0, 'the end of all requests');
        assert.equal(proxy.clusterStat('web', 'upstream_rq_active'), 0);
      });

      test('tells logs and headers what either side spoke', async (t) => {
        const { port } = await proxyTo(t);
        const answer = await exchange(t, port, client, '/', Buffer.alloc(0));
        const version = (spoken: Version): string => (spoken === 'HTTP/1' ? 'HTTP/1.1' : spoken);
        assert.equal(answer.protocols, `${version(client)} to ${version(upstream)}`);
      });

      test('passes a cut answer as one that is cut', async (t) => {
        const { port } = await proxyTo(t);
        await assert.rejects(exchange(t, port, client, '/cut', Buffer.alloc(0)));
      });
    });
  }
}

test('a cluster may follow its clients, each with the protocol that it speaks', async (t) => {
  const versions: string[] = [];
  const server = http2.createServer();
  const first = http.createServer((_request, response) => {
    versions.push('HTTP/1');
    response.end();
  });
  server.on('stream', (stream: ServerHttp2Stream) => {
    versions.push('HTTP/2');
    stream.respond({ ':status': 200 }, { endStream: true });
  });
  const proxy = new DataPlaneFixture();
  t.after(() => proxy.close());
  for (const [version, each] of [
    ['HTTP/1', first],
    ['HTTP/2', server],
  ] as const) {
    each.listen(0, '127.0.0.1');
    await once(each, 'listening');
    t.after(() => each.close());
    const address = loopback((each.address() as AddressInfo).port);
    proxy.cluster('web', [address], { http2: { settings: DEFAULT_HTTP2_SETTINGS, use: 'like-client' } });
    const port = await proxy.http([routeTo('web')]);
    assert.equal((await exchange(t, port, version, '/', Buffer.alloc(0))).status, 200);
  }
  assert.deepEqual(versions, VERSIONS);
});

test('what no table may hold is not indexed on either side, whether its request waited or not', async (t) => {
  const neverIndexed = (headers: object): unknown => Reflect.get(headers, http2.sensitiveHeaders);
  const seen: unknown[] = [];
  const upstream = await Http2Upstream.start(t, (stream, headers) => {
    seen.push(neverIndexed(headers));
    stream.respond({ ':status': 200, 'x-pin': '1234', 'x-open': 'o', [http2.sensitiveHeaders]: ['x-pin'] });
    stream.end();
  });
  const proxy = new DataPlaneFixture();
  t.after(() => proxy.close());
  proxy.cluster('web', [loopback(upstream.port)], { http2: { settings: DEFAULT_HTTP2_SETTINGS, use: 'always' } });
  const client = session(t, await proxy.http([routeTo('web')]));
  // The first waits for its connection.
  for (let round = 0; round < 3; round += 1) {
    const stream = client.request({ 'x-key': 'k', 'x-open': 'o', [http2.sensitiveHeaders]: ['x-key'] });
    stream.resume();
    const [headers] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders];
    assert.deepEqual([headers['x-pin'], neverIndexed(headers)], ['1234', ['x-pin']]);
    await once(stream, 'close');
  }
  assert.deepEqual(seen, [['x-key'], ['x-key'], ['x-key']]);
});
