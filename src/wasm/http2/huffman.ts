// The Huffman code of RFC 7541, appendix B. It is canonical: codes of one length follow each other in the order of their
// symbols, so the lengths are all there is to know.

import * as layout from '../../../assembly/layout/http2.ts';
import type { CodecMemory } from '../http1/memory.ts';

/** Bits of each symbol's code, as runs of `length x count`; the last symbol is EOS. */
const LENGTHS = (
  '13 23 28x7 24 30 28x2 30 28x8 30 28x9 ' +
  '6 10x2 12 13 6 8 11 10x2 8 11 8 6x3 5x3 6x7 7 8 15 6 12 10 ' +
  '13 6 7x22 8 7 8 13 19 13 14 6 ' +
  '15 5 6 5 6 5 6x3 5 7x2 6x3 5 6 7 6 5x2 6 7x5 15 11 14 13 28 ' +
  '20 22 20x2 22x3 23 22 23x5 24 23 24x2 22 23 24 23x4 21 22 23 22 23x2 24 ' +
  '22 21 20 22x2 23x2 21 23 22x2 24 21 22 23x2 21x2 22 21 23 22 23x2 20 22x3 23 22x2 23 ' +
  '26x2 20 19 22 23 22 25 26x3 27x2 26 24 25 19 21 26 27x2 26 27 24 21x2 26x2 28 27x3 ' +
  '20 24 20 21 22 21x2 23 22x2 25x2 24x2 26 23 26 27 26x2 27x5 28 27x5 26 30'
)
  .split(' ')
  .flatMap((run) => {
    const [length, count = '1'] = run.split('x');
    return Array.from({ length: Number(count) }, () => Number(length));
  });

/** Once per codec memory, before the first block. */
export function writeHuffmanCode({ bytes, u16, u32 }: CodecMemory): void {
  if (LENGTHS.length !== layout.HUFFMAN_EOS + 1) throw new RangeError(`${LENGTHS.length} Huffman codes`);
  const symbols = LENGTHS.map((_, symbol) => symbol).sort((a, b) => LENGTHS[a]! - LENGTHS[b]! || a - b);
  let code = 0;
  let before = 0;
  symbols.forEach((symbol, number) => {
    const length = LENGTHS[symbol]!;
    code *= 2 ** (length - before);
    if (length !== before) {
      u32[(layout.HUFFMAN_FIRST >> 2) + length] = code;
      u32[(layout.HUFFMAN_OFFSET >> 2) + length] = number;
    }
    u32[(layout.HUFFMAN_COUNT >> 2) + length]! += 1;
    u16[(layout.HUFFMAN_SYMBOLS >> 1) + number] = symbol;
    if (symbol !== layout.HUFFMAN_EOS) {
      u32[(layout.HUFFMAN_CODES >> 2) + symbol] = code;
      bytes[layout.HUFFMAN_LENGTHS + symbol] = length;
    }
    const free = layout.HUFFMAN_FAST_BITS - length;
    if (free >= 0) {
      const first = (layout.HUFFMAN_FAST >> 1) + code * 2 ** free;
      u16.fill(length * 256 + symbol, first, first + 2 ** free);
    }
    before = length;
    code += 1;
  });
  // A code that leaves no bit pattern without a meaning is the right one, or none of its lengths is.
  if (code !== 2 ** layout.HUFFMAN_LONGEST) throw new RangeError('the Huffman code is not complete');
}
