// early_header_mutation_extensions: what they change, routes, trusted hops and filters read as if the client had said it.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type JsonObject, managerFaults } from '../support/bootstrap.ts';
import { managerBench, PROTOCOLS, valuesOf } from '../support/manager-bench.ts';
import { WireClient } from '../support/wire.ts';

const TYPE = 'type.googleapis.com/envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation';

function mutations(...list: JsonObject[]): JsonObject {
  return { name: 'envoy.http.early_header_mutation.header_mutation', typed_config: { '@type': TYPE, mutations: list } };
}

function set(key: string, value: string): JsonObject {
  return { append: { header: { key, value }, append_action: 'OVERWRITE_IF_EXISTS_OR_ADD' } };
}

function early(...extensions: JsonObject[]): JsonObject {
  return { early_header_mutation_extensions: extensions };
}

function routesBy(header: string, value: string): JsonObject {
  const match = { prefix: '/', headers: [{ name: header, string_match: { exact: value } }] };
  const routes = [{ match, route: { cluster: 'web' } }];
  return { route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } };
}

function faultsOf(fields: JsonObject): string[] {
  return managerFaults(fields);
}

for (const protocol of PROTOCOLS) {
  describe(`early mutations of requests over ${protocol}`, () => {
    test('are seen by routes, in their order', async (t) => {
      const extensions = early(mutations(set('x-tenant', 'a')), mutations(set('X-Tenant', '%REQ(x-from)%')));
      const { ask, head } = await managerBench(t, { ...extensions, ...routesBy('x-tenant', 'b') });
      assert.equal((await ask(protocol, { headers: [['x-from', 'a']] })).status, 404);
      const headers = [
        ['x-from', 'b'],
        ['x-tenant', 'c'],
      ] as const;
      assert.equal((await ask(protocol, { headers })).status, 200);
      assert.deepEqual(valuesOf(head(), 'x-tenant'), ['b']);
    });

    test('come before it is known who the client is, and what it may say', async (t) => {
      const list = [{ remove: 'x-forwarded-for' }, set('x-forwarded-proto', 'https'), set('x-request-id', 'mine')];
      const fields = { use_remote_address: true, xff_num_trusted_hops: 1 };
      const { ask, head } = await managerBench(t, { ...early(mutations(...list)), ...fields });
      await ask(protocol, {
        headers: [
          ['x-forwarded-for', '192.0.2.1, 192.0.2.2'],
          ['x-request-id', 'theirs'],
        ],
      });
      const seen = head();
      assert.deepEqual(valuesOf(seen, 'x-forwarded-for'), ['127.0.0.1']);
      assert.deepEqual(valuesOf(seen, 'x-forwarded-proto'), ['https']);
      // Without x-forwarded-for a client of this machine is one from inside, whose identifier stays.
      assert.deepEqual(valuesOf(seen, 'x-request-id'), ['mine']);
    });

    test('leave it to the upstream to send trailers', async (t) => {
      const fields = { ...early(mutations(set('x-a', '1'))), http_protocol_options: { enable_trailers: true } };
      const { ask, head } = await managerBench(t, fields, { cluster: { enableTrailers: true } });
      const te = [['te', 'trailers'], ...(protocol === 'HTTP/2' ? [] : ([['connection', 'te']] as const))] as const;
      assert.equal((await ask(protocol, { headers: te })).status, 200);
      assert.deepEqual(valuesOf(head(), 'te'), ['trailers']);
    });

    test('leave bodies alone', async (t) => {
      const { ask, heads } = await managerBench(t, early(mutations(set('x-a', '1'))));
      assert.equal((await ask(protocol, { method: 'POST', trailers: [['x-t', '1']] })).status, 200);
      assert.deepEqual(valuesOf(heads[0] ?? '', 'x-a'), ['1']);
    });
  });
}

test('a tunnel opens all the same', async (t) => {
  const answer = 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n';
  const fields = { ...early(mutations(set('x-a', '1'))), upgrade_configs: [{ upgrade_type: 'websocket' }] };
  const { port, head } = await managerBench(t, fields, { answer });
  const client = new WireClient(port);
  t.after(() => client.close());
  client.write('GET / HTTP/1.1\r\nhost: h\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n');
  assert.match(await client.until('\r\n\r\n'), /^HTTP\/1\.1 101 /);
  const seen = head();
  const values = ['upgrade', 'connection', 'x-a'].map((name) => valuesOf(seen, name));
  assert.deepEqual(values, [['websocket'], ['upgrade'], ['1']]);
});

test('a client of HTTP/1.0 is asked for no body', async (t) => {
  const fields = { ...early(mutations(set('x-a', '1'))), http_protocol_options: { accept_http_10: true } };
  const { port } = await managerBench(t, fields);
  const client = new WireClient(port);
  t.after(() => client.close());
  client.write('POST / HTTP/1.0\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\n');
  assert.match(await client.rest(), /^HTTP\/1\.[01] 200 /);
});

test('faults of early mutations name them', () => {
  const at = /early_header_mutation_extensions\[0\]\.typed_config\.mutations/;
  for (const list of [[], [{ remove: 'host' }], [set(':path', '/')], [set('x-a', '%NOPE%')], [{}]]) {
    const faults = faultsOf(early(mutations(...list)));
    assert.equal(faults.length, 1, JSON.stringify(list));
    assert.match(faults[0]!, at);
  }
  const router = 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router';
  const faults = faultsOf(early({ name: 'x', typed_config: { '@type': router } }));
  assert.match(faults.join('\n'), /early_header_mutation_extensions\[0\]\.typed_config/);
});
