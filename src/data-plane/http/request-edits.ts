// What a connection manager makes of each request's head before routes and filters see it: forwarding headers and
// identity. Hop-by-hop fields are dropped by the parser already. Order and conditions follow the reference.

import { isIPv4 } from 'node:net';
import type { Random } from '../../base/random.ts';
import { type Fraction, isWithin, type RuntimeDerived } from '../../base/runtime.ts';
import type { HttpConnectionManagerSettings } from '../../snapshot/index.ts';
import { HEADER_ID, PreparedLines, type RequestHead } from '../../wasm/http1.ts';
import type { DownstreamConnection } from '../network/downstream-connection.ts';
import type { RouteTable } from '../route/route-table.ts';
import type { WorkerContext } from '../worker-context.ts';
import { dropForeignHeaders } from './control-headers.ts';
import { ForwardingEdits } from './forwarding-edits.ts';
import type { InternalAddresses } from './internal-addresses.ts';
import type { ProxyHeaders } from './proxy-headers.ts';
import { RequestIds } from './request-id.ts';

/** Who sent a request, as far as it can be trusted. */
export interface RequestOrigin {
  /** The client's address by the trusted hops, or empty. */
  readonly address: string;
  readonly isInternal: boolean;
  /** The peer is added to x-forwarded-for, although it is not what counts. */
  readonly appendsPeer: boolean;
}

export const UNKNOWN_ORIGIN: RequestOrigin = { address: '', isInternal: false, appendsPeer: false };

const MAPS_IPV4 = 'http_connection_manager.represent_ipv4_remote_address_as_ipv4_mapped_ipv6';

/** Lines that are the same for every request of a connection manager. */
export class RequestLines {
  readonly ids = new RequestIds();
  readonly protoHttp = new PreparedLines(['x-forwarded-proto: http']);
  readonly protoHttps = new PreparedLines(['x-forwarded-proto: https']);
  readonly via: PreparedLines | null;
  readonly names: ProxyHeaders;
  readonly internalAddresses: InternalAddresses;
  /** Null where upstreams are told nothing more. */
  readonly forwarding: ForwardingEdits | null;
  readonly #mapsIpv4: RuntimeDerived<Fraction>;
  readonly #random: Random;

  constructor(
    { proxyHeaders: names, runtime, random }: Pick<WorkerContext, 'proxyHeaders' | 'runtime' | 'random'>,
    settings: HttpConnectionManagerSettings,
    internalAddresses: InternalAddresses,
  ) {
    this.names = names;
    this.#random = random;
    this.internalAddresses = internalAddresses;
    this.forwarding = ForwardingEdits.of(settings, names);
    const byDefault = { numerator: settings.forwarding.mapsIpv4 ? 100 : 0, denominator: 100 };
    this.#mapsIpv4 = runtime.share({ key: MAPS_IPV4, default: byDefault });
    this.via = settings.via === '' ? null : new PreparedLines([`via: ${settings.via}`]);
  }

  /** IPv4 addresses of this request are told as IPv6 ones. */
  mapsIpv4(): boolean {
    const share = this.#mapsIpv4.value;
    return share.numerator > 0 && isWithin(share, this.#random.u32());
  }
}

/** The part of a peer that does not change during its connection. */
export interface Peer {
  readonly peerAddress: string;
  readonly isPeerInternal: boolean;
  /** What x-forwarded-for says of the peer; empty for a pipe. */
  readonly forwardedAddress: string;
  readonly downstream: Pick<DownstreamConnection, 'tls' | 'localAddress' | 'localPort' | 'originalDestination'>;
}

/**
 * Works out who sent the request. Internal means: from a private network, with no hop before the trusted ones.
 */
export function requestOrigin(
  head: RequestHead,
  settings: HttpConnectionManagerSettings,
  peer: Peer,
  internalAddresses: InternalAddresses,
): RequestOrigin {
  const hasForwardedFor = head.has(HEADER_ID['x-forwarded-for']);
  if (settings.useRemoteAddress && settings.xffNumTrustedHops === 0) {
    return { address: peer.peerAddress, isInternal: peer.isPeerInternal && !hasForwardedFor, appendsPeer: false };
  }
  if (!hasForwardedFor) {
    if (!settings.useRemoteAddress) return UNKNOWN_ORIGIN;
    return { address: peer.peerAddress, isInternal: peer.isPeerInternal, appendsPeer: false };
  }
  const hops = head.header(HEADER_ID['x-forwarded-for'])!.split(',');
  const fromRight = settings.useRemoteAddress ? settings.xffNumTrustedHops : settings.xffNumTrustedHops + 1;
  // A list that is too short has not been filled by the trusted hops: then only the peer is known.
  const address = hops[hops.length - fromRight]?.trim() ?? (settings.useRemoteAddress ? peer.peerAddress : '');
  const isOnlyHop = !settings.useRemoteAddress && hops.length === 1;
  const isInternal = isOnlyHop && address !== '' && internalAddresses.has(address);
  return { address, isInternal, appendsPeer: false };
}

/** Sets what every request gets from its connection manager. */
export function applyConnectionManagerEdits(
  head: RequestHead,
  settings: HttpConnectionManagerSettings,
  lines: RequestLines,
  peer: Peer,
  origin: RequestOrigin,
  routes: Pick<RouteTable, 'internalOnlyHeaders'>,
): void {
  const { useRemoteAddress } = settings;
  const isEdge = useRemoteAddress && !origin.isInternal;
  dropForeignHeaders(head, origin.isInternal, isEdge);
  if (!origin.isInternal) for (const name of routes.internalOnlyHeaders) head.dropByName(name);
  const { tls } = peer.downstream;
  // HTTP/1.0 knows no interim responses.
  if (head.has(HEADER_ID.expect) && (!settings.proxiesInterim || head.minorVersion === 0)) {
    head.dropKnown(HEADER_ID.expect);
  }
  const isMapped = useRemoteAddress && lines.mapsIpv4();
  const appendsPeer = (useRemoteAddress || origin.appendsPeer) && !settings.skipXffAppend;
  if (appendsPeer && peer.forwardedAddress !== '')
    appendForwardedFor(head, isMapped ? mapped(peer.forwardedAddress) : peer.forwardedAddress);

  const { forwarding } = lines;
  const hasProto = head.has(HEADER_ID['x-forwarded-proto']);
  // Only a trusted hop may say how the client came.
  const isBelieved = !useRemoteAddress || settings.xffNumTrustedHops > 0;
  if (!hasProto || !isBelieved || forwarding?.overwritesScheme) {
    if (hasProto) head.dropKnown(HEADER_ID['x-forwarded-proto']);
    const isHttps = forwarding === null ? tls !== null : forwarding.isHttps(peer.downstream);
    head.appendPrepared(isHttps ? lines.protoHttps : lines.protoHttp);
  }
  forwarding?.apply(head, isBelieved, peer.downstream);
  if (origin.isInternal) head.appendPrepared(lines.names.internal);
  if (isEdge) {
    head.dropKnown(HEADER_ID['x-proxy-external-address']);
    if (origin.address !== '') {
      head.append(lines.names.externalAddress, isMapped ? mapped(origin.address) : origin.address);
    }
  }
  applyRequestId(head, settings, lines.ids, isEdge);
  if (lines.via !== null) appendVia(head, settings.via, lines.via);
}

/** An IPv4 address as one of IPv6 (RFC 4291 section 2.5.5.2); others as they are. */
function mapped(address: string): string {
  return isIPv4(address) ? `::ffff:${address}` : address;
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
