// Where the body ends (RFC 9112 section 6): Content-Length and Transfer-Encoding, read so that no second
// reading is left.

import {
  CONTENT_LENGTH_DIGITS,
  ERROR_CONTENT_LENGTH,
  ERROR_CONTENT_LENGTH_REPEATED,
  ERROR_LENGTH_AND_CHUNKED,
  ERROR_TRANSFER_CODING,
  ERROR_TRANSFER_ENCODING_1_0,
  ERROR_TRANSFER_ENCODING_REPEATED,
  FRAMING_CHUNKED,
  FRAMING_LENGTH,
  FRAMING_NONE,
  ID_CONTENT_LENGTH,
  ID_TRANSFER_ENCODING,
  RECORD_CONTENT_LENGTH,
  RECORD_KNOWN_LOW,
  RECORD_MINOR_VERSION,
} from '../layout/http1';
import { isDigit, LOWER_4 } from './bytes';
import { dropAll, firstField, isRepeated, valueLength, valueOf } from './fields';

const LENGTH_BIT: u64 = (<u64>1) << ID_CONTENT_LENGTH;
const ENCODING_BIT: u64 = (<u64>1) << ID_TRANSFER_ENCODING;

/** 'chun' and 'nked', as little-endian loads show them. */
const CHUN: u32 = 0x6e756863;
const NKED: u32 = 0x64656b6e;

/** Stores the value of the one Content-Length; FRAMING_* or an error. Digits only: no sign, no list, no blank. */
function readContentLength(record: usize): i32 {
  const field = firstField(record, ID_CONTENT_LENGTH);
  if (isRepeated(field)) return ERROR_CONTENT_LENGTH_REPEATED;
  const digits = valueLength(field);
  if (digits == 0 || digits > <usize>CONTENT_LENGTH_DIGITS) return ERROR_CONTENT_LENGTH;
  let p = valueOf(record, field);
  const end = p + digits;
  let value: u64 = 0;
  for (; p < end; p++) {
    const byte = load<u8>(p);
    if (!isDigit(byte)) return ERROR_CONTENT_LENGTH;
    value = value * 10 + (byte - 0x30);
  }
  store<f64>(record, <f64>value, RECORD_CONTENT_LENGTH);
  return value == 0 ? FRAMING_NONE : FRAMING_LENGTH;
}

/** Only the single coding "chunked" is known; a list is refused even when chunked comes last. */
function readTransferEncoding(record: usize): i32 {
  if (load<u32>(record, RECORD_MINOR_VERSION) == 0) return ERROR_TRANSFER_ENCODING_1_0;
  const field = firstField(record, ID_TRANSFER_ENCODING);
  if (isRepeated(field)) return ERROR_TRANSFER_ENCODING_REPEATED;
  const value = valueOf(record, field);
  const isChunked =
    valueLength(field) == 7 &&
    (load<u32>(value) | LOWER_4) == CHUN &&
    (load<u32>(value, 3) | LOWER_4) == NKED;
  return isChunked ? FRAMING_CHUNKED : ERROR_TRANSFER_CODING;
}

/**
 * What the fields say of the body, before method and status have their word: FRAMING_* or an error.
 * @param takesBoth  beside Transfer-Encoding a Content-Length is dropped unread instead of refused (RFC 9112 6.3)
 */
export function readFraming(record: usize, takesBoth: bool): i32 {
  const known = load<u64>(record, RECORD_KNOWN_LOW);
  if ((known & (LENGTH_BIT | ENCODING_BIT)) == 0) return FRAMING_NONE;
  if ((known & ENCODING_BIT) == 0) return readContentLength(record);
  if ((known & LENGTH_BIT) == 0) return readTransferEncoding(record);
  if (!takesBoth) return ERROR_LENGTH_AND_CHUNKED;
  dropAll(record, ID_CONTENT_LENGTH);
  return readTransferEncoding(record);
}
