import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ListenerSettings } from '../../../../src/snapshot/index.ts';
import {
  faultTexts,
  type Json,
  type JsonObject,
  listenerWith,
  load,
  mustLoad,
  tcpFilter,
  withListeners,
} from '../../../support/bootstrap.ts';
import {
  byServerName,
  bySource,
  byValue,
  networkInput,
  toChain,
  toFormattedChain,
} from '../../../support/chain-trees.ts';

const AT = 'static_resources.listeners[0]';
const TREE = `${AT}.filter_chain_matcher`;

function chain(name: string, fields: JsonObject = {}): JsonObject {
  return { name, filters: [tcpFilter({})], ...fields };
}

function chosenBy(
  filter_chain_matcher: JsonObject,
  filter_chains: readonly Json[] = [chain('a'), chain('b')],
  fields: JsonObject = {},
): JsonObject {
  return withListeners(listenerWith([], { filter_chains, filter_chain_matcher, ...fields }));
}

function settingsOf(bootstrap: JsonObject): ListenerSettings {
  return mustLoad(bootstrap).listeners[0]!;
}

function errorsOf(bootstrap: JsonObject): string[] {
  return faultTexts(load(bootstrap));
}

describe('filter_chain_matcher', () => {
  it('leads to chains by their names, which need no criteria to be told apart', () => {
    const tree = { ...bySource({ '10.0.0.0/8': toChain('a') }), on_no_match: toChain('b') };
    const { filterChainMatcher: found, filterChains } = settingsOf(chosenBy(tree));
    assert.deepEqual(found, {
      kind: 'ranges',
      input: { kind: 'source-ip' },
      entries: [
        {
          ranges: [{ ip: '10.0.0.0', prefixLength: 8 }],
          isExclusive: false,
          outcome: { next: { kind: 'action', action: { kind: 'name', name: 'a' } }, keepsMatching: false },
        },
      ],
      otherwise: { next: { kind: 'action', action: { kind: 'name', name: 'b' } }, keepsMatching: false },
    });
    assert.deepEqual(
      filterChains.map(({ name }) => name),
      ['a', 'b'],
    );
    assert.equal('filterChainMatcher' in settingsOf(withListeners(listenerWith([tcpFilter({})]))), false);
  });

  it('leads to names that are made of what is known of the connection', () => {
    const format = { text_format_source: { inline_string: 'for-%REQUESTED_SERVER_NAME%' }, omit_empty_values: true };
    const { filterChainMatcher: found } = settingsOf(chosenBy({ on_no_match: toFormattedChain(format) }));
    const next = found?.otherwise?.next;
    assert.ok(next?.kind === 'action' && next.action.kind === 'format');
    assert.equal(next.action.segments[0], 'for-');
    assert.equal(next.action.omitsEmptyValues, true);
    const action = `${TREE}.on_no_match.action.typed_config`;
    assert.deepEqual(errorsOf(chosenBy({ on_no_match: toFormattedChain({ json_format: { a: 'b' } }) })), [
      `${action}.json_format: is no name of a filter chain: use text_format_source`,
    ]);
    const formatters = [
      { name: 'f', typed_config: { '@type': 'type.googleapis.com/google.protobuf.StringValue', value: 'x' } },
    ];
    const warned = load(chosenBy({ on_no_match: toFormattedChain({ ...format, formatters }) }));
    assert.match(
      faultTexts(warned, 'warning')[0]!,
      /on_no_match\.action\.typed_config\.formatters\[0\]\.typed_config: .*operators of others are unknown/,
    );
    const wrong = toFormattedChain({ text_format_source: { inline_string: '%NO_SUCH%' } });
    assert.match(errorsOf(chosenBy({ on_no_match: wrong }))[0]!, /text_format_source: .*NO_SUCH/);
  });

  it('needs chains that have names of their own and no criteria', () => {
    const chains = [chain('a'), chain(''), chain('a'), chain('b', { filter_chain_match: { source_ports: [1] } })];
    assert.deepEqual(errorsOf(chosenBy({ on_no_match: toChain('a') }, chains)), [
      `${AT}.filter_chains[1].name: is needed: filter_chain_matcher finds filter chains by their names`,
      `${AT}.filter_chains[2].name: ${AT}.filter_chains[0] has the name "a"`,
      `${AT}.filter_chains[3].filter_chain_match: filter_chain_matcher takes its place: leave one out`,
    ]);
    // That of the default chain is not asked for.
    const fields = { default_filter_chain: { filters: [tcpFilter({})] } };
    assert.deepEqual(errorsOf(chosenBy({ on_no_match: toChain('a') }, [chain('a')], fields)), []);
  });

  it('is warned of names that no chain has', () => {
    const result = load(chosenBy({ ...byValue('SourcePortInput', { '1': toChain('c') }), on_no_match: toChain('a') }));
    assert.deepEqual(faultTexts(result, 'warning'), [
      `${TREE}.matcher_tree.exact_match_map.map["1"].action.typed_config: no filter chain has the name "c": connections that are led there are closed`,
    ]);
    assert.deepEqual(faultTexts(result), []);
  });

  it('asks for what is known before handshakes and requests', () => {
    const ssl = 'type.googleapis.com/envoy.extensions.matching.common_inputs.ssl.v3';
    const http = 'type.googleapis.com/envoy.type.matcher.v3.HttpRequestHeaderMatchInput';
    const secured = ['SubjectInput', 'UriSanInput', 'DnsSanInput'].map((name) => ({ '@type': `${ssl}.${name}` }));
    for (const typed_config of [...secured, { '@type': http, header_name: 'a' }]) {
      const input = { name: 'input', typed_config };
      const tree = { matcher_tree: { input, exact_match_map: { map: { a: toChain('a') } } } };
      assert.deepEqual(errorsOf(chosenBy(tree)), [
        `${TREE}.matcher_tree.input.typed_config: is no input here: filter chains are chosen before handshakes and requests`,
      ]);
    }
    const route = {
      '@type': 'type.googleapis.com/envoy.config.route.v3.Route',
      match: { prefix: '/' },
      route: { cluster: 'web' },
    };
    assert.deepEqual(errorsOf(chosenBy({ on_no_match: { action: { name: 'a', typed_config: route } } })), [
      `${TREE}.on_no_match.action.typed_config: "proxy.config.route.v3.Route" is no action here: "google.protobuf.StringValue" and "proxy.config.core.v3.SubstitutionFormatString" are`,
    ]);
    assert.deepEqual(errorsOf(chosenBy({})), [`${TREE}: needs a matcher_list, a matcher_tree or an on_no_match`]);
  });

  it('has the TLS inspector added where it asks for what TLS clients announce, at whatever depth', () => {
    const predicate = {
      not_matcher: {
        and_matcher: {
          predicate: [
            { single_predicate: { input: networkInput('SourcePortInput'), value_match: { exact: '1' } } },
            { single_predicate: { input: networkInput('TransportProtocolInput'), value_match: { exact: 'tls' } } },
          ],
        },
      },
    };
    const asking = [
      byServerName({ '*.example.com': toChain('a') }),
      { matcher_list: { matchers: [{ predicate, on_match: toChain('a') }] } },
      { on_no_match: { matcher: byValue('ApplicationProtocolInput', { "'h2'": toChain('a') }) } },
      bySource({ '10.0.0.0/8': { matcher: byServerName({ 'a.test': toChain('b') }) } }),
    ];
    for (const tree of asking) {
      const result = load(chosenBy(tree));
      assert.deepEqual(faultTexts(result, 'warning'), [
        `${TREE}: is decided by what TLS clients announce, so the listener filter tls_inspector is added`,
      ]);
      const { listenerFilters } = result.bootstrap!.listeners[0]!;
      assert.deepEqual(
        listenerFilters.map(({ kind }) => kind),
        ['tls-inspector'],
      );
      const inspector = { listener_filters: [{ name: 'envoy.filters.listener.tls_inspector' }] };
      assert.deepEqual(faultTexts(load(chosenBy(tree, undefined, inspector)), 'warning'), []);
    }
    assert.deepEqual(settingsOf(chosenBy(bySource({ '10.0.0.0/8': toChain('a') }))).listenerFilters, []);
  });

  it('is none of listeners for datagrams', () => {
    const udp = {
      name: 'u',
      address: { socket_address: { address: '127.0.0.1', port_value: 10000, protocol: 'UDP' } },
      listener_filters: [
        {
          name: 'envoy.filters.udp_listener.udp_proxy',
          typed_config: {
            '@type': 'type.googleapis.com/envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig',
            stat_prefix: 'u',
            cluster: 'web',
          },
        },
      ],
      filter_chain_matcher: { on_no_match: toChain('a') },
    };
    assert.deepEqual(errorsOf(withListeners(udp)), [`${TREE}: a listener for datagrams has no connections`]);
  });
});
