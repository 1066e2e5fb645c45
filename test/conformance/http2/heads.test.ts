// What RFC 9113 section 8 demands of heads, and what an HTTP/1 peer could read in two ways, as a table: fields, and the
// fault or the head that they become. Each case is asked of both builds.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Framing, Method } from '../../../src/wasm/http1.ts';
import { BlockFlag } from '../../../src/wasm/http2.ts';
import { BUILDS, LIMITS, plainBlock, TestHeads } from '../../support/http2-heads.ts';
import type { Field } from '../../support/reference/hpack.ts';
import { GET, READ, REQUEST_CASES, with_ } from './head-cases.ts';

const OK: readonly Field[] = [[':status', '200']];

const RESPONSES: readonly (readonly [string, readonly Field[], string | readonly string[], number?, number?])[] = [
  ['a plain response', OK, ['200']],
  ['no status', [['a', 'b']], 'pseudo_header_missing'],
  ['nothing at all', [], 'pseudo_header_missing'],
  ['a status twice', [...OK, [':status', '200']], 'pseudo_header_repeated'],
  [
    'a late status',
    [
      ['a', 'b'],
      [':status', '200'],
    ],
    'pseudo_header_missing',
  ],
  ['a path', [...OK, [':path', '/']], 'pseudo_header_unknown'],
  ['a status of two digits', [[':status', '20']], 'status_invalid'],
  ['a status of four digits', [[':status', '2000']], 'status_invalid'],
  ['a status with a letter', [[':status', '2a0']], 'status_invalid'],
  ['a status below 100', [[':status', '099']], 'status_invalid'],
  ['101, which HTTP/2 has not', [[':status', '101']], 'status_invalid', 0],
  ['100', [[':status', '100']], ['100'], 0],
  ['100 that ends the stream', [[':status', '100']], 'informational_ends_stream', 1],
  [
    '204 with a length',
    [
      [':status', '204'],
      ['content-length', '5'],
    ],
    'body_forbidden',
    1,
  ],
  ['a length without content', [...OK, ['content-length', '5']], 'content_length_without_content', 1],
  ['a length in answer to HEAD', [...OK, ['content-length', '5']], ['200', 'content-length: 5'], 1, Method.HEAD],
  [
    'a length of 304',
    [
      [':status', '304'],
      ['content-length', '5'],
    ],
    ['304', 'content-length: 5'],
    1,
  ],
  ['connection', [...OK, ['connection', 'close']], 'connection_header_forbidden'],
  ['transfer-encoding', [...OK, ['transfer-encoding', 'chunked']], 'connection_header_forbidden'],
  ['a zero byte', [...OK, ['a', '\0']], 'header_value_invalid'],
  ['CR LF', [...OK, ['a', 'b\r\nc: d']], 'header_value_invalid'],
  [
    'cookies that are set, each for itself',
    [...OK, ['set-cookie', 'a'], ['set-cookie', 'b']],
    ['200', 'set-cookie: a', 'set-cookie: b'],
  ],
];

for (const build of BUILDS) {
  describe(`heads of HTTP/2, ${build}`, () => {
    const test = new TestHeads(build);
    for (const [what, fields, expected, flags] of REQUEST_CASES) {
      it(`request: ${what}`, () => assert.deepEqual(test.request(fields, flags), expected));
    }
    for (const [what, fields, expected, flags, method] of RESPONSES) {
      it(`response: ${what}`, () => assert.deepEqual(test.response(fields, flags, method), expected));
    }

    it('an upgrade is one to whoever reads the head', () => {
      const fields: Field[] = [[':method', 'CONNECT'], [':protocol', 'websocket'], ...GET.slice(1)];
      test.request(fields, BlockFlag.CONNECT_PROTOCOL);
      assert.equal(test.codec.request.header(5), 'websocket');
      assert.notEqual(test.codec.request.flags & 8, 0);
    });

    it('how a body ends is known with the head', () => {
      const length: Field = ['content-length', '3'];
      const framing = (fields: readonly Field[], flags: number): number => {
        test.request(fields, flags);
        return test.codec.request.framing;
      };
      assert.equal(framing(GET, 1), Framing.NONE);
      assert.equal(framing(GET, 0), Framing.UNTIL_CLOSE);
      assert.equal(framing([...GET, length], 0), Framing.LENGTH);
      const answer = (fields: readonly Field[], flags: number, method: number = Method.GET): number => {
        test.response(fields, flags, method);
        return test.codec.response.framing;
      };
      assert.equal(answer(OK, 1), Framing.NONE);
      assert.equal(answer(OK, 0), Framing.UNTIL_CLOSE);
      assert.equal(answer([...OK, length], 0), Framing.LENGTH);
      assert.equal(answer([...OK, length], 0, Method.HEAD), Framing.NONE);
      assert.equal(answer([...OK, ['content-length', '0']], 0), Framing.LENGTH);
      assert.equal(answer(OK, 0, Method.CONNECT), Framing.TUNNEL);
    });

    it('trailers have no pseudo fields and none of a connection', () => {
      assert.equal(
        test.trailers([
          ['a', 'b'],
          ['c', ''],
        ]),
        'a: b\r\nc: \r\n',
      );
      assert.equal(test.trailers([]), '');
      assert.equal(test.trailers([[':status', '200']]), 'pseudo_header_unknown');
      assert.equal(test.trailers([['connection', 'x']]), 'connection_header_forbidden');
      assert.equal(test.trailers([['a', 'b\n']]), 'header_value_invalid');
    });

    it('the bounds are those of the head as HTTP/1 has it', () => {
      const base = 'GET /x HTTP/1.1\r\nhost: a.example\r\n'.length;
      const limits = { maxHeadBytes: base + 'a: bb\r\n'.length + 2, maxFields: 2 };
      assert.deepEqual(test.request(with_(['a', 'bb']), 1, limits), [...READ, 'a: bb']);
      assert.equal(test.request(with_(['a', 'bbb']), 1, limits), 'head_too_large');
      assert.equal(test.request(with_(['a', ''], ['b', '']), 1, { ...limits, maxHeadBytes: 1000 }), 'too_many_headers');
      assert.equal(
        test.trailers(
          [
            ['a', ''],
            ['b', ''],
            ['c', ''],
          ],
          limits,
        ),
        'too_many_headers',
      );
      const bomb = { maxHeadBytes: 65535, maxFields: 1024 };
      const crumb: Field = ['cookie', 'c'.repeat(40_000)];
      const block = [...GET, crumb, crumb];
      assert.equal(test.request(block.slice(0, 5), 1, bomb).length, 3);
      assert.throws(() => test.request([...block, crumb], 1, bomb), RangeError);
    });

    it('a block of references to one large field does not grow without bound, and keeps the table in step', () => {
      const decoder = test.heads.createDecoder(4096);
      const large = Buffer.concat([Buffer.from([0x40, 1, 0x61, 0x7f, 0xa1, 0x1e]), Buffer.alloc(4000, 'b')]);
      const first = Buffer.concat([plainBlock(GET), large]);
      const { heads } = test;
      assert.ok(heads.decodeRequest(decoder, first, 0, first.length, LIMITS, 1) > 0);
      const bomb = Buffer.concat([plainBlock(GET), Buffer.alloc(60_000, 0xbe)]);
      assert.ok(heads.decodeRequest(decoder, bomb, 0, bomb.length, LIMITS, 1) < 0);
      const next = Buffer.concat([plainBlock(GET), Buffer.from([0xbe])]);
      assert.ok(heads.decodeRequest(decoder, next, 0, next.length, LIMITS, 1) > 0);
      assert.equal(test.codec.request.headerByName('a'), 'b'.repeat(4000));
      heads.release(decoder);
    });
  });
}
