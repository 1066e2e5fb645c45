// ScopedRoutes → what chooses among route tables by a key, and the scopes that stand in the configuration or come by discovery.

import type {
  NamedFilter,
  ScopedRoutesSettings,
  ScopeKeyPart,
  ScopeSettings,
  TakenElement,
} from '../../snapshot/index.ts';
import type { MessageTypes } from '../proto/generated/messages.ts';
import { fieldPath, itemPath } from '../source/field-path.ts';
import { quote } from '../source/node.ts';
import { convertConfigSource } from './config-source.ts';
import type { Conversion } from './conversion.ts';
import { RouteFilters } from './route-filters.ts';
import { convertRouteTable } from './route-table.ts';

const MANAGER = 'proxy.extensions.filters.network.http_connection_manager.v3';
type ScopedRoutes = MessageTypes[`${typeof MANAGER}.ScopedRoutes`];
type Extractor = MessageTypes[`${typeof MANAGER}.ScopedRoutes.ScopeKeyBuilder.FragmentBuilder.HeaderValueExtractor`];
export type ScopedRouteConfiguration = MessageTypes['proxy.config.route.v3.ScopedRouteConfiguration'];

/** What a scope is read for. */
export interface ScopeReader {
  /** Of the connection manager. */
  readonly filters: readonly NamedFilter[];
  /** Scopes may name tables that come by discovery. */
  readonly hasRouteSource: boolean;
  /** It stands in the configuration of a listener. */
  readonly isStatic: boolean;
}

/** @param filters of all chains of the connection manager. @returns undefined where a fault says why. */
export function convertScopedRoutes(
  message: ScopedRoutes,
  at: string,
  filters: readonly NamedFilter[],
  conversion: Conversion,
): ScopedRoutesSettings | undefined {
  const { faults, isOutbound = false } = conversion;
  const routeSource =
    message.rds_config_source === null
      ? undefined
      : convertConfigSource(message.rds_config_source, fieldPath(at, 'rds_config_source'), conversion);
  const fragments = message.scope_key_builder?.fragments ?? [];
  const keyParts = fragments.flatMap(({ header_value_extractor: extractor }, index) => {
    const here = itemPath(fieldPath(at, 'scope_key_builder.fragments'), index);
    return extractor === null ? [] : convertExtractor(extractor, fieldPath(here, 'header_value_extractor'), conversion);
  });
  const reader = { filters, hasRouteSource: message.rds_config_source !== null, isStatic: true };
  const scopes = convertScopes(message, at, reader, conversion);
  if (scopes === undefined || keyParts.length < fragments.length) return undefined;
  if (scopes.kind === 'fixed') {
    for (const [index, { key }] of scopes.scopes.entries()) {
      if (key.length === keyParts.length) continue;
      const here = itemPath(fieldPath(at, 'scoped_route_configurations_list.scoped_route_configurations'), index);
      faults.warning(
        fieldPath(here, 'key.fragments'),
        `has ${key.length} items, and keys of requests ${keyParts.length}: no request has it`,
      );
    }
  }
  return { name: message.name, keyParts, routeSource, scopes, filters, isOutbound };
}

function convertScopes(
  { scoped_route_configurations_list: list, scoped_rds: discovery }: ScopedRoutes,
  at: string,
  reader: ScopeReader,
  conversion: Conversion,
): ScopedRoutesSettings['scopes'] | undefined {
  if (discovery !== null) {
    const field = fieldPath(at, 'scoped_rds.scoped_rds_config_source');
    // Without one a field rule has a fault.
    const { scoped_rds_config_source: config } = discovery;
    const source = config === null ? undefined : convertConfigSource(config, field, conversion);
    return source && { kind: 'discovered', source };
  }
  if (list === null) return undefined;
  const here = fieldPath(at, 'scoped_route_configurations_list.scoped_route_configurations');
  const known = new ScopeClaims();
  const scopes = list.scoped_route_configurations.flatMap((scope, index) => {
    const place = itemPath(here, index);
    const settings = convertScope(scope, place, reader, conversion);
    const complaint = settings && known.claim(settings);
    if (complaint !== undefined) conversion.faults.error(place, complaint);
    return settings ?? [];
  });
  return { kind: 'fixed', scopes };
}

function convertExtractor(
  { name, element_separator: elementSeparator, extract_type: kind, index, element }: Extractor,
  at: string,
  { faults }: Conversion,
): ScopeKeyPart | [] {
  const part = (take: TakenElement): ScopeKeyPart => ({ header: name.toLowerCase(), elementSeparator, take });
  if (kind === 'element' && element !== null) {
    return part({ kind: 'key', key: element.key, separator: element.separator });
  }
  if (kind !== 'index') {
    faults.error(at, 'says neither index nor element, so that nothing of the header is the key');
    return [];
  }
  if (index > 0 && elementSeparator === '') {
    faults.error(fieldPath(at, 'index'), `is ${index}, and without element_separator there is one element`);
  }
  return part({ kind: 'index', index });
}

/** @returns undefined where a fault says why. */
export function convertScope(
  message: ScopedRouteConfiguration,
  at: string,
  { filters, hasRouteSource, isStatic }: ScopeReader,
  conversion: Conversion,
): ScopeSettings | undefined {
  const { faults } = conversion;
  const { name, key, route_configuration: table, route_configuration_name: tableName, on_demand } = message;
  const fragments = (key?.fragments ?? []).map(({ string_key: text }) => text);
  const common = { name, key: fragments, isOnDemand: on_demand && table === null };
  if (on_demand && table !== null)
    faults.warning(fieldPath(at, 'on_demand'), 'has no effect beside route_configuration, which is there at once');
  if (table !== null) {
    const field = fieldPath(at, 'route_configuration');
    if (tableName !== '') faults.error(field, 'cannot be given together with route_configuration_name');
    if (table.vhds !== null && !isStatic) faults.error(fieldPath(field, 'vhds'), 'is for tables that come by rds');
    return {
      ...common,
      routes: convertRouteTable(table, field, isStatic, new RouteFilters(filters, conversion), conversion),
    };
  }
  const field = fieldPath(at, 'route_configuration_name');
  if (tableName === '') faults.error(field, 'is required where there is no route_configuration');
  else if (!hasRouteSource) faults.error(field, 'needs rds_config_source, which says where it comes from');
  else return { ...common, routes: { tableName } };
  return undefined;
}

/** Which names and keys are taken. */
export class ScopeClaims {
  readonly #names = new Set<string>();
  /** By key: the scope that has it. */
  readonly #keys = new Map<string, string>();

  /** @returns why a scope may not be beside those of before; undefined where it may. */
  claim({ name, key }: ScopeSettings): string | undefined {
    if (this.#names.has(name)) return `a second scope is called ${quote(name)}`;
    const text = JSON.stringify(key);
    const owner = this.#keys.get(text);
    if (owner !== undefined) return `has the key of scope ${quote(owner)}`;
    this.#names.add(name);
    this.#keys.set(text, name);
    return undefined;
  }
}
