import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { UdpProxySettings } from '../../../../src/snapshot/index.ts';
import {
  faultTexts,
  type JsonObject,
  listenerWith,
  load,
  mustLoad,
  tcpFilter,
  withListeners,
} from '../../../support/bootstrap.ts';

const AT = 'static_resources.listeners[0]';
const FILTER = `${AT}.listener_filters[0].typed_config`;
const TYPE = 'type.googleapis.com/envoy.extensions.filters.udp.udp_proxy.v3';

function filter(fields: JsonObject): JsonObject {
  const name = 'envoy.filters.udp_listener.udp_proxy';
  return { name, typed_config: { '@type': `${TYPE}.UdpProxyConfig`, stat_prefix: 'dns', ...fields } };
}

function listener(fields: JsonObject = { cluster: 'web' }, beside: JsonObject = {}): JsonObject {
  const address = { socket_address: { protocol: 'UDP', address: '127.0.0.1', port_value: 53 } };
  return { name: 'dns', address, listener_filters: [filter(fields)], ...beside };
}

function settingsOf(fields: JsonObject, beside: JsonObject = {}): UdpProxySettings {
  return mustLoad(withListeners(listener(fields, beside))).listeners[0]!.udp!;
}

const errorsOf = (own: JsonObject): string[] => faultTexts(load(withListeners(own)));

function matcher(cluster: string): JsonObject {
  const action = { name: 'route', typed_config: { '@type': `${TYPE}.Route`, cluster } };
  return { matcher: { on_no_match: { action } } };
}

describe('a listener for datagrams', () => {
  it('fills in the documented defaults', () => {
    assert.deepEqual(settingsOf({ cluster: 'web' }), {
      statPrefix: 'dns',
      cluster: 'web',
      idleTimeoutMs: 60_000,
      hashPolicy: null,
      picksPerDatagram: false,
      maxClientDatagramBytes: 1500,
      maxHostDatagramBytes: 1500,
      accessLogs: [],
    });
  });

  it('reads what it says', () => {
    const settings = settingsOf(
      {
        ...matcher('web'),
        idle_timeout: '5s',
        hash_policies: [{ source_ip: true }],
        use_per_packet_load_balancing: true,
        upstream_socket_config: { max_rx_datagram_size: 9000 },
      },
      { udp_listener_config: { downstream_socket_config: { max_rx_datagram_size: 512 } } },
    );
    const { matcher: tree, idleTimeoutMs, hashPolicy, picksPerDatagram } = settings;
    assert.deepEqual(
      [tree!.clusters, idleTimeoutMs, hashPolicy, picksPerDatagram],
      [['web'], 5000, { kind: 'source-ip' }, true],
    );
    assert.deepEqual([settings.maxClientDatagramBytes, settings.maxHostDatagramBytes], [512, 9000]);
    assert.deepEqual(settingsOf({ cluster: 'web', hash_policies: [{ key: 'k' }] }).hashPolicy, {
      kind: 'key',
      key: 'k',
    });
  });

  it('needs a cluster that exists, however it is named', () => {
    const missing = 'cluster "wep" does not exist; did you mean "web"?';
    assert.deepEqual(errorsOf(listener({ cluster: 'wep' })), [`${FILTER}.cluster: ${missing}`]);
    assert.deepEqual(errorsOf(listener(matcher('wep'))), [
      `${FILTER}.matcher.on_no_match.action.typed_config.cluster: ${missing}`,
    ]);
    assert.deepEqual(errorsOf(listener({ matcher: {} })), [
      `${FILTER}.matcher.on_no_match: needs an action, which says where datagrams go`,
    ]);
  });

  const NETWORK = 'type.googleapis.com/envoy.extensions.matching.common_inputs.network.v3';
  const byInput = (name: string, value: string, cluster: string, otherwise = 'web'): JsonObject => {
    const action = { name: 'route', typed_config: { '@type': `${TYPE}.Route`, cluster } };
    const input = { name: 'input', typed_config: { '@type': `${NETWORK}.${name}` } };
    const matcher_tree = { input, exact_match_map: { map: { [value]: { action } } } };
    return { matcher: { matcher_tree, ...(matcher(otherwise).matcher as JsonObject) } };
  };

  it('chooses clusters by a tree of what datagrams have', () => {
    const { cluster, matcher: found } = settingsOf(byInput('DestinationIPInput', '127.0.0.1', 'web'));
    assert.equal(cluster, '');
    assert.deepEqual(found!.clusters, ['web']);
    assert.equal(found!.tree.kind, 'exact');
    assert.match(
      errorsOf(listener(byInput('SourceIPInput', '127.0.0.1', 'wep'))).join(),
      /map\["127\.0\.0\.1"\]\.action.*cluster "wep" does not exist/,
    );
    assert.match(
      errorsOf(listener(byInput('ServerNameInput', 'a', 'web'))).join(),
      /matcher_tree\.input\.typed_config: is no input of datagrams: they have addresses and ports/,
    );
    const address = { socket_address: { protocol: 'UDP', address: '0.0.0.0', port_value: 53 } };
    const wide = (name: string): string => errorsOf(listener(byInput(name, '127.0.0.1', 'web'), { address })).join();
    assert.match(wide('DestinationIPInput'), /datagrams to all addresses do not say to which of them they have come/);
    assert.equal(wide('DestinationPortInput'), '');
    const route = { '@type': 'type.googleapis.com/envoy.config.route.v3.Route', match: { prefix: '/' } };
    const wrong = { matcher: { on_no_match: { action: { name: 'a', typed_config: route } } } };
    assert.match(errorsOf(listener(wrong)).join(), /Route" is no action of udp_proxy: "proxy.extensions.filters.udp/);
  });

  it('refuses what would be seen or filtered otherwise, by name', () => {
    const input = { name: 'i', typed_config: { '@type': `${TYPE}.Route`, cluster: 'web' } };
    const texts = [
      errorsOf(listener({ cluster: 'web', use_original_src_ip: true })),
      errorsOf(listener({ cluster: 'web', session_filters: [input] })),
    ].map((texts) => texts.join('\n'));
    assert.match(texts[0]!, /use_original_src_ip is not supported by this build/);
    assert.match(texts[1]!, /session_filters is not supported by this build/);
  });

  it('has nothing of connections', () => {
    const none = 'a listener for datagrams has no connections';
    const { filter_chains } = listenerWith([tcpFilter({ cluster: 'web' })]) as { filter_chains: JsonObject[] };
    assert.deepEqual(errorsOf(listener({ cluster: 'web' }, { filter_chains, transparent: true })), [
      `${AT}.filter_chains: ${none}`,
      `${AT}.transparent: ${none}`,
    ]);
    assert.deepEqual(errorsOf(listener({ cluster: 'web' }, { listener_filters: [] })), [
      `${AT}.listener_filters: a listener for datagrams needs the listener filter udp_proxy`,
    ]);
    const twice = { listener_filters: [filter({ cluster: 'web' }), filter({ cluster: 'web' })] };
    assert.deepEqual(errorsOf(listener({}, twice)), [
      `${AT}.listener_filters[1]: a listener for datagrams has one listener filter, udp_proxy`,
    ]);
  });

  it('is one at all its addresses, and udp_proxy at no other', () => {
    const tcp = { address: { socket_address: { address: '127.0.0.1', port_value: 54 } } };
    assert.deepEqual(errorsOf(listener({ cluster: 'web' }, { additional_addresses: [tcp] })), [
      `${AT}.additional_addresses[0].address: all addresses of a listener are of one protocol; the first is of UDP`,
    ]);
    const connections = {
      ...listenerWith([tcpFilter({ cluster: 'web' })]),
      listener_filters: [filter({ cluster: 'web' })],
    };
    assert.deepEqual(errorsOf({ ...connections, udp_listener_config: {} }), [
      `${AT}.listener_filters[0]: udp_proxy needs an address whose protocol is UDP`,
      `${AT}.udp_listener_config: needs an address whose protocol is UDP`,
    ]);
  });

  it('may have the port of one for connections', () => {
    const tcp = listenerWith([tcpFilter({ cluster: 'web' })]);
    const same = { ...tcp, name: 'tcp', address: { socket_address: { address: '127.0.0.1', port_value: 53 } } };
    assert.equal(mustLoad(withListeners(listener(), same)).listeners.length, 2);
  });
});
