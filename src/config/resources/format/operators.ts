// The command operators of format strings: what each takes between its parentheses and what it stands for, and the ones
// that this build accepts without ever having a value for them.

import type {
  DurationPrecision,
  FormatOperator,
  MetadataSource,
  Moment,
  WireDirection,
  WireKind,
  WireOperator,
  WireSide,
} from '../../../snapshot/index.ts';

/**
 * What stands between the parentheses: nothing, a header with a fallback, a time's format, a name, a style of names, whose metadata,
 * a name of filter state and a style, how much of the path and of which, how to read the query, whether and where heads may name the server, or
 * two moments and a precision.
 */
export type Argument =
  | 'none'
  | 'duration'
  | 'state'
  | 'header'
  | 'time'
  | 'name'
  | 'style'
  | 'metadata'
  | 'path'
  | 'query'
  | 'server';

export interface OperatorRow {
  readonly argument: Argument;
  /** Its value, for docs/command-operators.md. */
  readonly says: string;
}

const WAYS: readonly (readonly [WireDirection, string])[] = [
  ['RECEIVED', 'from'],
  ['SENT', 'to'],
];

/** @param peer on that side. @param extent what else of its bytes counts. */
function wireRows<Side extends WireSide>(
  side: Side,
  peer: string,
  extent: string,
): Record<WireOperator<Side>, OperatorRow> {
  const kinds: readonly (readonly [WireKind, (way: string) => string])[] = [
    ['WIRE', (way) => `bytes ${way} on the wire: heads, bodies and what frames them${extent}`],
    ['HEADER', (way) => `heads and trailers ${way}, as HTTP/2 compresses them`],
    ['DECOMPRESSED_HEADER', () => 'the same as the text that HTTP/1 has'],
  ];
  const rows = kinds.flatMap(([kind, says]) =>
    WAYS.map(([direction, way]): readonly [string, OperatorRow] => [
      `${side}_${kind}_BYTES_${direction}`,
      { argument: 'none', says: says(`${way} the ${peer}`) },
    ]),
  );
  return Object.fromEntries(rows) as Record<WireOperator<Side>, OperatorRow>;
}

export const OPERATORS: Readonly<Record<FormatOperator, OperatorRow>> = {
  ACCESS_LOG_TYPE: { argument: 'none', says: 'what the entry is written for: `DownstreamEnd` and the like' },
  BYTES_RECEIVED: { argument: 'none', says: 'bytes of the body, or of the connection, from the client' },
  BYTES_RETRANSMITTED: { argument: 'none', says: '0: this build speaks no HTTP/3, which counts them' },
  BYTES_SENT: { argument: 'none', says: 'bytes of the body, or of the connection, to the client' },
  COMMON_DURATION: {
    argument: 'duration',
    says: 'time from one of the moments below to another, `COMMON_DURATION(DS_RX_BEG:US_TX_BEG:us)`, in `ms`, `us` or `ns`; none where one of them has not come, or the second came first',
  },
  CONNECTION_ID: { argument: 'none', says: 'number of the connection, for as long as the process lives' },
  CONNECTION_TERMINATION_DETAILS: { argument: 'none', says: 'why a filter has ended the connection' },
  ...wireRows('DOWNSTREAM', 'client', ''),
  DOWNSTREAM_HANDSHAKE_DURATION: {
    argument: 'none',
    says: "milliseconds from the accept of the client's connection to the end of its handshake",
  },
  DOWNSTREAM_DIRECT_LOCAL_ADDRESS: { argument: 'none', says: "address that the client's connection has come to" },
  DOWNSTREAM_DIRECT_LOCAL_ADDRESS_WITHOUT_PORT: { argument: 'none', says: 'the same without its port' },
  DOWNSTREAM_DIRECT_LOCAL_PORT: { argument: 'none', says: 'the port alone' },
  DOWNSTREAM_DIRECT_REMOTE_ADDRESS: {
    argument: 'none',
    says: "address of the connection's peer, whoever that says it speaks for",
  },
  DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT: { argument: 'none', says: 'the same without its port' },
  DOWNSTREAM_DIRECT_REMOTE_PORT: { argument: 'none', says: 'the port alone' },
  DOWNSTREAM_LOCAL_ADDRESS: {
    argument: 'none',
    says: 'address that the client meant, as a PROXY header or the system says',
  },
  DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT: { argument: 'none', says: 'the same without its port' },
  DOWNSTREAM_LOCAL_PORT: { argument: 'none', says: 'the port alone' },
  DOWNSTREAM_REMOTE_ADDRESS: { argument: 'none', says: 'address of the client, behind a PROXY header or trusted hops' },
  DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT: { argument: 'none', says: 'the same without its port' },
  DOWNSTREAM_REMOTE_PORT: { argument: 'none', says: 'the port alone' },
  DOWNSTREAM_LOCAL_DNS_SAN: { argument: 'none', says: 'DNS names of the certificate that the client was shown' },
  DOWNSTREAM_LOCAL_EMAIL_SAN: { argument: 'none', says: 'e-mail addresses of that certificate' },
  DOWNSTREAM_LOCAL_IP_SAN: { argument: 'none', says: 'IP addresses of that certificate' },
  DOWNSTREAM_LOCAL_SUBJECT: { argument: 'none', says: 'subject of that certificate' },
  DOWNSTREAM_LOCAL_URI_SAN: { argument: 'none', says: 'URIs of that certificate' },
  DOWNSTREAM_PEER_CERT: { argument: 'none', says: "the client's certificate, PEM, percent-encoded" },
  DOWNSTREAM_PEER_CERT_V_END: { argument: 'time', says: 'when it ceases to be valid' },
  DOWNSTREAM_PEER_CERT_V_START: { argument: 'time', says: 'when it begins to be valid' },
  DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_1: {
    argument: 'none',
    says: 'SHA-1 fingerprints of it and of those that it has come with, from its own on',
  },
  DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_256: { argument: 'none', says: 'their SHA-256 fingerprints' },
  DOWNSTREAM_PEER_CHAIN_SERIALS: { argument: 'none', says: 'their serial numbers' },
  DOWNSTREAM_PEER_DNS_SAN: { argument: 'none', says: 'its DNS names' },
  DOWNSTREAM_PEER_EMAIL_SAN: { argument: 'none', says: 'its e-mail addresses' },
  DOWNSTREAM_PEER_FINGERPRINT_1: { argument: 'none', says: 'its SHA-1 fingerprint, in hexadecimal digits' },
  DOWNSTREAM_PEER_FINGERPRINT_256: { argument: 'none', says: 'its SHA-256 fingerprint' },
  DOWNSTREAM_PEER_IP_SAN: { argument: 'none', says: 'its IP addresses' },
  DOWNSTREAM_PEER_ISSUER: { argument: 'none', says: 'its issuer' },
  DOWNSTREAM_PEER_SERIAL: { argument: 'none', says: 'its serial number, in hexadecimal digits' },
  DOWNSTREAM_PEER_SUBJECT: { argument: 'none', says: 'its subject' },
  DOWNSTREAM_PEER_URI_SAN: { argument: 'none', says: 'its URIs' },
  DOWNSTREAM_TLS_CIPHER: { argument: 'none', says: "cipher suite of the client's connection, as OpenSSL calls it" },
  DOWNSTREAM_TLS_SESSION_ID: { argument: 'none', says: 'identifier of its TLS session, in hexadecimal digits' },
  DOWNSTREAM_TLS_VERSION: { argument: 'none', says: 'its version of TLS: `TLSv1.3`' },
  DOWNSTREAM_TRANSPORT_FAILURE_REASON: { argument: 'none', says: "why the client's connection could not be secured" },
  DURATION: { argument: 'none', says: 'milliseconds from the start to the end' },
  EMIT_TIME: { argument: 'time', says: 'when the entry is written' },
  EMIT_TIME_LOCAL: { argument: 'time', says: "the same in the machine's time zone" },
  FILTER_CHAIN_NAME: { argument: 'none', says: 'name of the filter chain' },
  FILTER_STATE: {
    argument: 'state',
    says: 'what filters have said of the request under this name, else network filters of the connection: `FILTER_STATE(name)` as JSON, `FILTER_STATE(name:PLAIN)` as text',
  },
  GRPC_STATUS: {
    argument: 'style',
    says: 'how a call of gRPC has ended, `CAMEL_STRING` unless `SNAKE_STRING` or `NUMBER` is asked for',
  },
  GRPC_STATUS_NUMBER: { argument: 'none', says: 'the same as a number' },
  LOCAL_REPLY_BODY: { argument: 'none', says: "text of a response of the proxy's own, before a format words it" },
  METADATA: {
    argument: 'metadata',
    says: 'value in the metadata of one of the sources below: `METADATA(ROUTE:namespace:key:key)`',
  },
  PACKETS_RETRANSMITTED: { argument: 'none', says: '0, as `BYTES_RETRANSMITTED`' },
  PATH: {
    argument: 'path',
    says: 'path of the request, with its query (`WQ`) or without (`NQ`), from `x-envoy-original-path` (`ORIG`), from `:path` (`PATH`), or from the first of the two that is there (`ORIG_OR_PATH`): `PATH(NQ:ORIG)`; all of it without an argument',
  },
  PROTOCOL: { argument: 'none', says: '`HTTP/1.1`, `HTTP/2`, `HTTP/1.0`' },
  QUERY_PARAM: { argument: 'name', says: 'value of a parameter in the query' },
  QUERY_PARAMS: {
    argument: 'query',
    says: 'the whole query, as it came (`ORIG`, or without an argument) or with percent-encoding undone (`DECODED`)',
  },
  REQ: { argument: 'header', says: 'header of the request, or `:method`, `:path`, `:authority`, `:scheme`' },
  REQ_WITHOUT_QUERY: { argument: 'header', says: 'the same up to the first `?` in it' },
  REQUEST_DURATION: { argument: 'none', says: 'milliseconds from the start to the last byte of the request' },
  REQUEST_HEADERS_BYTES: { argument: 'none', says: "bytes of the request's head" },
  REQUEST_TX_DURATION: { argument: 'none', says: 'milliseconds from the start to the last byte to the upstream' },
  REQUESTED_SERVER_NAME: {
    argument: 'server',
    says: "host that the client's TLS has named (`SNI_ONLY`, or without an argument), else that of the request (`SNI_FIRST`), or that of the request alone (`HOST_FIRST`), from `x-envoy-original-host` (`ORIG`), from `:authority` (`HOST`), or from the first of the two that is there (`ORIG_OR_HOST`): `REQUESTED_SERVER_NAME(SNI_FIRST:HOST)`",
  },
  RESP: { argument: 'header', says: 'header of the response, or `:status`' },
  RESPONSE_CODE: { argument: 'none', says: 'status of the response, 0 for none' },
  RESPONSE_CODE_DETAILS: { argument: 'none', says: 'who has answered, and why: `via_upstream`' },
  RESPONSE_DURATION: {
    argument: 'none',
    says: "milliseconds from the start to the first byte of the upstream's response",
  },
  RESPONSE_FLAGS: { argument: 'none', says: 'what went wrong, in short: `UH,UF`' },
  RESPONSE_FLAGS_LONG: { argument: 'none', says: 'the same in words' },
  RESPONSE_HEADERS_BYTES: { argument: 'none', says: "bytes of the response's head" },
  RESPONSE_TRAILERS_BYTES: { argument: 'none', says: "bytes of the response's trailers" },
  RESPONSE_TX_DURATION: {
    argument: 'none',
    says: "milliseconds from the upstream's first byte to the last byte to the client",
  },
  ROUTE_NAME: { argument: 'none', says: 'name of the route' },
  SPAN_ID: { argument: 'none', says: "identifier of the request's span" },
  START_TIME: { argument: 'time', says: 'when the request or the connection began' },
  START_TIME_LOCAL: { argument: 'time', says: "the same in the machine's time zone" },
  STREAM_ID: { argument: 'none', says: 'identifier of the request, its `x-request-id` where that is one' },
  TLS_JA3_FINGERPRINT: { argument: 'none', says: 'JA3 fingerprint of the client, where `tls_inspector` makes one' },
  TLS_JA4_FINGERPRINT: { argument: 'none', says: 'the same of JA4' },
  TRACE_ID: { argument: 'none', says: "identifier of the request's trace" },
  TRAILER: { argument: 'header', says: 'trailer of the response' },
  UNIQUE_ID: { argument: 'none', says: 'an identifier of the entry alone, a new one each time' },
  UPSTREAM_CLUSTER: { argument: 'none', says: 'cluster that was chosen' },
  UPSTREAM_CLUSTER_RAW: { argument: 'none', says: 'the same' },
  ...wireRows('UPSTREAM', 'upstream', ', of all attempts; in `upstream_log` of the one'),
  UPSTREAM_CONNECTION_ID: { argument: 'none', says: 'number of the connection to the host, as `CONNECTION_ID`' },
  UPSTREAM_CONNECTION_IDS_ATTEMPTED: {
    argument: 'none',
    says: 'the same of all attempts, with commas between them',
  },
  UPSTREAM_CONNECTION_POOL_READY_DURATION: {
    argument: 'none',
    says: 'milliseconds from the choice of the host to a connection to it, made or found',
  },
  UPSTREAM_HOST: { argument: 'none', says: 'address of the host' },
  UPSTREAM_HOST_NAME: { argument: 'none', says: 'name of the host, else its address' },
  UPSTREAM_HOST_NAME_WITHOUT_PORT: { argument: 'none', says: 'the same without a port' },
  UPSTREAM_HOST_NAMES_ATTEMPTED: {
    argument: 'none',
    says: 'names of the hosts of all attempts, else their addresses, with commas between them',
  },
  UPSTREAM_HOST_NAMES_ATTEMPTED_WITHOUT_PORT: { argument: 'none', says: 'the same without ports' },
  UPSTREAM_HOSTS_ATTEMPTED: {
    argument: 'none',
    says: 'addresses of the hosts of all attempts, with commas between them',
  },
  UPSTREAM_HOSTS_ATTEMPTED_WITHOUT_PORT: { argument: 'none', says: 'the same without ports' },
  UPSTREAM_LOCAL_ADDRESS: { argument: 'none', says: "the proxy's own address on the way to the host" },
  UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT: { argument: 'none', says: 'the same without its port' },
  UPSTREAM_LOCAL_PORT: { argument: 'none', says: 'the port alone' },
  UPSTREAM_PEER_CERT: { argument: 'none', says: "the host's certificate, PEM, percent-encoded" },
  UPSTREAM_PEER_CERT_V_END: { argument: 'time', says: 'when it ceases to be valid' },
  UPSTREAM_PEER_CERT_V_START: { argument: 'time', says: 'when it begins to be valid' },
  UPSTREAM_PEER_DNS_SAN: { argument: 'none', says: 'its DNS names' },
  UPSTREAM_PEER_EMAIL_SAN: { argument: 'none', says: 'its e-mail addresses' },
  UPSTREAM_PEER_IP_SAN: { argument: 'none', says: 'its IP addresses' },
  UPSTREAM_PEER_ISSUER: { argument: 'none', says: 'its issuer' },
  UPSTREAM_PEER_SUBJECT: { argument: 'none', says: 'its subject' },
  UPSTREAM_PEER_URI_SAN: { argument: 'none', says: 'its URIs' },
  UPSTREAM_PROTOCOL: { argument: 'none', says: 'protocol spoken with the host' },
  UPSTREAM_REMOTE_ADDRESS: { argument: 'none', says: 'address of the host' },
  UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT: { argument: 'none', says: 'the same without its port' },
  UPSTREAM_REMOTE_PORT: { argument: 'none', says: 'the port alone' },
  UPSTREAM_REQUEST_ATTEMPT_COUNT: { argument: 'none', says: 'attempts upstream, the first included' },
  UPSTREAM_TLS_CIPHER: { argument: 'none', says: "cipher suite of the host's connection" },
  UPSTREAM_TLS_SESSION_ID: { argument: 'none', says: 'identifier of its TLS session, in hexadecimal digits' },
  UPSTREAM_TLS_VERSION: { argument: 'none', says: 'its version of TLS' },
  UPSTREAM_TRANSPORT_FAILURE_REASON: { argument: 'none', says: 'why the host could not be connected to, or secured' },
  VIRTUAL_CLUSTER_NAME: { argument: 'none', says: 'name of the virtual cluster' },
  VIRTUAL_HOST_NAME: { argument: 'none', says: 'name of the virtual host' },
};

/** Whose metadata METADATA can name. */
export const METADATA_SOURCES: readonly MetadataSource[] = [
  'CLUSTER',
  'DYNAMIC',
  'LISTENER',
  'LISTENER_FILTER_CHAIN',
  'ROUTE',
  'UPSTREAM_HOST',
  'VIRTUAL_HOST',
];

/** Operators whose names say whose metadata they mean. */
export const METADATA_OPERATORS: ReadonlyMap<string, MetadataSource> = new Map([
  ['CLUSTER_METADATA', 'CLUSTER'],
  ['DYNAMIC_METADATA', 'DYNAMIC'],
  ['UPSTREAM_METADATA', 'UPSTREAM_HOST'],
]);

/** The moments of COMMON_DURATION, and what they are. */
export const MOMENTS: Readonly<Record<Moment, string>> = {
  DS_CX_BEG: "the client's connection has been accepted",
  DS_HS_END: 'its handshake is over',
  DS_RX_BEG: 'the request begins',
  DS_RX_END: 'it has come in full',
  US_CX_BEG: "the upstream's connection has been begun, perhaps for a request before this one",
  US_CX_END: 'it is connected',
  US_HS_END: 'its handshake is over',
  US_TX_BEG: 'the request goes out',
  US_TX_END: 'its last byte goes out',
  US_RX_BEG: 'the response begins',
  US_RX_BODY_BEG: 'its body begins',
  US_RX_END: 'it has come in full',
  DS_TX_BEG: 'the response, or a reply of the proxy, goes to the client',
  DS_TX_END: 'its last byte does',
};
export const PRECISIONS: readonly DurationPrecision[] = ['ms', 'us', 'ns'];

/**
 * Operators of what there is not here, always missing: filter state that requests and upstreams have, endpoints within a process, round trips of
 * HTTP/3, flags of filters' own, ways in which sockets have been closed.
 */
export const ABSENT_OPERATORS: ReadonlySet<string> = new Set([
  'CUSTOM_FLAGS',
  'DOWNSTREAM_DETECTED_CLOSE_TYPE',
  'DOWNSTREAM_DIRECT_LOCAL_ADDRESS_ENDPOINT_ID',
  'DOWNSTREAM_DIRECT_REMOTE_ADDRESS_ENDPOINT_ID',
  'DOWNSTREAM_LOCAL_ADDRESS_ENDPOINT_ID',
  'DOWNSTREAM_LOCAL_CLOSE_REASON',
  'DOWNSTREAM_REMOTE_ADDRESS_ENDPOINT_ID',
  'PER_REQUEST_STATE',
  'ROUNDTRIP_DURATION',
  'UPSTREAM_DETECTED_CLOSE_TYPE',
  'UPSTREAM_FILTER_STATE',
  'UPSTREAM_LOCAL_ADDRESS_ENDPOINT_ID',
  'UPSTREAM_LOCAL_CLOSE_REASON',
  'UPSTREAM_REMOTE_ADDRESS_ENDPOINT_ID',
]);

/** Operators whose values are known as soon as the configuration is: they become text at once. */
export const SETTLED_OPERATORS: Readonly<Record<'ENVIRONMENT' | 'HOSTNAME', OperatorRow>> = {
  ENVIRONMENT: { argument: 'name', says: 'value of a variable of the environment when the configuration is read' },
  HOSTNAME: { argument: 'none', says: 'name of the machine' },
};
