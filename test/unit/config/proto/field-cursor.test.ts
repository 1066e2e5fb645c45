// Fields of messages in their binary form, walked without making anything of them.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import protobuf from 'protobufjs/light.js';
import { FieldCursor } from '../../../../src/config/proto/field-cursor.ts';

type Written = readonly [number: number, value: number | Buffer | { readonly fixed: 32 | 64 }];

const NUMBER = fc.integer({ min: 1, max: 2 ** 29 - 1 });
const VALUE = fc.oneof(
  fc.maxSafeNat(),
  fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  fc.constantFrom({ fixed: 32 } as const, { fixed: 64 } as const),
);

function bytesOf(fields: readonly Written[]): Buffer {
  const writer = protobuf.Writer.create();
  for (const [number, value] of fields) {
    if (Buffer.isBuffer(value)) writer.uint32(((number << 3) | 2) >>> 0).bytes(value);
    else if (typeof value === 'number') writer.uint32((number << 3) >>> 0).uint64(value);
    else if (value.fixed === 32) writer.uint32(((number << 3) | 5) >>> 0).fixed32(7);
    else writer.uint32(((number << 3) | 1) >>> 0).fixed64(7);
  }
  return Buffer.from(writer.finish());
}

describe('a walk over the fields of a message', () => {
  it('meets each with its number, and those that have a length with their bytes', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(NUMBER, VALUE), { maxLength: 20 }), (fields) => {
        const cursor = new FieldCursor(bytesOf(fields));
        for (const [number, value] of fields) {
          assert.ok(cursor.next());
          assert.equal(cursor.number, number);
          assert.equal(cursor.isDelimited, Buffer.isBuffer(value));
          if (Buffer.isBuffer(value)) {
            assert.deepEqual(cursor.value, value);
            assert.equal(cursor.text, value.toString());
            assert.equal(cursor.is(value), true);
            assert.equal(cursor.is(Buffer.concat([value, Buffer.from('x')])), false);
          }
        }
        assert.equal(cursor.next(), false);
        assert.equal(cursor.next(), false);
      }),
    );
  });

  it('takes or refuses the same bytes as a reader that makes messages, and never goes beyond their end', () => {
    const walks = (bytes: Uint8Array): boolean => {
      const cursor = new FieldCursor(bytes);
      let length = 0;
      try {
        while (cursor.next()) if (cursor.isDelimited) length += cursor.value.length;
      } catch {
        return false;
      }
      assert.ok(length <= bytes.length);
      return true;
    };
    const skips = (bytes: Uint8Array): boolean => {
      const reader = protobuf.Reader.create(bytes);
      try {
        while (reader.pos < reader.len) {
          const tag = reader.tag();
          if (tag >>> 3 === 0) return false;
          reader.skipType(tag & 7);
        }
      } catch {
        return false;
      }
      return true;
    };
    const broken = fc
      .tuple(fc.array(fc.tuple(NUMBER, VALUE), { maxLength: 5 }), fc.nat(), fc.integer({ min: 0, max: 255 }))
      .map(([fields, at, byte]) => {
        const bytes = bytesOf(fields);
        if (bytes.length > 0) bytes[at % bytes.length] = byte;
        return bytes.subarray(0, bytes.length - (at % 3));
      });
    // Numbers of many bytes are seldom met by chance.
    const long = fc
      .tuple(fc.constantFrom(0xf8, 0xfa, 0x08, 0x0a), fc.integer({ min: 0, max: 12 }), fc.integer({ min: 0, max: 255 }))
      .map(([tag, length, last]) => {
        const tags = tag > 127 ? [tag, 1] : [tag];
        return Uint8Array.from([...tags, ...new Array<number>(length).fill(128), last, 0x08, 1]);
      });
    const property = fc.property(fc.oneof(fc.uint8Array({ maxLength: 40 }), broken, long), (bytes) => {
      assert.equal(walks(bytes), skips(bytes));
    });
    fc.assert(property, { numRuns: 1000 });
  });
});
