// Reads a header block field by field (RFC 7541 sections 3 and 6) and hands each to fields.ts. What is wrong with a
// message does not end the reading: the dynamic table has to see the whole block.

import {
  ENTRY_FAULT,
  ENTRY_ID,
  ENTRY_KIND,
  ENTRY_NAME_LENGTH,
  ENTRY_OVERHEAD,
  ENTRY_VALUE_LENGTH,
  ERROR_COMPRESSION,
  GAP,
  HUFFMAN_LONGEST,
  NAME_SCRATCH,
  NEVER_INDEXED_GAP,
  POLICY_NEVER,
  STATE_AT,
  STATE_END,
  STATE_SKIP,
  STATE_STRING,
  STATE_STRING_LENGTH,
  STATIC_BY_ID,
  STATIC_POLICY,
  TABLE_CAPACITY,
  TABLE_MAX,
  VALUE_SCRATCH,
} from '../layout/http2';
import { copy } from '../http1/bytes';
import { headerId } from '../http1/names';
import { addField } from './fields';
import { decodeHuffman } from './huffman';
import { readInteger } from './integer';
import { kindOf, nameFault, valueFault } from './judge';
import { setState, state } from './state';
import { entryAt, evictTo, insert, setTableMax, textOf } from './table';

/** Reads the string at STATE_AT: its bytes where they lie, or decoded to `scratch`. False when it is broken. */
function readString(scratch: usize): bool {
  const at = <usize>state(STATE_AT);
  const end = <usize>state(STATE_END);
  if (at >= end) return false;
  const isHuffman = (load<u8>(at) & 0x80) != 0;
  const length = readInteger(7);
  if (length < 0) return false;
  const start = <usize>state(STATE_AT);
  if (<usize>length > end - start) return false;
  setState(STATE_AT, <u32>(start + length));
  if (!isHuffman) {
    setState(STATE_STRING, <u32>start);
    setState(STATE_STRING_LENGTH, length);
    return true;
  }
  const decoded = decodeHuffman(start, start + length, scratch);
  if (decoded < 0) return false;
  setState(STATE_STRING, <u32>scratch);
  setState(STATE_STRING_LENGTH, decoded);
  return true;
}

/** How a line says that its field is never indexed; one of a name that never is anyhow need not. */
@inline
function neverIndexedGap(id: u32): u32 {
  const policy = <u32>load<u8>(<usize>STATIC_POLICY + <usize>load<u8>(<usize>STATIC_BY_ID + <usize>id));
  return policy == POLICY_NEVER ? GAP : NEVER_INDEXED_GAP;
}

/** A field whose value stands in the block, and perhaps its name; `isIndexed`: it enters the table, `isNever`: nor may it elsewhere. */
function readLiteral(table: usize, prefix: u32, isIndexed: bool, isNever: bool): i32 {
  const index = readInteger(prefix);
  if (index < 0) return ERROR_COMPRESSION;
  let name: usize;
  let nameLength: u32;
  let id: u32;
  let kind: u32;
  let fault: i32 = 0;
  if (index != 0) {
    const entry = entryAt(table, index);
    if (entry == 0) return ERROR_COMPRESSION;
    name = textOf(table, entry);
    nameLength = load<u16>(entry, ENTRY_NAME_LENGTH);
    id = load<u8>(entry, ENTRY_ID);
    kind = load<u8>(entry, ENTRY_KIND);
    // The entry's fault may be that of its value.
    if (load<i16>(entry, ENTRY_FAULT) != 0) fault = nameFault(name, nameLength, kind);
    if (isIndexed) {
      // Inserting may move or evict the entry that the name is taken from.
      copy(NAME_SCRATCH, name, nameLength);
      name = NAME_SCRATCH;
    }
  } else {
    if (!readString(NAME_SCRATCH)) return ERROR_COMPRESSION;
    name = state(STATE_STRING);
    nameLength = state(STATE_STRING_LENGTH);
    id = nameLength == 0 ? 0 : headerId(name, nameLength);
    kind = kindOf(name, nameLength, id);
    fault = nameFault(name, nameLength, kind);
  }
  if (!readString(VALUE_SCRATCH)) return ERROR_COMPRESSION;
  const value = <usize>state(STATE_STRING);
  const valueLength = state(STATE_STRING_LENGTH);
  if (fault == 0) fault = valueFault(value, valueLength);
  if (isIndexed) insert(table, name, nameLength, value, valueLength, id, kind, fault);
  addField(kind, id, fault, name, nameLength, value, valueLength, isNever ? neverIndexedGap(id) : GAP);
  return 0;
}

/** What readField has read. */
const FIELD: i32 = 1;
const SIZE_UPDATE: i32 = 2;

/** Reads what begins at STATE_AT: FIELD, SIZE_UPDATE or ERROR_COMPRESSION. */
@inline
function readField(table: usize, mayUpdateSize: bool): i32 {
  const byte = <u32>load<u8>(state(STATE_AT));
  if ((byte & 0x80) != 0) {
    const index = readInteger(7);
    if (index <= 0) return ERROR_COMPRESSION;
    const entry = entryAt(table, index);
    if (entry == 0) return ERROR_COMPRESSION;
    const name = textOf(table, entry);
    const nameLength = <u32>load<u16>(entry, ENTRY_NAME_LENGTH);
    addField(
      load<u8>(entry, ENTRY_KIND),
      load<u8>(entry, ENTRY_ID),
      load<i16>(entry, ENTRY_FAULT),
      name,
      nameLength,
      name + nameLength,
      load<u16>(entry, ENTRY_VALUE_LENGTH),
      GAP,
    );
    return FIELD;
  }
  if ((byte & 0x40) != 0) return readLiteral(table, 6, true, false) != 0 ? ERROR_COMPRESSION : FIELD;
  if ((byte & 0x20) == 0) return readLiteral(table, 4, false, (byte & 0x10) != 0) != 0 ? ERROR_COMPRESSION : FIELD;
  const max = readInteger(5);
  // A size update stands in front of all fields (section 4.2).
  if (!mayUpdateSize || max < 0 || <u32>max > load<u32>(table, TABLE_CAPACITY)) return ERROR_COMPRESSION;
  setTableMax(table, max);
  return SIZE_UPDATE;
}

/** The peer has acknowledged a smaller table, and this block does not begin with saying so (RFC 9113 section 4.3.1). */
@inline
export function lacksSizeUpdate(table: usize): bool {
  if (load<u32>(table, TABLE_MAX) <= load<u32>(table, TABLE_CAPACITY)) return false;
  return state(STATE_AT) == state(STATE_END) || (load<u8>(state(STATE_AT)) & 0xe0) != 0x20;
}

/** Reads the whole block between STATE_AT and STATE_END: 0 or ERROR_COMPRESSION. */
export function readBlock(table: usize): i32 {
  if (lacksSizeUpdate(table)) return ERROR_COMPRESSION;
  let atStart = true;
  while (state(STATE_AT) < state(STATE_END)) {
    const read = readField(table, atStart);
    if (read < 0) return read;
    if (read == FIELD) atStart = false;
  }
  return 0;
}

/**
 * Passes over a literal whose value goes on behind STATE_END. That is as good as reading it when it is too large for the table
 * whatever it says, which it then empties (RFC 7541 section 4.4), or is not to enter it. False when it is something else.
 */
function skipLiteral(table: usize): bool {
  const byte = <u32>load<u8>(state(STATE_AT));
  if ((byte & 0x80) != 0 || (byte & 0xe0) == 0x20) return false;
  const isIndexed = (byte & 0x40) != 0;
  const index = readInteger(isIndexed ? 6 : 4);
  if (index < 0) return false;
  if (index != 0 ? entryAt(table, index) == 0 : !readString(NAME_SCRATCH)) return false;
  const end = state(STATE_END);
  if (state(STATE_AT) >= end) return false;
  const isHuffman = (load<u8>(state(STATE_AT)) & 0x80) != 0;
  const length = <u32>readInteger(7);
  if (<i32>length < 0) return false;
  const left = end - state(STATE_AT);
  if (length <= left) return false;
  if (isIndexed) {
    const leastOctets = isHuffman ? (length * 8 - 7) / HUFFMAN_LONGEST : length;
    if (leastOctets + ENTRY_OVERHEAD <= load<u32>(table, TABLE_MAX)) return false;
    evictTo(table, 0);
  }
  setState(STATE_SKIP, length - left);
  setState(STATE_AT, end);
  return true;
}

/**
 * Reads what is whole between STATE_AT, where something begins, and STATE_END, where a field may be cut. What is cut, or broken,
 * is left from STATE_AT on.
 */
export function readPart(table: usize, atStart: bool): void {
  const first = state(STATE_AT);
  let mayUpdateSize = atStart;
  while (state(STATE_AT) < state(STATE_END)) {
    const at = state(STATE_AT);
    const read = readField(table, mayUpdateSize);
    if (read < 0) {
      setState(STATE_AT, at);
      if (at == first && !skipLiteral(table)) setState(STATE_AT, at);
      return;
    }
    if (read == FIELD) mayUpdateSize = false;
  }
}
