// The request target in its four forms (RFC 9112 section 3.2), and the host that a request is for.

import {
  ERROR_HOST,
  ERROR_HOST_MISSING,
  ERROR_HOST_REPEATED,
  ERROR_TARGET,
  FIELD_VALUE_OFFSET,
  FLAG_ABSOLUTE_FORM,
  FLAG_ASTERISK_FORM,
  FLAG_AUTHORITY_FORM,
  FLAG_HTTPS,
  ID_HOST,
  METHOD_CONNECT,
  METHOD_OPTIONS,
  RECORD_AUTHORITY_LENGTH,
  RECORD_AUTHORITY_OFFSET,
  RECORD_BASE,
  RECORD_METHOD,
  RECORD_MINOR_VERSION,
  RECORD_PATH_LENGTH,
  RECORD_PATH_OFFSET,
  RECORD_TARGET_LENGTH,
  RECORD_TARGET_OFFSET,
} from '../layout/http1';
import { ASTERISK, CLOSE_BRACKET, COLON, isDigit, LOWER_4, OPEN_BRACKET, QUESTION, SLASH } from './bytes';
import { addFlags, firstField, hasField, isRepeated, valueLength, valueOf } from './fields';
import { skipHostName, skipIpv6 } from './scan';

/** 'http' and '://', as little-endian loads show them. */
const HTTP: u32 = 0x70747468;
const SCHEME_END: u32 = 0x2f2f3a;

const PORT_DIGITS: usize = 5;
const PORT_MAX: u32 = 65535;

function isPort(p: usize, end: usize): bool {
  if (p == end || end - p > PORT_DIGITS) return false;
  let port: u32 = 0;
  for (; p < end; p++) {
    const byte = load<u8>(p);
    if (!isDigit(byte)) return false;
    port = port * 10 + (byte - 0x30);
  }
  return port <= PORT_MAX;
}

/** True for host[:port] with a host of at least one character; userinfo and percent encoding are refused. */
export function isAuthority(p: usize, end: usize, needsPort: bool): bool {
  if (p == end) return false;
  let hostEnd: usize;
  if (load<u8>(p) == OPEN_BRACKET) {
    hostEnd = skipIpv6(p + 1, end);
    // "::" is the shortest address.
    if (hostEnd < p + 3 || hostEnd == end || load<u8>(hostEnd) != CLOSE_BRACKET) return false;
    hostEnd++;
  } else {
    hostEnd = skipHostName(p, end);
    if (hostEnd == p) return false;
  }
  if (hostEnd == end) return !needsPort;
  return load<u8>(hostEnd) == COLON && isPort(hostEnd + 1, end);
}

function setPath(record: usize, base: usize, p: usize, end: usize): void {
  store<u32>(record, <u32>(p - base), RECORD_PATH_OFFSET);
  store<u32>(record, <u32>(end - p), RECORD_PATH_LENGTH);
}

function setAuthority(record: usize, base: usize, p: usize, end: usize): void {
  store<u32>(record, <u32>(p - base), RECORD_AUTHORITY_OFFSET);
  store<u32>(record, <u32>(end - p), RECORD_AUTHORITY_LENGTH);
}

/** http://authority[path][?query] or https: the authority overrules Host. */
function readAbsoluteForm(record: usize, base: usize, p: usize, end: usize): i32 {
  if (end - p < 8 || (load<u32>(p) | LOWER_4) != HTTP) return ERROR_TARGET;
  p += 4;
  const isHttps = (load<u8>(p) | 0x20) == 0x73;
  if (isHttps) p++;
  if ((load<u32>(p) & 0xffffff) != SCHEME_END) return ERROR_TARGET;
  p += 3;
  const authority = p;
  while (p < end && load<u8>(p) != SLASH && load<u8>(p) != QUESTION) p++;
  if (!isAuthority(authority, p, false)) return ERROR_TARGET;
  setAuthority(record, base, authority, p);
  setPath(record, base, p, end);
  addFlags(record, isHttps ? FLAG_ABSOLUTE_FORM | FLAG_HTTPS : FLAG_ABSOLUTE_FORM);
  return 0;
}

/** Tells the forms apart and notes path and authority of the target; 0 or an error. Needs the method. */
export function readTarget(record: usize): i32 {
  const base = <usize>load<u32>(record, RECORD_BASE);
  const method = load<u32>(record, RECORD_METHOD);
  const p = base + load<u32>(record, RECORD_TARGET_OFFSET);
  const end = p + load<u32>(record, RECORD_TARGET_LENGTH);
  setAuthority(record, base, p, p);
  if (method == METHOD_CONNECT) {
    if (!isAuthority(p, end, true)) return ERROR_TARGET;
    setAuthority(record, base, p, end);
    setPath(record, base, p, p);
    addFlags(record, FLAG_AUTHORITY_FORM);
    return 0;
  }
  const first = load<u8>(p);
  if (first == SLASH) {
    setPath(record, base, p, end);
    return 0;
  }
  if (first == ASTERISK && end - p == 1 && method == METHOD_OPTIONS) {
    setPath(record, base, p, end);
    addFlags(record, FLAG_ASTERISK_FORM);
    return 0;
  }
  return readAbsoluteForm(record, base, p, end);
}

/** Judges Host, and takes the authority from it unless the target named one. 0 or an error. */
export function readHost(record: usize): i32 {
  if (!hasField(record, ID_HOST)) return load<u32>(record, RECORD_MINOR_VERSION) == 0 ? 0 : ERROR_HOST_MISSING;
  const field = firstField(record, ID_HOST);
  if (isRepeated(field)) return ERROR_HOST_REPEATED;
  const value = valueOf(record, field);
  if (!isAuthority(value, value + valueLength(field), false)) return ERROR_HOST;
  if (load<u32>(record, RECORD_AUTHORITY_LENGTH) == 0) {
    store<u32>(record, load<u16>(field, FIELD_VALUE_OFFSET), RECORD_AUTHORITY_OFFSET);
    store<u32>(record, <u32>valueLength(field), RECORD_AUTHORITY_LENGTH);
  }
  return 0;
}
