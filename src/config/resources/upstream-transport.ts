// Transport sockets of a cluster: what the connections to its hosts begin with, a PROXY header perhaps, and how they are
// secured.

import type { ProxyHeaderSettings } from '../../base/proxy-header.ts';
import type { UpstreamTlsSettings } from '../../snapshot/index.ts';
import type { Conversion } from './conversion.ts';
import { openExtension } from './extension.ts';
import type { Cluster, ProxyProtocolUpstreamTransport, TransportSocket, UpstreamTlsContext } from './messages.ts';
import { convertProxyHeader } from './proxy-header.ts';
import { convertUpstreamContext } from './tls/upstream-context.ts';

const SOCKETS = 'proxy.extensions.transport_sockets';
const PROXY_TRANSPORT = `${SOCKETS}.proxy_protocol.v3.ProxyProtocolUpstreamTransport`;
const UPSTREAM_TLS = `${SOCKETS}.tls.v3.UpstreamTlsContext`;

export interface UpstreamTransport {
  readonly proxyHeader?: ProxyHeaderSettings;
  readonly tls?: UpstreamTlsSettings;
}

/** A transport socket goes before the older field. @returns nothing for plain connections, to be spread into settings. */
export function convertUpstreamTransport(message: Cluster, at: string, conversion: Conversion): UpstreamTransport {
  const { transport_socket: socket, tls_context: older, transport_socket_matches: matches } = message;
  if (socket === null) {
    return older === null ? {} : { tls: convertUpstreamContext(older, `${at}.tls_context`, conversion) };
  }
  if (older !== null) conversion.faults.warning(`${at}.tls_context`, 'transport_socket takes its place');
  const transport = convertTransportSocket(socket, `${at}.transport_socket`, conversion);
  if (transport.proxyHeader !== undefined && matches.length > 0) {
    conversion.faults.error(
      `${at}.transport_socket_matches`,
      'cannot stand beside a transport_socket with a PROXY header',
    );
  }
  return transport;
}

/** TLS is in one of its transport sockets at least. */
export function isSecured(cluster: Cluster): boolean {
  return upstreamMessagesOf(cluster).some((context) => context !== undefined);
}

/** TLS is in all of them. */
export function isSecuredThroughout(cluster: Cluster): boolean {
  return upstreamMessagesOf(cluster).every((context) => context !== undefined);
}

/** By place: that of the cluster itself, then those of its matches; undefined where connections are plain. */
export function upstreamMessagesOf({
  transport_socket: socket,
  tls_context: older,
  transport_socket_matches: matches,
}: Cluster): readonly (UpstreamTlsContext | undefined)[] {
  const own = socket === null ? (older ?? undefined) : contextIn(socket);
  return [own, ...matches.map(({ transport_socket: matched }) => contextIn(matched))];
}

function contextIn(socket: TransportSocket | null): UpstreamTlsContext | undefined {
  const opened = socket === null ? undefined : openExtension(socket.typed_config);
  if (opened?.typeName === UPSTREAM_TLS) return opened.message as UpstreamTlsContext;
  if (opened?.typeName !== PROXY_TRANSPORT) return undefined;
  return contextIn((opened.message as ProxyProtocolUpstreamTransport).transport_socket);
}

export function convertTransportSocket(socket: TransportSocket, at: string, conversion: Conversion): UpstreamTransport {
  const opened = openExtension(socket.typed_config);
  const configAt = `${at}.typed_config`;
  if (opened?.typeName === UPSTREAM_TLS) {
    return { tls: convertUpstreamContext(opened.message as UpstreamTlsContext, configAt, conversion) };
  }
  if (opened?.typeName !== PROXY_TRANSPORT) return {};
  const { config, transport_socket: inner } = opened.message as ProxyProtocolUpstreamTransport;
  const proxyHeader =
    config === null
      ? ({ version: 1, tlvs: '' } as const)
      : convertProxyHeader(config, `${configAt}.config`, conversion.faults);
  // One that is missing has broken a field rule.
  const inside = inner === null ? {} : convertTransportSocket(inner, `${configAt}.transport_socket`, conversion);
  return { ...inside, proxyHeader };
}
