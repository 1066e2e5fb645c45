import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DEFAULT_HTTP2_SETTINGS } from '../../../../src/config/resources/http2-options.ts';
import type {
  HttpConnectionManagerSettings,
  ListenerSettings,
  TcpProxySettings,
} from '../../../../src/snapshot/index.ts';
import {
  faultTexts,
  httpFilter,
  type Json,
  type JsonObject,
  listenerWith,
  load,
  mustLoad,
  ROUTER,
  socketAddress,
  tcpFilter,
  withListeners,
  withoutFilter,
} from '../../../support/bootstrap.ts';
import { MATCHES_ALL, PROXY_PROTOCOL } from '../../../support/listeners.ts';
import { NO_FURTHER_ENTRIES, PLAIN_FORWARDING, PLAIN_NORMALIZATION } from '../../../support/plain-manager.ts';

const AT = 'static_resources.listeners[0]';
const CHAIN = `${AT}.filter_chains[0]`;

function settingsOf(listener: JsonObject): ListenerSettings {
  return mustLoad(withListeners(listener)).listeners[0]!;
}

function errorsOf(...listeners: Json[]): string[] {
  return faultTexts(load(withListeners(...listeners)));
}

function managerOf(fields: JsonObject): HttpConnectionManagerSettings {
  const { filter } = settingsOf(listenerWith([httpFilter(fields)])).filterChains[0]!;
  assert.equal(filter.kind, 'http-connection-manager');
  return filter;
}

describe('a listener', () => {
  it('fills in the documented defaults', () => {
    const { filterChains, ...rest } = settingsOf(listenerWith([tcpFilter({})]));
    assert.deepEqual(rest, {
      name: 'main',
      accessLogs: [],
      addresses: [{ kind: 'ip', ip: '127.0.0.1', port: 10000 }],
      bindsToPort: true,
      handsOver: false,
      statPrefix: '',
      trafficDirection: 'UNSPECIFIED',
      drainType: 'default',
      bufferLimitBytes: 1048576,
      backlog: 65535,
      reusePort: true,
      socketOptions: { noDelay: true, keepalive: undefined, typeOfService: 0 },
      listenerFilters: [],
      listenerFiltersTimeoutMs: 15_000,
      continueOnListenerFiltersTimeout: false,
      ignoresGlobalLimit: false,
      bypassesOverload: false,
      defaultFilterChain: null,
    });
    assert.deepEqual(filterChains, [
      {
        name: '',
        match: MATCHES_ALL,
        networkFilters: [],
        filter: {
          kind: 'tcp-proxy',
          statPrefix: 'tcp',
          accessLogs: [],
          furtherLogEntries: { onStart: false, onConnected: false, intervalMs: 0 },
          clusters: [{ cluster: 'web', weight: 1, criteria: null }],
          hashInputs: [],
          idleTimeoutMs: 3_600_000,
          clientIdleTimeoutMs: 0,
          upstreamIdleTimeoutMs: 0,
          maxConnectAttempts: 1,
          connectBackoff: null,
          maxConnectionDurationMs: 0,
          maxConnectionDurationJitterPercent: 0,
          awaitsData: false,
          tunnel: null,
        },
      },
    ]);
  });

  it('reads its limits, its chain name and a unix socket', () => {
    const listener = {
      name: 'l',
      address: { pipe: { path: '@abstract', mode: 0o600 } },
      per_connection_buffer_limit_bytes: 4096,
      tcp_backlog_size: 7,
      stat_prefix: 'edge',
      traffic_direction: 'OUTBOUND',
      drain_type: 'MODIFY_ONLY',
      enable_reuse_port: false,
      filter_chains: [
        { name: 'c', filter_chain_match: {}, filters: [tcpFilter({ idle_timeout: '0s', max_connect_attempts: 3 })] },
      ],
    };
    const settings = settingsOf(listener);
    assert.deepEqual(settings.addresses, [{ kind: 'pipe', path: '@abstract', mode: 0o600 }]);
    assert.deepEqual([settings.bufferLimitBytes, settings.backlog, settings.filterChains[0]!.name], [4096, 7, 'c']);
    assert.deepEqual([settings.statPrefix, settings.trafficDirection, settings.reusePort], ['edge', 'OUTBOUND', false]);
    assert.equal(settings.drainType, 'modify-only');
    const { filter } = settings.filterChains[0]!;
    assert.deepEqual(filter.kind === 'tcp-proxy' && [filter.idleTimeoutMs, filter.maxConnectAttempts], [0, 3]);
  });

  it('is refused where the path of its unix socket is longer than the system lets it be', () => {
    const errors = (path: string): readonly string[] =>
      faultTexts(load(withListeners(listenerWith([tcpFilter({})], { address: { pipe: { path } } }))));
    // Of two bytes each.
    const path = `/run/${'ä'.repeat(51)}`;
    assert.deepEqual(errors(path), []);
    assert.deepEqual(errors(`${path}s`), [
      `${AT}.address.pipe.path: "${path}s" has 108 bytes; the path of a unix socket has 107 at most`,
    ]);
  });

  it('listens on further addresses, and on IPv6 for IPv4 clients where that is asked for', () => {
    const both = { socket_address: { address: '0:0::0', port_value: 80, ipv4_compat: true } };
    const listener = listenerWith([tcpFilter({})], {
      address: both,
      additional_addresses: [{ address: socketAddress('127.0.0.1', 81) }, { address: { pipe: { path: '/a' } } }],
    });
    assert.deepEqual(settingsOf(listener).addresses, [
      { kind: 'ip', ip: '::', port: 80, acceptsIpv4: true },
      { kind: 'ip', ip: '127.0.0.1', port: 81 },
      { kind: 'pipe', path: '/a', mode: 0 },
    ]);
    const same = listenerWith([tcpFilter({})], { name: 'b', address: socketAddress('127.0.0.1', 81) });
    assert.deepEqual(errorsOf(listener, same), [
      'static_resources.listeners[1].address: 127.0.0.1:81 is already the address of listener "main"',
    ]);
  });

  it('reads the socket options that are set on accepted sockets', () => {
    const option = (level: number, name: number, value: number) => ({ level, name, int_value: value });
    const listener = listenerWith([tcpFilter({})], {
      tcp_keepalive: { keepalive_probes: 3 },
      socket_options: [option(6, 1, 0), option(6, 4, 30), option(0, 1, 16), option(1, 8, 65_536)],
    });
    const result = load(withListeners(listener));
    assert.deepEqual(faultTexts(result, 'warning'), []);
    assert.deepEqual(result.bootstrap!.listeners[0]!.socketOptions, {
      noDelay: false,
      keepalive: { probes: 3, timeSeconds: 30, intervalSeconds: 75 },
      typeOfService: 16,
    });
    const wrong = listenerWith([tcpFilter({})], { socket_options: [option(0, 1, 256)] });
    assert.deepEqual(errorsOf(wrong), [`${AT}.socket_options[0].int_value: 256 is not a value of socket option 0/1`]);
  });

  it('reads the keepalive of accepted sockets by address, where one has its own', () => {
    const second = { address: socketAddress('127.0.0.1', 81) };
    const own = { address: socketAddress('127.0.0.1', 82), tcp_keepalive: { keepalive_time: 5 } };
    const read = (...others: readonly JsonObject[]) => {
      const result = load(withListeners(listenerWith([tcpFilter({})], { additional_addresses: others })));
      assert.deepEqual(faultTexts(result, 'warning'), []);
      return result.bootstrap!.listeners[0]!.ownKeepalives;
    };
    assert.equal(read(second), undefined);
    assert.deepEqual(read(second, own), [null, null, { probes: 9, timeSeconds: 5, intervalSeconds: 75 }]);
  });

  it('says what of its sockets it cannot do', () => {
    const listener = listenerWith([tcpFilter({})], {
      enable_reuse_port: false,
    });
    const result = load(withListeners(listener));
    assert.deepEqual(faultTexts(result), []);
    assert.deepEqual(faultTexts(result, 'warning'), [
      `${AT}.enable_reuse_port: enable_reuse_port false is not supported by this build; the first worker accepts alone`,
    ]);
  });

  it('without a name gets one that no other has', () => {
    const nameless = listenerWith([tcpFilter({})], { name: '', address: socketAddress('127.0.0.1', 0) });
    const { listeners } = mustLoad(withListeners(nameless, nameless));
    assert.notEqual(listeners[0]!.name, '');
    assert.notEqual(listeners[0]!.name, listeners[1]!.name);
  });

  it('must differ from others in name and address', () => {
    const ipv6 = (name: string, ip: string) => listenerWith([tcpFilter({})], { name, address: socketAddress(ip, 80) });
    assert.deepEqual(errorsOf(ipv6('a', '::1'), ipv6('a', '::2'), ipv6('', '0:0:0:0:0:0:0:1')), [
      'static_resources.listeners[1].name: listener "a" is already defined at static_resources.listeners[0]',
      'static_resources.listeners[2].address: [::1]:80 is already the address of listener "a"',
    ]);
  });

  it('must have an IP address to bind to', () => {
    assert.deepEqual(errorsOf({ name: 'main', filter_chains: [{ filters: [tcpFilter({})] }] }), [
      `${AT}.address: is required`,
    ]);
    assert.deepEqual(errorsOf(listenerWith([tcpFilter({})], { address: socketAddress('localhost', 80) })), [
      `${AT}.address.socket_address.address: "localhost" is not an IP address; a listener binds to an IP address`,
    ]);
    assert.deepEqual(errorsOf(listenerWith([tcpFilter({})], { address: socketAddress('127.0.0.1', 65536) })), [
      `${AT}.address.socket_address.port_value: 65536 exceeds the limit 65535`,
    ]);
  });

  it('needs a filter chain, be it the default one', () => {
    assert.deepEqual(errorsOf(listenerWith([], { filter_chains: [] })), [
      `${AT}.filter_chains: needs at least one filter chain`,
    ]);
    const settings = settingsOf(
      listenerWith([], { filter_chains: [], default_filter_chain: { name: 'last', filters: [tcpFilter({})] } }),
    );
    assert.deepEqual([settings.filterChains, settings.defaultFilterChain?.name], [[], 'last']);
  });
});

describe('filter chain criteria', () => {
  const chain = (match: JsonObject): JsonObject => ({ filters: [tcpFilter({})], filter_chain_match: match });
  const chains = (...matches: JsonObject[]): JsonObject => listenerWith([], { filter_chains: matches.map(chain) });
  const cidr = (address_prefix: string, prefix_len: number): JsonObject => ({ address_prefix, prefix_len });

  it('are read in full', () => {
    const all = {
      destination_port: 443,
      prefix_ranges: [cidr('10.0.0.0', 8), { address_prefix: '::' }],
      transport_protocol: 'raw_buffer',
      direct_source_prefix_ranges: [cidr('::1', 128)],
      source_type: 'SAME_IP_OR_LOOPBACK',
      source_prefix_ranges: [cidr('127.0.0.1', 32)],
      source_ports: [1, 2],
    };
    assert.deepEqual(settingsOf(chains(all)).filterChains[0]!.match, {
      destinationPort: 443,
      prefixRanges: [
        { ip: '10.0.0.0', prefixLength: 8 },
        { ip: '::', prefixLength: 0 },
      ],
      serverNames: [],
      transportProtocol: 'raw_buffer',
      applicationProtocols: [],
      directSourcePrefixRanges: [{ ip: '::1', prefixLength: 128 }],
      sourceType: 'SAME_IP_OR_LOOPBACK',
      sourcePrefixRanges: [{ ip: '127.0.0.1', prefixLength: 32 }],
      sourcePorts: [1, 2],
    });
  });

  it('of the older generation are the same', () => {
    const type = 'type.googleapis.com/envoy.config.filter.network.tcp_proxy.v2.TcpProxy';
    const filter = { name: 'envoy.tcp_proxy', typed_config: { '@type': type, stat_prefix: 'tcp', cluster: 'web' } };
    const older = { filters: [filter], filter_chain_match: { source_type: 'LOCAL' }, use_proxy_proto: true };
    const settings = settingsOf(listenerWith([], { filter_chains: [older] }));
    assert.equal(settings.filterChains[0]!.match.sourceType, 'SAME_IP_OR_LOOPBACK');
    assert.deepEqual(settings.listenerFilters, [PROXY_PROTOCOL]);
  });

  it('must be ranges of addresses', () => {
    const wrong = {
      prefix_ranges: [cidr('10.0.0.0', 33), cidr('example.com', 8)],
      source_prefix_ranges: [cidr('::', 128)],
    };
    const at = `${CHAIN}.filter_chain_match.prefix_ranges`;
    assert.deepEqual(errorsOf(chains(wrong)), [
      `${at}[0].prefix_len: 33 exceeds the length of the address 10.0.0.0`,
      `${at}[1].address_prefix: "example.com" is not an IP address`,
    ]);
  });

  it('of two chains must not fit the same connection equally well', () => {
    const clashes: readonly (readonly [JsonObject, JsonObject])[] = [
      [{}, {}],
      [{ destination_port: 80 }, { destination_port: 80 }],
      [{ source_ports: [1, 2] }, { source_ports: [2, 3] }],
      [{ server_names: ['a.test', '*.b.test'] }, { server_names: ['c.test', '*.B.test'] }],
      [{ transport_protocol: 'tls' }, { transport_protocol: 'tls' }],
      [{ application_protocols: ['h2', 'http/1.1'] }, { application_protocols: ['http/1.1'] }],
      [{ prefix_ranges: [cidr('10.1.2.3', 8)] }, { prefix_ranges: [cidr('10.0.0.0', 8), cidr('11.0.0.0', 8)] }],
      [{ source_prefix_ranges: [cidr('::ffff:10.0.0.0', 104)] }, { source_prefix_ranges: [cidr('10.0.0.0', 8)] }],
    ];
    for (const [first, second] of clashes) {
      assert.deepEqual(errorsOf(chains(first, { destination_port: 7 }, second)), [
        `${AT}.filter_chains[2].filter_chain_match: takes connections that ${CHAIN} takes as well`,
      ]);
    }
    const apart: readonly (readonly [JsonObject, JsonObject])[] = [
      [{}, { transport_protocol: 'raw_buffer' }],
      [{ transport_protocol: 'tls' }, { transport_protocol: 'raw_buffer' }],
      [{ server_names: ['a.test'] }, { server_names: ['*.a.test'] }],
      [{ server_names: ['*.a.test'] }, { server_names: ['*.b.a.test'] }],
      [{ application_protocols: ['h2'] }, { application_protocols: ['h2c'] }],
      [{ destination_port: 80 }, { destination_port: 80, source_type: 'EXTERNAL' }],
      [{ prefix_ranges: [cidr('10.0.0.0', 8)] }, { prefix_ranges: [cidr('10.0.0.0', 9)] }],
      [{ prefix_ranges: [cidr('0.0.0.0', 0)] }, { prefix_ranges: [cidr('::', 0)] }],
    ];
    for (const pair of apart) assert.deepEqual(errorsOf(chains(...pair)), []);
  });
});

describe('the PROXY protocol', () => {
  const type = 'type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol';
  const withFilter = (fields: JsonObject): JsonObject =>
    listenerWith([tcpFilter({})], {
      listener_filters: [{ name: 'envoy.filters.listener.proxy_protocol', typed_config: { '@type': type, ...fields } }],
      listener_filters_timeout: '2s',
      continue_on_listener_filters_timeout: true,
    });

  it('is a listener filter, with what it may insist on', () => {
    const settings = settingsOf(
      withFilter({ allow_requests_without_proxy_protocol: true, disallowed_versions: ['V1'], stat_prefix: 'p' }),
    );
    assert.deepEqual(settings.listenerFilters, [
      { kind: 'proxy-protocol', isOptional: true, acceptsV1: false, acceptsV2: true, statPrefix: 'p', rules: [] },
    ]);
    assert.deepEqual([settings.listenerFiltersTimeoutMs, settings.continueOnListenerFiltersTimeout], [2000, true]);
    assert.deepEqual(errorsOf(withFilter({ disallowed_versions: ['V1', 'V2'] })), [
      `${AT}.listener_filters[0].typed_config.disallowed_versions: leaves no version that is allowed`,
    ]);
  });

  it('keeps TLVs by rule, under its own name where none is given', () => {
    const rules = [
      { tlv_type: 0xea, on_tlv_present: { key: 'vpce' } },
      { tlv_type: 2, on_tlv_present: { metadata_namespace: 'own', key: 'authority' } },
      { tlv_type: 3 },
    ];
    const [filter] = settingsOf(withFilter({ rules })).listenerFilters;
    assert.equal(filter?.kind, 'proxy-protocol');
    assert.deepEqual(filter.rules, [
      { type: 0xea, namespace: 'envoy.filters.listener.proxy_protocol', key: 'vpce' },
      { type: 2, namespace: 'own', key: 'authority' },
    ]);
  });

  it('may be left out for connections by the port that they were meant for', () => {
    const range = (start: number, end: number): JsonObject => ({ destination_port_range: { start, end } });
    const disabled = {
      not_match: { or_match: { rules: [range(1, 2), { and_match: { rules: [range(3, 9), { any_match: true }] } }] } },
    };
    const {
      listener_filters: [own],
    } = withFilter({}) as { listener_filters: [JsonObject] };
    const settings = settingsOf(
      listenerWith([tcpFilter({})], { listener_filters: [{ ...own, filter_disabled: disabled }] }),
    );
    const port = (start: number, end: number): object => ({ kind: 'port', start, end });
    const rules = [port(1, 2), { kind: 'all', rules: [port(3, 9), { kind: 'any' }] }];
    assert.deepEqual(settings.listenerFilters[0]!.disabledFor, { kind: 'not', rule: { kind: 'one-of', rules } });
  });

  it('may be asked for by its name alone, also the older one', () => {
    for (const name of ['envoy.filters.listener.proxy_protocol', 'envoy.listener.proxy_protocol']) {
      const settings = settingsOf(listenerWith([tcpFilter({})], { listener_filters: [{ name }] }));
      assert.deepEqual(settings.listenerFilters, [PROXY_PROTOCOL]);
    }
  });

  it('is what the first filter chain says for all', () => {
    const chain = (port: number, isUsed: boolean): JsonObject => ({
      filters: [tcpFilter({})],
      filter_chain_match: { destination_port: port },
      use_proxy_proto: isUsed,
    });
    const result = load(withListeners(listenerWith([], { filter_chains: [chain(1, true), chain(2, false)] })));
    assert.deepEqual(result.bootstrap!.listeners[0]!.listenerFilters, [PROXY_PROTOCOL]);
    assert.ok(
      faultTexts(result, 'warning').includes(
        `${AT}.filter_chains[1].use_proxy_proto: holds for the whole listener, which is true by its first filter chain`,
      ),
    );
  });
});

describe('a connection limit', () => {
  const type = 'type.googleapis.com/envoy.extensions.filters.network.connection_limit.v3.ConnectionLimit';
  const limit = (fields: JsonObject): JsonObject => ({
    name: 'envoy.filters.network.connection_limit',
    typed_config: { '@type': type, stat_prefix: 'l', ...fields },
  });

  it('stands before the terminal filter', () => {
    const [chain] = settingsOf(
      listenerWith([limit({ max_connections: 5, delay: '0.5s' }), tcpFilter({})]),
    ).filterChains;
    const enabled = { key: '', default: true };
    assert.deepEqual(chain!.networkFilters, [
      {
        name: 'filters.network.connection_limit',
        settings: { maxConnections: 5, delayMs: 500, enabled },
        statScope: 'connection_limit.l.',
        counters: ['limited_connections'],
        gauges: ['active_connections'],
        hasSharedCount: true,
      },
    ]);
    assert.deepEqual(errorsOf(listenerWith([limit({ max_connections: 5 })])), [
      `${CHAIN}.filters[0]: "envoy.filters.network.connection_limit" is not terminal; the last filter must be the HTTP connection manager, the TCP proxy or another terminal filter`,
    ]);
  });

  it('needs a number, and can be switched off', () => {
    assert.deepEqual(errorsOf(listenerWith([limit({}), tcpFilter({})])), [
      `${CHAIN}.filters[0].typed_config.max_connections: is required`,
    ]);
    const off = limit({ max_connections: 1, runtime_enabled: { default_value: false } });
    const limitsOf = (filter: JsonObject) =>
      settingsOf(listenerWith([filter, tcpFilter({})])).filterChains[0]!.networkFilters;
    assert.deepEqual(limitsOf(off), []);
    const byKey = limit({ max_connections: 1, runtime_enabled: { default_value: false, runtime_key: 'on' } });
    assert.deepEqual(
      limitsOf(byKey).map(({ settings }) => (settings as { enabled: unknown }).enabled),
      [{ key: 'on', default: false }],
    );
  });
});

describe('a network filter chain', () => {
  it('ends with its only terminal filter', () => {
    assert.deepEqual(errorsOf(listenerWith([])), [
      `${CHAIN}.filters: needs at least one filter; the last must be the HTTP connection manager, the TCP proxy or another terminal filter`,
    ]);
    assert.deepEqual(errorsOf(listenerWith([tcpFilter({}), tcpFilter({})])), [
      `${CHAIN}.filters[0]: terminal filter "envoy.filters.network.tcp_proxy" must be the last of its chain`,
    ]);
  });

  it('names a filter that does not exist, and one that this build lacks', () => {
    const filters = [{ name: 'envoy.tcp_proxi' }, { name: 'envoy.filters.network.mongo_proxy' }, tcpFilter({})];
    assert.deepEqual(errorsOf(listenerWith(filters)), [
      `${CHAIN}.filters[0].name: Didn't find a registered implementation for name: 'envoy.tcp_proxi'; did you mean "envoy.tcp_proxy"?`,
      `${CHAIN}.filters[1]: "envoy.filters.network.mongo_proxy" is not supported by this build: tcp_proxy carries it, without statistics of its commands`,
    ]);
  });

  it('needs a certificate for TLS, in both generations, and takes raw buffers', () => {
    const secure = (fields: JsonObject) =>
      listenerWith([], { filter_chains: [{ filters: [tcpFilter({})], ...fields }] });
    const missing = 'a server needs a certificate: tls_certificates is empty';
    const context = 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext';
    const socket = { name: 'tls', typed_config: { '@type': context } };
    const at = `${CHAIN}.transport_socket.typed_config`;
    assert.deepEqual(errorsOf(secure({ tls_context: {} })), [`${CHAIN}.tls_context.common_tls_context: ${missing}`]);
    assert.deepEqual(errorsOf(secure({ transport_socket: socket })), [`${at}.common_tls_context: ${missing}`]);
    assert.deepEqual(errorsOf(secure({ transport_socket: { name: 'tls' } })), [`${at}.common_tls_context: ${missing}`]);
    assert.deepEqual(errorsOf(secure({ transport_socket: { name: 'raw_buffer' } })), []);
  });

  it('leads a TCP proxy to a cluster that exists', () => {
    assert.deepEqual(errorsOf(listenerWith([tcpFilter({ cluster: 'wep' })])), [
      `${CHAIN}.filters[0].typed_config.cluster: cluster "wep" does not exist; did you mean "web"?`,
    ]);
  });
});

describe('a TCP proxy', () => {
  const TCP = `${CHAIN}.filters[0].typed_config`;
  const V2 = 'type.googleapis.com/envoy.config.filter.network.tcp_proxy.v2.TcpProxy';
  const V3 = 'type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy';

  function proxying(fields: JsonObject, type = V3): JsonObject {
    return listenerWith([{ name: 'envoy.tcp_proxy', typed_config: { '@type': type, stat_prefix: 'tcp', ...fields } }]);
  }

  function tcpSettings(listener: JsonObject): TcpProxySettings {
    const { filter } = settingsOf(listener).filterChains[0]!;
    assert.equal(filter.kind, 'tcp-proxy');
    return filter;
  }

  it('hashes connections by their address, or by what filters have said of them', () => {
    const inputs = (...hash_policy: JsonObject[]) => tcpSettings(listenerWith([tcpFilter({ hash_policy })])).hashInputs;
    assert.deepEqual(inputs({ filter_state: { key: 'tenant' } }), [{ kind: 'filter-state', key: 'tenant' }]);
    assert.deepEqual(inputs({ source_ip: {} }), [{ kind: 'source-ip' }]);
  });

  it('divides its connections by weight, in both generations', () => {
    const shares = { weighted_clusters: { clusters: [{ name: 'web', weight: 3 }] } };
    for (const type of [V2, V3]) {
      assert.deepEqual(tcpSettings(proxying(shares, type)).clusters, [{ cluster: 'web', weight: 3, criteria: null }]);
    }
  });

  it('asks hosts for metadata, and with each cluster for more', () => {
    const asking = (fields: JsonObject): JsonObject => ({
      metadata_match: { filter_metadata: { 'envoy.lb': fields } },
    });
    const plain = tcpSettings(proxying({ cluster: 'web', ...asking({ b: 1, a: 'x' }) }));
    assert.deepEqual(plain.clusters[0]!.criteria, [
      ['a', '"x"'],
      ['b', '1'],
    ]);
    const clusters = [{ name: 'web', weight: 1, ...asking({ a: 'y' }) }];
    const weighted = tcpSettings(proxying({ weighted_clusters: { clusters }, ...asking({ b: 1, a: 'x' }) }));
    assert.deepEqual(weighted.clusters[0]!.criteria, [
      ['a', '"y"'],
      ['b', '1'],
    ]);
  });

  it('needs weights of 1 and more, a sum that fits, and clusters that exist', () => {
    const errors = (...clusters: JsonObject[]): string[] => errorsOf(proxying({ weighted_clusters: { clusters } }));
    const at = `${TCP}.weighted_clusters.clusters`;
    assert.deepEqual(errors({ name: 'web', weight: 0 }), [`${at}[0].weight: 0 is below the minimum 1`]);
    assert.deepEqual(errors({ name: 'wep', weight: 1 }), [
      `${at}[0].name: cluster "wep" does not exist; did you mean "web"?`,
    ]);
    const huge = { name: 'web', weight: 2 ** 31 };
    assert.deepEqual(errors(huge, huge), [`${at}: weights sum up to 4294967296, the limit is 4294967295`]);
    assert.deepEqual(errors(), [`${at}: must have at least 1 entry`]);
  });

  it('reads its limits and what it logs', () => {
    const settings = tcpSettings(
      proxying({
        cluster: 'web',
        max_downstream_connection_duration: '90s',
        max_downstream_connection_duration_jitter_percentage: { value: 12.5 },
        backoff_options: { base_interval: '0.5s' },
        access_log_options: {
          access_log_flush_interval: '10s',
          flush_access_log_on_connected: true,
          flush_access_log_on_start: true,
        },
      }),
    );
    assert.deepEqual([settings.maxConnectionDurationMs, settings.maxConnectionDurationJitterPercent], [90_000, 12.5]);
    assert.deepEqual(settings.connectBackoff, { baseMs: 500, maxMs: 5000 });
    assert.deepEqual(settings.furtherLogEntries, { onStart: true, onConnected: true, intervalMs: 10_000 });
    const older = { cluster: 'web', access_log_flush_interval: '2s', flush_access_log_on_connected: true };
    const expected = { onStart: false, onConnected: true, intervalMs: 2000 };
    assert.deepEqual(tcpSettings(proxying(older)).furtherLogEntries, expected);
  });

  it('does not take both forms of a setting, nor bounds the wrong way round', () => {
    const both = { access_log_flush_interval: '2s', flush_access_log_on_connected: true, access_log_options: {} };
    assert.deepEqual(errorsOf(proxying({ cluster: 'web', ...both })), [
      `${TCP}.access_log_flush_interval: cannot be given together with access_log_options`,
      `${TCP}.flush_access_log_on_connected: cannot be given together with access_log_options`,
    ]);
    const backoff = { base_interval: '2s', max_interval: '1s' };
    assert.deepEqual(errorsOf(proxying({ cluster: 'web', backoff_options: backoff })), [
      `${TCP}.backoff_options.max_interval: 1000 ms are less than base_interval (2000 ms)`,
    ]);
  });

  describe('through tunnels', () => {
    const asking = (fields: JsonObject, beside: JsonObject = {}): JsonObject =>
      proxying({ cluster: 'web', tunneling_config: { hostname: 'x.test:443', ...fields }, ...beside });

    it('reads what is asked for, and what is kept of the answer', () => {
      const { tunnel } = tcpSettings(
        asking({
          hostname: '%REQUESTED_SERVER_NAME%:443',
          headers_to_add: [{ header: { key: 'X-A', value: 'b' }, append_action: 'OVERWRITE_IF_EXISTS_OR_ADD' }],
          propagate_response_headers: true,
        }),
      );
      assert.deepEqual(tunnel, {
        method: 'CONNECT',
        hostname: [{ operator: 'REQUESTED_SERVER_NAME', args: ['SNI_ONLY', 'ORIG_OR_HOST'], maxLength: 0 }, ':443'],
        postPath: '/',
        headerEdits: [
          { remove: [], add: [{ name: 'x-a', value: ['b'], action: 'overwrite', keepsEmptyValue: false }] },
        ],
        keepsResponseHeaders: true,
        keepsResponseTrailers: false,
      });
      const posting = tcpSettings(asking({ use_post: true, post_path: '/carry', propagate_response_trailers: true }));
      const { method, postPath, keepsResponseTrailers } = posting.tunnel!;
      assert.deepEqual([method, postPath, keepsResponseTrailers], ['POST', '/carry', true]);
    });

    it('needs a hostname that can be filled in, and a path only for a POST', () => {
      const at = `${TCP}.tunneling_config`;
      assert.deepEqual(errorsOf(asking({ hostname: '' })), [`${at}.hostname: must not be empty`]);
      assert.match(errorsOf(asking({ hostname: '%NOTHING%' }))[0]!, /hostname: .*NOTHING/);
      assert.deepEqual(errorsOf(asking({ post_path: '/x' })), [`${at}.post_path: cannot be given without use_post`]);
      assert.deepEqual(errorsOf(asking({ use_post: true, post_path: 'x y' })), [
        `${at}.post_path: "x y" is no path: one begins with '/' and holds visible ASCII`,
      ]);
    });

    it('waits for the first bytes where it says how much of them is kept', () => {
      const mode = { upstream_connect_mode: 'ON_DOWNSTREAM_DATA' };
      assert.deepEqual(errorsOf(proxying({ cluster: 'web', ...mode })), [
        `${TCP}.max_early_data_bytes: required with upstream_connect_mode ON_DOWNSTREAM_DATA`,
      ]);
      assert.equal(tcpSettings(proxying({ cluster: 'web', ...mode, max_early_data_bytes: 4096 })).awaitsData, true);
      const secured = { upstream_connect_mode: 'ON_DOWNSTREAM_TLS_HANDSHAKE' };
      assert.equal(tcpSettings(proxying({ cluster: 'web', ...secured })).awaitsData, false);
    });
  });
});

describe('an HTTP connection manager', () => {
  const FILTERS = `${CHAIN}.filters[0].typed_config.http_filters`;

  it('fills in the documented defaults', () => {
    assert.deepEqual(managerOf({}), {
      kind: 'http-connection-manager',
      statPrefix: 'ingress',
      accessLogs: [],
      clientCertificate: { mode: 'sanitize', subject: false, cert: false, chain: false, dns: false, uri: false },
      httpFilters: [],
      upgrades: [],
      routeTable: { name: '', virtualHosts: [], ignoresPort: false, internalOnlyHeaders: [] },
      serverName: 'proxy',
      serverHeader: 'overwrite',
      via: '',
      useRemoteAddress: false,
      xffNumTrustedHops: 0,
      skipXffAppend: false,
      generateRequestId: true,
      preserveExternalRequestId: false,
      idleTimeoutMs: 3_600_000,
      streamIdleTimeoutMs: 300_000,
      requestTimeoutMs: 0,
      requestHeadersTimeoutMs: 0,
      maxRequestHeadersBytes: 61440,
      maxHeadersCount: 100,
      suppressProxyHeaders: false,
      strictlyCheckedHeaders: [],
      respectsExpectedTimeout: false,
      codec: 'auto',
      http2: DEFAULT_HTTP2_SETTINGS,
      drainTimeoutMs: 5000,
      maxStreamDurationMs: 0,
      streamFlushTimeoutMs: 300_000,
      delayedCloseTimeoutMs: 1000,
      proxiesInterim: false,
      enableTrailers: false,
      furtherLogEntries: NO_FURTHER_ENTRIES,
      forwarding: PLAIN_FORWARDING,
      normalization: PLAIN_NORMALIZATION,
    });
  });

  it('reads every setting that it carries', () => {
    const settings = managerOf({
      server_name: 'edge',
      server_header_transformation: 'APPEND_IF_ABSENT',
      via: '1.1 edge',
      use_remote_address: true,
      xff_num_trusted_hops: 2,
      skip_xff_append: true,
      generate_request_id: false,
      preserve_external_request_id: true,
      common_http_protocol_options: {
        idle_timeout: '1s',
        max_headers_count: 7,
        max_connection_duration: '6s',
        max_requests_per_connection: 8,
        max_stream_duration: '7s',
        headers_with_underscores_action: 'DROP_HEADER',
      },
      normalize_path: false,
      merge_slashes: true,
      path_with_escaped_slashes_action: 'UNESCAPE_AND_REDIRECT',
      strip_matching_host_port: true,
      strip_trailing_host_dot: true,
      http1_safe_max_connection_duration: true,
      stream_flush_timeout: '8s',
      delayed_close_timeout: '9s',
      proxy_100_continue: true,
      http_protocol_options: { enable_trailers: true, accept_http_10: true, default_host_for_http_10: 'old.test:80' },
      internal_address_config: {
        unix_sockets: true,
        cidr_ranges: [{ address_prefix: '192.0.2.0', prefix_len: 24 }],
      },
      access_log_options: {
        access_log_flush_interval: '10s',
        flush_access_log_on_new_request: true,
        flush_log_on_tunnel_successfully_established: true,
      },
      add_user_agent: true,
      append_x_forwarded_port: true,
      represent_ipv4_remote_address_as_ipv4_mapped_ipv6: true,
      scheme_header_transformation: { scheme_to_overwrite: 'https' },
      forward_proto_config: { https_destination_ports: [443], http_destination_ports: [80] },
      forward_client_cert_details: 'APPEND_FORWARD',
      set_current_client_cert_details: { cert: true, uri: true },
      always_set_request_id_in_response: true,
      stream_idle_timeout: '2s',
      request_timeout: '3s',
      request_headers_timeout: '4s',
      max_request_headers_kb: 5,
      codec_type: 'HTTP1',
      http_filters: [
        {
          name: 'envoy.filters.http.router',
          typed_config: {
            ...(ROUTER.typed_config as JsonObject),
            suppress_envoy_headers: true,
            strict_check_headers: ['x-envoy-retry-on'],
            respect_expected_rq_timeout: true,
          },
        },
      ],
    });
    const { kind: _kind, statPrefix: _prefix, routeTable: _table, accessLogs: _logs, ...rest } = settings;
    assert.deepEqual(rest, {
      httpFilters: [],
      upgrades: [],
      clientCertificate: { mode: 'append-forward', subject: false, cert: true, chain: false, dns: false, uri: true },
      serverName: 'edge',
      serverHeader: 'append-if-absent',
      via: '1.1 edge',
      useRemoteAddress: true,
      xffNumTrustedHops: 2,
      skipXffAppend: true,
      generateRequestId: false,
      preserveExternalRequestId: true,
      idleTimeoutMs: 1000,
      streamIdleTimeoutMs: 2000,
      requestTimeoutMs: 3000,
      requestHeadersTimeoutMs: 4000,
      maxRequestHeadersBytes: 5120,
      maxHeadersCount: 7,
      suppressProxyHeaders: true,
      strictlyCheckedHeaders: ['x-proxy-retry-on'],
      respectsExpectedTimeout: true,
      codec: 'http1',
      http2: DEFAULT_HTTP2_SETTINGS,
      drainTimeoutMs: 5000,
      connectionLife: { maxDurationMs: 6000, maxRequests: 8, endsHttp1WithResponse: true },
      maxStreamDurationMs: 7000,
      streamFlushTimeoutMs: 8000,
      delayedCloseTimeoutMs: 9000,
      proxiesInterim: true,
      enableTrailers: true,
      furtherLogEntries: { onStart: true, onTunnel: true, intervalMs: 10_000 },
      forwarding: {
        internalAddresses: { unixSockets: true, ranges: [{ ip: '192.0.2.0', prefixLength: 24 }] },
        serviceName: { cluster: '', node: '' },
        appendsPort: true,
        mapsIpv4: true,
        scheme: 'https',
        matchesUpstreamScheme: false,
        schemePorts: { https: [443], http: [80] },
        answersRequestId: true,
      },
      normalization: {
        normalizesPath: false,
        mergesSlashes: true,
        escapedSlashes: 'redirect',
        strippedPorts: 'own',
        stripsHostDot: true,
        acceptsHttp10: true,
        defaultHost: 'old.test:80',
        underscores: 'drop',
      },
    });
  });

  it('warns of a host for requests of HTTP/1.0 that are not accepted', () => {
    const filter = httpFilter({ route_config: {}, http_protocol_options: { default_host_for_http_10: 'old.test' } });
    const at = 'static_resources.listeners[0].filter_chains[0].filters[0].typed_config.http_protocol_options';
    assert.deepEqual(faultTexts(load(withListeners(listenerWith([filter]))), 'warning'), [
      `${at}.default_host_for_http_10: has no effect without accept_http_10`,
    ]);
  });

  it('says by name which limits of heads are beyond what can be read', () => {
    const filter = httpFilter({
      route_config: {},
      max_request_headers_kb: 96,
      common_http_protocol_options: { max_headers_count: 2000 },
    });
    const at = 'static_resources.listeners[0].filter_chains[0].filters[0].typed_config';
    assert.deepEqual(faultTexts(load(withListeners(listenerWith([filter]))), 'warning'), [
      `${at}.max_request_headers_kb: 96 KiB is more than can be read: heads end at 65535 bytes`,
      `${at}.common_http_protocol_options.max_headers_count: 2000 is more than can be read: heads have at most 1024 fields`,
    ]);
  });

  it('prefers the newer place of the idle timeout to the older', () => {
    const older = { idle_timeout: '9s' };
    assert.equal(managerOf(older).idleTimeoutMs, 9000);
    assert.equal(managerOf({ ...older, common_http_protocol_options: { idle_timeout: '1s' } }).idleTimeoutMs, 1000);
  });

  it('ends its HTTP filters with the router, and only there', () => {
    assert.deepEqual(errorsOf(listenerWith([httpFilter({ http_filters: [] })])), [
      `${FILTERS}: needs at least one filter; the last must be the router`,
    ]);
    assert.deepEqual(errorsOf(listenerWith([httpFilter({ http_filters: [ROUTER, ROUTER] })])), [
      `${FILTERS}[0]: terminal filter "envoy.filters.http.router" must be the last of its chain`,
    ]);
  });

  it('refuses a filter that it lacks, unless the filter is optional', () => {
    const rbac = { name: 'envoy.filters.http.rbac' };
    const lacking = withoutFilter('proxy.extensions.filters.http.rbac.v3.RBAC');
    const resultOf = (...http_filters: JsonObject[]) =>
      load(withListeners(listenerWith([httpFilter({ http_filters })])), lacking);
    assert.deepEqual(faultTexts(resultOf(rbac, ROUTER)), [
      `${FILTERS}[0].typed_config: "envoy.filters.http.rbac" is not supported by this build`,
    ]);
    const optional = { ...rbac, is_optional: true };
    const result = resultOf(optional, ROUTER);
    assert.deepEqual(faultTexts(result), []);
    assert.deepEqual(faultTexts(result, 'warning'), [
      `${FILTERS}[0].typed_config: "envoy.filters.http.rbac" is not supported by this build; it is left out, being optional`,
    ]);
    assert.deepEqual(faultTexts(resultOf(optional)), [
      `${FILTERS}[0]: "envoy.filters.http.rbac" is not terminal; the last filter must be the router`,
    ]);
  });

  it('refuses a filter that is known by name only', () => {
    const squash = { name: 'envoy.squash', config: { cluster: 'x' } };
    assert.deepEqual(errorsOf(listenerWith([httpFilter({ http_filters: [squash, ROUTER] })])), [
      `${FILTERS}[0]: "envoy.squash" is not supported by this build: requests pass the same without it; leave it out`,
    ]);
  });
});
