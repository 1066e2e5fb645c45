// Which dictionary a frame of zstd asks for.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dictionaryFor } from '../../../../src/extensions/compression/engines.ts';

const MAGIC = [0x28, 0xb5, 0x2f, 0xfd];
const frame = (...bytes: number[]): Buffer => Buffer.concat([Buffer.from([...MAGIC, ...bytes]), Buffer.alloc(12)]);

function named(name: number): Buffer {
  const bytes = Buffer.alloc(16);
  bytes.writeUInt32LE(0xec30a437, 0);
  bytes.writeUInt32LE(name, 4);
  return bytes;
}

const CONTENT = Buffer.from('mere content');
const ALL = [named(7), CONTENT, named(0x1234), named(0x12345678)];

for (const { name, asks, gets } of [
  { name: 'one byte behind the window', asks: frame(0x01, 0x50, 7), gets: ALL[0] },
  { name: 'one byte, with no window', asks: frame(0x21, 7), gets: ALL[0] },
  { name: 'two bytes', asks: frame(0x22, 0x34, 0x12), gets: ALL[2] },
  { name: 'four bytes', asks: frame(0x03, 0x50, 0x78, 0x56, 0x34, 0x12), gets: ALL[3] },
  { name: 'no name', asks: frame(0x20, 9), gets: CONTENT },
  { name: 'a name that nobody has', asks: frame(0x21, 8), gets: undefined },
  { name: 'too short a frame', asks: Buffer.from(MAGIC), gets: CONTENT },
  { name: 'something else', asks: Buffer.alloc(20, 1), gets: CONTENT },
]) {
  test(`a frame with ${name} gets its dictionary`, () => {
    assert.deepEqual(dictionaryFor(ALL, asks), gets);
  });
}
