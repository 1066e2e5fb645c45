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
  ListenerFilterSettings,
  ListenerFilterSnapshot,
  ListenerSettings,
  ListenerSnapshot,
  NetworkFilterSettings,
  NetworkFilterSnapshot,
  UdpProxySettings,
  UdpProxySnapshot,
} from '../../snapshot/index.ts';
import {
  cleanStatName,
  LISTENER_STATS,
  LISTENER_WORKER_STATS,
  SSL_SOCKET_FACTORY_STATS,
  TLS_STATS,
  UDP_CLUSTER_STATS,
  UDP_LISTENER_STATS,
  UDP_PROXY_STATS,
} from '../../stats/index.ts';
import type { FilterLeases } from '../filters/filter-leases.ts';
import { makeListenerFilter } from '../filters/listener-filter-cells.ts';
import { makeNetworkFilter } from '../filters/network-filter-cells.ts';
import { countersOfLogs, leaseTerminal } from '../filters/terminal-parts.ts';
import type { Holdings } from '../holdings.ts';
import { makeCounter } from '../routes/route-stats.ts';
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
    listenerFilters: settings.listenerFilters.map((filter) => leaseListenerFilter(filter, deps)),
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
    ...leaseTerminal(settings.filter, prefix, deps),
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

/** One that comes by discovery is kept for as long as the chain is. */
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

/** The same of a listener filter. */
function leaseListenerFilter(
  settings: ListenerFilterSettings,
  { holdings, filters }: Pick<ListenerSnapshotDependencies, 'holdings' | 'filters'>,
): ListenerFilterSnapshot {
  if (settings.kind !== 'discovered') return makeListenerFilter(settings, holdings);
  const lease = filters.leaseListener(settings.name, settings.discovered);
  holdings.hold(() => lease.release());
  return { settings, statBlock: 0, discoveredId: lease.id };
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
