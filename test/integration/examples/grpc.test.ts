// The examples of gRPC as they stand, with a service of `@grpc/grpc-js` in place of the one that they name.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import {
  Client,
  credentials,
  Metadata,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import { eventually } from '../../support/eventually.ts';
import { startExample } from '../../support/examples.ts';

const asBytes = (text: string): Buffer => Buffer.from(text);
const asText = (bytes: Buffer): string => bytes.toString();

/** Answers what it is asked for, if it has that. */
function get({ request }: ServerUnaryCall<string, string>, answer: sendUnaryData<string>): void {
  if (request === 'coffee') answer({ code: status.NOT_FOUND, details: 'tea only' });
  else answer(null, request);
}

async function serviceOf(server: Server): Promise<number> {
  const Get = {
    path: '/shop.Stock/Get',
    requestStream: false,
    responseStream: false,
    requestSerialize: asBytes,
    requestDeserialize: asText,
    responseSerialize: asBytes,
    responseDeserialize: asText,
  } as const;
  server.addService({ Get }, { Get: get });
  return await new Promise((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
      error === null ? resolve(port) : reject(error),
    );
  });
}

it('a service of gRPC is there for its own clients, for browsers and for those of HTTP/1.1', async (t) => {
  const server = new Server();
  t.after(() => server.forceShutdown());
  const upstream = await serviceOf(server);
  await using weir = await startExample('grpc-bridge.yaml', { 9090: upstream });
  const { port } = (await weir.listeners()).get('services')!;

  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  t.after(() => client.close());
  const answer = await new Promise((resolve, reject) => {
    client.makeUnaryRequest('/shop.Stock/Get', asBytes, asText, 'tea', new Metadata(), (error, value) =>
      error === null ? resolve(value) : reject(error),
    );
  });
  assert.equal(answer, 'tea');

  const post = (type: string, body: Buffer): Promise<Response> =>
    fetch(`http://127.0.0.1:${port}/shop.Stock/Get`, { method: 'POST', headers: { 'content-type': type }, body });
  const bare = await post('application/x-protobuf', asBytes('milk'));
  assert.deepEqual([bare.status, bare.headers.get('grpc-status'), await bare.text()], [200, '0', 'milk']);
  const missing = await post('application/x-protobuf', asBytes('coffee'));
  assert.deepEqual([missing.status, missing.headers.get('grpc-status')], [503, '5']);
  const web = await post('application/grpc-web', Buffer.concat([Buffer.from([0, 0, 0, 0, 3]), asBytes('jam')]));
  assert.match(asText(Buffer.from(await web.arrayBuffer())), /jam[\s\S]*grpc-status:0\r\n/);

  await weir.untilStat('cluster.stock.grpc.shop.Stock.Get.total', 4);
  await weir.untilStat('cluster.stock.grpc.shop.Stock.Get.failure', 1);
  await eventually(() => weir.output.stdout.includes('/shop.Stock/Get NOT_FOUND via_upstream'), 'a log line');
});

it('a page from somewhere else calls a service of gRPC, in bytes or in base64, once it has asked whether it may', async (t) => {
  const server = new Server();
  t.after(() => server.forceShutdown());
  await using weir = await startExample('grpc-web.yaml', { 9090: await serviceOf(server) });
  const { port } = (await weir.listeners()).get('services')!;
  const origin = 'https://shop.example.com';
  const ask = (init: RequestInit): Promise<Response> => fetch(`http://127.0.0.1:${port}/shop.Stock/Get`, init);
  const preflight = (from: string): Promise<Response> =>
    ask({
      method: 'OPTIONS',
      headers: {
        origin: from,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'x-grpc-web',
      },
    });

  const allowed = await preflight(origin);
  assert.equal(allowed.headers.get('access-control-allow-origin'), origin);
  assert.match(allowed.headers.get('access-control-allow-headers')!, /\bx-grpc-web\b/);
  assert.equal((await preflight('https://other.example')).headers.get('access-control-allow-origin'), null);
  await weir.untilStat('cluster.stock.upstream_rq_total', 1);

  const message = Buffer.concat([Buffer.from([0, 0, 0, 0, 3]), asBytes('jam')]);
  const post = async (type: string, body: Buffer | string): Promise<[Headers, string]> => {
    const answer = await ask({ method: 'POST', headers: { origin, 'content-type': type, accept: type }, body });
    return [answer.headers, Buffer.from(await answer.arrayBuffer()).toString('latin1')];
  };
  const [fields, bytes] = await post('application/grpc-web+proto', message);
  assert.match(bytes, /jam[\s\S]*grpc-status:0\r\n/);
  assert.equal(fields.get('access-control-allow-origin'), origin);
  assert.equal(fields.get('access-control-expose-headers'), 'grpc-status, grpc-message');
  const [, text] = await post('application/grpc-web-text', message.toString('base64'));
  const parts = text.match(/[^=]+=*/g)!.map((part) => Buffer.from(part, 'base64').toString('latin1'));
  assert.match(parts.join(''), /jam[\s\S]*grpc-status:0\r\n/);
});
