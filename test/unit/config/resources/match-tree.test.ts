import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { VirtualHostSnapshot } from '../../../../src/snapshot/index.ts';
import { faultTexts, type Json, type JsonObject, load, mustLoad, withRoutes } from '../../../support/bootstrap.ts';

const AT =
  'static_resources.listeners[0].filter_chains[0].filters[0].typed_config.route_config.virtual_hosts[0].matcher';
const TYPES = 'type.googleapis.com';
const COMMON = 'envoy.extensions.matching.common_inputs';
const NETWORK = `${COMMON}.network.v3`;
const TESTS = 'envoy.extensions.matching.input_matchers';

const extension = (type: string, fields: JsonObject = {}): JsonObject => ({
  name: 'x',
  typed_config: { '@type': `${TYPES}/${type}`, ...fields },
});
const route = (name: string): JsonObject => ({ name, match: { prefix: '/' }, direct_response: { status: 200 } });
const action = (...names: string[]): JsonObject => ({
  action:
    names.length === 1
      ? extension('envoy.config.route.v3.Route', route(names[0]!))
      : extension('envoy.config.route.v3.RouteList', { routes: names.map(route) }),
});
const path = extension('envoy.type.matcher.v3.HttpRequestHeaderMatchInput', { header_name: ':Path' });

function withMatcher(matcher: JsonObject, fields: JsonObject = {}): JsonObject {
  return withRoutes({ virtual_hosts: [{ name: 'all', domains: ['*'], matcher, ...fields }] });
}

function hostOf(matcher: JsonObject): VirtualHostSnapshot {
  const options = { environment: { REGION: 'eu' } };
  const { filter } = mustLoad(withMatcher(matcher), options).listeners[0]!.filterChains[0]!;
  assert.equal(filter.kind, 'http-connection-manager');
  return filter.routeTable.virtualHosts[0]!;
}

function errorsOf(matcher: JsonObject, fields: JsonObject = {}): string[] {
  return faultTexts(load(withMatcher(matcher, fields))).map((text) => text.replace(AT, ''));
}

/** A tree of one entry that looks at `input`. */
const looking = (input: Json, test: JsonObject = { value_match: { exact: 'a' } }): JsonObject => ({
  matcher_list: { matchers: [{ predicate: { single_predicate: { input, ...test } }, on_match: action('a') }] },
});
const testOf = (test: JsonObject, input: Json = path): unknown => {
  const { matcher } = hostOf(looking(input, { custom_match: test }));
  const predicate = matcher?.kind === 'list' ? matcher.entries[0]!.predicate : undefined;
  return predicate?.kind === 'input' ? predicate.test : undefined;
};

describe('a tree of a virtual host', () => {
  it('leads to places of its routes, which are taken up in order', () => {
    const matcher_tree = { input: path, exact_match_map: { map: { '/a': action('a'), '/b': action('b', 'c') } } };
    const { routes, matcher } = hostOf({ matcher_tree, on_no_match: action('d') });
    const to = (...places: number[]) => ({ next: { kind: 'action', action: places }, keepsMatching: false });
    assert.deepEqual(new Set(routes.map(({ name }) => name)), new Set(['a', 'b', 'c', 'd']));
    const place = (name: string): number => routes.findIndex((each) => each.name === name);
    assert.deepEqual(matcher, {
      kind: 'exact',
      input: { kind: 'request-header', name: ':path' },
      entries: [
        ['/a', to(place('a'))],
        ['/b', to(place('b'), place('c'))],
      ],
      otherwise: to(place('d')),
    });
  });

  const inputs: readonly (readonly [JsonObject, object])[] = [
    [
      extension('envoy.type.matcher.v3.HttpRequestQueryParamMatchInput', { query_param: 'Q' }),
      { kind: 'query-parameter', name: 'Q' },
    ],
    ...Object.entries({
      DestinationIPInput: 'destination-ip',
      DestinationPortInput: 'destination-port',
      SourceIPInput: 'source-ip',
      SourcePortInput: 'source-port',
      DirectSourceIPInput: 'direct-source-ip',
      SourceTypeInput: 'source-type',
      ServerNameInput: 'server-name',
      TransportProtocolInput: 'transport-protocol',
      ApplicationProtocolInput: 'application-protocol',
    }).map(([name, kind]) => [extension(`${NETWORK}.${name}`), { kind }] as const),
    [extension(`${COMMON}.ssl.v3.UriSanInput`), { kind: 'uri-san' }],
    [extension(`${COMMON}.ssl.v3.DnsSanInput`), { kind: 'dns-san' }],
    [extension(`${COMMON}.ssl.v3.SubjectInput`), { kind: 'subject' }],
    [extension(`${NETWORK}.FilterStateInput`, { key: 'k' }), { kind: 'filter-state', key: 'k' }],
    [
      extension(`${NETWORK}.DynamicMetadataInput`, { filter: 'f', path: [{ key: 'a' }, { key: 'b' }] }),
      { kind: 'dynamic-metadata', namespace: 'f', path: ['a', 'b'] },
    ],
    [extension(`${COMMON}.environment_variable.v3.Config`, { name: 'REGION' }), { kind: 'constant', value: 'eu' }],
    [extension(`${COMMON}.environment_variable.v3.Config`, { name: 'NONE' }), { kind: 'constant', value: null }],
  ];
  for (const [message, input] of inputs) {
    it(`may look at ${JSON.stringify(input)}`, () => {
      const { matcher } = hostOf(looking(message));
      assert.deepEqual(matcher?.kind === 'list' && matcher.entries[0]!.predicate, {
        kind: 'input',
        input,
        test: { kind: 'text', match: { kind: 'exact', value: 'a', ignoresCase: false } },
      });
    });
  }

  it('may test by ranges, shares and values', () => {
    const cidr_ranges = [{ address_prefix: '10.0.0.0', prefix_len: 8 }];
    const ranges = [{ ip: '10.0.0.0', prefixLength: 8 }];
    assert.deepEqual(testOf(extension(`${TESTS}.ip.v3.Ip`, { cidr_ranges })), { kind: 'ip', ranges });
    const hash = { threshold: 3, modulo: 10, seed: '18446744073709551615' };
    assert.deepEqual(testOf(extension(`${TESTS}.consistent_hashing.v3.ConsistentHashing`, hash)), {
      ...hash,
      kind: 'hash',
    });
    const runtime_fraction = { runtime_key: 'k', default_value: { numerator: 3 } };
    assert.deepEqual(testOf(extension(`${TESTS}.runtime_fraction.v3.RuntimeFraction`, { runtime_fraction })), {
      kind: 'share',
      share: { key: 'k', default: { numerator: 3, denominator: 100 } },
      seed: '0',
    });
    const metadata = extension(`${NETWORK}.DynamicMetadataInput`, { filter: 'f', path: [{ key: 'a' }] });
    const value = { value: { bool_match: true }, invert: true };
    assert.deepEqual(testOf(extension(`${TESTS}.metadata.v3.Metadata`, value), metadata), {
      kind: 'value',
      match: { kind: 'boolean', value: true },
      isInverted: true,
    });
  });

  it('may go by domains', () => {
    const domain_matchers = [{ domains: ['A.example', '*.b', '*'], on_match: action('a') }];
    const custom_match = extension('xds.type.matcher.v3.ServerNameMatcher', { domain_matchers });
    const { matcher } = hostOf({ matcher_tree: { input: path, custom_match } });
    assert.deepEqual(matcher?.kind === 'domains' && matcher.entries[0]!.domains, ['a.example', '*.b', '*']);
  });
});

describe('errors of a tree', () => {
  it('stand beside routes', () => {
    assert.deepEqual(errorsOf(looking(path), { routes: [route('x')] }), [': cannot be given together with routes']);
  });

  it('are what leads nowhere', () => {
    assert.deepEqual(errorsOf({}), [': needs a matcher_list, a matcher_tree or an on_no_match']);
    assert.deepEqual(errorsOf({ matcher_tree: { input: path, exact_match_map: { map: {} } } }), [
      '.matcher_tree.exact_match_map.map: must not be empty',
    ]);
  });

  it('are actions and inputs that are none, by their names', () => {
    const on_no_match = { action: extension('envoy.extensions.filters.http.router.v3.Router') };
    assert.deepEqual(errorsOf({ on_no_match }), [
      '.on_no_match.action.typed_config: "proxy.extensions.filters.http.router.v3.Router" is no action of a virtual host: Route and RouteList are',
    ]);
    const at = '.matcher_list.matchers[0].predicate.single_predicate.input.typed_config';
    assert.deepEqual(errorsOf(looking(extension(`${NETWORK}.NetworkNamespaceInput`))), [
      `${at}: "x" is not supported by this build`,
    ]);
    assert.deepEqual(errorsOf(looking(extension('envoy.type.matcher.v3.HttpResponseStatusCodeMatchInput'))), [
      `${at}: is an input that there is only of responses`,
    ]);
  });

  it('are tests that cannot be', () => {
    const here = '.matcher_list.matchers[0].predicate.single_predicate';
    const regex = { value_match: { safe_regex: { google_re2: {}, regex: '(' } } };
    assert.deepEqual(errorsOf(looking(path, regex)), [
      `${here}.value_match.safe_regex.regex: "(" is not a regular expression: missing ): (`,
    ]);
    const custom = (type: string, fields: JsonObject) =>
      errorsOf(looking(path, { custom_match: extension(`${TESTS}.${type}`, fields) }));
    assert.deepEqual(custom('consistent_hashing.v3.ConsistentHashing', { threshold: 5, modulo: 5 }), [
      `${here}.custom_match.typed_config.threshold: 5 is not less than the modulo 5`,
    ]);
    assert.deepEqual(custom('consistent_hashing.v3.ConsistentHashing', {}), [
      `${here}.custom_match.typed_config.modulo: 0 is not above 0`,
    ]);
    assert.deepEqual(custom('ip.v3.Ip', { cidr_ranges: [{ address_prefix: 'x' }] }), [
      `${here}.custom_match.typed_config.cidr_ranges[0].address_prefix: "x" is not an IP address`,
    ]);
    assert.deepEqual(custom('metadata.v3.Metadata', { value: { bool_match: true } }), [
      `${here}.custom_match.typed_config: tests dynamic metadata: the input must be a DynamicMetadataInput`,
    ]);
  });

  it('are domains that are none', () => {
    const domain_matchers = [{ domains: ['*a.b'], on_match: action('a') }];
    const custom_match = extension('xds.type.matcher.v3.ServerNameMatcher', { domain_matchers });
    assert.deepEqual(errorsOf({ matcher_tree: { input: path, custom_match } }), [
      '.matcher_tree.custom_match.typed_config.domain_matchers[0].domains[0]: "*a.b" is neither a name nor "*.<name>" nor "*"',
    ]);
  });

  it('are those of the routes that it leads to', () => {
    const on_no_match = {
      action: extension('envoy.config.route.v3.Route', { match: { prefix: '/' }, route: { cluster: 'none' } }),
    };
    assert.deepEqual(errorsOf({ on_no_match }), [
      '.on_no_match.action.typed_config.route.cluster: cluster "none" does not exist',
    ]);
  });
});
