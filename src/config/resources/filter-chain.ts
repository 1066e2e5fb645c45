// FilterChain message → FilterChainSettings.

import type { FilterChainSettings } from '../../snapshot/index.ts';
import type { Conversion } from './conversion.ts';
import { convertFilterChainMatch } from './filter-chain-match.ts';
import type { FilterChain } from './messages.ts';
import { convertMetadata } from './metadata.ts';
import { convertNetworkFilters } from './network-filters.ts';
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
  const { before, terminal } = convertNetworkFilters(message.filters, `${at}.filters`, conversion);
  const tls = convertSecurity(message, at, conversion);
  if (terminal === undefined) return undefined;
  return {
    name: message.name,
    ...convertMetadata(message.metadata),
    match,
    networkFilters: before,
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
