// parseResponse: status line, header lines, then the framing, which depends on the request as well
// (RFC 9112 sections 4 and 6.3).

import {
  ERROR_BODY_FORBIDDEN,
  ERROR_HEAD_TOO_LARGE,
  ERROR_LINE_END,
  ERROR_STATUS_LINE,
  ERROR_VERSION,
  FLAG_PERSISTENT,
  FRAMING_CHUNKED,
  FRAMING_NONE,
  FRAMING_TUNNEL,
  FRAMING_UNTIL_CLOSE,
  ID_CONTENT_LENGTH,
  ID_TRANSFER_ENCODING,
  METHOD_CONNECT,
  METHOD_HEAD,
  RECORD_FLAGS,
  RECORD_FRAMING,
  RECORD_HEAD_LENGTH,
  RECORD_MINOR_VERSION,
  RECORD_START,
  RECORD_STATUS,
  RECORD_TARGET_LENGTH,
  RECORD_TARGET_OFFSET,
  RESPONSE_RECORD,
} from '../layout/http1';
import { CR, CRLF, DOT, isDigit, LF, SPACE } from './bytes';
import { readConnection } from './connection';
import { clearRecord, dropAll, hasField, readFields } from './fields';
import { readFraming } from './framing';
import { skipValue } from './scan';

/** 'HTTP/', as a little-endian load shows it. */
const HTTP_SLASH: u64 = 0x0000002f50545448;

/** "HTTP/1.1 200". */
const STATUS_BYTES: usize = 12;

/** The fault in the first STATUS_BYTES of a status line; 0 while the bytes so far are a good start. */
function statusError(p: usize, end: usize): i32 {
  for (let i: usize = 0; i < STATUS_BYTES && p < end; i++, p++) {
    const byte = load<u8>(p);
    if (i < 5) {
      if (byte != <u8>(HTTP_SLASH >> (<u64>i * 8))) return ERROR_STATUS_LINE;
    } else if (i == 6) {
      if (byte != DOT) return ERROR_STATUS_LINE;
    } else if (i == 8) {
      if (byte != SPACE) return ERROR_STATUS_LINE;
      if (load<u8>(p - 3) != 0x31 || load<u8>(p - 1) > 0x31) return ERROR_VERSION;
    } else if (!isDigit(byte) || (i == 9 && byte == 0x30)) {
      return ERROR_STATUS_LINE;
    }
  }
  return 0;
}

/** Reads version SP status [SP reason] CRLF into the record: bytes of the line, 0 or an error. */
function readStatusLine(record: usize, base: usize, end: usize): i32 {
  const error = statusError(base, end);
  if (error != 0) return error;
  let p = base + STATUS_BYTES;
  if (p >= end) return 0;
  // Many servers leave out the space in front of an empty reason; that has one reading only.
  const hasReason = load<u8>(p) == SPACE;
  if (hasReason) p++;
  const reason = p;
  p = hasReason ? skipValue(p, end) : p;
  if (p == end) return 0;
  const stop = load<u8>(p);
  if (stop != CR) return stop == LF ? ERROR_LINE_END : ERROR_STATUS_LINE;
  if (p + 2 > end) return 0;
  if (load<u16>(p) != CRLF) return ERROR_LINE_END;

  const hundreds = <u32>load<u8>(base, 9) - 0x30;
  const tens = <u32>load<u8>(base, 10) - 0x30;
  const ones = <u32>load<u8>(base, 11) - 0x30;
  store<u32>(record, 0, RECORD_START);
  store<u32>(record, hundreds * 100 + tens * 10 + ones, RECORD_STATUS);
  store<u32>(record, <u32>load<u8>(base, 7) - 0x30, RECORD_MINOR_VERSION);
  store<u32>(record, <u32>(reason - base), RECORD_TARGET_OFFSET);
  store<u32>(record, <u32>(p - reason), RECORD_TARGET_LENGTH);
  return <i32>(p + 2 - base);
}

/** Drops what would frame a body that cannot be there. */
function dropFraming(record: usize): void {
  if (hasField(record, ID_CONTENT_LENGTH)) dropAll(record, ID_CONTENT_LENGTH);
  if (hasField(record, ID_TRANSFER_ENCODING)) dropAll(record, ID_TRANSFER_ENCODING);
}

/** Decides the framing in the order of RFC 9112 6.3: FRAMING_* or an error. */
export function decideFraming(record: usize, requestMethod: u32, takesBoth: bool): i32 {
  const declared = readFraming(record, takesBoth);
  if (declared < 0) return declared;
  const status = load<u32>(record, RECORD_STATUS);
  if (status < 200 || status == 204) {
    // These have no body whatever they say; a reader that believes the fields would take the next response for one.
    if (declared != FRAMING_NONE) return ERROR_BODY_FORBIDDEN;
    dropFraming(record);
    return status == 101 ? FRAMING_TUNNEL : FRAMING_NONE;
  }
  if (requestMethod == METHOD_CONNECT && status < 300) {
    // RFC 9110 9.3.6 has both fields ignored here.
    dropFraming(record);
    return FRAMING_TUNNEL;
  }
  if (requestMethod == METHOD_HEAD || status == 304) return FRAMING_NONE;
  if (declared == FRAMING_NONE && !hasField(record, ID_CONTENT_LENGTH)) return FRAMING_UNTIL_CLOSE;
  return declared;
}

function read(
  record: usize,
  base: usize,
  end: usize,
  maxFields: u32,
  requestMethod: u32,
  takesBoth: bool,
): i32 {
  const line = readStatusLine(record, base, end);
  if (line <= 0) return line;
  const length = readFields(record, base + line, end, maxFields);
  if (length <= 0) return length;
  const framing = decideFraming(record, requestMethod, takesBoth);
  if (framing < 0) return framing;
  store<u32>(record, framing, RECORD_FRAMING);
  const error = readConnection(record);
  if (error != 0) return error;
  // Whoever sends both has been read by one of them: what follows may be another's response.
  const isDoubtful = framing == FRAMING_CHUNKED && hasField(record, ID_CONTENT_LENGTH);
  if (framing > FRAMING_CHUNKED || isDoubtful) store<u32>(record, load<u32>(record, RECORD_FLAGS) & ~FLAG_PERSISTENT, RECORD_FLAGS);
  return length;
}

/**
 * Parses the response head in [base, base + length) into the response record and table.
 * @param requestMethod  METHOD_* of the request that it answers
 * @param takesBoth  1: a Content-Length beside Transfer-Encoding is dropped instead of refused
 * @returns its length, 0 when incomplete, or an error below 0; the record counts as empty then.
 */
export function parseResponse(
  base: usize,
  length: u32,
  maxHeadBytes: u32,
  maxFields: u32,
  requestMethod: u32,
  takesBoth: u32,
): i32 {
  const record: usize = RESPONSE_RECORD;
  clearRecord(record, base);
  const result = read(record, base, base + min(length, maxHeadBytes), maxFields, requestMethod, takesBoth != 0);
  if (result > 0) store<u32>(record, result, RECORD_HEAD_LENGTH);
  return result == 0 && length >= maxHeadBytes ? ERROR_HEAD_TOO_LARGE : result;
}
