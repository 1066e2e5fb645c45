// encodeRequest, encodeResponse, encodeLines: a head with its edits, or plain lines, to a header block in BLOCK_OUT.
// The head may have come over HTTP/1 or HTTP/2; names go out in lower case, fields of an HTTP/1 connection do not.

import {
  FIELD_BYTES,
  FIELD_DROPPED,
  FIELD_FLAGS,
  FIELD_KNOWN_ID,
  FIELD_NAME_LENGTH,
  FIELD_NAME_OFFSET,
  FIELD_VALUE_LENGTH,
  FIELD_VALUE_OFFSET,
  FLAG_ABSOLUTE_FORM,
  FLAG_UPGRADE,
  FLAG_WRITTEN,
  ID_CONNECTION,
  ID_HOST,
  ID_KEEP_ALIVE,
  ID_PROXY_CONNECTION,
  ID_TE,
  ID_TRANSFER_ENCODING,
  ID_UPGRADE,
  ID_X_FORWARDED_PROTO,
  METHOD_CONNECT,
  METHOD_GET,
  METHOD_OPTIONS,
  METHOD_POST,
  NEW_HOST,
  NEW_TARGET,
  PIECE_BYTES,
  RECORD_ADDED_BYTES,
  RECORD_AUTHORITY_LENGTH,
  RECORD_AUTHORITY_OFFSET,
  RECORD_BASE,
  RECORD_FIELD_COUNT,
  RECORD_FLAGS,
  RECORD_HEAD_LENGTH,
  RECORD_METHOD,
  RECORD_METHOD_LENGTH,
  RECORD_NEW_HOST_LENGTH,
  RECORD_NEW_TARGET_LENGTH,
  RECORD_PATH_LENGTH,
  RECORD_PATH_OFFSET,
  RECORD_PIECE_COUNT,
  RECORD_PIECES,
  RECORD_START,
  RECORD_STATUS,
  RECORD_TARGET_LENGTH,
  RECORD_TARGET_OFFSET,
  REQUEST_LINES,
  REQUEST_OUT_BYTES,
  REQUEST_RECORD,
  RESPONSE_LINES,
  RESPONSE_OUT_BYTES,
  RESPONSE_RECORD,
  ERROR_EDITS_TOO_LARGE,
} from '../layout/http1';
import {
  BLOCK_OUT,
  BLOCK_OUT_BYTES,
  ENCODE_CONNECT_PROTOCOL,
  ENCODE_SCHEME_HTTP,
  ENCODE_SCHEME_HTTPS,
  FIELD_LINES,
  GAP,
  SCHEME_IS_HTTP,
  SCHEME_IS_HTTPS,
  SCHEME_UNKNOWN,
  STATE,
  STATE_SCHEME,
  STATE_STRING,
} from '../layout/http2';
import { ASTERISK, COLON, CR, isBlank, LOWER_8, QUESTION, SLASH } from '../http1/bytes';
import { clearEdits, firstField, hasField, tableOf, valueLength, valueOf } from '../http1/fields';
import { headerId } from '../http1/names';
import { checkEdits } from '../http1/write';
import { fieldBound, writeField, writeIndexed, writeNamed, writeSizeUpdate } from './field-writer';
import { setState, state } from './state';

// Indices of the static table.
const AUTHORITY: u32 = 1;
const METHOD: u32 = 2;
const METHOD_IS_GET: u32 = 2;
const METHOD_IS_POST: u32 = 3;
const PATH: u32 = 4;
const SCHEME_HTTP: u32 = 6;
const SCHEME_HTTPS: u32 = 7;
const STATUS: u32 = 8;

const TRAILERS: u64 = 0x7372656c69617274;
const TE: u16 = 0x6574;
/** ':protocol', its letters behind the colon. */
const PROTOCOL: u64 = 0x6c6f636f746f7270;
const CONNECT: u64 = 0x5443454e4e4f43;
const HTTP: u32 = 0x70747468;
const LOWER_S: u8 = 0x73;

const UNSENT: u64 =
  ((<u64>1) << ID_HOST) |
  ((<u64>1) << ID_CONNECTION) |
  ((<u64>1) << ID_KEEP_ALIVE) |
  ((<u64>1) << ID_PROXY_CONNECTION) |
  ((<u64>1) << ID_TRANSFER_ENCODING) |
  ((<u64>1) << ID_UPGRADE) |
  ((<u64>1) << ID_TE);

/** Where the block ends that may be written. */
const OUT_END: usize = BLOCK_OUT + BLOCK_OUT_BYTES;

@inline
function isUnsent(id: u32): bool {
  return ((UNSENT >> id) & 1) != 0;
}

/** 'te: trailers' goes on, which gRPC servers ask for, though HTTP/1 has it for one hop. */
function writeTe(table: usize, out: usize, value: usize, length: u32, flags: u32): usize {
  if (length != 8 || (load<u64>(value) | LOWER_8) != TRAILERS) return out;
  setState(STATE_STRING, TE);
  return writeField(table, out, 0, 0, STATE + STATE_STRING, 2, value, length, GAP, flags);
}

/** Notes what a field x-forwarded-proto means for :scheme, which stands in front of it and is always one byte. */
function noteScheme(value: usize, length: u32): void {
  const isHttps = length == 5 && load<u32>(value) == HTTP && load<u8>(value + 4) == LOWER_S;
  const isFirst = state(STATE_SCHEME) == SCHEME_UNKNOWN;
  setState(STATE_SCHEME, isFirst && isHttps ? SCHEME_IS_HTTPS : SCHEME_IS_HTTP);
}

/**
 * The fields of a record that have not been dropped; 0 when they do not fit. Whether TE goes on is the caller's to say when
 * it has edited the head; of one that comes as text it stands there because it does.
 */
function writeKept(table: usize, record: usize, out: usize, flags: u32): usize {
  const base = <usize>load<u32>(record, RECORD_BASE);
  const isRequest = record == REQUEST_RECORD;
  const takesTe = (load<u32>(record, RECORD_FLAGS) & FLAG_WRITTEN) == 0;
  let field = tableOf(record);
  const end = field + <usize>load<u32>(record, RECORD_FIELD_COUNT) * FIELD_BYTES;
  for (; field < end; field += FIELD_BYTES) {
    const id = <u32>load<u16>(field, FIELD_KNOWN_ID);
    const value = base + load<u16>(field, FIELD_VALUE_OFFSET);
    const length = <u32>load<u16>(field, FIELD_VALUE_LENGTH);
    const isDropped = (load<u16>(field, FIELD_FLAGS) & FIELD_DROPPED) != 0;
    if (id == ID_TE && isRequest) {
      if (takesTe || !isDropped) out = writeTe(table, out, value, length, flags);
      continue;
    }
    if (isDropped || isUnsent(id)) continue;
    if (id == ID_X_FORWARDED_PROTO) noteScheme(value, length);
    const nameLength = <u32>load<u16>(field, FIELD_NAME_LENGTH);
    if (out + fieldBound(nameLength, length) > OUT_END) return 0;
    const name = base + load<u16>(field, FIELD_NAME_OFFSET);
    out = writeField(table, out, id, 0, name, nameLength, value, length, <u32>(value - name) - nameLength, flags);
  }
  return out;
}

/** Lines of text, each ending in CRLF; 0 when they do not fit. */
function writeLines(table: usize, out: usize, p: usize, length: u32, flags: u32): usize {
  const end = p + length;
  while (p < end) {
    const name = p;
    while (p < end && load<u8>(p) != COLON) p++;
    const nameLength = <u32>(p - name);
    p++;
    while (p < end && isBlank(load<u8>(p))) p++;
    const value = p;
    while (p < end && load<u8>(p) != CR) p++;
    let valueEnd = p;
    while (valueEnd > value && isBlank(load<u8>(valueEnd - 1))) valueEnd--;
    p += 2;
    if (nameLength == 0) continue;
    const id = headerId(name, nameLength);
    const bytes = <u32>(valueEnd - value);
    if (id == ID_TE) out = writeTe(table, out, value, bytes, flags);
    if (isUnsent(id)) continue;
    if (id == ID_X_FORWARDED_PROTO) noteScheme(value, bytes);
    if (out + fieldBound(nameLength, bytes) > OUT_END) return 0;
    out = writeField(table, out, id, 0, name, nameLength, value, bytes, <u32>(value - name) - nameLength, flags);
  }
  return out;
}

/** Kept fields, prepared pieces, added lines; the length of the block or an error. Clears the edits. */
function finish(table: usize, record: usize, out: usize, lines: usize, flags: u32): i32 {
  out = writeKept(table, record, out, flags);
  const pieces = load<u32>(record, RECORD_PIECE_COUNT);
  for (let i: u32 = 0; i < pieces && out != 0; i++) {
    const piece = record + <usize>i * PIECE_BYTES;
    out = writeLines(table, out, load<u32>(piece, RECORD_PIECES), load<u32>(piece, RECORD_PIECES + 4), flags);
  }
  if (out != 0) out = writeLines(table, out, lines, load<u32>(record, RECORD_ADDED_BYTES), flags);
  clearEdits(record);
  return out == 0 ? ERROR_EDITS_TOO_LARGE : <i32>(out - BLOCK_OUT);
}

/** :path as the next hop gets it: replaced, or an absolute form's, or as received. */
function writePath(record: usize, out: usize, flags: u32): usize {
  const base = <usize>load<u32>(record, RECORD_BASE);
  let path = base + load<u32>(record, RECORD_TARGET_OFFSET);
  let length = load<u32>(record, RECORD_TARGET_LENGTH);
  const replaced = load<u32>(record, RECORD_NEW_TARGET_LENGTH);
  if (replaced != 0) {
    path = NEW_TARGET;
    length = replaced;
  } else if ((load<u32>(record, RECORD_FLAGS) & FLAG_ABSOLUTE_FORM) != 0) {
    path = base + load<u32>(record, RECORD_PATH_OFFSET);
    length = load<u32>(record, RECORD_PATH_LENGTH);
    if (length == 0) {
      path = STATE + STATE_STRING;
      length = 1;
      store<u8>(path, load<u32>(record, RECORD_METHOD) == METHOD_OPTIONS ? ASTERISK : SLASH);
    } else if (load<u8>(path) == QUESTION) {
      // A path of its own in the edit's area, since the byte in front of the query is the authority's last.
      memory.copy(NEW_TARGET + 1, path, length);
      store<u8>(NEW_TARGET, SLASH);
      path = NEW_TARGET;
      length++;
    }
  }
  if (length == 1 && load<u8>(path) == SLASH) return writeIndexed(out, PATH);
  return writeNamed(out, PATH, path, length, flags);
}

function writeMethod(record: usize, out: usize, flags: u32): usize {
  const id = load<u32>(record, RECORD_METHOD);
  if (id == METHOD_GET) return writeIndexed(out, METHOD_IS_GET);
  if (id == METHOD_POST) return writeIndexed(out, METHOD_IS_POST);
  const method = <usize>load<u32>(record, RECORD_BASE) + load<u32>(record, RECORD_START);
  return writeNamed(out, METHOD, method, load<u32>(record, RECORD_METHOD_LENGTH), flags);
}

/** Of the line that has said the authority: it may be one that is never indexed. */
@inline
function gapOfHost(record: usize): u32 {
  if (!hasField(record, ID_HOST)) return GAP;
  const field = firstField(record, ID_HOST);
  return <u32>load<u16>(field, FIELD_VALUE_OFFSET) - load<u16>(field, FIELD_NAME_OFFSET) - load<u16>(field, FIELD_NAME_LENGTH);
}

function writeAuthority(table: usize, record: usize, out: usize, flags: u32): usize {
  const replaced = load<u32>(record, RECORD_NEW_HOST_LENGTH);
  const received = <usize>load<u32>(record, RECORD_BASE) + load<u32>(record, RECORD_AUTHORITY_OFFSET);
  const authority = replaced != 0 ? <usize>NEW_HOST : received;
  const length = replaced != 0 ? replaced : load<u32>(record, RECORD_AUTHORITY_LENGTH);
  if (length == 0) return out;
  const gap = replaced != 0 ? GAP : gapOfHost(record);
  // The name is not read: the static index stands for it.
  store<u64>(STATE, 0x69726f687475613a, STATE_STRING);
  store<u16>(STATE, 0x7974, STATE_STRING + 8);
  return writeField(table, out, 0, AUTHORITY, STATE + STATE_STRING, 10, authority, length, gap, flags);
}

/** :method CONNECT and :protocol in place of an upgrade (RFC 8441 section 4). */
function writeConnectProtocol(table: usize, record: usize, out: usize, flags: u32): usize {
  const field = firstField(record, ID_UPGRADE);
  store<u64>(STATE, CONNECT, STATE_STRING);
  out = writeNamed(out, METHOD, STATE + STATE_STRING, 7, flags);
  store<u8>(STATE, COLON, STATE_STRING);
  store<u64>(STATE, PROTOCOL, STATE_STRING + 1);
  const value = valueOf(record, field);
  return writeField(table, out, 0, 0, STATE + STATE_STRING, 9, value, <u32>valueLength(field), GAP, flags);
}

/**
 * Writes the request head with its edits as a header block to BLOCK_OUT and clears the edits.
 * @param table  the connection's encoder
 * @param flags  ENCODE_*
 * @returns its length, 0 when no head was parsed, or an error below 0.
 */
export function encodeRequest(table: usize, flags: u32): i32 {
  const record: usize = REQUEST_RECORD;
  if (load<u32>(record, RECORD_HEAD_LENGTH) == 0) return 0;
  const error = checkEdits(record, REQUEST_LINES, REQUEST_OUT_BYTES);
  if (error != 0) {
    clearEdits(record);
    return error;
  }
  let out = writeSizeUpdate(table, BLOCK_OUT);
  const isUpgrade =
    (flags & ENCODE_CONNECT_PROTOCOL) != 0 &&
    (load<u32>(record, RECORD_FLAGS) & FLAG_UPGRADE) != 0 &&
    hasField(record, ID_UPGRADE);
  out = isUpgrade ? writeConnectProtocol(table, record, out, flags) : writeMethod(record, out, flags);
  const hasScheme = load<u32>(record, RECORD_METHOD) != METHOD_CONNECT;
  const scheme = out;
  if (hasScheme) {
    out = writeIndexed(out, SCHEME_HTTP);
    out = writePath(record, out, flags);
  }
  out = writeAuthority(table, record, out, flags);
  setState(STATE_SCHEME, SCHEME_UNKNOWN);
  const length = finish(table, record, out, REQUEST_LINES, flags);
  if (hasScheme && length > 0 && isHttps(flags)) writeIndexed(scheme, SCHEME_HTTPS);
  return length;
}

/** What :scheme is to be, behind the fields of a head. */
@inline
function isHttps(flags: u32): bool {
  if ((flags & (ENCODE_SCHEME_HTTP | ENCODE_SCHEME_HTTPS)) != 0) return (flags & ENCODE_SCHEME_HTTPS) != 0;
  return state(STATE_SCHEME) == SCHEME_IS_HTTPS;
}

/** :status, from the static table where it stands there. */
function writeStatus(table: usize, out: usize, status: u32, flags: u32): usize {
  switch (status) {
    case 200:
      return writeIndexed(out, 8);
    case 204:
      return writeIndexed(out, 9);
    case 206:
      return writeIndexed(out, 10);
    case 304:
      return writeIndexed(out, 11);
    case 400:
      return writeIndexed(out, 12);
    case 404:
      return writeIndexed(out, 13);
    case 500:
      return writeIndexed(out, 14);
  }
  store<u64>(STATE, 0x7375746174733a, STATE_STRING);
  store<u8>(STATE, <u8>(0x30 + status / 100), STATE_STRING + 8);
  store<u8>(STATE, <u8>(0x30 + (status / 10) % 10), STATE_STRING + 9);
  store<u8>(STATE, <u8>(0x30 + status % 10), STATE_STRING + 10);
  return writeField(table, out, 0, STATUS, STATE + STATE_STRING, 7, STATE + STATE_STRING + 8, 3, GAP, flags);
}

/** The same for the response head. An answer of 101 becomes 200 with ENCODE_CONNECT_PROTOCOL. */
export function encodeResponse(table: usize, flags: u32): i32 {
  const record: usize = RESPONSE_RECORD;
  if (load<u32>(record, RECORD_HEAD_LENGTH) == 0) return 0;
  const error = checkEdits(record, RESPONSE_LINES, RESPONSE_OUT_BYTES);
  if (error != 0) {
    clearEdits(record);
    return error;
  }
  const status = load<u32>(record, RECORD_STATUS);
  const isSwitched = status == 101 && (flags & ENCODE_CONNECT_PROTOCOL) != 0;
  const out = writeStatus(table, writeSizeUpdate(table, BLOCK_OUT), isSwitched ? 200 : status, flags);
  return finish(table, record, out, RESPONSE_LINES, flags);
}

/**
 * Writes the lines in FIELD_LINES, each with its CRLF, as a block to BLOCK_OUT.
 * @param status  of the head that they are; 0 for trailers
 */
export function encodeLines(table: usize, length: u32, status: u32, flags: u32): i32 {
  let out = writeSizeUpdate(table, BLOCK_OUT);
  if (status != 0) out = writeStatus(table, out, status, flags);
  out = writeLines(table, out, FIELD_LINES, length, flags);
  return out == 0 ? ERROR_EDITS_TOO_LARGE : <i32>(out - BLOCK_OUT);
}
