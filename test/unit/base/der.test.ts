// Elements of DER: found where they are, and nowhere else, whatever the bytes are.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { derElementAt } from '../../../src/base/der.ts';

const OCTETS = 0x04;

/** In the shortest form. */
function element(tag: number, length: number): Buffer {
  const hex = length.toString(16);
  const bytes = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex');
  const head = length < 0x80 ? [tag, length] : [tag, 0x80 + bytes.length, ...bytes];
  return Buffer.concat([Buffer.from(head), Buffer.alloc(length, 7)]);
}

describe('an element of DER', () => {
  for (const length of [0, 1, 0x7f, 0x80, 0xff, 0x100, 0xffff, 0x10000]) {
    it(`of ${length} bytes is found by its length, and not where a byte is missing`, () => {
      const bytes = Buffer.concat([Buffer.of(0), element(OCTETS, length)]);
      const end = bytes.length;
      assert.deepEqual(derElementAt(bytes, 1), { tag: OCTETS, start: end - length, end });
      const longer = Buffer.concat([bytes, Buffer.of(1, 2, 3)]);
      assert.deepEqual(derElementAt(longer, 1, end), { tag: OCTETS, start: end - length, end });
      assert.equal(derElementAt(longer, 1, end - 1), null);
      assert.equal(derElementAt(bytes.subarray(0, -1), 1), null);
    });
  }

  it('has a length that is there, and of four bytes at most', () => {
    assert.deepEqual(derElementAt(Buffer.of(OCTETS, 0x84, 0, 0, 0, 1, 9), 0), { tag: OCTETS, start: 6, end: 7 });
    assert.equal(derElementAt(Buffer.concat([Buffer.of(OCTETS, 0x80), Buffer.alloc(0x80)]), 0), null);
    assert.equal(derElementAt(Buffer.of(OCTETS, 0x85, 0, 0, 0, 0, 1, 9), 0), null);
    assert.equal(derElementAt(Buffer.of(OCTETS, 0x82, 0), 0), null);
    assert.equal(derElementAt(Buffer.of(OCTETS), 0), null);
    assert.equal(derElementAt(Buffer.alloc(0), 0), null);
  });

  it('lies within its limit, whatever the bytes are', () => {
    const property = fc.property(fc.uint8Array({ maxLength: 12 }), fc.nat(14), fc.nat(12), (array, at, cut) => {
      const bytes = Buffer.from(array);
      const limit = Math.min(cut, bytes.length);
      const found = derElementAt(bytes, at, limit);
      if (found === null) return;
      assert.ok(at + 2 <= found.start && found.start <= found.end && found.end <= limit);
    });
    fc.assert(property, { numRuns: 2000 });
  });
});
