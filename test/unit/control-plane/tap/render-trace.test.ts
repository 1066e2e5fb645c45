import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Reader } from 'protobufjs/light.js';
import { protoSchema } from '../../../../src/config/proto/root.ts';
import { renderTrace } from '../../../../src/control-plane/tap/render-trace.ts';
import type { TapTrace } from '../../../../src/snapshot/index.ts';
import { readText } from '../../../support/config/read.ts';

const EXCHANGE: TapTrace = {
  kind: 'exchange',
  request: {
    headers: [
      [':path', '/"x"'],
      ['x-city', 'K\xc3\xb6ln'],
      ['x-byte', '\xff'],
    ],
    body: { bytes: Uint8Array.of(0x68, 0x69, 0xff), isTruncated: true },
    trailers: [],
    receivedMs: Date.UTC(2026, 0, 2, 3, 4, 5, 250),
  },
  response: { headers: [[':status', '200']], body: null, trailers: [['x-sum', '7']], receivedMs: null },
};

test('an exchange as JSON has a line for each value, and ends with a line end', () => {
  assert.equal(
    renderTrace(EXCHANGE, 'json-bytes'),
    `{
 "http_buffered_trace": {
  "request": {
   "headers": [
    {
     "key": ":path",
     "value": "/\\"x\\""
    },
    {
     "key": "x-city",
     "value": "Köln"
    },
    {
     "key": "x-byte",
     "value": "ÿ"
    }
   ],
   "body": {
    "as_bytes": "aGn/",
    "truncated": true
   },
   "trailers": [],
   "headers_received_time": "2026-01-02T03:04:05.250Z"
  },
  "response": {
   "headers": [
    {
     "key": ":status",
     "value": "200"
    }
   ],
   "trailers": [
    {
     "key": "x-sum",
     "value": "7"
    }
   ]
  }
 }
}
`,
  );
});

test('a body as text is text', () => {
  const rendered = JSON.parse(renderTrace(EXCHANGE, 'json-text') as string);
  assert.deepEqual(rendered.http_buffered_trace.request.body, { as_string: 'hi\ufffd', truncated: true });
});

test('what there was no response to has none', () => {
  const rendered = JSON.parse(renderTrace({ ...EXCHANGE, response: null }, 'json-text') as string);
  assert.deepEqual(Object.keys(rendered.http_buffered_trace), ['request']);
});

test('a piece has its exchange and what it is', () => {
  const body = { bytes: Uint8Array.of(0x78), isTruncated: false };
  const piece = { kind: 'piece', exchangeId: 12, piece: { part: 'response_body_chunk', body } } as const;
  assert.deepEqual(JSON.parse(renderTrace(piece, 'json-text') as string), {
    http_streamed_trace_segment: { trace_id: '12', response_body_chunk: { as_string: 'x', truncated: false } },
  });
  const head = { kind: 'piece', exchangeId: 12, piece: { part: 'request_headers', fields: [['a', 'b']] } } as const;
  assert.deepEqual(JSON.parse(renderTrace(head, 'json-bytes') as string), {
    http_streamed_trace_segment: { trace_id: '12', request_headers: { headers: [{ key: 'a', value: 'b' }] } },
  });
});

const EXCHANGE_MESSAGE = {
  http_buffered_trace: {
    request: {
      headers: [
        { key: ':path', value: '/"x"' },
        { key: 'x-city', value: 'Köln' },
        { key: 'x-byte', value: 'ÿ' },
      ],
      body: { as_bytes: 'aGn/', truncated: true },
      headers_received_time: { seconds: Date.UTC(2026, 0, 2, 3, 4, 5) / 1000, nanos: 250_000_000 },
    },
    response: { headers: [{ key: ':status', value: '200' }], trailers: [{ key: 'x-sum', value: '7' }] },
  },
};

test('what is in binary stands behind its length, and is the message that JSON shows', () => {
  const type = protoSchema().messageType('proxy.data.tap.v3.TraceWrapper');
  const bytes = Buffer.concat([
    renderTrace(EXCHANGE, 'binary-delimited') as Uint8Array,
    renderTrace(EXCHANGE, 'binary-delimited') as Uint8Array,
  ]);
  const reader = Reader.create(bytes);
  for (let at = 0; at < 2; at += 1) {
    const message = type.toObject(type.decodeDelimited(reader), { bytes: String, longs: Number });
    assert.deepEqual(message, EXCHANGE_MESSAGE);
  }
  assert.equal(reader.pos, bytes.length);
});

test('what is in binary alone, or in the text format, is the same message', () => {
  const type = protoSchema().messageType('proxy.data.tap.v3.TraceWrapper');
  const alone = type.decode(renderTrace(EXCHANGE, 'binary') as Uint8Array);
  assert.deepEqual(type.toObject(alone, { bytes: String, longs: Number }), EXCHANGE_MESSAGE);
  const text = renderTrace(EXCHANGE, 'text') as string;
  assert.match(
    text,
    /^http_buffered_trace \{\n {2}request \{\n {4}headers \{\n {6}key: ":path"\n {6}value: "\/\\"x\\""\n/,
  );
  const { message, faults } = readText('data.tap.v3.TraceWrapper', text, { form: 'text' });
  assert.deepEqual(faults, []);
  assert.deepEqual(type.toObject(message, { bytes: String, longs: Number }), EXCHANGE_MESSAGE);
});
