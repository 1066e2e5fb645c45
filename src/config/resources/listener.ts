// Listener message → ListenerSettings.

import { randomUUID } from 'node:crypto';
import type { Address } from '../../base/address.ts';
import type { FilterChainSettings, ListenerSettings, TrafficDirection } from '../../snapshot/index.ts';
import { Listener_DrainType } from '../proto/generated/enums.ts';
import { convertAccessLogs, convertReportedLogs } from './access-log/access-log.ts';
import { convertAddress } from './address.ts';
import type { Conversion } from './conversion.ts';
import type { FaultSink } from './fault-sink.ts';
import { convertFilterChain } from './filter-chain.ts';
import { checkDistinctMatches } from './filter-chain-match.ts';
import { convertFilterChainMatcher } from './filter-chain-matcher.ts';
import { convertListenerFilters } from './listener-filters.ts';
import { convertListeningOptions } from './listening-options.ts';
import type { Listener } from './messages.ts';
import { convertMetadata } from './metadata.ts';
import { convertOwnKeepalives, convertSocketOptions } from './socket-options.ts';
import { checkNoDatagrams, convertUdpListener, isForDatagrams } from './udp-proxy.ts';
import { durationMsOr, valueOr } from './units.ts';

const DEFAULT_BUFFER_LIMIT_BYTES = 1024 * 1024;
/** More than any kernel takes: each cuts it down to its own maximum (somaxconn). */
const DEFAULT_BACKLOG = 65_535;
const DEFAULT_LISTENER_FILTERS_TIMEOUT_MS = 15_000;
/** Of a listener for datagrams. */
const NO_CHAINS = { filterChains: [], defaultFilterChain: null } as const;
/** By number. */
const TRAFFIC_DIRECTIONS: readonly TrafficDirection[] = ['UNSPECIFIED', 'INBOUND', 'OUTBOUND'];

/**
 * @param at path of the message, `static_resources.listeners[0]`.
 * @returns undefined when there is no address; a fault says why.
 */
export function convertListener(message: Listener, at: string, conversion: Conversion): ListenerSettings | undefined {
  const { faults } = conversion;
  const addresses = convertAddresses(message, at, conversion);
  const [first, ...others] = addresses;
  const isOutbound = TRAFFIC_DIRECTIONS[message.traffic_direction] === 'OUTBOUND';
  const isUdp = isForDatagrams(message, at, faults);
  if (!isUdp) checkNoDatagrams(message, at, faults);
  const udp = isUdp ? convertUdpListener(message, at, conversion) : undefined;
  const filterChains = isUdp ? NO_CHAINS : convertFilterChains(message, at, { ...conversion, isOutbound });
  const settings = {
    name: message.name || randomUUID(),
    accessLogs: convertAccessLogs(message.access_log, `${at}.access_log`, conversion),
    ...convertReportedLogs(message.access_log, `${at}.access_log`, conversion),
    bindsToPort: bindsToPort(message),
    handsOver: valueOr(message.use_original_dst, false),
    statPrefix: message.stat_prefix,
    ...convertMetadata(message.metadata),
    trafficDirection: TRAFFIC_DIRECTIONS[message.traffic_direction] ?? 'UNSPECIFIED',
    drainType: drainType(message),
    bufferLimitBytes: valueOr(message.per_connection_buffer_limit_bytes, DEFAULT_BUFFER_LIMIT_BYTES),
    backlog: valueOr(message.tcp_backlog_size, DEFAULT_BACKLOG),
    reusePort: valueOr(message.enable_reuse_port, true),
    socketOptions: convertSocketOptions(message, at, faults),
    ...convertOwnKeepalives(message, addresses),
    ...convertListeningOptions(message, addresses, at, faults),
    listenerFilters: isUdp ? [] : convertListenerFilters(message, at, conversion),
    listenerFiltersTimeoutMs: durationMsOr(message.listener_filters_timeout, DEFAULT_LISTENER_FILTERS_TIMEOUT_MS),
    continueOnListenerFiltersTimeout: message.continue_on_listener_filters_timeout,
    ignoresGlobalLimit: message.ignore_global_conn_limit || message.bypass_overload_manager,
    bypassesOverload: message.bypass_overload_manager,
    ...filterChains,
    ...(udp === undefined ? {} : { udp }),
  };
  if (!settings.bindsToPort) checkUnbound(addresses, at, faults);
  if (first === undefined) return undefined;
  return { ...settings, addresses: [first, ...others.filter((address) => address !== undefined)] };
}

function drainType({ drain_type: type }: Listener): ListenerSettings['drainType'] {
  return type === Listener_DrainType.MODIFY_ONLY ? 'modify-only' : 'default';
}

/** By either of two fields. */
function bindsToPort({ bind_to_port: binds, deprecated_v1: older }: Listener): boolean {
  return valueOr(binds, true) && valueOr(older?.bind_to_port, true);
}

function checkUnbound(addresses: readonly (Address | undefined)[], at: string, faults: FaultSink): void {
  for (const [index, address] of addresses.entries()) {
    const path = index === 0 ? `${at}.address` : `${at}.additional_addresses[${index - 1}].address`;
    if (address?.kind === 'pipe') faults.error(path, 'a listener that binds to no port is found by IP addresses alone');
    else if (address?.port === 0) faults.warning(path, 'no connection is meant for port 0');
  }
}

/** By their places in the message; undefined for one that cannot be used. */
function convertAddresses(message: Listener, at: string, { faults }: Conversion): (Address | undefined)[] {
  const first = convertAddress(message.address, `${at}.address`, 'listener', faults);
  const others = message.additional_addresses.map(({ address }, index) =>
    convertAddress(address, `${at}.additional_addresses[${index}].address`, 'listener', faults),
  );
  return [first, ...others];
}

function convertFilterChains(
  message: Listener,
  at: string,
  conversion: Conversion,
): Pick<ListenerSettings, 'filterChains' | 'filterChainMatcher' | 'defaultFilterChain'> {
  const { faults } = conversion;
  const chainsAt = `${at}.filter_chains`;
  const filterChains = message.filter_chains.map((chain, index) =>
    convertFilterChain(chain, `${chainsAt}[${index}]`, conversion),
  );
  const last = message.default_filter_chain;
  if (filterChains.length === 0 && last === null) faults.error(chainsAt, 'needs at least one filter chain');
  const known = filterChains.filter((chain): chain is FilterChainSettings => chain !== undefined);
  // Places in the list are those of the message only while no chain is missing.
  if (known.length === filterChains.length && message.filter_chain_matcher === null) {
    checkDistinctMatches(
      known.map(({ match }) => match),
      chainsAt,
      faults,
    );
  }
  return {
    filterChains: known,
    ...convertFilterChainMatcher(message, at, conversion),
    defaultFilterChain: (last && convertFilterChain(last, `${at}.default_filter_chain`, conversion)) ?? null,
  };
}
