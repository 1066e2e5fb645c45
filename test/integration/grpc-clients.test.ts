// Clients of `@grpc/grpc-js`, over HTTP/2, through a real data plane: all four kinds of call, statuses behind bodies and in heads,
// replies of the proxy. Behind it a server of `@grpc/grpc-js`, and a service that speaks gRPC over HTTP/1.1, with chunks and
// trailers. Browsers and clients of HTTP/1.1 get to that server by the filters that there are for them.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { DEFAULT_HTTP2_SETTINGS } from '../../src/config/resources/http2-options.ts';
import type { HttpFilterSettings } from '../../src/snapshot/index.ts';
import { DataPlaneFixture, directRoute, loopback, routeTo } from '../support/data-plane.ts';
import { framed, type GrpcService, grpcService, METHODS, read, takeMessages, write } from '../support/grpc-calls.ts';

function serve(request: IncomingMessage, response: ServerResponse): void {
  const type = { 'content-type': 'application/grpc' };
  if (request.url === '/test.Service/Refuse') {
    response.writeHead(200, { ...type, 'grpc-status': '7', 'grpc-message': 'not %C3%BC', 'content-length': '0' }).end();
    return;
  }
  const { each, all } = METHODS[request.url!] ?? {};
  response.writeHead(200, { ...type, trailer: 'grpc-status' }).flushHeaders();
  const texts: string[] = [];
  let body = Buffer.alloc(0);
  request.on('data', (chunk: Buffer) => {
    const { messages, rest } = takeMessages(Buffer.concat([body, chunk]));
    body = Buffer.from(rest);
    for (const message of messages) {
      texts.push(message.toString());
      for (const answer of each?.(message.toString()) ?? []) response.write(framed(answer));
    }
  });
  request.on('end', () => {
    for (const answer of all?.(texts) ?? []) response.write(framed(answer));
    const isKnown = request.url! in METHODS;
    response.addTrailers({
      'grpc-status': isKnown ? '0' : '12',
      'grpc-message': isKnown ? '' : 'no such method',
      'x-end': 'yes',
    });
    response.end();
  });
}

async function chunkedService(): Promise<GrpcService> {
  const server = createServer(serve);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { port: (server.address() as AddressInfo).port, close };
}

interface Bench {
  readonly proxy: DataPlaneFixture;
  readonly port: number;
  readonly client: Client;
}

const STATS: HttpFilterSettings = {
  name: 'filters.http.grpc_stats',
  settings: { countsAllMethods: true, methods: [], countsTimes: false },
};
const ALWAYS_HTTP2 = { http2: { settings: DEFAULT_HTTP2_SETTINGS, use: 'always' } } as const;

async function benchOf(t: TestContext, isHttp2: boolean, filters: readonly HttpFilterSettings[] = []): Promise<Bench> {
  const upstream = await (isHttp2 ? grpcService() : chunkedService());
  const proxy = new DataPlaneFixture();
  proxy.cluster('web', [loopback(upstream.port)], isHttp2 ? ALWAYS_HTTP2 : { enableTrailers: true });
  proxy.cluster('empty', []);
  const routes = [
    directRoute('/test.Direct', 403, 'not you'),
    routeTo('empty', { prefix: '/test.Empty' }),
    routeTo('web'),
  ];
  const port = await proxy.http(routes, { httpFilters: [...filters, STATS] });
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  t.after(async () => {
    client.close();
    await proxy.close();
    upstream.close();
  });
  return { proxy, port, client };
}

interface Outcome {
  readonly code: number;
  readonly details: string;
  readonly answer: string | undefined;
  readonly trailers: Metadata | undefined;
}

function unary(client: Client, path: string, text: string): Promise<Outcome> {
  return new Promise((resolve) => {
    let failure: ServiceError | null = null;
    let answer: string | undefined;
    const call = client.makeUnaryRequest(path, write, read, text, new Metadata(), {}, (error, value) => {
      failure = error;
      answer = value;
    });
    call.on('status', ({ code, details, metadata }) =>
      setImmediate(() => resolve({ code: failure?.code ?? code, details, answer, trailers: metadata })),
    );
  });
}

for (const isHttp2 of [false, true]) {
  describe(`a client of gRPC, to a service over HTTP/${isHttp2 ? '2' : '1.1'}`, () => {
    const bench = (t: TestContext): Promise<Bench> => benchOf(t, isHttp2);

    test('makes a unary call', async (t) => {
      const { client, proxy } = await bench(t);
      const { code, answer, trailers } = await unary(client, '/test.Service/Echo', 'hello');
      assert.deepEqual([code, answer, trailers!.get('x-end')], [status.OK, 'hello', ['yes']]);
      assert.equal(proxy.hostStat('web', 0, 'rq_success'), 1);
      assert.equal(proxy.dynamicStat('cluster.web.', 'grpc.test.Service.Echo.success'), 1);
      assert.equal(proxy.dynamicStat('cluster.web.', 'grpc.test.Service.Echo.request_message_count'), 1);
    });

    test('is sent several messages', async (t) => {
      const { client } = await bench(t);
      const call = client.makeServerStreamRequest('/test.Service/Many', write, read, 'a', new Metadata());
      assert.deepEqual(await Array.fromAsync(call), ['a1', 'a2', 'a3']);
    });

    test('sends several messages', async (t) => {
      const { client } = await bench(t);
      const answer = await new Promise((resolve, reject) => {
        const call = client.makeClientStreamRequest(
          '/test.Service/Join',
          write,
          read,
          new Metadata(),
          (error, value) => (error === null ? resolve(value) : reject(error)),
        );
        for (const text of ['a', 'b', 'c']) call.write(text);
        call.end();
      });
      assert.equal(answer, 'a+b+c');
    });

    test('talks with a service: each message is answered before the next is sent', async (t) => {
      const { client } = await bench(t);
      const call = client.makeBidiStreamRequest('/test.Service/Echo', write, read, new Metadata());
      const ended = once(call, 'status');
      for (const text of ['one', 'two', 'x'.repeat(100_000)]) {
        const answered = once(call, 'data');
        call.write(text);
        assert.deepEqual(await answered, [text]);
      }
      call.end();
      const [{ code }] = (await ended) as [{ code: number }];
      assert.equal(code, status.OK);
    });

    for (const [name, path, code, details] of [
      [
        'of a method that there is not',
        '/test.Service/Nothing',
        status.UNIMPLEMENTED,
        isHttp2 ? 'The server does not implement the method /test.Service/Nothing' : 'no such method',
      ],
      ['in the head', '/test.Service/Refuse', status.PERMISSION_DENIED, 'not ü'],
      ['of a direct response', '/test.Direct/Any', status.PERMISSION_DENIED, 'not you'],
      ['where no host is left', '/test.Empty/Any', status.UNAVAILABLE, 'no healthy upstream'],
    ] as const) {
      test(`gets a status ${name}`, async (t) => {
        const { client } = await bench(t);
        const outcome = await unary(client, path, 'x');
        assert.deepEqual([outcome.code, outcome.details, outcome.answer], [code, details, undefined]);
      });
    }

    test('that cancels a call leaves the next one alone', async (t) => {
      const { client, proxy } = await bench(t);
      const call = client.makeBidiStreamRequest('/test.Service/Echo', write, read, new Metadata());
      const failed = once(call, 'error');
      const answered = once(call, 'data');
      call.write('a');
      await answered;
      call.cancel();
      const [error] = (await failed) as [ServiceError];
      assert.equal(error.code, status.CANCELLED);
      assert.equal((await unary(client, '/test.Service/Echo', 'b')).answer, 'b');
      assert.equal(proxy.httpStat('downstream_rq_rx_reset'), 1);
    });
  });
}

describe('a server of gRPC', () => {
  test('is spoken to by clients of HTTP/1.1 over the bridge', async (t) => {
    const settings = { upgradesProtobuf: true, dropsQuery: true };
    const { port } = await benchOf(t, true, [{ name: 'filters.http.grpc_http1_bridge', settings }]);
    const post = (method: string): Promise<Response> =>
      fetch(`http://127.0.0.1:${port}/test.Service/${method}?x=1`, {
        method: 'POST',
        headers: { 'content-type': 'application/x-protobuf' },
        body: 'hello',
      });
    const good = await post('Echo');
    assert.deepEqual([good.status, good.headers.get('grpc-status'), await good.text()], [200, '0', 'hello']);
    const bad = await post('Refuse');
    const { headers } = bad;
    assert.deepEqual(
      [bad.status, headers.get('grpc-status'), decodeURIComponent(headers.get('grpc-message')!)],
      [503, '7', 'not ü'],
    );
  });

  for (const isText of [false, true]) {
    test(`is spoken to by browsers, in ${isText ? 'base64' : 'bytes'}`, async (t) => {
      const { port, proxy } = await benchOf(t, true, [{ name: 'filters.http.grpc_web', settings: null }]);
      const type = `application/grpc-web${isText ? '-text' : ''}+proto`;
      const message = framed('a');
      const response = await fetch(`http://127.0.0.1:${port}/test.Service/Many`, {
        method: 'POST',
        headers: { 'content-type': type, accept: type },
        body: isText ? message.toString('base64') : message,
      });
      assert.deepEqual([response.status, response.headers.get('content-type')], [200, type]);
      const raw = Buffer.from(await response.arrayBuffer());
      const parts = raw.toString('latin1').match(/[^=]+=*/g) ?? [];
      const body = isText ? Buffer.concat(parts.map((part) => Buffer.from(part, 'base64'))) : raw;
      const texts = takeMessages(body).messages.map(String);
      assert.deepEqual(texts.slice(0, 3), ['a1', 'a2', 'a3']);
      assert.match(texts[3]!, /^grpc-status:0\r\n/);
      assert.match(texts[3]!, /\r\nx-end:yes\r\n/);
      assert.equal(proxy.dynamicStat('cluster.web.', 'grpc-web.test.Service.Many.success'), 1);
    });
  }
});
