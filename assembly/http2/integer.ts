// Integers with a prefix (RFC 7541 section 5.1).

import { STATE_AT, STATE_END } from '../layout/http2';
import { setState, state } from './state';

/** Bytes behind the prefix: four hold 28 bits, more than any block has use for. */
const CONTINUATION_LIMIT: u32 = 28;

/** Reads the integer at STATE_AT, whose first byte has `prefix` bits of it; -1 when it is cut or too large. */
export function readInteger(prefix: u32): i32 {
  let at = <usize>state(STATE_AT);
  const end = <usize>state(STATE_END);
  if (at >= end) return -1;
  const mask: u32 = (1 << prefix) - 1;
  let value = <u32>load<u8>(at++) & mask;
  if (value == mask) {
    let shift: u32 = 0;
    while (true) {
      if (at >= end || shift == CONTINUATION_LIMIT) return -1;
      const byte = <u32>load<u8>(at++);
      value += (byte & 0x7f) << shift;
      shift += 7;
      if (byte < 0x80) break;
    }
  }
  setState(STATE_AT, <u32>at);
  return <i32>value;
}

/** Writes an integer behind the bits `first` of its first byte; returns the address behind it. */
export function writeInteger(out: usize, first: u32, prefix: u32, value: u32): usize {
  const mask: u32 = (1 << prefix) - 1;
  if (value < mask) {
    store<u8>(out, <u8>(first | value));
    return out + 1;
  }
  store<u8>(out++, <u8>(first | mask));
  value -= mask;
  while (value >= 0x80) {
    store<u8>(out++, <u8>(value | 0x80));
    value >>= 7;
  }
  store<u8>(out, <u8>value);
  return out + 1;
}
