// Filters and the routes of their requests: which route it is, what it says to them, and which of them it leaves on.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { FilterCallbacks, HttpFilter, HttpFilterKind } from '../../src/data-plane/index.ts';
import type { FiltersOfRoute } from '../../src/snapshot/index.ts';
import { DataPlaneFixture, directRoute, httpManager, loopback } from '../support/data-plane.ts';
import { filterChain } from '../support/listeners.ts';
import { WireClient } from '../support/wire.ts';

interface Placed {
  readonly name: string;
  readonly make: (callbacks: FilterCallbacks) => HttpFilter;
  readonly isDisabled?: boolean;
}

/** Direct responses `a` at /a with what it says to filters, and `b` at /b. */
async function clientOf(t: TestContext, filters: readonly Placed[], said?: FiltersOfRoute): Promise<WireClient> {
  const prepared: unknown[] = [];
  const kindOf = ({ make }: Placed): HttpFilterKind => ({
    requestBody: 'none',
    encodes: true,
    responseBody: 'none',
    compileForRoute(settings) {
      assert.ok(!prepared.includes(settings), 'once per snapshot');
      prepared.push(settings);
      return Object.keys(settings).join();
    },
    compile: () => make,
  });
  const kinds = Object.fromEntries(filters.map((filter) => [`test.${filter.name}`, kindOf(filter)]));
  const proxy = new DataPlaneFixture({ httpFilters: kinds });
  const httpFilters = filters.map(({ name, isDisabled = false }) => ({
    name: `test.${name}`,
    settings: null,
    configName: name,
    isDisabled,
  }));
  const routes = [{ ...directRoute('/a', 200, 'a'), ...(said && { filters: said }) }, directRoute('/b', 200, 'b')];
  const [port] = await proxy.listenWith({
    addresses: [loopback(0)],
    filterChains: [filterChain(httpManager(routes, { httpFilters }))],
  });
  const client = new WireClient(port!);
  t.after(async () => {
    client.close();
    await proxy.close();
  });
  return client;
}

async function bodyOf(client: WireClient, path: string): Promise<string> {
  return (await client.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`).response()).body;
}

test('a request keeps the route of its head as it came, until a filter settles another', async (t) => {
  let settles = false;
  const heard: (readonly unknown[])[] = [];
  const mover = (callbacks: FilterCallbacks): HttpFilter => ({
    decodeHeaders(head) {
      head.replaceTarget('/b');
      if (settles) callbacks.settleRequestHead();
      return 'continue';
    },
  });
  const listener = (callbacks: FilterCallbacks): HttpFilter => ({
    decodeHeaders() {
      heard.push(callbacks.routeSettings);
      return 'continue';
    },
  });
  const said = new Map([['listener', [{ isDisabled: false, settings: { near: 1 } }]]]);
  const filters = [
    { name: 'mover', make: mover },
    { name: 'listener', make: listener },
  ];
  const client = await clientOf(t, filters, said);
  assert.equal(await bodyOf(client, '/a'), 'a');
  settles = true;
  assert.equal(await bodyOf(client, '/a'), 'b');
  assert.deepEqual(heard, [['near'], []]);
});

test('a filter hears what its route says, prepared once, the nearest level first', async (t) => {
  const heard: (readonly unknown[])[] = [];
  const listener = (callbacks: FilterCallbacks): HttpFilter => ({
    decodeHeaders() {
      heard.push(callbacks.routeSettings);
      return 'continue';
    },
    encodeHeaders() {
      heard.push(callbacks.routeSettings);
      return 'continue';
    },
  });
  const levels = [
    { isDisabled: false, settings: { near: 1 } },
    { isDisabled: true },
    { isDisabled: true, settings: { far: 1 } },
  ];
  const client = await clientOf(t, [{ name: 'listener', make: listener }], new Map([['listener', levels]]));
  for (const path of ['/a', '/b', '/a']) assert.equal(await bodyOf(client, path), path.slice(1));
  const near = ['near', 'far'];
  assert.deepEqual(heard, [near, near, [], [], near, near]);
  assert.equal(heard[0], heard[5], 'the same list for the same route');
});

test('routes turn filters off, and on where they are off for the others', async (t) => {
  let met: string[] = [];
  const noting = (name: string) => (): HttpFilter => ({
    decodeHeaders() {
      met.push(name);
      return 'continue';
    },
  });
  const filters = [
    { name: 'first', make: noting('first') },
    { name: 'rare', make: noting('rare'), isDisabled: true },
    { name: 'last', make: noting('last') },
  ];
  const said = new Map([
    ['first', [{ isDisabled: true }, { isDisabled: false }]],
    ['rare', [{ isDisabled: false }]],
  ]);
  const client = await clientOf(t, filters, said);
  const metAt = async (path: string): Promise<string[]> => {
    met = [];
    await bodyOf(client, path);
    return met;
  };
  assert.deepEqual(await metAt('/a'), ['rare', 'last']);
  assert.deepEqual(await metAt('/b'), ['first', 'last']);
});

test('a route that turns all filters off sends its requests straight to the router', async (t) => {
  const wall = (callbacks: FilterCallbacks): HttpFilter => ({
    decodeHeaders() {
      callbacks.reply({ status: 403, body: 'no', flag: '-', details: 'test' });
      return 'stop';
    },
  });
  const client = await clientOf(t, [{ name: 'wall', make: wall }], new Map([['wall', [{ isDisabled: true }]]]));
  assert.equal(await bodyOf(client, '/a'), 'a');
  assert.equal(await bodyOf(client, '/b'), 'no');
});
