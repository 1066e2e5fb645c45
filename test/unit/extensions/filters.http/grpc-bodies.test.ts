// What the filters of gRPC know of bodies: where messages begin and end, and base64 in pieces of any size.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { FrameCounter, frameHead } from '../../../../src/extensions/filters.http/grpc/frames.ts';
import { GrpcStats, methodOf } from '../../../../src/extensions/filters.http/grpc/method-stats.ts';
import { Base64Reader, Base64Writer } from '../../../../src/extensions/filters.http/grpc_web/base64.ts';

const message = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));
const cuts = fc.array(fc.integer({ min: 0, max: 1000 }), { maxLength: 8 });

function pieces(bytes: Buffer, at: readonly number[]): Buffer[] {
  const ends = at.map((cut) => Math.floor((cut * bytes.length) / 1000)).sort((a, b) => a - b);
  return [...ends, bytes.length].map((end, index) => bytes.subarray(index === 0 ? 0 : ends[index - 1]!, end));
}

test('messages are counted wherever their bytes are cut', () => {
  fc.assert(
    fc.property(fc.array(message, { maxLength: 5 }), cuts, (messages, at) => {
      const framed = messages.map((bytes) => Buffer.concat([frameHead(0, bytes.length), bytes]));
      const body = Buffer.concat(framed);
      const counter = new FrameCounter();
      let seen = 0;
      const ends = framed.map(
        (
          (end) => (bytes: Buffer) =>
            (end += bytes.length)
        )(0),
      );
      for (const piece of pieces(body, at)) {
        counter.see(piece);
        seen += piece.length;
        assert.equal(counter.isBetween, seen === 0 || ends.includes(seen));
      }
      assert.equal(counter.count, messages.length);
    }),
  );
});

test('the length of a message has four bytes', () => {
  const counter = new FrameCounter();
  counter.see(frameHead(1, 0x01020304));
  counter.see(Buffer.alloc(0x01020303));
  assert.equal(counter.isBetween, false);
  counter.see(Buffer.alloc(1));
  assert.deepEqual([counter.isBetween, counter.count], [true, 1]);
});

describe('base64 in pieces', () => {
  test('is read as it was written, wherever it is cut and whatever was padded', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(message, fc.boolean()), { maxLength: 5 }), cuts, (parts, at) => {
        const writer = new Base64Writer();
        const written = [...parts, [Buffer.alloc(0), true] as const].map(([bytes, isAll]) =>
          writer.write(bytes, isAll),
        );
        const reader = new Base64Reader();
        const read = pieces(Buffer.concat(written), at).map((piece) => reader.read(piece));
        assert.ok(read.every((bytes) => bytes !== undefined));
        assert.ok(reader.isWhole);
        assert.deepEqual(Buffer.concat(read), Buffer.concat(parts.map(([bytes]) => bytes)));
      }),
    );
  });

  test('keeps nothing back that somebody waits for', () => {
    const writer = new Base64Writer();
    assert.equal(writer.write(Buffer.from('abcd'), true).toString(), 'YWJjZA==');
    assert.equal(writer.write(Buffer.from('abcd'), false).toString(), 'YWJj');
    assert.equal(writer.write(Buffer.from('ef'), false).toString(), 'ZGVm');
  });

  for (const text of ['a===', '====', 'ab=c', 'abc-', 'ab c', 'a\u00e4bc', '=abc', 'YQ==YQ=Y']) {
    test(`is not what ${JSON.stringify(text)} is`, () => {
      assert.equal(new Base64Reader().read(Buffer.from(text, 'latin1')), undefined);
    });
  }

  test('ends with a whole group', () => {
    const reader = new Base64Reader();
    assert.deepEqual(reader.read(Buffer.from('YWJjZ')), Buffer.from('abc'));
    assert.equal(reader.isWhole, false);
  });
});

describe('stats of methods', () => {
  test('have names that only paths of gRPC give', () => {
    assert.deepEqual(['/a.B/C', '/B/C?x=1', '/a.b.C_1/d2'].map(methodOf), ['a.B.C', 'B.C', 'a.b.C_1.d2']);
    for (const path of [
      '/',
      '/a',
      '/a/',
      '//b',
      '/a/b/c',
      '/a/b.c',
      '/a b/c',
      '/a/%41',
      `/${'a'.repeat(201)}/b`,
      'a/b',
    ]) {
      assert.equal(methodOf(path), undefined, path);
    }
  });

  test('are bounded, whatever names clients invent', () => {
    const names: string[] = [];
    const counter = (name: string) => {
      names.push(name);
      return { add() {} };
    };
    const cluster = { counter, time: () => ({ record() {} }) };
    const stats = new GrpcStats('grpc');
    const first = stats.of(cluster, 'S.m0');
    for (let at = 0; at < 5000; at += 1) stats.of(cluster, `S.m${at}`);
    assert.equal(stats.of(cluster, 'S.m0'), first);
    assert.equal(stats.of(cluster, 'S.m4000'), stats.of(cluster, ''));
    assert.ok(names.length <= 3 * 1001);
  });
});
