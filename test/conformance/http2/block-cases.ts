// Blocks that make two tables differ, or never end, which is an error of the connection (RFC 7541 sections 2.3.3, 4.2, 5, 6), and
// others that only look like it.

import { plainBlock } from '../../support/http2-heads.ts';
import { integer } from '../../support/reference/hpack.ts';

const GET = [
  ...plainBlock([
    [':method', 'GET'],
    [':scheme', 'http'],
    [':authority', 'a'],
    [':path', '/'],
  ]),
];

/** A field 'a' whose value is Huffman-coded like this. */
const coded = (...bytes: number[]): number[] => [...GET, 0x00, 1, 0x61, 0x80 | bytes.length, ...bytes];

/** A field that no table of 4096 octets has room for. */
const TOO_LARGE = [0x40, 1, 0x61, ...integer(0, 7, 4096), ...Buffer.alloc(4096, 'b')];

export const BROKEN_BLOCKS: readonly (readonly [string, readonly number[]])[] = [
  ['index 0', [0x80]],
  ['an index behind the static table, when the dynamic one is empty', [0xbe]],
  ['a name by an index that is not there', [0x7e, 1, 0x61]],
  ['an index of more than 28 bits', [0xff, 0xff, 0xff, 0xff, 0xff, 0x0f]],
  ['an integer that goes on with zeros', [0xff, 0x80, 0x80, 0x80, 0x80, 0x00]],
  ['an integer cut off', [0xff, 0x80]],
  ['a string cut off', [0x00, 1, 0x61, 5, 0x62]],
  ['a name without a value', [0x00, 1, 0x61]],
  ['a literal that ends behind its first byte', [0x40]],
  ['a string longer than any block', [0x00, 1, 0x61, ...integer(0, 7, 0x0fffffff)]],
  ['a table larger than announced', integer(0x20, 5, 4097)],
  ['a size update behind a field', [...GET, ...integer(0x20, 5, 100)]],
  ['padding of eight bits', coded(0x1f, 0xff)],
  ['padding that is not all ones', coded(0x18)],
  ['an entry that a larger one has pushed out', [0x40, 1, 0x61, 1, 0x62, ...TOO_LARGE, 0xbe]],
  ['an entry that a smaller table has no room for', [0x20, ...GET, 0x40, 1, 0x61, 1, 0x62, 0xbe]],
  ['an entry of 32 octets more than its text', [...integer(0x20, 5, 33), ...GET, 0x40, 1, 0x61, 1, 0x62, 0xbe]],
  ['EOS within a string', coded(0xff, 0xff, 0xff, 0xff)],
  ['a string of nothing but a byte of padding', coded(0xff)],
];

export const SOUND_BLOCKS: readonly (readonly [string, readonly number[]])[] = [
  ['two size updates in front', [...integer(0x20, 5, 0), ...integer(0x20, 5, 4096), ...GET]],
  ['an entry larger than the table, which empties it', [...GET, ...TOO_LARGE, 0x40, 1, 0x61, 1, 0x62, 0xbe]],
  ['an entry that just fits', [...integer(0x20, 5, 34), ...GET, 0x40, 1, 0x61, 1, 0x62, 0xbe]],
  ['padding of seven bits and less', coded(0x1f)],
  ['an empty Huffman string', coded()],
  ['an integer with zeros to no use', [...GET, 0x00, 1, 0x61, 0x7f, 0x80, 0x00, ...Buffer.alloc(127, 'b')]],
];
