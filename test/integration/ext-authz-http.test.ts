// The ext_authz filter through the whole proxy, with services of HTTP: what they are told, what their answers do, and what
// happens when they fail. ext-authz-grpc.test.ts has those of gRPC.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it, test } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo, typed } from '../support/embedded-filters.ts';
import {
  type Bench,
  benchFor,
  close,
  counts,
  EXT_AUTHZ,
  Guard,
  guarded,
  guardFor,
  HTTP_SERVICE,
  list,
  OK,
  REPLIES,
  request,
  valuesOf,
} from '../support/guarded-proxy.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

/** Said to the proxy, and to nobody else. */
const TO_REMOVE = 'x-envoy-auth-headers-to-remove';
const LONG_AGO = 'Thu, 01 Jan 1970 00:00:00 GMT';

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
          allowed_upstream_headers: list('x-user', 'x-list', TO_REMOVE),
          allowed_upstream_headers_to_append: list('x-more', 'x-nobody'),
          allowed_client_headers: list('x-why', TO_REMOVE),
          allowed_client_headers_on_success: list('x-seen', 'content-length', TO_REMOVE),
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
      response.setHeader(TO_REMOVE, ['Authorization ,x-gone', 'host']);
      response.end('is not sent');
    };
    const lines = ['authorization: Basic abc', 'x-user: mallory', 'x-gone: 1', 'x-more: a', 'x-list: 0'];
    const { head, body } = await bench.client.write(request(lines)).response();
    const sent = bench.upstream.heads.at(-1)!;
    assert.deepEqual(valuesOf(sent, 'x-user'), ['ann']);
    assert.deepEqual(valuesOf(sent, 'x-list'), ['1', '2']);
    assert.deepEqual(valuesOf(sent, 'x-more'), ['a,b']);
    for (const name of ['authorization', 'x-gone', 'x-nobody', 'x-other', TO_REMOVE])
      assert.deepEqual(valuesOf(sent, name), [], name);
    assert.deepEqual(valuesOf(sent, 'host'), ['shop.test']);
    assert.deepEqual([valuesOf(head, 'x-seen'), valuesOf(head, 'content-length'), body], [['c', 'd'], ['2'], 'ok']);
    assert.deepEqual(valuesOf(head, TO_REMOVE), []);
  });

  it('turns a request away as it says, with its headers and its body', async () => {
    guard.answer = (response) => {
      response.writeHead(302, {
        location: 'https://login.test/',
        'x-why': 'nobody knows you',
        'x-other': '1',
        [TO_REMOVE]: 'x-why',
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
    for (const name of ['x-other', 'set-cookie', TO_REMOVE]) assert.deepEqual(valuesOf(head, name), [], name);
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

describe('a request that is turned away', () => {
  test('tells the client all that the service says where nothing is left out', async (t) => {
    const guard = await guardFor(t);
    guard.answer = (response) => {
      response.writeHead(401, {
        'www-authenticate': 'Basic',
        'set-cookie': ['a=1', 'b=2'],
        'keep-alive': 'timeout=9',
        date: LONG_AGO,
      });
      response.end();
    };
    const { client } = await benchFor(t, guard.port, { http_service: HTTP_SERVICE });
    const { status, head } = await client.write(request()).response();
    assert.equal(status, 401);
    assert.deepEqual(valuesOf(head, 'www-authenticate'), ['Basic']);
    assert.deepEqual(valuesOf(head, 'set-cookie'), ['a=1', 'b=2']);
    assert.deepEqual([valuesOf(head, 'keep-alive'), valuesOf(head, 'transfer-encoding')], [[], []]);
    // Of the moment at which this proxy answers.
    assert.equal(valuesOf(head, 'date').length, 1);
    assert.notEqual(valuesOf(head, 'date')[0], LONG_AGO);
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
        filteredListener([filterOf(EXT_AUTHZ, fields)], [routeTo('/')], {
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

describe('an upgrade', () => {
  test('is asked about at once: what it carries is no body', async (t) => {
    const guard = await guardFor(t);
    guard.answer = (response) => response.writeHead(403).end();
    const fields = { http_service: HTTP_SERVICE, with_request_body: { max_request_bytes: 10 } };
    const manager = { upgrade_configs: [{ upgrade_type: 'websocket' }] };
    const { client } = await benchFor(t, guard.port, fields, { manager });
    const { status } = await client.write(request(['connection: upgrade', 'upgrade: websocket'])).response();
    assert.deepEqual([status, guard.last.method, guard.last.body], [403, 'GET', '']);
  });
});

describe('what a service says to the router', () => {
  test('counts as if the request had said so', async (t) => {
    const guard = await guardFor(t);
    guard.answer = (response) => response.setHeader('x-envoy-upstream-rq-timeout-ms', '700').end();
    const allowed_upstream_headers = list('x-envoy-upstream-rq-timeout-ms');
    const { client, upstream } = await benchFor(t, guard.port, {
      http_service: { ...HTTP_SERVICE, authorization_response: { allowed_upstream_headers } },
    });
    assert.equal((await client.write(request()).response()).status, 200);
    assert.deepEqual(valuesOf(upstream.heads[0]!, 'x-proxy-expected-rq-timeout-ms'), ['700']);
    assert.deepEqual(valuesOf(upstream.heads[0]!, 'x-envoy-upstream-rq-timeout-ms'), []);
  });
});
