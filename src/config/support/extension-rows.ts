// The rows of stat sinks, HTTP and network filters, tracers and access loggers stand beside their extensions; here they join the table.

import type { ExtensionManifests } from '../resources/extension-manifests.ts';
import { SUPPORT } from './table/index.ts';
import type { ExtensionVerdict, MessageSupport, SupportTable } from './verdict.ts';

const STAT_SINK = 'proxy.config.metrics.v3.StatsSink';
const NETWORK_FILTER = 'proxy.config.listener.v3.Filter';
const ACCESS_LOG = 'proxy.config.accesslog.v3.AccessLog';
const TRACER = 'proxy.config.trace.v3.Tracing.Http';
const MATCHER_ACTION = 'xds.core.v3.TypedExtensionConfig (matcher action)';
const HTTP_FILTER = 'proxy.extensions.filters.network.http_connection_manager.v3.HttpFilter';

/** Of filters that come by discovery: until they have come, and as they come. */
const DEFAULT_FILTER = 'proxy.config.core.v3.ExtensionConfigSource (HTTP filter)';
const DEFAULT_NETWORK_FILTER = 'proxy.config.core.v3.ExtensionConfigSource (network filter)';
const DISCOVERED_FILTER = 'proxy.config.core.v3.TypedExtensionConfig';

/** A filter that another one runs in its own place. */
const DELEGATED_FILTER = 'proxy.config.core.v3.TypedExtensionConfig (delegated filter)';

/** Where routes speak to filters. */
const PER_FILTER_HOLDERS = [
  'proxy.config.route.v3.RouteConfiguration',
  'proxy.config.route.v3.VirtualHost',
  'proxy.config.route.v3.Route',
  'proxy.config.route.v3.WeightedCluster.ClusterWeight',
];
const ROUTE_FILTER = 'proxy.config.route.v3.FilterConfig';

export function supportWith({
  statSinks,
  httpFilters,
  networkFilters,
  tracers,
  accessLoggers,
}: ExtensionManifests): SupportTable {
  const manifests = [statSinks, httpFilters, networkFilters, tracers, accessLoggers].flatMap((kind) =>
    Object.values<{ support: SupportTable }>(kind),
  );
  const ofRoutes = Object.values(httpFilters).flatMap((filter) => filter.ofRoutes?.type ?? []);
  const actions = Object.values(httpFilters).flatMap(({ matcherActions = [] }) => matcherActions);
  return {
    ...SUPPORT,
    [MATCHER_ACTION]: withTypes(MATCHER_ACTION, 'typed_config', actions),
    [STAT_SINK]: withTypes(STAT_SINK, 'typed_config', Object.keys(statSinks)),
    [ACCESS_LOG]: withTypes(ACCESS_LOG, 'typed_config', Object.keys(accessLoggers)),
    [TRACER]: withTypes(TRACER, 'typed_config', Object.keys(tracers)),
    [HTTP_FILTER]: withTypes(HTTP_FILTER, 'typed_config', Object.keys(httpFilters)),
    [DELEGATED_FILTER]: withTypes(DELEGATED_FILTER, 'typed_config', Object.keys(httpFilters)),
    [DEFAULT_FILTER]: withTypes(DEFAULT_FILTER, 'default_config', Object.keys(httpFilters)),
    [DEFAULT_NETWORK_FILTER]: withTypes(DEFAULT_NETWORK_FILTER, 'default_config', Object.keys(networkFilters)),
    [DISCOVERED_FILTER]: withTypes(DISCOVERED_FILTER, 'typed_config', [
      ...Object.keys(httpFilters),
      ...Object.keys(networkFilters),
    ]),
    [NETWORK_FILTER]: withTypes(NETWORK_FILTER, 'typed_config', Object.keys(networkFilters)),
    [ROUTE_FILTER]: withTypes(ROUTE_FILTER, 'config', ofRoutes),
    ...Object.fromEntries(
      PER_FILTER_HOLDERS.map((holder) => [holder, withTypes(holder, 'typed_per_filter_config', ofRoutes)]),
    ),
    ...Object.assign({}, ...manifests.map(({ support }) => support)),
  };
}

/** @param types of what the field may hold beside those that its row names. */
function withTypes(holder: string, field: string, types: readonly string[]): MessageSupport {
  const { otherwise, fields } = SUPPORT[holder]!;
  const own = fields[field] as ExtensionVerdict;
  return { otherwise, fields: { ...fields, [field]: { ...own, types: [...own.types, ...types] } } };
}
