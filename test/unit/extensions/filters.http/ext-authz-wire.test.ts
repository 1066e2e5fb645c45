// The messages of the authorization service against the library's own reading of them.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { JsonObject } from '../../../../src/base/json.ts';
import { StreamFacts } from '../../../../src/data-plane/index.ts';
import { encodeCheckRequest } from '../../../../src/extensions/filters.http/ext_authz/check-request.ts';
import { decodeCheckResponse } from '../../../../src/extensions/filters.http/ext_authz/check-response.ts';
import { MessageWriter, readMessage } from '../../../../src/extensions/filters.http/grpc/wire.ts';
import { CheckRequestType, CheckResponseType } from '../../../support/authorization-service.ts';

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

test('one end of a unix socket is a pipe', () => {
  const path = { ip: '/run/a.sock', port: 0 };
  const downstream = { remote: { ip: '::1', port: 5 }, local: path, tls: null } as unknown as StreamFacts['downstream'];
  const clock = { wallMs: () => 1_700_000_000_250.5, monotonicMs: () => 10 } as ConstructorParameters<
    typeof StreamFacts
  >[0];
  const facts = new StreamFacts(clock, 10, downstream, 'NotSet', {} as StreamFacts['ingress']);
  const bytes = encodeCheckRequest({
    facts,
    method: 'GET',
    path: '/',
    host: 'a',
    scheme: 'http',
    fields: [],
    hasRawHeaders: false,
    body: null,
    isRawBody: false,
    clientService: '',
    includesCertificate: true,
    includesTlsSession: true,
    labels: {},
    context: {},
    metadata: {},
    routeMetadata: {},
  });
  const { attributes } = CheckRequestType.toObject(CheckRequestType.decode(bytes), { longs: Number }) as {
    attributes: { source: unknown; destination: unknown; request: { time: unknown } };
  };
  assert.deepEqual(attributes.source, { address: { socket_address: { address: '::1', port_value: 5 } } });
  assert.deepEqual(attributes.destination, { address: { pipe: { path: '/run/a.sock' } } });
  assert.deepEqual(attributes.request.time, { seconds: 1_700_000_000, nanos: 250_500_000 });
});
