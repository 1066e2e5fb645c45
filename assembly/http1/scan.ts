// Character classes, and the search for the first byte outside one. The SIMD build looks at 16 bytes at a time and
// at the last step also at bytes behind `end`: a find there counts as `end`, so they decide nothing (the slack of the
// layout makes the load legal). The scalar build goes byte by byte; results are the same.
//
// A class of ASCII characters is a pair of nibble tables: bit h of LOW[l] is set when the byte with high nibble h
// and low nibble l belongs to it, and HIGH[h] selects that bit. Bytes from 0x80 on select nothing.

import { DEL, HASH, HTAB, UNDERSCORE } from './bytes';

// tchar (RFC 9110 5.6.2): ! # $ % & ' * + - . ^ _ ` | ~, digits, letters. As bits: 0x00 to 0x3f, 0x40 to 0x7f.
const TOKEN_0: u64 = 0x03ff6cfa00000000;
const TOKEN_1: u64 = 0x57ffffffc7fffffe;

// Characters of a host name: letters, digits and - . _ ~ ! $ & ' ( ) * + ; = , that is reg-name of RFC 3986
// without percent encoding (a decoding reader would see another name) and without the comma (a joined field).
const HOST_0: u64 = 0x2bff6fd200000000;
const HOST_1: u64 = 0x47fffffe87fffffe;

// Within the brackets of an IPv6 address: hex digits, ':' and '.'.
const IPV6_0: u64 = 0x07ff400000000000;
const IPV6_1: u64 = 0x0000007e0000007e;

@inline
function inClass(byte: u8, low: u64, high: u64): bool {
  const bit = <u64>1 << (byte & 63);
  return byte < 64 ? (low & bit) != 0 : byte < 128 && (high & bit) != 0;
}

@inline
function highNibbleBits(): v128 {
  return i8x16(1, 2, 4, 8, 16, 32, 64, -128, 0, 0, 0, 0, 0, 0, 0, 0);
}

/** One bit per byte that is outside the class. */
@inline
function outsideClass(bytes: v128, lowNibbleRows: v128): i32 {
  const low = i8x16.swizzle(lowNibbleRows, v128.and(bytes, i8x16.splat(0x0f)));
  const high = i8x16.swizzle(highNibbleBits(), i8x16.shr_u(bytes, 4));
  return i8x16.bitmask(i8x16.eq(v128.and(low, high), i8x16.splat(0)));
}

/** The first byte in [p, end) that no token may hold, or `end`. */
export function skipToken(p: usize, end: usize): usize {
  if (ASC_FEATURE_SIMD) {
    const rows = i8x16(-24, -4, -8, -4, -4, -4, -4, -4, -8, -8, -12, 84, -48, 84, -12, 112);
    while (p < end) {
      const outside = outsideClass(v128.load(p), rows);
      if (outside != 0) return min(p + ctz(outside), end);
      p += 16;
    }
    return end;
  }
  while (p < end && inClass(load<u8>(p), TOKEN_0, TOKEN_1)) p++;
  return p;
}

/** The first byte in [p, end) that no host name may hold, or `end`. */
export function skipHostName(p: usize, end: usize): usize {
  if (ASC_FEATURE_SIMD) {
    const rows = i8x16(-88, -4, -8, -8, -4, -8, -4, -4, -4, -4, -12, 92, 80, 92, -44, 112);
    while (p < end) {
      const outside = outsideClass(v128.load(p), rows);
      if (outside != 0) return min(p + ctz(outside), end);
      p += 16;
    }
    return end;
  }
  while (p < end && inClass(load<u8>(p), HOST_0, HOST_1)) p++;
  return p;
}

/** The first byte in [p, end) that no IPv6 address may hold, or `end`. */
export function skipIpv6(p: usize, end: usize): usize {
  while (p < end && inClass(load<u8>(p), IPV6_0, IPV6_1)) p++;
  return p;
}

/** One bit per control character other than HTAB. */
@inline
function controls(bytes: v128): i32 {
  // x86 has no unsigned comparison: what a saturating subtraction of 0x1f leaves at 0 is below 0x20.
  const low = i8x16.eq(i8x16.sub_sat_u(bytes, i8x16.splat(0x1f)), i8x16.splat(0));
  return i8x16.bitmask(v128.or(v128.andnot(low, i8x16.eq(bytes, i8x16.splat(HTAB))), i8x16.eq(bytes, i8x16.splat(DEL))));
}

@inline
function isControl(byte: u8): bool {
  return (byte < 0x20 && byte != HTAB) || byte == DEL;
}

/** The first control character other than HTAB in [p, end), or `end`: what ends a field value. */
export function skipValue(p: usize, end: usize): usize {
  if (ASC_FEATURE_SIMD) {
    while (p < end) {
      const found = controls(v128.load(p));
      if (found != 0) return min(p + ctz(found), end);
      p += 16;
    }
    return end;
  }
  while (p < end && !isControl(load<u8>(p))) p++;
  return p;
}

/** How many control characters other than HTAB lie in [p, end). */
export function countControls(p: usize, end: usize): u32 {
  let count: u32 = 0;
  if (ASC_FEATURE_SIMD) {
    while (p + 16 <= end) {
      count += popcnt(controls(v128.load(p)));
      p += 16;
    }
    // The bytes behind `end` are masked out.
    return count + popcnt(controls(v128.load(p)) & ((1 << <i32>(end - p)) - 1));
  }
  while (p < end) count += u32(isControl(load<u8>(p++)));
  return count;
}

/** The first byte in [p, end) that no request target may hold (white space, '#', control, 8-bit), or `end`. */
export function skipTarget(p: usize, end: usize): usize {
  if (ASC_FEATURE_SIMD) {
    while (p < end) {
      const bytes = v128.load(p);
      // A signed comparison counts the bytes from 0x80 on as negative, so it finds them as well.
      const low = i8x16.lt_s(bytes, i8x16.splat(0x21));
      const other = v128.or(i8x16.eq(bytes, i8x16.splat(DEL)), i8x16.eq(bytes, i8x16.splat(HASH)));
      const found = i8x16.bitmask(v128.or(low, other));
      if (found != 0) return min(p + ctz(found), end);
      p += 16;
    }
    return end;
  }
  while (p < end) {
    const byte = load<u8>(p);
    if (byte < 0x21 || byte >= DEL || byte == HASH) break;
    p++;
  }
  return p;
}

/** True when a name of `length` bytes holds an underscore. */
export function hasUnderscore(p: usize, length: usize): bool {
  const end = p + length;
  if (ASC_FEATURE_SIMD) {
    while (p + 16 <= end) {
      if (v128.any_true(i8x16.eq(v128.load(p), i8x16.splat(UNDERSCORE)))) return true;
      p += 16;
    }
    if (p == end) return false;
    // The bytes behind the name are masked out.
    const found = i8x16.bitmask(i8x16.eq(v128.load(p), i8x16.splat(UNDERSCORE)));
    return (found & ((1 << <i32>(end - p)) - 1)) != 0;
  }
  while (p < end) if (load<u8>(p++) == UNDERSCORE) return true;
  return false;
}
