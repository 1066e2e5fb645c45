// RouteConfiguration message → RouteTableSnapshot: virtual hosts with their domains, routes in order.

import type {
  FiltersOfRoute,
  HeaderEdits,
  MatchTree,
  RateLimitSettings,
  RouteRateLimits,
  RouteSnapshot,
  RouteTableSnapshot,
  VirtualHostSnapshot,
} from '../../snapshot/index.ts';
import { VirtualHost_TlsRequirementType as TlsRequirement } from '../proto/generated/enums.ts';
import type { MessageTypes } from '../proto/generated/messages.ts';
import { quote } from '../source/node.ts';
import { convertIncrementalSource } from './config-source.ts';
import type { Conversion } from './conversion.ts';
import { DomainTable } from './domains.ts';
import type { OpenedExtension } from './extension.ts';
import { type BothHeaderEdits, convertHeaderEdits } from './header-edits.ts';
import { REQUEST_INPUTS } from './matching/match-inputs.ts';
import { convertMatchTree, type MatcherMessage } from './matching/match-tree.ts';
import type { Route, RouteConfiguration, VirtualHost } from './messages.ts';
import { convertMetadata } from './metadata.ts';
import { convertMirrorPolicies } from './mirror-policy.ts';
import { convertRateLimits } from './rate-limits.ts';
import { type RouteResilience, routeResilience, type TableMirrors, virtualHostResilience } from './resilience.ts';
import { convertAction, type RouteScope } from './route-action.ts';
import type { RouteFilters } from './route-filters.ts';
import { convertConditions, convertPathMatch } from './route-match.ts';
import { convertRouteTracing } from './tracing.ts';
import { valueOr } from './units.ts';
import { convertVirtualClusters } from './virtual-clusters.ts';

const ROUTE = 'proxy.config.route.v3.Route';
const ROUTE_LIST = 'proxy.config.route.v3.RouteList';

const DEFAULT_MAX_DIRECT_RESPONSE_BYTES = 4096;

const TLS_REQUIREMENTS: Readonly<Record<number, Pick<VirtualHostSnapshot, 'requiresTls'>>> = {
  [TlsRequirement.EXTERNAL_ONLY]: { requiresTls: 'external' },
  [TlsRequirement.ALL]: { requiresTls: 'all' },
};

/** What the routes of a table share. */
interface TableScope extends RouteScope, TableMirrors {
  readonly edits: BothHeaderEdits;
  /** Later edits can undo earlier ones; by default those of the whole table come last. */
  readonly mostSpecificEditsLast: boolean;
  readonly filters: RouteFilters;
  readonly filtersOfTable: FiltersOfRoute | null;
}

/** What a virtual host says for its routes. */
interface HostLevels {
  readonly edits: BothHeaderEdits;
  readonly resilience: RouteResilience;
  readonly filters: FiltersOfRoute | null;
  readonly rateLimits: readonly RateLimitSettings[];
}

/**
 * @param isStatic whether the table is part of the static configuration, where clusters must exist by default.
 * @param filters those that requests of the table meet.
 */
export function convertRouteTable(
  message: RouteConfiguration,
  at: string,
  isStatic: boolean,
  filters: RouteFilters,
  conversion: Conversion,
): RouteTableSnapshot {
  const validateClusters = valueOr(message.validate_clusters, isStatic);
  const scope: TableScope = {
    validateClusters,
    mirrors: convertMirrorPolicies(
      message.request_mirror_policies,
      `${at}.request_mirror_policies`,
      validateClusters,
      conversion,
    ),
    maxDirectResponseBytes: valueOr(message.max_direct_response_body_size_bytes, DEFAULT_MAX_DIRECT_RESPONSE_BYTES),
    edits: convertHeaderEdits(message, at, conversion),
    mostSpecificEditsLast: message.most_specific_header_mutations_wins,
    filters,
    filtersOfTable: filters.convert(message.typed_per_filter_config, `${at}.typed_per_filter_config`, null, {
      fields: null,
      at,
    }),
  };
  const domains = new DomainTable(conversion.faults);
  const virtualHosts = message.virtual_hosts.map((virtualHost, index) =>
    convertVirtualHost(virtualHost, `${at}.virtual_hosts[${index}]`, domains, scope, conversion),
  );
  checkVirtualHostNames(message.virtual_hosts, `${at}.virtual_hosts`, conversion);
  return {
    name: message.name,
    virtualHosts,
    ignoresPort: message.ignore_port_in_host_matching,
    ...(message.vhost_header === '' ? {} : { hostHeader: message.vhost_header.toLowerCase() }),
    ...(message.ignore_path_parameters_in_path_matching ? { ignoresPathParameters: true } : {}),
    internalOnlyHeaders: message.internal_only_headers.map((name) => name.toLowerCase()),
    ...convertHostDiscovery(message, at, isStatic, conversion),
  };
}

function convertHostDiscovery(
  { vhds }: RouteConfiguration,
  at: string,
  isStatic: boolean,
  conversion: Conversion,
): Pick<RouteTableSnapshot, 'hostDiscovery'> {
  if (vhds === null) return {};
  if (isStatic) {
    conversion.faults.error(`${at}.vhds`, 'is for tables that come by rds');
    return {};
  }
  // Without one a field rule has a fault.
  const source =
    vhds.config_source && convertIncrementalSource(vhds.config_source, `${at}.vhds.config_source`, conversion);
  return source ? { hostDiscovery: source } : {};
}

function convertVirtualHost(
  message: VirtualHost,
  at: string,
  domains: DomainTable,
  scope: TableScope,
  conversion: Conversion,
): VirtualHostSnapshot {
  const edits = convertHeaderEdits(message, at, conversion);
  const perFilter = message.typed_per_filter_config;
  const levels: HostLevels = {
    edits,
    resilience: virtualHostResilience(message, at, scope, conversion),
    filters: scope.filters.convert(perFilter, `${at}.typed_per_filter_config`, scope.filtersOfTable, {
      fields: message,
      at,
    }),
    rateLimits: convertRateLimits(message.rate_limits, `${at}.rate_limits`, conversion),
  };
  const routes: RouteSnapshot[] = [];
  const add = (route: Route, here: string): void => {
    const converted = convertRoute(route, here, message, levels, scope, conversion);
    if (converted !== undefined) routes.push(converted);
  };
  for (const [index, route] of message.routes.entries()) add(route, `${at}.routes[${index}]`);
  if (message.matcher !== null && message.routes.length > 0) {
    conversion.faults.error(`${at}.matcher`, 'cannot be given together with routes');
  }
  const matcher = message.matcher && convertRouteMatcher(message.matcher, `${at}.matcher`, routes, add, conversion);
  return {
    name: message.name,
    ...convertMetadata(message.metadata),
    domains: domains.claim(message, at),
    ...TLS_REQUIREMENTS[message.require_tls],
    ...convertVirtualClusters(message.virtual_clusters, `${at}.virtual_clusters`, conversion.faults),
    routes,
    ...(matcher === null ? {} : { matcher }),
  };
}

/** @param routes where `add` puts those that the tree leads to. */
function convertRouteMatcher(
  message: MatcherMessage,
  at: string,
  routes: readonly RouteSnapshot[],
  add: (route: Route, at: string) => void,
  conversion: Conversion,
): MatchTree<readonly number[]> {
  const convertAction = (
    { typeName, message: action }: OpenedExtension,
    here: string,
  ): readonly number[] | undefined => {
    const first = routes.length;
    if (typeName === ROUTE) add(action as Route, here);
    else if (typeName === ROUTE_LIST) {
      const list = action as MessageTypes[typeof ROUTE_LIST];
      for (const [index, route] of list.routes.entries()) add(route, `${here}.routes[${index}]`);
    } else {
      conversion.faults.error(here, `${quote(typeName)} is no action of a virtual host: Route and RouteList are`);
      return undefined;
    }
    return routes.slice(first).map((_, index) => first + index);
  };
  return convertMatchTree(message, at, { inputs: REQUEST_INPUTS, convertAction }, conversion);
}

/** @returns undefined when a matcher or action is missing or not supported; a fault exists for it. */
function convertRoute(
  route: Route,
  at: string,
  virtualHost: VirtualHost,
  ofHost: HostLevels,
  scope: TableScope,
  conversion: Conversion,
): RouteSnapshot | undefined {
  const { faults } = conversion;
  const match = route.match === null ? undefined : convertPathMatch(route.match, `${at}.match`, faults);
  const conditions = route.match === null ? null : convertConditions(route.match, `${at}.match`, faults);
  const resilience = routeResilience(route, at, ofHost.resilience, scope.validateClusters, conversion);
  const levels = [...routeEdits(route, at, conversion), ofHost.edits, scope.edits];
  if (scope.mostSpecificEditsLast) levels.reverse();
  const older = { fields: route.route, at: `${at}.route` };
  const perFilter = route.typed_per_filter_config;
  const filters = scope.filters.convert(perFilter, `${at}.typed_per_filter_config`, ofHost.filters, older);
  const tracing = convertRouteTracing(route, at, conversion);
  const ofCluster = (entries: typeof perFilter, here: string) =>
    scope.filters.convert(entries, here, filters, { fields: null, at: here });
  const action = convertAction(route, at, scope, resilience, ofCluster, conversion);
  if (match === undefined || action === undefined) return undefined;
  return {
    name: route.name,
    ...convertMetadata(route.metadata),
    match,
    conditions,
    action,
    requestEdits: levels.map(({ request }) => request).filter(isPresent),
    responseEdits: levels.map(({ response }) => response).filter(isPresent),
    countsAttemptsInRequest: virtualHost.include_request_attempt_count,
    countsAttemptsInResponse: virtualHost.include_attempt_count_in_response,
    ...(filters === null ? {} : { filters }),
    ...tracing,
    ...rateLimitsOf(route, at, ofHost.rateLimits, conversion),
    ...(route.stat_prefix === '' ? {} : { statPrefix: route.stat_prefix }),
  };
}

/** Those of the route, and those that stood at its action before there were any at routes. */
function routeEdits(route: Route, at: string, conversion: Conversion): readonly BothHeaderEdits[] {
  const edits = convertHeaderEdits(route, at, conversion);
  if (route.route === null) return [edits];
  const ofAction = { ...route.route, request_headers_to_remove: [] };
  return [convertHeaderEdits(ofAction, `${at}.route`, conversion), edits];
}

function rateLimitsOf(
  { route: action }: Route,
  at: string,
  ofHost: readonly RateLimitSettings[],
  conversion: Conversion,
): { readonly rateLimits?: RouteRateLimits } {
  const ofRoute = action === null ? [] : convertRateLimits(action.rate_limits, `${at}.route.rate_limits`, conversion);
  if (ofRoute.length + ofHost.length === 0) return {};
  return { rateLimits: { ofRoute, ofHost, includesHost: valueOr(action?.include_vh_rate_limits, false) } };
}

function isPresent(edits: HeaderEdits | null): edits is HeaderEdits {
  return edits !== null;
}

function checkVirtualHostNames(virtualHosts: readonly VirtualHost[], at: string, { faults }: Conversion): void {
  const seen = new Set<string>();
  for (const [index, { name }] of virtualHosts.entries()) {
    if (seen.has(name) && name !== '') {
      faults.error(`${at}[${index}].name`, `a second virtual host is called ${quote(name)}`);
    }
    seen.add(name);
  }
}
