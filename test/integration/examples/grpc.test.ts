// The example of gRPC as it stands, with a service of `@grpc/grpc-js` in place of the one that it names.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
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
import { startWeir } from '../../support/weir-process.ts';

const EXAMPLE = path.join(import.meta.dirname, '../../../examples/grpc-bridge.yaml');
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
  const configYaml = readFileSync(EXAMPLE, 'utf8')
    .replaceAll(/port_value: (\d+)/g, (_all, port: string) => `port_value: ${port === '9090' ? upstream : 0}`)
    .replace('0.0.0.0', '127.0.0.1');
  await using weir = await startWeir({ configYaml });
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
