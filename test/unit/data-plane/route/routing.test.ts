// Virtual hosts by domain and routes by what they ask of a request, over heads that the real codec has parsed.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { RuntimeValues } from '../../../../src/base/runtime.ts';
import { ProxyHeaders } from '../../../../src/data-plane/http/proxy-headers.ts';
import type { FactsSource } from '../../../../src/data-plane/route/header-editor.ts';
import { Route } from '../../../../src/data-plane/route/route.ts';
import { RouteRequest } from '../../../../src/data-plane/route/route-request.ts';
import { RouteTable } from '../../../../src/data-plane/route/route-table.ts';
import { VirtualHostIndex } from '../../../../src/data-plane/route/virtual-host-index.ts';
import type {
  HeaderMatch,
  PathMatch,
  QueryParameterMatch,
  RedirectAction,
  RouteConditions,
  RouteSnapshot,
} from '../../../../src/snapshot/index.ts';
import { compileHttp1, Http1Codec } from '../../../../src/wasm/http1.ts';
import { directRoute, forwardTo, routeFor, routeTable } from '../../../support/routes.ts';

const NAMES = new ProxyHeaders();
/** Who is not asked. */
const NO_FACTS = {} as FactsSource;
const RUNTIME = new RuntimeValues();
const LIMITS = { maxHeadBytes: 60_000, maxFields: 100 };
const codec = new Http1Codec(compileHttp1());

interface Asked {
  readonly path?: string;
  readonly method?: string;
  readonly host?: string;
  /** Header lines without their ends. */
  readonly lines?: readonly string[];
  readonly isInternal?: boolean;
  readonly random?: number;
  /** What the connection manager says in place of the client. */
  readonly forwardedProto?: string;
}

function request(asked: Asked): RouteRequest {
  const { method = 'GET', path = '/', host = 'h.example', lines = [] } = asked;
  const bytes = Buffer.from(
    `${[`${method} ${path} HTTP/1.1`, `Host: ${host}`, ...lines].join('\r\n')}\r\n\r\n`,
    'latin1',
  );
  assert.ok(codec.parseRequest(bytes, 0, bytes.length, LIMITS) > 0);
  if (asked.forwardedProto !== undefined) {
    codec.request.removeField('x-forwarded-proto');
    codec.request.append('x-forwarded-proto', asked.forwardedProto);
  }
  const result = new RouteRequest({ u32: () => asked.random ?? 0 });
  result.read(codec.request, asked.isInternal ?? false, false);
  return result;
}

describe('domains', () => {
  const index = new VirtualHostIndex<string>();
  for (const domain of [
    '*',
    'example.com',
    'example.com:8080',
    '*.example.com',
    '*.a.example.com',
    '*-b.example.com',
    'www.*',
    'www.exam*',
    'api.example.com',
  ]) {
    index.add(domain, domain);
  }

  const cases = [
    { name: 'an exact name before every wildcard', authority: 'api.example.com', expected: 'api.example.com' },
    { name: 'an exact name with its port', authority: 'example.com:8080', expected: 'example.com:8080' },
    { name: 'another port is another name', authority: 'example.com:9090', expected: '*' },
    { name: 'the longest suffix', authority: 'x.a.example.com', expected: '*.a.example.com' },
    { name: 'a suffix that is part of a label', authority: 'a-b.example.com', expected: '*-b.example.com' },
    { name: 'a suffix before a prefix', authority: 'www.example.com', expected: '*.example.com' },
    { name: 'the longest prefix', authority: 'www.example.org', expected: 'www.exam*' },
    { name: 'a shorter prefix', authority: 'www.other.org', expected: 'www.*' },
    { name: 'the catch-all', authority: 'nowhere', expected: '*' },
    { name: 'a wildcard stands for at least one character', authority: '.example.com', expected: '*' },
    { name: 'no authority', authority: '', expected: '*' },
  ];
  for (const { name, authority, expected } of cases) {
    test(name, () => assert.equal(index.find(authority), expected));
  }

  test('nothing matches where nothing does', () => {
    const empty = new VirtualHostIndex<string>();
    empty.add('*.example.com', 'x');
    assert.equal(empty.find('example.com'), undefined);
  });
});

function named(kind: PathMatch['kind'], value: string, caseSensitive = true): RouteSnapshot {
  return { ...directRoute('', 200, ''), name: value, match: { kind, value, caseSensitive } };
}

describe('a virtual host that requires TLS', () => {
  const routes = [named('path', '/exact'), named('prefix', '/')];
  const tableFor = (requiresTls?: 'external' | 'all'): RouteTable =>
    new RouteTable(
      routeTable([], { virtualHosts: [{ name: 'all', domains: ['*'], routes, ...(requiresTls && { requiresTls }) }] }),
      NAMES,
      RUNTIME,
    );
  const byHttps = { lines: ['X-Forwarded-Proto: https'] };
  const cases = [
    { name: 'of all redirects', requires: 'all', asked: {}, location: 'https://h.example/a?b' },
    {
      name: 'of all redirects internal requests, too',
      requires: 'all',
      asked: { isInternal: true },
      location: 'https://h.example/a?b',
    },
    {
      name: 'redirects what an exact path would find',
      requires: 'all',
      asked: { path: '/exact' },
      location: 'https://h.example/exact',
    },
    {
      name: 'keeps a port that is no default',
      requires: 'all',
      asked: { host: 'h.example:8080' },
      location: 'https://h.example:8080/a?b',
    },
    {
      name: 'drops the default port of HTTP',
      requires: 'all',
      asked: { host: 'h.example:80' },
      location: 'https://h.example/a?b',
    },
    { name: 'believes a trusted proxy', requires: 'all', asked: byHttps, location: null },
    {
      name: 'does not believe others',
      requires: 'all',
      asked: { ...byHttps, forwardedProto: 'http' },
      location: 'https://h.example/a?b',
    },
    {
      name: 'of external requests redirects those',
      requires: 'external',
      asked: {},
      location: 'https://h.example/a?b',
    },
    {
      name: 'of external requests lets internal ones pass',
      requires: 'external',
      asked: { isInternal: true },
      location: null,
    },
    { name: 'of nobody lets everybody pass', requires: undefined, asked: {}, location: null },
  ] as const;
  for (const { name, requires, asked, location } of cases) {
    test(name, () => {
      const given = request({ path: '/a?b', ...asked });
      const plan = tableFor(requires).find(given)?.plan;
      assert.equal(plan?.kind === 'redirect' ? plan.location(given) : null, location);
      if (plan?.kind === 'redirect') assert.equal(plan.status, 301);
    });
  }

  test('asks nothing of a secured connection', () => {
    assert.equal(tableFor('all').find(request({ forwardedProto: 'https' }))?.name, '/');
  });
});

describe('routes', () => {
  const virtualHosts = [
    {
      name: 'one',
      domains: ['One.example'],
      routes: [named('path', '/exact'), named('prefix', '/Any', false), named('prefix', '/')],
    },
    { name: 'two', domains: ['two.example'], routes: [named('prefix', '/api')] },
  ];
  const table = new RouteTable(routeTable([], { virtualHosts }), NAMES, RUNTIME);
  const portless = new RouteTable(routeTable([], { virtualHosts, ignoresPort: true }), NAMES, RUNTIME);

  const cases = [
    { name: 'the first match wins', host: 'one.example', path: '/exact', expected: '/exact' },
    { name: 'a path is whole', host: 'one.example', path: '/exact/more', expected: '/' },
    { name: 'a query is no part of the path', host: 'one.example', path: '/exact?q', expected: '/exact' },
    { name: 'domains are compared in lower case', host: 'ONE.EXAMPLE', path: '/x', expected: '/' },
    { name: 'a prefix without case', host: 'one.example', path: '/aNYthing', expected: '/Any' },
    { name: 'no route in the virtual host', host: 'two.example', path: '/', expected: undefined },
    { name: 'no virtual host', host: 'three.example', path: '/api', expected: undefined },
    { name: 'a port counts', host: 'one.example:81', path: '/x', expected: undefined },
  ];
  for (const { name, host, path, expected } of cases) {
    test(name, () => assert.equal(table.find(request({ host, path }))?.name, expected));
  }

  test('a port counts for nothing when the table says so', () => {
    assert.equal(portless.find(request({ host: 'one.example:81', path: '/x' }))?.name, '/');
  });

  test('the route of a table is the first that a plain walk finds', () => {
    const paths = ['/', '/a', '/A', '/a/', '/a/b', '/ab', '/b'];
    const kinds: readonly PathMatch['kind'][] = ['prefix', 'path', 'path-separated-prefix', 'regex'];
    const header: HeaderMatch = {
      name: 'x-on',
      test: { kind: 'present', isPresent: true },
      isInverted: false,
      treatMissingAsEmpty: false,
    };
    const conditions: RouteConditions = { headers: [header], queryParameters: [], fraction: null };
    const anyRoute = fc.record({
      kind: fc.constantFrom(...kinds),
      value: fc.constantFrom(...paths),
      caseSensitive: fc.boolean(),
      isConditional: fc.boolean(),
    });
    fc.assert(
      fc.property(
        fc.array(anyRoute, { maxLength: 12 }),
        fc.constantFrom(...paths),
        fc.boolean(),
        (routes, path, isOn) => {
          const snapshots = routes.map(({ kind, value, caseSensitive, isConditional }, index) => ({
            ...named(kind, value, caseSensitive),
            name: String(index),
            conditions: isConditional ? conditions : null,
          }));
          const expected = routes.findIndex((route) => (isOn || !route.isConditional) && plainMatch(route, path));
          const found = new RouteTable(routeTable(snapshots), NAMES, RUNTIME).find(
            request({ path, lines: isOn ? ['x-on: 1'] : [] }),
          );
          assert.equal(found?.name, expected === -1 ? undefined : String(expected));
        },
      ),
      { numRuns: 400 },
    );
  });
});

/** The twin: what each kind of match means, written without any preparation. */
function plainMatch(match: PathMatch, path: string): boolean {
  // Case is for a regular expression to say itself.
  if (match.kind === 'regex') return match.value === path;
  const [value, given] = match.caseSensitive ? [match.value, path] : [match.value.toLowerCase(), path.toLowerCase()];
  if (match.kind === 'path') return given === value;
  if (match.kind === 'prefix') return given.indexOf(value) === 0;
  return given === value || given.indexOf(`${value}/`) === 0;
}

describe('a path matches', () => {
  const cases: readonly [PathMatch['kind'], string, Readonly<Record<string, boolean>>][] = [
    ['prefix', '/api', { '/api': true, '/apis': true, '/API': false, '/': false }],
    ['path', '/api', { '/api': true, '/api/': false, '/api?x=1': true }],
    ['path-separated-prefix', '/api', { '/api': true, '/api/x': true, '/apis': false, '/api?/': true }],
    ['regex', '/a[0-9]+', { '/a1': true, '/a12?b': true, '/a1/': false, '/xa1': false, '/a': false }],
    ['regex', '/a|/b', { '/a': true, '/b': true, '/ab': false }],
  ];
  for (const [kind, value, paths] of cases) {
    for (const [path, expected] of Object.entries(paths)) {
      test(`${path} by ${kind} ${value}: ${expected}`, () => {
        assert.equal(new Route(named(kind, value), { name: 'v' }, NAMES, RUNTIME).matches(request({ path })), expected);
      });
    }
  }
});

function holds(conditions: Partial<RouteConditions>, asked: Asked): boolean {
  const all = { headers: [], queryParameters: [], fraction: null, ...conditions };
  return new Route(routeFor('/', forwardTo('web'), { conditions: all }), { name: 'v' }, NAMES, RUNTIME).matches(
    request(asked),
  );
}

describe('a header condition', () => {
  const text = (kind: 'exact' | 'prefix' | 'suffix' | 'contains', value: string, ignoresCase = false) => ({
    kind,
    value,
    ignoresCase,
  });
  const cases: readonly {
    name: string;
    match: Partial<HeaderMatch> & Pick<HeaderMatch, 'test'>;
    values: readonly (readonly [string[], boolean])[];
  }[] = [
    {
      name: 'exact',
      match: { test: text('exact', 'Val') },
      values: [
        [['Val'], true],
        [['val'], false],
        [['Val2'], false],
        [[], false],
      ],
    },
    {
      name: 'exact without case',
      match: { test: text('exact', 'Val', true) },
      values: [
        [['vAL'], true],
        [['v'], false],
      ],
    },
    {
      name: 'prefix',
      match: { test: text('prefix', 'ab') },
      values: [
        [['abc'], true],
        [['ab'], true],
        [['cab'], false],
      ],
    },
    {
      name: 'suffix',
      match: { test: text('suffix', 'bc') },
      values: [
        [['abc'], true],
        [['bcd'], false],
      ],
    },
    {
      name: 'contains',
      match: { test: text('contains', 'b') },
      values: [
        [['abc'], true],
        [['ac'], false],
      ],
    },
    {
      name: 'several fields',
      match: { test: text('exact', 'a,b') },
      values: [
        [['a', 'b'], true],
        [['a,b'], true],
        [['a'], false],
      ],
    },
    {
      name: 'regex',
      match: { test: { kind: 'regex', pattern: '[0-9]{3}' } },
      values: [
        [['123'], true],
        [['1234'], false],
        [['x'], false],
      ],
    },
    {
      name: 'range',
      match: { test: { kind: 'range', start: -10, end: 0 } },
      values: [
        [['-10'], true],
        [['-1'], true],
        [['0'], false],
        [['-11'], false],
        [['-1x'], false],
        [['-1.5'], false],
        [[''], false],
        [[], false],
      ],
    },
    {
      name: 'present',
      match: { test: { kind: 'present', isPresent: true } },
      values: [
        [['x'], true],
        [[''], true],
        [[], false],
      ],
    },
    {
      name: 'absent',
      match: { test: { kind: 'present', isPresent: false } },
      values: [
        [['x'], false],
        [[], true],
      ],
    },
    {
      name: 'not present',
      match: { test: { kind: 'present', isPresent: true }, isInverted: true },
      values: [
        [['x'], false],
        [[], true],
      ],
    },
    {
      name: 'not exact',
      match: { test: text('exact', 'a'), isInverted: true },
      values: [
        [['a'], false],
        [['b'], true],
        [[], false],
      ],
    },
    {
      name: 'not exact, missing as empty',
      match: { test: text('exact', 'a'), isInverted: true, treatMissingAsEmpty: true },
      values: [
        [['a'], false],
        [[], true],
      ],
    },
    {
      name: 'empty, missing as empty',
      match: { test: text('exact', ''), treatMissingAsEmpty: true },
      values: [
        [[''], true],
        [[], true],
        [['a'], false],
      ],
    },
  ];
  // A name that the parser knows by number, and one that it does not.
  for (const header of ['x-custom', 'user-agent']) {
    for (const { name, match, values } of cases) {
      for (const [fields, expected] of values) {
        test(`${name} on ${header}: ${JSON.stringify(fields)} is ${expected}`, () => {
          const lines = fields.map((value) => `${header.toUpperCase()}: ${value}`);
          const whole = { name: header, isInverted: false, treatMissingAsEmpty: false, ...match };
          assert.equal(holds({ headers: [whole] }, { lines }), expected);
        });
      }
    }
  }

  const special: readonly [string, string, Asked][] = [
    [':method', 'POST', { method: 'POST' }],
    [':path', '/p?q=1', { path: '/p?q=1' }],
    [':authority', 'a.example:1', { host: 'a.example:1' }],
    ['host', 'a.example', { host: 'a.example' }],
    ['x-forwarded-proto', 'http', {}],
    ['x-forwarded-proto', 'https', { lines: ['x-forwarded-proto: https'] }],
    [':scheme', 'https', { lines: ['x-forwarded-proto: https'] }],
    ['x-forwarded-proto', 'http', { lines: ['x-forwarded-proto: https'], forwardedProto: 'http' }],
    ['x-envoy-internal', 'true', { isInternal: true }],
    ['x-envoy-original-dst-host', 'x', { lines: ['x-proxy-original-dst-host: x'] }],
  ];
  for (const [name, value, asked] of special) {
    test(`${name} is ${value} for ${JSON.stringify(asked)}`, () => {
      const match = { name, test: text('exact', value), isInverted: false, treatMissingAsEmpty: false };
      assert.equal(holds({ headers: [match] }, asked), true);
      assert.equal(holds({ headers: [{ ...match, isInverted: true }] }, asked), false);
    });
  }
});

describe('a query condition', () => {
  const exact = (name: string, value: string): QueryParameterMatch => ({
    name,
    test: { kind: 'exact', value, ignoresCase: false },
  });
  const present = (name: string, isPresent = true): QueryParameterMatch => ({
    name,
    test: { kind: 'present', isPresent },
  });
  const cases: readonly [QueryParameterMatch, Readonly<Record<string, boolean>>][] = [
    [
      exact('a', '1'),
      {
        '/?a=1': true,
        '/?b=2&a=1': true,
        '/?a=2&a=1': false,
        '/?aa=1': false,
        '/?a=1&': true,
        '/?a=1=': false,
        '/': false,
      },
    ],
    [exact('a', ''), { '/?a': true, '/?a=': true, '/?a&b': true, '/?ab': false, '/?': false }],
    [exact('a', '%41'), { '/?a=%41': true, '/?a=A': false }],
    [present('a'), { '/?a': true, '/?x&a=1': true, '/?A': false, '/a': false }],
    [present('a', false), { '/?a': false, '/?b': true, '/': true }],
    [
      { name: 'a', test: { kind: 'regex', pattern: '[0-9]+' } },
      { '/?a=12': true, '/?a=1x': false },
    ],
  ];
  for (const [match, targets] of cases) {
    for (const [path, expected] of Object.entries(targets)) {
      test(`${JSON.stringify(match.test)} of ${path}: ${expected}`, () => {
        assert.equal(holds({ queryParameters: [match] }, { path }), expected);
      });
    }
  }
});

describe('chance', () => {
  test('a fraction takes the requests below its numerator', () => {
    const share = (random: number) =>
      holds({ fraction: { key: '', default: { numerator: 30, denominator: 100 } } }, { random });
    assert.deepEqual([0, 29, 30, 99, 129, 130].map(share), [true, true, false, false, true, false]);
  });

  test('weights divide the whole range of chance among the clusters', () => {
    const entry = (cluster: string, weight: number) => ({
      cluster,
      weight,
      requestEdits: null,
      responseEdits: null,
      hostRewrite: '',
      criteria: null,
    });
    const weightedClusters = {
      entries: [entry('a', 2), entry('none', 0), entry('b', 1)],
      totalWeight: 3,
      runtimeKeyPrefix: '',
    };
    const { plan } = new Route(routeFor('/', forwardTo('', { weightedClusters })), { name: 'v' }, NAMES, RUNTIME);
    assert.equal(plan.kind, 'cluster');
    assert.deepEqual(
      [0, 1, 2, 3, 4, 5].map((random) => plan.choose(request({ random }), null)?.name),
      ['a', 'a', 'b', 'a', 'a', 'b'],
    );
  });

  test('the runtime may set another fraction at any time', () => {
    const runtime = new RuntimeValues();
    const fraction = { key: 'share', default: { numerator: 30, denominator: 100 } };
    const conditions = { headers: [], queryParameters: [], fraction };
    const route = new Route(routeFor('/', forwardTo('web'), { conditions }), { name: 'v' }, NAMES, runtime);
    const shares = () => [29, 30, 59, 60].map((random) => route.matches(request({ random })));
    assert.deepEqual(shares(), [true, false, false, false]);
    runtime.replace(new Map([['share', '60']]));
    assert.deepEqual(shares(), [true, true, true, false]);
    runtime.replace(new Map());
    assert.deepEqual(shares(), [true, false, false, false]);
  });

  test('the runtime may set other weights, which make up the whole range', () => {
    const runtime = new RuntimeValues();
    const entry = (cluster: string, weight: number) => ({
      cluster,
      weight,
      requestEdits: null,
      responseEdits: null,
      hostRewrite: '',
      criteria: null,
    });
    const weightedClusters = { entries: [entry('a', 2), entry('b', 1)], totalWeight: 3, runtimeKeyPrefix: 'shares' };
    const { plan } = new Route(routeFor('/', forwardTo('', { weightedClusters })), { name: 'v' }, NAMES, runtime);
    assert.equal(plan.kind, 'cluster');
    const chosen = () => [0, 1, 2, 3, 4, 5].map((random) => plan.choose(request({ random }), null)?.name);
    assert.deepEqual(chosen(), ['a', 'a', 'b', 'a', 'a', 'b']);
    runtime.replace(new Map([['shares.a', '0']]));
    assert.deepEqual(chosen(), ['b', 'b', 'b', 'b', 'b', 'b']);
    runtime.replace(new Map([['shares.b', '4']]));
    assert.deepEqual(chosen(), ['a', 'a', 'b', 'b', 'b', 'b']);
    runtime.replace(
      new Map([
        ['shares.a', '0'],
        ['shares.b', '0'],
      ]),
    );
    assert.deepEqual(chosen(), [undefined, undefined, undefined, undefined, undefined, undefined]);
  });

  test('one request has one chance for everything', () => {
    let draws = 0;
    const asked = new RouteRequest({ u32: () => ++draws });
    asked.read(request({}).head, false, false);
    assert.deepEqual([asked.random, asked.random], [1, 1]);
    asked.read(request({}).head, false, false);
    assert.equal(asked.random, 2);
  });
});

describe('a cluster named by a header', () => {
  const { plan } = new Route(
    routeFor('/', forwardTo('', { clusterHeader: 'x-cluster' })),
    { name: 'v' },
    NAMES,
    RUNTIME,
  );
  const choose = (lines: string[]) =>
    plan.kind === 'cluster' ? plan.choose(request({ lines }), null)?.name : undefined;
  test('is the value', () => assert.equal(choose(['X-Cluster: web']), 'web'));
  test('is none without the header', () => assert.equal(choose([]), undefined));
  test('is none for an empty value', () => assert.equal(choose(['x-cluster:']), undefined));
});

describe('a path rewrite', () => {
  const cases = [
    { kind: 'prefix', value: '/api', to: '/', path: '/api/v1', expected: '//v1' },
    { kind: 'prefix', value: '/api/', to: '/', path: '/api/v1', expected: '/v1' },
    { kind: 'path', value: '/exact', to: '/other', path: '/exact', expected: '/other' },
    { kind: 'path-separated-prefix', value: '/api', to: '/new', path: '/api/v1', expected: '/new/v1' },
    { kind: 'regex', value: '/a.*', to: '/b', path: '/anything', expected: '/b' },
  ] as const;
  for (const { kind, value, to, path, expected } of cases) {
    test(`replaces ${kind} ${value} of ${path} with ${to}`, () => {
      const action = forwardTo('web', { pathRewrite: { kind: 'prefix', value: to } });
      const { plan } = new Route(
        routeFor('', action, { match: { kind, value, caseSensitive: true } }),
        { name: 'v' },
        NAMES,
        RUNTIME,
      );
      assert.equal(plan.kind === 'cluster' && plan.rewritePath?.(path, NO_FACTS), expected);
    });
  }
});

describe('a redirect', () => {
  const none: RedirectAction = {
    kind: 'redirect',
    status: 301,
    scheme: '',
    host: '',
    port: 0,
    path: '',
    pathRewrite: null,
    stripQuery: false,
  };
  const https = ['x-forwarded-proto: https'];
  const cases: readonly (readonly [string, Partial<RedirectAction>, Asked, string])[] = [
    ['to https drops the old default port', { scheme: 'https' }, { host: 'h:80', path: '/a?b' }, 'https://h/a?b'],
    ['to https keeps a port of its own', { scheme: 'https' }, { host: 'h:8080' }, 'https://h:8080/'],
    ['keeps the default port of a kept scheme', {}, { host: 'h:80' }, 'http://h:80/'],
    ['to http drops 443', { scheme: 'http' }, { host: 'h:443', lines: https }, 'http://h/'],
    ['keeps the scheme that the client used', { path: '/x' }, { lines: https }, 'https://h.example/x'],
    ['to another port', { port: 8443 }, { host: 'h:80' }, 'http://h:8443/'],
    ['of an IPv6 host', { scheme: 'https' }, { host: '[::1]:80' }, 'https://[::1]/'],
    ['of an IPv6 host without port', { scheme: 'https', port: 1 }, { host: '[::1]' }, 'https://[::1]:1/'],
    ['to another host', { host: 'new', port: 81 }, { host: 'h:80', path: '/a?b' }, 'http://new:81/a?b'],
    ['to a path keeps the query', { path: '/new' }, { path: '/a?b' }, 'http://h.example/new?b'],
    ['to a path with its own query', { path: '/new?c', stripQuery: true }, { path: '/a?b' }, 'http://h.example/new?c'],
    ['without the query', { stripQuery: true }, { path: '/a?b' }, 'http://h.example/a'],
    ['of a prefix', { pathRewrite: { kind: 'prefix', value: '/n/' } }, { path: '/a/b?c' }, 'http://h.example/n/a/b?c'],
    [
      'by regular expression',
      { pathRewrite: { kind: 'regex', pattern: '/([a-z])/', substitution: '/\\1\\1/' }, stripQuery: true },
      { path: '/a/b?c' },
      'http://h.example/aa/b',
    ],
  ];
  for (const [name, fields, asked, expected] of cases) {
    test(name, () => {
      const { plan } = new Route(routeFor('/', { ...none, ...fields }), { name: 'v' }, NAMES, RUNTIME);
      assert.equal(plan.kind === 'redirect' && plan.location(request(asked)), expected);
    });
  }
});
