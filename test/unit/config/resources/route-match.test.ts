// What a route is chosen by, in the spellings of both generations.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compileHeaderTest } from '../../../../src/data-plane/route/header-matcher.ts';
import type { RouteSnapshot } from '../../../../src/snapshot/index.ts';
import { faultTexts, type Json, type JsonObject, load, mustLoad, withRoutes } from '../../../support/bootstrap.ts';

const AT = 'static_resources.listeners[0].filter_chains[0].filters[0].typed_config.route_config.virtual_hosts[0]';

function bootstrapWith(match: JsonObject): JsonObject {
  const routes: Json[] = [{ match, direct_response: { status: 200 } }];
  return withRoutes({ virtual_hosts: [{ name: 'all', domains: ['*'], routes }] });
}

function routeOf(match: JsonObject): RouteSnapshot {
  const { filter } = mustLoad(bootstrapWith(match)).listeners[0]!.filterChains[0]!;
  assert.equal(filter.kind, 'http-connection-manager');
  return filter.routeTable.virtualHosts[0]!.routes[0]!;
}

function errorsOf(match: JsonObject): string[] {
  return faultTexts(load(bootstrapWith(match))).map((text) => text.replace(`${AT}.routes[0].match.`, ''));
}

const RE2 = { google_re2: {}, regex: '/a[0-9]+' };

describe('the path of a route', () => {
  const cases = [
    { match: { prefix: '/a' }, expected: { kind: 'prefix', value: '/a', caseSensitive: true } },
    { match: { path: '/a', case_sensitive: false }, expected: { kind: 'path', value: '/a', caseSensitive: false } },
    {
      match: { path_separated_prefix: '/a' },
      expected: { kind: 'path-separated-prefix', value: '/a', caseSensitive: true },
    },
    { match: { safe_regex: RE2 }, expected: { kind: 'regex', value: '/a[0-9]+', caseSensitive: true } },
    { match: { safe_regex: { regex: '/b' } }, expected: { kind: 'regex', value: '/b', caseSensitive: true } },
    { match: { regex: '/c.*' }, expected: { kind: 'regex', value: '/c.*', caseSensitive: true } },
  ];
  for (const { match, expected } of cases) {
    it(`is read from ${JSON.stringify(match)}`, () => assert.deepEqual(routeOf(match).match, expected));
  }

  it('must be a regular expression that compiles', () => {
    assert.deepEqual(errorsOf({ safe_regex: { regex: '(' } }), [
      'safe_regex.regex: "(" is not a regular expression: missing ): (',
    ]);
    assert.match(errorsOf({ regex: '/(?=x)' })[0]!, /^regex: "\/\(\?=x\)" is not a regular expression: .*\(\?=/);
  });
});

describe('a header of a route', () => {
  const text = (kind: string, value: string, ignoresCase = false) => ({ kind, value, ignoresCase });
  const cases = [
    { matcher: { exact_match: 'v' }, test: text('exact', 'v') },
    { matcher: { prefix_match: 'v' }, test: text('prefix', 'v') },
    { matcher: { suffix_match: 'v' }, test: text('suffix', 'v') },
    { matcher: { contains_match: 'v' }, test: text('contains', 'v') },
    { matcher: { regex_match: 'v+' }, test: { kind: 'regex', pattern: 'v+' } },
    { matcher: { safe_regex_match: { regex: 'v+' } }, test: { kind: 'regex', pattern: 'v+' } },
    { matcher: { range_match: { start: -10, end: '20' } }, test: { kind: 'range', start: -10, end: 20 } },
    { matcher: { present_match: true }, test: { kind: 'present', isPresent: true } },
    { matcher: { present_match: false }, test: { kind: 'present', isPresent: false } },
    { matcher: {}, test: { kind: 'present', isPresent: true } },
    { matcher: { string_match: { exact: 'v', ignore_case: true } }, test: text('exact', 'v', true) },
    { matcher: { string_match: { contains: 'v' } }, test: text('contains', 'v') },
    { matcher: { string_match: { safe_regex: { regex: 'v' } } }, test: { kind: 'regex', pattern: 'v' } },
  ];
  for (const { matcher, test } of cases) {
    it(`is tested by ${JSON.stringify(matcher)}`, () => {
      assert.deepEqual(routeOf({ prefix: '/', headers: [{ name: 'X-A', ...matcher }] }).conditions?.headers, [
        { name: 'x-a', test, isInverted: false, treatMissingAsEmpty: false },
      ]);
    });
  }

  it('can be inverted, and stand for an empty value', () => {
    const matcher = { name: 'x-a', exact_match: '', invert_match: true, treat_missing_header_as_empty: true };
    const [header] = routeOf({ prefix: '/', headers: [matcher] }).conditions!.headers;
    assert.deepEqual([header?.isInverted, header?.treatMissingAsEmpty], [true, true]);
  });

  it('must have a regular expression that compiles', () => {
    const headers = [
      { name: 'a', exact_match: 'x' },
      { name: 'b', safe_regex_match: { regex: '[' } },
    ];
    assert.deepEqual(errorsOf({ prefix: '/', headers }), [
      'headers[1].safe_regex_match.regex: "[" is not a regular expression: missing ]: [',
    ]);
  });
});

describe('other conditions of a route', () => {
  it('are query parameters in the forms of both generations', () => {
    const query_parameters = [
      { name: 'a', string_match: { prefix: 'x' } },
      { name: 'b', present_match: true },
      { name: 'c', value: 'v' },
      { name: 'd', value: 'v.*', regex: true },
      { name: 'e' },
    ];
    assert.deepEqual(routeOf({ prefix: '/', query_parameters }).conditions?.queryParameters, [
      { name: 'a', test: { kind: 'prefix', value: 'x', ignoresCase: false } },
      { name: 'b', test: { kind: 'present', isPresent: true } },
      { name: 'c', test: { kind: 'exact', value: 'v', ignoresCase: false } },
      { name: 'd', test: { kind: 'regex', pattern: 'v.*' } },
      { name: 'e', test: { kind: 'present', isPresent: true } },
    ]);
  });

  it('are a share of the requests, by its default', () => {
    const fraction = (numerator: number, denominator?: string) =>
      routeOf({
        prefix: '/',
        runtime_fraction: {
          default_value: { numerator, ...(denominator ? { denominator } : {}) },
          runtime_key: 'routing.share',
        },
      }).conditions?.fraction;
    assert.deepEqual(fraction(7), { key: 'routing.share', default: { numerator: 7, denominator: 100 } });
    assert.deepEqual(fraction(7, 'TEN_THOUSAND'), {
      key: 'routing.share',
      default: { numerator: 7, denominator: 10_000 },
    });
    assert.deepEqual(fraction(7, 'MILLION'), {
      key: 'routing.share',
      default: { numerator: 7, denominator: 1_000_000 },
    });
  });

  it('are a share of a hundred in the oldest form', () => {
    const oldest = routeOf({ prefix: '/', runtime: { default_value: 7, runtime_key: 'k' } });
    assert.deepEqual(oldest.conditions?.fraction, { key: 'k', default: { numerator: 7, denominator: 100 } });
  });

  it('are the content types of gRPC', () => {
    const { headers } = routeOf({ prefix: '/', headers: [{ name: 'a' }], grpc: {} }).conditions!;
    assert.deepEqual(
      headers.map(({ name }) => name),
      ['a', 'content-type'],
    );
    const passes = compileHeaderTest(headers[1]!);
    const types = ['application/grpc', 'application/grpc+proto', 'application/grpc-web', 'application/json', undefined];
    assert.deepEqual(types.map(passes), [true, true, false, false, false]);
  });

  it('are none at all when the path alone decides', () => assert.equal(routeOf({ prefix: '/' }).conditions, null));
});

describe('what else a route asks of a request', () => {
  it('is read of cookies, certificates and metadata', () => {
    const value = { string_match: { exact: 'gold' } };
    const { conditions } = routeOf({
      prefix: '/',
      cookies: [{ name: 'c', string_match: { exact: 'v' }, invert_match: true }],
      tls_context: { presented: false },
      dynamic_metadata: [{ filter: 'n', path: [{ key: 'a' }, { key: 'b' }], value, invert: true }],
    });
    const text = (value: string) => ({ kind: 'exact', value, ignoresCase: false });
    assert.deepEqual(conditions, {
      headers: [],
      queryParameters: [],
      cookies: [{ name: 'c', test: text('v'), isInverted: true }],
      clientCertificate: { isPresented: false },
      metadata: [
        { namespace: 'n', path: ['a', 'b'], value: { kind: 'string', match: text('gold') }, isInverted: true },
      ],
      fraction: null,
    });
  });

  it('is nothing where certificates do not matter', () => {
    assert.equal(routeOf({ prefix: '/', tls_context: {} }).conditions, null);
  });

  it('quotes no cookie', () => {
    assert.deepEqual(
      errorsOf({ prefix: '/', cookies: [{ name: 'c', string_match: { safe_regex: { regex: 's3cret(' } } }] }),
      ['cookies[0].string_match.safe_regex.regex: is not a regular expression'],
    );
  });
});
