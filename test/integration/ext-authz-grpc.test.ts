// The ext_authz filter through the whole proxy, with a service of gRPC: what it is told, and what its answers do.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it, test } from 'node:test';
import { AuthorizationService } from '../support/authorization-service.ts';
import type { JsonObject } from '../support/bootstrap.ts';
import { CertificateFolder } from '../support/certificates.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo, typed } from '../support/embedded-filters.ts';
import { eventually } from '../support/eventually.ts';
import {
  type Bench,
  benchFor,
  bytesOf,
  close,
  counts,
  EXT_AUTHZ,
  guarded,
  guardFor,
  HTTP_SERVICE,
  HTTP2,
  list,
  request,
  valuesOf,
} from '../support/guarded-proxy.ts';
import { getOverTls } from '../support/tls-client.ts';
import { pair, tlsSocket } from '../support/tls-config.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

describe('the ext_authz filter with a service of gRPC', () => {
  const GRPC = { envoy_grpc: { cluster_name: 'guard', authority: 'guard.test' }, timeout: '5s' };
  let service: AuthorizationService;
  let bench: Bench;

  const context = (context_extensions: JsonObject): JsonObject =>
    typed('ext_authz.v3.ExtAuthzPerRoute', { check_settings: { context_extensions } });
  const ROUTES = [
    routeTo(
      '/ctx',
      { ext_authz: context({ route: 'r', both: 'route' }) },
      { metadata: { filter_metadata: { mine: { n: [1, 'x', null, true, { deep: 2.5 }] } } } },
    ),
    routeTo('/'),
  ];

  before(async () => {
    service = await AuthorizationService.start();
    bench = await guarded(
      service.port,
      {
        grpc_service: { ...GRPC, initial_metadata: [{ key: 'X-Token', value: 't' }] },
        transport_api_version: 'V3',
        with_request_body: { max_request_bytes: 100 },
        route_metadata_context_namespaces: ['mine', 'other'],
      },
      {
        guard: HTTP2,
        routes: ROUTES,
        manager: {
          access_log: [],
          route_config: {
            virtual_hosts: [
              {
                name: 'all',
                domains: ['*'],
                routes: ROUTES,
                typed_per_filter_config: { 'envoy.filters.http.ext_authz': context({ host: 'h', both: 'host' }) },
                response_headers_to_add: [
                  { header: { key: 'x-meta', value: '%DYNAMIC_METADATA(envoy.filters.http.ext_authz)%' } },
                ],
              },
            ],
          },
        },
      },
    );
  });

  beforeEach(() => {
    service.answer = { status: {} };
  });

  after(async () => {
    if (bench !== undefined) await close(bench);
    await service?.[Symbol.asyncDispose]();
  });

  it('tells it all that is known of the request', async () => {
    const lines = ['x-a: 1', 'x-a: 2', 'x-envoy-downstream-service-cluster: shop', 'x-bytes: \xff'];
    assert.equal(
      (await bench.client.write(bytesOf(request(lines, '/ctx?q=1', 'h\xe9', 'POST'))).response()).status,
      200,
    );
    const { path, attributes, metadata } = service.last;
    assert.equal(path, '/envoy.service.auth.v3.Authorization/Check');
    assert.equal(metadata['x-token'], 't');
    const {
      source,
      destination,
      request: asked,
      context_extensions,
      route_metadata_context,
    } = attributes as {
      source: { address: { socket_address: { address: string; port_value: number } }; service: string };
      destination: { address: { socket_address: { address: string; port_value: number } } };
      request: { time: { seconds: number }; http: Record<string, unknown> & { headers: Record<string, string> } };
      context_extensions: Record<string, string>;
      route_metadata_context: unknown;
    };
    assert.equal(source.address.socket_address.address, '127.0.0.1');
    assert.ok(source.address.socket_address.port_value > 0);
    assert.equal(source.service, 'shop');
    assert.equal(destination.address.socket_address.port_value, bench.proxy.listeners.get('main')!.port);
    assert.ok(Math.abs(asked.time.seconds - Date.now() / 1000) < 60);
    const { headers, id, method, path: target, host, scheme, size, protocol, body } = asked.http;
    assert.deepEqual(
      [method, target, host, scheme, size, protocol, body],
      ['POST', '/ctx?q=1', 'shop.test', 'http', 2, 'HTTP/1.1', 'h!'],
    );
    assert.equal(id, headers['x-request-id']);
    assert.deepEqual(
      [headers['x-a'], headers[':method'], headers[':path'], headers[':authority'], headers['x-bytes']],
      ['1,2', 'POST', '/ctx?q=1', 'shop.test', '!'],
    );
    assert.equal(headers['x-proxy-auth-partial-body'], 'false');
    assert.deepEqual(context_extensions, { route: 'r', both: 'route', host: 'h' });
    assert.deepEqual(route_metadata_context, {
      filter_metadata: {
        mine: {
          fields: {
            n: {
              list_value: {
                values: [
                  { number_value: 1 },
                  { string_value: 'x' },
                  { null_value: 0 },
                  { bool_value: true },
                  { struct_value: { fields: { deep: { number_value: 2.5 } } } },
                ],
              },
            },
          },
        },
      },
    });
  });

  const option = (key: string, value: string, more: object = {}): object => ({ header: { key, value }, ...more });

  it('changes the request and the response as it says', async () => {
    service.answer = {
      ok_response: {
        headers: [
          option('X-User', 'ann'),
          option('x-more', 'b', { append: { value: true } }),
          option('x-nobody', 'b', { append: { value: true } }),
          option('x-once', 'new', { append_action: 1 }),
          option('x-there', 'new', { append_action: 3 }),
          option('x-absent', 'new', { append_action: 3 }),
          option(':path', '/other?a=1&b=2'),
          option('host', 'inner.test'),
          option('content-length', '100'),
          option('transfer-encoding', 'chunked'),
        ],
        headers_to_remove: ['x-gone', 'host', ':path', 'content-length'],
        response_headers_to_add: [option('x-seen', '1'), option('x-from', 'guard', { append: { value: true } })],
        query_parameters_to_set: [
          { key: 'b', value: '3&4' },
          { key: 'c', value: 'x y' },
        ],
        query_parameters_to_remove: ['a'],
      },
      dynamic_metadata: { fields: { who: { string_value: 'ann' }, age: { number_value: 7 } } },
    };
    const lines = ['x-user: mallory', 'x-more: a', 'x-once: old', 'x-there: old', 'x-gone: 1'];
    const { head, status } = await bench.client.write(request(lines, '/', 'body', 'POST')).response();
    assert.equal(status, 200);
    const sent = bench.upstream.heads.at(-1)!;
    assert.match(sent, /POST \/other\?b=3%264&c=x%20y HTTP\/1.1\r\n/);
    const found = (name: string): string[] => valuesOf(sent, name);
    assert.deepEqual(
      [found('x-user'), found('x-more'), found('x-once'), found('x-there')],
      [['ann'], ['a,b'], ['old'], ['new']],
    );
    assert.deepEqual([found('x-nobody'), found('x-absent'), found('x-gone')], [[], [], []]);
    assert.deepEqual([found('host'), found('content-length'), found('transfer-encoding')], [['inner.test'], ['4'], []]);
    assert.deepEqual([valuesOf(head, 'x-seen'), valuesOf(head, 'x-from')], [['1'], ['web', 'guard']]);
    assert.deepEqual(JSON.parse(valuesOf(head, 'x-meta')[0]!), { who: 'ann', age: 7 });
  });

  it('never writes what would end a line', async () => {
    service.answer = {
      ok_response: {
        headers: [
          option('x-evil', 'a\r\nx-injected: 1'),
          option('x evil', '1'),
          option('x-good', '1'),
          option(':path', '/a b\r\n'),
        ],
        response_headers_to_add: [option('x-evil', 'a\r\nx-injected: 1')],
      },
    };
    const { status, head } = await bench.client.write(request()).response();
    const sent = status === 200 ? bench.upstream.heads.at(-1)! : '';
    assert.deepEqual(
      [valuesOf(sent, 'x-injected'), valuesOf(head, 'x-injected'), valuesOf(sent, 'x evil')],
      [[], [], []],
    );
    assert.deepEqual([status, valuesOf(sent, 'x-good')], [200, ['1']]);
  });

  it('turns a request away as it says', async () => {
    service.answer = {
      status: { code: 7 },
      denied_response: { status: { code: 429 }, headers: [option('retry-after', '3')], body: 'slow down' },
    };
    const { status, head, body } = await bench.client.write(request()).response();
    assert.deepEqual([status, body, valuesOf(head, 'retry-after')], [429, 'slow down|UAEX|ext_authz_denied', ['3']]);
    service.answer = { status: { code: 16 } };
    assert.equal((await bench.client.write(request()).response()).status, 403);
    service.answer = { status: { code: 16 }, denied_response: { status: { code: 99 } } };
    assert.equal((await bench.client.write(request()).response()).status, 403);
  });

  for (const [what, answer] of [
    ['a status that is none of its own', { fails: 14 }],
    ['bytes that are no message', Buffer.from([0x0a, 0x7f])],
    ['a message that is cut', Buffer.from([0x1a, 0x05, 0x12])],
    ['a group', Buffer.from([0x0b])],
  ] as const) {
    it(`is taken for a failure when it answers ${what}`, async () => {
      service.answer = answer;
      const { status, body } = await bench.client.write(request()).response();
      assert.deepEqual([status, body], [403, '|UAEX|ext_authz_error']);
    });
  }

  it('is called no more for a client that has gone', async () => {
    service.answer = 'silence';
    const asked = service.asked.length;
    const client = new WireClient(bench.proxy.listeners.get('main')!.port);
    client.write(request());
    await eventually(() => service.asked.length > asked, 'the service is asked');
    client.close();
    await eventually(() => service.over === service.asked.length, 'the call is ended');
  });

  test('of v2 is asked by its name, with bytes where that is wanted', async (t) => {
    const { client } = await benchFor(
      t,
      service.port,
      {
        grpc_service: GRPC,
        transport_api_version: 'V2',
        encode_raw_headers: true,
        with_request_body: { max_request_bytes: 100, pack_as_bytes: true },
        allowed_headers: list('x-a'),
      },
      { guard: HTTP2 },
    );
    assert.equal(
      (await client.write(bytesOf(request(['x-a: \xff', 'x-a: 2', 'x-b: 1'], '/', '\xfe', 'POST'))).response()).status,
      200,
    );
    const { path, attributes } = service.last;
    assert.equal(path, '/envoy.service.auth.v2.Authorization/Check');
    const { http } = (attributes as { request: { http: { header_map: unknown; raw_body: Buffer; headers?: object } } })
      .request;
    assert.deepEqual(
      JSON.parse(
        JSON.stringify(http.header_map, (_, value) => (Buffer.isBuffer(value) ? value.toString('latin1') : value)),
      ).headers.map(({ key }: { key: string }) => key),
      ['x-a', 'x-a', 'x-proxy-auth-partial-body'],
    );
    assert.deepEqual([...http.raw_body], [0xfe]);
  });

  test('that wants what cannot be is refused where that is said', async (t) => {
    service.answer = { ok_response: { headers: [option('x-evil', 'a\r\nb')] } };
    const { client, proxy } = await benchFor(
      t,
      service.port,
      { grpc_service: GRPC, validate_mutations: true, failure_mode_allow: true },
      { guard: HTTP2 },
    );
    const { status, body } = await client.write(request()).response();
    assert.deepEqual([status, body], [500, '|UAEX|ext_authz_invalid']);
    assert.deepEqual(await counts(proxy), { invalid: 1 });
  });
});

describe('a service of gRPC', () => {
  test('is told who both ends are, and what the filters before have found out', async (t) => {
    using folder = new CertificateFolder();
    const authority = await folder.make('ca', { isAuthority: true });
    const own = await folder.make('own', { issuer: authority, altNames: 'DNS:a.example' });
    const peer = await folder.make('peer', { issuer: authority, altNames: 'DNS:b.example,URI:spiffe://b' });
    const nameless = await folder.make('nameless', { issuer: authority });
    await using service = await AuthorizationService.start();
    const guard = await guardFor(t);
    guard.answer = (response) => response.setHeader('x-user', 'ann').end();
    const upstream = await WireUpstream.answering('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
    t.after(() => upstream.close());
    const first = { ...HTTP_SERVICE, authorization_response: { dynamic_metadata_from_headers: list('x-user') } };
    const second = {
      grpc_service: { envoy_grpc: { cluster_name: 'service' }, timeout: '5s' },
      transport_api_version: 'V3',
      include_peer_certificate: true,
      include_tls_session: true,
      metadata_context_namespaces: ['envoy.filters.http.ext_authz', 'not.there'],
    };
    const listener = filteredListener(
      [filterOf(EXT_AUTHZ, { http_service: first }), { ...filterOf(EXT_AUTHZ, second), name: 'second' }],
      [routeTo('/')],
    ) as { filter_chains: JsonObject[] } & JsonObject;
    listener.filter_chains[0] = {
      ...listener.filter_chains[0]!,
      transport_socket: tlsSocket(
        { tls_certificates: [pair(own)], validation_context: { trusted_ca: { filename: authority.certificatePath } } },
        { require_client_certificate: true },
      ) as JsonObject,
    };
    const clusters = [
      clusterAt('web', upstream.port),
      clusterAt('guard', guard.port),
      clusterAt('service', service.port, HTTP2),
    ];
    await using proxy = await createProxy(bootstrapOf([listener], clusters));
    const { port } = proxy.listeners.get('main')!;
    const trusted = { ca: authority.certificate };
    assert.match(await getOverTls(port, { ...trusted, cert: peer.certificate, key: peer.key }), /^HTTP\/1\.1 200 /);
    const {
      source,
      destination,
      tls_session,
      metadata_context,
      request: asked,
    } = service.last.attributes as {
      source: { principal: string; certificate: string };
      destination: { principal: string };
      tls_session: unknown;
      metadata_context: unknown;
      request: { http: { scheme: string } };
    };
    assert.deepEqual([source.principal, destination.principal], ['spiffe://b', 'a.example']);
    assert.equal(decodeURIComponent(source.certificate).trim(), peer.certificate.trim());
    assert.deepEqual([tls_session, asked.http.scheme], [{ sni: 'a.example' }, 'https']);
    assert.deepEqual(metadata_context, {
      filter_metadata: { 'envoy.filters.http.ext_authz': { fields: { 'x-user': { string_value: 'ann' } } } },
    });
    await getOverTls(port, { ...trusted, cert: nameless.certificate, key: nameless.key });
    assert.equal((service.last.attributes.source as { principal: string }).principal, 'CN=nameless');
  });

  test('may leave what its metadata says out', async (t) => {
    await using service = await AuthorizationService.start();
    service.answer = { status: {}, dynamic_metadata: { fields: { who: { string_value: 'ann' } } } };
    const grpc_service = { envoy_grpc: { cluster_name: 'guard' }, timeout: '5s' };
    const value = '%DYNAMIC_METADATA(envoy.filters.http.ext_authz:who)%';
    const routes = [{ ...routeTo('/'), response_headers_to_add: [{ header: { key: 'x-meta', value } }] }];
    for (const enable_dynamic_metadata_ingestion of [true, false]) {
      const fields = { grpc_service, enable_dynamic_metadata_ingestion };
      const { client } = await benchFor(t, service.port, fields, { guard: HTTP2, routes });
      const { head } = await client.write(request()).response();
      assert.equal(head.includes('x-meta: ann'), enable_dynamic_metadata_ingestion);
    }
  });

  const labelled = {
    node: { id: 'n', cluster: 'c', metadata: { labels: { app: 'edge', zone: 'é', n: 1 }, text: 'x' } },
  };

  for (const [key, expected] of [
    ['labels', { app: 'edge', zone: 'é' }],
    ['text', {}],
    ['nothing', {}],
    ['', {}],
  ] as const) {
    test(`is told the labels of this proxy that stand under ${JSON.stringify(key)}`, async (t) => {
      await using service = await AuthorizationService.start();
      const grpc_service = { envoy_grpc: { cluster_name: 'guard' }, timeout: '5s' };
      const fields = { grpc_service, bootstrap_metadata_labels_key: key };
      const { client } = await benchFor(t, service.port, fields, { guard: HTTP2, bootstrap: labelled });
      assert.equal((await client.write(request()).response()).status, 200);
      const { destination, source } = service.last.attributes as Record<string, { labels?: object }>;
      assert.deepEqual([destination!.labels ?? {}, source!.labels ?? {}], [expected, {}]);
    });
  }

  test('is asked about requests alone of which the filters before have said so', async (t) => {
    await using service = await AuthorizationService.start();
    service.answer = { status: { code: 7 } };
    const told = { header: 'x-guard', on_header_present: { metadata_namespace: 'mine', key: 'guard', type: 'STRING' } };
    const guard = {
      grpc_service: { envoy_grpc: { cluster_name: 'guard' }, timeout: '5s' },
      filter_enabled_metadata: { filter: 'mine', path: [{ key: 'guard' }], value: { string_match: { exact: 'on' } } },
    };
    const upstream = await WireUpstream.answering('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
    t.after(() => upstream.close());
    const filters = [filterOf('header_to_metadata.v3.Config', { request_rules: [told] }), filterOf(EXT_AUTHZ, guard)];
    const clusters = [clusterAt('web', upstream.port), clusterAt('guard', service.port, HTTP2)];
    await using proxy = await createProxy(bootstrapOf([filteredListener(filters, [routeTo('/')])], clusters));
    const client = new WireClient(proxy.listeners.get('main')!.port);
    t.after(() => client.close());
    const statusWith = async (...lines: string[]): Promise<number> =>
      (await client.write(request(lines)).response()).status;
    assert.deepEqual(
      [await statusWith(), await statusWith('x-guard: off'), await statusWith('x-guard: on')],
      [200, 200, 403],
    );
    assert.equal(service.asked.length, 1);
    assert.deepEqual(await counts(proxy), { denied: 1, disabled: 2 });
  });
});
