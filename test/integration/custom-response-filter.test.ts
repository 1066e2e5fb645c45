// Responses that take the place of others, through the whole proxy: of the proxy's own, and to other requests.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type OutgoingHttpHeaders, request, type Server } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo, typed } from '../support/embedded-filters.ts';
import { untilEqual } from '../support/eventually.ts';

const POLICIES = 'type.googleapis.com/envoy.extensions.http.custom_response';
const INPUTS = 'type.googleapis.com/envoy.type.matcher.v3';
const HOST = 'HttpRequestHeaderMatchInput';

type Script = (message: IncomingMessage) => {
  status?: number;
  headers?: OutgoingHttpHeaders;
  body?: string;
  /** The body goes out, and the response does not end. */
  isOpen?: boolean;
  /** Nothing goes out before. */
  held?: Promise<void>;
};

const localPolicy = (fields: JsonObject): JsonObject => ({
  '@type': `${POLICIES}.local_response_policy.v3.LocalResponsePolicy`,
  ...fields,
});
const redirectPolicy = (fields: JsonObject): JsonObject => ({
  '@type': `${POLICIES}.redirect_policy.v3.RedirectPolicy`,
  ...fields,
});
const leadsTo = (policy: JsonObject): JsonObject => ({ action: { name: 'policy', typed_config: policy } });
const header = (key: string, value: string): JsonObject => ({
  header: { key, value },
  append_action: 'OVERWRITE_IF_EXISTS_OR_ADD',
});

/** By one input, from its values to what they lead to. */
function byValue(type: string, fields: JsonObject, policies: Record<string, JsonObject>): JsonObject {
  const entries = Object.entries(policies).map(([value, policy]) => [value, leadsTo(policy)] as const);
  const input = { name: 'input', typed_config: { '@type': `${INPUTS}.${type}`, ...fields } };
  return { matcher_tree: { input, exact_match_map: { map: Object.fromEntries(entries) } } };
}

const byStatus = (policies: Record<string, JsonObject>): JsonObject =>
  byValue('HttpResponseStatusCodeMatchInput', {}, policies);

const customOf = (custom_response_matcher: JsonObject): JsonObject =>
  filterOf('custom_response.v3.CustomResponse', { custom_response_matcher });

const perRoute = (custom_response_matcher: JsonObject): Record<string, JsonObject> => ({
  custom_response: typed('custom_response.v3.CustomResponse', { custom_response_matcher }),
});

const adding = (name: string): JsonObject => ({
  ...filterOf('header_mutation.v3.HeaderMutation', {
    mutations: {
      response_mutations: [
        { append: { header: { key: `x-${name}`, value: '1' } } },
        {
          append: {
            header: { key: `x-${name}-details`, value: '%RESPONSE_CODE% %RESPONSE_CODE_DETAILS% %REQ(:PATH)%' },
          },
        },
      ],
    },
  }),
  name,
});

describe('the custom_response filter', () => {
  let server: Server;
  let proxy: Awaited<ReturnType<typeof createProxy>>;
  let asked: { url: string; method: string; headers: IncomingMessage['headers']; body: string }[] = [];
  let script: Script = () => ({});
  /** An open response has been broken off. */
  let cut: () => void = () => {};

  before(async () => {
    server = createServer().on('upgrade', (_request, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n');
      socket.on('error', () => {}).pipe(socket);
    });
    server.on('request', async (message, response) => {
      const parts: Buffer[] = [];
      for await (const part of message) parts.push(part as Buffer);
      const { url, method, headers: fields } = message;
      asked.push({ url: url!, method: method!, headers: fields, body: Buffer.concat(parts).toString() });
      const { status = 200, headers = {}, body = '', isOpen = false, held } = script(message);
      await held;
      response.writeHead(status, headers);
      if (isOpen) response.on('close', () => cut()).write(body);
      else response.end(body);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const page = (path: string, fields: JsonObject = {}): JsonObject =>
      redirectPolicy({ uri: `http://pages.example${path}`, ...fields });
    const own = byStatus({
      503: localPolicy({
        body: { inline_string: 'sorry' },
        body_format: {
          text_format_source: { inline_string: '%LOCAL_REPLY_BODY% %RESPONSE_CODE% %RESP(x-why)% %REQ(x-who)%' },
        },
        response_headers_to_add: [header('x-from', '%RESPONSE_CODE%')],
      }),
      404: localPolicy({ status_code: 410, body: { inline_string: 'nothing' } }),
      418: localPolicy({
        status_code: 200,
        body_format: { json_format: { is: '%LOCAL_REPLY_BODY%' } },
        body: { inline_string: 'tea' },
      }),
      401: localPolicy({ status_code: 403 }),
      101: localPolicy({ body: { inline_string: 'no tunnel' } }),
      304: page('/page'),
      500: page('/page?of=%', {
        response_headers_to_add: [header('x-page', '%RESPONSE_CODE%')],
        request_headers_to_add: [header('x-asks', '%REQ(x-who)%')],
      }),
      501: page('/page', { status_code: 299 }),
      502: page('/direct', { response_headers_to_add: [header('x-page', 'direct')] }),
      504: page('/dead'),
      505: redirectPolicy({ uri: 'http://nowhere.example/' }),
      506: redirectPolicy({ redirect_action: { path_redirect: '/page', strip_query: true } }),
      507: redirectPolicy({ redirect_action: { host_redirect: 'a b' } }),
      508: page('/failing'),
    });
    const routes = [
      routeTo(
        '/html',
        perRoute(
          byValue(HOST, { header_name: 'accept' }, { 'text/html': localPolicy({ body: { inline_string: '<p>' } }) }),
        ),
      ),
      routeTo('/class', perRoute(byValue('HttpResponseStatusCodeClassMatchInput', {}, { '5xx': localPolicy({}) }))),
      routeTo(
        '/header',
        perRoute(byValue('HttpResponseHeaderMatchInput', { header_name: 'X-Kind' }, { bad: localPolicy({}) })),
      ),
      routeTo(
        '/query',
        perRoute(byValue('HttpRequestQueryParamMatchInput', { query_param: 'q' }, { y: localPolicy({}) })),
      ),
      { match: { prefix: '/dead' }, route: { cluster: 'dead' } },
      routeTo('/late/', perRoute(byStatus({ 503: page('/late') })), { route: { cluster: 'dead' } }),
      routeTo('/late-direct', perRoute(byStatus({ 503: page('/direct', { status_code: 510 }) })), {
        route: { cluster: 'dead' },
      }),
      { match: { prefix: '/505' }, direct_response: { status: 505, body: { inline_string: 'of 505' } } },
      { match: { prefix: '/page' }, route: { cluster: 'web' } },
      { match: { prefix: '/none', headers: [{ name: 'x-none', present_match: true }] }, route: { cluster: 'web' } },
      { match: { prefix: '/there' }, route: { cluster: 'web' } },
    ];
    const pages = [
      { match: { prefix: '/direct' }, direct_response: { status: 200, body: { inline_string: 'of a route' } } },
      { match: { prefix: '/dead' }, route: { cluster: 'dead' } },
      {
        match: { prefix: '/' },
        route: { cluster: 'web', prefix_rewrite: '/pages/' },
        response_headers_to_add: [header('x-route', 'pages')],
      },
    ];
    const virtual_hosts = [
      { name: 'pages', domains: ['pages.example'], routes: pages },
      { name: 'nowhere', domains: ['nowhere.example'], routes: [] },
      { name: 'all', domains: ['*'], routes },
    ];
    const abort = filterOf('fault.v3.HTTPFault', {
      abort: { http_status: 500, percentage: { numerator: 100 } },
      headers: [{ name: 'x-abort', present_match: true }],
    });
    const compressor = filterOf('compressor.v3.Compressor', {
      compressor_library: {
        name: 'gzip',
        typed_config: { '@type': 'type.googleapis.com/envoy.extensions.compression.gzip.compressor.v3.Gzip' },
      },
      response_direction_config: { common_config: { min_content_length: 1 } },
    });
    const main = filteredListener([adding('front'), abort, compressor, customOf(own), adding('behind')], [], {
      manager: {
        codec_type: 'AUTO',
        upgrade_configs: [{ upgrade_type: 'websocket' }],
        route_config: { virtual_hosts },
      },
    });
    const { port } = server.address() as AddressInfo;
    const closed = createServer();
    await once(closed.listen(0, '127.0.0.1'), 'listening');
    const { port: deadPort } = closed.address() as AddressInfo;
    closed.close();
    proxy = await createProxy(
      bootstrapOf([main], [clusterAt('web', port), clusterAt('dead', deadPort)], { stats_flush_on_admin: true }),
    );
  });

  after(async () => {
    await proxy?.close();
    server?.closeAllConnections();
    server?.close();
  });

  beforeEach(() => {
    asked = [];
  });

  const port = (): number => proxy.listeners.get('main')!.port;

  async function send(path: string, headers: Record<string, string> = {}, method = 'GET', body = '') {
    const sent = request({ port: port(), host: '127.0.0.1', path, method, agent: false, headers });
    sent.end(body);
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    const parts: Buffer[] = [];
    for await (const part of answer) parts.push(part as Buffer);
    return { status: answer.statusCode!, body: Buffer.concat(parts).toString(), headers: answer.headers };
  }

  /** The upstream's first answer has this status; what is asked for then gets a 200. */
  const failing =
    (status: number, headers: OutgoingHttpHeaders = {}): Script =>
    ({ url }) =>
      url!.startsWith('/pages') || url!.startsWith('/page')
        ? { headers: { 'x-own': 'page' }, body: `page of ${url}` }
        : { status, headers: { 'x-why': 'tired', 'set-cookie': 'a=b', ...headers }, body: 'of the upstream' };

  const stat = (name: string): number => proxy.stats.value(`http.main.${name}`) ?? 0;

  describe('by a policy of its own', () => {
    it('words the body by a format that sees the response at hand, and leaves nothing else of it', async () => {
      script = failing(503, { 'content-encoding': 'x', 'content-type': 'a/b' });
      const { status, body, headers } = await send('/there', { 'x-who': 'me' });
      assert.deepEqual([status, body], [503, 'sorry 503 tired me']);
      assert.equal(headers['content-type'], 'text/plain');
      assert.equal(headers['content-length'], '18');
      for (const name of ['x-why', 'set-cookie', 'content-encoding']) assert.equal(headers[name], undefined, name);
      // Filters nearer to the upstream have edited what is gone; those nearer to the client say theirs once.
      assert.deepEqual([headers['x-from'], headers['x-front'], headers['x-behind']], ['503', '1', undefined]);
      assert.equal(headers['x-front-details'], '503 via_upstream /there');
    });

    it('is for filters before it a reply of the proxy itself', async () => {
      script = failing(503, { 'content-type': 'text/plain' });
      const { body, headers } = await send('/there', { 'accept-encoding': 'gzip' });
      assert.deepEqual([body, headers['content-encoding']], ['sorry 503 tired -', undefined]);
    });

    it('leaves tunnels alone', async () => {
      const sent = request({
        port: port(),
        host: '127.0.0.1',
        path: '/there',
        headers: { connection: 'upgrade', upgrade: 'websocket' },
        agent: false,
      });
      sent.end();
      const [, socket] = (await once(sent, 'upgrade')) as [IncomingMessage, Socket];
      socket.write('through');
      assert.equal(String((await once(socket, 'data'))[0]), 'through');
      socket.destroy();
    });

    it('changes the status, and formats as JSON', async () => {
      script = failing(418);
      const { status, body, headers } = await send('/there');
      assert.deepEqual([status, body], [200, '{"is":"tea"}\n']);
      assert.equal(headers['content-type'], 'application/json');
      script = failing(401);
      const bare = await send('/there');
      assert.deepEqual([bare.status, bare.body, bare.headers['content-type']], [403, '', undefined]);
    });

    it('takes replies of the proxy itself like responses', async () => {
      const lost = await send('/nobody');
      assert.deepEqual([lost.status, lost.body, lost.headers['x-front']], [410, 'nothing', '1']);
      const dead = await send('/dead', { 'x-who': 'you' });
      assert.deepEqual([dead.status, dead.body, dead.headers['x-from']], [503, 'sorry 503 - you', '503']);
      // Both filters have seen the reply that there was first.
      assert.deepEqual([dead.headers['x-front'], dead.headers['x-behind']], ['1', undefined]);
    });

    it('announces the body to HEAD without sending it', async () => {
      script = failing(503);
      const { status, body, headers } = await send('/there', {}, 'HEAD');
      assert.deepEqual([status, body, headers['content-length']], [503, '', '17']);
    });

    it('tells clients of gRPC in their way', async () => {
      script = failing(404);
      const { status, headers } = await send('/there', { 'content-type': 'application/grpc' }, 'POST');
      assert.deepEqual([status, headers['grpc-status'], headers['grpc-message']], [200, '2', 'nothing']);
    });

    it('goes by what the route says first, then by its own', async () => {
      script = failing(404);
      assert.deepEqual((await send('/html', { accept: 'text/html' })).body, '<p>');
      assert.deepEqual((await send('/html', { accept: 'text/plain' })).body, 'nothing');
      script = failing(500);
      assert.deepEqual((await send('/class')).body, '');
      script = () => ({ status: 499, body: 'as it is' });
      assert.deepEqual((await send('/class')).body, 'as it is');
      script = () => ({ headers: { 'x-kind': 'bad' }, body: 'as it is' });
      assert.deepEqual((await send('/header')).body, '');
      script = () => ({ headers: { 'x-kind': 'good' }, body: 'as it is' });
      assert.deepEqual((await send('/header')).body, 'as it is');
      assert.deepEqual((await send('/query?a=1&q=y')).body, '');
      assert.deepEqual((await send('/query?a=1&q=n')).body, 'as it is');
    });

    it('leaves the connection of the client as it was', async () => {
      script = failing(503);
      const socket = connect(port(), '127.0.0.1');
      socket.write('GET /there HTTP/1.1\r\nhost: a\r\n\r\nGET /there HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
      let text = '';
      for await (const part of socket) text += String(part);
      assert.equal(text.match(/sorry 503 tired /g)?.length, 2);
      assert.equal(text.match(/HTTP\/1\.1 503 /g)?.length, 2);
    });
  });

  describe('by the answer to another request', () => {
    it('asks by the route that is found for it, and keeps the status that there was', async () => {
      script = failing(500);
      const { status, body, headers } = await send('/there?a=b', { 'x-who': 'me', cookie: 'c=d' });
      assert.deepEqual([status, body], [500, 'page of /pages/page?of=%']);
      assert.equal(headers['x-front-details'], '500 via_upstream /pages/page?of=%');
      assert.deepEqual([headers['x-own'], headers['x-page'], headers['x-route']], ['page', '500', 'pages']);
      // Filters nearer to the router have not seen it.
      assert.deepEqual([headers['x-front'], headers['x-behind'], headers['set-cookie']], ['1', undefined, undefined]);
      const [, other] = asked;
      assert.equal(asked.length, 2);
      assert.deepEqual([other!.method, other!.headers.host, other!.headers.cookie], ['GET', 'pages.example', 'c=d']);
      assert.equal(other!.headers['x-asks'], 'me');
      assert.match(String(other!.headers['x-proxy-original-url']), /^http:\/\/127\.0\.0\.1:\d+\/there\?a=b$/);
      script = failing(501);
      assert.equal((await send('/there')).status, 299);
    });

    it('asks with GET and without a body, whatever the client has sent', async () => {
      script = failing(500);
      const { status, body } = await send('/there', { 'content-type': 'a/b' }, 'POST', 'of the client');
      assert.deepEqual([status, body], [500, 'page of /pages/page?of=%']);
      const [first, other] = asked;
      assert.deepEqual([first!.method, first!.body], ['POST', 'of the client']);
      assert.deepEqual([other!.method, other!.body, other!.headers['content-length']], ['GET', '', undefined]);
    });

    it('asks HEAD for HEAD', async () => {
      script = failing(500);
      const { status, body, headers } = await send('/there', {}, 'HEAD');
      assert.deepEqual([status, body, headers['x-own']], [500, '', 'page']);
      assert.deepEqual(
        asked.map(({ method }) => method),
        ['HEAD', 'HEAD'],
      );
    });

    it('asks in place of replies of the proxy itself, and drops what still comes of the body', async () => {
      const { promise: held, resolve: answer } = Promise.withResolvers<void>();
      script = () => ({ body: 'late', held });
      const socket = connect(port(), '127.0.0.1');
      const closed = once(socket, 'close');
      let text = '';
      socket.setEncoding('latin1').on('data', (part) => {
        text += part;
      });
      const body = Buffer.alloc(300_000, 'x');
      const before = stat('downstream_cx_rx_bytes_total');
      socket.write(`POST /late/ HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\nhalf`);
      await untilEqual(1, () => asked.length, 'requests for the page');
      await new Promise<void>((resolve) => socket.write(body.subarray(4), () => resolve()));
      await untilEqual(true, () => stat('downstream_cx_rx_bytes_total') >= before + body.length, 'the body');
      answer();
      await untilEqual(true, () => text.includes('late'), 'the response');
      socket.end('GET /505 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
      await closed;
      assert.match(text, /^HTTP\/1\.1 503 [\s\S]*late[\s\S]*HTTP\/1\.1 505 [\s\S]*of 505$/);
      assert.deepEqual(
        asked.map(({ method, url, body: sent }) => [method, url, sent]),
        [['GET', '/pages/late', '']],
      );
    });

    it('breaks the response off that it does not want', async () => {
      const isCut = new Promise<void>((resolve) => {
        cut = resolve;
      });
      script = (message) => ({ ...failing(500)(message), isOpen: message.url === '/there' });
      assert.equal((await send('/there')).body, 'page of /pages/page?of=%');
      await isCut;
      cut = () => {};
    });

    it('asks for nobody before it has seen a request', async () => {
      const { status, body } = await send('/there', { 'x-abort': '1' });
      assert.deepEqual([status, body, asked.length], [500, 'fault filter abort', 0]);
    });

    it('gives no body a status that has none', async () => {
      script = failing(304);
      const { status, body } = await send('/there');
      assert.deepEqual([status, body], [200, 'page of /pages/page']);
    });

    it('gives a route without an upstream as answer', async () => {
      script = failing(502);
      const { status, body, headers } = await send('/there');
      assert.deepEqual([status, body], [502, 'of a route']);
      assert.equal(headers['x-front-details'], '502 direct_response /direct');
      assert.deepEqual([headers['x-page'], headers['x-front'], headers['x-behind']], ['direct', '1', undefined]);
      // In place of a reply of the proxy itself, too.
      const late = await send('/late-direct');
      assert.deepEqual([late.status, late.body, late.headers['x-front']], [510, 'of a route', '1']);
    });

    it('tells what is wrong with the other request as it is', async () => {
      script = failing(504);
      const dead = await send('/there');
      assert.equal(dead.status, 503);
      assert.match(dead.body, /^upstream connect error/);
      script = ({ url }) => (url === '/pages/failing' ? { status: 507, body: 'no page' } : { status: 508 });
      const failed = await send('/there');
      assert.deepEqual([failed.status, failed.body, asked.length], [507, 'no page', 3]);
    });

    it('leaves the response as it is, and counts it, where the other request leads nowhere', async () => {
      const before = [stat('custom_response_redirect_no_route'), stat('custom_response_invalid_uri')];
      script = failing(505);
      const lost = await send('/there');
      assert.deepEqual([lost.status, lost.body, lost.headers['set-cookie']], [505, 'of the upstream', ['a=b']]);
      script = failing(507);
      assert.equal((await send('/there')).body, 'of the upstream');
      const reply = await send('/505');
      assert.deepEqual([reply.status, reply.body], [505, 'of 505']);
      assert.equal(reply.headers['x-front-details'], '505 direct_response /505');
      const now = [stat('custom_response_redirect_no_route'), stat('custom_response_invalid_uri')];
      assert.deepEqual(now, [before[0]! + 2, before[1]! + 1]);
    });

    it('changes of the place of the request what it is told to', async () => {
      script = failing(506);
      const { status, body } = await send('/there?a=b', { host: 'kept.example' });
      assert.deepEqual([status, body], [506, 'page of /page']);
      assert.equal(asked[1]!.headers.host, 'kept.example');
    });

    it('does all this over HTTP/2', async () => {
      script = failing(500);
      const session = connectHttp2(`http://127.0.0.1:${port()}`);
      const stream = session.request({ ':path': '/there', ':method': 'POST' });
      stream.end('body');
      const [headers] = (await once(stream, 'response')) as [Record<string, unknown>];
      let text = '';
      for await (const part of stream) text += String(part);
      assert.deepEqual([headers[':status'], text], [500, 'page of /pages/page?of=%']);
      session.close();
    });
  });
});
