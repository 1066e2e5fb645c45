// Configurations of the health check filter, in both generations, and what is refused.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { HealthCheckFilterSettings } from '../../../src/extensions/filters.http/health_check/settings.ts';
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

const TYPE_V3 = 'type.googleapis.com/envoy.extensions.filters.http.health_check.v3.HealthCheck';
const TYPE_V2 = 'type.googleapis.com/envoy.config.filter.http.health_check.v2.HealthCheck';
const AT = 'static_resources.listeners[0].filter_chains[0].filters[0].typed_config.http_filters[0].typed_config';
const PATH_IS_HEALTHZ = {
  name: ':path',
  test: { kind: 'exact', value: '/healthz', ignoresCase: false },
  isInverted: false,
  treatMissingAsEmpty: false,
};

function bootstrapWith(filter: JsonObject): JsonObject {
  const listener = listenerWith([httpFilter({ http_filters: [filter, ROUTER] })]);
  return { ...withListeners(listener), node: { id: 'n', cluster: 'edge' } };
}

function typed(fields: JsonObject): JsonObject {
  return { name: 'envoy.filters.http.health_check', typed_config: { '@type': TYPE_V3, ...fields } };
}

function settingsOf(filter: JsonObject): HealthCheckFilterSettings {
  const { filter: manager } = mustLoad(bootstrapWith(filter)).listeners[0]!.filterChains[0]!;
  assert.ok(manager.kind === 'http-connection-manager');
  assert.deepEqual(
    manager.httpFilters.map(({ name }) => name),
    ['filters.http.health_check'],
  );
  return manager.httpFilters[0]!.settings as HealthCheckFilterSettings;
}

describe('the configuration of a health check filter', () => {
  it('is read from a v3 message', () => {
    const fields = {
      pass_through_mode: false,
      headers: [{ name: ':path', exact_match: '/healthz' }],
      cluster_min_healthy_percentages: { web: { value: 50 } },
    };
    assert.deepEqual(settingsOf(typed(fields)), {
      headers: [PATH_IS_HEALTHZ],
      isPassThrough: false,
      cacheTimeMs: 0,
      clusters: [{ name: 'web', minHealthyPercent: 50 }],
      localCluster: 'edge',
    });
  });

  it('is read from a v2 message and from the v2 Struct, the old endpoint as a match of the path', () => {
    const headers = [{ name: ':path', exact_match: '/healthz' }];
    const common = { pass_through_mode: true, cache_time: '2.5s' };
    const expected = {
      headers: [PATH_IS_HEALTHZ],
      isPassThrough: true,
      cacheTimeMs: 2500,
      clusters: [],
      localCluster: 'edge',
    };
    const v2 = { name: 'envoy.health_check', typed_config: { '@type': TYPE_V2, ...common, headers } };
    assert.deepEqual(settingsOf(v2), expected);
    assert.deepEqual(settingsOf({ name: 'envoy.health_check', config: { ...common, headers } }), expected);
    assert.deepEqual(settingsOf({ name: 'envoy.health_check', config: { ...common, endpoint: '/healthz' } }), expected);
  });

  it('is refused where a field has no meaning in its mode, or names what does not exist', () => {
    const errors = (fields: JsonObject): string[] => faultTexts(load(bootstrapWith(typed(fields))));
    assert.deepEqual(errors({ pass_through_mode: false, cache_time: '1s' }), [
      `${AT}.cache_time: has no meaning without pass_through_mode: there is no answer to keep`,
    ]);
    const percentages = { cluster_min_healthy_percentages: { web: { value: 50 } } };
    assert.deepEqual(errors({ pass_through_mode: true, ...percentages }), [
      `${AT}.cluster_min_healthy_percentages: has no meaning in pass_through_mode: the upstream decides on the answer`,
    ]);
    assert.match(errors({})[0]!, /pass_through_mode/);
    const unknown = { pass_through_mode: false, cluster_min_healthy_percentages: { wep: { value: 50 } } };
    assert.deepEqual(errors(unknown), [
      `${AT}.cluster_min_healthy_percentages["wep"]: cluster "wep" does not exist; did you mean "web"?`,
    ]);
  });
});
