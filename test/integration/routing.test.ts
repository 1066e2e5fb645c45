// What routes do to requests and responses, by bytes on the wire: redirects, rewrites, header edits, clusters by weight
// and by header, limits that clients inside may set.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { utf8Bytes } from '../../src/base/byte-text.ts';
import type {
  HeaderAddition,
  HeaderAppendAction,
  HeaderMatch,
  HttpConnectionManagerSettings,
  RouteSnapshot,
} from '../../src/snapshot/index.ts';
import {
  DataPlaneFixture,
  type FixtureOptions,
  forwardTo,
  loopback,
  routeFor,
  routeTable,
} from '../support/data-plane.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\nserver: upstream\r\n\r\nok';
const INSIDE = { useRemoteAddress: true } as const;

interface Setup {
  readonly proxy: DataPlaneFixture;
  readonly upstream: WireUpstream & { heads: string[] };
  readonly get: (target?: string, lines?: readonly string[]) => Promise<{ head: string; body: string; status: number }>;
}

interface Options extends FixtureOptions {
  readonly manager?: Partial<HttpConnectionManagerSettings>;
  readonly answer?: string;
  readonly hostname?: string;
}

async function serve(t: TestContext, routes: readonly RouteSnapshot[], options: Options = {}): Promise<Setup> {
  const upstream = await WireUpstream.answering(options.answer ?? OK);
  const proxy = new DataPlaneFixture(options);
  proxy.cluster('web', [loopback(upstream.port)], { hostname: options.hostname ?? '' });
  const port = await proxy.http(routes, options.manager ?? {});
  const client = new WireClient(port);
  t.after(async () => {
    client.close();
    await proxy.close();
    await upstream.close();
  });
  const get = (target = '/', lines: readonly string[] = []) => {
    client.write(`${[`GET ${target} HTTP/1.1`, 'host: h.example', ...lines].join('\r\n')}\r\n\r\n`);
    return client.response();
  };
  return { proxy, upstream, get };
}

function set(name: string, value: HeaderAddition['value'], action: HeaderAppendAction = 'append'): HeaderAddition {
  return { name, value, action, keepsEmptyValue: false };
}

function requestHeader(name: string): HeaderAddition['value'] {
  return [{ operator: 'REQ', args: [name], maxLength: 0 }];
}

/** Lines of a head without its first and the final empty one, those of a name only. */
function linesOf(head: string, name: string): string[] {
  return head.split('\r\n').filter((line) => line.toLowerCase().startsWith(`${name}:`));
}

describe('a redirect on the wire', () => {
  test('answers at once with its location and the edits of its route', async (t) => {
    const action = {
      kind: 'redirect',
      status: 308,
      scheme: 'https',
      host: '',
      port: 0,
      path: '',
      pathRewrite: { kind: 'regex', pattern: '^/old/(.*)$', substitution: '/new/\\1' },
      stripQuery: false,
    } as const;
    const responseEdits = [
      { remove: [], add: [set('cache-control', ['no-store']), set('x-from', requestHeader(':path'))] },
    ];
    const { proxy, get, upstream } = await serve(t, [routeFor('/', action, { responseEdits })]);
    const { head, status } = await get('/old/a?b=c');
    assert.equal(status, 308);
    assert.equal(
      head.replace(/date: [^\r]*/, 'date: now'),
      'HTTP/1.1 308 Permanent Redirect\r\ncontent-length: 0\r\nlocation: https://h.example/new/a?b=c\r\n' +
        'cache-control: no-store\r\nx-from: /old/a?b=c\r\nserver: weir\r\ndate: now\r\n\r\n',
    );
    assert.deepEqual([proxy.httpStat('rq_redirect'), upstream.heads.length], [1, 0]);
  });
});

describe('a direct response on the wire', () => {
  test('is every byte of its body, text or not', async (t) => {
    const body = Uint8Array.from({ length: 256 }, (_, index) => index);
    const { get } = await serve(t, [routeFor('/', { kind: 'direct-response', status: 200, body })]);
    assert.deepEqual((await get()).body, Buffer.from(body).toString('latin1'));
  });
});

describe('what an upstream sees', () => {
  test('is the path and host as rewritten, and the old path beside it', async (t) => {
    const action = forwardTo('web', {
      pathRewrite: { kind: 'regex', pattern: '^/users/([0-9]+)', substitution: '/u/\\1' },
      hostRewrite: { kind: 'literal', value: 'inner.example' },
      appendForwardedHost: true,
    });
    const { get, upstream } = await serve(t, [routeFor('/', action)]);
    await get('/users/42/posts?sort=/users/1');
    const [seen] = upstream.heads;
    assert.match(seen!, /^GET \/u\/42\/posts\?sort=\/users\/1 HTTP\/1\.1\r\nhost: inner\.example\r\n/i);
    assert.deepEqual(linesOf(seen!, 'x-proxy-original-path'), ['x-proxy-original-path: /users/42/posts?sort=/users/1']);
    assert.deepEqual(linesOf(seen!, 'x-forwarded-host'), ['x-forwarded-host: h.example']);
    assert.equal(linesOf(seen!, 'host').length, 1);
  });

  const hosts = [
    {
      name: 'from a header',
      rewrite: { kind: 'header', name: 'x-host' },
      lines: ['x-host: a.example'],
      expected: 'a.example',
    },
    {
      name: 'as it was without the header',
      rewrite: { kind: 'header', name: 'x-host' },
      lines: [],
      expected: 'h.example',
    },
    { name: 'by the name of the upstream host', rewrite: { kind: 'auto' }, lines: [], expected: 'named.example' },
    {
      name: 'from the path',
      rewrite: { kind: 'path-regex', pattern: '^/', substitution: 'p.example' },
      lines: [],
      expected: 'p.example',
    },
  ] as const;
  for (const { name, rewrite, lines, expected } of hosts) {
    test(`is the host ${name}`, async (t) => {
      const { get, upstream } = await serve(t, [routeFor('/', forwardTo('web', { hostRewrite: rewrite }))], {
        hostname: 'named.example',
      });
      await get('/', lines);
      assert.deepEqual(
        linesOf(upstream.heads[0]!, 'host').map((line) => line.slice('host: '.length)),
        [expected],
      );
    });
  }

  test('is every edit in the order of its levels, the proxy’s own lines included', async (t) => {
    const requestEdits = [
      { remove: ['x-gone'], add: [set('x-a', ['route']), set('x-who', ['<', ...requestHeader('user-agent'), '>'])] },
      {
        remove: ['x-forwarded-proto'],
        add: [set('x-a', ['table'], 'overwrite'), set('x-b', ['table'], 'add-if-absent')],
      },
    ];
    const { get, upstream } = await serve(t, [
      routeFor('/', forwardTo('web'), { requestEdits, countsAttemptsInRequest: true }),
    ]);
    await get('/', ['x-gone: 1', 'X-A: client', 'x-b: client', 'user-agent: curl']);
    const [seen] = upstream.heads;
    assert.equal(
      seen!.slice(seen!.indexOf('\r\n') + 2),
      'host: h.example\r\nx-b: client\r\nuser-agent: curl\r\nx-proxy-expected-rq-timeout-ms: 15000\r\n' +
        'x-proxy-attempt-count: 1\r\nx-who: <curl>\r\nx-a: table\r\n\r\n',
    );
  });

  test('is free of what only clients inside may send, and of certificates nobody has shown', async (t) => {
    const manager = {
      ...INSIDE,
      routeTable: routeTable([routeFor('/', forwardTo('web'))], { internalOnlyHeaders: ['x-secret'] }),
    };
    const { get, upstream } = await serve(t, [], { manager });
    const lines = ['x-secret: 1', 'x-forwarded-client-cert: By=x', 'x-envoy-downstream-service-node: n'];
    await get('/', lines);
    await get('/', [...lines, 'x-forwarded-for: 8.8.8.8']);
    const names = ['x-secret', 'x-forwarded-client-cert', 'x-envoy-downstream-service-node'];
    const seen = upstream.heads.map((head) => names.filter((name) => linesOf(head, name).length > 0));
    assert.deepEqual(seen, [['x-secret', 'x-envoy-downstream-service-node'], []]);
  });

  test('has the names that the bootstrap asks for, which are understood too', async (t) => {
    const { get, upstream } = await serve(t, [routeFor('/', forwardTo('web'), { countsAttemptsInResponse: true })], {
      headerPrefix: 'x-acme',
      manager: INSIDE,
    });
    const { head } = await get('/', ['x-acme-upstream-rq-timeout-ms: 700']);
    assert.match(upstream.heads[0]!, /\r\nx-acme-internal: true\r\n(.*\r\n)*x-acme-expected-rq-timeout-ms: 700\r\n/);
    assert.doesNotMatch(upstream.heads[0]!, /x-proxy|upstream-rq-timeout/);
    assert.match(head, /\r\nx-acme-upstream-service-time: \d+\r\n/);
    assert.match(head, /\r\nx-acme-attempt-count: 1\r\n/);
  });

  test('is none of the router’s own headers when they are suppressed', async (t) => {
    const action = forwardTo('web', { pathRewrite: { kind: 'prefix', value: '/x/' } });
    const { get, upstream } = await serve(t, [routeFor('/', action)], { manager: { suppressProxyHeaders: true } });
    const { head } = await get('/');
    assert.match(upstream.heads[0]!, /^GET \/x\/ /);
    assert.doesNotMatch(upstream.heads[0]! + head, /x-proxy/);
  });
});

describe('what a client sees', () => {
  test('is every edit of the response, and what the proxy insists on after them', async (t) => {
    const responseEdits = [
      {
        remove: ['x-gone'],
        add: [
          set('x-was', [{ operator: 'RESP', args: ['x-a'], maxLength: 0 }]),
          set('x-none', [{ operator: 'RESP', args: ['x-gone'], maxLength: 0 }]),
          set('x-a', ['1']),
          set('server', ['mine'], 'overwrite'),
        ],
      },
      { remove: ['x-a'], add: [set('x-status', [{ operator: 'RESPONSE_CODE', args: [], maxLength: 0 }])] },
    ];
    const answer =
      'HTTP/1.1 201 Created\r\ncontent-length: 2\r\nserver: upstream\r\nx-gone: 1\r\nx-a: 0\r\nx-kept: 1\r\n\r\nok';
    const { get } = await serve(t, [routeFor('/', forwardTo('web'), { responseEdits })], { answer });
    const { head } = await get();
    assert.deepEqual(
      head.split('\r\n').filter((line) => !/^(date|x-proxy-upstream-service-time):/.test(line)),
      ['HTTP/1.1 201 Created', 'content-length: 2', 'x-kept: 1', 'server: weir', 'x-was: 0', 'x-status: 201', '', ''],
    );
  });

  test('is edited in local replies too', async (t) => {
    const responseEdits = [{ remove: [], add: [set('x-a', ['1'])] }];
    const { get } = await serve(t, [routeFor('/', forwardTo('nowhere'), { responseEdits })]);
    const { head, status } = await get();
    assert.equal(status, 503);
    assert.deepEqual(linesOf(head, 'x-a'), ['x-a: 1']);
  });

  const servers = [
    { serverHeader: 'overwrite', answer: OK, expected: ['server: weir'] },
    { serverHeader: 'append-if-absent', answer: OK, expected: ['server: upstream'] },
    { serverHeader: 'append-if-absent', answer: OK.replace('server: upstream\r\n', ''), expected: ['server: weir'] },
    { serverHeader: 'pass-through', answer: OK, expected: ['server: upstream'] },
    { serverHeader: 'pass-through', answer: OK.replace('server: upstream\r\n', ''), expected: [] },
  ] as const;
  for (const { serverHeader, answer, expected } of servers) {
    test(`is ${expected[0] ?? 'no server'} by ${serverHeader}`, async (t) => {
      const { get } = await serve(t, [routeFor('/', forwardTo('web'))], { answer, manager: { serverHeader } });
      assert.deepEqual(linesOf((await get()).head, 'server'), expected);
    });
  }
});

describe('the cluster of a request', () => {
  test('is chosen by weight, with the edits of its own', async (t) => {
    let draw = -1;
    const edits = (value: string) => ({ remove: [], add: [set('x-share', [value])] });
    const share = (value: string, weight: number) => ({
      cluster: 'web',
      weight,
      requestEdits: edits(value),
      responseEdits: edits(value),
      hostRewrite: '',
      criteria: null,
    });
    const weightedClusters = { entries: [share('big', 3), share('small', 1)], totalWeight: 4, runtimeKeyPrefix: '' };
    const routes = [routeFor('/', forwardTo('', { weightedClusters }))];
    const { get, upstream } = await serve(t, routes, { random: { u32: () => ++draw } });
    draw = -1;
    const shareOf = (head: string) => linesOf(head, 'x-share')[0]!.slice('x-share: '.length);
    const shares: string[] = [];
    for (let index = 0; index < 40; index++) shares.push(shareOf((await get()).head));
    assert.deepEqual(upstream.heads.map(shareOf), shares);
    assert.equal(shares.filter((value) => value === 'big').length, 30);
  });

  test('is named by a header, or there is none', async (t) => {
    const { get, proxy } = await serve(t, [
      routeFor('/', forwardTo('', { clusterHeader: 'x-cluster', clusterNotFoundStatus: 404 })),
    ]);
    assert.equal((await get('/', ['x-cluster: web'])).status, 200);
    assert.equal((await get('/', ['x-cluster: other'])).status, 404);
    assert.equal((await get('/')).status, 404);
    assert.equal(proxy.httpStat('no_cluster'), 2);
  });
});

describe('limits of a request', () => {
  /** An upstream that never answers. */
  const SILENT = { answer: '' } as const;

  test('are those that a client inside asks for', async (t) => {
    const { get, proxy } = await serve(t, [routeFor('/', forwardTo('web'))], { ...SILENT, manager: INSIDE });
    const { status, body } = await get('/', ['x-proxy-upstream-rq-timeout-ms: 20']);
    assert.deepEqual(
      [status, body, proxy.clusterStat('web', 'upstream_rq_timeout')],
      [504, 'upstream request timeout', 1],
    );
  });

  test('are not those that a client outside asks for', async (t) => {
    const { get } = await serve(t, [routeFor('/', forwardTo('web', { timeoutMs: 30 }))], {
      ...SILENT,
      manager: INSIDE,
    });
    const lines = ['x-forwarded-for: 8.8.8.8', 'x-proxy-upstream-rq-timeout-ms: 60000'];
    assert.equal((await get('/', lines)).status, 504);
  });

  test('end in an empty answer for a client that wants no error', async (t) => {
    const { get } = await serve(t, [routeFor('/', forwardTo('web', { timeoutMs: 20 }))], {
      ...SILENT,
      manager: INSIDE,
    });
    const { status, body } = await get('/', ['x-envoy-upstream-rq-timeout-alt-response: 1']);
    assert.deepEqual([status, body], [204, '']);
  });

  test('are those of one attempt, of the whole stream, or of idle time', async (t) => {
    const { get, proxy } = await serve(
      t,
      [
        routeFor('/duration', forwardTo('web', { maxStreamDurationMs: 20 })),
        routeFor('/idle', forwardTo('web', { idleTimeoutMs: 20 })),
        routeFor('/', forwardTo('web')),
      ],
      { ...SILENT, manager: INSIDE },
    );
    assert.equal((await get('/', ['x-proxy-upstream-rq-per-try-timeout-ms: 20'])).status, 504);
    assert.equal(proxy.clusterStat('web', 'upstream_rq_per_try_timeout'), 1);
    assert.equal((await get('/duration')).body, 'downstream duration timeout');
    assert.equal(proxy.httpStat('downstream_rq_max_duration_reached'), 1);
    const asked = ['x-proxy-upstream-stream-duration-ms: 20'];
    assert.equal((await get('/', asked)).body, 'upstream max stream duration reached');
    assert.equal(proxy.clusterStat('web', 'upstream_rq_max_duration_reached'), 1);
    assert.deepEqual([(await get('/idle')).body, proxy.httpStat('downstream_rq_idle_timeout')], ['stream timeout', 1]);
    // A request that has not arrived in full is the client's own fault.
    assert.equal((await get('/duration', ['content-length: 5'])).status, 408);
  });
});

describe('characters of the configuration beyond ASCII are their UTF-8 bytes on the wire:', () => {
  test('a header that a route asks for', async (t) => {
    const isNamed: HeaderMatch = {
      name: 'x-name',
      test: { kind: 'exact', value: 'ü', ignoresCase: false },
      isInverted: false,
      treatMissingAsEmpty: false,
    };
    const conditions = { headers: [isNamed], queryParameters: [], fraction: null };
    const { get } = await serve(t, [routeFor('/', forwardTo('web'), { conditions })]);
    assert.equal((await get('/', ['x-name: u'])).status, 404);
    assert.equal((await get('/a', ['x-name: ü'])).status, 200);
  });

  test('a redirect', async (t) => {
    const action = {
      kind: 'redirect',
      status: 301,
      scheme: '',
      host: 'münchen.example',
      port: 0,
      path: '/größe',
      pathRewrite: null,
      stripQuery: true,
    } as const;
    const { get } = await serve(t, [routeFor('/', action)]);
    assert.deepEqual(linesOf((await get()).head, 'location'), [utf8Bytes('location: http://münchen.example/größe')]);
  });
});
