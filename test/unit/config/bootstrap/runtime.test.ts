import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { runtimeInteger, runtimeKey } from '../../../../src/base/runtime-values.ts';
import {
  faultTexts,
  type JsonObject,
  listenerWith,
  load,
  mustLoad,
  socketAddress,
  tcpFilter,
  withClusters,
  withListeners,
} from '../../../support/bootstrap.ts';

const GLOBAL = 'overload.global_downstream_max_connections';
const AT = 'layered_runtime.layers[0].static_layer';

function withLayer(values: JsonObject): JsonObject {
  const layered = { layered_runtime: { layers: [{ name: 'base', static_layer: values }] } };
  return { ...withListeners(listenerWith([tcpFilter({})])), ...layered };
}

function valuesOf(bootstrap: JsonObject): (readonly [string, Record<string, string>])[] {
  return mustLoad(bootstrap).runtimeLayers.map(({ name, values }) => [name, Object.fromEntries(values)]);
}

function warningsOf(bootstrap: JsonObject): string[] {
  return faultTexts(load(bootstrap), 'warning');
}

describe('the runtime value for lookups by the Apple API', () => {
  const KEY = 'restart_features.use_apple_api_for_dns_lookups';
  const WHY = `cannot be set while the runtime value proxy.${KEY} is true`;
  const dnsCluster = {
    name: 'web',
    type: 'STRICT_DNS',
    hosts: [socketAddress('web.test', 80)],
    dns_resolvers: [socketAddress('10.0.0.1', 53)],
    use_tcp_for_dns_lookups: true,
  };
  const errorsWith = (layers: readonly JsonObject[], fields: JsonObject = {}): string[] =>
    faultTexts(
      load({
        ...withClusters(dnsCluster),
        ...fields,
        layered_runtime: { layers: layers.map((static_layer, index) => ({ name: `${index}`, static_layer })) },
      }),
    );

  it('makes servers of their own and TCP an error that keeps the program from starting', () => {
    const at = 'static_resources.clusters[0]';
    assert.deepEqual(errorsWith([{ [`proxy.${KEY}`]: true }]), [
      `${at}.dns_resolvers: ${WHY}`,
      `${at}.use_tcp_for_dns_lookups: ${WHY}`,
    ]);
    const errors = errorsWith([{ [`envoy.${KEY}`]: 'True' }], { use_tcp_for_dns_lookups: true });
    assert.ok(errors.includes(`use_tcp_for_dns_lookups: ${WHY}`));
  });

  it('is the value of the last layer that has it', () => {
    assert.deepEqual(errorsWith([{ [`proxy.${KEY}`]: true }, { [`envoy.${KEY}`]: false }]), []);
    assert.equal(errorsWith([{ [`proxy.${KEY}`]: false }, { [`proxy.${KEY}`]: true }]).length, 2);
  });

  it('is warned of when it is neither true nor false', () => {
    assert.deepEqual(warningsOf(withLayer({ [`proxy.${KEY}`]: 'yes' })), [
      `${AT}: proxy.${KEY} has no effect: "yes" is neither true nor false`,
    ]);
  });
});

describe('runtime layers', () => {
  it('hold values as text under dotted keys', () => {
    const values = {
      [GLOBAL]: 50_000,
      envoy: { resource_limits: { 'listener.main': { connection_limit: '7' } } },
      a: { fraction: { numerator: 1, denominator: 'TEN_THOUSAND' }, nothing: {}, on: true, part: 0.5 },
    };
    assert.deepEqual(valuesOf(withLayer(values)), [
      [
        'base',
        {
          [GLOBAL]: '50000',
          'envoy.resource_limits.listener.main.connection_limit': '7',
          'a.fraction': '{"numerator":1,"denominator":"TEN_THOUSAND"}',
          'a.nothing': '{}',
          'a.on': 'true',
          'a.part': '0.5',
        },
      ],
    ]);
  });

  it('keep their order', () => {
    const layers = ['a', 'b'].map((name) => ({ name, static_layer: { [GLOBAL]: name === 'a' ? 1 : 2 } }));
    assert.deepEqual(valuesOf({ layered_runtime: { layers } }), [
      ['a', { [GLOBAL]: '1' }],
      ['b', { [GLOBAL]: '2' }],
    ]);
  });

  it('of the older form have a base, which newer layers replace', () => {
    const older = { runtime: { base: { [GLOBAL]: 5 } } };
    assert.deepEqual(valuesOf(older), [
      ['base', { [GLOBAL]: '5' }],
      ['admin', {}],
    ]);
    const both = { ...older, layered_runtime: { layers: [{ name: 'one', static_layer: {} }] } };
    assert.deepEqual(valuesOf(both), [['one', {}]]);
    assert.deepEqual(warningsOf(both), ['runtime: has no effect beside layered_runtime']);
  });

  it('are files where a folder is named, below that of the service cluster where it is asked for', () => {
    const foldersOf = (bootstrap: JsonObject): (readonly [string, string | undefined, string | undefined])[] =>
      mustLoad({ node: { id: 'n', cluster: 'edge' }, ...bootstrap }).runtimeLayers.map(({ name, files }) => [
        name,
        files?.symlinkRoot,
        files?.folder,
      ]);
    const root = { symlink_root: '/srv/current', subdirectory: 'values' };
    const layers = [
      { name: 'disk', disk_layer: root },
      { name: 'own', disk_layer: { ...root, subdirectory: 'override', append_service_cluster: true } },
      { name: 'bare', disk_layer: { symlink_root: '/srv/current' } },
    ];
    assert.deepEqual(foldersOf({ layered_runtime: { layers } }), [
      ['disk', '/srv/current', '/srv/current/values'],
      ['own', '/srv/current', '/srv/current/override/edge'],
      ['bare', '/srv/current', '/srv/current'],
    ]);
    assert.deepEqual(foldersOf({ runtime: { ...root, override_subdirectory: 'over' } }), [
      ['base', undefined, undefined],
      ['root', '/srv/current', '/srv/current/values'],
      ['override', '/srv/current', '/srv/current/over/edge'],
      ['admin', undefined, undefined],
    ]);
    assert.deepEqual(
      foldersOf({ runtime: root }).map(([name]) => name),
      ['base', 'root', 'admin'],
    );
    assert.deepEqual(foldersOf({ runtime: { override_subdirectory: 'over' } }).length, 2);
    assert.deepEqual(
      warningsOf({ runtime: { ...root, override_subdirectory: 'over' }, node: { cluster: 'edge' } }),
      [],
    );
  });

  it('have a place for what is written later, unless layers without one are asked for', () => {
    const kindsOf = (bootstrap: JsonObject): (readonly [string, string])[] =>
      mustLoad(bootstrap).runtimeLayers.map(({ name, kind }) => [name, kind]);
    const byDefault = [
      ['base', 'static'],
      ['admin', 'admin'],
    ];
    assert.deepEqual(kindsOf({}), byDefault);
    assert.deepEqual(kindsOf({ runtime: {} }), byDefault);
    assert.deepEqual(kindsOf({ layered_runtime: {} }), [['', 'admin']]);
    const layers = [
      { name: 'mine', admin_layer: {} },
      { name: 'last', static_layer: { a: 1 } },
    ];
    assert.deepEqual(kindsOf({ layered_runtime: { layers } }), [
      ['mine', 'admin'],
      ['last', 'static'],
    ]);
    assert.deepEqual(kindsOf({ layered_runtime: { layers: layers.slice(1) } }), [['last', 'static']]);
    assert.deepEqual(warningsOf({ layered_runtime: { layers } }), []);
  });

  it('come from a file of either form where a resource is to be discovered, or from a management server', () => {
    const layered = (rtds_config?: JsonObject): JsonObject => ({
      layered_runtime: { layers: [{ name: 'far', rtds_layer: { name: 'some', ...(rtds_config && { rtds_config }) } }] },
    });
    const discoveryOf = (config: JsonObject) => mustLoad(layered(config)).runtimeLayers[0];
    const isOf = (file: object, initialFetchTimeoutMs: number) => ({
      name: 'far',
      kind: 'discovered',
      values: new Map(),
      discovery: {
        resource: 'some',
        source: { origin: { kind: 'file', ...file }, resourceGeneration: 'v3', initialFetchTimeoutMs },
      },
    });
    const rest = { initial_fetch_timeout: '1s', resource_api_version: 'V3' };
    assert.deepEqual(
      discoveryOf({ ...rest, path: '/a/b.json' }),
      isOf({ path: '/a/b.json', watchedFolder: undefined }, 1000),
    );
    assert.deepEqual(
      discoveryOf({ path_config_source: { path: 'b.yaml', watched_directory: { path: 'c' } } }),
      isOf({ path: `${process.cwd()}/b.yaml`, watchedFolder: `${process.cwd()}/c` }, 15_000),
    );
    assert.deepEqual(warningsOf(layered({ ...rest, path: '/a/b.json' })), []);
    const at = 'layered_runtime.layers[0].rtds_layer';
    const server = { api_type: 'GRPC', grpc_services: [{ envoy_grpc: { cluster_name: 'xds' } }] };
    const refused: readonly [JsonObject, string][] = [
      [{ self: {} }, 'self: self is not supported by this build: name the source itself: ads, or api_config_source'],
      [{ ads: {} }, 'ads: needs dynamic_resources.ads_config, which says whose stream it is'],
      [
        { api_config_source: server },
        'api_config_source.grpc_services[0].envoy_grpc.cluster_name: cluster "xds" does not exist',
      ],
    ];
    for (const [source, text] of refused) {
      assert.deepEqual(faultTexts(load(layered(source))), [`${at}.rtds_config.${text}`]);
    }
    const clusters = [{ name: 'xds', load_assignment: { cluster_name: 'xds' } }];
    const layer = mustLoad({
      ...layered({ api_config_source: server, initial_fetch_timeout: '0.01s' }),
      static_resources: { clusters },
      node: { id: 'me', cluster: 'us' },
    });
    assert.equal(layer.runtimeLayers[0]!.discovery!.source.origin.kind, 'grpc');
    assert.deepEqual(faultTexts(load(layered())), [`${at}: needs rtds_config, which says where it comes from`]);
  });

  it('hold neither null nor lists', () => {
    assert.deepEqual(faultTexts(load(withLayer({ a: null, b: { c: [1] } }))), [
      `${AT}: Invalid runtime entry value for a`,
      `${AT}: Invalid runtime entry value for b.c`,
    ]);
  });

  it('warn of what has no effect: folders without a root, keys that nothing reads, listeners that are not there, words for numbers', () => {
    assert.deepEqual(warningsOf({ layered_runtime: { layers: [{ name: 'disk', disk_layer: {} }] } }), [
      'layered_runtime.layers[0].disk_layer: has no symlink_root; the layer is left out',
    ]);
    const values = {
      'upstream.use_http2': 0,
      'tracing.zipkin.min_flush_spans': 1,
      'tracing.zipkin.request_timeout': 'soon',
      'tracing.zipkin.colour': 1,
      'tracing.client_enabled': 50,
      'tracing.random_sampling': 'often',
      'upstream.healthy_panic_threshold': 'never',
      'health_check.verify_cluster': { numerator: 1, denominator: 'TEN' },
      'routing.canary': 'whatever routes make of it',
      'envoy.resource_limits.listener.mian.connection_limit': 5,
      'proxy.resource_limits.listener.main.connection_limit': 'few',
    };
    assert.deepEqual(warningsOf(withLayer(values)).sort(), [
      `${AT}: envoy.resource_limits.listener.mian.connection_limit has no effect: there is no listener "mian"`,
      `${AT}: health_check.verify_cluster has no effect: "{\\"numerator\\":1,\\"denominator\\":\\"TEN\\"}" is neither a whole number of percent nor a fraction`,
      `${AT}: proxy.resource_limits.listener.main.connection_limit has no effect: "few" is not a whole number`,
      `${AT}: tracing.random_sampling has no effect: "often" is neither a whole number of percent nor a fraction`,
      `${AT}: tracing.zipkin.colour is not read by this build; it has no effect`,
      `${AT}: tracing.zipkin.request_timeout has no effect: "soon" is not a whole number`,
      `${AT}: upstream.healthy_panic_threshold has no effect: "never" is not a whole number`,
      `${AT}: upstream.use_http2 is not read by this build; it has no effect`,
    ]);
  });
});

describe('a runtime value', () => {
  it('is a whole number of 0 or more, or none', () => {
    const texts = ['0', '12', '12.9', '1e3', '-1', '', 'true', '0x10', '5 apples', 'Infinity'];
    const none = undefined;
    assert.deepEqual(texts.map(runtimeInteger), [0, 12, 12, 1000, none, none, none, none, none, none]);
  });

  it('has a key of one spelling', () => {
    assert.deepEqual(['envoy.a', 'proxy.a', 'a.envoy.b'].map(runtimeKey), ['proxy.a', 'proxy.a', 'a.envoy.b']);
  });
});
