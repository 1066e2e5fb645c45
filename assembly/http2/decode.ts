// decodeRequest, decodeResponse, decodeTrailers: one call per header block; decodePart: one per part of a block that is too large to
// lie in BLOCK_IN, where blocks are read. The head comes
// out as text in the area of HTTP/1's heads of the same direction, with record and header table.

import {
  AREA_BYTES,
  ERROR_BODY_FORBIDDEN,
  ERROR_HEAD_TOO_LARGE,
  FIELD_CAPACITY,
  FRAMING_LENGTH,
  FRAMING_NONE,
  FRAMING_UNTIL_CLOSE,
  HEAD_LIMIT_BYTES,
  ID_CONTENT_LENGTH,
  METHOD_CONNECT,
  METHOD_HEAD,
  METHOD_OTHER,
  METHOD_TRACE,
  RECORD_BASE,
  RECORD_FIELD_COUNT,
  RECORD_FIELDS_START,
  RECORD_FLAGS,
  RECORD_FRAMING,
  RECORD_HEAD_LENGTH,
  RECORD_KNOWN_LOW,
  RECORD_METHOD,
  RECORD_STATUS,
  REQUEST_IN,
  REQUEST_RECORD,
  RESPONSE_IN,
  RESPONSE_RECORD,
} from '../layout/http1';
import {
  BLOCK_END_STREAM,
  BLOCK_IN,
  COOKIE,
  ERROR_COMPRESSION,
  ERROR_INFORMATIONAL_END,
  ERROR_LENGTH_AND_END,
  FIELD_LINES,
  FIELD_LINES_BYTES,
  PART_ENDS,
  PART_OPENS,
  PART_OPENS_REQUEST,
  PSEUDO,
  STATE,
  STATE_AT,
  STATE_COOKIE_END,
  STATE_END,
  STATE_FAULT,
  STATE_FIELD_COUNT,
  STATE_FLAGS,
  STATE_HEAD_FLAGS,
  STATE_KNOWN,
  STATE_MAX_FIELDS,
  STATE_OUT,
  STATE_OUT_END,
  STATE_PSEUDO_END,
  STATE_PSEUDO_SEEN,
  STATE_RECORD,
  STATE_SKIP,
  STATE_STARTED,
  KIND_PROTOCOL,
} from '../layout/http2';
import { CRLF } from '../http1/bytes';
import { readConnection } from '../http1/connection';
import { clearRecord, hasField, tableOf } from '../http1/fields';
import { readFraming } from '../http1/framing';
import { readExpect } from '../http1/request';
import { decideFraming } from '../http1/response';
import { readHost, readTarget } from '../http1/target';
import { lacksSizeUpdate, readBlock, readPart } from './block';
import { addCookieLine, ensureStarted, hasPseudo } from './fields';
import { setState, state } from './state';

function begin(record: usize, base: usize, length: u32, maxBytes: u32, maxFields: u32, flags: u32): void {
  setState(STATE_AT, BLOCK_IN);
  setState(STATE_END, BLOCK_IN + length);
  setState(STATE_OUT, <u32>base);
  setState(STATE_OUT_END, <u32>base + maxBytes);
  setState(STATE_FAULT, 0);
  setState(STATE_FIELD_COUNT, 0);
  setState(STATE_MAX_FIELDS, maxFields);
  setState(STATE_FLAGS, flags);
  store<u64>(STATE, 0, STATE_KNOWN);
  setState(STATE_PSEUDO_SEEN, 0);
  setState(STATE_STARTED, 0);
  setState(STATE_PSEUDO_END, PSEUDO);
  setState(STATE_COOKIE_END, COOKIE);
  setState(STATE_HEAD_FLAGS, 0);
  setState(STATE_RECORD, <u32>record);
}

/** Reads the block into the record; the length of the head's text or an error. */
function readHead(table: usize, record: usize, base: usize, length: u32, maxBytes: u32, maxFields: u32, flags: u32): i32 {
  clearRecord(record, base);
  // Two bytes stay free for the empty line.
  begin(record, base, length, min(maxBytes, <u32>min(HEAD_LIMIT_BYTES, AREA_BYTES)) - 2, maxFields, flags);
  const broken = readBlock(table);
  if (broken != 0) return broken;
  if (ensureStarted()) addCookieLine();
  const fault = <i32>state(STATE_FAULT);
  if (fault != 0) return fault;
  const end = <usize>state(STATE_OUT);
  store<u16>(end, CRLF);
  store<u32>(record, state(STATE_FIELD_COUNT), RECORD_FIELD_COUNT);
  store<u64>(record, load<u64>(STATE, STATE_KNOWN), RECORD_KNOWN_LOW);
  store<u32>(record, state(STATE_HEAD_FLAGS), RECORD_FLAGS);
  return <i32>(end + 2 - base);
}

/** How the body of a request ends; FRAMING_* or an error. */
function requestFraming(record: usize, isEnd: bool): i32 {
  const declared = readFraming(record, false);
  if (declared < 0) return declared;
  const hasLength = hasField(record, ID_CONTENT_LENGTH);
  // Nor has what opens a tunnel.
  const opensTunnel = load<u32>(record, RECORD_METHOD) == METHOD_CONNECT || hasPseudo(KIND_PROTOCOL);
  if (opensTunnel) return hasLength ? ERROR_BODY_FORBIDDEN : FRAMING_NONE;
  // TRACE has no content (RFC 9110 section 9.3.8).
  if (!isEnd && load<u32>(record, RECORD_METHOD) == METHOD_TRACE) return ERROR_BODY_FORBIDDEN;
  if (isEnd) return declared == FRAMING_LENGTH ? ERROR_LENGTH_AND_END : FRAMING_NONE;
  return hasLength ? FRAMING_LENGTH : FRAMING_UNTIL_CLOSE;
}

/** What the fields mean together; 0 or an error. */
function judgeRequest(record: usize, flags: u32): i32 {
  let error = readTarget(record);
  if (error != 0) return error;
  error = readHost(record);
  if (error != 0) return error;
  const framing = requestFraming(record, (flags & BLOCK_END_STREAM) != 0);
  if (framing < 0) return framing;
  store<u32>(record, framing, RECORD_FRAMING);
  readExpect(record);
  return readConnection(record);
}

/**
 * Decodes a request's block into the request record, table and area.
 * @param table  the connection's decoder
 * @param maxBytes, maxFields  bounds of the head as text, and of its fields
 * @param flags  BLOCK_*
 * @returns the length of its text, or an error: ERROR_COMPRESSION is one of the connection, all others of the stream. The
 *   record says the method all the same, as far as that has been read; METHOD_OTHER otherwise.
 */
export function decodeRequest(table: usize, length: u32, maxBytes: u32, maxFields: u32, flags: u32): i32 {
  store<u32>(REQUEST_RECORD, METHOD_OTHER, RECORD_METHOD);
  const result = readHead(table, REQUEST_RECORD, REQUEST_IN, length, maxBytes, maxFields, flags);
  if (result < 0) return result;
  const error = judgeRequest(REQUEST_RECORD, flags);
  if (error != 0) return error;
  return finish(REQUEST_RECORD, result);
}

/** How the body of a response ends; FRAMING_* or an error. */
function responseFraming(record: usize, requestMethod: u32, isEnd: bool): i32 {
  const status = load<u32>(record, RECORD_STATUS);
  if (status < 200 && isEnd) return ERROR_INFORMATIONAL_END;
  const framing = decideFraming(record, requestMethod, false);
  if (framing < 0) return framing;
  if (framing == FRAMING_LENGTH && isEnd) return ERROR_LENGTH_AND_END;
  if (framing == FRAMING_UNTIL_CLOSE) return isEnd ? FRAMING_NONE : framing;
  if (framing != FRAMING_NONE || isEnd || status < 200) return framing;
  // Without END_STREAM, DATA may follow: none, if the message can have no content.
  const isWithout = requestMethod == METHOD_HEAD || status == 204 || status == 304;
  return isWithout ? FRAMING_NONE : FRAMING_LENGTH;
}

/** The same for a response. @param requestMethod  METHOD_* of the request that it answers. */
export function decodeResponse(
  table: usize,
  length: u32,
  maxBytes: u32,
  maxFields: u32,
  flags: u32,
  requestMethod: u32,
): i32 {
  const record: usize = RESPONSE_RECORD;
  const result = readHead(table, record, RESPONSE_IN, length, maxBytes, maxFields, flags);
  if (result < 0) return result;
  const framing = responseFraming(record, requestMethod, (flags & BLOCK_END_STREAM) != 0);
  if (framing < 0) return framing;
  store<u32>(record, framing, RECORD_FRAMING);
  const error = readConnection(record);
  return error != 0 ? error : finish(record, result);
}

function finish(record: usize, length: i32): i32 {
  store<u32>(record, length, RECORD_HEAD_LENGTH);
  const first = load<u32>(record, RECORD_FIELD_COUNT) == 0 ? <u32>length - 2 : <u32>load<u16>(tableOf(record));
  store<u32>(record, first, RECORD_FIELDS_START);
  return length;
}

/** Decodes the block behind a body: its lines come to FIELD_LINES. Their length, 0 for none, or an error. */
export function decodeTrailers(table: usize, length: u32, maxBytes: u32, maxFields: u32): i32 {
  begin(0, FIELD_LINES, length, min(maxBytes, <u32>FIELD_LINES_BYTES), maxFields, 0);
  const broken = readBlock(table);
  if (broken != 0) return broken;
  const fault = <i32>state(STATE_FAULT);
  return fault != 0 ? fault : <i32>(state(STATE_OUT) - FIELD_LINES);
}

/**
 * Reads a part of a block that is larger than BLOCK_LIMIT_BYTES, for the table's sake: its message is too large, whatever it says.
 * @param length  of the part: it begins where the part before it has been read to
 * @param flags  PART_*
 * @returns how much of it has been read; what is left belongs to the next part, STATE_SKIP bytes of which are to be left out.
 *   ERROR_COMPRESSION, when this part is the last one and something is left.
 */
export function decodePart(table: usize, length: u32, flags: u32): i32 {
  const opensRequest = (flags & PART_OPENS_REQUEST) != 0;
  if (opensRequest) {
    store<u32>(REQUEST_RECORD, METHOD_OTHER, RECORD_METHOD);
    clearRecord(REQUEST_RECORD, REQUEST_IN);
    begin(REQUEST_RECORD, REQUEST_IN, length, <u32>min(HEAD_LIMIT_BYTES, AREA_BYTES) - 2, FIELD_CAPACITY, 0);
  } else {
    begin(0, FIELD_LINES, length, 0, 0, 0);
    setState(STATE_FAULT, <u32>ERROR_HEAD_TOO_LARGE);
  }
  setState(STATE_SKIP, 0);
  if (lacksSizeUpdate(table)) return ERROR_COMPRESSION;
  readPart(table, (flags & PART_OPENS) != 0);
  // Says the method, if it has come.
  if (opensRequest) ensureStarted();
  const at = state(STATE_AT);
  if ((flags & PART_ENDS) != 0 && (at != state(STATE_END) || state(STATE_SKIP) != 0)) return ERROR_COMPRESSION;
  return <i32>(at - BLOCK_IN);
}
