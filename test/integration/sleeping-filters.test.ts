// HTTP filters that take part only while they are awake: which requests meet them, and what stays of the others' order.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { HttpFilterKind } from '../../src/data-plane/index.ts';
import { DataPlaneFixture, httpManager, loopback, routeTo } from '../support/data-plane.ts';
import { filterChain } from '../support/listeners.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const GET = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n';

async function proxyOf(t: TestContext, names: readonly string[]) {
  const upstream = await WireUpstream.answering('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
  const seen: string[] = [];
  const awake = new Set<string>();
  const kind: HttpFilterKind = {
    requestBody: 'reads',
    encodes: true,
    responseBody: 'reads',
    isAwake: (name) => awake.has(name as string),
    compile: (name) => () => {
      seen.push(`${name} made`);
      return {
        encodeData() {
          seen.push(`${name} data`);
          return 'continue';
        },
      };
    },
  };
  const { isAwake: _always, ...restless } = kind;
  const remaker: HttpFilterKind = { ...restless, remakesRequests: true };
  const kinds: Readonly<Record<string, string>> = { s: 'sleeper', m: 'remaker' };
  const proxy = new DataPlaneFixture({ httpFilters: { sleeper: kind, restless, remaker } });
  proxy.cluster('web', [loopback(upstream.port)]);
  const httpFilters = names.map((name) => ({ name: kinds[name[0]!] ?? 'restless', settings: name }));
  const [port] = await proxy.listenWith({
    addresses: [loopback(0)],
    filterChains: [filterChain(httpManager([routeTo('web')], { httpFilters }))],
  });
  const client = new WireClient(port!);
  t.after(async () => {
    client.close();
    await proxy.close();
    await upstream.close();
  });
  return async (...names: string[]): Promise<string[]> => {
    awake.clear();
    for (const name of names) awake.add(name);
    seen.length = 0;
    assert.equal((await client.write(GET).response()).body, 'ok');
    return [...seen];
  };
}

test('filters that sleep are not made, and wake with a later request of the same connection', async (t) => {
  const request = await proxyOf(t, ['s1', 's2']);
  assert.deepEqual(await request(), []);
  assert.deepEqual(await request('s2'), ['s2 made', 's2 data']);
  assert.deepEqual(await request('s1', 's2'), ['s1 made', 's2 made', 's2 data', 's1 data']);
  assert.deepEqual(await request('s1'), ['s1 made', 's1 data']);
  assert.deepEqual(await request(), []);
});

test('the others keep their order around those that sleep', async (t) => {
  const request = await proxyOf(t, ['a', 's1', 'b']);
  assert.deepEqual(await request(), ['a made', 'b made', 'b data', 'a data']);
  assert.deepEqual(await request('s1'), ['a made', 's1 made', 'b made', 'b data', 's1 data', 'a data']);
});

test('nobody sleeps behind one that remakes requests', async (t) => {
  const request = await proxyOf(t, ['s1', 'm', 's2']);
  assert.deepEqual(await request(), ['m made', 's2 made', 's2 data', 'm data']);
});
