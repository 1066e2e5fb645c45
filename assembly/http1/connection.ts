// The Connection field and what it decides: does the connection persist, which fields end at this hop
// (RFC 9110 section 7.6.1).

import {
  CONNECTION_OPTION_LIMIT,
  ERROR_CONNECTION,
  FIELD_BYTES,
  FIELD_KNOWN_ID,
  FIELD_NAME_LENGTH,
  FIELD_NAME_OFFSET,
  FLAG_CLOSE,
  FLAG_KEEP_ALIVE,
  FLAG_NOMINATED,
  FLAG_PERSISTENT,
  FLAG_UPGRADE,
  ID_CONNECTION,
  ID_CONTENT_LENGTH,
  ID_HOST,
  ID_KEEP_ALIVE,
  ID_PROXY_CONNECTION,
  ID_TE,
  ID_TRANSFER_ENCODING,
  ID_UPGRADE,
  ID_X_FORWARDED_FOR,
  ID_X_FORWARDED_HOST,
  ID_X_FORWARDED_PROTO,
  RECORD_BASE,
  RECORD_FIELD_COUNT,
  RECORD_FLAGS,
  RECORD_KNOWN_LOW,
  RECORD_MINOR_VERSION,
} from '../layout/http1';
import { COMMA, isBlank, LOWER_4, sameToken } from './bytes';
import { addFlags, dropAll, dropField, firstField, hasField, nextField, tableOf, valueLength, valueOf } from './fields';
import { headerId } from './names';
import { skipToken } from './scan';

/** Fields that end at this hop whether Connection names them or not. */
const HOP_BY_HOP: u64 =
  ((<u64>1) << ID_CONNECTION) |
  ((<u64>1) << ID_KEEP_ALIVE) |
  ((<u64>1) << ID_PROXY_CONNECTION) |
  ((<u64>1) << ID_TE) |
  ((<u64>1) << ID_UPGRADE);

/**
 * Fields that Connection may not name: without them the next hop would see another message, or believe another
 * client. Naming one is an attack, not a mistake.
 */
const PROTECTED: u64 =
  ((<u64>1) << ID_HOST) |
  ((<u64>1) << ID_CONTENT_LENGTH) |
  ((<u64>1) << ID_TRANSFER_ENCODING) |
  ((<u64>1) << ID_X_FORWARDED_FOR) |
  ((<u64>1) << ID_X_FORWARDED_PROTO) |
  ((<u64>1) << ID_X_FORWARDED_HOST);

/** 'clos', as a little-endian load shows it. */
const CLOS: u32 = 0x736f6c63;

/** Marks the unknown fields of this name. At most CONNECTION_OPTION_LIMIT passes over the table per head. */
function dropNamed(record: usize, name: usize, length: usize): bool {
  const base = <usize>load<u32>(record, RECORD_BASE);
  let field = tableOf(record);
  const end = field + <usize>load<u32>(record, RECORD_FIELD_COUNT) * FIELD_BYTES;
  let found = false;
  for (; field < end; field += FIELD_BYTES) {
    if (load<u16>(field, FIELD_NAME_LENGTH) != length || load<u16>(field, FIELD_KNOWN_ID) != 0) continue;
    if (!sameToken(base + load<u16>(field, FIELD_NAME_OFFSET), name, length)) continue;
    dropField(field);
    found = true;
  }
  return found;
}

/** Acts on one option of Connection; 0 or an error. */
function readOption(record: usize, option: usize, length: usize): i32 {
  if (length == 5 && (load<u32>(option) | LOWER_4) == CLOS && (load<u8>(option, 4) | 0x20) == 0x65) {
    addFlags(record, FLAG_CLOSE);
    return 0;
  }
  const id = headerId(option, length);
  if (id == 0) {
    if (dropNamed(record, option, length)) addFlags(record, FLAG_NOMINATED);
    return 0;
  }
  const bit = (<u64>1) << id;
  if ((PROTECTED & bit) != 0) return ERROR_CONNECTION;
  if (id == ID_KEEP_ALIVE) addFlags(record, FLAG_KEEP_ALIVE);
  else if (id == ID_UPGRADE && hasField(record, ID_UPGRADE)) addFlags(record, FLAG_UPGRADE);
  // What is hop-by-hop anyway is marked for all heads at once.
  if ((HOP_BY_HOP & bit) == 0 && hasField(record, id)) {
    dropAll(record, id);
    addFlags(record, FLAG_NOMINATED);
  }
  return 0;
}

/** Reads the comma list of one Connection field. Empty elements count too, or a list of commas would be free. */
function readOptions(record: usize, field: usize, budget: i32): i32 {
  let p = valueOf(record, field);
  const end = p + valueLength(field);
  while (p < end) {
    if (budget-- == 0) return ERROR_CONNECTION;
    while (p < end && isBlank(load<u8>(p))) p++;
    const option = p;
    p = skipToken(p, end);
    const length = p - option;
    while (p < end && isBlank(load<u8>(p))) p++;
    if (p < end && load<u8>(p) != COMMA) return ERROR_CONNECTION;
    p++;
    if (length == 0) continue;
    const error = readOption(record, option, length);
    if (error != 0) return error;
  }
  return budget;
}

/** Reads all Connection fields, marks the fields of this hop, decides persistence. 0 or an error. */
export function readConnection(record: usize): i32 {
  const known = load<u64>(record, RECORD_KNOWN_LOW);
  if ((known & HOP_BY_HOP) != 0) {
    if (hasField(record, ID_CONNECTION)) {
      let budget: i32 = CONNECTION_OPTION_LIMIT;
      let field = firstField(record, ID_CONNECTION);
      while (field != 0) {
        budget = readOptions(record, field, budget);
        if (budget < 0) return budget;
        field = nextField(record, field);
      }
    }
    let rest = known & HOP_BY_HOP;
    while (rest != 0) {
      dropAll(record, <u32>ctz(rest));
      rest &= rest - 1;
    }
  }
  const flags = load<u32>(record, RECORD_FLAGS);
  const isDefault = load<u32>(record, RECORD_MINOR_VERSION) == 1;
  if ((flags & FLAG_CLOSE) == 0 && (isDefault || (flags & FLAG_KEEP_ALIVE) != 0)) addFlags(record, FLAG_PERSISTENT);
  return 0;
}
