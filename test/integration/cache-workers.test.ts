// Caches of several workers: what a request has changed none of them gives out any more, whichever worker it came to, and nothing
// that was on its way meanwhile is kept.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo } from '../support/embedded-filters.ts';
import { untilEqual } from '../support/eventually.ts';
import { WireClient } from '../support/wire.ts';

const WORKERS = 3;
const SIMPLE = 'type.googleapis.com/envoy.extensions.http.cache.simple_http_cache.v3.SimpleHttpCacheConfig';

async function bench(t: TestContext, concurrency: number) {
  const state = { version: 1, asked: 0, held: null as ServerResponse[] | null };
  const server = createServer((message, response) => {
    message.resume().on('end', () => {
      if (message.method !== 'GET') {
        state.version += 1;
        response.end('changed');
        return;
      }
      state.asked += 1;
      const body = `version ${state.version}`;
      response.writeHead(200, { 'cache-control': 'max-age=1000', 'content-length': body.length });
      if (state.held === null) response.end(body);
      else {
        state.held.push(response);
        response.write(body.slice(0, 3));
        response.once('go', () => response.end(body.slice(3)));
      }
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const cache = filterOf('cache.v3.CacheConfig', { typed_config: { '@type': SIMPLE } });
  const listener = filteredListener([cache], [routeTo('/')]);
  const { port } = server.address() as AddressInfo;
  const proxy = await createProxy(bootstrapOf([listener], [clusterAt('web', port)]), { concurrency });
  const clients: WireClient[] = [];
  t.after(async () => {
    for (const client of clients) client.close();
    await proxy.close();
    server.close();
    server.closeAllConnections();
  });
  const connect = (): WireClient => {
    const client = new WireClient(proxy.listeners.get('main')!.port);
    clients.push(client);
    return client;
  };
  const count = (name: string): number => proxy.stats.value(`http.main.cache.${name}`) ?? 0;
  return { state, connect, count };
}

const get = async (client: WireClient, path = '/a'): Promise<string> =>
  (await client.write(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`).response()).body;
const post = async (client: WireClient, path = '/a'): Promise<string> =>
  (await client.write(`POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n`).until('changed')).slice(9, 12);

describe('caches of several workers', () => {
  test('forget what a request has changed that came to one of them', async (t) => {
    const { state, connect, count } = await bench(t, WORKERS);
    const clients: WireClient[] = [];
    // Connections go to workers as the kernel likes.
    while (count('inserted') < WORKERS) {
      const client = connect();
      clients.push(client);
      assert.equal(await get(client), 'version 1');
    }
    assert.equal(state.asked, WORKERS);
    assert.equal(await post(clients[0]!, '/other'), '200');
    for (const client of clients) assert.equal(await get(client), 'version 1');
    assert.equal(await post(clients[0]!), '200');
    await untilEqual(WORKERS, () => count('invalidated'), 'what is forgotten');
    for (const client of clients) assert.equal(await get(client), 'version 3');
    assert.equal(state.asked, 2 * WORKERS);
  });

  for (const concurrency of [1, WORKERS]) {
    test(`keep nothing that was on its way meanwhile, of ${concurrency}`, async (t) => {
      const { state, connect, count } = await bench(t, concurrency);
      const reader = connect();
      const writer = connect();
      await get(reader, '/b');
      state.held = [];
      reader.write('GET /a HTTP/1.1\r\nhost: a\r\n\r\n');
      await reader.until('ver');
      assert.equal(await post(writer), '200');
      // What is told of that comes behind what is told of the other one.
      assert.equal(await post(writer, '/b'), '200');
      await untilEqual(1, () => count('invalidated'), 'the news');
      const [response] = state.held;
      state.held = null;
      response!.emit('go');
      await reader.until('sion 1');
      assert.equal(await get(reader), 'version 3');
      assert.deepEqual([state.asked, count('inserted')], [3, 2]);
    });
  }
});
