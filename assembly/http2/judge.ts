// What a name and a value may be made of (RFC 9113 section 8.2), and which names mean something to the decoder.
// Stricter than the letter where an HTTP/1 peer could read a value in two ways: no control character but HTAB.

import {
  ERROR_FIELD_NAME,
  ERROR_FIELD_VALUE,
  ID_CONNECTION,
  ID_HOST,
  ID_KEEP_ALIVE,
  ID_PROXY_CONNECTION,
  ID_TE,
  ID_TRANSFER_ENCODING,
  ID_UPGRADE,
} from '../layout/http1';
import {
  ERROR_UPPER_CASE,
  ERROR_VALUE_SPACE,
  KIND_AUTHORITY,
  KIND_CONNECTION,
  KIND_COOKIE,
  KIND_HOST,
  KIND_METHOD,
  KIND_ORDINARY,
  KIND_PATH,
  KIND_PROTOCOL,
  KIND_SCHEME,
  KIND_STATUS,
  KIND_TE,
  KIND_UNKNOWN_PSEUDO,
} from '../layout/http2';
import { COLON, isBlank } from '../http1/bytes';
import { skipToken, skipValue } from '../http1/scan';

const CONNECTION_IDS: u64 =
  ((<u64>1) << ID_CONNECTION) |
  ((<u64>1) << ID_KEEP_ALIVE) |
  ((<u64>1) << ID_PROXY_CONNECTION) |
  ((<u64>1) << ID_TRANSFER_ENCODING) |
  ((<u64>1) << ID_UPGRADE);

/** 'cook' and 'ie', as little-endian loads show them; the rest are pseudo fields behind their colon. */
const COOK: u32 = 0x6b6f6f63;
const IE: u16 = 0x6569;
const PATH: u32 = 0x68746170;
const METH: u32 = 0x6874656d;
const OD: u16 = 0x646f;
const SCHE: u32 = 0x65686373;
const ME: u16 = 0x656d;
const STAT: u32 = 0x74617473;
const US: u16 = 0x7375;
const AUTHORIT: u64 = 0x7469726f68747561;
const PROTOCOL: u64 = 0x6c6f636f746f7270;

function pseudoKind(name: usize, length: u32): u32 {
  const word = load<u32>(name, 1);
  switch (length) {
    case 5:
      return word == PATH ? KIND_PATH : KIND_UNKNOWN_PSEUDO;
    case 7: {
      const rest = load<u16>(name, 5);
      if (word == METH && rest == OD) return KIND_METHOD;
      if (word == SCHE && rest == ME) return KIND_SCHEME;
      return word == STAT && rest == US ? KIND_STATUS : KIND_UNKNOWN_PSEUDO;
    }
    case 9:
      return load<u64>(name, 1) == PROTOCOL ? KIND_PROTOCOL : KIND_UNKNOWN_PSEUDO;
    case 10:
      return load<u64>(name, 1) == AUTHORIT && load<u8>(name, 9) == 0x79 ? KIND_AUTHORITY : KIND_UNKNOWN_PSEUDO;
  }
  return KIND_UNKNOWN_PSEUDO;
}

/** KIND_* of a name; `id` is its known id. */
export function kindOf(name: usize, length: u32, id: u32): u32 {
  if (length == 0) return KIND_ORDINARY;
  if (load<u8>(name) == COLON) return pseudoKind(name, length);
  if (id == ID_HOST) return KIND_HOST;
  if (id == ID_TE) return KIND_TE;
  if (((CONNECTION_IDS >> id) & 1) != 0) return KIND_CONNECTION;
  if (length == 6 && load<u32>(name) == COOK && load<u16>(name, 4) == IE) return KIND_COOKIE;
  return KIND_ORDINARY;
}

@inline
export function isPseudo(kind: u32): bool {
  return kind - KIND_AUTHORITY <= <u32>(KIND_UNKNOWN_PSEUDO - KIND_AUTHORITY);
}

/** What is wrong with a name, 0 when nothing is. */
export function nameFault(name: usize, length: u32, kind: u32): i32 {
  if (length == 0) return ERROR_FIELD_NAME;
  if (isPseudo(kind)) return 0;
  const end = name + length;
  if (skipToken(name, end) != end) return ERROR_FIELD_NAME;
  for (let p = name; p < end; p++) {
    if (<u32>load<u8>(p) - 0x41 < 26) return ERROR_UPPER_CASE;
  }
  return 0;
}

/** What is wrong with a value, 0 when nothing is. */
export function valueFault(value: usize, length: u32): i32 {
  if (length == 0) return 0;
  const end = value + length;
  if (skipValue(value, end) != end) return ERROR_FIELD_VALUE;
  return isBlank(load<u8>(value)) || isBlank(load<u8>(end - 1)) ? ERROR_VALUE_SPACE : 0;
}
