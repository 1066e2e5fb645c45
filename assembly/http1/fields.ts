// Header lines to header table. Only the syntax of RFC 9112 section 5 is judged here; what fields mean together
// is for framing.ts, connection.ts and the callers.

import {
  ERROR_FIELD_NAME,
  ERROR_FIELD_VALUE,
  ERROR_FOLDED,
  ERROR_LINE_END,
  ERROR_SPACE_BEFORE_COLON,
  ERROR_TOO_MANY_FIELDS,
  FIELD_BYTES,
  FIELD_DROPPED,
  FIELD_FLAGS,
  FIELD_NEXT_SAME,
  FIELD_UNDERSCORE,
  FIELD_VALUE_LENGTH,
  FIELD_VALUE_OFFSET,
  FLAG_UNDERSCORE,
  FLAG_WRITTEN,
  NO_FIELD,
  RECORD_ADDED_BYTES,
  RECORD_ADDED_LINES,
  RECORD_BASE,
  RECORD_CONTENT_LENGTH,
  RECORD_FIELD_COUNT,
  RECORD_FIELDS_START,
  RECORD_FIRST_FIELD,
  RECORD_FLAGS,
  RECORD_HEAD_LENGTH,
  RECORD_KNOWN_LOW,
  RECORD_LAST_FIELD,
  RECORD_NEW_HOST_LENGTH,
  RECORD_NEW_TARGET_LENGTH,
  RECORD_PIECE_COUNT,
  REQUEST_FIELDS,
  REQUEST_RECORD,
  RESPONSE_FIELDS,
} from '../layout/http1';
import { COLON, CR, CRLF, isBlank, LF } from './bytes';
import { headerId } from './names';
import { hasUnderscore, skipToken, skipValue } from './scan';

/** Address of the header table that belongs to a record. */
@inline
export function tableOf(record: usize): usize {
  return record == REQUEST_RECORD ? REQUEST_FIELDS : RESPONSE_FIELDS;
}

/** Empties the record for a new head at `base`, edits included. */
export function clearRecord(record: usize, base: usize): void {
  store<u32>(record, <u32>base, RECORD_BASE);
  store<u32>(record, 0, RECORD_HEAD_LENGTH);
  store<f64>(record, -1, RECORD_CONTENT_LENGTH);
  store<u32>(record, 0, RECORD_FLAGS);
  store<u32>(record, 0, RECORD_FIELD_COUNT);
  store<u64>(record, 0, RECORD_KNOWN_LOW);
  clearEdits(record);
}

export function clearEdits(record: usize): void {
  store<u32>(record, 0, RECORD_NEW_TARGET_LENGTH);
  store<u32>(record, 0, RECORD_NEW_HOST_LENGTH);
  store<u32>(record, 0, RECORD_ADDED_BYTES);
  store<u32>(record, 0, RECORD_ADDED_LINES);
  store<u32>(record, 0, RECORD_PIECE_COUNT);
  store<u32>(record, load<u32>(record, RECORD_FLAGS) & ~FLAG_WRITTEN, RECORD_FLAGS);
}

/** What is wrong with a line whose name does not end in a colon. */
function nameError(name: usize, nameEnd: usize): i32 {
  const byte = load<u8>(nameEnd);
  if (nameEnd == name) {
    if (isBlank(byte)) return ERROR_FOLDED;
    if (byte == LF) return ERROR_LINE_END;
    return ERROR_FIELD_NAME;
  }
  return isBlank(byte) ? ERROR_SPACE_BEFORE_COLON : ERROR_FIELD_NAME;
}

/** Hangs field `index` to the chain of its known id, so that all fields of one name are found in order. */
@inline
export function chain(record: usize, table: usize, id: u32, index: u32, seen: bool): void {
  const slot = record + <usize>id * 2;
  if (seen) store<u16>(table + <usize>load<u16>(slot, RECORD_LAST_FIELD) * FIELD_BYTES, <u16>index, FIELD_NEXT_SAME);
  else store<u16>(slot, <u16>index, RECORD_FIRST_FIELD);
  store<u16>(slot, <u16>index, RECORD_LAST_FIELD);
}

/**
 * Reads header lines from `p` to the empty line, at most `maxFields` of them.
 * @returns the head's length, 0 when [p, end) ends before the empty line, or an error. The first fault in the
 *   order of the bytes decides, so that a head cut anywhere fails alike. Writes table and record only.
 */
export function readFields(record: usize, p: usize, end: usize, maxFields: u32): i32 {
  const base = <usize>load<u32>(record, RECORD_BASE);
  const table = tableOf(record);
  let field = table;
  let count: u32 = 0;
  let known: u64 = 0;
  let flags: u32 = 0;
  store<u32>(record, <u32>(p - base), RECORD_FIELDS_START);

  while (p < end && load<u8>(p) != CR) {
    if (count == maxFields) return ERROR_TOO_MANY_FIELDS;
    const name = p;
    const nameEnd = skipToken(p, end);
    if (nameEnd == end) return 0;
    if (load<u8>(nameEnd) != COLON || nameEnd == name) return nameError(name, nameEnd);

    let value = nameEnd + 1;
    while (value < end && isBlank(load<u8>(value))) value++;
    const valueEnd = skipValue(value, end);
    if (valueEnd == end) return 0;
    const stop = load<u8>(valueEnd);
    if (stop != CR) return stop == LF ? ERROR_LINE_END : ERROR_FIELD_VALUE;
    if (valueEnd + 1 == end) return 0;
    if (load<u16>(valueEnd) != CRLF) return ERROR_LINE_END;
    p = valueEnd + 2;

    let trimmed = valueEnd;
    while (trimmed > value && isBlank(load<u8>(trimmed - 1))) trimmed--;
    const nameLength = nameEnd - name;
    const id = headerId(name, nameLength);
    let fieldFlags: u64 = 0;
    if (id != 0) {
      const bit = <u64>1 << id;
      chain(record, table, id, count, (known & bit) != 0);
      known |= bit;
    } else if (hasUnderscore(name, nameLength)) {
      fieldFlags = FIELD_UNDERSCORE;
      flags = FLAG_UNDERSCORE;
    }
    const span = <u64>(name - base) | (<u64>nameLength << 16);
    store<u64>(field, span | (<u64>(value - base) << 32) | (<u64>(trimmed - value) << 48));
    store<u64>(field, <u64>(p - base) | (<u64>id << 16) | (<u64>NO_FIELD << 32) | (fieldFlags << 48), 8);
    field += FIELD_BYTES;
    count++;
  }

  if (p + 2 > end) return 0;
  if (load<u16>(p) != CRLF) return ERROR_LINE_END;
  store<u32>(record, count, RECORD_FIELD_COUNT);
  store<u64>(record, known, RECORD_KNOWN_LOW);
  store<u32>(record, flags, RECORD_FLAGS);
  return <i32>(p + 2 - base);
}

@inline
export function hasField(record: usize, id: u32): bool {
  return ((load<u64>(record, RECORD_KNOWN_LOW) >> id) & 1) != 0;
}

/** Table entry of the first field with a known id that is present. */
@inline
export function firstField(record: usize, id: u32): usize {
  return tableOf(record) + <usize>load<u16>(record + <usize>id * 2, RECORD_FIRST_FIELD) * FIELD_BYTES;
}

@inline
export function isRepeated(field: usize): bool {
  return load<u16>(field, FIELD_NEXT_SAME) != NO_FIELD;
}

/** Entry of the next field with the same id, 0 behind the last. */
@inline
export function nextField(record: usize, field: usize): usize {
  const next = load<u16>(field, FIELD_NEXT_SAME);
  return next == NO_FIELD ? 0 : tableOf(record) + <usize>next * FIELD_BYTES;
}

@inline
export function valueOf(record: usize, field: usize): usize {
  return <usize>load<u32>(record, RECORD_BASE) + load<u16>(field, FIELD_VALUE_OFFSET);
}

@inline
export function valueLength(field: usize): usize {
  return load<u16>(field, FIELD_VALUE_LENGTH);
}

@inline
export function dropField(field: usize): void {
  store<u16>(field, load<u16>(field, FIELD_FLAGS) | FIELD_DROPPED, FIELD_FLAGS);
}

/** Marks every field of a known id that is present. */
export function dropAll(record: usize, id: u32): void {
  let field = firstField(record, id);
  while (field != 0) {
    dropField(field);
    field = nextField(record, field);
  }
}

@inline
export function addFlags(record: usize, flags: u32): void {
  store<u32>(record, load<u32>(record, RECORD_FLAGS) | flags, RECORD_FLAGS);
}
