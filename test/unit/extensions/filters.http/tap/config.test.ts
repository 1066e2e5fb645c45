import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  faultTexts,
  httpFilter,
  type JsonObject,
  listenerWith,
  load,
  mustLoad,
  ROUTER,
  withListeners,
} from '../../../../support/bootstrap.ts';

const V3 = 'type.googleapis.com/envoy.extensions.filters.http.tap.v3.Tap';
const V2 = 'type.googleapis.com/envoy.config.filter.http.tap.v2alpha.Tap';
const ADMIN: JsonObject = { admin_config: { config_id: 'edge' } };

function bootstrapWith(common: JsonObject, type = V3, fields: JsonObject = {}): JsonObject {
  const filter = {
    name: 'envoy.filters.http.tap',
    typed_config: { '@type': type, common_config: common, ...fields },
  };
  return withListeners(listenerWith([httpFilter({ http_filters: [filter, ROUTER] })]));
}

function settingsOf(bootstrap: JsonObject): unknown {
  const { filter } = mustLoad(bootstrap).listeners[0]!.filterChains[0]!;
  assert.ok(filter.kind === 'http-connection-manager');
  return filter.httpFilters[0];
}

test('a tap filter says under which name it can be had', () => {
  const settings = { configId: 'edge', own: null, recordsTimes: false, counter: 'tap.rq_tapped' };
  const filter = { name: 'filters.http.tap', settings, counters: ['tap.rq_tapped'], tapConfigId: 'edge' };
  assert.deepEqual(settingsOf(bootstrapWith(ADMIN)), filter);
  assert.deepEqual(settingsOf(bootstrapWith(ADMIN, V2)), filter);
  assert.deepEqual(settingsOf(bootstrapWith(ADMIN, V3, { record_headers_received_time: true })), {
    ...filter,
    settings: { configId: 'edge', own: null, recordsTimes: true, counter: 'tap.rq_tapped' },
  });
});

function recording(sink: JsonObject, fields: JsonObject = {}): JsonObject {
  return { static_config: { match: { any_match: true }, output_config: { sinks: [sink], ...fields } } };
}

test('a tap filter that records by itself says what and where to', () => {
  const sink = { format: 'PROTO_BINARY_LENGTH_DELIMITED', file_per_tap: { path_prefix: '/tmp/x' } };
  const own = {
    id: 0,
    settings: {
      configId: '',
      match: { kind: 'any' },
      maxRequestBytes: 5,
      maxResponseBytes: 1024,
      isStreamed: true,
      enabled: null,
    },
    files: { pathPrefix: '/tmp/x', format: 'proto' },
  };
  const common = recording(sink, { streaming: true, max_buffered_rx_bytes: 5 });
  for (const type of [V3, V2]) {
    assert.deepEqual(settingsOf(bootstrapWith(common, type)), {
      name: 'filters.http.tap',
      settings: { configId: '', own, recordsTimes: false, counter: 'tap.rq_tapped' },
      counters: ['tap.rq_tapped'],
    });
  }
});

test('a tap filter that nobody can have record, or that would write elsewhere, is refused by name', () => {
  const refused = (common: JsonObject): string => faultTexts(load(bootstrapWith(common)))[0]!;
  assert.match(refused({}), /common_config/);
  assert.match(refused({ admin_config: { config_id: '' } }), /config_id/);
  assert.match(
    refused(recording({ streaming_admin: {} })),
    /sinks\[0\]\.streaming_admin: .* not supported by this build/,
  );
  assert.match(refused(recording({ file_per_tap: { path_prefix: '' } })), /path_prefix/);
  const asText = { format: 'PROTO_TEXT', file_per_tap: { path_prefix: '/tmp/x' } };
  assert.match(refused(recording(asText)), /sinks\[0\]\.format: format PROTO_TEXT is not supported/);
  const large = recording({ file_per_tap: { path_prefix: '/tmp/x' } }, { max_buffered_tx_bytes: 2 ** 30 });
  assert.match(refused(large), /static_config\.output_config\.max_buffered_tx_bytes: 1073741824 exceeds/);
});

test('addresses of connections are not recorded, which is said', () => {
  const fields = { record_downstream_connection: true, record_upstream_connection: true };
  assert.deepEqual(
    faultTexts(load(bootstrapWith(ADMIN, V3, fields)), 'warning').map((text) => text.replace(/^.*typed_config\./, '')),
    [
      'record_downstream_connection: record_downstream_connection is not supported by this build; it has no effect',
      'record_upstream_connection: record_upstream_connection is not supported by this build; it has no effect',
    ],
  );
});
