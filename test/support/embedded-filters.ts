// Bootstraps whose requests meet HTTP filters as configurations name them, for the proxy as a library.

import { type JsonObject, ROUTER } from './bootstrap.ts';
import { httpListener } from './embedded.ts';

const TYPES = 'type.googleapis.com/envoy.extensions.filters.http';

/** @param type behind `envoy.extensions.filters.http.`, such as `cors.v3.Cors`. */
export function filterOf(type: string, fields: JsonObject = {}): JsonObject {
  const [name] = type.split('.');
  return { name: `envoy.filters.http.${name}`, typed_config: typed(type, fields) };
}

export function typed(type: string, fields: JsonObject): JsonObject {
  return { '@type': `${TYPES}.${type}`, ...fields };
}

/** A route to the cluster `web`. @param said what it says to filters, by the last parts of their names. */
export function routeTo(prefix: string, said: Record<string, JsonObject> = {}, fields: JsonObject = {}): JsonObject {
  const entries = Object.entries(said).map(([name, settings]) => [`envoy.filters.http.${name}`, settings]);
  return {
    match: { prefix },
    route: { cluster: 'web' },
    typed_per_filter_config: Object.fromEntries(entries),
    ...fields,
  };
}

/** The listener `main`, with these filters before its router. @param host beside its routes. */
export function filteredListener(
  filters: readonly JsonObject[],
  routes: readonly JsonObject[],
  { manager = {}, host = {}, listener = {} }: { manager?: JsonObject; host?: JsonObject; listener?: JsonObject } = {},
): JsonObject {
  const made = httpListener('main', 'web', listener) as {
    filter_chains: { filters: { typed_config: JsonObject }[] }[];
  };
  const [filter] = made.filter_chains[0]!.filters;
  filter!.typed_config = {
    ...filter!.typed_config,
    http_filters: [...filters, ROUTER],
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes, ...host }] },
    ...manager,
  };
  return made as unknown as JsonObject;
}
