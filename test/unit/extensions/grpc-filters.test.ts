// Configurations of the filters of gRPC, by their names in both generations.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  faultTexts,
  httpFilter,
  type JsonObject,
  listenerWith,
  load,
  mustLoad,
  ROUTER,
  withListeners,
} from '../../support/bootstrap.ts';

const V3 = 'type.googleapis.com/envoy.extensions.filters.http';
const V2 = 'type.googleapis.com/envoy.config.filter.http';

function bootstrapWith(...filters: readonly JsonObject[]): JsonObject {
  return withListeners(listenerWith([httpFilter({ http_filters: [...filters, ROUTER] })]));
}

function settingsOf(...filters: readonly JsonObject[]): unknown {
  const { filter: manager } = mustLoad(bootstrapWith(...filters)).listeners[0]!.filterChains[0]!;
  assert.ok(manager.kind === 'http-connection-manager');
  return manager.httpFilters;
}

describe('the filters of gRPC', () => {
  it('are found by type, by name alone, and by what they were called before', () => {
    const names = ['grpc_web', 'grpc_http1_bridge', 'grpc_stats'].map((name) => `filters.http.${name}`);
    const types = ['grpc_web.v3.GrpcWeb', 'grpc_http1_bridge.v3.Config', 'grpc_stats.v3.FilterConfig'];
    const old = ['grpc_web.v2.GrpcWeb', 'grpc_http1_bridge.v2.Config', 'grpc_stats.v2alpha.FilterConfig'];
    for (const filters of [
      types.map((type) => ({ name: type, typed_config: { '@type': `${V3}.${type}` } })),
      old.map((type) => ({ name: type, typed_config: { '@type': `${V2}.${type}` } })),
      names.map((name) => ({ name: `envoy.${name}` })),
    ]) {
      const found = settingsOf(...filters) as { readonly name: string }[];
      assert.deepEqual(
        found.map(({ name }) => name),
        names,
      );
    }
    assert.deepEqual(settingsOf({ name: 'envoy.grpc_web' }), [
      { name: 'filters.http.grpc_web', settings: null, configName: 'envoy.grpc_web' },
    ]);
  });

  it('do nothing by default that they are not asked for', () => {
    assert.deepEqual(settingsOf({ name: 'envoy.grpc_http1_bridge' }, { name: 'envoy.filters.http.grpc_stats' }), [
      {
        name: 'filters.http.grpc_http1_bridge',
        settings: { upgradesProtobuf: false, dropsQuery: false },
        configName: 'envoy.grpc_http1_bridge',
      },
      {
        name: 'filters.http.grpc_stats',
        settings: { countsAllMethods: false, methods: [], countsTimes: false },
        configName: 'envoy.filters.http.grpc_stats',
      },
    ]);
  });

  it('have settings', () => {
    const bridge = { upgrade_protobuf_to_grpc: true, ignore_query_parameters: true };
    const all = { stats_for_all_methods: true, enable_upstream_stats: true };
    const some = { individual_method_stats_allowlist: { services: [{ name: 'a.S', method_names: ['M', 'N'] }] } };
    const settings = settingsOf(
      { name: 'bridge', typed_config: { '@type': `${V3}.grpc_http1_bridge.v3.Config`, ...bridge } },
      { name: 'all', typed_config: { '@type': `${V3}.grpc_stats.v3.FilterConfig`, ...all } },
      { name: 'some', typed_config: { '@type': `${V3}.grpc_stats.v3.FilterConfig`, ...some } },
    ) as { readonly settings: unknown }[];
    assert.deepEqual(
      settings.map((each) => each.settings),
      [
        { upgradesProtobuf: true, dropsQuery: true },
        { countsAllMethods: true, methods: [], countsTimes: true },
        { countsAllMethods: false, methods: ['a.S.M', 'a.S.N'], countsTimes: false },
      ],
    );
  });

  it('are meant by their older names, too', () => {
    const faults = faultTexts(load(bootstrapWith({ name: 'envoy.grpc_json_transcoder' })));
    assert.match(faults.join('\n'), /needs proto_descriptor or proto_descriptor_bin/);
  });
});
