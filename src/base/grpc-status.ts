// Status codes of gRPC: their names, the texts that travel in `grpc-status` and `grpc-message`, and what they mean in HTTP.

import { utf8Bytes } from './byte-text.ts';

export const GrpcStatus = {
  ok: 0,
  canceled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  alreadyExists: 6,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  outOfRange: 11,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  dataLoss: 15,
  unauthenticated: 16,
} as const;

/** What cannot be read as a status. */
export const INVALID_GRPC_STATUS = -1;

interface StatusRow {
  readonly camel: string;
  readonly snake: string;
  readonly http: number;
}

/** By code. Logs spell one of them in two ways. */
const ROWS: readonly StatusRow[] = [
  { camel: 'OK', snake: 'OK', http: 200 },
  { camel: 'Canceled', snake: 'CANCELLED', http: 499 },
  { camel: 'Unknown', snake: 'UNKNOWN', http: 500 },
  { camel: 'InvalidArgument', snake: 'INVALID_ARGUMENT', http: 400 },
  { camel: 'DeadlineExceeded', snake: 'DEADLINE_EXCEEDED', http: 504 },
  { camel: 'NotFound', snake: 'NOT_FOUND', http: 404 },
  { camel: 'AlreadyExists', snake: 'ALREADY_EXISTS', http: 409 },
  { camel: 'PermissionDenied', snake: 'PERMISSION_DENIED', http: 403 },
  { camel: 'ResourceExhausted', snake: 'RESOURCE_EXHAUSTED', http: 429 },
  { camel: 'FailedPrecondition', snake: 'FAILED_PRECONDITION', http: 400 },
  { camel: 'Aborted', snake: 'ABORTED', http: 409 },
  { camel: 'OutOfRange', snake: 'OUT_OF_RANGE', http: 400 },
  { camel: 'Unimplemented', snake: 'UNIMPLEMENTED', http: 501 },
  { camel: 'Internal', snake: 'INTERNAL', http: 500 },
  { camel: 'Unavailable', snake: 'UNAVAILABLE', http: 503 },
  { camel: 'DataLoss', snake: 'DATA_LOSS', http: 500 },
  { camel: 'Unauthenticated', snake: 'UNAUTHENTICATED', http: 401 },
];

const OF_HTTP: ReadonlyMap<number, number> = new Map([
  [400, GrpcStatus.internal],
  [401, GrpcStatus.unauthenticated],
  [403, GrpcStatus.permissionDenied],
  [404, GrpcStatus.unimplemented],
  [429, GrpcStatus.unavailable],
  [502, GrpcStatus.unavailable],
  [503, GrpcStatus.unavailable],
  [504, GrpcStatus.unavailable],
]);

/** What a gRPC client makes of an HTTP status that comes without one of gRPC (doc/http-grpc-status-mapping.md of gRPC). */
export function grpcStatusOfHttp(status: number): number {
  return OF_HTTP.get(status) ?? GrpcStatus.unknown;
}

/** The HTTP status that says most nearly the same; 500 for codes that nobody knows. */
export function httpStatusOfGrpc(status: number): number {
  return ROWS[status]?.http ?? 500;
}

/** A `grpc-status`; INVALID_GRPC_STATUS for anything but a number. Codes beyond those with names are read as they are. */
export function readGrpcStatus(text: string): number {
  return /^\d{1,9}$/.test(text) ? Number(text) : INVALID_GRPC_STATUS;
}

/** As logs name it; the number itself where it has no name. */
export function grpcStatusName(status: number, style: 'camel' | 'snake'): string {
  return ROWS[status]?.[style] ?? String(status);
}

/** Longest message, in bytes of UTF-8: what is put into a header has to fit there. */
const MAX_MESSAGE_BYTES = 4096;
const PLAIN = /^[ -$&-~]*$/;

/** A `grpc-message`: bytes of UTF-8, those beyond printable ASCII and `%` as `%XX`. Cut when it is long. */
export function grpcMessage(text: string): string {
  const bytes = wholeCharacters(utf8Bytes(text));
  return PLAIN.test(bytes)
    ? bytes
    : bytes.replace(/[^ -$&-~]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`);
}

/** The beginning of byte text that is long, without half a character at its end. */
function wholeCharacters(bytes: string): string {
  if (bytes.length <= MAX_MESSAGE_BYTES) return bytes;
  let end = MAX_MESSAGE_BYTES;
  while ((bytes.charCodeAt(end) & 0xc0) === 0x80) end -= 1;
  return bytes.slice(0, end);
}
