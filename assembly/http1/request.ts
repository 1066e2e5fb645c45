// parseRequest: request line, header lines, then what they mean together. RFC 9112 sections 2 to 6, strictly.

import {
  ERROR_BODY_FORBIDDEN,
  ERROR_HEAD_TOO_LARGE,
  ERROR_LINE_END,
  ERROR_METHOD,
  ERROR_TARGET,
  ERROR_VERSION,
  ERROR_VERSION_SYNTAX,
  FLAG_EXPECT_CONTINUE,
  FLAG_EXPECT_OTHER,
  FLAG_PERSISTENT,
  FRAMING_CHUNKED,
  FRAMING_NONE,
  ID_CONTENT_LENGTH,
  ID_EXPECT,
  METHOD_CONNECT,
  METHOD_TRACE,
  RECORD_FLAGS,
  RECORD_FRAMING,
  RECORD_HEAD_LENGTH,
  RECORD_METHOD,
  RECORD_METHOD_LENGTH,
  RECORD_MINOR_VERSION,
  RECORD_START,
  RECORD_TARGET_LENGTH,
  RECORD_TARGET_OFFSET,
  REQUEST_RECORD,
} from '../layout/http1';
import { CR, CRLF, DOT, isDigit, LF, LOWER_4, LOWER_8, SPACE } from './bytes';
import { readConnection } from './connection';
import { addFlags, clearRecord, firstField, hasField, isRepeated, readFields, valueLength, valueOf } from './fields';
import { readFraming } from './framing';
import { methodId } from './names';
import { skipTarget, skipToken } from './scan';
import { readHost, readTarget } from './target';

/** 'HTTP/1.' and 'HTTP/', as little-endian loads show them; '100-cont' and 'inue'. */
const HTTP_1: u64 = 0x002e312f50545448;
const HTTP_SLASH: u64 = 0x0000002f50545448;
const CONTINUE_1: u64 = 0x746e6f632d303031;
const CONTINUE_2: u32 = 0x65756e69;

/** "HTTP/1.1" CR LF. */
const VERSION_LINE_BYTES: usize = 10;

/** The fault of a version that is not HTTP/1.0 or HTTP/1.1 with CRLF; 0 while the bytes so far are a good start. */
function versionError(p: usize, end: usize): i32 {
  for (let i: usize = 0; p < end; i++, p++) {
    const byte = load<u8>(p);
    if (i < 5) {
      if (byte != <u8>(HTTP_SLASH >> (<u64>i * 8))) return ERROR_VERSION_SYNTAX;
    } else if (i == 5 || i == 7) {
      if (!isDigit(byte)) return ERROR_VERSION_SYNTAX;
    } else if (i == 6) {
      if (byte != DOT) return ERROR_VERSION_SYNTAX;
    } else if (i == 8) {
      const major = load<u8>(p - 3);
      const minor = load<u8>(p - 1);
      if (byte != CR && byte != LF) return ERROR_VERSION_SYNTAX;
      if (major != 0x31 || minor > 0x31) return ERROR_VERSION;
      if (byte == LF) return ERROR_LINE_END;
    } else {
      return ERROR_LINE_END;
    }
  }
  return 0;
}

/** Reads method SP target SP version CRLF into the record: bytes of the line, 0 or an error. */
function readRequestLine(record: usize, base: usize, start: usize, end: usize): i32 {
  const methodEnd = skipToken(start, end);
  if (methodEnd == end) return 0;
  if (methodEnd == start || load<u8>(methodEnd) != SPACE) return ERROR_METHOD;
  const target = methodEnd + 1;
  const targetEnd = skipTarget(target, end);
  if (targetEnd == end) return 0;
  if (targetEnd == target || load<u8>(targetEnd) != SPACE) return ERROR_TARGET;
  const version = targetEnd + 1;
  if (version + VERSION_LINE_BYTES > end) return versionError(version, end);
  const minor = <u32>load<u8>(version, 7) - 0x30;
  const isGood = (load<u64>(version) & 0x00ffffffffffffff) == HTTP_1 && minor <= 1 && load<u16>(version, 8) == CRLF;
  if (!isGood) return versionError(version, end);

  store<u32>(record, <u32>(start - base), RECORD_START);
  store<u32>(record, methodId(start, methodEnd - start), RECORD_METHOD);
  store<u32>(record, <u32>(methodEnd - start), RECORD_METHOD_LENGTH);
  store<u32>(record, <u32>(target - base), RECORD_TARGET_OFFSET);
  store<u32>(record, <u32>(targetEnd - target), RECORD_TARGET_LENGTH);
  store<u32>(record, minor, RECORD_MINOR_VERSION);
  return <i32>(version + VERSION_LINE_BYTES - start);
}

/** Expect of HTTP/1.1: 100-continue or something that nobody can meet. HTTP/1.0 has no Expect (RFC 9110 10.1.1). */
export function readExpect(record: usize): void {
  if (!hasField(record, ID_EXPECT) || load<u32>(record, RECORD_MINOR_VERSION) == 0) return;
  const field = firstField(record, ID_EXPECT);
  const value = valueOf(record, field);
  const isContinue =
    !isRepeated(field) &&
    valueLength(field) == 12 &&
    (load<u64>(value) | LOWER_8) == CONTINUE_1 &&
    (load<u32>(value, 8) | LOWER_4) == CONTINUE_2;
  addFlags(record, isContinue ? FLAG_EXPECT_CONTINUE : FLAG_EXPECT_OTHER);
}

/** What target and fields mean together; 0 or an error. */
function judge(record: usize, takesBoth: bool): i32 {
  let error = readTarget(record);
  if (error != 0) return error;
  error = readHost(record);
  if (error != 0) return error;
  const framing = readFraming(record, takesBoth);
  if (framing < 0) return framing;
  const method = load<u32>(record, RECORD_METHOD);
  // Content of a CONNECT would be read as tunnel bytes by some, a TRACE may carry none (RFC 9110 9.3.6, 9.3.8).
  if (framing != FRAMING_NONE && (method == METHOD_CONNECT || method == METHOD_TRACE)) return ERROR_BODY_FORBIDDEN;
  store<u32>(record, framing, RECORD_FRAMING);
  readExpect(record);
  error = readConnection(record);
  // Whoever has read the other length would read the rest of the body as the next request (RFC 9112 6.1).
  const isDoubtful = framing == FRAMING_CHUNKED && hasField(record, ID_CONTENT_LENGTH);
  if (isDoubtful) store<u32>(record, load<u32>(record, RECORD_FLAGS) & ~FLAG_PERSISTENT, RECORD_FLAGS);
  return error;
}

function read(record: usize, base: usize, end: usize, maxFields: u32, takesBoth: bool): i32 {
  let start = base;
  // One empty line before the request is forgiven (RFC 9112 2.2): old clients send one behind a POST body.
  if (start < end && load<u8>(start) == CR) {
    if (start + 2 > end) return 0;
    if (load<u16>(start) != CRLF) return ERROR_LINE_END;
    start += 2;
  }
  const line = readRequestLine(record, base, start, end);
  if (line <= 0) return line;
  const length = readFields(record, start + line, end, maxFields);
  if (length <= 0) return length;
  const error = judge(record, takesBoth);
  return error != 0 ? error : length;
}

/**
 * Parses the request head in [base, base + length) into the request record and table.
 * @param takesBoth  1: a Content-Length beside Transfer-Encoding is dropped instead of refused
 * @returns its length, 0 when incomplete, or an error below 0; the record counts as empty then.
 */
export function parseRequest(base: usize, length: u32, maxHeadBytes: u32, maxFields: u32, takesBoth: u32): i32 {
  const record: usize = REQUEST_RECORD;
  clearRecord(record, base);
  const result = read(record, base, base + min(length, maxHeadBytes), maxFields, takesBoth != 0);
  if (result > 0) store<u32>(record, result, RECORD_HEAD_LENGTH);
  return result == 0 && length >= maxHeadBytes ? ERROR_HEAD_TOO_LARGE : result;
}
