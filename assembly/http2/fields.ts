// Fields of a block to the text of a head as HTTP/1 has it, and to its header table: whoever reads, edits or writes a
// head finds the same, whatever protocol brought it. Pseudo fields wait in an area of their own until the first
// ordinary field, cookie crumbs until the end (RFC 9113 section 8.2.3).

import {
  ERROR_HEAD_TOO_LARGE,
  ERROR_HOST_REPEATED,
  ERROR_TOO_MANY_FIELDS,
  FIELD_BYTES,
  FIELD_UNDERSCORE,
  FLAG_UNDERSCORE,
  ID_HOST,
  NO_FIELD,
  RECORD_BASE,
  REQUEST_RECORD,
} from '../layout/http1';
import {
  COOKIE,
  COOKIE_BYTES,
  ERROR_AUTHORITY_AND_HOST,
  ERROR_CONNECTION_FIELD,
  ERROR_PSEUDO_LATE,
  ERROR_PSEUDO_REPEATED,
  ERROR_PSEUDO_UNKNOWN,
  ERROR_TE,
  GAP,
  KIND_AUTHORITY,
  KIND_CONNECTION,
  KIND_COOKIE,
  KIND_HOST,
  KIND_ORDINARY,
  KIND_STATUS,
  KIND_TE,
  KIND_UNKNOWN_PSEUDO,
  PSEUDO,
  PSEUDO_BYTES,
  STATE,
  STATE_AUTHORITY_GAP,
  STATE_COOKIE_END,
  STATE_FAULT,
  STATE_FIELD_COUNT,
  STATE_HEAD_FLAGS,
  STATE_KNOWN,
  STATE_MAX_FIELDS,
  STATE_OUT,
  STATE_OUT_END,
  STATE_PSEUDO,
  STATE_PSEUDO_END,
  STATE_PSEUDO_SEEN,
  STATE_RECORD,
  STATE_STARTED,
} from '../layout/http2';
import { copy, CRLF, sameToken } from '../http1/bytes';
import { chain, tableOf } from '../http1/fields';
import { headerId } from '../http1/names';
import { hasUnderscore } from '../http1/scan';
import { isPseudo } from './judge';
import { setState, state } from './state';
import { startRequest, startResponse } from './start-line';

/** ':  ', '; ' and 'trailers', as little-endian loads show them. */
const COLON_SPACES: u32 = 0x20203a;
const SEMICOLON_SPACE: u16 = 0x203b;
const TRAILERS: u64 = 0x7372656c69617274;

export function fail(fault: i32): void {
  if (state(STATE_FAULT) == 0) setState(STATE_FAULT, fault);
}

/** Room for `length` more bytes of text; 0, with a fault, when the head has grown too large. */
export function reserve(length: u32): usize {
  const out = state(STATE_OUT);
  if (length > state(STATE_OUT_END) - out) {
    fail(ERROR_HEAD_TOO_LARGE);
    return 0;
  }
  setState(STATE_OUT, out + length);
  return out;
}

@inline
export function hasPseudo(kind: u32): bool {
  return ((state(STATE_PSEUDO_SEEN) >> kind) & 1) != 0;
}

@inline
export function pseudoText(kind: u32): usize {
  return load<u32>(<usize>STATE + STATE_PSEUDO + <usize>kind * 8);
}

@inline
export function pseudoLength(kind: u32): u32 {
  return load<u32>(<usize>STATE + STATE_PSEUDO + <usize>kind * 8 + 4);
}

function addPseudo(kind: u32, value: usize, length: u32, gap: u32): void {
  const record = state(STATE_RECORD);
  const isForeign = record == REQUEST_RECORD ? kind == KIND_STATUS : kind != KIND_STATUS;
  if (kind == KIND_UNKNOWN_PSEUDO || record == 0 || isForeign) return fail(ERROR_PSEUDO_UNKNOWN);
  if (state(STATE_STARTED) != 0) return fail(ERROR_PSEUDO_LATE);
  if (hasPseudo(kind)) return fail(ERROR_PSEUDO_REPEATED);
  const at = state(STATE_PSEUDO_END);
  if (length > <u32>(PSEUDO + PSEUDO_BYTES) - at) return fail(ERROR_HEAD_TOO_LARGE);
  copy(at, value, length);
  store<u32>(<usize>STATE + STATE_PSEUDO + <usize>kind * 8, at);
  store<u32>(<usize>STATE + STATE_PSEUDO + <usize>kind * 8 + 4, length);
  setState(STATE_PSEUDO_END, at + length);
  if (kind == KIND_AUTHORITY) setState(STATE_AUTHORITY_GAP, gap);
  setState(STATE_PSEUDO_SEEN, state(STATE_PSEUDO_SEEN) | (1 << kind));
}

/** Appends a crumb behind the others; the line itself comes at the end. */
function addCookie(value: usize, length: u32): void {
  const end = <usize>state(STATE_COOKIE_END);
  const isFirst = end == COOKIE;
  const needed = isFirst ? length : length + 2;
  if (needed > <u32>(<usize>(COOKIE + COOKIE_BYTES) - end)) return fail(ERROR_HEAD_TOO_LARGE);
  if (!isFirst) store<u16>(end, SEMICOLON_SPACE);
  copy(isFirst ? end : end + 2, value, length);
  setState(STATE_COOKIE_END, <u32>(end + needed));
}

/** Writes one line, and its entry of the header table when there is one; `gap`: GAP or NEVER_INDEXED_GAP. */
export function addLine(id: u32, name: usize, nameLength: u32, value: usize, valueLength: u32, gap: u32): void {
  const count = state(STATE_FIELD_COUNT);
  if (count >= state(STATE_MAX_FIELDS)) return fail(ERROR_TOO_MANY_FIELDS);
  const line = reserve(nameLength + gap + valueLength + 2);
  if (line == 0) return;
  const at = copy(line, name, nameLength);
  // Reaches as far as the line at least.
  store<u32>(at, COLON_SPACES);
  const end = copy(at + gap, value, valueLength);
  store<u16>(end, CRLF);
  setState(STATE_FIELD_COUNT, count + 1);
  const record = <usize>state(STATE_RECORD);
  if (record == 0) return;

  let flags: u64 = 0;
  if (id != 0) {
    const known = load<u64>(<usize>STATE + STATE_KNOWN);
    const bit = <u64>1 << id;
    chain(record, tableOf(record), id, count, (known & bit) != 0);
    store<u64>(<usize>STATE + STATE_KNOWN, known | bit);
  } else if (hasUnderscore(line, nameLength)) {
    flags = FIELD_UNDERSCORE;
    setState(STATE_HEAD_FLAGS, state(STATE_HEAD_FLAGS) | FLAG_UNDERSCORE);
  }
  const base = <usize>load<u32>(record, RECORD_BASE);
  const field = tableOf(record) + <usize>count * FIELD_BYTES;
  const span = <u64>(line - base) | (<u64>nameLength << 16);
  store<u64>(field, span | (<u64>(at + gap - base) << 32) | (<u64>valueLength << 48));
  store<u64>(field, <u64>(end + 2 - base) | (<u64>id << 16) | (<u64>NO_FIELD << 32) | (flags << 48), 8);
}

/** Writes the start line, unless it is there. False after a fault. */
export function ensureStarted(): bool {
  if (state(STATE_STARTED) == 0) {
    setState(STATE_STARTED, 1);
    const record = state(STATE_RECORD);
    if (record != 0) fail(record == REQUEST_RECORD ? startRequest() : startResponse());
  }
  return state(STATE_FAULT) == 0;
}

/** Host beside :authority has to say the same, and then is one field too many. */
function addHost(id: u32, name: usize, nameLength: u32, value: usize, valueLength: u32, gap: u32): void {
  if (!hasPseudo(KIND_AUTHORITY)) {
    if (((load<u64>(<usize>STATE + STATE_KNOWN) >> ID_HOST) & 1) != 0) return fail(ERROR_HOST_REPEATED);
    return addLine(id, name, nameLength, value, valueLength, gap);
  }
  const isSame =
    valueLength == pseudoLength(KIND_AUTHORITY) && sameToken(value, pseudoText(KIND_AUTHORITY), valueLength);
  if (!isSame) fail(ERROR_AUTHORITY_AND_HOST);
}

/** Takes one field of a block, with the fault that its name or value has. */
export function addField(
  kind: u32,
  id: u32,
  fault: i32,
  name: usize,
  nameLength: u32,
  value: usize,
  valueLength: u32,
  gap: u32,
): void {
  if (state(STATE_FAULT) != 0) return;
  if (fault != 0) return fail(fault);
  if (isPseudo(kind)) return addPseudo(kind, value, valueLength, gap);
  if (!ensureStarted()) return;
  if (kind == KIND_ORDINARY) return addLine(id, name, nameLength, value, valueLength, gap);
  if (kind == KIND_CONNECTION) return fail(ERROR_CONNECTION_FIELD);
  const record = state(STATE_RECORD);
  if (record == REQUEST_RECORD) {
    if (kind == KIND_COOKIE) return addCookie(value, valueLength);
    if (kind == KIND_HOST) return addHost(id, name, nameLength, value, valueLength, gap);
  }
  if (kind == KIND_TE && (valueLength != 8 || load<u64>(value) != TRAILERS)) return fail(ERROR_TE);
  addLine(id, name, nameLength, value, valueLength, gap);
}

/** Writes the one Cookie line that the crumbs have become. */
export function addCookieLine(): void {
  const end = <usize>state(STATE_COOKIE_END);
  if (end == COOKIE) return;
  // The name is spelt out behind the crumbs, at most in the slack of their area.
  const name = end;
  store<u64>(name, 0x65696b6f6f63);
  addLine(headerId(name, 6), name, 6, COOKIE, <u32>(end - COOKIE), GAP);
}
