// Names that have a number: known headers, from the table that the facade placed in memory, and methods.

import {
  KNOWN_BUCKET_COUNT,
  KNOWN_BUCKETS,
  KNOWN_ENTRIES,
  KNOWN_ENTRY_BYTES,
  KNOWN_ENTRY_ID,
  KNOWN_ENTRY_LENGTH,
  KNOWN_ENTRY_NAME,
  KNOWN_ENTRY_NEXT,
  KNOWN_HASH_FIRST,
  KNOWN_HASH_LAST,
  KNOWN_HASH_LENGTH,
  METHOD_CONNECT,
  METHOD_DELETE,
  METHOD_GET,
  METHOD_HEAD,
  METHOD_OPTIONS,
  METHOD_OTHER,
  METHOD_PATCH,
  METHOD_POST,
  METHOD_PUT,
  METHOD_TRACE,
} from '../layout/http1';
import { LOWER_8 } from './bytes';

/**
 * Compares a name with one of the table, which is in lower case and padded to whole steps of 16. Setting bit 5
 * cannot make two different tchars of the table's alphabet (letters, digits, '-') equal.
 */
@inline
function isKnown(name: usize, known: usize, length: usize): bool {
  if (ASC_FEATURE_SIMD) {
    let rest = <i32>length;
    while (true) {
      const bytes = v128.or(v128.load(name), i8x16.splat(0x20));
      const equal = i8x16.bitmask(i8x16.eq(bytes, v128.load(known)));
      const wanted = rest >= 16 ? 0xffff : (1 << rest) - 1;
      if ((equal & wanted) != wanted) return false;
      rest -= 16;
      if (rest <= 0) return true;
      name += 16;
      known += 16;
    }
  }
  const end = name + length;
  while (name + 8 <= end) {
    if ((load<u64>(name) | LOWER_8) != load<u64>(known)) return false;
    name += 8;
    known += 8;
  }
  while (name < end) if ((load<u8>(name++) | 0x20) != load<u8>(known++)) return false;
  return true;
}

/** Known id of a header name of at least one tchar, 0 for any other. */
export function headerId(name: usize, length: usize): u32 {
  const first = <u32>(load<u8>(name) | 0x20) * KNOWN_HASH_FIRST;
  const last = <u32>(load<u8>(name + length - 1) | 0x20) * KNOWN_HASH_LAST;
  const bucket = (first + last + <u32>length * KNOWN_HASH_LENGTH) & (KNOWN_BUCKET_COUNT - 1);
  let number = <u32>load<u8>(KNOWN_BUCKETS + bucket);
  while (number != 0) {
    const entry: usize = KNOWN_ENTRIES + (number - 1) * KNOWN_ENTRY_BYTES;
    if (load<u8>(entry, KNOWN_ENTRY_LENGTH) == length && isKnown(name, entry + KNOWN_ENTRY_NAME, length)) {
      return load<u8>(entry, KNOWN_ENTRY_ID);
    }
    number = load<u8>(entry, KNOWN_ENTRY_NEXT);
  }
  return 0;
}

/** METHOD_* of a method token; methods are case-sensitive. The words are the letters in little-endian order. */
export function methodId(p: usize, length: usize): u32 {
  const word = load<u32>(p);
  switch (<u32>length) {
    case 3: {
      const letters = word & 0xffffff;
      if (letters == 0x544547) return METHOD_GET;
      if (letters == 0x545550) return METHOD_PUT;
      break;
    }
    case 4: {
      if (word == 0x54534f50) return METHOD_POST;
      if (word == 0x44414548) return METHOD_HEAD;
      break;
    }
    case 5: {
      const last = load<u8>(p, 4);
      if (word == 0x43415254 && last == 0x45) return METHOD_TRACE;
      if (word == 0x43544150 && last == 0x48) return METHOD_PATCH;
      break;
    }
    case 6: {
      if (word == 0x454c4544 && load<u16>(p, 4) == 0x4554) return METHOD_DELETE;
      break;
    }
    case 7: {
      const rest = load<u32>(p, 3);
      if (word == 0x4e4e4f43 && rest == 0x5443454e) return METHOD_CONNECT;
      if (word == 0x4954504f && rest == 0x534e4f49) return METHOD_OPTIONS;
      break;
    }
  }
  return METHOD_OTHER;
}
