// What configurations of one HTTP filter become, and what is wrong with them.

import assert from 'node:assert/strict';
import {
  faultTexts,
  httpFilter,
  type JsonObject,
  listenerWith,
  load,
  mustLoad,
  ROUTER,
  withListeners,
} from './bootstrap.ts';

const MANAGER = 'static_resources.listeners[0].filter_chains[0].filters[0].typed_config';

/**
 * A bootstrap whose one listener has this filter before its router.
 * @param type full name of its message. @param perRoute what its one route says to filters.
 */
export function withHttpFilter(
  name: string,
  type: string,
  fields: JsonObject,
  perRoute: JsonObject = {},
  route: JsonObject = {},
): JsonObject {
  const filter = { name, typed_config: { '@type': `type.googleapis.com/${type}`, ...fields } };
  const routes = [{ match: { prefix: '/' }, route: { cluster: 'web' }, typed_per_filter_config: perRoute, ...route }];
  const route_config = { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] };
  return withListeners(listenerWith([httpFilter({ http_filters: [filter, ROUTER], route_config })]));
}

/** Settings of the filter of a configuration without errors. */
export function filterSettings<T>(name: string, type: string, fields: JsonObject): T {
  const { filter } = mustLoad(withHttpFilter(name, type, fields)).listeners[0]!.filterChains[0]!;
  assert.ok(filter.kind === 'http-connection-manager');
  return filter.httpFilters[0]!.settings as T;
}

/** Errors of a filter's settings, by places within them. @param name behind `envoy.filters.http.`. */
export function filterFaults(
  name: string,
  type: string,
  fields: JsonObject,
  severity: 'error' | 'warning' = 'error',
): string[] {
  const texts = faultTexts(load(withHttpFilter(`envoy.filters.http.${name}`, type, fields)), severity);
  return texts.map((text) => text.replace(`${MANAGER}.http_filters[0].typed_config`, '').replace(/^\./, ''));
}
