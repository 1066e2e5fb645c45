// Makes the snapshot of a listener: names and allocates the stats of the listener, its chains and their filters.
// Main thread.

import { formatAddress } from '../../base/address.ts';
import { GLOBAL_CONNECTION_LIMIT, listenerConnectionLimit } from '../../base/runtime-values.ts';
import type {
  AcceptLimitSnapshot,
  DownstreamTlsSettings,
  DownstreamTlsSnapshot,
  FilterChainMatch,
  FilterChainSettings,
  FilterChainSnapshot,
  HttpConnectionManagerSettings,
  HttpFilterSettings,
  ListenerFilterSettings,
  ListenerFilterSnapshot,
  ListenerSettings,
  ListenerSnapshot,
  NetworkFilterSettings,
  NetworkFilterSnapshot,
  TerminalFilterSettings,
  UdpProxySettings,
  UdpProxySnapshot,
} from '../../snapshot/index.ts';
import {
  cleanStatName,
  HTTP_INSPECTOR_STATS,
  HTTP_STATS,
  HTTP1_STATS,
  LISTENER_HTTP_STATS,
  LISTENER_RATE_LIMIT_STATS,
  LISTENER_STATS,
  LISTENER_WORKER_STATS,
  PROXY_PROTOCOL_STATS,
  type Scope,
  SSL_SOCKET_FACTORY_STATS,
  TCP_ON_DEMAND_STATS,
  TCP_PROXY_STATS,
  TLS_INSPECTOR_STATS,
  TLS_STATS,
  UDP_CLUSTER_STATS,
  UDP_LISTENER_STATS,
  UDP_PROXY_STATS,
} from '../../stats/index.ts';
import type { FilterLeases } from '../filters/filter-configs.ts';
import { allocateFilterStats } from '../filters/filter-stats.ts';
import { makeNetworkFilter } from '../filters/network-filter-cells.ts';
import type { Holdings } from '../holdings.ts';
import { allocateRouteStats, makeCounter, saidByRoutes } from '../routes/route-stats.ts';
import type { RouteLeases } from '../routes/route-tables.ts';
import { SecretNeeds } from '../secrets/secret-needs.ts';
import type { SecretLeases } from '../secrets/secrets.ts';
import type { TicketSecret } from './ticket-secret.ts';

export interface ListenerSnapshotDependencies {
  /** Keeps all that the listener is given. */
  readonly holdings: Holdings;
  readonly concurrency: number;
  /** Most connections over all listeners, where the overload manager says so and not the runtime. */
  readonly connectionLimit?: number | undefined;
  /** Count record of the connections of all listeners. */
  readonly globalRecord: number;
  readonly ticketSecret: TicketSecret;
  /** Those that come by discovery. */
  readonly routes: RouteLeases;
  /** The same. */
  readonly secrets: SecretLeases;
  readonly filters: FilterLeases;
}

/** Of a chain that ends in something else. */
const NO_HTTP = { listenerHttpStatBlock: 0, http1StatBlock: 0 } as const;
const UNLIMITED = Number.POSITIVE_INFINITY;

/** @param chains that it has at first. */
export function makeListenerSnapshot(
  id: number,
  settings: ListenerSettings,
  chains: Pick<ListenerSnapshot, 'filterChains' | 'defaultFilterChain'>,
  deps: ListenerSnapshotDependencies,
): ListenerSnapshot {
  const { holdings } = deps;
  const prefix = listenerStatPrefix(settings);
  const ofLogs = [...countersOfLogs(settings), ...(settings.udp === undefined ? [] : countersOfLogs(settings.udp))];
  for (const name of new Set(ofLogs)) makeCounter(name, holdings);
  // Main accepts no connections; its rows stand beside those of the workers, as in other builds.
  holdings.scope(`${prefix}main_thread.`).allocate(LISTENER_WORKER_STATS);
  return Object.freeze({
    id,
    settings,
    statBlock: holdings.scope(prefix).allocate(LISTENER_STATS).cell,
    workerStatBlocks: Array.from(
      { length: deps.concurrency },
      (_, index) => holdings.scope(`${prefix}worker_${index}.`).allocate(LISTENER_WORKER_STATS).cell,
    ),
    globalLimit: globalLimit(settings, deps),
    limit: {
      maxConnections: UNLIMITED,
      runtimeKey: listenerConnectionLimit(settings.name),
      recordAddress: holdings.countRecord(),
    },
    listenerFilters: settings.listenerFilters.map((filter) => makeListenerFilter(filter, holdings)),
    ...(settings.udp === undefined ? {} : { udp: makeUdpStats(settings.udp, prefix, holdings) }),
    ...chains,
  });
}

/** @param prefix of the listener's stats. */
function makeUdpStats(
  { statPrefix, cluster, matcher }: UdpProxySettings,
  prefix: string,
  holdings: Holdings,
): UdpProxySnapshot {
  const blockOf = (name: string): number =>
    holdings.scope(`cluster.${cleanStatName(name)}.udp.`).allocate(UDP_CLUSTER_STATS).cell;
  return {
    statBlock: holdings.scope(`udp.${statPrefix}.`).allocate(UDP_PROXY_STATS).cell,
    clusterStatBlocks: Object.fromEntries((matcher?.clusters ?? [cluster]).map((name) => [name, blockOf(name)])),
    listenerStatBlock: holdings.scope(`${prefix}udp.`).allocate(UDP_LISTENER_STATS).cell,
  };
}

/** With its final dot. */
export function listenerStatPrefix({ statPrefix, addresses }: ListenerSettings): string {
  return `listener.${cleanStatName(statPrefix || formatAddress(addresses[0]))}.`;
}

/** A listener that ignores the limit still takes places under it. */
function globalLimit(
  { ignoresGlobalLimit }: ListenerSettings,
  { globalRecord: recordAddress, connectionLimit }: ListenerSnapshotDependencies,
): AcceptLimitSnapshot {
  if (ignoresGlobalLimit) return { maxConnections: UNLIMITED, runtimeKey: '', recordAddress };
  if (connectionLimit === undefined) {
    return { maxConnections: UNLIMITED, runtimeKey: GLOBAL_CONNECTION_LIMIT, recordAddress };
  }
  return { maxConnections: connectionLimit, runtimeKey: '', recordAddress };
}

export function makeFilterChain(
  id: number,
  listener: ListenerSettings,
  settings: FilterChainSettings,
  isDefault: boolean,
  deps: ListenerSnapshotDependencies,
): FilterChainSnapshot {
  const { ticketSecret } = deps;
  const prefix = listenerStatPrefix(listener);
  return {
    id,
    settings,
    ...makeTerminal(settings.filter, prefix, deps),
    networkFilters: settings.networkFilters.map((filter) => leaseNetworkFilter(filter, deps)),
    ...(settings.tls === undefined
      ? {}
      : {
          tls: makeTls(prefix, settings.tls, deps, () =>
            ticketSecret.keyOf(prefix, isDefault ? null : choiceOf(listener, settings)),
          ),
        }),
  };
}

/** What distinguishes a chain from the others of its listener. */
function choiceOf(
  { filterChainMatcher }: ListenerSettings,
  { name, match }: FilterChainSettings,
): string | FilterChainMatch {
  return filterChainMatcher === undefined ? match : name;
}

type TerminalParts = Pick<
  FilterChainSnapshot,
  | 'filterStatBlock'
  | 'onDemandStatBlock'
  | 'listenerHttpStatBlock'
  | 'http1StatBlock'
  | 'filterCounters'
  | 'routeStatBlocks'
  | 'routeTableId'
  | 'discoveredFilterIds'
  | 'scopeSetId'
  | 'terminal'
>;

/** @param prefix of the listener's stats. */
function makeTerminal(
  filter: TerminalFilterSettings,
  prefix: string,
  deps: Pick<ListenerSnapshotDependencies, 'holdings' | 'routes' | 'filters'>,
): TerminalParts {
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

/** The table, or the tables of all scopes, are kept for as long as the chain is. */
function leaseRoutes(
  { discoveredRoutes, scopedRoutes, statPrefix }: HttpConnectionManagerSettings,
  { holdings, routes }: Pick<ListenerSnapshotDependencies, 'holdings' | 'routes'>,
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
  { holdings, filters }: Pick<ListenerSnapshotDependencies, 'holdings' | 'filters'>,
): Pick<TerminalParts, 'discoveredFilterIds'> {
  const ids = httpFiltersOf(filter).flatMap(({ name, configName = name, discovered }) => {
    if (discovered === undefined) return [];
    const lease = filters.lease(configName, discovered, filter.statPrefix);
    holdings.hold(() => lease.release());
    return [lease.id];
  });
  return ids.length === 0 ? {} : { discoveredFilterIds: ids };
}

/** The same of a network filter that comes by discovery. */
function leaseNetworkFilter(
  settings: NetworkFilterSettings,
  { holdings, filters }: Pick<ListenerSnapshotDependencies, 'holdings' | 'filters'>,
): NetworkFilterSnapshot {
  const { name, discovered } = settings;
  if (discovered === undefined) return makeNetworkFilter(settings, holdings);
  const lease = filters.leaseNetwork(name, discovered);
  holdings.hold(() => lease.release());
  return { settings, cells: {}, countRecord: 0, discoveredId: lease.id };
}

/**
 * Secrets are kept for as long as the chain is.
 * @param prefix of the listener's stats, which all of its chains share.
 * @param randomKey where the configuration names no keys.
 */
function makeTls(
  prefix: string,
  settings: DownstreamTlsSettings,
  { holdings, secrets }: Pick<ListenerSnapshotDependencies, 'holdings' | 'secrets'>,
  randomKey: () => Uint8Array,
): DownstreamTlsSnapshot {
  const { ticketKeys } = settings;
  const needs = SecretNeeds.of([settings], secrets);
  if (needs !== undefined) holdings.hold(() => needs.release());
  const statScope = `${prefix}ssl.`;
  return {
    settings,
    ticketKeys: ticketKeys === 'random' ? [randomKey()] : ticketKeys,
    statBlock: holdings.scope(statScope).allocate(TLS_STATS).cell,
    factoryBlock: holdings.scope(`${prefix}server_ssl_socket_factory.`).allocate(SSL_SOCKET_FACTORY_STATS).cell,
    statScope,
  };
}

/** What was random stays as it is, so that clients can go on. */
export function withOtherTls(former: DownstreamTlsSnapshot, settings: DownstreamTlsSettings): DownstreamTlsSnapshot {
  const { ticketKeys } = settings;
  return { ...former, settings, ticketKeys: ticketKeys === 'random' ? former.ticketKeys : ticketKeys };
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

function countersOfLogs(logged: TerminalFilterSettings | ListenerSettings | UdpProxySettings): readonly string[] {
  const logs = 'reportedLogs' in logged ? (logged.reportedLogs ?? []) : [];
  const ofAttempts = 'upstreamLog' in logged ? (logged.upstreamLog?.reportedLogs ?? []) : [];
  return [...logs, ...ofAttempts].flatMap(({ logger }) => logger.wholeCounters);
}

function makeListenerFilter(settings: ListenerFilterSettings, holdings: Holdings): ListenerFilterSnapshot {
  return { settings, statBlock: listenerFilterStatBlock(settings, holdings) };
}

function listenerFilterStatBlock(settings: ListenerFilterSettings, holdings: Holdings): number {
  switch (settings.kind) {
    case 'original-dst':
      return 0;
    case 'proxy-protocol': {
      const { statPrefix } = settings;
      const scope = statPrefix === '' ? 'proxy_proto.' : `proxy_proto.${statPrefix}.`;
      return holdings.scope(scope).allocate(PROXY_PROTOCOL_STATS).cell;
    }
    case 'local-rate-limit':
      return holdings.scope(`listener_local_ratelimit.${settings.statPrefix}.`).allocate(LISTENER_RATE_LIMIT_STATS)
        .cell;
    case 'tls-inspector':
      return holdings.scope('tls_inspector.').allocate(TLS_INSPECTOR_STATS).cell;
    case 'http-inspector':
      return holdings.scope('http_inspector.').allocate(HTTP_INSPECTOR_STATS).cell;
  }
}
