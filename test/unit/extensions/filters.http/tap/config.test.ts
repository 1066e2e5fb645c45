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
  const settings = { configId: 'edge', recordsTimes: false, counter: 'tap.rq_tapped' };
  const filter = { name: 'filters.http.tap', settings, counters: ['tap.rq_tapped'], tapConfigId: 'edge' };
  assert.deepEqual(settingsOf(bootstrapWith(ADMIN)), filter);
  assert.deepEqual(settingsOf(bootstrapWith(ADMIN, V2)), filter);
  assert.deepEqual(settingsOf(bootstrapWith(ADMIN, V3, { record_headers_received_time: true })), {
    ...filter,
    settings: { configId: 'edge', recordsTimes: true, counter: 'tap.rq_tapped' },
  });
});

test('a tap filter that nobody can have record is refused by name', () => {
  const recording = {
    static_config: {
      match: { any_match: true },
      output_config: { sinks: [{ file_per_tap: { path_prefix: '/tmp/x' } }] },
    },
  };
  const [error] = faultTexts(load(bootstrapWith(recording)));
  assert.match(error!, /common_config\.static_config: static_config is not supported by this build$/);
  assert.match(faultTexts(load(bootstrapWith({})))[0]!, /common_config/);
  assert.match(faultTexts(load(bootstrapWith({ admin_config: { config_id: '' } })))[0]!, /config_id/);
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
