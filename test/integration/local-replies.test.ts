// What a connection manager makes of replies of the proxy's own, asked for over HTTP/1.1, HTTP/2 and as gRPC. The rules are
// written as operators write them, and loaded.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { HttpConnectionManagerSettings, RouteSnapshot } from '../../src/snapshot/index.ts';
import { httpFilter, type JsonObject, listenerWith, mustLoad, withListeners } from '../support/bootstrap.ts';
import { DataPlaneFixture, directRoute, forwardTo, loopback, routeFor, routeTo } from '../support/data-plane.ts';
import { Http2Client } from '../support/http2-clients.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { unusedPort, WireClient, WireUpstream } from '../support/wire.ts';

interface BenchOptions {
  readonly routes?: readonly RouteSnapshot[];
  /** Further fields of the connection manager. */
  readonly fields?: JsonObject;
  readonly upstream?: number;
  readonly clock?: ManualClock;
}

interface Bench {
  readonly proxy: DataPlaneFixture;
  readonly port: number;
  readonly client: WireClient;
}

async function benchOf(t: TestContext, rules: JsonObject, options: BenchOptions = {}): Promise<Bench> {
  const manager = httpFilter({ local_reply_config: rules, ...options.fields });
  const { filter } = mustLoad(withListeners(listenerWith([manager]))).listeners[0]!.filterChains[0]!;
  const { localReplies, accessLogs, maxHeadersCount } = filter as HttpConnectionManagerSettings;
  assert.ok(localReplies);
  const proxy = new DataPlaneFixture(options.clock === undefined ? {} : { clock: options.clock });
  t.after(() => proxy.close());
  proxy.cluster('web', [loopback(options.upstream ?? (await unusedPort()))]);
  const routes = options.routes ?? [directRoute('/denied', 403, 'denied'), routeTo('web', { prefix: '/web' })];
  const port = await proxy.http(routes, { localReplies, accessLogs, maxHeadersCount });
  const client = new WireClient(port);
  t.after(() => client.close());
  return { proxy, port, client };
}

function get(target: string, fields = ''): string {
  return `GET ${target} HTTP/1.1\r\nhost: web.test\r\n${fields}\r\n`;
}

function field(head: string, name: string): string | undefined {
  return new RegExp(`^${name}: (.*)\r$`, 'm').exec(head)?.[1];
}

function statusIs(value: number): JsonObject {
  return { status_code_filter: { comparison: { op: 'EQ', value: { default_value: value, runtime_key: 'x' } } } };
}

function sent(name: string, value: string): JsonObject {
  return { header_filter: { header: { name, string_match: { exact: value } } } };
}

const text = (inline_string: string): JsonObject => ({ text_format_source: { inline_string } });

describe('a mapper of replies', () => {
  test('gives the first that it lets pass another status, body and more fields', async (t) => {
    const { client, proxy } = await benchOf(t, {
      mappers: [
        { filter: statusIs(503), status_code: 500 },
        {
          filter: statusIs(403),
          status_code: 401,
          body: { inline_string: 'who are you? — weir' },
          headers_to_add: [{ header: { key: 'www-authenticate', value: 'Basic' } }],
        },
        { filter: statusIs(403), status_code: 418 },
        { filter: statusIs(401), status_code: 418 },
      ],
    });
    const { head, body, status } = await client.write(get('/denied')).response();
    assert.equal(status, 401);
    assert.match(head, /^HTTP\/1\.1 401 Unauthorized\r\n/);
    assert.equal(Buffer.from(body, 'latin1').toString(), 'who are you? — weir');
    assert.equal(field(head, 'www-authenticate'), 'Basic');
    assert.equal(field(head, 'content-type'), 'text/plain');
    assert.equal(field(head, 'server'), 'weir');
    assert.equal(head.match(/content-length/g)!.length, 1);
    // No route: none of the filters passes.
    const none = await client.write(get('/none')).response();
    assert.deepEqual([none.status, none.body, field(none.head, 'content-type')], [404, '', undefined]);
    assert.equal(proxy.httpStat('downstream_rq_4xx'), 2);
  });

  test('sees the request, and the flags and details of the reply', async (t) => {
    const { client } = await benchOf(t, {
      mappers: [
        { filter: { and_filter: { filters: [statusIs(503), sent('x-kind', 'a')] } }, body: { inline_string: 'a' } },
        { filter: { response_flag_filter: { flags: ['UF'] } }, body: { inline_string: 'unreachable' } },
        { filter: { response_flag_filter: { flags: ['NR'] } }, body: { inline_string: 'nothing there' } },
      ],
    });
    assert.equal((await client.write(get('/web', 'x-kind: a\r\n')).response()).body, 'a');
    assert.equal((await client.write(get('/web', 'x-kind: b\r\n')).response()).body, 'unreachable');
    assert.equal((await client.write(get('/none')).response()).body, 'nothing there');
    assert.equal((await client.write(get('/denied')).response()).body, 'denied');
  });

  test('may take the body away, with what described it', async (t) => {
    const { client } = await benchOf(t, {
      mappers: [
        { filter: sent('x-to', '204'), status_code: 204 },
        { filter: sent('x-to', 'empty'), body: { inline_string: '' } },
      ],
    });
    const bare = await client.write(get('/denied', 'x-to: 204\r\n')).response();
    assert.equal(bare.status, 204);
    assert.doesNotMatch(bare.head, /content-(length|type)/);
    const empty = await client.write(get('/denied', 'x-to: empty\r\n')).response();
    assert.deepEqual(
      [empty.status, field(empty.head, 'content-length'), field(empty.head, 'content-type')],
      [403, '0', undefined],
    );
    assert.equal((await client.write(get('/denied')).response()).body, 'denied');
  });

  test('adds its fields to those of the route, with the status that there was', async (t) => {
    const add = [
      { name: 'x-a', value: ['route'], action: 'append', keepsEmptyValue: false },
      { name: 'content-type', value: ['text/css'], action: 'overwrite', keepsEmptyValue: false },
    ] as const;
    const responseEdits = [{ remove: [], add }];
    const routes = [directRoute('/other', 401, 'who?'), directRoute('/', 403, 'denied')].map((route) => ({
      ...route,
      responseEdits,
    }));
    const { client } = await benchOf(
      t,
      {
        mappers: [
          {
            filter: statusIs(403),
            status_code: 404,
            headers_to_add: [
              { header: { key: 'x-a', value: '%RESPONSE_CODE% %RESP(x-a)%' }, append_action: 'OVERWRITE_IF_EXISTS' },
              { header: { key: 'x-b', value: '%REQ(:PATH)%' } },
            ],
          },
          { filter: statusIs(401), body: { inline_string: 'other' } },
        ],
      },
      { routes },
    );
    const { head, status } = await client.write(get('/q')).response();
    assert.equal(status, 404);
    assert.equal(field(head, 'x-a'), '403 route');
    assert.equal(field(head, 'x-b'), '/q');
    // The body is as it was, and so is what the route says of it.
    assert.equal(field(head, 'content-type'), 'text/css');
    const other = await client.write(get('/other')).response();
    assert.deepEqual([other.body, field(other.head, 'content-type')], ['other', 'text/plain']);
  });

  test('leaves answers of upstreams alone', async (t) => {
    const upstream = await WireUpstream.answering('HTTP/1.1 403 Forbidden\r\ncontent-length: 4\r\n\r\ntold');
    t.after(() => upstream.close());
    const rules = { mappers: [{ filter: statusIs(403), status_code: 500 }], body_format: text('mine') };
    const { client } = await benchOf(t, rules, { upstream: upstream.port });
    const { status, body } = await client.write(get('/web')).response();
    assert.deepEqual([status, body], [403, 'told']);
  });
});

describe('a format of replies', () => {
  test('words every body, those that are empty, too, and sees what a mapper has done', async (t) => {
    const { client } = await benchOf(t, {
      mappers: [
        {
          filter: statusIs(403),
          status_code: 401,
          headers_to_add: [{ header: { key: 'x-was', value: '%RESPONSE_CODE%' } }],
        },
        { filter: statusIs(503), body_format_override: { json_format: { why: '%RESPONSE_FLAGS%' } } },
      ],
      body_format: { ...text('<b>%RESPONSE_CODE% %RESP(x-was)% é</b>%LOCAL_REPLY_BODY%\n'), content_type: 'text/html' },
    });
    const denied = await client.write(get('/denied')).response();
    assert.equal(Buffer.from(denied.body, 'latin1').toString(), '<b>401 403 é</b>denied\n');
    assert.equal(field(denied.head, 'content-type'), 'text/html');
    const none = await client.write(get('/none')).response();
    assert.equal(Buffer.from(none.body, 'latin1').toString(), '<b>404 - é</b>\n');
    const failed = await client.write(get('/web')).response();
    assert.equal(failed.body, '{"why":"UF"}\n');
    assert.equal(field(failed.head, 'content-type'), 'application/json');
  });

  test('makes JSON with the types of its values', async (t) => {
    const json_format = { status: '%RESPONSE_CODE%', path: '%REQ(:PATH)%', said: '%LOCAL_REPLY_BODY%', id: '%REQ(x)%' };
    const { client } = await benchOf(t, { body_format: { json_format } });
    const { body } = await client.write(get('/denied?"')).response();
    assert.deepEqual(JSON.parse(body), { status: 403, path: '/denied?"', said: 'denied', id: null });
  });

  test('answers HEAD with the length of what GET would get', async (t) => {
    const { client } = await benchOf(t, { body_format: text('%RESPONSE_CODE%!') });
    const head = await client.write(get('/denied').replace('GET', 'HEAD')).until('\r\n\r\n');
    assert.equal(field(head, 'content-length'), '4');
    assert.equal((await client.write(get('/denied')).response()).body, '403!');
  });

  test('knows the request of a reply that comes late, whatever has been read since', async (t) => {
    const clock = new ManualClock();
    const asked = Promise.withResolvers<void>();
    const upstream = await WireUpstream.start((socket) => socket.once('data', () => asked.resolve()));
    t.after(() => upstream.close());
    const routes = [directRoute('/denied', 403, ''), routeFor('/', forwardTo('web', { timeoutMs: 1000 }))];
    const rules = { body_format: text('%REQ(:PATH)% %DURATION% %UPSTREAM_HOST%') };
    const { client, port, proxy } = await benchOf(t, rules, { routes, upstream: upstream.port, clock });
    client.write(get('/slow'));
    await asked.promise;
    const other = new WireClient(port);
    t.after(() => other.close());
    assert.match((await other.write(get('/denied')).response()).body, /^\/denied 0 -$/);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_active'), 1);
    clock.turn(1000);
    const { status, body } = await client.response();
    assert.deepEqual([status, body], [504, `/slow 1000 127.0.0.1:${upstream.port}`]);
  });

  test('words what is said to clients that break HTTP', async (t) => {
    const rules = {
      mappers: [{ filter: statusIs(400), status_code: 503 }],
      body_format: text('%RESPONSE_CODE_DETAILS%: %LOCAL_REPLY_BODY%'),
    };
    const { client, proxy } = await benchOf(t, rules);
    const { status, body } = await client.write('GET /\u0001 HTTP/1.1\r\n\r\n').response();
    assert.equal(status, 503);
    assert.match(body, /^http1\.codec_error\{.*\}: Bad Request$/);
    assert.equal(await client.rest(), '');
    assert.equal(proxy.httpStat('downstream_rq_5xx'), 1);
  });
});

describe('rules of replies', () => {
  const RULES = {
    mappers: [{ filter: statusIs(403), status_code: 503, body: { inline_string: 'closed' } }],
    body_format: { json_format: { code: '%RESPONSE_CODE%', why: '%LOCAL_REPLY_BODY%' } },
  };

  test('hold over HTTP/2 as well', async (t) => {
    const { port } = await benchOf(t, RULES);
    const { status, headers, body } = await new Http2Client(t, port).get('/denied');
    assert.deepEqual(
      [status, headers['content-type'], body],
      [503, 'application/json', '{"code":503,"why":"closed"}\n'],
    );
    assert.equal(headers['content-length'], String(body.length));
  });

  test('make the status and the message of gRPC', async (t) => {
    const { port, client } = await benchOf(t, RULES);
    const expected = ['application/grpc', '14', '{"code":503,"why":"closed"}'];
    const call = { ':method': 'POST', ':path': '/denied', 'content-type': 'application/grpc' };
    const { status, headers, body } = await new Http2Client(t, port).fetch(call, '');
    assert.deepEqual([status, body], [200, '']);
    assert.deepEqual([headers['content-type'], headers['grpc-status'], headers['grpc-message']], expected);
    const post = get('/denied', 'content-type: application/grpc\r\ncontent-length: 0\r\n').replace('GET', 'POST');
    const { head } = await client.write(post).response();
    assert.deepEqual(
      ['content-type', 'grpc-status', 'grpc-message'].map((name) => field(head, name)),
      expected,
    );
    assert.equal(field(head, 'content-length'), '0');
  });

  test('leave what a mapper says of gRPC', async (t) => {
    const headers_to_add = [{ header: { key: 'grpc-status', value: '7' } }];
    const { port } = await benchOf(t, { mappers: [{ filter: statusIs(403), headers_to_add }] });
    const call = { ':method': 'POST', ':path': '/denied', 'content-type': 'application/grpc' };
    const { headers } = await new Http2Client(t, port).fetch(call, '');
    assert.deepEqual([headers['grpc-status'], headers['grpc-message']], ['7', 'denied']);
  });

  test('reach the head that is too large, whichever the protocol', async (t) => {
    const fields = { common_http_protocol_options: { max_headers_count: 5 } };
    const rules = {
      mappers: [{ filter: statusIs(431), status_code: 400 }],
      body_format: text('%RESPONSE_CODE%: %LOCAL_REPLY_BODY%'),
    };
    const { client, port, proxy } = await benchOf(t, rules, { fields });
    const headers = Array.from({ length: 9 }, (_none, index) => [`x-${index}`, '1']);
    const answer = await new Http2Client(t, port).fetch({ ':path': '/', ...Object.fromEntries(headers) });
    const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    const old = await client.write(get('/', lines)).response();
    assert.deepEqual([answer.status, answer.body], [400, '400: Request Header Fields Too Large']);
    assert.deepEqual([old.status, old.body], [400, '400: Request Header Fields Too Large']);
    assert.equal(proxy.httpStat('downstream_rq_4xx'), 2);
    assert.equal(proxy.httpStat('downstream_rq_too_large'), 2);
  });

  test('are in the access log with what was sent, and the words before a format', async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-local-replies-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const file = path.join(folder, 'access.log');
    const log_format = text('%RESPONSE_CODE% %BYTES_SENT% %RESPONSE_CODE_DETAILS% %LOCAL_REPLY_BODY%\n');
    const access_log = [
      {
        name: 'file',
        typed_config: {
          '@type': 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog',
          path: file,
          log_format,
        },
      },
    ];
    const rules = {
      mappers: [{ filter: statusIs(403), status_code: 503, body: { inline_string: 'zu€' } }],
      body_format: text('123'),
    };
    const { client, proxy } = await benchOf(t, rules, { fields: { access_log } });
    await client.write(get('/denied')).response();
    await client.write('GET /\u0001 HTTP/1.1\r\n\r\n').rest();
    await proxy.close();
    const [first, second] = readFileSync(file, 'utf8').split('\n');
    assert.equal(first, '503 3 direct_response zu€');
    assert.match(second!, /^400 3 http1\.codec_error\{.*\} Bad Request$/);
  });
});
