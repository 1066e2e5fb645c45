// Header blocks larger than any that is read: their message is too large, and the connection goes on with tables in step.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { FrameFlag, FrameType } from '../../../../../../src/data-plane/http/codec/http2/frames.ts';
import {
  blockFrames,
  codecs,
  data,
  FRAME_BYTES,
  frame,
  GET,
  headers,
  POST,
  TestSession,
} from '../../../../../support/http2-session.ts';
import { type Choice, type Field, ReferenceEncoder } from '../../../../../support/reference/hpack.ts';

const LIMIT = 65_536;
const INDEXED: Choice = { form: 'indexed', huffman: false, namesIndex: true };
const PLAIN: Choice = { form: 'plain', huffman: false, namesIndex: false };

function blockOf(encoder: ReferenceEncoder, fields: readonly (readonly [Field, Choice])[]): Buffer {
  return Buffer.concat(fields.map(([field, choice]) => Buffer.from(encoder.field(field, choice))));
}

/** Fields of the requests that go on, as they come. */
function noted(test: TestSession): (readonly (readonly [string, string])[])[] {
  const heads: (readonly (readonly [string, string])[])[] = [];
  test.answer = () => heads.push(codecs.codec.request.entries());
  return heads;
}

const START = GET.map((field) => [field, INDEXED] as const);
const choice: fc.Arbitrary<Choice> = fc.record({
  form: fc.constantFrom('indexed', 'indexed', 'plain', 'never'),
  huffman: fc.boolean(),
  namesIndex: fc.boolean(),
});
const name = fc.constantFrom('x-a', 'x-b', 'x-c', 'user-agent');
/** A field by name, length of its value and form: what fails is short then. */
const field = fc.tuple(
  name,
  fc.oneof({ weight: 8, arbitrary: fc.nat(400) }, { weight: 1, arbitrary: fc.integer({ min: 20_000, max: 200_000 }) }),
  choice,
);

function madeOf(drawn: readonly (readonly [string, number, Choice])[]): (readonly [Field, Choice])[] {
  return drawn.map(([key, length, how], index) => [[key, `${index % 3}`.repeat(length)], how]);
}

describe('a header block beyond what is read at once', () => {
  it('leaves the tables in step, whatever it is made of and wherever its frames end', () => {
    const large = fc.record({
      fields: fc.array(field, { minLength: 1, maxLength: 30 }),
      filler: fc.integer({ min: LIMIT, max: 2 * LIMIT }),
      lengths: fc.array(fc.integer({ min: 1, max: FRAME_BYTES }), { maxLength: 20 }),
    });
    fc.assert(
      fc.property(
        fc.array(large, { minLength: 1, maxLength: 3 }),
        fc.array(field, { maxLength: 9 }),
        (blocks, drawn) => {
          const encoder = new ReferenceEncoder();
          const test = TestSession.server();
          const heads = noted(test);
          let streamId = 1;
          for (const { fields, filler, lengths } of blocks) {
            // What fills it up lies in front, so that the others meet the end of a part as well.
            const rest = ['x-filler', 'f'.repeat(1000)] as const;
            const fill = Array.from({ length: Math.ceil(filler / 1000) }, () => [rest, PLAIN] as const);
            const block = blockOf(encoder, [...START, ...fill, ...madeOf(fields)]);
            test.feed(...blockFrames(streamId, block, lengths, FrameFlag.END_STREAM));
            streamId += 2;
          }
          const fields = madeOf(drawn.map(([key, length, how]) => [key, length % 400, how]));
          test.feed(...blockFrames(streamId, blockOf(encoder, [...START, ...fields]), [], FrameFlag.END_STREAM));
          assert.equal(test.fault, null);
          assert.deepEqual(test.stats.filter((stat) => stat === 'header_overflow').length, blocks.length);
          assert.deepEqual(heads, [[['host', 'a.example'], ...fields.map(([pair]) => pair)]]);
        },
      ),
      { numRuns: 40 },
    );
  });

  for (const method of ['GET', 'HEAD', 'POST']) {
    it(`is answered for what it is, ${method}`, () => {
      const test = TestSession.server();
      const encoder = new ReferenceEncoder();
      const start = START.map(([[key, value], how]) => [[key, key === ':method' ? method : value], how] as const);
      const filler = ['cookie', 'c'.repeat(4000)] as const;
      const block = blockOf(encoder, [...start, ...Array.from({ length: 40 }, () => [filler, PLAIN] as const)]);
      const methods: (number | undefined)[] = [];
      const expected = { GET: 0, HEAD: 0, POST: 0 };
      for (const known of Object.keys(expected) as (keyof typeof expected)[]) {
        const bytes = Buffer.from(`${known} / HTTP/1.1\r\nhost: a\r\n\r\n`);
        codecs.codec.parseRequest(bytes, 0, bytes.length, { maxHeadBytes: 1000, maxFields: 10 });
        expected[known] = codecs.codec.request.methodId;
      }
      test.onOversizedRequest = (stream) => void methods.push(stream.requestMethod);
      const [first, ...rest] = blockFrames(1, block);
      test.feed(first!);
      for (const part of rest) {
        // Another connection has its turn in between.
        TestSession.server().feed(headers(1, POST));
        test.feed(part);
      }
      assert.deepEqual(methods, [expected[method as keyof typeof expected]]);
    });
  }

  it('ends the stream alone of which it is the trailers, or an answer', () => {
    const block = blockOf(new ReferenceEncoder(), [[['x-a', 'a'.repeat(100_000)], INDEXED]]);
    const server = TestSession.server().feed(headers(1, POST, 0), data(1, 'x'));
    server.feed(...blockFrames(1, block, [], FrameFlag.END_STREAM), headers(3));
    assert.deepEqual(server.events.slice(2), ['idle', '1 reset 11 here head_too_large', '3 head GET / end']);
    const client = new TestSession(false);
    client.feed(frame(FrameType.SETTINGS, 0, 0));
    client.request('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
    client.request('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
    client.feed(...blockFrames(1, block, [], FrameFlag.END_STREAM), headers(3, [[':status', '200']]));
    assert.deepEqual(client.events, ['1 reset 11 here head_too_large', '3 head 200 end', 'idle']);
    assert.deepEqual([server.fault, client.fault], [null, null]);
  });

  it('of a stream that is no more only keeps the tables in step', () => {
    const encoder = new ReferenceEncoder();
    const test = TestSession.server().feed(headers(1, POST, 0));
    const heads = noted(test);
    test.session.reset(test.streams[0]!, 8);
    const mark: readonly [Field, Choice] = [['x-a', 'mark'], INDEXED];
    const block = blockOf(encoder, [[['x-b', 'b'.repeat(100_000)], INDEXED], mark]);
    test.feed(...blockFrames(1, block), headers(3, GET), ...blockFrames(5, blockOf(encoder, [...START, mark])));
    assert.equal(test.fault, null);
    assert.deepEqual(heads.at(-1), [
      ['host', 'a.example'],
      ['x-a', 'mark'],
    ]);
  });

  it('ends the connection when it is broken, at its end or before', () => {
    const encoder = new ReferenceEncoder();
    const whole = blockOf(encoder, [...START, [['x-a', 'a'.repeat(100_000)], INDEXED]]);
    const cut = TestSession.server().feed(...blockFrames(1, whole.subarray(0, 90_000)));
    assert.equal(cut.fault?.reason, 'http2_compression_invalid');
    const filled = blockOf(encoder, [[['x-a', 'a'.repeat(66_000)], PLAIN]]);
    const broken = TestSession.server().feed(...blockFrames(1, Buffer.concat([filled, Buffer.from([0x80])])));
    assert.equal(broken.fault?.reason, 'http2_compression_invalid');
    const nothing = Buffer.alloc(2 * LIMIT, 0x80);
    assert.equal(TestSession.server().feed(...blockFrames(1, nothing)).fault?.reason, 'http2_header_block_too_large');
  });

  it('empties the table where it enters it, and only there', () => {
    const vast = ['x-b', 'b'.repeat(100_000)] as const;
    for (const [how, reason] of [
      [INDEXED, 'http2_compression_invalid'],
      [PLAIN, undefined],
    ] as const) {
      const block = blockOf(new ReferenceEncoder(), [...START, [['x-a', 'mark'], INDEXED], [vast, how]]);
      // The newest of the table.
      const stale = Buffer.concat([block, Buffer.from([0xbe])]);
      assert.equal(TestSession.server().feed(...blockFrames(1, stale)).fault?.reason, reason);
    }
  });

  it('ends the connection when a value might still enter a large table, and nobody can tell', () => {
    const block = blockOf(new ReferenceEncoder(), [
      ...START,
      [['x-a', 'v'.repeat(120_000)], { ...INDEXED, huffman: true }],
    ]);
    const small = TestSession.server({ headerTableBytes: 4096 }).feed(...blockFrames(1, block));
    assert.equal(small.fault, null);
    const resized = Buffer.concat([Buffer.from([0x3f, 0xe1, 0xff, 0x03]), block]);
    const large = TestSession.server({ headerTableBytes: LIMIT }).feed(...blockFrames(1, resized));
    assert.equal(large.fault?.reason, 'http2_header_block_too_large');
  });

  it('may be sixteen times as large, and no larger', () => {
    const filler = blockOf(new ReferenceEncoder(), [[['x-a', 'a'.repeat(FRAME_BYTES - 8)], PLAIN]]);
    assert.equal(filler.length, FRAME_BYTES);
    const start = frame(FrameType.HEADERS, FrameFlag.END_STREAM, 1, filler);
    const more = Buffer.concat(Array.from({ length: 62 }, () => frame(FrameType.CONTINUATION, 0, 1, filler)));
    const last = frame(FrameType.CONTINUATION, FrameFlag.END_HEADERS, 1, filler);
    assert.equal(TestSession.server().feed(start, more, last).fault, null);
    const beyond = frame(FrameType.CONTINUATION, FrameFlag.END_HEADERS, 1, [0x82]);
    const over = frame(FrameType.CONTINUATION, 0, 1, filler);
    assert.equal(TestSession.server().feed(start, more, over, beyond).fault?.reason, 'http2_header_block_too_large');
  });
});
