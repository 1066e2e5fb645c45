// The header_mutation filter through the whole proxy: what upstreams and clients see of it.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo, typed } from '../support/embedded-filters.ts';
import { Http2Client } from '../support/http2-clients.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const TYPE = 'header_mutation.v3.HeaderMutation';
const PER_ROUTE = 'header_mutation.v3.HeaderMutationPerRoute';

type Action = 'APPEND_IF_EXISTS_OR_ADD' | 'ADD_IF_ABSENT' | 'OVERWRITE_IF_EXISTS_OR_ADD' | 'OVERWRITE_IF_EXISTS';

function set(key: string, value: string, append_action: Action = 'APPEND_IF_EXISTS_OR_ADD'): JsonObject {
  return { append: { header: { key, value }, append_action } };
}

function parameter(key: string, value: string, action: Action = 'APPEND_IF_EXISTS_OR_ADD'): JsonObject {
  return { append: { record: { key, value }, action } };
}

const route = (prefix: string, mutations: JsonObject, fields: JsonObject = {}): JsonObject =>
  routeTo(prefix, { header_mutation: typed(PER_ROUTE, { mutations }) }, fields);

const OWN = {
  request_mutations: [
    { remove: 'x-secret' },
    set('x-path', '%REQ(:PATH)%'),
    set('x-appended', 'b'),
    set('x-absent', 'new', 'ADD_IF_ABSENT'),
    set('x-over', 'new', 'OVERWRITE_IF_EXISTS_OR_ADD'),
    set('x-only', 'new', 'OVERWRITE_IF_EXISTS'),
    set('x-copy', '%REQ(X-OVER)%|%REQ(X-SECRET)%'),
  ],
  response_mutations: [
    set('x-was', '%RESP(X-UPSTREAM)% %RESPONSE_CODE%'),
    { remove: 'x-upstream' },
    set('x-is', '%RESP(X-UPSTREAM)%|%RESP(X-WAS)%'),
    set('x-order', 'own'),
  ],
  query_parameter_mutations: [
    { remove: 'token' },
    parameter('via', 'weir %REQ(X-CLIENT)%'),
    parameter('v', '2', 'OVERWRITE_IF_EXISTS'),
    parameter('lang', 'en', 'ADD_IF_ABSENT'),
  ],
};
const ROUTES = [
  route('/levels', { request_mutations: [set('x-order', 'route')], response_mutations: [set('x-order', 'route')] }),
  route(
    '/rewritten',
    { query_parameter_mutations: [parameter('more', '1')] },
    {
      route: { cluster: 'web', prefix_rewrite: '/short' },
    },
  ),
  route(
    '/hashed',
    {},
    {
      request_headers_to_add: [{ header: { key: 'x-seen', value: '%REQ(X-OVER)%' } }],
    },
  ),
  { match: { prefix: '/direct' }, direct_response: { status: 204 } },
  route('/trailers', {
    request_trailers_mutations: [
      { remove: 'x-gone' },
      set('x-added', 'here'),
      set('x-over', 'new', 'OVERWRITE_IF_EXISTS'),
    ],
    response_trailers_mutations: [set('x-added', 'there'), set('x-absent', 'no', 'OVERWRITE_IF_EXISTS')],
  }),
  // Nobody gets here by the header that the filter sets.
  { match: { prefix: '/', headers: [{ name: 'x-path' }] }, direct_response: { status: 500 } },
  routeTo('/'),
  routeTo('*'),
];
/** Of filters that follow one another, none of which touches queries. */
const CHAINED = [
  [set('x-order', '%REQ(:PATH)%'), set('x-first', '%REQ(:METHOD)%')],
  [set('x-order', 'second'), set('x-proxy-upstream-rq-timeout-ms', '4321')],
  [set('x-order', 'third'), set('x-seen', '%REQ(X-FIRST)%')],
];
const HOST = {
  typed_per_filter_config: {
    'envoy.filters.http.header_mutation': typed(PER_ROUTE, {
      mutations: { request_mutations: [set('x-order', 'host')], response_mutations: [set('x-order', 'host')] },
    }),
  },
};

const PLAIN = 'HTTP/1.1 200 OK\r\nx-upstream: u\r\ncontent-length: 2\r\n\r\nhi';
const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nx-own: 1\r\n\r\n';
const SWITCHED = 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n';

/** How it ends: with its head, or with what follows the last chunk. */
const endOf = (text: string): number => {
  const head = text.indexOf('\r\n\r\n') + 4;
  if (head < 4 || !/\r\ntransfer-encoding: chunked\r\n/i.test(text.slice(0, head))) return head < 4 ? 0 : head;
  const body = /\r\n0\r\n(?:[^\r]+\r\n)*\r\n/.exec(text.slice(head - 2));
  return body === null ? 0 : head - 2 + body.index + body[0].length;
};

describe('the header_mutation filter', () => {
  const requests: string[] = [];
  let upstream: WireUpstream;
  let proxy: Awaited<ReturnType<typeof createProxy>>;

  before(async () => {
    upstream = await WireUpstream.start((socket) => {
      let text = '';
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString('latin1');
        for (let end = endOf(text); end > 0; end = endOf(text)) {
          const request = text.slice(0, end);
          requests.push(request);
          text = text.slice(end);
          socket.write(/^upgrade:/im.test(request) ? SWITCHED : request.startsWith('GET /trailers') ? CHUNKED : PLAIN);
        }
      });
      socket.on('end', () => socket.end());
    });
    const listener = (name: string, mostSpecific: boolean): JsonObject =>
      filteredListener(
        [filterOf(TYPE, { mutations: OWN, most_specific_header_mutations_wins: mostSpecific })],
        ROUTES,
        {
          host: HOST,
          listener: { name },
          manager: {
            http_protocol_options: { enable_trailers: true },
            upgrade_configs: [{ upgrade_type: 'websocket' }],
          },
        },
      );
    const chained = filteredListener(
      CHAINED.map((request_mutations) => filterOf(TYPE, { mutations: { request_mutations } })),
      [routeTo('/')],
      { listener: { name: 'chained' }, manager: { max_request_headers_kb: 64 } },
    );
    const cluster = clusterAt('web', upstream.port, { http_protocol_options: { enable_trailers: true } });
    proxy = await createProxy(bootstrapOf([listener('main', false), listener('specific', true), chained], [cluster]));
  });

  after(async () => {
    await proxy?.close();
    await upstream?.close();
  });

  async function ask(path: string, lines: readonly string[] = [], name = 'main') {
    const client = new WireClient(proxy.listeners.get(name)!.port);
    client.write([`GET ${path} HTTP/1.1`, 'host: a', ...lines, '', ''].join('\r\n'));
    const { head, status } = await client.response();
    client.close();
    return { head, status, got: requests.at(-1)! };
  }

  const values = (head: string, name: string): string[] =>
    [...head.matchAll(new RegExp(`^${name}: (.*)\r$`, 'gim'))].map(([, value]) => value!);

  it('adds, replaces and removes headers of requests, by formats', async () => {
    const all = ['x-secret: s', 'x-appended: a', 'x-absent: old', 'x-over: old', 'x-only: old'];
    const { got } = await ask('/a', all);
    assert.deepEqual(values(got, 'x-secret'), []);
    assert.deepEqual(values(got, 'x-path'), ['/a']);
    assert.deepEqual(values(got, 'x-appended'), ['a', 'b']);
    assert.deepEqual(
      ['x-absent', 'x-over', 'x-only'].map((name) => values(got, name)),
      [['old'], ['new'], ['new']],
    );
    assert.deepEqual(values(got, 'x-copy'), ['new|']);
    const none = await ask('/a');
    const added = ['x-appended', 'x-absent', 'x-over', 'x-only'].map((name) => values(none.got, name).join());
    assert.deepEqual(added, ['b', 'new', 'new', '']);
  });

  it('changes responses, those of the proxy itself included', async () => {
    const { head } = await ask('/a');
    assert.deepEqual([values(head, 'x-upstream'), values(head, 'x-was')], [[], ['u 200']]);
    assert.deepEqual(values(head, 'x-is'), ['|u 200'], 'as the changes before have left it');
    const direct = await ask('/direct');
    assert.deepEqual([direct.status, values(direct.head, 'x-was')], [204, [' 204']]);
  });

  it('comes before what routes add, the most specific first or last', async () => {
    const first = await ask('/levels');
    assert.deepEqual(values(first.got, 'x-order'), ['route', 'host']);
    assert.deepEqual(values(first.head, 'x-order'), ['own', 'route', 'host']);
    const last = await ask('/levels', [], 'specific');
    assert.deepEqual(values(last.got, 'x-order'), ['host', 'route']);
    assert.deepEqual(values(last.head, 'x-order'), ['own', 'host', 'route']);
  });

  it('changes single parameters of queries', async () => {
    const pathOf = async (path: string, lines: readonly string[] = []): Promise<string> =>
      (await ask(path, lines)).got.split(' ')[1]!;
    assert.equal(await pathOf('/a'), '/a?via=weir%20&lang=en');
    assert.equal(
      await pathOf('/a?v=1&token=x&q=%2f+&to%6ben=y&lang=de&v=3', ['x-client: a&b=%']),
      '/a?q=%2f+&lang=de&via=weir%20a%26b%3D%25&v=2',
    );
    assert.equal(await pathOf('/rewritten/x?a=1'), '/short/x?a=1&via=weir%20&lang=en&more=1');
  });

  it('leaves alone what has no query', async () => {
    const client = new WireClient(proxy.listeners.get('main')!.port);
    await client.write('OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n').response();
    client.close();
    assert.match(requests.at(-1)!, /^OPTIONS \* HTTP/);
  });

  it('shows the router what it has made of the request, by the route that it came for', async () => {
    const { got, status } = await ask('/hashed');
    assert.deepEqual([status, values(got, 'x-seen')], [200, ['new']]);
  });

  it('adds behind what the filters before it have added, and the router obeys what it says', async () => {
    const { got } = await ask('/a', ['x-order: client']);
    assert.deepEqual(values(got, 'x-order').slice(0, 1), ['client']);
    const chained = await ask('/chained', ['x-order: client', 'x-forwarded-for: 10.0.0.1'], 'chained');
    assert.deepEqual(values(chained.got, 'x-order'), ['client', '/chained', 'second', 'third']);
    assert.deepEqual(values(chained.got, 'x-seen'), ['GET']);
    assert.deepEqual(values(chained.got, 'x-proxy-expected-rq-timeout-ms'), ['4321']);
  });

  it('refuses a request that its changes make larger than any head may be, and others go on', async () => {
    const count = requests.length;
    const lines = Array.from({ length: 5 }, (_, index) => `x-large-${index}: ${'v'.repeat(13_060)}`);
    assert.equal((await ask('/large', lines, 'chained')).status, 500);
    assert.equal(requests.length, count);
    const { got, status } = await ask('/chained', ['x-order: client'], 'chained');
    assert.deepEqual([status, values(got, 'x-order')], [200, ['client', '/chained', 'second', 'third']]);
  });

  it('changes trailers where there are some', async () => {
    const client = new WireClient(proxy.listeners.get('main')!.port);
    const lines = ['GET /trailers HTTP/1.1', 'host: a', 'te: trailers', 'transfer-encoding: chunked', '', ''];
    client.write(`${lines.join('\r\n')}2\r\nhi\r\n0\r\nx-gone: 1\r\nx-over: old\r\n\r\n`);
    await client.until('\r\n\r\n');
    assert.equal(await client.until('\r\n\r\n'), '2\r\nhi\r\n0\r\nx-own: 1\r\nx-added: there\r\n\r\n');
    assert.match(requests.at(-1)!, /\r\n0\r\nx-added: here\r\nx-over: new\r\n\r\n$/);
    client.write('GET /trailers HTTP/1.1\r\nhost: a\r\n\r\n');
    await client.until('\r\n0\r\n');
    assert.doesNotMatch(requests.at(-1)!, /x-added/);
    client.close();
  });

  it('lets upgrades through', async () => {
    const { got, status } = await ask('/a', ['connection: upgrade', 'upgrade: websocket']);
    assert.deepEqual([status, values(got, 'upgrade'), values(got, 'x-path')], [101, ['websocket'], ['/a']]);
  });

  it('does the same over HTTP/2', async (t) => {
    const http2 = new Http2Client(t, proxy.listeners.get('main')!.port);
    const { status } = await http2.get('/a?token=1');
    assert.equal(status, 200);
    assert.match(requests.at(-1)!, /^GET \/a\?via=weir%20&lang=en HTTP\/1.1\r\n/);
    assert.deepEqual(values(requests.at(-1)!, 'x-over'), ['new']);
  });
});
