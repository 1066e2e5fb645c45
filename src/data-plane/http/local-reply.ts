// Answers that the proxy gives itself, as the reference words them. Every error of the HTTP path becomes a response
// here and nowhere else. `flag` and `details` say in access logs why.

import { GrpcStatus, grpcMessage, grpcStatusOfHttp } from '../../base/grpc-status.ts';
import { STATUS_CODES } from '../../base/node-http.ts';
import type { ResponseFlagName } from '../response-flags.ts';
import type { EditableHead } from '../route/header-editor.ts';
import type { UpstreamFailure } from '../upstream/pool/failure.ts';
import type { BodyFormat } from './body-format.ts';

/** Short name of a response flag; '-' for none. */
export type ResponseFlag = ResponseFlagName | '-';

export interface LocalReply {
  readonly status: number;
  readonly body: string;
  /** What is sent as body, when it need not be text; `body` is then for logs. */
  readonly bytes?: Buffer;
  /** Of a body that a connection manager has worded; others are text/plain, unless their route says more of them. */
  readonly contentType?: string;
  /** Words the body when the reply goes out; `body` is what it may ask for. */
  readonly format?: BodyFormat;
  readonly flag: ResponseFlag;
  readonly details: string;
  /** Adds what the filter that has made it wants of its head, before other filters see it. */
  readonly editHead?: (head: EditableHead) => void;
  /** A filter says its whole head: nothing words it anew. */
  readonly isWhole?: true;
  /** In place of an answer, where the protocol can break off a single stream. */
  readonly isReset?: boolean;
  /** Tells well-behaved callers to back off: a limit was met, not a fault. */
  readonly isOverload?: boolean;
  /** This proxy itself has no means left. */
  readonly isLocalOverload?: boolean;
  /** Of what the load assignment has dropped. */
  readonly isDropOverload?: boolean;
  /** For clients of gRPC, in place of what the status stands for. */
  readonly grpcStatus?: number;
  /** Where a redirect leads. */
  readonly location?: string;
  /** The protocol that the client has to speak instead (RFC 9110 section 15.5.22). */
  readonly upgrade?: string;
  /** For a client that speaks gRPC: what its trailers would say stands in the head, and `body` is for logs alone. */
  readonly grpc?: { readonly status: number; readonly message: string };
}

/** In which form a client wants to hear of replies. */
export const ReplyForm = {
  http: 0,
  /** All answers are 200 and say more in `grpc-status`. */
  grpc: 1,
  /** The same beside the status of HTTP: for what stands between a client of HTTP and an upstream of gRPC. */
  both: 2,
} as const;
export type ReplyForm = (typeof ReplyForm)[keyof typeof ReplyForm];

export const NO_ROUTE: LocalReply = { status: 404, body: '', flag: 'NR', details: 'route_not_found' };
export const UPGRADE_FAILED: LocalReply = { status: 403, body: '', flag: '-', details: 'upgrade_failed' };
export const EXPECTATION_FAILED: LocalReply = {
  status: 417,
  body: '',
  flag: '-',
  details: 'expectation_not_supported',
};
export const HOST_MISSING: LocalReply = { status: 400, body: '', flag: '-', details: 'missing_host_header' };
/** HTTP/1.0, where it is not accepted. */
export const VERSION_TOO_LOW: LocalReply = {
  status: 426,
  body: '',
  flag: '-',
  details: 'low_version',
  upgrade: 'HTTP/1.1',
};
export const NO_HEALTHY_UPSTREAM: LocalReply = {
  status: 503,
  body: 'no healthy upstream',
  flag: 'UH',
  details: 'no_healthy_upstream',
};
/** Of the host that a client of a forward proxy has named. */
export const DNS_FAILURE: LocalReply = {
  status: 503,
  body: 'DNS resolution failure',
  flag: 'DF',
  details: 'dns_resolution_failure',
};
export const MAINTENANCE: LocalReply = {
  status: 503,
  body: 'maintenance mode',
  flag: 'UO',
  details: 'maintenance_mode',
  isOverload: true,
};
export const DROPPED_OVERLOAD: LocalReply = {
  status: 503,
  body: 'drop overload',
  flag: 'DO',
  details: 'drop_overload',
  isDropOverload: true,
};
/** By order of the overload manager. */
export const OVERLOADED: LocalReply = {
  status: 503,
  body: 'proxy overloaded',
  flag: 'OM',
  details: 'overload',
  isLocalOverload: true,
};
export const DISPATCH_ABORTED: LocalReply = { ...OVERLOADED, status: 500 };
export const TOO_EXPENSIVE: LocalReply = { ...OVERLOADED, details: 'overload_manager_reset' };
export const ROUTE_TIMEOUT: LocalReply = {
  status: 504,
  body: 'upstream request timeout',
  flag: 'UT',
  details: 'response_timeout',
};
export const PER_TRY_TIMEOUT: LocalReply = { ...ROUTE_TIMEOUT, details: 'upstream_per_try_timeout' };
export const PER_TRY_IDLE_TIMEOUT: LocalReply = { ...ROUTE_TIMEOUT, details: 'upstream_per_try_idle_timeout' };
export const REPLAY_ABANDONED: LocalReply = {
  status: 507,
  body: 'exceeded request buffer limit while retrying upstream',
  flag: '-',
  details: 'request_payload_exceeded_retry_buffer_limit',
};
export const MAX_STREAM_DURATION: LocalReply = {
  status: 504,
  body: 'upstream max stream duration reached',
  flag: 'UMSDR',
  details: 'upstream_max_stream_duration_reached',
};
/** The same while the client has not sent all of its request. */
export const MAX_STREAM_DURATION_REQUEST: LocalReply = { ...MAX_STREAM_DURATION, status: 408 };
/** By the limit of the connection manager, or that of the route in its place. A caller of gRPC has set itself such a time. */
export const DOWNSTREAM_DURATION: LocalReply = {
  status: 504,
  body: 'downstream duration timeout',
  flag: '-',
  details: 'max_duration_timeout',
  grpcStatus: GrpcStatus.deadlineExceeded,
};
/** The same while the client has not sent all of its request. */
export const DOWNSTREAM_DURATION_REQUEST: LocalReply = { ...DOWNSTREAM_DURATION, status: 408 };
export const REQUEST_TIMEOUT: LocalReply = {
  status: 408,
  body: 'request timeout',
  flag: '-',
  details: 'request_overall_timeout',
};
export const HEADERS_TIMEOUT: LocalReply = {
  status: 408,
  body: 'request header timeout',
  flag: '-',
  details: 'request_header_timeout',
};
export const STREAM_IDLE_REQUEST: LocalReply = {
  status: 408,
  body: 'stream timeout',
  flag: 'SI',
  details: 'stream_idle_timeout',
};
export const STREAM_IDLE_RESPONSE: LocalReply = {
  status: 504,
  body: 'stream timeout',
  flag: 'SI',
  details: 'stream_idle_timeout',
};
/** More of a request, or of a response, than filters may hold up. */
export const REQUEST_HELD_TOO_LARGE: LocalReply = {
  status: 413,
  body: 'Payload Too Large',
  flag: '-',
  details: 'request_payload_too_large',
};
export const RESPONSE_HELD_TOO_LARGE: LocalReply = {
  status: 500,
  body: 'Internal Server Error',
  flag: '-',
  details: 'response_payload_too_large',
};
/** A bug of a filter, contained. */
export const FILTER_FAULT: LocalReply = { status: 500, body: '', flag: '-', details: 'filter_fault' };
export const REWRITE_FAILED: LocalReply = { status: 500, body: '', flag: '-', details: 'rewritten_head_refused' };

/** The path has no normal form, or holds what it may not. */
export const PATH_INVALID: LocalReply = {
  status: 400,
  body: '',
  flag: '-',
  details: 'path_normalization_failed',
};
/** A name with an underscore where none is wanted. Over HTTP/2 the stream is reset with it. */
export const UNDERSCORE: Readonly<Record<'http1' | 'http2', LocalReply>> = {
  http1: { status: 400, body: 'Bad Request', flag: 'DPE', details: 'http1.unexpected_underscore' },
  http2: { status: 400, body: '', flag: 'DPE', details: 'http2.unexpected_underscore', isReset: true },
};

/** A header that steers the router makes no sense, and the router is told to mind. */
export function invalidControlHeader(name: string, value: string): LocalReply {
  return {
    status: 400,
    body: `invalid header '${name}' with value '${value}'`,
    flag: 'IH',
    details: `invalid_envoy_request_headers{${name}}`,
  };
}

/** The route names a cluster that this worker does not know. */
export function clusterNotFound(status: number): LocalReply {
  return { status, body: '', flag: 'NC', details: 'cluster_not_found' };
}

/** @param format null for a body that goes out as it is. */
export function directResponse(status: number, body: Uint8Array, format: BodyFormat | null): LocalReply {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const reply: LocalReply = { status, body: bytes.toString(), bytes, flag: '-', details: 'direct_response' };
  return format === null ? reply : { ...reply, format };
}

export function redirect(status: number, location: string): LocalReply {
  return { status, body: '', flag: '-', details: 'direct_response', location };
}

/** The client is to ask again, by the path in its normal form. @param path with its query. */
export function pathRedirect(path: string): LocalReply {
  // Two slashes would begin the name of another host (RFC 3986 section 4.2), and some read backslashes as slashes.
  const isAmbiguous = path.startsWith('//') || path.startsWith('/\\');
  return { ...PATH_INVALID, status: 307, location: isAmbiguous ? `/.${path}` : path };
}

/** What a client gets that has asked for no errors when its time is over. */
export function altResponse(timeout: LocalReply): LocalReply {
  return { ...timeout, status: 204, body: '' };
}

export function inForm(reply: LocalReply, form: ReplyForm): LocalReply {
  if (form === ReplyForm.http) return reply;
  const grpc = { status: reply.grpcStatus ?? grpcStatusOfHttp(reply.status), message: grpcMessage(messageOf(reply)) };
  return { ...reply, status: form === ReplyForm.grpc ? 200 : reply.status, grpc };
}

/** The last line of a worded body ends with the message. */
function messageOf({ body, bytes, contentType }: LocalReply): string {
  return bytes === undefined || contentType === undefined ? body : bytes.toString().replace(/\n$/, '');
}

/** A request that broke HTTP: the reason is the codec's. */
export function protocolViolation(status: number, reason: string): LocalReply {
  return { status, body: STATUS_CODES[status] ?? '', flag: 'DPE', details: `http1.codec_error{${reason}}` };
}

const FLAG_BY_FAILURE: Readonly<Record<UpstreamFailure, ResponseFlag>> = {
  overflow: 'UO',
  'local connection failure': 'UF',
  'remote connection failure': 'UF',
  'connection timeout': 'UF',
  'connection termination': 'UC',
  'local reset': 'LR',
  'remote reset': 'UR',
  'remote refused stream reset': 'UR',
  'protocol error': 'UPE',
};

export function failureFlag(failure: UpstreamFailure): ResponseFlag {
  return FLAG_BY_FAILURE[failure];
}

/**
 * The upstream failed before its response began.
 * @param transport what the socket said, or empty.
 */
export function upstreamReset(failure: UpstreamFailure, transport: string, wasRetried: boolean): LocalReply {
  const retried = wasRetried ? 'retried and the latest ' : '';
  const reason = transport === '' ? '' : `, transport failure reason: ${transport}`;
  return {
    status: failure === 'protocol error' ? 502 : 503,
    body: `upstream connect error or disconnect/reset before headers. ${retried}reset reason: ${failure}${reason}`,
    flag: FLAG_BY_FAILURE[failure],
    details: `upstream_reset_before_response_started{${[failure, transport].filter(Boolean).join(',').replaceAll(' ', '_')}}`,
    isOverload: failure === 'overflow',
  };
}

/**
 * The lines of the reply's head, without the empty one behind them.
 * @param ownLines what every reply of this connection manager has (ResponseLines.local).
 * @param extraLines complete lines such as `retry-after: 1\r\n`.
 */
export function localReplyLines(reply: LocalReply, ownLines: string, date: string, extraLines: string): string {
  return `${statusLine(reply.status)}${replyFields(reply)}date: ${date}\r\n${ownLines}${extraLines}`;
}

export function statusLine(status: number): string {
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`;
}

/** The lines that describe the reply itself. */
export function replyFields(reply: LocalReply): string {
  const location = reply.location === undefined ? '' : `location: ${reply.location}\r\n`;
  const upgrade = reply.upgrade === undefined ? '' : `upgrade: ${reply.upgrade}\r\nconnection: upgrade\r\n`;
  return lengthField(reply) + typeFields(reply) + location + upgrade;
}

/** A status without a body must not announce one (RFC 9110 section 8.6). */
export function lengthField(reply: LocalReply): string {
  if (!mayHaveBody(reply.status)) return '';
  return `content-length: ${hasBody(reply) ? bodyLength(reply) : 0}\r\n`;
}

/** What the body is, or what is said in its place. */
export function typeFields(reply: LocalReply): string {
  if (reply.grpc !== undefined) return grpcFields(reply.grpc);
  return hasBody(reply) ? `content-type: ${reply.contentType ?? 'text/plain'}\r\n` : '';
}

function grpcFields({ status, message }: NonNullable<LocalReply['grpc']>): string {
  const line = message === '' ? '' : `grpc-message: ${message}\r\n`;
  return `content-type: application/grpc\r\ngrpc-status: ${status}\r\n${line}`;
}

/** The reply has a body, if its request may be answered with one. */
export function hasBody(reply: LocalReply): boolean {
  return bodyLength(reply) > 0 && reply.grpc === undefined && mayHaveBody(reply.status);
}

function bodyLength({ body, bytes }: LocalReply): number {
  return bytes?.length ?? Buffer.byteLength(body);
}

export function mayHaveBody(status: number): boolean {
  return status >= 200 && status !== 204 && status !== 304;
}
