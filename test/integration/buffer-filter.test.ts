// Requests that are collected before they go on, through the whole proxy.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type JsonObject, ROUTER } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy, httpListener } from '../support/embedded.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const TYPES = 'type.googleapis.com/envoy.extensions.filters.http.buffer.v3';
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

function perRoute(prefix: string, override?: JsonObject): JsonObject {
  const said = override && { 'envoy.filters.http.buffer': { '@type': `${TYPES}.BufferPerRoute`, ...override } };
  return { match: { prefix }, route: { cluster: 'web' }, ...(said && { typed_per_filter_config: said }) };
}

function listenerOf(): JsonObject {
  // Less than what filters may hold by themselves.
  const listener = httpListener('main', 'web', { per_connection_buffer_limit_bytes: 64 }) as {
    filter_chains: { filters: { typed_config: JsonObject }[] }[];
  };
  const [filter] = listener.filter_chains[0]!.filters;
  const buffer = { '@type': `${TYPES}.Buffer`, max_request_bytes: 1000 };
  const routes = [
    perRoute('/off', { disabled: true }),
    perRoute('/small', { buffer: { max_request_bytes: 10 } }),
    perRoute('/'),
  ];
  filter!.typed_config = {
    ...filter!.typed_config,
    http_filters: [{ name: 'envoy.filters.http.buffer', typed_config: buffer }, ROUTER],
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] },
  };
  return listener as unknown as JsonObject;
}

describe('the buffer filter', () => {
  let upstream: WireUpstream;
  let received = '';
  let woken = Promise.withResolvers<void>();
  let proxy: Awaited<ReturnType<typeof createProxy>>;
  let port = 0;

  before(async () => {
    upstream = await WireUpstream.start((socket) =>
      socket.on('data', (chunk: Buffer) => {
        received += chunk.toString('latin1');
        woken.resolve();
        if (/(body|part|\r\n0\r\n\r\n|5\r\n\r\n.*)$/.test(received)) socket.write(OK);
      }),
    );
    proxy = await createProxy(bootstrapOf([listenerOf()], [clusterAt('web', upstream.port)]));
    port = proxy.listeners.get('main')!.port;
  });

  after(async () => {
    await proxy?.close();
    await upstream?.close();
  });

  function open(): WireClient {
    received = '';
    woken = Promise.withResolvers<void>();
    return new WireClient(port);
  }

  it('sends a chunked body on at once, with its length', async () => {
    const client = open().write(
      'POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ntransfer-encoding: chunked\r\n\r\n',
    );
    assert.match(await client.until('\r\n\r\n'), /^HTTP\/1\.1 100 /);
    const first = 'x'.repeat(200);
    client.write(`c8\r\n${first}\r\n`);
    // Another exchange over the same worker has come and gone meanwhile: nothing of the first had been sent.
    const other = new WireClient(port).write('GET /elsewhere HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\nbody');
    assert.equal((await other.response()).body, 'ok');
    other.close();
    assert.doesNotMatch(received, /x{2}/);
    received = '';
    client.write('4\r\nbody\r\n0\r\n\r\n');
    assert.equal((await client.response()).status, 200);
    assert.match(received, new RegExp(`content-length: 204\r\n(.+\r\n)*\r\n${first}body$`));
    assert.doesNotMatch(received, /transfer-encoding/);
    client.close();
  });

  it('holds as much as it is told, whatever the limit of the listener is, and answers 413 beyond', async () => {
    const client = open().write(`POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\n${'x'.repeat(996)}`);
    client.write('body');
    assert.equal((await client.response()).status, 200);
    client.write(`POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1001\r\n\r\n${'x'.repeat(1001)}`);
    assert.equal((await client.response()).status, 413);
    assert.equal(proxy.stats.value('http.main.downstream_rq_too_large'), 1);
    client.close();
  });

  it('has another limit where a route says so', async () => {
    const client = open().write('POST /small HTTP/1.1\r\nhost: a\r\ncontent-length: 11\r\n\r\nmore  tbody');
    assert.equal((await client.response()).status, 413);
    client.close();
  });

  it('lets bodies by where a route turns it off, as they came', async () => {
    const client = open().write('POST /off HTTP/1.1\r\nhost: a\r\ncontent-length: 8\r\n\r\nfour');
    await woken.promise;
    assert.match(received, /content-length: 8\r\n/);
    client.write('part');
    assert.equal((await client.response()).status, 200);
    client.close();
  });
});
