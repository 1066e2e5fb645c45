// The Huffman code of RFC 7541 section 5.2 and appendix B. Codes up to 10 bits, which is all of ASCII that headers
// usually hold, are found in one table; longer ones by the first code of each length, since the code is canonical.

import {
  HUFFMAN_CODES,
  HUFFMAN_COUNT,
  HUFFMAN_EOS,
  HUFFMAN_FAST,
  HUFFMAN_FAST_BITS,
  HUFFMAN_FIRST,
  HUFFMAN_LENGTHS,
  HUFFMAN_LONGEST,
  HUFFMAN_OFFSET,
  HUFFMAN_SHORTEST_SLOW,
  HUFFMAN_SYMBOLS,
} from '../layout/http2';

/** Length << 16 | symbol of the code that `bits` begins with, 0 for none. */
function longCode(bits: u64): u32 {
  for (let length: u32 = HUFFMAN_SHORTEST_SLOW; length <= <u32>HUFFMAN_LONGEST; length++) {
    const code = <u32>(bits >> (64 - <u64>length));
    const number = code - load<u32>(<usize>HUFFMAN_FIRST + <usize>length * 4);
    if (number < load<u32>(<usize>HUFFMAN_COUNT + <usize>length * 4)) {
      const offset = load<u32>(<usize>HUFFMAN_OFFSET + <usize>length * 4) + number;
      return (length << 16) | <u32>load<u16>(<usize>HUFFMAN_SYMBOLS + <usize>offset * 2);
    }
  }
  return 0;
}

/**
 * Decodes [p, end) to `out`, where 8/5 of its length must be free.
 * @returns bytes written, or -1: EOS within, or a padding of 8 bits or more or with a zero.
 */
export function decodeHuffman(p: usize, end: usize, out: usize): i32 {
  const start = out;
  // The next bits, from the top; `count` of them are of the input, ones follow.
  let bits: u64 = 0;
  let count: u32 = 0;
  while (true) {
    if (count <= 32) {
      if (p + 4 <= end) {
        bits |= <u64>bswap<u32>(load<u32>(p)) << (32 - <u64>count);
        count += 32;
        p += 4;
      } else {
        while (p < end) {
          bits |= <u64>load<u8>(p++) << (56 - <u64>count);
          count += 8;
        }
      }
    }
    if (count == 0) break;
    const padded = count < <u32>HUFFMAN_LONGEST ? bits | (<u64>-1 >> <u64>count) : bits;
    const fast = <u32>load<u16>(<usize>HUFFMAN_FAST + (<usize>(padded >> (64 - HUFFMAN_FAST_BITS)) << 1));
    let length = fast >> 8;
    let symbol = fast & 0xff;
    if (length == 0) {
      const found = longCode(padded);
      length = found >> 16;
      symbol = found & 0xffff;
    }
    if (length > count) {
      // What is left is no whole code: padding, if it is short and the beginning of EOS.
      return count < 8 && padded == <u64>-1 ? <i32>(out - start) : -1;
    }
    if (symbol == <u32>HUFFMAN_EOS || length == 0) return -1;
    store<u8>(out++, <u8>symbol);
    bits <<= <u64>length;
    count -= length;
  }
  return <i32>(out - start);
}

/** Bytes that [p, end) takes coded. */
export function huffmanLength(p: usize, end: usize): u32 {
  let bits: u32 = 0;
  while (p < end) bits += <u32>load<u8>(<usize>HUFFMAN_LENGTHS + <usize>load<u8>(p++));
  return (bits + 7) >> 3;
}

/** Writes [p, end) coded; returns the address behind it. */
export function encodeHuffman(p: usize, end: usize, out: usize): usize {
  let bits: u64 = 0;
  let count: u32 = 0;
  while (p < end) {
    const symbol = <usize>load<u8>(p++);
    const length = <u32>load<u8>(<usize>HUFFMAN_LENGTHS + symbol);
    bits = (bits << <u64>length) | load<u32>(<usize>HUFFMAN_CODES + symbol * 4);
    count += length;
    while (count >= 8) {
      count -= 8;
      store<u8>(out++, <u8>(bits >> <u64>count));
    }
  }
  if (count > 0) store<u8>(out++, <u8>((bits << <u64>(8 - count)) | (0xff >> count)));
  return out;
}
