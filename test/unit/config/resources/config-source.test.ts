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
      api({ grpc_services: [{ google_grpc: { target_uri: 'x', stat_prefix: 'y' } }] }),
      '.grpc_services[0].google_grpc: is for stat sinks; name a cluster in envoy_grpc',
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
