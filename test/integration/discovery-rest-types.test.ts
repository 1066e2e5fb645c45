// Secrets, scoped routes and filters from a management server that is asked by HTTP (REST), and what cannot be asked for so.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { httpFilter, type JsonObject, listenerWith, ROUTER, socketAddress, tcpFilter } from '../support/bootstrap.ts';
import { CertificateFolder } from '../support/certificates.ts';
import { discoveringListener } from '../support/discovered-proxy.ts';
import { ANYBODY, certified, inline, portOf, secret, secured, untilShown } from '../support/discovered-secrets.ts';
import { untilEqual } from '../support/eventually.ts';
import { RestPlane, restBootstrap, restSource } from '../support/rest-plane.ts';
import { shownSubject } from '../support/tls-client.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';
import { WireClient } from '../support/wire.ts';

const TYPES = {
  V3: {
    clusters: 'config.cluster.v3.Cluster',
    listeners: 'config.listener.v3.Listener',
    routes: 'config.route.v3.RouteConfiguration',
    scopes: 'config.route.v3.ScopedRouteConfiguration',
    secrets: 'extensions.transport_sockets.tls.v3.Secret',
  },
  V2: {
    clusters: 'api.v2.Cluster',
    listeners: 'api.v2.Listener',
    routes: 'api.v2.RouteConfiguration',
    scopes: 'api.v2.ScopedRouteConfiguration',
    secrets: 'api.v2.auth.Secret',
  },
} as const;
const GENERATIONS = ['V3', 'V2'] as const;
const ANY_PORT = socketAddress('127.0.0.1', 0);
const MUTATION = 'type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation';

function saying(text: string): JsonObject {
  return { match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: text } } };
}

function table(name: string, text: string): JsonObject {
  return { name, virtual_hosts: [{ name: 'v', domains: ['*'], routes: [saying(text)] }] };
}

/** Status, body, and what the response says of who has seen it. */
async function ask(weir: WeirProcess, fields = ''): Promise<string> {
  const client = new WireClient(await portOf(weir, 'in'));
  const { status, body, head } = await client.write(`GET / HTTP/1.1\r\nhost: x\r\n${fields}\r\n`).response();
  client.close();
  return `${status} ${body} ${/^by: (.*)\r$/m.exec(head)?.[1] ?? ''}`.trim();
}

for (const generation of GENERATIONS) {
  const types = TYPES[generation];
  describe(`a management server that is asked by HTTP, ${generation}`, () => {
    it('tells secrets, and is told what is wrong with one', async (t) => {
      using folder = new CertificateFolder();
      const [one, two] = [await folder.make('one'), await folder.make('two')];
      const plane = await RestPlane.start(t);
      const sds = [{ name: 'server', sds_config: restSource(generation) }];
      plane.set('secrets', '1', types.secrets, [certified('server', one), certified('unasked', two)]);
      plane.set('clusters', '1', types.clusters, []);
      plane.set('listeners', '1', types.listeners, [secured('in', { tls_certificate_sds_secret_configs: sds })]);
      await using weir = await startWeir({ configYaml: restBootstrap([plane.port], { generation }) });
      assert.equal(await shownSubject(await portOf(weir, 'in'), ANYBODY), 'CN=one');
      assert.deepEqual(plane.asked('secrets')[0]!.body.resource_names, ['server']);
      assert.equal(plane.asked('secrets')[0]!.path, `/${generation.toLowerCase()}/discovery:secrets`);
      plane.set('secrets', '2', types.secrets, [certified('server', two)]);
      await untilShown(weir, 'in', 'two');
      plane.set('secrets', '3', types.secrets, [
        secret('server', { tls_certificate: inline({ ...one, key: two.key }) }),
      ]);
      const { body } = await plane.refused('secrets');
      assert.match(body.error_detail!.message, /secret server: .*is not the key of the certificate/);
      assert.equal(body.version_info, '2');
      assert.doesNotMatch(body.error_detail!.message, /BEGIN/);
      await untilShown(weir, 'in', 'two');
      plane.set('secrets', '4', types.secrets, [certified('server', one)]);
      await plane.accepted('secrets', '4');
      await untilShown(weir, 'in', 'one');
    });

    it('tells scopes and their tables, and is told what is wrong with one', async (t) => {
      const plane = await RestPlane.start(t);
      const source = restSource(generation);
      const scope = (name: string, key: string, route_configuration_name: string): JsonObject => {
        return { name, key: { fragments: [{ string_key: key }] }, route_configuration_name };
      };
      const scoped_routes = {
        name: 'tenants',
        scope_key_builder: {
          fragments: [{ header_value_extractor: { name: 'x-tenant', element_separator: ',', index: 0 } }],
        },
        rds_config_source: source,
        scoped_rds: { scoped_rds_config_source: source },
      };
      const manager = httpFilter({ route_config: null, stat_prefix: 'web', scoped_routes });
      plane.set('scoped-routes', '1', types.scopes, [scope('a', 'one', 'first'), scope('b', 'two', 'second')]);
      plane.set('routes', '1', types.routes, [table('first', 'by the first'), table('second', 'by the second')]);
      plane.set('clusters', '1', types.clusters, []);
      plane.set('listeners', '1', types.listeners, [listenerWith([manager], { name: 'in', address: ANY_PORT })]);
      await using weir = await startWeir({ configYaml: restBootstrap([plane.port], { generation }) });
      assert.equal(await ask(weir, 'x-tenant: one\r\n'), '200 by the first');
      assert.equal(await ask(weir, 'x-tenant: two\r\n'), '200 by the second');
      assert.equal(plane.asked('scoped-routes')[0]!.path, `/${generation.toLowerCase()}/discovery:scoped-routes`);
      assert.deepEqual(plane.asked('routes').at(-1)!.body.resource_names!.toSorted(), ['first', 'second']);
      plane.set('scoped-routes', '2', types.scopes, [scope('a', 'one', 'second'), scope('b', 'one', 'first')]);
      const { body } = await plane.refused('scoped-routes');
      assert.match(body.error_detail!.message, /b/);
      // The others of a refused response count, and the one before it stays.
      assert.equal(await ask(weir, 'x-tenant: one\r\n'), '200 by the second');
      assert.equal(await ask(weir, 'x-tenant: two\r\n'), '200 by the second');
      plane.set('scoped-routes', '3', types.scopes, [scope('b', 'one', 'first')]);
      await untilEqual('200 by the first', () => ask(weir, 'x-tenant: one\r\n'), 'another scope');
      assert.equal(await ask(weir, 'x-tenant: two\r\n'), '404');
      plane.set('routes', '2', types.routes, [table('first', 'by another')]);
      await untilEqual('200 by another', () => ask(weir, 'x-tenant: one\r\n'), 'another table');
    });
  });
}

describe('a management server that is asked by HTTP', () => {
  it('tells configurations of filters, and is told what is wrong with one', async (t) => {
    const plane = await RestPlane.start(t);
    const adding = (value: string): JsonObject => {
      const append = { header: { key: 'by', value } };
      const typed_config = { '@type': MUTATION, mutations: { response_mutations: [{ append }] } };
      return { name: 'late', typed_config };
    };
    const filter = { name: 'late', config_discovery: { config_source: restSource('V3'), type_urls: [MUTATION] } };
    const manager = httpFilter({
      route_config: { virtual_hosts: [{ name: 'v', domains: ['*'], routes: [saying('ok')] }] },
      http_filters: [filter, ROUTER],
    });
    const extension = 'config.core.v3.TypedExtensionConfig';
    plane.set('extension_configs', '1', extension, [adding('one'), { ...adding('unasked'), name: 'other' }]);
    plane.set('clusters', '1', TYPES.V3.clusters, []);
    plane.set('listeners', '1', TYPES.V3.listeners, [listenerWith([manager], { name: 'in', address: ANY_PORT })]);
    await using weir = await startWeir({ configYaml: restBootstrap([plane.port]) });
    assert.equal(await ask(weir), '200 ok one');
    assert.deepEqual(plane.asked('extension_configs')[0]!.body.resource_names, ['late']);
    plane.set('extension_configs', '2', extension, [adding('two')]);
    await untilEqual('200 ok two', () => ask(weir), 'another configuration');
    plane.set('extension_configs', '3', extension, [
      { name: 'late', typed_config: { '@type': MUTATION, no_such_field: 1, mutations: 7 } },
    ]);
    const { body } = await plane.refused('extension_configs');
    assert.match(body.error_detail!.message, /mutations/);
    assert.equal(body.version_info, '2');
    assert.equal(await ask(weir), '200 ok two');
    plane.set('extension_configs', '4', extension, [adding('four')]);
    await untilEqual('200 ok four', () => ask(weir), 'what has been mended');
  });

  it('cannot be asked for what comes one by one: virtual hosts and clusters on demand', async (t) => {
    const plane = await RestPlane.start(t);
    const source = restSource('V3');
    plane.set('clusters', '1', TYPES.V3.clusters, []);
    plane.set('routes', '1', TYPES.V3.routes, [{ ...table('web', 'ok'), vhds: { config_source: source } }]);
    plane.set('listeners', '1', TYPES.V3.listeners, [discoveringListener('in', 'web', source)]);
    await using weir = await startWeir({ configYaml: restBootstrap([plane.port]) });
    const ofRoutes = (await plane.refused('routes')).body.error_detail!.message;
    assert.match(ofRoutes, /vhds\.config_source: is asked for one name after the other, which only DELTA_GRPC can do/);
    assert.equal(await ask(weir), '404');
    const proxy = tcpFilter({ cluster: 'a', on_demand: { odcds_config: source } });
    plane.set('listeners', '2', TYPES.V3.listeners, [listenerWith([proxy], { name: 'tcp', address: ANY_PORT })]);
    const ofListeners = (await plane.refused('listeners')).body.error_detail!.message;
    assert.match(ofListeners, /on_demand\.odcds_config: .*which only DELTA_GRPC can do/);
  });
});
