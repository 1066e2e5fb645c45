// What a connection manager makes of each request's head before routes and filters see it: forwarding headers and
// identity. Hop-by-hop fields are dropped by the parser already. Order and conditions follow the reference.

import type { HttpConnectionManagerSettings } from '../../snapshot/index.ts';
import { HEADER_ID, PreparedLines, type RequestHead } from '../../wasm/http1.ts';
import { isInternalAddress } from '../network/peer-address.ts';
import type { TlsFacts } from '../network/tls/connection-tls.ts';
import { forwardClientCertificate } from './client-certificate.ts';
import { dropForeignHeaders } from './control-headers.ts';
import type { ProxyHeaders } from './proxy-headers.ts';
import { RequestIds } from './request-id.ts';

/** Who sent a request, as far as it can be trusted. */
export interface RequestOrigin {
  /** The client's address by the trusted hops, or empty. */
  readonly address: string;
  readonly isInternal: boolean;
}

export const UNKNOWN_ORIGIN: RequestOrigin = { address: '', isInternal: false };

/** Lines that are the same for every request of a connection manager. */
export class RequestLines {
  readonly ids = new RequestIds();
  readonly protoHttp = new PreparedLines(['x-forwarded-proto: http']);
  readonly protoHttps = new PreparedLines(['x-forwarded-proto: https']);
  readonly via: PreparedLines | null;
  readonly names: ProxyHeaders;
  /** Headers, in lower case, that only internal requests may bring. */
  readonly internalOnly: readonly string[];

  constructor(settings: HttpConnectionManagerSettings, names: ProxyHeaders) {
    this.names = names;
    this.internalOnly = settings.routeTable.internalOnlyHeaders;
    this.via = settings.via === '' ? null : new PreparedLines([`via: ${settings.via}`]);
  }
}

/** The part of a peer that does not change during its connection. */
export interface Peer {
  readonly peerAddress: string;
  readonly isPeerInternal: boolean;
  /** What x-forwarded-for says of the peer; empty for a pipe. */
  readonly forwardedAddress: string;
  readonly downstream: { readonly tls: TlsFacts | null };
}

/**
 * Works out who sent the request. Internal means: from a private network, with no hop before the trusted ones.
 */
export function requestOrigin(head: RequestHead, settings: HttpConnectionManagerSettings, peer: Peer): RequestOrigin {
  const hasForwardedFor = head.has(HEADER_ID['x-forwarded-for']);
  if (settings.useRemoteAddress && settings.xffNumTrustedHops === 0) {
    return { address: peer.peerAddress, isInternal: peer.isPeerInternal && !hasForwardedFor };
  }
  if (!hasForwardedFor) {
    if (!settings.useRemoteAddress) return UNKNOWN_ORIGIN;
    return { address: peer.peerAddress, isInternal: peer.isPeerInternal };
  }
  const hops = head.header(HEADER_ID['x-forwarded-for'])!.split(',');
  const fromRight = settings.useRemoteAddress ? settings.xffNumTrustedHops : settings.xffNumTrustedHops + 1;
  // A list that is too short has not been filled by the trusted hops: then only the peer is known.
  const address = hops[hops.length - fromRight]?.trim() ?? (settings.useRemoteAddress ? peer.peerAddress : '');
  const isOnlyHop = !settings.useRemoteAddress && hops.length === 1;
  return { address, isInternal: isOnlyHop && isInternalAddress(address) };
}

/** Sets what every request gets from its connection manager. */
export function applyConnectionManagerEdits(
  head: RequestHead,
  settings: HttpConnectionManagerSettings,
  lines: RequestLines,
  peer: Peer,
  origin: RequestOrigin,
): void {
  const { useRemoteAddress } = settings;
  const isEdge = useRemoteAddress && !origin.isInternal;
  dropForeignHeaders(head, origin.isInternal, isEdge);
  if (!origin.isInternal) for (const name of lines.internalOnly) head.dropByName(name);
  const { tls } = peer.downstream;
  forwardClientCertificate(head, settings.clientCertificate, tls);
  // HTTP/1.0 knows no interim responses.
  if (head.has(HEADER_ID.expect) && (!settings.proxiesInterim || head.minorVersion === 0)) {
    head.dropKnown(HEADER_ID.expect);
  }
  if (useRemoteAddress && !settings.skipXffAppend && peer.forwardedAddress !== '')
    appendForwardedFor(head, peer.forwardedAddress);

  const hasProto = head.has(HEADER_ID['x-forwarded-proto']);
  // Only a trusted hop may say how the client came.
  if (!hasProto || (useRemoteAddress && settings.xffNumTrustedHops === 0)) {
    if (hasProto) head.dropKnown(HEADER_ID['x-forwarded-proto']);
    head.appendPrepared(tls === null ? lines.protoHttp : lines.protoHttps);
  }
  if (origin.isInternal) head.appendPrepared(lines.names.internal);
  if (isEdge) {
    head.dropKnown(HEADER_ID['x-proxy-external-address']);
    if (origin.address !== '') head.append(lines.names.externalAddress, origin.address);
  }
  applyRequestId(head, settings, lines.ids, isEdge);
  if (lines.via !== null) appendVia(head, settings.via, lines.via);
}

function appendForwardedFor(head: RequestHead, address: string): void {
  const before = head.header(HEADER_ID['x-forwarded-for']);
  if (before === undefined) {
    head.append('x-forwarded-for', address);
    return;
  }
  head.dropKnown(HEADER_ID['x-forwarded-for']);
  head.append('x-forwarded-for', before === '' ? address : `${before},${address}`);
}

function applyRequestId(
  head: RequestHead,
  settings: HttpConnectionManagerSettings,
  ids: RequestIds,
  isEdge: boolean,
): void {
  if (!settings.generateRequestId) return;
  if (head.has(HEADER_ID['x-request-id'])) {
    // An outsider's identifier must not be mistaken for one of ours in logs and traces.
    if (!isEdge || settings.preserveExternalRequestId) return;
    head.dropKnown(HEADER_ID['x-request-id']);
  }
  head.appendLineBytes(ids.nextLine());
}

function appendVia(head: RequestHead, via: string, line: PreparedLines): void {
  const before = head.header(HEADER_ID.via);
  if (before === undefined) {
    head.appendPrepared(line);
    return;
  }
  head.dropKnown(HEADER_ID.via);
  head.append('via', `${before}, ${via}`);
}
