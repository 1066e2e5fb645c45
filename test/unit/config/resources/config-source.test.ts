import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { GrpcSourceSettings, RestSourceSettings } from '../../../../src/snapshot/index.ts';
import { clusterNamed, faultTexts, type JsonObject, load, mustLoad } from '../../../support/bootstrap.ts';

const AT = 'dynamic_resources.cds_config';

/** Nobody answers, where such a configuration is served. */
const QUICK = { initial_fetch_timeout: '0.01s' };

function bootstrap(source: JsonObject, ads_config?: JsonObject): JsonObject {
  const cds_config = { ...QUICK, ...source };
  const clusters = [clusterNamed('xds'), clusterNamed('stand-in')];
  const dynamic_resources = { cds_config, ...(ads_config && { ads_config }) };
  return { node: { id: 'me', cluster: 'us' }, static_resources: { clusters }, dynamic_resources };
}

function service(cluster_name: string, fields: JsonObject = {}): JsonObject {
  return { envoy_grpc: { cluster_name, ...fields } };
}

function api(fields: JsonObject = {}): JsonObject {
  return { api_type: 'GRPC', grpc_services: [service('xds')], ...fields };
}

function outside(fields: JsonObject): JsonObject {
  return api({ grpc_services: [{ google_grpc: { target_uri: 'x', stat_prefix: 'y', ...fields } }] });
}

function rest(fields: JsonObject = {}): JsonObject {
  return { api_type: 'REST', cluster_names: ['xds'], refresh_delay: '5s', ...fields };
}

function grpcOf(fields: JsonObject): GrpcSourceSettings {
  const { origin } = mustLoad(bootstrap({ api_config_source: api(fields) })).dynamicResources.clusters!;
  assert.equal(origin.kind, 'grpc');
  return origin as GrpcSourceSettings;
}

describe('a source of resources', () => {
  it('names servers, how they are asked, and what is said with it', () => {
    const initial_metadata = [{ key: 'Token', value: 'secret' }];
    const grpc_services = [
      { ...service('xds', { authority: 'control', max_receive_message_length: 1000 }), initial_metadata },
      service('stand-in'),
    ];
    const rate_limit_settings = { max_tokens: 5 };
    const asked = { api_type: 'DELTA_GRPC', transport_api_version: 'V2', set_node_on_first_message_only: true };
    assert.deepEqual(grpcOf({ ...asked, grpc_services, rate_limit_settings }), {
      kind: 'grpc',
      form: 'changes',
      servers: [
        { cluster: 'xds', authority: 'control', metadata: [{ key: 'token', value: 'secret' }], maxMessageBytes: 1000 },
        { cluster: 'stand-in', authority: 'stand-in', metadata: [], maxMessageBytes: 0 },
      ],
      transportGeneration: 'v2',
      nodeOnFirstMessageOnly: true,
      rateLimit: { burst: 5, perSecond: 10 },
    });
    assert.equal(grpcOf({}).rateLimit, undefined);
  });

  it('speaks the names of the bootstrap where it does not say which', () => {
    const generations = (fields: JsonObject, source: JsonObject = {}): readonly string[] => {
      const given = { ...bootstrap({ api_config_source: api(), ...source }), ...fields };
      const { clusters } = mustLoad(given).dynamicResources;
      return [clusters!.resourceGeneration, (clusters!.origin as GrpcSourceSettings).transportGeneration];
    };
    assert.deepEqual(generations({}), ['v3', 'v3']);
    assert.deepEqual(generations({}, { resource_api_version: 'V2' }), ['v2', 'v3']);
    const name = 'envoy.http_connection_manager';
    const typed_config = {
      '@type': 'type.googleapis.com/envoy.config.filter.network.http_connection_manager.v2.HttpConnectionManager',
      stat_prefix: 'in',
      route_config: {},
      http_filters: [{ name: 'envoy.router' }],
    };
    const address = { socket_address: { address: '127.0.0.1', port_value: 0 } };
    const listeners = [{ name: 'in', address, filter_chains: [{ filters: [{ name, typed_config }] }] }];
    const clusters = [clusterNamed('xds')];
    assert.deepEqual(generations({ static_resources: { clusters, listeners } }), ['v2', 'v2']);
  });

  it('is the stream of all where it says so, which the bootstrap has to have', () => {
    const { clusters, aggregated } = mustLoad(bootstrap({ ads: {} }, api())).dynamicResources;
    assert.deepEqual([clusters!.origin, aggregated!.form], [{ kind: 'ads' }, 'state']);
    assert.deepEqual(faultTexts(load(bootstrap({ ads: {} }))), [
      `${AT}.ads: needs dynamic_resources.ads_config, which says whose stream it is`,
    ]);
  });

  it('may be a server that no cluster names, by each name that gRPC has for one', () => {
    const hosts = (...of: readonly (readonly [string, number])[]) => ({
      kind: 'hosts',
      hosts: of.map(([host, port]) => ({ host, port })),
    });
    const names: readonly (readonly [string, object, string])[] = [
      ['control.example', hosts(['control.example', 443]), 'control.example'],
      ['control.example:18000', hosts(['control.example', 18000]), 'control.example:18000'],
      ['dns:control.example:1', hosts(['control.example', 1]), 'control.example:1'],
      ['dns:///control.example:1', hosts(['control.example', 1]), 'control.example:1'],
      ['ipv4:10.0.0.1:80,10.0.0.2:81', hosts(['10.0.0.1', 80], ['10.0.0.2', 81]), '10.0.0.1:80'],
      ['ipv6:[::1]:80', hosts(['::1', 80]), '[::1]:80'],
      ['ipv6:::1', hosts(['::1', 443]), '[::1]'],
      ['unix:relative.sock', { kind: 'pipe', path: 'relative.sock' }, 'localhost'],
      ['unix:///run/control.sock', { kind: 'pipe', path: '/run/control.sock' }, 'localhost'],
      ['unix-abstract:control', { kind: 'pipe', path: '@control' }, 'localhost'],
    ];
    for (const [target_uri, place, authority] of names) {
      const [server] = (
        mustLoad(bootstrap({ api_config_source: outside({ target_uri }) })).dynamicResources.clusters!
          .origin as GrpcSourceSettings
      ).servers;
      assert.deepEqual([server!.cluster, server!.target!.place, server!.authority], [target_uri, place, authority]);
      assert.equal(server!.target!.tls, null);
    }
  });

  it('takes over of the channel of such a server what it knows, and says what it does not', () => {
    const args = {
      'grpc.keepalive_time_ms': { int_value: '10000' },
      'grpc.keepalive_timeout_ms': { int_value: '2000' },
      'grpc.max_receive_message_length': { int_value: '1000' },
      'grpc.default_authority': { string_value: 'control' },
      'grpc.ssl_target_name_override': { string_value: 'name.example' },
      'grpc.http2.max_pings_without_data': { int_value: '0' },
    };
    const given = outside({
      channel_args: { args },
      channel_credentials: { ssl_credentials: {} },
      call_credentials: [{ access_token: 'abc' }],
    });
    const loaded = load(bootstrap({ api_config_source: given }));
    const [server] = grpcOf(given).servers;
    const { target, ...others } = server!;
    assert.deepEqual(others, {
      cluster: 'x',
      authority: 'control',
      metadata: [{ key: 'authorization', value: 'Bearer abc' }],
      maxMessageBytes: 1000,
    });
    assert.deepEqual(target!.keepalive, { intervalMs: 10_000, timeoutMs: 2000 });
    assert.deepEqual([target!.tls!.serverName, target!.tls!.validation!.trustedCa], ['name.example', 'system']);
    assert.deepEqual(faultTexts(loaded, 'warning'), [
      `${AT}.api_config_source.grpc_services[0].google_grpc.channel_args.args: "grpc.http2.max_pings_without_data" does nothing`,
    ]);
  });

  it('may be a server that is asked by HTTP', () => {
    const given = rest({ transport_api_version: 'V2', request_timeout: '0.25s' });
    assert.deepEqual(mustLoad(bootstrap({ api_config_source: given })).dynamicResources.clusters!.origin, {
      kind: 'rest',
      cluster: 'xds',
      transportGeneration: 'v2',
      refreshDelayMs: 5000,
      requestTimeoutMs: 250,
    });
    const { origin } = mustLoad(bootstrap({ api_config_source: rest() })).dynamicResources.clusters!;
    assert.equal((origin as RestSourceSettings).requestTimeoutMs, 1000);
    assert.deepEqual(faultTexts(load(bootstrap({ ads: {} }, rest()))), [
      'dynamic_resources.ads_config.api_type: REST has no streams: use GRPC or DELTA_GRPC',
    ]);
  });

  it('warns of what does nothing in the form that is asked for', () => {
    const at = `${AT}.api_config_source`;
    const warningsOf = (api_config_source: JsonObject): readonly string[] =>
      faultTexts(load(bootstrap({ api_config_source })), 'warning');
    assert.deepEqual(warningsOf(rest({ rate_limit_settings: {}, set_node_on_first_message_only: true })), [
      `${at}.rate_limit_settings: does nothing: REST asks as often as refresh_delay says`,
      `${at}.set_node_on_first_message_only: does nothing: each question of REST is a first one`,
    ]);
    assert.deepEqual(warningsOf(api({ refresh_delay: '1s', request_timeout: '1s' })), [
      `${at}.refresh_delay: does nothing: it is for REST, and GRPC has a stream`,
      `${at}.request_timeout: does nothing: it is for REST, and GRPC has a stream`,
    ]);
  });

  const REFUSED: readonly (readonly [JsonObject, string])[] = [
    [rest({ cluster_names: [] }), '.cluster_names: REST needs one, and there are 0'],
    [rest({ cluster_names: ['xds', 'stand-in'] }), '.cluster_names: REST needs one, and there are 2'],
    [rest({ cluster_names: ['xdz'] }), '.cluster_names[0]: cluster "xdz" does not exist; did you mean "xds"?'],
    [rest({ grpc_services: [service('xds')] }), '.grpc_services: is for GRPC; REST reads cluster_names'],
    [{ api_type: 'REST', cluster_names: ['xds'] }, '.refresh_delay: REST needs one'],
    [rest({ refresh_delay: '0s' }), '.refresh_delay: is not above 0s'],
    [
      api({ api_type: 'AGGREGATED_GRPC' }),
      '.api_type: AGGREGATED_GRPC is not spoken by this build: use GRPC or DELTA_GRPC',
    ],
    [{ api_type: 'GRPC' }, '.grpc_services: GRPC needs one'],
    [
      api({ grpc_services: ['xds', 'stand-in', 'xds'].map((name) => service(name)) }),
      '.grpc_services: has 3 items, more than a server and its stand-in',
    ],
    [
      api({ grpc_services: [service('xdz')] }),
      '.grpc_services[0].envoy_grpc.cluster_name: cluster "xdz" does not exist; did you mean "xds"?',
    ],
    [
      outside({ target_uri: 'https://control.example' }),
      '.grpc_services[0].google_grpc.target_uri: "https://control.example" is no name of a server: host:port, dns:///host:port, unix:path',
    ],
    [
      outside({ call_credentials: [{ access_token: 'secret' }] }),
      '.grpc_services[0].google_grpc.call_credentials[0].access_token: needs ssl_credentials: it would go in the clear',
    ],
    [
      outside({ channel_credentials: { ssl_credentials: { root_certs: { inline_string: 'none' } } } }),
      '.grpc_services[0].google_grpc.channel_credentials.ssl_credentials.root_certs: the value holds no certificate in PEM',
    ],
    [
      outside({ credentials_factory_name: 'own' }),
      '.grpc_services[0].google_grpc.credentials_factory_name: "own" is not known; say channel_credentials',
    ],
    [
      api({ grpc_services: [{ ...service('xds'), initial_metadata: [{ key: 'grpc-x', value: 'y' }] }] }),
      '.grpc_services[0].initial_metadata[0].key: "grpc-x" is no name of metadata that can be set',
    ],
  ];
  for (const [source, text] of REFUSED) {
    it(`is refused: ${text}`, () => {
      assert.deepEqual(faultTexts(load(bootstrap({ api_config_source: source }))), [`${AT}.api_config_source${text}`]);
    });
  }
});
