import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import textformat from 'protobufjs/ext/textformat.js';
import { protoSchema } from '../../../../src/config/proto/root.ts';
import { textOfMessage } from '../../../../src/config/proto/text-writer.ts';
import { readText } from '../../../support/config/read.ts';

const headers = fc.array(fc.record({ key: fc.string({ unit: 'binary' }), value: fc.string() }), { maxLength: 3 });
const body = fc.record({ as_bytes: fc.uint8Array({ maxLength: 300 }), truncated: fc.boolean() });
const time = fc.record({ seconds: fc.nat(), nanos: fc.nat() });
const request = fc.record(
  { headers, body, trailers: headers, headers_received_time: time },
  { noNullPrototype: true, requiredKeys: [] },
);

describe('the text format of a message', () => {
  test('is what another writer makes of it, and is read back', () => {
    const type = protoSchema().messageType('proxy.data.tap.v3.TraceWrapper');
    const plain = { bytes: String, longs: Number } as const;
    fc.assert(
      fc.property(request, (fields) => {
        const trace = { http_buffered_trace: { request: fields } };
        const text = textOfMessage(type, trace);
        const { message, faults } = readText('data.tap.v3.TraceWrapper', text, { form: 'text' });
        assert.deepEqual(faults, []);
        // What is a default is absent in the binary form, too.
        const sent = type.decode(type.encode(type.create(trace)).finish());
        assert.deepEqual(type.toObject(message, plain), type.toObject(sent, plain));
        assert.equal(text, `${textformat.toText(type, sent)}\n`);
      }),
    );
  });

  test('has names for numbers of enums, and nothing for what is a default', () => {
    const type = protoSchema().messageType('proxy.config.core.v3.SocketAddress');
    const address = { protocol: 1, address: '', port_value: 0, ipv4_compat: true, resolver_name: null };
    assert.equal(textOfMessage(type, address), 'protocol: UDP\nport_value: 0\nipv4_compat: true\n');
  });

  test('leaves out numbers and bytes that say nothing', () => {
    const any = protoSchema().messageType('google.protobuf.Any');
    assert.equal(textOfMessage(any, { type_url: 'x', value: new Uint8Array() }), 'type_url: "x"\n');
    assert.equal(textOfMessage(any, { type_url: '', value: Uint8Array.of(1) }), 'value: "\\001"\n');
    const time = protoSchema().messageType('google.protobuf.Timestamp');
    assert.equal(textOfMessage(time, { seconds: 0, nanos: 7 }), 'nanos: 7\n');
  });

  test('has no maps, rather than wrong ones', () => {
    const struct = protoSchema().messageType('google.protobuf.Struct');
    assert.throws(
      () => textOfMessage(struct, { fields: { a: {} } }),
      /^Error: maps such as \.google\.protobuf\.Struct\.fields are/,
    );
  });
});
