// The numbers that the HTTP/1 codec and its callers exchange, by name: methods, framings, flags, errors.

import * as layout from '../../../assembly/layout/http1.ts';

/** Ids of the methods that weir treats by name; any other token is OTHER. */
export const Method = {
  OTHER: layout.METHOD_OTHER,
  GET: layout.METHOD_GET,
  HEAD: layout.METHOD_HEAD,
  POST: layout.METHOD_POST,
  PUT: layout.METHOD_PUT,
  DELETE: layout.METHOD_DELETE,
  CONNECT: layout.METHOD_CONNECT,
  OPTIONS: layout.METHOD_OPTIONS,
  TRACE: layout.METHOD_TRACE,
  PATCH: layout.METHOD_PATCH,
} as const;

/** Where the message's body ends (RFC 9112 section 6.3). */
export const Framing = {
  /** No body; also Content-Length: 0. */
  NONE: layout.FRAMING_NONE,
  /** `contentLength` bytes, at least one. */
  LENGTH: layout.FRAMING_LENGTH,
  /** Chunked: run a ChunkScanner. */
  CHUNKED: layout.FRAMING_CHUNKED,
  /** A response that ends with its connection. */
  UNTIL_CLOSE: layout.FRAMING_UNTIL_CLOSE,
  /** 101, or 2xx to CONNECT: what follows is no HTTP any more. */
  TUNNEL: layout.FRAMING_TUNNEL,
} as const;

/** Bits of `MessageHead.flags`. */
export const HeadFlag = {
  PERSISTENT: layout.FLAG_PERSISTENT,
  CLOSE: layout.FLAG_CLOSE,
  KEEP_ALIVE: layout.FLAG_KEEP_ALIVE,
  UPGRADE: layout.FLAG_UPGRADE,
  EXPECT_CONTINUE: layout.FLAG_EXPECT_CONTINUE,
  EXPECT_OTHER: layout.FLAG_EXPECT_OTHER,
  NOMINATED: layout.FLAG_NOMINATED,
  ABSOLUTE_FORM: layout.FLAG_ABSOLUTE_FORM,
  AUTHORITY_FORM: layout.FLAG_AUTHORITY_FORM,
  ASTERISK_FORM: layout.FLAG_ASTERISK_FORM,
  HTTPS: layout.FLAG_HTTPS,
  UNDERSCORE: layout.FLAG_UNDERSCORE,
} as const;

/** Bounds of one head, and of trailers; values above HEAD_LIMIT_BYTES and FIELD_LIMIT count as those. */
export interface HeadLimits {
  /** Bytes of the whole head, final empty line included. */
  readonly maxHeadBytes: number;
  /** Header lines. */
  readonly maxFields: number;
  /** A message may have a Content-Length beside Transfer-Encoding: it is dropped. Without it that is an error. */
  readonly takesChunkedLength?: boolean;
}

export interface CodecError {
  /** Stable name for stats and response code details, for example `content_length_repeated`. */
  readonly reason: string;
  /** Answer to a downstream request; a faulty upstream response is always 502. */
  readonly status: 400 | 431 | 500 | 501 | 505;
}

const errors: CodecError[] = [];

function declare(code: number, status: CodecError['status'], reason: string): void {
  errors[-code] = Object.freeze({ reason, status });
}

declare(layout.ERROR_HEAD_TOO_LARGE, 431, 'head_too_large');
declare(layout.ERROR_TOO_MANY_FIELDS, 431, 'too_many_headers');
declare(layout.ERROR_METHOD, 400, 'method_invalid');
declare(layout.ERROR_TARGET, 400, 'target_invalid');
declare(layout.ERROR_VERSION_SYNTAX, 400, 'request_line_invalid');
declare(layout.ERROR_VERSION, 505, 'version_not_supported');
declare(layout.ERROR_STATUS_LINE, 400, 'status_line_invalid');
declare(layout.ERROR_LINE_END, 400, 'line_end_invalid');
declare(layout.ERROR_FOLDED, 400, 'header_folded');
declare(layout.ERROR_FIELD_NAME, 400, 'header_name_invalid');
declare(layout.ERROR_SPACE_BEFORE_COLON, 400, 'space_before_colon');
declare(layout.ERROR_FIELD_VALUE, 400, 'header_value_invalid');
declare(layout.ERROR_HOST_MISSING, 400, 'host_missing');
declare(layout.ERROR_HOST_REPEATED, 400, 'host_repeated');
declare(layout.ERROR_HOST, 400, 'host_invalid');
declare(layout.ERROR_CONTENT_LENGTH, 400, 'content_length_invalid');
declare(layout.ERROR_CONTENT_LENGTH_REPEATED, 400, 'content_length_repeated');
declare(layout.ERROR_LENGTH_AND_CHUNKED, 400, 'content_length_with_transfer_encoding');
declare(layout.ERROR_TRANSFER_ENCODING_REPEATED, 400, 'transfer_encoding_repeated');
declare(layout.ERROR_TRANSFER_CODING, 501, 'transfer_coding_not_supported');
declare(layout.ERROR_TRANSFER_ENCODING_1_0, 400, 'transfer_encoding_in_http_1_0');
declare(layout.ERROR_CONNECTION, 400, 'connection_header_invalid');
declare(layout.ERROR_BODY_FORBIDDEN, 400, 'body_forbidden');
declare(layout.ERROR_EDITS_TOO_LARGE, 500, 'rewritten_head_too_large');
declare(layout.ERROR_EDIT_CONTROL, 500, 'rewritten_head_invalid');
declare(layout.ERROR_CHUNK_SIZE, 400, 'chunk_size_invalid');
declare(layout.ERROR_CHUNK_EXTENSION, 400, 'chunk_extension_invalid');
declare(layout.ERROR_CHUNK_EXTENSION_TOO_LARGE, 400, 'chunk_extension_too_large');
declare(layout.ERROR_CHUNK_END, 400, 'chunk_end_invalid');
declare(layout.ERROR_TRAILER, 400, 'trailer_invalid');
declare(layout.ERROR_TRAILERS_TOO_LARGE, 431, 'trailers_too_large');
declare(layout.ERROR_TRAILER_FORBIDDEN, 400, 'trailer_forbidden');
declare(layout.ERROR_TOO_MANY_TRAILERS, 431, 'too_many_trailers');

/** All errors by `-code`; index 0 is unused. For stat tables and tests. */
export const CODEC_ERRORS: readonly (CodecError | undefined)[] = errors;

/** What a negative result of parse, write or scan stands for. */
export function codecError(code: number): CodecError {
  const error = errors[-code];
  if (error === undefined) throw new RangeError(`no codec error has the code ${code}`);
  return error;
}
