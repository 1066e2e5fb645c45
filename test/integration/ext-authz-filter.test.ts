// The ext_authz filter through the whole proxy, with services of HTTP and of gRPC: what they are told, what their answers do, and
// what happens when they fail.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, beforeEach, describe, it, type TestContext, test } from 'node:test';
import { AuthorizationService } from '../support/authorization-service.ts';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo, typed } from '../support/embedded-filters.ts';
import { eventually } from '../support/eventually.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const TYPE = 'ext_authz.v3.ExtAuthz';
const HTTP2 = {
  typed_extension_protocol_options: {
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
      '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
      explicit_http_config: { http2_protocol_options: {} },
    },
  },
};
/** Logs what no client sees. */
const REPLIES = {
  local_reply_config: {
    body_format: { text_format: '%LOCAL_REPLY_BODY%|%RESPONSE_FLAGS%|%RESPONSE_CODE_DETAILS%' },
  },
};
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-from: web\r\n\r\nok';

type Proxy = Awaited<ReturnType<typeof createProxy>>;

interface Bench {
  readonly proxy: Proxy;
  readonly client: WireClient;
  readonly upstream: WireUpstream & { heads: string[] };
}

/** A proxy whose requests are asked about at `guard`. */
async function guarded(
  guardPort: number,
  fields: JsonObject,
  {
    routes = [routeTo('/')],
    manager = {},
    guard = {},
    bootstrap = {},
  }: {
    routes?: readonly JsonObject[];
    manager?: JsonObject;
    guard?: JsonObject;
    bootstrap?: JsonObject;
  } = {},
): Promise<Bench> {
  const upstream = await WireUpstream.answering(OK);
  const listener = filteredListener([filterOf(TYPE, fields)], routes, {
    manager: { ...REPLIES, use_remote_address: true, ...manager },
  });
  const clusters = [clusterAt('web', upstream.port), clusterAt('guard', guardPort, guard)];
  const proxy = await createProxy(bootstrapOf([listener], clusters, { stats_flush_on_admin: true, ...bootstrap }));
  return { proxy, client: new WireClient(proxy.listeners.get('main')!.port), upstream };
}

async function close({ proxy, client, upstream }: Bench): Promise<void> {
  client.close();
  await proxy.close();
  await upstream.close();
}

function request(lines: readonly string[] = [], target = '/a?b=c', body = '', method = 'GET'): string {
  const length = body === '' && method === 'GET' ? [] : [`content-length: ${body.length}`];
  return `${[`${method} ${target} HTTP/1.1`, 'host: shop.test', ...lines, ...length].join('\r\n')}\r\n\r\n${body}`;
}

function bytesOf(text: string): Buffer {
  return Buffer.from(text, 'latin1');
}

function valuesOf(head: string, name: string): string[] {
  const lines = head.split('\r\n').filter((line) => line.toLowerCase().startsWith(`${name}:`));
  return lines.map((line) => line.slice(name.length + 1).trim());
}

/** Those that are not 0. */
async function counts(proxy: Proxy, scope = 'http.main.ext_authz.'): Promise<Record<string, number>> {
  const entries = Object.entries(await proxy.stats.counters(scope));
  return Object.fromEntries(entries.filter(([, n]) => n > 0).map(([name, n]) => [name.slice(scope.length), n]));
}

interface Told {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** An authorization service of HTTP. */
class Guard {
  port = 0;
  readonly told: Told[] = [];
  answer: (response: ServerResponse) => void = (response) => response.end();
  readonly #server: Server = createServer((incoming, response) => {
    const parts: Buffer[] = [];
    incoming.on('data', (part: Buffer) => parts.push(part));
    incoming.on('end', () => {
      const { method = '', url = '', headers } = incoming;
      this.told.push({ method, url, headers, body: Buffer.concat(parts).toString() });
      this.answer(response);
    });
  });

  async start(): Promise<this> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    this.port = (this.#server.address() as AddressInfo).port;
    return this;
  }

  get last(): Told {
    return this.told.at(-1)!;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

const HTTP_SERVICE = { server_uri: { uri: 'http://guard', cluster: 'guard', timeout: '5s' } };
const list = (...names: readonly string[]): JsonObject => ({ patterns: names.map((exact) => ({ exact })) });

describe('the ext_authz filter with a service of HTTP', () => {
  let guard: Guard;
  let bench: Bench;

  before(async () => {
    guard = await new Guard().start();
    bench = await guarded(guard.port, {
      http_service: {
        ...HTTP_SERVICE,
        path_prefix: '/check',
        authorization_request: { headers_to_add: [{ key: 'X-Guard', value: 'weir' }] },
        authorization_response: {
          allowed_upstream_headers: list('x-user', 'x-list'),
          allowed_upstream_headers_to_append: list('x-more', 'x-nobody'),
          allowed_client_headers: list('x-why'),
          allowed_client_headers_on_success: list('x-seen', 'content-length'),
          dynamic_metadata_from_headers: list('x-user'),
        },
      },
      allowed_headers: { patterns: [{ prefix: 'x-' }, { exact: 'cookie' }] },
      disallowed_headers: list('x-secret'),
    });
  });

  beforeEach(() => {
    guard.answer = (response) => response.end();
  });

  after(async () => {
    if (bench !== undefined) await close(bench);
    guard?.close();
  });

  it('tells it what it may know of the request', async () => {
    const lines = ['authorization: Basic abc', 'accept: */*', 'x-a: 1', 'x-secret: 2', 'x-guard: me', 'cookie: c=1'];
    const { status } = await bench.client.write(request([...lines, 'connection: x-hop', 'x-hop: 1'])).response();
    assert.equal(status, 200);
    const { method, url, headers, body } = guard.last;
    assert.deepEqual([method, url, body], ['GET', '/check/a?b=c', '']);
    const { host, authorization, cookie, accept } = headers;
    assert.deepEqual([host, authorization, cookie, accept], ['shop.test', 'Basic abc', 'c=1', undefined]);
    assert.deepEqual([headers['x-a'], headers['x-secret'], headers['x-guard']], ['1', undefined, 'weir']);
    // What the connection manager has said of the request, before what is said of this one.
    assert.match(headers['x-request-id'] as string, /^[\da-f-]{36}$/);
    assert.match(headers['x-forwarded-for'] as string, /^[\d.]+,/);
  });

  it('changes the request and the response as it says', async () => {
    guard.answer = (response) => {
      response.setHeader('X-User', 'ann');
      response.setHeader('x-list', ['1', '2']);
      response.setHeader('x-more', 'b');
      response.setHeader('x-nobody', 'b');
      response.setHeader('x-seen', ['c', 'd']);
      response.setHeader('x-other', 'e');
      response.setHeader('x-envoy-auth-headers-to-remove', 'Authorization , x-gone, host');
      response.end('is not sent');
    };
    const lines = ['authorization: Basic abc', 'x-user: mallory', 'x-gone: 1', 'x-more: a', 'x-list: 0'];
    const { head, body } = await bench.client.write(request(lines)).response();
    const sent = bench.upstream.heads.at(-1)!;
    assert.deepEqual(valuesOf(sent, 'x-user'), ['ann']);
    assert.deepEqual(valuesOf(sent, 'x-list'), ['1', '2']);
    assert.deepEqual(valuesOf(sent, 'x-more'), ['a,b']);
    for (const name of ['authorization', 'x-gone', 'x-nobody', 'x-other'])
      assert.deepEqual(valuesOf(sent, name), [], name);
    assert.deepEqual(valuesOf(sent, 'host'), ['shop.test']);
    assert.deepEqual([valuesOf(head, 'x-seen'), valuesOf(head, 'content-length'), body], [['c', 'd'], ['2'], 'ok']);
  });

  it('turns a request away as it says, with its headers and its body', async () => {
    guard.answer = (response) => {
      response.writeHead(302, {
        location: 'https://login.test/',
        'x-why': 'nobody knows you',
        'x-other': '1',
        'set-cookie': ['a=1', 'b=2'],
        'content-type': 'text/html',
      });
      response.end('<b>go</b>');
    };
    const before = bench.upstream.heads.length;
    const { status, head, body } = await bench.client.write(request()).response();
    assert.deepEqual([status, body], [302, '<b>go</b>|UAEX|ext_authz_denied']);
    assert.deepEqual(valuesOf(head, 'location'), ['https://login.test/']);
    assert.deepEqual(valuesOf(head, 'x-why'), ['nobody knows you']);
    assert.deepEqual([valuesOf(head, 'x-other'), valuesOf(head, 'set-cookie')], [[], []]);
    assert.equal(bench.upstream.heads.length, before);
  });

  it('turns a request away when it fails', async () => {
    guard.answer = (response) => {
      response.statusCode = 500;
      response.setHeader('x-why', 'a bug');
      response.end('secret');
    };
    const { status, head, body } = await bench.client.write(request()).response();
    assert.deepEqual([status, body, valuesOf(head, 'x-why')], [403, '|UAEX|ext_authz_error', []]);
  });

  it('is not asked about what has no route', async () => {
    const told = guard.told.length;
    const { status } = await bench.client.write(request([], '*', '', 'OPTIONS')).response();
    assert.deepEqual([status, guard.told.length], [404, told]);
  });

  it('counts, for the cluster of the request, too', async () => {
    const expected = { ok: 2, denied: 1, error: 1 };
    assert.deepEqual(await counts(bench.proxy), expected);
    assert.deepEqual(await counts(bench.proxy, 'cluster.web.ext_authz.'), expected);
  });
});

async function benchFor(t: TestContext, ...args: Parameters<typeof guarded>): Promise<Bench> {
  const bench = await guarded(...args);
  t.after(() => close(bench));
  return bench;
}

async function guardFor(t: TestContext): Promise<Guard> {
  const guard = await new Guard().start();
  t.after(() => guard.close());
  return guard;
}

describe('a request that is turned away', () => {
  test('tells the client all that the service says where nothing is left out', async (t) => {
    const guard = await guardFor(t);
    guard.answer = (response) => {
      response.writeHead(401, { 'www-authenticate': 'Basic', 'set-cookie': ['a=1', 'b=2'], 'keep-alive': 'timeout=9' });
      response.end();
    };
    const { client } = await benchFor(t, guard.port, { http_service: HTTP_SERVICE });
    const { status, head } = await client.write(request()).response();
    assert.equal(status, 401);
    assert.deepEqual(valuesOf(head, 'www-authenticate'), ['Basic']);
    assert.deepEqual(valuesOf(head, 'set-cookie'), ['a=1', 'b=2']);
    assert.deepEqual([valuesOf(head, 'keep-alive'), valuesOf(head, 'transfer-encoding')], [[], []]);
    assert.equal(valuesOf(head, 'date').length, 1);
    // The connection goes on.
    guard.answer = (response) => response.end();
    assert.equal((await client.write(request()).response()).body, 'ok');
  });

  test('is told few of its headers where nothing is said', async (t) => {
    const guard = await guardFor(t);
    const { client } = await benchFor(t, guard.port, { http_service: HTTP_SERVICE });
    await client.write(request(['x-a: 1', 'authorization: b'])).response();
    assert.deepEqual(
      [guard.last.headers['x-a'], guard.last.headers.authorization, guard.last.url],
      [undefined, 'b', '/a?b=c'],
    );
  });
});

describe('a service that fails', () => {
  const FAILURES: readonly [string, (guard: Guard) => void][] = [
    ['does not answer in time', (guard) => (guard.answer = () => {})],
    ['breaks off', (guard) => (guard.answer = (response) => response.destroy())],
    ['has a fault', (guard) => (guard.answer = (response) => void response.writeHead(503).end())],
    ['answers without end', (guard) => (guard.answer = (response) => void response.end(Buffer.alloc(100_000)))],
    ['is not there', (guard) => guard.close()],
  ];
  for (const [what, fail] of FAILURES) {
    test(`because it ${what} closes the way, or opens it`, async (t) => {
      const guard = await guardFor(t);
      fail(guard);
      const http_service = { server_uri: { uri: 'http://guard', cluster: 'guard', timeout: '0.3s' } };
      const listener = { per_connection_buffer_limit_bytes: 20_000 };
      const upstream = await WireUpstream.answering(OK);
      const [shut, open] = [
        { http_service, status_on_error: { code: 'ServiceUnavailable' } },
        { http_service, failure_mode_allow: true, failure_mode_allow_header_add: true, stat_prefix: 'open' },
      ].map((fields, at) =>
        filteredListener([filterOf(TYPE, fields)], [routeTo('/')], {
          manager: { ...REPLIES, stat_prefix: `l${at}` },
          listener: { name: `l${at}`, ...listener },
        }),
      ) as [JsonObject, JsonObject];
      const clusters = [clusterAt('web', upstream.port), clusterAt('guard', guard.port)];
      const proxy = await createProxy(bootstrapOf([shut, open], clusters, { stats_flush_on_admin: true }));
      const clients = ['l0', 'l1'].map((name) => new WireClient(proxy.listeners.get(name)!.port));
      t.after(async () => {
        for (const client of clients) client.close();
        await proxy.close();
        await upstream.close();
      });
      const answers = await Promise.all(clients.map((client) => client.write(request()).response()));
      assert.deepEqual(
        answers.map(({ status, body }) => [status, body]),
        [
          [503, '|UAEX|ext_authz_error'],
          [200, 'ok'],
        ],
      );
      assert.deepEqual(await counts(proxy, 'http.l0.ext_authz.'), { error: 1 });
      assert.deepEqual(await counts(proxy, 'http.l1.ext_authz.open.'), { error: 1, failure_mode_allowed: 1 });
      assert.deepEqual(valuesOf(upstream.heads[0]!, 'x-proxy-auth-failure-mode-allowed'), ['true']);
    });
  }
});

describe('the body of a request', () => {
  const BODY = { max_request_bytes: 10 };

  test('is what the service is sent, and goes on behind the answer', async (t) => {
    const guard = await guardFor(t);
    const { client, upstream } = await benchFor(t, guard.port, { http_service: HTTP_SERVICE, with_request_body: BODY });
    client.write(request([], '/', '', 'POST').replace('length: 0', 'length: 8'));
    client.write('1234');
    client.write('5678');
    assert.equal((await client.response()).status, 200);
    assert.deepEqual([guard.last.body, guard.last.headers['x-proxy-auth-partial-body']], ['12345678', 'false']);
    assert.deepEqual(valuesOf(upstream.heads[0]!, 'content-length'), ['8']);
    const chunked = 'POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx-t: 1\r\n\r\n';
    assert.equal((await client.write(chunked).response()).status, 200);
    assert.equal(guard.last.body, 'abc');
    assert.equal((await client.write(request()).response()).status, 200);
    assert.equal(guard.last.body, '');
  });

  test('is too long for the service: nobody is asked', async (t) => {
    const guard = await guardFor(t);
    const fields = { http_service: HTTP_SERVICE, with_request_body: BODY, failure_mode_allow: true };
    const { client } = await benchFor(t, guard.port, fields);
    const { status } = await client.write(request([], '/', '12345678901', 'POST')).response();
    assert.deepEqual([status, guard.told.length], [413, 0]);
  });

  test('may be too long for the service, which is sent what fits', async (t) => {
    const guard = await guardFor(t);
    const fields = { http_service: HTTP_SERVICE, with_request_body: { ...BODY, allow_partial_message: true } };
    const { client, upstream } = await benchFor(t, guard.port, fields);
    const head = request([], '/', '', 'POST').replace('length: 0', 'length: 300000');
    client.write(`${head}123456`);
    client.write('x'.repeat(299_994));
    assert.equal((await client.response()).status, 200);
    assert.deepEqual([guard.last.body, guard.last.headers['x-proxy-auth-partial-body']], ['123456xxxx', 'true']);
    assert.deepEqual(valuesOf(upstream.heads[0]!, 'content-length'), ['300000']);
    // One that fits is whole.
    assert.equal((await client.write(request([], '/', '1234567890', 'POST')).response()).status, 200);
    assert.equal(guard.last.body, '1234567890');
  });

  test('is of no concern on a route that says so, and of another size on another', async (t) => {
    const guard = await guardFor(t);
    const check = (check_settings: JsonObject): JsonObject =>
      typed('ext_authz.v3.ExtAuthzPerRoute', { check_settings });
    const routes = [
      routeTo('/none', { ext_authz: check({ disable_request_body_buffering: true }) }),
      routeTo('/more', { ext_authz: check({ with_request_body: { max_request_bytes: 20 } }) }),
      routeTo('/off', { ext_authz: typed('ext_authz.v3.ExtAuthzPerRoute', { disabled: true }) }),
    ];
    const { client } = await benchFor(
      t,
      guard.port,
      { http_service: HTTP_SERVICE, with_request_body: BODY },
      { routes },
    );
    const twenty = '12345678901234567890';
    assert.equal((await client.write(request([], '/none', twenty, 'POST')).response()).status, 200);
    assert.equal(guard.last.body, '');
    assert.equal((await client.write(request([], '/more', twenty, 'POST')).response()).status, 200);
    assert.equal(guard.last.body, twenty);
    assert.equal((await client.write(request([], '/off', twenty, 'POST')).response()).status, 200);
    assert.equal(guard.told.length, 2);
  });
});

describe('a filter that is not enabled', () => {
  test('asks nobody, and denies where it is told to', async (t) => {
    const guard = await guardFor(t);
    const share = { runtime_key: 'my.share', default_value: { numerator: 0 } };
    const fields = {
      http_service: HTTP_SERVICE,
      filter_enabled: share,
      deny_at_disable: { runtime_key: 'my.deny', default_value: false },
      status_on_error: { code: 'Locked' },
    };
    const bootstrap = { layered_runtime: { layers: [{ name: 'a', admin_layer: {} }] } };
    const { client, proxy } = await benchFor(t, guard.port, fields, { bootstrap });
    assert.equal((await client.write(request()).response()).status, 200);
    assert.deepEqual([guard.told.length, await counts(proxy)], [0, { disabled: 1 }]);
  });

  test('denies by default where that is said', async (t) => {
    const guard = await guardFor(t);
    const fields = {
      http_service: HTTP_SERVICE,
      filter_enabled: { default_value: { numerator: 0 } },
      deny_at_disable: { runtime_key: 'my.deny', default_value: true },
      status_on_error: { code: 'Locked' },
    };
    const { client } = await benchFor(t, guard.port, fields);
    const { status, body } = await client.write(request()).response();
    assert.deepEqual([status, body, guard.told.length], [423, '|UAEX|ext_authz_error', 0]);
  });
});

describe('what a service changes', () => {
  test('leads to another route where it may', async (t) => {
    const guard = await guardFor(t);
    guard.answer = (response) => response.setHeader('x-tenant', 'b').end();
    const routes = [
      {
        match: { prefix: '/', headers: [{ name: 'x-tenant', string_match: { exact: 'b' } }] },
        direct_response: { status: 201 },
      },
      routeTo('/'),
    ];
    const http_service = { ...HTTP_SERVICE, authorization_response: { allowed_upstream_headers: list('x-tenant') } };
    for (const clear_route_cache of [true, false]) {
      const { client } = await benchFor(t, guard.port, { http_service, clear_route_cache }, { routes });
      assert.equal((await client.write(request()).response()).status, clear_route_cache ? 201 : 200);
    }
  });
});

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
    await eventually(() => service.cancelled > 0, 'the call is cancelled');
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
