// Where filter chains say that their connections are secured.

import { openExtension } from '../extension.ts';
import type { DownstreamTlsContext, FilterChain } from '../messages.ts';

const DOWNSTREAM_TLS = 'proxy.extensions.transport_sockets.tls.v3.DownstreamTlsContext';

/** A transport socket goes before the older field. @returns undefined for connections that come as they are. */
export function tlsContextOf({
  transport_socket: socket,
  tls_context: older,
}: FilterChain): { readonly context: DownstreamTlsContext; readonly field: string } | undefined {
  if (socket === null) return older === null ? undefined : { context: older, field: 'tls_context' };
  const opened = openExtension(socket.typed_config);
  if (opened?.typeName !== DOWNSTREAM_TLS) return undefined;
  return { context: opened.message as DownstreamTlsContext, field: 'transport_socket.typed_config' };
}
