// The static table and dynamic tables (RFC 7541 section 2.3). What kind of field an entry is, and what is wrong with
// it, is found out once, when it is inserted.

import {
  BUCKET_BYTES,
  BUCKET_COUNT,
  ENTRY_BYTES,
  ENTRY_FAULT,
  ENTRY_ID,
  ENTRY_KIND,
  ENTRY_NAME_LENGTH,
  ENTRY_OVERHEAD,
  ENTRY_TEXT,
  ENTRY_VALUE_LENGTH,
  SPILL,
  SPILL_SLOTS,
  SPILL_TEXT_BYTES,
  STATIC_COUNT,
  STATIC_ENTRIES,
  TABLE_BUCKETS,
  TABLE_CAPACITY,
  TABLE_COUNT,
  TABLE_ENTRIES,
  TABLE_FIRST_POSITION,
  TABLE_HEADER_BYTES,
  TABLE_INSERTED,
  TABLE_MAX,
  TABLE_NEXT_POSITION,
  TABLE_OUTGROWN,
  TABLE_SIZE,
  TABLE_SLOT_MASK,
  TABLE_SMALLEST,
  TABLE_TEXT,
  TABLE_TEXT_BYTES,
  TABLE_UPDATE,
} from '../layout/http2';
import { copy } from '../http1/bytes';

/**
 * Makes an empty table without a body, which moveTable() gives it.
 * @param capacity  octets that the table may ever hold
 * @param max  octets that it may hold until a size update says otherwise
 */
export function initTable(table: usize, capacity: u32, max: u32, encodes: u32): void {
  memory.fill(table, 0, TABLE_HEADER_BYTES);
  store<u32>(table, capacity, TABLE_CAPACITY);
  store<u32>(table, max, TABLE_MAX);
  store<u32>(table, max, TABLE_SMALLEST);
  if (encodes == 0) return;
  store<u32>(table, <u32>(table + TABLE_HEADER_BYTES), TABLE_BUCKETS);
  memory.fill(table + TABLE_HEADER_BYTES, 0, BUCKET_COUNT * BUCKET_BYTES);
}

/** Position of the oldest byte in use. */
function oldestPosition(table: usize): u32 {
  const count = load<u32>(table, TABLE_COUNT);
  if (count == 0) return load<u32>(table, TABLE_NEXT_POSITION);
  return load<u32>(slotOf(table, load<u32>(table, TABLE_INSERTED) - count), ENTRY_TEXT);
}

/** Moves what the table holds to a body with room for `slots` entries (a power of two) and `textBytes`, which it fits. */
export function moveTable(table: usize, body: usize, slots: u32, textBytes: u32): void {
  const inserted = load<u32>(table, TABLE_INSERTED);
  const oldest = oldestPosition(table);
  const text = body + <usize>slots * ENTRY_BYTES;
  for (let number = inserted - load<u32>(table, TABLE_COUNT); number != inserted; number++) {
    memory.copy(body + <usize>(number & (slots - 1)) * ENTRY_BYTES, slotOf(table, number), ENTRY_BYTES);
  }
  const from = <usize>load<u32>(table, TABLE_TEXT) + (oldest - load<u32>(table, TABLE_FIRST_POSITION));
  memory.copy(text, from, load<u32>(table, TABLE_NEXT_POSITION) - oldest);
  store<u32>(table, oldest, TABLE_FIRST_POSITION);
  store<u32>(table, slots - 1, TABLE_SLOT_MASK);
  store<u32>(table, <u32>text, TABLE_TEXT);
  store<u32>(table, textBytes, TABLE_TEXT_BYTES);
  store<u32>(table, body == SPILL ? load<u32>(table, TABLE_ENTRIES) : 0, TABLE_OUTGROWN);
  store<u32>(table, <u32>body, TABLE_ENTRIES);
}

@inline
function slotOf(table: usize, number: u32): usize {
  return <usize>load<u32>(table, TABLE_ENTRIES) + <usize>(number & load<u32>(table, TABLE_SLOT_MASK)) * ENTRY_BYTES;
}

/** The entry with an index of HPACK, 0 when there is none. */
export function entryAt(table: usize, index: u32): usize {
  if (index <= <u32>STATIC_COUNT) return index == 0 ? 0 : <usize>STATIC_ENTRIES + <usize>index * ENTRY_BYTES;
  const age = index - STATIC_COUNT - 1;
  if (age >= load<u32>(table, TABLE_COUNT)) return 0;
  return slotOf(table, load<u32>(table, TABLE_INSERTED) - 1 - age);
}

/** The entry with a number of insertion, 0 when it has been evicted. */
export function entryNumbered(table: usize, number: u32): usize {
  const age = load<u32>(table, TABLE_INSERTED) - 1 - number;
  return age < load<u32>(table, TABLE_COUNT) ? slotOf(table, number) : 0;
}

/** HPACK's index of the entry with a number of insertion. */
@inline
export function indexOfNumber(table: usize, number: u32): u32 {
  return load<u32>(table, TABLE_INSERTED) - number + STATIC_COUNT;
}

/** Address of an entry's name, which its value follows. */
@inline
export function textOf(table: usize, entry: usize): usize {
  const text = load<u32>(entry, ENTRY_TEXT);
  if (entry < <usize>(STATIC_ENTRIES + ENTRY_BYTES * (STATIC_COUNT + 1))) return text;
  return <usize>load<u32>(table, TABLE_TEXT) + (text - load<u32>(table, TABLE_FIRST_POSITION));
}

/** Lets the oldest entries go until the table holds at most `octets`. */
export function evictTo(table: usize, octets: u32): void {
  let size = load<u32>(table, TABLE_SIZE);
  let count = load<u32>(table, TABLE_COUNT);
  const inserted = load<u32>(table, TABLE_INSERTED);
  while (size > octets) {
    const entry = slotOf(table, inserted - count);
    size -= ENTRY_OVERHEAD + <u32>load<u16>(entry, ENTRY_NAME_LENGTH) + <u32>load<u16>(entry, ENTRY_VALUE_LENGTH);
    count--;
  }
  store<u32>(table, size, TABLE_SIZE);
  store<u32>(table, count, TABLE_COUNT);
}

/** A new maximum, from a size update or before one is sent. */
export function setTableMax(table: usize, octets: u32): void {
  store<u32>(table, octets, TABLE_MAX);
  evictTo(table, octets);
}

/**
 * The peer's SETTINGS_HEADER_TABLE_SIZE, for an encoder: the next block says what becomes of it. The table stays within
 * what it was allocated for, whatever the peer would take.
 */
export function setPeerLimit(table: usize, octets: u32): void {
  const next = min(octets, load<u32>(table, TABLE_CAPACITY));
  if (next == load<u32>(table, TABLE_MAX) && load<u32>(table, TABLE_UPDATE) == 0) return;
  const smallest = load<u32>(table, TABLE_UPDATE) == 0 ? next : min(next, load<u32>(table, TABLE_SMALLEST));
  store<u32>(table, smallest, TABLE_SMALLEST);
  store<u32>(table, 1, TABLE_UPDATE);
  evictTo(table, smallest);
  store<u32>(table, next, TABLE_MAX);
}

/**
 * The peer has acknowledged this side's SETTINGS_HEADER_TABLE_SIZE, for a decoder. A table that is larger by then waits for the
 * size update with which the next block begins.
 */
export function limitTable(table: usize, octets: u32): void {
  store<u32>(table, min(octets, load<u32>(table, TABLE_CAPACITY)), TABLE_CAPACITY);
}

/** Moves the bytes in use to the beginning of their region. */
function compact(table: usize): void {
  const next = load<u32>(table, TABLE_NEXT_POSITION);
  const first = load<u32>(table, TABLE_FIRST_POSITION);
  const oldest = oldestPosition(table);
  const text = <usize>load<u32>(table, TABLE_TEXT);
  memory.copy(text, text + (oldest - first), next - oldest);
  store<u32>(table, oldest, TABLE_FIRST_POSITION);
}

@inline
function hasRoom(table: usize, length: u32): bool {
  const used = load<u32>(table, TABLE_NEXT_POSITION) - load<u32>(table, TABLE_FIRST_POSITION);
  return used + length <= load<u32>(table, TABLE_TEXT_BYTES);
}

/** Sees to it that one more entry with so many bytes fits the body. */
function makeRoom(table: usize, length: u32): void {
  const hasSlot = load<u32>(table, TABLE_COUNT) <= load<u32>(table, TABLE_SLOT_MASK);
  if (hasSlot && hasRoom(table, length)) return;
  if (hasSlot) compact(table);
  if (!hasSlot || !hasRoom(table, length)) moveTable(table, SPILL, SPILL_SLOTS, SPILL_TEXT_BYTES);
}

/**
 * Inserts a field; its texts must not lie in the table. What is larger than the whole table empties it.
 * @returns the new entry, 0 when there is none.
 */
export function insert(
  table: usize,
  name: usize,
  nameLength: u32,
  value: usize,
  valueLength: u32,
  id: u32,
  kind: u32,
  fault: i32,
): usize {
  const max = load<u32>(table, TABLE_MAX);
  const octets = nameLength + valueLength + ENTRY_OVERHEAD;
  if (octets > max) {
    evictTo(table, 0);
    return 0;
  }
  evictTo(table, max - octets);
  const length = nameLength + valueLength;
  makeRoom(table, length);
  const position = load<u32>(table, TABLE_NEXT_POSITION);
  const text = <usize>load<u32>(table, TABLE_TEXT) + (position - load<u32>(table, TABLE_FIRST_POSITION));
  copyExactly(text, name, nameLength);
  copyExactly(text + nameLength, value, valueLength);

  const number = load<u32>(table, TABLE_INSERTED);
  const entry = slotOf(table, number);
  store<u32>(entry, position, ENTRY_TEXT);
  store<u16>(entry, <u16>nameLength, ENTRY_NAME_LENGTH);
  store<u16>(entry, <u16>valueLength, ENTRY_VALUE_LENGTH);
  store<u8>(entry, <u8>id, ENTRY_ID);
  store<u8>(entry, <u8>kind, ENTRY_KIND);
  store<i16>(entry, <i16>fault, ENTRY_FAULT);
  store<u32>(table, position + length, TABLE_NEXT_POSITION);
  store<u32>(table, load<u32>(table, TABLE_SIZE) + octets, TABLE_SIZE);
  store<u32>(table, load<u32>(table, TABLE_COUNT) + 1, TABLE_COUNT);
  store<u32>(table, number + 1, TABLE_INSERTED);
  return entry;
}

/** Bytes are only ever written behind those in use, and every region ends in slack, so steps of 16 do no harm. */
@inline
function copyExactly(target: usize, source: usize, length: u32): void {
  copy(target, source, length);
}
