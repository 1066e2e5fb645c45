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
  const configName = 'envoy.filters.http.tap';
  const filter = { name: 'filters.http.tap', settings, counters: ['tap.rq_tapped'], tapConfigId: 'edge', configName };
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
    files: { pathPrefix: '/tmp/x', format: 'binary-delimited' },
  };
  const common = recording(sink, { streaming: true, max_buffered_rx_bytes: 5 });
  for (const type of [V3, V2]) {
    assert.deepEqual(settingsOf(bootstrapWith(common, type)), {
      name: 'filters.http.tap',
      settings: { configId: '', own, recordsTimes: false, counter: 'tap.rq_tapped' },
      counters: ['tap.rq_tapped'],
      configName: 'envoy.filters.http.tap',
    });
  }
});

test('a tap filter writes each form that a file can have', () => {
  const formOf = (format: string): unknown => {
    const { own } = (
      settingsOf(bootstrapWith(recording({ format, file_per_tap: { path_prefix: '/tmp/x' } }))) as {
        settings: { own: { files: { format: string } } };
      }
    ).settings;
    return own.files.format;
  };
  assert.deepEqual(
    ['JSON_BODY_AS_BYTES', 'JSON_BODY_AS_STRING', 'PROTO_BINARY', 'PROTO_BINARY_LENGTH_DELIMITED', 'PROTO_TEXT'].map(
      formOf,
    ),
    ['json-bytes', 'json-text', 'binary', 'binary-delimited', 'text'],
  );
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
  const asBinary = { format: 'PROTO_BINARY', file_per_tap: { path_prefix: '/tmp/x' } };
  assert.match(
    refused(recording(asBinary, { streaming: true })),
    /static_config\.output_config\.sinks\[0\]\.format: PROTO_BINARY does not say where a piece ends; .*_LENGTH_DELIMITED$/,
  );
  assert.match(
    refused(recording({ streaming_grpc: { tap_id: 'x', grpc_service: { envoy_grpc: { cluster_name: 'c' } } } })),
    /sinks\[0\]\.streaming_grpc: .* not supported by this build/,
  );
  const large = recording({ file_per_tap: { path_prefix: '/tmp/x' } }, { max_buffered_tx_bytes: 2 ** 30 });
  assert.match(refused(large), /static_config\.output_config\.max_buffered_tx_bytes: 1073741824 exceeds/);
});

test('addresses of connections are not recorded, which is said', () => {
  const fields = { record_downstream_connection: true, record_upstream_connection: true };
  assert.deepEqual(
    faultTexts(load(bootstrapWith(ADMIN, V3, fields)), 'warning').map((text) => text.replace(/^.*typed_config\./, '')),
    [
      'record_downstream_connection: record_downstream_connection is not supported by this build; ' +
        'traces have no addresses: access logs tell them, %DOWNSTREAM_REMOTE_ADDRESS%',
      'record_upstream_connection: record_upstream_connection is not supported by this build; ' +
        'traces have no addresses: access logs tell them, %UPSTREAM_REMOTE_ADDRESS%',
    ],
  );
});

test('transport sockets that record are refused by name, on either side and in either generation', () => {
  const tapOf = (package_: string): JsonObject => ({
    name: 'envoy.transport_sockets.tap',
    typed_config: {
      '@type': `type.googleapis.com/envoy.${package_}.Tap`,
      common_config: ADMIN,
      transport_socket: { name: 'raw_buffer' },
    },
  });
  const filter = httpFilter({ http_filters: [ROUTER] });
  const listener = { ...listenerWith([]), filter_chains: [{ filters: [filter] }] };
  for (const package_ of ['extensions.transport_sockets.tap.v3', 'config.transport_socket.tap.v2alpha']) {
    const chain = { filters: [filter], transport_socket: tapOf(package_) };
    const bootstrap = {
      static_resources: {
        listeners: [{ ...listener, filter_chains: [chain] }],
        clusters: [{ name: 'web', type: 'STATIC', transport_socket: tapOf(package_) }],
      },
    };
    const text = 'transport_socket.typed_config: "envoy.transport_sockets.tap" is not supported by this build';
    assert.deepEqual(
      faultTexts(load(bootstrap)).filter((fault) => fault.includes('transport_socket')),
      [`static_resources.listeners[0].filter_chains[0].${text}`, `static_resources.clusters[0].${text}`],
    );
  }
});
