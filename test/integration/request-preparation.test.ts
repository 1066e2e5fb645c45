// What a connection manager makes of a request comes first: routes, header values and filters go by it, and no client
// can steer them by what is not its to say. By bytes on the wire.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { FilterCallbacks, HttpFilter } from '../../src/data-plane/index.ts';
import type { HeaderMatch, HttpConnectionManagerSettings, RouteSnapshot } from '../../src/snapshot/index.ts';
import { DataPlaneFixture, directRoute, forwardTo, loopback, routeFor, routeTable } from '../support/data-plane.ts';
import { proxyWith } from '../support/filtered-proxy.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;
/** Its clients on loopback are inside. */
const INSIDE = { useRemoteAddress: true, generateRequestId: true } as const;
/** Whoever is behind two proxies is not. */
const OUTSIDE = { ...INSIDE, xffNumTrustedHops: 1 } as const;
const FROM_OUTSIDE = 'x-forwarded-for: 203.0.113.7';

type Manager = Partial<HttpConnectionManagerSettings>;

async function serve(t: TestContext, routes: readonly RouteSnapshot[], manager: Manager) {
  const upstream = await WireUpstream.answering(OK);
  const proxy = new DataPlaneFixture();
  proxy.cluster('web', [loopback(upstream.port)]);
  const client = new WireClient(await proxy.http(routes, manager));
  t.after(async () => {
    client.close();
    await proxy.close();
    await upstream.close();
  });
  return {
    upstream,
    get: (target: string, ...lines: readonly string[]) => {
      client.write(`${[`GET ${target} HTTP/1.1`, 'host: h', ...lines].join('\r\n')}\r\n\r\n`);
      return client.response();
    },
  };
}

function valuesOf(head: string, name: string): string[] {
  const lines = head.split('\r\n').filter((line) => line.toLowerCase().startsWith(`${name}:`));
  return lines.map((line) => line.slice(name.length + 1).trim());
}

function exactly(name: string, value: string): HeaderMatch {
  return { ...present(name), test: { kind: 'exact', value, ignoresCase: false } };
}

function present(name: string): HeaderMatch {
  return { name, test: { kind: 'present', isPresent: true }, isInverted: false, treatMissingAsEmpty: false };
}

/** Says which of its routes was taken: 'yes' for the one with the condition. */
function conditional(condition: HeaderMatch): RouteSnapshot[] {
  return [
    { ...directRoute('/', 200, 'yes'), conditions: { headers: [condition], queryParameters: [], fraction: null } },
    directRoute('/', 200, 'no'),
  ];
}

describe('a header value of a route', () => {
  const copy = (name: string, from: string) => ({
    name,
    value: [{ operator: 'REQ', args: [from], maxLength: 0 }] as const,
    action: 'append' as const,
    keepsEmptyValue: false,
  });

  test('may be what the connection manager, or the level before, has said', async (t) => {
    const requestEdits = [
      { remove: [], add: [copy('x-id', 'x-request-id'), copy('x-from', 'x-forwarded-for')] },
      { remove: [], add: [copy('x-again', 'x-from')] },
    ];
    const { get, upstream } = await serve(t, [routeFor('/', forwardTo('web'), { requestEdits })], INSIDE);
    assert.equal((await get('/')).status, 200);
    const [head] = upstream.heads as [string];
    assert.match(valuesOf(head, 'x-request-id')[0]!, UUID);
    assert.deepEqual(valuesOf(head, 'x-id'), valuesOf(head, 'x-request-id'));
    assert.deepEqual(valuesOf(head, 'x-from'), ['127.0.0.1']);
    assert.deepEqual(valuesOf(head, 'x-again'), ['127.0.0.1']);
  });
});

describe('a route', () => {
  const cases: readonly [string, HeaderMatch, Manager, readonly string[], 'yes' | 'no'][] = [
    ['sees the address of the client', exactly('x-forwarded-for', '127.0.0.1'), INSIDE, [], 'yes'],
    [
      'sees the address behind those before it',
      exactly('x-forwarded-for', '203.0.113.7,127.0.0.1'),
      OUTSIDE,
      [FROM_OUTSIDE],
      'yes',
    ],
    ['sees the request’s identifier', present('x-request-id'), INSIDE, [], 'yes'],
    ['sees what this proxy calls itself', exactly('via', '1.1 edge'), { ...INSIDE, via: '1.1 edge' }, [], 'yes'],
    ['sees who a request from outside comes from', present('x-proxy-external-address'), OUTSIDE, [FROM_OUTSIDE], 'yes'],
    [
      'sees what a client inside asks of the router',
      present('x-proxy-max-retries'),
      INSIDE,
      ['x-proxy-max-retries: 1'],
      'yes',
    ],
    [
      'does not see what a client outside asks of it',
      present('x-proxy-max-retries'),
      OUTSIDE,
      [FROM_OUTSIDE, 'x-proxy-max-retries: 1'],
      'no',
    ],
    ['does not see what ends with the client’s connection', present('keep-alive'), INSIDE, ['keep-alive: 5'], 'no'],
  ];
  for (const [what, condition, manager, lines, expected] of cases) {
    test(what, async (t) => {
      const { get } = await serve(t, conditional(condition), manager);
      assert.equal((await get('/', ...lines)).body, expected);
    });
  }

  for (const [from, lines, expected] of [
    ['outside', [FROM_OUTSIDE], 'no'],
    ['inside', [], 'yes'],
  ] as const) {
    test(`is chosen by a header that only requests from inside may bring: from ${from}`, async (t) => {
      const table = routeTable(conditional(present('x-secret')), { internalOnlyHeaders: ['x-secret'] });
      const { get } = await serve(t, [], { ...(from === 'outside' ? OUTSIDE : INSIDE), routeTable: table });
      assert.equal((await get('/', 'x-secret: 1', ...lines)).body, expected);
    });
  }

  for (const [useRemoteAddress, xffNumTrustedHops, scheme] of [
    [false, 0, 'https'],
    [true, 1, 'https'],
    [true, 0, 'http'],
  ] as const) {
    test(`redirects to ${scheme} by X-Forwarded-Proto, from a peer that counts: ${useRemoteAddress}, hops: ${xffNumTrustedHops}`, async (t) => {
      const redirect = {
        kind: 'redirect',
        status: 301,
        scheme: '',
        host: 'new',
        port: 0,
        path: '',
        pathRewrite: null,
        stripQuery: false,
      } as const;
      const { get } = await serve(t, [routeFor('/', redirect)], { useRemoteAddress, xffNumTrustedHops });
      const { head } = await get('/p', 'x-forwarded-proto: https');
      assert.deepEqual(valuesOf(head, 'location'), [`${scheme}://new/p`]);
    });
  }
});

describe('a filter', () => {
  const PREPARED = ['x-forwarded-for', 'x-forwarded-proto', 'x-proxy-internal'] as const;

  test('sees it, and a request that waits for one goes on as it was, said once', async (t) => {
    const upstream = await WireUpstream.answering(OK);
    t.after(() => upstream.close());
    const seen: (string | undefined)[] = [];
    const hold = (callbacks: FilterCallbacks): HttpFilter => ({
      decodeHeaders(head) {
        seen.push(...PREPARED.map((name) => head.headerByName(name)), head.headerByName('x-request-id'));
        // While it waits, another request takes its place in the codec.
        setImmediate(() => callbacks.continueDecoding());
        return 'stop-and-pause';
      },
    });
    const { client, port } = await proxyWith(t, upstream.port, [hold], undefined, INSIDE);
    const other = new WireClient(port);
    t.after(() => other.close());
    client.write(
      'GET /a HTTP/1.1\r\nhost: a\r\nte: trailers\r\nconnection: te\r\nx-proxy-upstream-rq-timeout-ms: 700\r\n\r\n',
    );
    other.write('GET /b HTTP/1.1\r\nhost: b\r\n\r\n');
    assert.deepEqual([(await client.response()).status, (await other.response()).status], [200, 200]);
    assert.deepEqual(seen.slice(0, 3), ['127.0.0.1', 'http', 'true']);
    const head = upstream.heads.find((text) => text.startsWith('GET /a'))!;
    assert.deepEqual(valuesOf(head, 'x-request-id'), [seen[3]]);
    for (const [at, name] of PREPARED.entries()) assert.deepEqual(valuesOf(head, name), [seen[at]]);
    // From inside, by what came: the address that this proxy has added makes nobody an outsider.
    assert.deepEqual(valuesOf(head, 'x-proxy-expected-rq-timeout-ms'), ['700']);
    assert.deepEqual(valuesOf(head, 'x-proxy-upstream-rq-timeout-ms'), []);
    assert.deepEqual(valuesOf(head, 'te'), ['trailers']);
  });
});
