// Finds an extension by any of its names, and the category of the field that it is configured in.
// Names are compared with `proxy.` in front; `envoy.` may stand for it, as in older configurations.

import { EXTENSIONS, type ExtensionCategory, type ExtensionRow } from './extension-table.ts';
import { normalizeTypeName } from './message-names.ts';

export type { ExtensionCategory } from './extension-table.ts';

export interface Extension {
  readonly category: ExtensionCategory;
  /** `proxy.filters.http.router`; what every output shows. */
  readonly canonicalName: string;
  /** Canonical name first, then those that older configurations use. */
  readonly names: readonly string[];
  /** Full name of the settings' message, `none` where it takes none, `undescribed` where the schema has none. */
  readonly config: string;
  /** Full name of the message of per-route settings; the same as `config` for most. */
  readonly perRouteConfig: string;
  /** What to do without it; empty where there is nothing to say. */
  readonly instead: string;
}

/** Where an extension is configured. */
export interface ExtensionPlace {
  readonly category: ExtensionCategory;
  readonly isPerRoute: boolean;
}

export const EXTENSION_CATEGORIES = Object.keys(EXTENSIONS) as readonly ExtensionCategory[];

type ExtensionsByName = ReadonlyMap<string, Extension>;

const BY_CATEGORY: ReadonlyMap<string, ExtensionsByName> = new Map(
  Object.entries(EXTENSIONS).map(([category, rows]) => [category, indexRows(category as ExtensionCategory, rows)]),
);

function indexRows(category: ExtensionCategory, rows: readonly ExtensionRow[]): ExtensionsByName {
  const extensions = rows.map((row) => extensionOf(category, row));
  return new Map(extensions.flatMap((extension) => extension.names.map((name) => [name, extension] as const)));
}

function extensionOf(category: ExtensionCategory, row: ExtensionRow): Extension {
  const names = row.names.flatMap(spellings);
  const config = messageName(row.config);
  const perRouteConfig = row.perRoute === undefined ? config : messageName(row.perRoute);
  return { category, canonicalName: names[0]!, names, config, perRouteConfig, instead: row.instead ?? '' };
}

/** Transport sockets had bare names once: `tls`, `raw_buffer`. */
function spellings(name: string): string[] {
  return name === 'tls' || name === 'raw_buffer' ? [name, `proxy.${name}`] : [`proxy.${name}`];
}

function messageName(config: string): string {
  return config === 'none' || config === 'undescribed' ? config : `proxy.${config}`;
}

/** @param name in any spelling. @returns undefined when the category has no such extension. */
export function findExtension(category: ExtensionCategory, name: string): Extension | undefined {
  return BY_CATEGORY.get(category)!.get(normalizeTypeName(name));
}

/** Each once, in the order of the table. */
export function extensionsOf(category: ExtensionCategory): Extension[] {
  return [...new Set(BY_CATEGORY.get(category)!.values())];
}

const CATEGORY_OF_HOLDER: Readonly<Record<string, ExtensionCategory>> = {
  'proxy.config.accesslog.v3.AccessLog': 'access_loggers',
  'proxy.config.cluster.v3.Cluster.CustomClusterType': 'clusters',
  'proxy.config.cluster.v3.LoadBalancingPolicy.Policy': 'load_balancing_policies',
  'proxy.config.cluster.v3.Filter': 'filters.upstream_network',
  'proxy.config.core.v3.HealthCheck.CustomHealthCheck': 'health_checkers',
  'proxy.config.core.v3.RetryPolicy.RetryHostPredicate': 'retry_host_predicates',
  'proxy.config.core.v3.RetryPolicy.RetryPriority': 'retry_priorities',
  'proxy.config.listener.v3.Filter': 'filters.network',
  'proxy.config.listener.v3.ListenerFilter': 'filters.listener',
  'proxy.config.metrics.v3.StatsSink': 'stats_sinks',
  'proxy.config.overload.v3.ResourceMonitor': 'resource_monitors',
  'proxy.config.route.v3.RetryPolicy.RetryHostPredicate': 'retry_host_predicates',
  'proxy.config.route.v3.RetryPolicy.RetryPriority': 'retry_priorities',
  'proxy.config.trace.v3.Tracing.Http': 'tracers',
  'proxy.extensions.filters.http.cache.v3.CacheConfig': 'http.cache',
  'proxy.extensions.filters.network.http_connection_manager.v3.HttpFilter': 'filters.http',
};

const TRANSPORT_SOCKET = 'proxy.config.core.v3.TransportSocket';

/** Maps whose keys are extension names. */
const CATEGORY_OF_MAP: Readonly<Record<string, ExtensionPlace>> = {
  per_filter_config: { category: 'filters.http', isPerRoute: true },
  typed_per_filter_config: { category: 'filters.http', isPerRoute: true },
  extension_protocol_options: { category: 'upstream_options', isPerRoute: false },
  typed_extension_protocol_options: { category: 'upstream_options', isPerRoute: false },
};

/**
 * What kind of extension a field holds.
 * @param holder full name of the message with the field; @param field `typed_config` or a map by name.
 * @param isUpstream inside a cluster: transport sockets differ by side.
 * @returns undefined where any kind may stand, as in TypedExtensionConfig.
 */
export function extensionPlace(holder: string, field: string, isUpstream: boolean): ExtensionPlace | undefined {
  const ofMap = CATEGORY_OF_MAP[field];
  if (ofMap !== undefined) return ofMap;
  const category = holder === TRANSPORT_SOCKET ? socketCategory(isUpstream) : CATEGORY_OF_HOLDER[holder];
  return category && { category, isPerRoute: false };
}

function socketCategory(isUpstream: boolean): ExtensionCategory {
  return isUpstream ? 'transport_sockets.upstream' : 'transport_sockets.downstream';
}
