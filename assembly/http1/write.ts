// The rewritten head: start line, replaced Host, runs of kept lines, prepared pieces, added lines, empty line.
// The size is bounded before the first byte is written, and nothing that an edit brought in can end a line.

import {
  ERROR_EDIT_CONTROL,
  ERROR_EDITS_TOO_LARGE,
  FIELD_BYTES,
  FIELD_DROPPED,
  FIELD_FLAGS,
  FIELD_NAME_OFFSET,
  FIELD_NEXT_LINE,
  FLAG_ABSOLUTE_FORM,
  FLAG_UPGRADE,
  FLAG_WRITTEN,
  ID_HOST,
  LINES_BYTES,
  METHOD_CONNECT,
  METHOD_OPTIONS,
  NEW_HOST,
  NEW_HOST_BYTES,
  NEW_TARGET,
  NEW_TARGET_BYTES,
  PIECE_BYTES,
  PIECE_CAPACITY,
  RECORD_ADDED_BYTES,
  RECORD_ADDED_LINES,
  RECORD_AUTHORITY_LENGTH,
  RECORD_AUTHORITY_OFFSET,
  RECORD_BASE,
  RECORD_FIELD_COUNT,
  RECORD_FIELDS_START,
  RECORD_FLAGS,
  RECORD_HEAD_LENGTH,
  RECORD_METHOD,
  RECORD_METHOD_LENGTH,
  RECORD_MINOR_VERSION,
  RECORD_NEW_HOST_LENGTH,
  RECORD_NEW_TARGET_LENGTH,
  RECORD_PATH_LENGTH,
  RECORD_PATH_OFFSET,
  RECORD_PIECE_COUNT,
  RECORD_PIECES,
  RECORD_START,
  RECORD_TARGET_LENGTH,
  RECORD_TARGET_OFFSET,
  REQUEST_LINES,
  REQUEST_OUT,
  REQUEST_OUT_BYTES,
  REQUEST_RECORD,
  RESPONSE_LINES,
  RESPONSE_OUT,
  RESPONSE_OUT_BYTES,
  RESPONSE_RECORD,
} from '../layout/http1';
import { ASTERISK, copy, CRLF, QUESTION, SLASH, SPACE } from './bytes';
import { addFlags, clearEdits, dropAll, firstField, hasField, tableOf } from './fields';
import { countControls, skipTarget } from './scan';
import { isAuthority } from './target';

/** 'HTTP/1.1' and 'host: ' (6 bytes), as little-endian loads show them. */
const HTTP_1_1: u64 = 0x312e312f50545448;
const HOST_NAME: u64 = 0x0000203a74736f68;

/** Upper bound of what the writers add of their own: version, Host name, line ends, a '/' and a space. */
const OWN_BYTES: u32 = 64;

/** Refuses edits that do not fit or could break out of their line; 0 or an error. */
export function checkEdits(record: usize, lines: usize, capacity: u32): i32 {
  const target = load<u32>(record, RECORD_NEW_TARGET_LENGTH);
  const host = load<u32>(record, RECORD_NEW_HOST_LENGTH);
  const added = load<u32>(record, RECORD_ADDED_BYTES);
  const pieces = load<u32>(record, RECORD_PIECE_COUNT);
  if (target > <u32>NEW_TARGET_BYTES || host > <u32>NEW_HOST_BYTES) return ERROR_EDITS_TOO_LARGE;
  if (added > <u32>LINES_BYTES || pieces > <u32>PIECE_CAPACITY) return ERROR_EDITS_TOO_LARGE;
  let total = load<u32>(record, RECORD_HEAD_LENGTH) + target + host + added + OWN_BYTES;
  for (let i: u32 = 0; i < pieces; i++) total += load<u32>(record + <usize>i * PIECE_BYTES, RECORD_PIECES + 4);
  if (total > capacity) return ERROR_EDITS_TOO_LARGE;

  const targetEnd = <usize>NEW_TARGET + target;
  if (target != 0 && skipTarget(NEW_TARGET, targetEnd) != targetEnd) return ERROR_EDIT_CONTROL;
  if (host != 0 && !isAuthority(NEW_HOST, <usize>NEW_HOST + host, false)) return ERROR_EDIT_CONTROL;
  // Each added line ends in a CRLF that the facade wrote itself: any other control character came with the text.
  if (added != 0 && countControls(lines, lines + added) != load<u32>(record, RECORD_ADDED_LINES) * 2) {
    return ERROR_EDIT_CONTROL;
  }
  return 0;
}

/** Copies the runs of kept lines between `from` and the empty line. */
function copyKept(record: usize, out: usize, from: usize): usize {
  const base = <usize>load<u32>(record, RECORD_BASE);
  let field = tableOf(record);
  const end = field + <usize>load<u32>(record, RECORD_FIELD_COUNT) * FIELD_BYTES;
  for (; field < end; field += FIELD_BYTES) {
    if ((load<u16>(field, FIELD_FLAGS) & FIELD_DROPPED) == 0) continue;
    const line = base + load<u16>(field, FIELD_NAME_OFFSET);
    if (line > from) out = copy(out, from, line - from);
    from = base + load<u16>(field, FIELD_NEXT_LINE);
  }
  const last = base + load<u32>(record, RECORD_HEAD_LENGTH) - 2;
  return last > from ? copy(out, from, last - from) : out;
}

/** Appends prepared pieces, added lines and the empty line. */
function finish(record: usize, out: usize, lines: usize): usize {
  const pieces = load<u32>(record, RECORD_PIECE_COUNT);
  for (let i: u32 = 0; i < pieces; i++) {
    const piece = record + <usize>i * PIECE_BYTES;
    out = copy(out, load<u32>(piece, RECORD_PIECES), load<u32>(piece, RECORD_PIECES + 4));
  }
  out = copy(out, lines, load<u32>(record, RECORD_ADDED_BYTES));
  store<u16>(out, CRLF);
  return out + 2;
}

/** The target as the next hop gets it: replaced, or an absolute form's path, or as received. */
function writeTarget(record: usize, out: usize): usize {
  const base = <usize>load<u32>(record, RECORD_BASE);
  const replaced = load<u32>(record, RECORD_NEW_TARGET_LENGTH);
  if (replaced != 0) return copy(out, NEW_TARGET, replaced);
  if ((load<u32>(record, RECORD_FLAGS) & FLAG_ABSOLUTE_FORM) == 0) {
    return copy(out, base + load<u32>(record, RECORD_TARGET_OFFSET), load<u32>(record, RECORD_TARGET_LENGTH));
  }
  const path = base + load<u32>(record, RECORD_PATH_OFFSET);
  const length = load<u32>(record, RECORD_PATH_LENGTH);
  if (length == 0) {
    store<u8>(out, load<u32>(record, RECORD_METHOD) == METHOD_OPTIONS ? ASTERISK : SLASH);
    return out + 1;
  }
  if (load<u8>(path) == QUESTION) store<u8>(out++, SLASH);
  return copy(out, path, length);
}

function writeRequestLine(record: usize, out: usize): usize {
  const base = <usize>load<u32>(record, RECORD_BASE);
  const method = base + load<u32>(record, RECORD_START);
  out = copy(out, method, load<u32>(record, RECORD_METHOD_LENGTH));
  store<u8>(out, SPACE);
  out = writeTarget(record, out + 1);
  store<u8>(out, SPACE);
  store<u64>(out + 1, HTTP_1_1);
  store<u16>(out + 9, CRLF);
  return out + 11;
}

/** Writes Host from the edit or from an absolute form's authority, and drops the received one. */
function writeHost(record: usize, out: usize): usize {
  const replaced = load<u32>(record, RECORD_NEW_HOST_LENGTH);
  const authority = <usize>load<u32>(record, RECORD_BASE) + load<u32>(record, RECORD_AUTHORITY_OFFSET);
  store<u64>(out, HOST_NAME);
  out =
    replaced != 0
      ? copy(out + 6, NEW_HOST, replaced)
      : copy(out + 6, authority, load<u32>(record, RECORD_AUTHORITY_LENGTH));
  store<u16>(out, CRLF);
  if (hasField(record, ID_HOST)) dropAll(record, ID_HOST);
  return out + 2;
}

/** Whether a request says the same as its written text would: whose target has no form that another reading makes another of. */
function readsAsWritten(record: usize): bool {
  if (load<u32>(record, RECORD_METHOD) == METHOD_CONNECT) return false;
  if ((load<u32>(record, RECORD_FLAGS) & FLAG_UPGRADE) != 0) return false;
  if (load<u32>(record, RECORD_NEW_TARGET_LENGTH) != 0 && load<u8>(NEW_TARGET) != SLASH) return false;
  return (load<u32>(record, RECORD_AUTHORITY_LENGTH) | load<u32>(record, RECORD_NEW_HOST_LENGTH)) != 0;
}

/**
 * Writes the request head with its edits to REQUEST_OUT.
 * @param keepsEdits  not 0: the edits stay, and FLAG_WRITTEN says whether the record stands for the text
 * @returns its length, 0 when no head was parsed, or an error below 0.
 */
export function writeRequest(keepsEdits: i32): i32 {
  const record: usize = REQUEST_RECORD;
  if (load<u32>(record, RECORD_HEAD_LENGTH) == 0) return 0;
  const error = checkEdits(record, REQUEST_LINES, REQUEST_OUT_BYTES);
  if (error != 0) {
    clearEdits(record);
    return error;
  }
  const base = <usize>load<u32>(record, RECORD_BASE);
  const isAbsolute = (load<u32>(record, RECORD_FLAGS) & FLAG_ABSOLUTE_FORM) != 0;
  const newHost = isAbsolute || load<u32>(record, RECORD_NEW_HOST_LENGTH) != 0;
  const newLine =
    newHost ||
    load<u32>(record, RECORD_NEW_TARGET_LENGTH) != 0 ||
    load<u32>(record, RECORD_MINOR_VERSION) == 0;
  let out: usize = REQUEST_OUT;
  let from = base + load<u32>(record, RECORD_START);
  if (newLine) {
    out = writeRequestLine(record, out);
    if (newHost) out = writeHost(record, out);
    from = base + load<u32>(record, RECORD_FIELDS_START);
  }
  out = copyKept(record, out, from);
  out = finish(record, out, REQUEST_LINES);
  if (keepsEdits == 0) clearEdits(record);
  else if (readsAsWritten(record)) addFlags(record, FLAG_WRITTEN);
  return <i32>(out - REQUEST_OUT);
}

/** The same for the response head, to RESPONSE_OUT; the status line becomes HTTP/1.1 and gets its last space. */
export function writeResponse(): i32 {
  const record: usize = RESPONSE_RECORD;
  if (load<u32>(record, RECORD_HEAD_LENGTH) == 0) return 0;
  const error = checkEdits(record, RESPONSE_LINES, RESPONSE_OUT_BYTES);
  if (error != 0) {
    clearEdits(record);
    return error;
  }
  const base = <usize>load<u32>(record, RECORD_BASE);
  const fields = base + load<u32>(record, RECORD_FIELDS_START);
  let out: usize = RESPONSE_OUT;
  // "HTTP/1.1" and " 200" come first, then what follows the status, which may lack its space.
  store<u64>(out, HTTP_1_1);
  store<u32>(out + 8, load<u32>(base + 8));
  store<u8>(out + 12, SPACE);
  out = copy(out + 13, base + load<u32>(record, RECORD_TARGET_OFFSET), load<u32>(record, RECORD_TARGET_LENGTH));
  store<u16>(out, CRLF);
  out = copyKept(record, out + 2, fields);
  out = finish(record, out, RESPONSE_LINES);
  clearEdits(record);
  return <i32>(out - RESPONSE_OUT);
}
