// Byte values and the copying of short runs. Loads of 16 bytes may touch up to 15 bytes behind a run, stores
// too: every area of the layout ends in slack for that, and no decision rests on such a byte.

export const HTAB: u8 = 0x09;
export const LF: u8 = 0x0a;
export const CR: u8 = 0x0d;
export const SPACE: u8 = 0x20;
export const HASH: u8 = 0x23;
export const ASTERISK: u8 = 0x2a;
export const COMMA: u8 = 0x2c;
export const DOT: u8 = 0x2e;
export const SLASH: u8 = 0x2f;
export const COLON: u8 = 0x3a;
export const QUESTION: u8 = 0x3f;
export const OPEN_BRACKET: u8 = 0x5b;
export const CLOSE_BRACKET: u8 = 0x5d;
export const UNDERSCORE: u8 = 0x5f;
export const DEL: u8 = 0x7f;

/** CR LF, as a little-endian load shows it. */
export const CRLF: u16 = 0x0a0d;

/** Sets bit 5 of 4 or 8 bytes: lower case for letters; '-' and digits stay. */
export const LOWER_4: u32 = 0x20202020;
export const LOWER_8: u64 = 0x2020202020202020;

@inline
export function isBlank(byte: u8): bool {
  return byte == SPACE || byte == HTAB;
}

@inline
export function isDigit(byte: u8): bool {
  return <u32>byte - 0x30 < 10;
}

/** Copies `length` bytes and returns the address behind them. May write 15 bytes more: fill areas upwards. */
export function copy(target: usize, source: usize, length: usize): usize {
  const end = target + length;
  if (ASC_FEATURE_SIMD) {
    while (target < end) {
      v128.store(target, v128.load(source));
      target += 16;
      source += 16;
    }
  } else {
    while (target < end) {
      store<u64>(target, load<u64>(source));
      target += 8;
      source += 8;
    }
  }
  return end;
}

/** True when the names are equal but for the case of letters. Both consist of tchars only. */
export function sameToken(a: usize, b: usize, length: usize): bool {
  for (let i: usize = 0; i < length; i++) {
    const x = load<u8>(a + i);
    const y = load<u8>(b + i);
    if (x != y && ((x | 0x20) != (y | 0x20) || <u32>(x | 0x20) - 0x61 > 25)) return false;
  }
  return true;
}
