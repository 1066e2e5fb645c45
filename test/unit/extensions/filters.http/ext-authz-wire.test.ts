// The messages of the authorization service against the library's own reading of them.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { JsonObject } from '../../../../src/base/json.ts';
import { decodeCheckResponse } from '../../../../src/extensions/filters.http/ext_authz/check-response.ts';
import { MessageWriter, readMessage } from '../../../../src/extensions/filters.http/ext_authz/wire.ts';
import { CheckResponseType } from '../../../support/authorization-service.ts';

describe('a message of the authorization service', () => {
  test('holds any struct', () => {
    const values = fc.dictionary(fc.string(), fc.jsonValue({ depthSize: 'small' }), {
      noNullPrototype: true,
      maxKeys: 6,
    });
    fc.assert(
      fc.property(values, (struct) => {
        // A key that would be the prototype of an object is none of a struct's here.
        const wanted = JSON.parse(JSON.stringify(struct)) as JsonObject;
        const writer = new MessageWriter();
        writer.struct(7, wanted);
        let read: JsonObject | null = null;
        readMessage(writer.finish(), (field, reader) => {
          if (field !== 7) return false;
          read = reader.struct();
          return true;
        });
        assert.deepEqual(JSON.parse(JSON.stringify(read)), wanted);
      }),
    );
  });

  test('is read as the library has written it', () => {
    const bytes = CheckResponseType.encode(
      CheckResponseType.fromObject({
        status: { code: 0, message: 'fine', details: 'x' },
        ok_response: {
          headers: [
            { header: { key: 'A', value: 'é' } },
            { header: { key: 'b', raw_value: Buffer.from([0xff]) }, append_action: 1, keep_empty_value: true },
          ],
          headers_to_remove: ['C'],
          query_parameters_to_remove: ['q'],
        },
      }),
    ).finish();
    assert.deepEqual(decodeCheckResponse(Buffer.from(bytes)), {
      kind: 'ok',
      edits: [
        { name: 'a', value: 'Ã©', action: 'set' },
        { name: 'b', value: '\xff', action: 'add-if-absent' },
      ],
      removed: ['c'],
      parameters: [['q', null]],
      response: [],
      metadata: null,
    });
  });

  test('that is none is an error and no more, whatever it holds', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          const { kind } = decodeCheckResponse(Buffer.from(bytes));
          assert.ok(kind === 'ok' || kind === 'denied');
        } catch (error) {
          assert.ok(error instanceof Error && !(error instanceof assert.AssertionError));
        }
      }),
      { numRuns: 3000 },
    );
  });

  test('may not hold itself without end', () => {
    let bytes: Buffer = Buffer.alloc(0);
    const wrapped = (field: number, inner: Buffer): Buffer => {
      const writer = new MessageWriter();
      writer.message(field, (message) => message.bytes(1, Buffer.alloc(0)));
      const head = writer.finish().subarray(0, 1);
      const length: number[] = [];
      for (let rest = inner.length; ; rest >>>= 7) {
        length.push(rest > 127 ? (rest & 127) | 128 : rest);
        if (rest <= 127) break;
      }
      return Buffer.concat([head, Buffer.from(length), inner]);
    };
    // Structs in structs: fields → value → struct.
    for (let depth = 0; depth < 100; depth += 1) bytes = wrapped(1, wrapped(2, wrapped(5, bytes)));
    assert.throws(() => decodeCheckResponse(wrapped(4, bytes)), /more than 64 messages/);
  });
});
