// Clients of `@grpc/grpc-js`, over HTTP/2, through a real data plane: all four kinds of call, statuses behind bodies and in heads,
// replies of the proxy. The service behind it speaks gRPC over HTTP/1.1, with chunks and trailers.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { DataPlaneFixture, directRoute, loopback, routeTo } from '../support/data-plane.ts';

const HEAD_BYTES = 5;

/** Takes the whole messages off the beginning of a body. */
function takeMessages(body: Buffer): { readonly messages: Buffer[]; readonly rest: Buffer } {
  const messages: Buffer[] = [];
  let at = 0;
  while (body.length - at >= HEAD_BYTES && body.length - at - HEAD_BYTES >= body.readUInt32BE(at + 1)) {
    const end = at + HEAD_BYTES + body.readUInt32BE(at + 1);
    messages.push(body.subarray(at + HEAD_BYTES, end));
    at = end;
  }
  return { messages, rest: body.subarray(at) };
}

function framed(text: string): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32BE(Buffer.byteLength(text), 1);
  return Buffer.concat([head, Buffer.from(text)]);
}

/** The methods: what they answer to each message, and to all of them. */
const METHODS: Readonly<
  Record<string, { readonly each?: (text: string) => string[]; readonly all?: (texts: string[]) => string[] }>
> = {
  '/test.Service/Echo': { each: (text) => [text] },
  '/test.Service/Many': { each: (text) => [`${text}1`, `${text}2`, `${text}3`] },
  '/test.Service/Join': { all: (texts) => [texts.join('+')] },
};

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

interface Bench {
  readonly proxy: DataPlaneFixture;
  readonly client: Client;
}

async function bench(t: TestContext): Promise<Bench> {
  const server = createServer(serve);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const proxy = new DataPlaneFixture();
  proxy.cluster('web', [loopback((server.address() as AddressInfo).port)], { enableTrailers: true });
  proxy.cluster('empty', []);
  const routes = [
    directRoute('/test.Direct', 403, 'not you'),
    routeTo('empty', { prefix: '/test.Empty' }),
    routeTo('web'),
  ];
  const httpFilters = [
    { name: 'filters.http.grpc_stats', settings: { countsAllMethods: true, methods: [], countsTimes: false } },
  ];
  const port = await proxy.http(routes, { httpFilters });
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  t.after(async () => {
    client.close();
    await proxy.close();
    server.closeAllConnections();
    server.close();
  });
  return { proxy, client };
}

const write = (text: string): Buffer => Buffer.from(text);
const read = (bytes: Buffer): string => bytes.toString();

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

describe('a client of gRPC', () => {
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
      const call = client.makeClientStreamRequest('/test.Service/Join', write, read, new Metadata(), (error, value) =>
        error === null ? resolve(value) : reject(error),
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
    ['behind the body', '/test.Service/Nothing', status.UNIMPLEMENTED, 'no such method'],
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
