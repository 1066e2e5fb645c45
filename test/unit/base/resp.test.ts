// The protocol of Redis: messages that come in pieces, what is no message, and limits.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { hashTag } from '../../../src/base/redis-slots.ts';
import {
  arrayItems,
  arrayOf,
  bulk,
  failure,
  integer,
  integerOf,
  isErrorAnswer,
  RespError,
  RespReader,
  request,
  requestArguments,
  simple,
} from '../../../src/base/resp.ts';

const NIL = Buffer.from('$-1\r\n');

const { message: MESSAGE } = fc.letrec<{ message: Buffer }>((tie) => ({
  message: fc.oneof(
    { maxDepth: 5, depthSize: 'small' },
    fc.uint8Array({ maxLength: 40 }).map((bytes) => bulk(Buffer.from(bytes))),
    fc.stringMatching(/^[a-z ]{0,9}$/).map(simple),
    fc.stringMatching(/^[A-Z ]{0,9}$/).map(failure),
    fc.integer().map(integer),
    fc.constant(NIL),
    fc.constant(Buffer.from('*-1\r\n')),
    fc.array(tie('message'), { maxLength: 4 }).map(arrayOf),
  ),
}));

function read(pieces: readonly Buffer[], maxBytes = 1_000_000): Buffer[] {
  const reader = new RespReader(() => maxBytes);
  const found: Buffer[] = [];
  for (const piece of pieces) {
    reader.push(piece);
    for (let message = reader.next(); message !== null; message = reader.next()) found.push(Buffer.from(message));
  }
  return found;
}

describe('messages of Redis', () => {
  it('are cut where they end, in whatever pieces they come', () => {
    const property = fc.property(
      fc.array(MESSAGE, { maxLength: 6 }),
      fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 40 }),
      (messages, sizes) => {
        const all = Buffer.concat(messages);
        const pieces: Buffer[] = [];
        let at = 0;
        for (const size of sizes) {
          pieces.push(all.subarray(at, at + size));
          at += size;
        }
        pieces.push(all.subarray(at));
        assert.deepEqual(read(pieces), messages);
      },
    );
    fc.assert(property, { numRuns: 500 });
  });

  it('never do more than to be refused, whatever comes', () => {
    const property = fc.property(
      fc.array(
        fc.oneof(
          fc.uint8Array({ maxLength: 20 }),
          fc.constantFrom(...['*2\r\n', '$3\r\n', ':1\r\n', '\r\n', '*-1\r\n'].map((text) => Buffer.from(text))),
        ),
      ),
      (pieces) => {
        try {
          for (const message of read(
            pieces.map((piece) => Buffer.from(piece)),
            64,
          )) {
            if (message[0] === 42) requestArguments(message);
          }
        } catch (error) {
          assert.ok(error instanceof RespError, String(error));
        }
      },
    );
    fc.assert(property, { numRuns: 2000 });
  });

  it('are requests where they are arrays of strings', () => {
    const given = ['set', 'k\r\n{}', Buffer.from([0, 255, 13, 10])];
    assert.deepEqual(
      requestArguments(request(given)),
      given.map((part) => Buffer.from(part)),
    );
    for (const other of [simple('PING'), arrayOf([]), arrayOf([integer(1)]), arrayOf([NIL]), arrayOf([arrayOf([])])]) {
      assert.throws(() => requestArguments(other), RespError);
    }
  });

  it('are answers with items, numbers and errors', () => {
    const items = [bulk('a'), NIL, arrayOf([integer(1)])];
    assert.deepEqual(arrayItems(arrayOf(items)), items);
    assert.equal(arrayItems(NIL), null);
    assert.deepEqual([integerOf(integer(-12)), integerOf(simple('1'))], [-12, undefined]);
    assert.deepEqual([isErrorAnswer(failure('x')), isErrorAnswer(simple('x'))], [true, false]);
  });

  for (const [what, text] of [
    ['of another type', 'PING\r\n'],
    ['with a length that is no number', '$x\r\n'],
    ['with a length that is too long', `$${'1'.repeat(20)}\r\n`],
    ['with a negative length', '$-2\r\n'],
    ['with too many items', '*1048577\r\n'],
    ['that end with a line feed alone', '+OK\n'],
    ['whose strings go on', '$1\r\nabc'],
    ['that are too deep', '*1\r\n'.repeat(17)],
    ['larger than is taken', '$1001\r\n'],
    ['that are never complete', `*1000000\r\n${'$1\r\na\r\n'.repeat(200)}`],
    ['with a number that is none', ':1.5\r\n'],
    ['with a line without end', '+'.repeat(70_000)],
  ] as const) {
    it(`are none ${what}`, () => {
      assert.throws(() => read([Buffer.from(text)], text.startsWith('+') ? 1_000_000 : 1000), RespError);
    });
  }
});

describe('a hash tag', () => {
  for (const [key, tag] of [
    ['{user1000}.following', 'user1000'],
    ['foo{}{bar}', 'foo{}{bar}'],
    ['foo{{bar}}zap', '{bar'],
    ['foo{bar}{zap}', 'bar'],
    ['foo', 'foo'],
    ['foo{bar', 'foo{bar'],
    ['}{', '}{'],
  ] as const) {
    it(`of ${key} is ${tag}`, () => assert.equal(hashTag(Buffer.from(key)).toString(), tag));
  }
});
