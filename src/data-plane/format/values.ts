// Operator → where its value comes from. One row each; a number stays a number for JSON.

import { randomUUID, type X509Certificate } from 'node:crypto';
import { utf8Bytes } from '../../base/byte-text.ts';
import { grpcStatusName } from '../../base/grpc-status.ts';
import type { JsonObject, JsonValue } from '../../base/json.ts';
import type {
  DurationPrecision,
  FormatCommand,
  FormatOperator,
  Metadata,
  MetadataSource,
  Moment,
  WireDirection,
  WireKind,
  WireOperator,
  WireSide,
} from '../../snapshot/index.ts';
import { wantSessionIds } from '../../tls/session-id.ts';
import { type CertificateFacts, chainOf, type TlsFacts } from '../network/tls/connection-tls.ts';
import { longFlags, shortFlags } from '../response-flags.ts';
import { endpointText } from './endpoint-text.ts';
import type { Endpoint, FormatFacts, UpstreamFacts } from './facts.ts';
import { grpcOutcome } from './grpc-outcome.ts';
import { compileTimeFormat } from './time-format.ts';
import { type WireCount, wantWireBytes } from './wire-bytes.ts';

/** A value with a type of its own in JSON: a boolean, a list, an object, null. The configuration's, never a client's. */
export class JsonFact {
  /** As byte text. */
  readonly text: string;

  constructor(value: JsonValue) {
    this.text = utf8Bytes(JSON.stringify(value));
  }

  toString(): string {
    return this.text;
  }
}

/** undefined: there is no value. */
export type FormatValue = string | number | JsonFact | undefined;
export type ReadValue = (facts: FormatFacts) => FormatValue;

/** A value like others, in JSON as well: dashboards filter by it. */
const NO_FLAGS_TEXT = '-';

type MakeReader = (args: readonly string[]) => ReadValue;

/** Of the operators without an argument. */
function plain(read: ReadValue): MakeReader {
  return () => read;
}

function ofSession(tlsOf: (facts: FormatFacts) => TlsFacts | null | undefined): MakeReader {
  return () => {
    wantSessionIds();
    return (facts) => text(tlsOf(facts)?.sessionId ?? '');
  };
}

/** A text that is the program's own or the configuration's; headers are byte text already. */
function text(value: string): string | undefined {
  return value === '' ? undefined : utf8Bytes(value);
}

/** A count of milliseconds, or of attempts, that may not have begun. */
function known(value: number): FormatValue {
  return value < 0 ? undefined : value;
}

function positive(value: number | undefined): FormatValue {
  return value === undefined || value <= 0 ? undefined : value;
}

function ipOf(endpoint: Endpoint | undefined): FormatValue {
  return endpoint === undefined ? undefined : text(endpoint.ip);
}

function fullOf(endpoint: Endpoint | undefined): FormatValue {
  return endpoint === undefined ? undefined : endpointText(endpoint);
}

function withoutPort(name: string): string {
  return name.replace(/:\d+$/, '');
}

function headerReader(
  args: readonly string[],
  find: (facts: FormatFacts, name: string) => string | undefined,
): ReadValue {
  const [first = '', second] = args;
  if (second === undefined) return (facts) => find(facts, first);
  return (facts) => find(facts, first) ?? find(facts, second);
}

function withoutQuery(read: ReadValue): ReadValue {
  return (facts) => {
    const value = read(facts);
    const query = typeof value === 'string' ? value.indexOf('?') : -1;
    return query === -1 ? value : String(value).slice(0, query);
  };
}

const PATH_HEADERS: Readonly<Record<string, readonly string[]>> = {
  ORIG_OR_PATH: ['x-envoy-original-path', ':path'],
  ORIG: ['x-envoy-original-path'],
  PATH: [':path'],
};

function pathReader([extent, source]: readonly string[]): ReadValue {
  const read = headerReader(PATH_HEADERS[source!]!, (facts, name) => facts.requestHeader(name));
  return extent === 'NQ' ? withoutQuery(read) : read;
}

const HOST_HEADERS: Readonly<Record<string, readonly string[]>> = {
  ORIG_OR_HOST: ['x-envoy-original-host', ':authority'],
  ORIG: ['x-envoy-original-host'],
  HOST: [':authority'],
};

function serverReader([place, source]: readonly string[]): ReadValue {
  const ofTls: ReadValue = ({ downstream }) => text(downstream.requestedServerName);
  if (place === 'SNI_ONLY') return ofTls;
  const ofHead = headerReader(HOST_HEADERS[source!]!, (facts, name) => facts.requestHeader(name));
  return place === 'SNI_FIRST' ? (facts) => ofTls(facts) ?? ofHead(facts) : ofHead;
}

/** Of all attempts, with commas between. */
function ofAttempts(read: (upstream: UpstreamFacts) => FormatValue): MakeReader {
  return plain(({ attempted }) => attempted.flatMap((upstream) => read(upstream) ?? []).join() || undefined);
}

/** Of a host that has none its address stands in its place. */
function nameOf({ hostname, remote }: UpstreamFacts): FormatValue {
  return text(hostname) ?? fullOf(remote);
}

function bareNameOf({ hostname, remote }: UpstreamFacts): FormatValue {
  return text(withoutPort(hostname)) ?? ipOf(remote);
}

function parameterReader([name = '']: readonly string[]): ReadValue {
  return (facts) => text(new URLSearchParams(queryOf(facts)).get(name) ?? '');
}

function queryReader([form]: readonly string[]): ReadValue {
  return (facts) => {
    const query = queryOf(facts);
    if (query === '') return undefined;
    return form === 'DECODED' ? percentDecoded(query) : query;
  };
}

/** Byte text, without its question mark. */
function queryOf(facts: FormatFacts): string {
  const path = facts.requestHeader(':path') ?? '';
  const query = path.indexOf('?');
  return query === -1 ? '' : path.slice(query + 1);
}

function percentDecoded(bytes: string): string {
  return bytes.replace(/%([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

function timeReader(args: readonly string[], isLocal: boolean, instantMs: (facts: FormatFacts) => number): ReadValue {
  const format = compileTimeFormat(args[0] ?? '', isLocal);
  return (facts) => format(instantMs(facts));
}

function grpcReader([style]: readonly string[]): ReadValue {
  const write =
    style === 'NUMBER'
      ? (status: number) => status
      : (status: number) => grpcStatusName(status, style === 'SNAKE_STRING' ? 'snake' : 'camel');
  return (facts) => {
    const status = facts.isGrpc ? grpcOutcome(facts) : undefined;
    return status === undefined ? undefined : write(status);
  };
}

function stateReader([name, style]: readonly string[]): ReadValue {
  // The configuration is byte text here; filters say names as they are.
  const key = Buffer.from(name!, 'latin1').toString();
  return (facts) => {
    const value = facts.state(key);
    return value === undefined ? undefined : utf8Bytes(style === 'PLAIN' ? value : JSON.stringify(value));
  };
}

/** Metadata stays as it is while it is in use, so a value is looked for once. */
function metadataReader(args: readonly string[]): ReadValue {
  const [source, namespace, ...keys] = args;
  const values = new WeakMap<Metadata, { readonly value: FormatValue }>();
  return (facts) => {
    const metadata = facts.metadata(source as MetadataSource);
    if (metadata === undefined) return undefined;
    let known = values.get(metadata);
    if (known === undefined) {
      known = { value: factOf(valueAt(metadata, [namespace!, ...keys])) };
      values.set(metadata, known);
    }
    return known.value;
  };
}

function valueAt(metadata: Metadata, path: readonly string[]): JsonValue | undefined {
  let value: JsonValue = metadata;
  for (const key of path) {
    if (!isObject(value) || !Object.hasOwn(value, key)) return undefined;
    value = value[key]!;
  }
  return value;
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function factOf(value: JsonValue | undefined): FormatValue {
  if (value === undefined || typeof value === 'number') return value;
  return typeof value === 'string' ? utf8Bytes(value) : new JsonFact(value);
}

/** Of the client's certificate, or of the one that it was shown. */
function ofCertificate(side: 'own' | 'peer', read: (facts: CertificateFacts) => string): MakeReader {
  return plain(({ downstream: { tls } }) => textOf(tls?.[side], read));
}

/** Of the client's certificate and those that it has come with. */
function ofChain(read: (certificate: X509Certificate) => string): MakeReader {
  return ofCertificate('peer', ({ certificate }) => chainOf(certificate).map(read).join());
}

/** Of the upstream's certificate. */
function ofUpstream(read: (facts: CertificateFacts) => string): MakeReader {
  return plain(({ upstream }) => textOf(upstream?.tls?.peer, read));
}

function textOf(facts: CertificateFacts | null | undefined, read: (facts: CertificateFacts) => string) {
  return facts ? text(read(facts)) : undefined;
}

function inPem({ certificate }: CertificateFacts): string {
  return encodeURIComponent(certificate.toString());
}

/** A fingerprint or serial number without the colons between its bytes. */
function digits(hex: string): string {
  return hex.replaceAll(':', '').toLowerCase();
}

type FindCertificate = (facts: FormatFacts) => CertificateFacts | null | undefined;

const ofClient: FindCertificate = ({ downstream: { tls } }) => tls?.peer;
const ofHost: FindCertificate = ({ upstream }) => upstream?.tls?.peer;

function validity(
  args: readonly string[],
  find: FindCertificate,
  dateOf: (certificate: X509Certificate) => Date,
): ReadValue {
  const write = timeReader(args, false, (facts) => dateOf(find(facts)!.certificate).getTime());
  return (facts) => (find(facts) ? write(facts) : undefined);
}

const UNITS_A_MS: Readonly<Record<DurationPrecision, number>> = { ms: 1, us: 1000, ns: 1_000_000 };

function durationReader([start, end, precision]: readonly string[]): ReadValue {
  const units = UNITS_A_MS[precision as DurationPrecision];
  return (facts) => {
    const startMs = facts.moment(start as Moment);
    const endMs = facts.moment(end as Moment);
    return startMs < 0 || endMs < startMs ? undefined : Math.trunc((endMs - startMs) * units);
  };
}

const WIRE_COUNTS: Readonly<Record<WireKind, Readonly<Record<WireDirection, WireCount>>>> = {
  WIRE: { RECEIVED: 'received', SENT: 'sent' },
  HEADER: { RECEIVED: 'headReceived', SENT: 'headSent' },
  DECOMPRESSED_HEADER: { RECEIVED: 'headTextReceived', SENT: 'headTextSent' },
};

function ofWire(side: WireSide, kind: WireKind, direction: WireDirection): MakeReader {
  const wire = side === 'DOWNSTREAM' ? 'downstreamWire' : 'upstreamWire';
  const count = WIRE_COUNTS[kind][direction];
  // What comes from one side of a connection without requests goes to the other.
  const isFromClient = (side === 'DOWNSTREAM') === (direction === 'RECEIVED');
  const raw = isFromClient ? 'bytesReceived' : 'bytesSent';
  const ofRaw = (facts: FormatFacts): number => (kind === 'WIRE' && facts.protocol === '' ? facts[raw] : 0);
  return () => {
    wantWireBytes();
    return (facts) => facts[wire]?.[count] ?? ofRaw(facts);
  };
}

function wireReaders<Side extends WireSide>(side: Side): Record<WireOperator<Side>, MakeReader> {
  const readers = (Object.keys(WIRE_COUNTS) as WireKind[]).flatMap((kind) =>
    (['RECEIVED', 'SENT'] as const).map((way) => [`${side}_${kind}_BYTES_${way}`, ofWire(side, kind, way)] as const),
  );
  return Object.fromEntries(readers) as Record<WireOperator<Side>, MakeReader>;
}

const READERS: Readonly<Record<FormatOperator, MakeReader>> = {
  ACCESS_LOG_TYPE: plain((facts) => text(facts.accessLogType)),
  BYTES_RECEIVED: plain((facts) => facts.bytesReceived),
  BYTES_RETRANSMITTED: plain(() => 0),
  BYTES_SENT: plain((facts) => facts.bytesSent),
  COMMON_DURATION: durationReader,
  CONNECTION_ID: plain((facts) => facts.downstream.connectionId),
  CONNECTION_TERMINATION_DETAILS: plain((facts) => text(facts.connectionTerminationDetails)),
  ...wireReaders('DOWNSTREAM'),
  DOWNSTREAM_HANDSHAKE_DURATION: plain(({ downstream: { startMs, securedMs } }) =>
    known(Math.trunc(securedMs < 0 ? -1 : securedMs - startMs)),
  ),
  DOWNSTREAM_DIRECT_LOCAL_ADDRESS: plain((facts) => fullOf(facts.downstream.directLocal)),
  DOWNSTREAM_DIRECT_LOCAL_ADDRESS_WITHOUT_PORT: plain((facts) => ipOf(facts.downstream.directLocal)),
  DOWNSTREAM_DIRECT_LOCAL_PORT: plain((facts) => positive(facts.downstream.directLocal.port)),
  DOWNSTREAM_DIRECT_REMOTE_ADDRESS: plain((facts) => fullOf(facts.downstream.directRemote)),
  DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT: plain((facts) => ipOf(facts.downstream.directRemote)),
  DOWNSTREAM_DIRECT_REMOTE_PORT: plain((facts) => positive(facts.downstream.directRemote.port)),
  DOWNSTREAM_LOCAL_ADDRESS: plain((facts) => fullOf(facts.downstream.local)),
  DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT: plain((facts) => ipOf(facts.downstream.local)),
  DOWNSTREAM_LOCAL_PORT: plain((facts) => positive(facts.downstream.local.port)),
  DOWNSTREAM_REMOTE_ADDRESS: plain((facts) => fullOf(facts.client)),
  DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT: plain((facts) => ipOf(facts.client)),
  DOWNSTREAM_REMOTE_PORT: plain((facts) => positive(facts.client.port)),
  DOWNSTREAM_LOCAL_DNS_SAN: ofCertificate('own', ({ names }) => names.dns.join()),
  DOWNSTREAM_LOCAL_EMAIL_SAN: ofCertificate('own', ({ names }) => names.email.join()),
  DOWNSTREAM_LOCAL_IP_SAN: ofCertificate('own', ({ names }) => names.ip.join()),
  DOWNSTREAM_LOCAL_SUBJECT: ofCertificate('own', ({ subject }) => subject),
  DOWNSTREAM_LOCAL_URI_SAN: ofCertificate('own', ({ names }) => names.uri.join()),
  DOWNSTREAM_PEER_CERT: ofCertificate('peer', inPem),
  DOWNSTREAM_PEER_CERT_V_END: (args) => validity(args, ofClient, ({ validToDate }) => validToDate),
  DOWNSTREAM_PEER_CERT_V_START: (args) => validity(args, ofClient, ({ validFromDate }) => validFromDate),
  DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_1: ofChain(({ fingerprint }) => digits(fingerprint)),
  DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_256: ofChain(({ fingerprint256 }) => digits(fingerprint256)),
  DOWNSTREAM_PEER_CHAIN_SERIALS: ofChain(({ serialNumber }) => serialNumber.toLowerCase()),
  DOWNSTREAM_PEER_DNS_SAN: ofCertificate('peer', ({ names }) => names.dns.join()),
  DOWNSTREAM_PEER_EMAIL_SAN: ofCertificate('peer', ({ names }) => names.email.join()),
  DOWNSTREAM_PEER_FINGERPRINT_1: ofCertificate('peer', ({ certificate }) => digits(certificate.fingerprint)),
  DOWNSTREAM_PEER_FINGERPRINT_256: ofCertificate('peer', ({ certificate }) => digits(certificate.fingerprint256)),
  DOWNSTREAM_PEER_IP_SAN: ofCertificate('peer', ({ names }) => names.ip.join()),
  DOWNSTREAM_PEER_ISSUER: ofCertificate('peer', ({ issuer }) => issuer),
  DOWNSTREAM_PEER_SERIAL: ofCertificate('peer', ({ certificate }) => certificate.serialNumber.toLowerCase()),
  DOWNSTREAM_PEER_SUBJECT: ofCertificate('peer', ({ subject }) => subject),
  DOWNSTREAM_PEER_URI_SAN: ofCertificate('peer', ({ names }) => names.uri.join()),
  DOWNSTREAM_TLS_CIPHER: plain(({ downstream: { tls } }) => text(tls?.cipher ?? '')),
  DOWNSTREAM_TLS_SESSION_ID: ofSession(({ downstream }) => downstream.tls),
  DOWNSTREAM_TLS_VERSION: plain(({ downstream: { tls } }) => text(tls?.version ?? '')),
  DOWNSTREAM_TRANSPORT_FAILURE_REASON: plain(({ downstream }) => text(downstream.transportFailure)),
  DURATION: plain((facts) => known(facts.durationMs)),
  EMIT_TIME: (args) => timeReader(args, false, (facts) => facts.emitTimeMs),
  EMIT_TIME_LOCAL: (args) => timeReader(args, true, (facts) => facts.emitTimeMs),
  FILTER_CHAIN_NAME: plain((facts) => text(facts.ingress.chainName)),
  FILTER_STATE: stateReader,
  GRPC_STATUS: grpcReader,
  GRPC_STATUS_NUMBER: () => grpcReader(['NUMBER']),
  LOCAL_REPLY_BODY: plain(({ localReplyBody: body }) => (body === undefined ? undefined : utf8Bytes(body))),
  METADATA: metadataReader,
  PACKETS_RETRANSMITTED: plain(() => 0),
  PATH: pathReader,
  PROTOCOL: plain((facts) => text(facts.protocol)),
  QUERY_PARAM: parameterReader,
  QUERY_PARAMS: queryReader,
  REQ: (args) => headerReader(args, (facts, name) => facts.requestHeader(name)),
  REQ_WITHOUT_QUERY: (args) => withoutQuery(headerReader(args, (facts, name) => facts.requestHeader(name))),
  REQUEST_DURATION: plain((facts) => known(facts.requestDurationMs)),
  REQUEST_HEADERS_BYTES: plain((facts) => facts.requestHeadersBytes),
  REQUEST_TX_DURATION: plain((facts) => known(facts.requestTxDurationMs)),
  REQUESTED_SERVER_NAME: serverReader,
  RESP: (args) => headerReader(args, (facts, name) => facts.responseHeader(name)),
  RESPONSE_CODE: plain((facts) => facts.status),
  RESPONSE_CODE_DETAILS: plain((facts) => text(facts.details)),
  RESPONSE_DURATION: plain((facts) => known(facts.responseDurationMs)),
  RESPONSE_FLAGS: plain((facts) => shortFlags(facts.flags) || NO_FLAGS_TEXT),
  RESPONSE_FLAGS_LONG: plain((facts) => longFlags(facts.flags) || NO_FLAGS_TEXT),
  RESPONSE_HEADERS_BYTES: plain((facts) => facts.responseHeadersBytes),
  RESPONSE_TRAILERS_BYTES: plain((facts) => facts.responseTrailersBytes),
  RESPONSE_TX_DURATION: plain((facts) => known(facts.responseTxDurationMs)),
  ROUTE_NAME: plain((facts) => text(facts.routeName)),
  SPAN_ID: plain((facts) => text(facts.spanId)),
  START_TIME: (args) => timeReader(args, false, (facts) => facts.startTimeMs),
  START_TIME_LOCAL: (args) => timeReader(args, true, (facts) => facts.startTimeMs),
  STREAM_ID: plain((facts) => text(facts.streamId)),
  TLS_JA3_FINGERPRINT: plain(({ downstream: { fingerprints } }) => text(fingerprints?.ja3 ?? '')),
  TLS_JA4_FINGERPRINT: plain(({ downstream: { fingerprints } }) => text(fingerprints?.ja4 ?? '')),
  TRACE_ID: plain((facts) => text(facts.traceId)),
  TRAILER: (args) => headerReader(args, (facts, name) => facts.responseTrailer(name)),
  UNIQUE_ID: plain(() => randomUUID()),
  UPSTREAM_CLUSTER: plain((facts) => text(facts.upstreamCluster)),
  UPSTREAM_CLUSTER_RAW: plain((facts) => text(facts.upstreamCluster)),
  ...wireReaders('UPSTREAM'),
  UPSTREAM_CONNECTION_ID: plain(({ upstream }) => positive(upstream?.connectionId)),
  UPSTREAM_CONNECTION_IDS_ATTEMPTED: ofAttempts(({ connectionId }) => positive(connectionId)),
  UPSTREAM_CONNECTION_POOL_READY_DURATION: plain((facts) => known(facts.poolReadyDurationMs)),
  UPSTREAM_HOST: plain((facts) => fullOf(facts.upstream?.remote)),
  UPSTREAM_HOST_NAME: plain(({ upstream }) => (upstream === null ? undefined : nameOf(upstream))),
  UPSTREAM_HOST_NAME_WITHOUT_PORT: plain(({ upstream }) => (upstream === null ? undefined : bareNameOf(upstream))),
  UPSTREAM_HOST_NAMES_ATTEMPTED: ofAttempts(nameOf),
  UPSTREAM_HOST_NAMES_ATTEMPTED_WITHOUT_PORT: ofAttempts(bareNameOf),
  UPSTREAM_HOSTS_ATTEMPTED: ofAttempts(({ remote }) => fullOf(remote)),
  UPSTREAM_HOSTS_ATTEMPTED_WITHOUT_PORT: ofAttempts(({ remote }) => ipOf(remote)),
  UPSTREAM_LOCAL_ADDRESS: plain((facts) => fullOf(facts.upstream?.local)),
  UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT: plain((facts) => ipOf(facts.upstream?.local)),
  UPSTREAM_LOCAL_PORT: plain((facts) => positive(facts.upstream?.local.port)),
  UPSTREAM_PEER_CERT: ofUpstream(inPem),
  UPSTREAM_PEER_CERT_V_END: (args) => validity(args, ofHost, ({ validToDate }) => validToDate),
  UPSTREAM_PEER_CERT_V_START: (args) => validity(args, ofHost, ({ validFromDate }) => validFromDate),
  UPSTREAM_PEER_DNS_SAN: ofUpstream(({ names }) => names.dns.join()),
  UPSTREAM_PEER_EMAIL_SAN: ofUpstream(({ names }) => names.email.join()),
  UPSTREAM_PEER_IP_SAN: ofUpstream(({ names }) => names.ip.join()),
  UPSTREAM_PEER_ISSUER: ofUpstream(({ issuer }) => issuer),
  UPSTREAM_PEER_SUBJECT: ofUpstream(({ subject }) => subject),
  UPSTREAM_PEER_URI_SAN: ofUpstream(({ names }) => names.uri.join()),
  UPSTREAM_PROTOCOL: plain((facts) => text(facts.upstream?.protocol ?? '')),
  UPSTREAM_REMOTE_ADDRESS: plain((facts) => fullOf(facts.upstream?.remote)),
  UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT: plain((facts) => ipOf(facts.upstream?.remote)),
  UPSTREAM_REMOTE_PORT: plain((facts) => positive(facts.upstream?.remote.port)),
  UPSTREAM_REQUEST_ATTEMPT_COUNT: plain((facts) => facts.attempts),
  UPSTREAM_TLS_CIPHER: plain(({ upstream }) => text(upstream?.tls?.cipher ?? '')),
  UPSTREAM_TLS_SESSION_ID: ofSession(({ upstream }) => upstream?.tls),
  UPSTREAM_TLS_VERSION: plain(({ upstream }) => text(upstream?.tls?.version ?? '')),
  UPSTREAM_TRANSPORT_FAILURE_REASON: plain((facts) => text(facts.upstreamTransportFailure)),
  VIRTUAL_CLUSTER_NAME: plain((facts) => text(facts.virtualClusterName)),
  VIRTUAL_HOST_NAME: plain((facts) => text(facts.virtualHostName)),
};

const ABSENT: ReadValue = () => undefined;

/** @returns the reader of a command's value, cut to its length. */
export function compileCommand({ operator, args, maxLength }: FormatCommand): ReadValue {
  if (operator === 'ABSENT') return ABSENT;
  const read = READERS[operator](args);
  if (maxLength === 0) return read;
  return (facts) => {
    const value = read(facts);
    if (value === undefined) return undefined;
    const whole = String(value);
    return whole.length > maxLength ? whole.slice(0, maxLength) : value;
  };
}
