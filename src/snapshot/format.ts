// Format strings with command operators (`%REQ(:PATH)%`), taken apart by the configuration so that workers have
// nothing left to parse. Access log lines, JSON log entries and header values are all made of these.

export type WireSide = 'DOWNSTREAM' | 'UPSTREAM';
export type WireKind = 'WIRE' | 'HEADER' | 'DECOMPRESSED_HEADER';
export type WireDirection = 'RECEIVED' | 'SENT';

/** Operators of what one side has sent and received. */
export type WireOperator<Side extends WireSide> = `${Side}_${WireKind}_BYTES_${WireDirection}`;

/** Operators that this build can fill in. */
export type FormatOperator =
  | WireOperator<WireSide>
  | 'ACCESS_LOG_TYPE'
  | 'BYTES_RECEIVED'
  | 'BYTES_RETRANSMITTED'
  | 'BYTES_SENT'
  | 'COMMON_DURATION'
  | 'CONNECTION_ID'
  | 'CONNECTION_TERMINATION_DETAILS'
  | 'DOWNSTREAM_HANDSHAKE_DURATION'
  | 'DOWNSTREAM_DIRECT_LOCAL_ADDRESS'
  | 'DOWNSTREAM_DIRECT_LOCAL_ADDRESS_WITHOUT_PORT'
  | 'DOWNSTREAM_DIRECT_LOCAL_PORT'
  | 'DOWNSTREAM_DIRECT_REMOTE_ADDRESS'
  | 'DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT'
  | 'DOWNSTREAM_DIRECT_REMOTE_PORT'
  | 'DOWNSTREAM_LOCAL_ADDRESS'
  | 'DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT'
  | 'DOWNSTREAM_LOCAL_PORT'
  | 'DOWNSTREAM_REMOTE_ADDRESS'
  | 'DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT'
  | 'DOWNSTREAM_REMOTE_PORT'
  | 'DOWNSTREAM_LOCAL_DNS_SAN'
  | 'DOWNSTREAM_LOCAL_EMAIL_SAN'
  | 'DOWNSTREAM_LOCAL_IP_SAN'
  | 'DOWNSTREAM_LOCAL_SUBJECT'
  | 'DOWNSTREAM_LOCAL_URI_SAN'
  | 'DOWNSTREAM_PEER_CERT'
  | 'DOWNSTREAM_PEER_CERT_V_END'
  | 'DOWNSTREAM_PEER_CERT_V_START'
  | 'DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_1'
  | 'DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_256'
  | 'DOWNSTREAM_PEER_CHAIN_SERIALS'
  | 'DOWNSTREAM_PEER_DNS_SAN'
  | 'DOWNSTREAM_PEER_EMAIL_SAN'
  | 'DOWNSTREAM_PEER_FINGERPRINT_1'
  | 'DOWNSTREAM_PEER_FINGERPRINT_256'
  | 'DOWNSTREAM_PEER_IP_SAN'
  | 'DOWNSTREAM_PEER_ISSUER'
  | 'DOWNSTREAM_PEER_SERIAL'
  | 'DOWNSTREAM_PEER_SUBJECT'
  | 'DOWNSTREAM_PEER_URI_SAN'
  | 'DOWNSTREAM_TLS_CIPHER'
  | 'DOWNSTREAM_TLS_SESSION_ID'
  | 'DOWNSTREAM_TLS_VERSION'
  | 'DOWNSTREAM_TRANSPORT_FAILURE_REASON'
  | 'DURATION'
  | 'EMIT_TIME'
  | 'EMIT_TIME_LOCAL'
  | 'FILTER_CHAIN_NAME'
  | 'FILTER_STATE'
  | 'GRPC_STATUS'
  | 'GRPC_STATUS_NUMBER'
  | 'LOCAL_REPLY_BODY'
  | 'METADATA'
  | 'PACKETS_RETRANSMITTED'
  | 'PATH'
  | 'PROTOCOL'
  | 'QUERY_PARAM'
  | 'QUERY_PARAMS'
  | 'REQ'
  | 'REQ_WITHOUT_QUERY'
  | 'REQUEST_DURATION'
  | 'REQUEST_HEADERS_BYTES'
  | 'REQUEST_TX_DURATION'
  | 'REQUESTED_SERVER_NAME'
  | 'RESP'
  | 'RESPONSE_CODE'
  | 'RESPONSE_CODE_DETAILS'
  | 'RESPONSE_DURATION'
  | 'RESPONSE_FLAGS'
  | 'RESPONSE_FLAGS_LONG'
  | 'RESPONSE_HEADERS_BYTES'
  | 'RESPONSE_TRAILERS_BYTES'
  | 'RESPONSE_TX_DURATION'
  | 'ROUTE_NAME'
  | 'SPAN_ID'
  | 'START_TIME'
  | 'START_TIME_LOCAL'
  | 'STREAM_ID'
  | 'TLS_JA3_FINGERPRINT'
  | 'TLS_JA4_FINGERPRINT'
  | 'TRACE_ID'
  | 'TRAILER'
  | 'UNIQUE_ID'
  | 'UPSTREAM_CLUSTER'
  | 'UPSTREAM_CLUSTER_RAW'
  | 'UPSTREAM_CONNECTION_ID'
  | 'UPSTREAM_CONNECTION_IDS_ATTEMPTED'
  | 'UPSTREAM_CONNECTION_POOL_READY_DURATION'
  | 'UPSTREAM_HOST'
  | 'UPSTREAM_HOST_NAME'
  | 'UPSTREAM_HOST_NAME_WITHOUT_PORT'
  | 'UPSTREAM_HOST_NAMES_ATTEMPTED'
  | 'UPSTREAM_HOST_NAMES_ATTEMPTED_WITHOUT_PORT'
  | 'UPSTREAM_HOSTS_ATTEMPTED'
  | 'UPSTREAM_HOSTS_ATTEMPTED_WITHOUT_PORT'
  | 'UPSTREAM_LOCAL_ADDRESS'
  | 'UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT'
  | 'UPSTREAM_LOCAL_PORT'
  | 'UPSTREAM_PEER_CERT'
  | 'UPSTREAM_PEER_CERT_V_END'
  | 'UPSTREAM_PEER_CERT_V_START'
  | 'UPSTREAM_PEER_DNS_SAN'
  | 'UPSTREAM_PEER_EMAIL_SAN'
  | 'UPSTREAM_PEER_IP_SAN'
  | 'UPSTREAM_PEER_ISSUER'
  | 'UPSTREAM_PEER_SUBJECT'
  | 'UPSTREAM_PEER_URI_SAN'
  | 'UPSTREAM_PROTOCOL'
  | 'UPSTREAM_REMOTE_ADDRESS'
  | 'UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT'
  | 'UPSTREAM_REMOTE_PORT'
  | 'UPSTREAM_REQUEST_ATTEMPT_COUNT'
  | 'UPSTREAM_TLS_CIPHER'
  | 'UPSTREAM_TLS_SESSION_ID'
  | 'UPSTREAM_TLS_VERSION'
  | 'UPSTREAM_TRANSPORT_FAILURE_REASON'
  | 'VIRTUAL_CLUSTER_NAME'
  | 'VIRTUAL_HOST_NAME';

/**
 * Moments of a request: `DS` are those of the client's side, `US` of the upstream's; `CX` is the connection, `HS` its handshake, `RX` what comes from
 * there, `TX` what goes there.
 */
export type Moment =
  | 'DS_CX_BEG'
  | 'DS_HS_END'
  | 'DS_RX_BEG'
  | 'DS_RX_END'
  | 'US_CX_BEG'
  | 'US_CX_END'
  | 'US_HS_END'
  | 'US_TX_BEG'
  | 'US_TX_END'
  | 'US_RX_BEG'
  | 'US_RX_BODY_BEG'
  | 'US_RX_END'
  | 'DS_TX_BEG'
  | 'DS_TX_END';

export type DurationPrecision = 'ms' | 'us' | 'ns';

/** One operator at its place in a format. */
export interface FormatCommand {
  /** ABSENT: an operator of something that this build does not have (filter state); it never has a value. */
  readonly operator: FormatOperator | 'ABSENT';
  /**
   * Header names in lower case, in order of preference; the parameter's name; the time's format; a style of names; a part
   * of the path and whose; where to look for the host that was asked for, and in which headers; two moments and a precision; or a MetadataSource, a namespace and the keys that lead to a value.
   */
  readonly args: readonly string[];
  /** Values are cut behind this many characters; 0 for no limit. */
  readonly maxLength: number;
}

/** Literal byte text (one character per byte of its UTF-8), or a command. */
export type FormatSegment = string | FormatCommand;

/** A parsed format string; adjacent literals are joined, and a literal is never empty. */
export type FormatSegments = readonly FormatSegment[];

/** The shape of one JSON log entry: constants, and strings that hold commands. */
export type JsonFormat =
  | { readonly kind: 'constant'; readonly value: number | boolean | null }
  | { readonly kind: 'text'; readonly segments: FormatSegments }
  | { readonly kind: 'list'; readonly items: readonly JsonFormat[] }
  /** Keys in the order in which they are written. */
  | { readonly kind: 'object'; readonly entries: readonly (readonly [key: string, value: JsonFormat])[] };

/** What a substitution format says of a whole line. */
export interface LineFormat {
  readonly content:
    | { readonly kind: 'text'; readonly segments: FormatSegments }
    /** `isTyped`: numbers are written as numbers, and what is missing as null. */
    | { readonly kind: 'json'; readonly root: JsonFormat; readonly isTyped: boolean };
  /** What has no value is left out instead of written as `-`. */
  readonly omitEmptyValues: boolean;
}

/** Words the body of a reply of the proxy's own. */
export interface ReplyFormat {
  readonly line: LineFormat;
  readonly contentType: string;
}
