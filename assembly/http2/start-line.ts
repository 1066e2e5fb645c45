// Pseudo fields to the start line that says the same in HTTP/1 (RFC 9113 section 8.3). An extended CONNECT
// (RFC 8441) becomes the upgrade that it stands for.

import { ERROR_METHOD, ERROR_TARGET, METHOD_CONNECT, METHOD_OPTIONS } from '../layout/http1';
import {
  FLAG_HTTPS,
  ID_CONNECTION,
  ID_HOST,
  ID_UPGRADE,
  METHOD_GET,
  RECORD_BASE,
  RECORD_METHOD,
  RECORD_METHOD_LENGTH,
  RECORD_MINOR_VERSION,
  RECORD_START,
  RECORD_STATUS,
  RECORD_TARGET_LENGTH,
  RECORD_TARGET_OFFSET,
} from '../layout/http1';
import {
  BLOCK_CONNECT_PROTOCOL,
  COOKIE,
  ERROR_PATH,
  ERROR_PROTOCOL,
  ERROR_PSEUDO_EMPTY,
  ERROR_PSEUDO_MISSING,
  ERROR_PSEUDO_UNKNOWN,
  ERROR_SCHEME,
  ERROR_STATUS,
  GAP,
  KIND_AUTHORITY,
  KIND_METHOD,
  KIND_PATH,
  KIND_PROTOCOL,
  KIND_SCHEME,
  KIND_STATUS,
  REASON_COUNT,
  REASON_INDEX,
  REASON_TEXT,
  STATE_AUTHORITY_GAP,
  STATE_FAULT,
  STATE_FLAGS,
  STATE_HEAD_FLAGS,
  STATE_RECORD,
} from '../layout/http2';
import { ASTERISK, copy, CRLF, isDigit, LOWER_4, SLASH, SPACE } from '../http1/bytes';
import { methodId } from '../http1/names';
import { skipTarget, skipToken } from '../http1/scan';
import { addLine, hasPseudo, pseudoLength, pseudoText, reserve } from './fields';
import { setState, state } from './state';

/** Texts as little-endian loads show them. */
const HTTP_1_1: u64 = 0x312e312f50545448;
const HTTP: u32 = 0x70747468;
const GET: u32 = 0x544547;
const HOST: u64 = 0x74736f68;
const UPGRADE: u64 = 0x65646172677075;
const CONNECTI: u64 = 0x697463656e6e6f63;

/** 0 for http and https, whose HeadFlag is set, or an error. */
function readScheme(): i32 {
  const scheme = pseudoText(KIND_SCHEME);
  const length = pseudoLength(KIND_SCHEME);
  if (length < 4 || length > 5 || (load<u32>(scheme) | LOWER_4) != HTTP) return ERROR_SCHEME;
  if (length == 4) return 0;
  if ((load<u8>(scheme, 4) | 0x20) != 0x73) return ERROR_SCHEME;
  setState(STATE_HEAD_FLAGS, state(STATE_HEAD_FLAGS) | FLAG_HTTPS);
  return 0;
}

/** A path begins with '/', or is the asterisk of OPTIONS: no absolute form, which HTTP/1 would take for another host. */
function judgePath(method: u32): i32 {
  const path = pseudoText(KIND_PATH);
  const length = pseudoLength(KIND_PATH);
  if (length == 0) return ERROR_PSEUDO_EMPTY;
  const first = load<u8>(path);
  if (first != SLASH && !(first == ASTERISK && length == 1 && method == METHOD_OPTIONS)) return ERROR_PATH;
  return skipTarget(path, path + length) == path + length ? 0 : ERROR_TARGET;
}

/** Judges scheme, path and authority of everything but a plain CONNECT. */
function judgeParts(method: u32): i32 {
  if (!hasPseudo(KIND_SCHEME) || !hasPseudo(KIND_PATH)) return ERROR_PSEUDO_MISSING;
  if (hasPseudo(KIND_AUTHORITY) && pseudoLength(KIND_AUTHORITY) == 0) return ERROR_PSEUDO_EMPTY;
  const error = readScheme();
  return error != 0 ? error : judgePath(method);
}

function writeRequestLine(method: usize, methodLength: u32, id: u32, target: usize, targetLength: u32): bool {
  const record = <usize>state(STATE_RECORD);
  const line = reserve(methodLength + targetLength + 12);
  if (line == 0) return false;
  const base = <usize>load<u32>(record, RECORD_BASE);
  let out = copy(line, method, methodLength);
  store<u8>(out, SPACE);
  store<u32>(record, <u32>(line - base), RECORD_START);
  store<u32>(record, id, RECORD_METHOD);
  store<u32>(record, methodLength, RECORD_METHOD_LENGTH);
  store<u32>(record, <u32>(out + 1 - base), RECORD_TARGET_OFFSET);
  store<u32>(record, targetLength, RECORD_TARGET_LENGTH);
  store<u32>(record, 1, RECORD_MINOR_VERSION);
  out = copy(out + 1, target, targetLength);
  store<u8>(out, SPACE);
  store<u64>(out + 1, HTTP_1_1);
  store<u16>(out + 9, CRLF);
  return true;
}

/** Adds a line whose name is given as up to ten letters. */
function addOwnLine(
  id: u32,
  first: u64,
  last: u16,
  nameLength: u32,
  value: usize,
  valueLength: u32,
  gap: u32,
): void {
  // The cookie area is still empty: crumbs are ordinary fields.
  store<u64>(COOKIE, first);
  store<u16>(COOKIE, last, 8);
  addLine(id, COOKIE, nameLength, value, valueLength, gap);
}

function addAuthority(): void {
  if (hasPseudo(KIND_AUTHORITY)) {
    const gap = state(STATE_AUTHORITY_GAP);
    addOwnLine(ID_HOST, HOST, 0, 4, pseudoText(KIND_AUTHORITY), pseudoLength(KIND_AUTHORITY), gap);
  }
}

/** An extended CONNECT as GET with Upgrade, which an HTTP/1 client would have sent. */
function startUpgrade(): i32 {
  if ((state(STATE_FLAGS) & BLOCK_CONNECT_PROTOCOL) == 0) return ERROR_PSEUDO_UNKNOWN;
  const protocol = pseudoText(KIND_PROTOCOL);
  const length = pseudoLength(KIND_PROTOCOL);
  if (length == 0 || skipToken(protocol, protocol + length) != protocol + length) return ERROR_PROTOCOL;
  if (!hasPseudo(KIND_AUTHORITY)) return ERROR_PSEUDO_MISSING;
  const error = judgeParts(METHOD_GET);
  if (error != 0) return error;
  // Behind the letters of names that addOwnLine places there.
  const method = <usize>COOKIE + 16;
  store<u32>(method, GET);
  if (!writeRequestLine(method, 3, METHOD_GET, pseudoText(KIND_PATH), pseudoLength(KIND_PATH))) return state(STATE_FAULT);
  addAuthority();
  const upgrade = <usize>COOKIE + 32;
  store<u64>(upgrade, UPGRADE);
  addOwnLine(ID_CONNECTION, CONNECTI, 0x6e6f, 10, upgrade, 7, GAP);
  addOwnLine(ID_UPGRADE, UPGRADE, 0, 7, protocol, length, GAP);
  return state(STATE_FAULT);
}

/** Writes request line and Host; 0 or an error. */
export function startRequest(): i32 {
  if (!hasPseudo(KIND_METHOD)) return ERROR_PSEUDO_MISSING;
  const method = pseudoText(KIND_METHOD);
  const length = pseudoLength(KIND_METHOD);
  if (length == 0) return ERROR_PSEUDO_EMPTY;
  if (skipToken(method, method + length) != method + length) return ERROR_METHOD;
  const id = methodId(method, length);
  // Also for the answer to a head that goes beyond its bounds from here on.
  store<u32>(<usize>state(STATE_RECORD), id, RECORD_METHOD);
  if (hasPseudo(KIND_PROTOCOL)) return id == METHOD_CONNECT ? startUpgrade() : ERROR_PROTOCOL;
  let target = KIND_PATH;
  if (id == METHOD_CONNECT) {
    if (hasPseudo(KIND_SCHEME) || hasPseudo(KIND_PATH)) return ERROR_PSEUDO_UNKNOWN;
    if (!hasPseudo(KIND_AUTHORITY)) return ERROR_PSEUDO_MISSING;
    target = KIND_AUTHORITY;
    const authority = pseudoText(KIND_AUTHORITY);
    const end = authority + pseudoLength(KIND_AUTHORITY);
    if (skipTarget(authority, end) != end) return ERROR_TARGET;
  } else {
    const error = judgeParts(id);
    if (error != 0) return error;
  }
  if (!writeRequestLine(method, length, id, pseudoText(target), pseudoLength(target))) return state(STATE_FAULT);
  addAuthority();
  return state(STATE_FAULT);
}

/** Where the phrase lies, behind its length. */
function reasonOf(status: u32): usize {
  const index = status - 100;
  return <usize>REASON_TEXT + (index < <u32>REASON_COUNT ? <usize>load<u16>(<usize>REASON_INDEX + (<usize>index << 1)) : 0);
}

/** Writes the status line, with the phrase that HTTP/1 has for the status; 0 or an error. */
export function startResponse(): i32 {
  if (!hasPseudo(KIND_STATUS)) return ERROR_PSEUDO_MISSING;
  const text = pseudoText(KIND_STATUS);
  const first = load<u8>(text);
  if (pseudoLength(KIND_STATUS) != 3 || !isDigit(first) || first == 0x30) return ERROR_STATUS;
  const second = load<u8>(text, 1);
  const third = load<u8>(text, 2);
  if (!isDigit(second) || !isDigit(third)) return ERROR_STATUS;
  const status = (<u32>first - 0x30) * 100 + (<u32>second - 0x30) * 10 + (<u32>third - 0x30);
  // HTTP/2 has no 101 (RFC 9113 section 8.6).
  if (status == 101) return ERROR_STATUS;
  const record = <usize>state(STATE_RECORD);
  const reason = reasonOf(status);
  const length = <u32>load<u8>(reason);
  const line = reserve(15 + length);
  if (line == 0) return state(STATE_FAULT);
  store<u64>(line, HTTP_1_1);
  store<u8>(line, SPACE, 8);
  store<u8>(line, first, 9);
  store<u8>(line, second, 10);
  store<u8>(line, third, 11);
  store<u8>(line, SPACE, 12);
  memory.copy(line + 13, reason + 1, length);
  store<u16>(line + length, CRLF, 13);
  store<u32>(record, 0, RECORD_START);
  store<u32>(record, status, RECORD_STATUS);
  store<u32>(record, 1, RECORD_MINOR_VERSION);
  store<u32>(record, 13, RECORD_TARGET_OFFSET);
  store<u32>(record, length, RECORD_TARGET_LENGTH);
  return 0;
}
