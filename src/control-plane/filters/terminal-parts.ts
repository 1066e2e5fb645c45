// What a terminal filter of a chain is given: its stats, and the route tables, scopes and filters that it has by discovery, which it keeps
// for as long as it is itself. Main thread.

import type {
  HttpConnectionManagerSettings,
  HttpFilterSettings,
  ListenerSettings,
  OwnTerminalSettings,
  TerminalFilterSettings,
  TerminalParts,
  UdpProxySettings,
} from '../../snapshot/index.ts';
import {
  HTTP_STATS,
  HTTP1_STATS,
  LISTENER_HTTP_STATS,
  type Scope,
  TCP_ON_DEMAND_STATS,
  TCP_PROXY_STATS,
} from '../../stats/index.ts';
import type { Holdings } from '../holdings.ts';
import { allocateRouteStats, saidByRoutes } from '../routes/route-stats.ts';
import type { RouteLeases } from '../routes/route-tables.ts';
import type { FilterLeases } from './filter-leases.ts';
import { allocateFilterStats } from './filter-stats.ts';
import { makeNetworkFilter } from './network-filter-cells.ts';

/** Where a terminal filter finds what it has by discovery. */
export interface TerminalSources {
  readonly routes: RouteLeases;
  readonly filters: FilterLeases;
}

type TerminalDependencies = TerminalSources & { readonly holdings: Holdings };

/** Of a chain that ends in something else. */
const NO_HTTP = { listenerHttpStatBlock: 0, http1StatBlock: 0 } as const;

/** @param prefix of the listener's stats. @throws WeirError WEIR_SHARED_MEMORY_FULL. */
export function makeTerminal(filter: OwnTerminalSettings, prefix: string, deps: TerminalDependencies): TerminalParts {
  const { holdings } = deps;
  switch (filter.kind) {
    case 'http-connection-manager': {
      const scope = holdings.scope(`http.${filter.statPrefix}.`);
      return {
        filterStatBlock: scope.allocate(HTTP_STATS).cell,
        listenerHttpStatBlock: holdings.scope(`${prefix}http.${filter.statPrefix}.`).allocate(LISTENER_HTTP_STATS).cell,
        http1StatBlock: holdings.scope('http1.').allocate(HTTP1_STATS).cell,
        filterCounters: makeFilterCounters(filter, scope, holdings),
        routeStatBlocks: allocateRouteStats(filter.routeTable, holdings),
        ...leaseRoutes(filter, deps),
        ...leaseFilters(filter, deps),
      };
    }
    case 'tcp-proxy': {
      const scope = holdings.scope(`tcp.${filter.statPrefix}.`);
      return {
        filterStatBlock: scope.allocate(TCP_PROXY_STATS).cell,
        ...(filter.onDemand && { onDemandStatBlock: scope.allocate(TCP_ON_DEMAND_STATS).cell }),
        ...NO_HTTP,
        filterCounters: {},
      };
    }
    case 'extension':
      return { filterStatBlock: 0, ...NO_HTTP, terminal: makeNetworkFilter(filter, holdings) };
  }
}

/** The same of a filter all of which comes by discovery. @param prefix of the listener's stats. */
export function leaseTerminal(
  filter: TerminalFilterSettings,
  prefix: string,
  deps: TerminalDependencies,
): TerminalParts {
  if (filter.kind !== 'discovered') return makeTerminal(filter, prefix, deps);
  const lease = deps.filters.leaseTerminal(filter.name, filter.discovered, prefix);
  deps.holdings.hold(() => lease.release());
  return { filterStatBlock: 0, ...NO_HTTP, filterCounters: {}, discoveredTerminalId: lease.id };
}

/** The table, or the tables of all scopes, are kept for as long as the chain is. */
function leaseRoutes(
  { discoveredRoutes, scopedRoutes, statPrefix }: HttpConnectionManagerSettings,
  { holdings, routes }: Pick<TerminalDependencies, 'holdings' | 'routes'>,
): Pick<TerminalParts, 'routeTableId' | 'scopeSetId'> {
  if (scopedRoutes !== undefined) {
    const lease = routes.leaseScopes(scopedRoutes, statPrefix);
    holdings.hold(() => lease.release());
    return { scopeSetId: lease.id };
  }
  if (discoveredRoutes === undefined) return {};
  const lease = routes.lease(discoveredRoutes, statPrefix);
  holdings.hold(() => lease.release());
  return { routeTableId: lease.id };
}

/** The same of filters. */
function leaseFilters(
  filter: HttpConnectionManagerSettings,
  { holdings, filters }: Pick<TerminalDependencies, 'holdings' | 'filters'>,
): Pick<TerminalParts, 'discoveredFilterIds'> {
  const ids = httpFiltersOf(filter).flatMap(({ name, configName = name, discovered }) => {
    if (discovered === undefined) return [];
    const lease = filters.lease(configName, discovered, filter.statPrefix);
    holdings.hold(() => lease.release());
    return [lease.id];
  });
  return ids.length === 0 ? {} : { discoveredFilterIds: ids };
}

/** What requests meet before the router, whatever they are; nothing for a TCP proxy. */
export function httpFiltersOf(filter: TerminalFilterSettings): readonly HttpFilterSettings[] {
  if (filter.kind !== 'http-connection-manager') return [];
  return [...filter.httpFilters, ...filter.upgrades.flatMap(({ httpFilters }) => httpFilters ?? [])];
}

function makeFilterCounters(
  filter: HttpConnectionManagerSettings,
  scope: Scope,
  holdings: Holdings,
): Readonly<Record<string, number>> {
  const ofOthers = { wholeCounters: [...countersOfTracer(filter), ...countersOfLogs(filter)] };
  return allocateFilterStats(httpFiltersOf(filter), [...saidByRoutes(filter.routeTable), ofOthers], scope, holdings);
}

function countersOfTracer(filter: TerminalFilterSettings): readonly string[] {
  return (filter.kind === 'http-connection-manager' && filter.tracing?.tracer?.wholeCounters) || [];
}

export function countersOfLogs(
  logged: TerminalFilterSettings | ListenerSettings | UdpProxySettings,
): readonly string[] {
  const logs = 'reportedLogs' in logged ? (logged.reportedLogs ?? []) : [];
  const ofAttempts = 'upstreamLog' in logged ? (logged.upstreamLog?.reportedLogs ?? []) : [];
  return [...logs, ...ofAttempts].flatMap(({ logger }) => logger.wholeCounters);
}
