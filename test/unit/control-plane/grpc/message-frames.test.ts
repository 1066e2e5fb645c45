// Messages of gRPC out of the pieces that a body comes in.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { frameOf, MessageFrames } from '../../../../src/control-plane/grpc/message-frames.ts';

const MESSAGES = fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 8 });

describe('messages in a body', () => {
  it('are whole in whatever pieces they come, and told when their last byte is there', () => {
    fc.assert(
      fc.property(MESSAGES, fc.array(fc.integer({ min: 1, max: 40 })), (messages, lengths) => {
        const body = Buffer.concat(messages.map(frameOf));
        const ends: number[] = [];
        for (const [index] of messages.entries()) {
          ends.push(Buffer.concat(messages.slice(0, index + 1).map(frameOf)).length);
        }
        const frames = new MessageFrames(50);
        const told: Buffer[] = [];
        let at = 0;
        for (const length of [...lengths, body.length]) {
          const piece = Buffer.from(body.subarray(at, at + length));
          at += piece.length;
          told.push(...frames.add(piece));
          // What it has been given is nobody's any more.
          piece.fill(0xff);
          assert.equal(told.length, ends.filter((end) => end <= at).length);
        }
        assert.deepEqual(
          told,
          messages.map((message) => Buffer.from(message)),
        );
      }),
    );
  });

  it('are refused when their head comes: those that are too long, and compressed ones', () => {
    const long = new MessageFrames(3);
    assert.deepEqual([...long.add(frameOf(Buffer.from('abc')))], [Buffer.from('abc')]);
    assert.throws(
      () => [...long.add(frameOf(Buffer.from('abcd')).subarray(0, 5))],
      /a message of 4 bytes, more than 3/,
    );
    assert.throws(() => [...new MessageFrames(3).add(Buffer.from([1, 0, 0, 0, 0]))], /is compressed/);
  });
});
