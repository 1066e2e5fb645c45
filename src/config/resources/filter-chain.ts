// FilterChain message → FilterChainSettings.

import type { ConnectionLimitSettings, FilterChainSettings, NetworkFilterSettings } from '../../snapshot/index.ts';
import type { Conversion } from './conversion.ts';
import { openExtension } from './extension.ts';
import { convertFilterChainMatch } from './filter-chain-match.ts';
import { type ChainMember, checkTerminalFilter } from './filter-chain-rules.ts';
import type { FilterChain, NetworkFilter } from './messages.ts';
import { convertMetadata } from './metadata.ts';
import { type ConvertedFilter, NETWORK_FILTERS } from './network-filters.ts';
import { convertDownstreamContext } from './tls/downstream-context.ts';
import { tlsContextOf } from './tls/transport-socket.ts';
import { durationMsOr } from './units.ts';

/** No handshake is waited for without end unless the configuration says so, with 0. */
const DEFAULT_CONNECT_TIMEOUT_MS = 60_000;

/** @returns undefined when the chain does not end in a filter of this build; faults say why. */
export function convertFilterChain(
  message: FilterChain,
  at: string,
  conversion: Conversion,
): FilterChainSettings | undefined {
  const match = convertFilterChainMatch(message.filter_chain_match, `${at}.filter_chain_match`, conversion.faults);
  const filters = message.filters.map((filter, index) => convertFilter(filter, `${at}.filters[${index}]`, conversion));
  const members = message.filters.map(
    ({ name }, index): ChainMember => ({ name, isTerminal: isTerminal(filters[index]) }),
  );
  checkTerminalFilter(members, `${at}.filters`, 'the HTTP connection manager or the TCP proxy', conversion.faults);
  const connectionLimits: ConnectionLimitSettings[] = [];
  let terminal: NetworkFilterSettings | undefined;
  for (const filter of filters) {
    if (filter?.kind === 'connection-limit') connectionLimits.push(...filter.limits);
    else terminal = filter;
  }
  const tls = convertSecurity(message, at, conversion);
  if (terminal === undefined) return undefined;
  return {
    name: message.name,
    ...convertMetadata(message.metadata),
    match,
    connectionLimits,
    ...tls,
    filter: terminal,
  };
}

/** @returns nothing for connections that come as they are. */
function convertSecurity(
  message: FilterChain,
  at: string,
  conversion: Conversion,
): Pick<FilterChainSettings, 'tls' | 'transportConnectTimeoutMs'> {
  const { transport_socket: socket, tls_context: older } = message;
  if (socket !== null && older !== null)
    conversion.faults.warning(`${at}.tls_context`, 'transport_socket takes its place');
  const found = tlsContextOf(message);
  if (found === undefined) return {};
  return {
    tls: convertDownstreamContext(found.context, `${at}.${found.field}`, conversion),
    transportConnectTimeoutMs: durationMsOr(message.transport_socket_connect_timeout, DEFAULT_CONNECT_TIMEOUT_MS),
  };
}

/** @returns undefined for a filter that this build lacks; the support table has refused it. */
function convertFilter(filter: NetworkFilter, at: string, conversion: Conversion): ConvertedFilter | undefined {
  const opened = openExtension(filter.typed_config);
  if (opened === undefined) return undefined;
  return NETWORK_FILTERS[opened.typeName]?.(opened.message, `${at}.typed_config`, conversion);
}

function isTerminal(filter: ConvertedFilter | undefined): boolean | undefined {
  return filter === undefined ? undefined : filter.kind !== 'connection-limit';
}
