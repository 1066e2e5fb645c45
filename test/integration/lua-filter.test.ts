// Filters in Lua that do nothing, through the whole proxy.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo, typed } from '../support/embedded-filters.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

test('requests pass a filter in Lua without a statement, beside others', async (t) => {
  const upstream = await WireUpstream.answering('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
  t.after(() => upstream.close());
  const add = { append: { header: { key: 'x-added', value: 'yes' } } };
  const filters = [
    filterOf('lua.v3.Lua', { default_source_code: { inline_string: '-- Placeholder\n' } }),
    filterOf('header_mutation.v3.HeaderMutation', { mutations: { request_mutations: [add] } }),
  ];
  const routes = [routeTo('/off', { lua: typed('lua.v3.LuaPerRoute', { disabled: true }) }), routeTo('/')];
  const listener = filteredListener(filters, routes);
  const proxy = await createProxy(bootstrapOf([listener], [clusterAt('web', upstream.port)]));
  t.after(() => proxy.close());
  const client = new WireClient(proxy.listeners.get('main')!.port);
  t.after(() => client.close());
  for (const path of ['/', '/off']) {
    const body = 'hello';
    const head = `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n`;
    const answer = await client.write(head + body).response();
    assert.deepEqual([answer.status, answer.body], [200, 'ok']);
    assert.match(upstream.heads.at(-1)!, /^x-added: yes\r$/m);
  }
});
