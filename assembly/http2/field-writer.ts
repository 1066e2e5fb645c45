// One field to its representation (RFC 7541 section 6). A field enters the dynamic table when it is met for the second
// time: what is said once only (paths, ids, lengths) then never pushes out what is said again and again. Credentials
// never enter it, so that nobody can guess them by the length of what follows (RFC 7541 section 7.1).

import {
  BUCKET_BYTES,
  BUCKET_COUNT,
  BUCKET_HASH,
  BUCKET_NUMBER,
  ENCODE_HUFFMAN,
  ENTRY_BYTES,
  ENTRY_NAME_LENGTH,
  ENTRY_VALUE_LENGTH,
  NAME_SCRATCH,
  NEVER_INDEXED_GAP,
  POLICY_INDEX,
  POLICY_NEVER,
  SCRATCH_BYTES,
  STATIC_BUCKETS,
  STATIC_BY_ID,
  STATIC_ENTRIES,
  STATIC_NEXT,
  STATIC_POLICY,
  TABLE_BUCKETS,
  TABLE_INSERTED,
  TABLE_MAX,
  TABLE_SMALLEST,
  TABLE_UPDATE,
} from '../layout/http2';
import { KNOWN_BUCKET_COUNT, KNOWN_HASH_FIRST, KNOWN_HASH_LAST, KNOWN_HASH_LENGTH } from '../layout/http1';
import { copy } from '../http1/bytes';
import { encodeHuffman, huffmanLength } from './huffman';
import { writeInteger } from './integer';
import { entryNumbered, indexOfNumber, insert, textOf } from './table';

const INDEXED: u32 = 0x80;
const LITERAL_INDEXED: u32 = 0x40;
const SIZE_UPDATE: u32 = 0x20;
const LITERAL_NEVER: u32 = 0x10;
const LITERAL: u32 = 0;
const HUFFMAN_STRING: u32 = 0x80;

/** Shorter strings gain a byte or two at best. */
const HUFFMAN_LEAST_BYTES: u32 = 4;

/** Index of 'accept-encoding: gzip, deflate', the one ordinary field of the static table with a value. */
const ACCEPT_ENCODING: u32 = 16;

function sameBytes(a: usize, b: usize, length: u32): bool {
  let rest = length;
  while (rest >= 8) {
    if (load<u64>(a) != load<u64>(b)) return false;
    a += 8;
    b += 8;
    rest -= 8;
  }
  if (rest == 0) return true;
  return ((load<u64>(a) ^ load<u64>(b)) & ((<u64>1 << (<u64>rest * 8)) - 1)) == 0;
}

function hashBytes(hash: u64, p: usize, length: u32): u64 {
  let rest = length;
  while (rest >= 8) {
    hash = rotl<u64>((hash ^ load<u64>(p)) * 0x9e3779b97f4a7c15, 29);
    p += 8;
    rest -= 8;
  }
  const tail = rest == 0 ? 0 : load<u64>(p) & ((<u64>1 << (<u64>rest * 8)) - 1);
  return rotl<u64>((hash ^ tail ^ (<u64>length << 56)) * 0x9e3779b97f4a7c15, 29);
}

/** First static index with this lower-case name, 0 for none. */
function staticName(name: usize, length: u32): u32 {
  const first = <u32>load<u8>(name) * KNOWN_HASH_FIRST;
  const last = <u32>load<u8>(name + length - 1) * KNOWN_HASH_LAST;
  const bucket = (first + last + length * KNOWN_HASH_LENGTH) & (KNOWN_BUCKET_COUNT - 1);
  let index = <u32>load<u8>(<usize>STATIC_BUCKETS + bucket);
  while (index != 0) {
    const entry: usize = <usize>STATIC_ENTRIES + <usize>index * ENTRY_BYTES;
    if (<u32>load<u16>(entry, ENTRY_NAME_LENGTH) == length && sameBytes(name, textOf(0, entry), length)) return index;
    index = load<u8>(<usize>STATIC_NEXT + <usize>index);
  }
  return 0;
}

/** The name in lower case: where it lies, or a copy in NAME_SCRATCH. */
function lowerName(name: usize, length: u32): usize {
  let at: u32 = 0;
  while (at < length && <u32>load<u8>(name + at) - 0x41 >= 26) at++;
  if (at == length) return name;
  copy(NAME_SCRATCH, name, length);
  for (; at < length; at++) {
    const byte = <u32>load<u8>(<usize>NAME_SCRATCH + <usize>at);
    if (byte - 0x41 < 26) store<u8>(<usize>NAME_SCRATCH + <usize>at, <u8>(byte | 0x20));
  }
  return NAME_SCRATCH;
}

function writeString(out: usize, p: usize, length: u32, flags: u32): usize {
  if ((flags & ENCODE_HUFFMAN) != 0 && length >= HUFFMAN_LEAST_BYTES) {
    const coded = huffmanLength(p, p + length);
    if (coded < length) return encodeHuffman(p, p + length, writeInteger(out, HUFFMAN_STRING, 7, coded));
  }
  return copy(writeInteger(out, 0, 7, length), p, length);
}

function writeLiteral(
  out: usize,
  first: u32,
  prefix: u32,
  index: u32,
  name: usize,
  nameLength: u32,
  value: usize,
  valueLength: u32,
  flags: u32,
): usize {
  out = writeInteger(out, first, prefix, index);
  if (index == 0) out = writeString(out, name, nameLength, flags);
  return writeString(out, value, valueLength, flags);
}

/** Index of the entry with this number if it is this field, 0 otherwise. */
function indexOf(
  table: usize,
  number: u32,
  name: usize,
  nameLength: u32,
  value: usize,
  valueLength: u32,
): u32 {
  const entry = entryNumbered(table, number);
  if (entry == 0) return 0;
  if (<u32>load<u16>(entry, ENTRY_NAME_LENGTH) != nameLength) return 0;
  if (<u32>load<u16>(entry, ENTRY_VALUE_LENGTH) != valueLength) return 0;
  const text = textOf(table, entry);
  if (!sameBytes(text, name, nameLength) || !sameBytes(text + nameLength, value, valueLength)) return 0;
  return indexOfNumber(table, number);
}

/** Says what has become of the table's size since the last block (RFC 7541 section 4.2). */
export function writeSizeUpdate(table: usize, out: usize): usize {
  if (load<u32>(table, TABLE_UPDATE) == 0) return out;
  const smallest = load<u32>(table, TABLE_SMALLEST);
  const max = load<u32>(table, TABLE_MAX);
  store<u32>(table, 0, TABLE_UPDATE);
  if (smallest < max) out = writeInteger(out, SIZE_UPDATE, 5, smallest);
  return writeInteger(out, SIZE_UPDATE, 5, max);
}

/** Most bytes that a field of these lengths takes: integers have five bytes at most. */
@inline
export function fieldBound(nameLength: u32, valueLength: u32): u32 {
  return nameLength + valueLength + 16;
}

@inline
export function writeIndexed(out: usize, index: u32): usize {
  return writeInteger(out, INDEXED, 7, index);
}

/** A field with a static name, never indexed: nothing that is written so has a place for the mark of one that came so. */
export function writeNamed(out: usize, index: u32, value: usize, valueLength: u32, flags: u32): usize {
  return writeLiteral(out, LITERAL_NEVER, 4, index, 0, 0, value, valueLength, flags);
}

/**
 * Writes a field.
 * @param id     its known id, if it has one
 * @param index  the first static one with its name, if the caller knows it
 * @param gap    bytes between name and value where it stands as a line: NEVER_INDEXED_GAP keeps it out of all tables
 */
export function writeField(
  table: usize,
  out: usize,
  id: u32,
  index: u32,
  name: usize,
  nameLength: u32,
  value: usize,
  valueLength: u32,
  gap: u32,
  flags: u32,
): usize {
  if (nameLength > <u32>SCRATCH_BYTES) unreachable();
  name = lowerName(name, nameLength);
  if (index == 0) index = id != 0 ? <u32>load<u8>(<usize>STATIC_BY_ID + <usize>id) : staticName(name, nameLength);
  const policy = <u32>load<u8>(<usize>STATIC_POLICY + <usize>index);
  if (policy == POLICY_NEVER || gap == NEVER_INDEXED_GAP) {
    return writeLiteral(out, LITERAL_NEVER, 4, index, name, nameLength, value, valueLength, flags);
  }
  if (index == ACCEPT_ENCODING) {
    const entry: usize = <usize>STATIC_ENTRIES + ACCEPT_ENCODING * ENTRY_BYTES;
    const isSame = <u32>load<u16>(entry, ENTRY_VALUE_LENGTH) == valueLength;
    if (isSame && sameBytes(value, textOf(0, entry) + nameLength, valueLength)) return writeIndexed(out, index);
  }
  // A field that takes more than half of the table is not worth what it pushes out.
  const isSmall = (nameLength + valueLength + 32) * 2 <= load<u32>(table, TABLE_MAX);
  if (policy != POLICY_INDEX || !isSmall) {
    return writeLiteral(out, LITERAL, 4, index, name, nameLength, value, valueLength, flags);
  }
  const mixed = hashBytes(hashBytes(0, name, nameLength), value, valueLength);
  const hash = <u32>(mixed >> 32) ^ <u32>mixed;
  const bucket = <usize>load<u32>(table, TABLE_BUCKETS) + <usize>(hash & (BUCKET_COUNT - 1)) * BUCKET_BYTES;
  if (load<u32>(bucket, BUCKET_HASH) != hash) {
    store<u32>(bucket, hash, BUCKET_HASH);
    store<u32>(bucket, 0, BUCKET_NUMBER);
    return writeLiteral(out, LITERAL, 4, index, name, nameLength, value, valueLength, flags);
  }
  const number = load<u32>(bucket, BUCKET_NUMBER);
  if (number != 0) {
    const found = indexOf(table, number - 1, name, nameLength, value, valueLength);
    if (found != 0) return writeIndexed(out, found);
  }
  store<u32>(bucket, load<u32>(table, TABLE_INSERTED) + 1, BUCKET_NUMBER);
  insert(table, name, nameLength, value, valueLength, 0, 0, 0);
  return writeLiteral(out, LITERAL_INDEXED, 6, index, name, nameLength, value, valueLength, flags);
}
