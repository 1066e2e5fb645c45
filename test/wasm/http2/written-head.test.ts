// A request that has been written as text is encoded from where it lies, and reads as its text does.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { PREPARED_BYTES } from '../../../assembly/layout/http1.ts';
import { HEADER_ID, PreparedLines } from '../../../src/wasm/http1.ts';
import { BUILDS, LIMITS, TestHeads } from '../../support/http2-heads.ts';
import { ReferenceDecoder, ReferenceEncoder } from '../../support/reference/hpack.ts';

const START = 'GET / HTTP/1.1';

/** A field with an unusual chance to be one that a hop keeps to itself. */
const field = fc.tuple(
  fc.constantFrom('TE', 'Connection', 'x-forwarded-proto', 'X-Hop', 'Upgrade', 'Cookie', 'x-a', 'Expect', 'Keep-Alive'),
  fc.constantFrom('trailers', 'x-hop', 'https', 'http', 'close', '100-continue', 'a=b', 'gzip, trailers', 'te'),
);
/** Nobody adds these to a request that is no upgrade. */
const HOP_FIELDS = new Set(['Connection', 'Upgrade', 'Keep-Alive']);
const startLine = fc.constantFrom(
  START,
  'POST /a?b HTTP/1.1',
  'GET http://other HTTP/1.1',
  'GET http://other?q HTTP/1.1',
  'OPTIONS http://other HTTP/1.1',
  'OPTIONS * HTTP/1.1',
  'BREW /pot HTTP/1.0',
  'CONNECT a.example:1 HTTP/1.1',
);
const edits = fc.record({
  target: fc.option(fc.constantFrom('/new', '/', '/n?q', 'none', 'http://else/x'), { freq: 2 }),
  host: fc.option(fc.constantFrom('new.example', 'h:1'), { freq: 2 }),
  dropped: fc.option(fc.constantFrom('x-a', 'cookie', 'x-forwarded-proto'), { freq: 2 }),
  prepared: fc.option(fc.constantFrom('te: trailers', 'x-forwarded-proto: https', 'x-b: c'), { freq: 2 }),
  added: fc.array(
    field.filter(([name]) => !HOP_FIELDS.has(name)),
    { maxLength: 2 },
  ),
});

for (const build of BUILDS) {
  describe(`a written request, ${build}`, () => {
    const { codec, heads } = new TestHeads(build);
    const test = { codec, heads };
    const { request } = codec;

    function parse(start: string, lines: readonly string[]): boolean {
      const head = Buffer.from([start, ...lines, '', ''].join('\r\n'), 'latin1');
      return codec.parseRequest(head, 0, head.length, LIMITS) > 0;
    }

    function write(): string {
      const text = codec.writeRequestText();
      assert.ok(typeof text === 'string');
      return text;
    }

    function encoded(): string[] {
      const length = heads.encodeRequest(heads.createEncoder(), 0);
      assert.ok(length > 0);
      const block = Buffer.alloc(length);
      heads.copyBlock(0, length, block, 0);
      return new ReferenceDecoder().decode(block).map(([name, value]) => `${name}: ${value}`);
    }

    it('says what its text would, whatever it came as and was made into, or is not taken for it', () => {
      let taken = 0;
      fc.assert(
        fc.property(
          startLine,
          fc.array(field, { maxLength: 6 }),
          fc.boolean(),
          edits,
          (start, fields, hasHost, edit) => {
            const lines = fields.map(([name, value]) => `${name}: ${value}`);
            fc.pre(parse(start, hasHost ? ['Host: a.example:1', ...lines] : lines));
            if (edit.target !== null) request.replaceTarget(edit.target);
            if (edit.host !== null) request.replaceHost(edit.host);
            if (edit.dropped !== null) request.dropByName(edit.dropped);
            if (edit.prepared !== null) request.appendPrepared(new PreparedLines([edit.prepared]));
            for (const [name, value] of edit.added) request.append(name, value);
            const text = write();
            if (!codec.hasWritten(text)) return;
            taken += 1;
            const direct = encoded();
            assert.ok(!codec.hasWritten(text));
            assert.ok(codec.parseRequestText(text, LIMITS) > 0);
            assert.deepEqual(direct, encoded());
          },
        ),
        { numRuns: 1000 },
      );
      assert.ok(taken > 200, `only ${taken} were taken`);
    });

    it('is its text until another head is read or written', () => {
      const others: [string, () => unknown][] = [
        ['a request that is read', () => parse(START, ['Host: b'])],
        ['one that cannot be', () => parse('GET', [''])],
        ['a request over HTTP/2', () => decodeRequest()],
        ['the same again without its edits', () => codec.writeRequest()],
        ['the block', () => encoded()],
      ];
      for (const [what, happens] of others) {
        assert.ok(parse(START, ['Host: a']));
        const text = write();
        assert.ok(codec.hasWritten(text), what);
        assert.ok(!codec.hasWritten(`${text} `), what);
        happens();
        assert.ok(!codec.hasWritten(text), what);
      }
    });

    it('is no longer told of by the text of another', () => {
      assert.ok(parse(START, ['Host: a']));
      const first = write();
      assert.ok(parse(START, ['Host: b']));
      const second = write();
      assert.ok(!codec.hasWritten(first));
      assert.ok(codec.hasWritten(second));
    });

    it('that reads otherwise as text is none that stands for it', () => {
      const stands = (start: string, lines: readonly string[], edit?: () => void): boolean => {
        assert.ok(parse(start, lines));
        edit?.();
        return codec.hasWritten(write());
      };
      assert.ok(stands(START, ['Host: a']));
      assert.ok(!stands('CONNECT a:1 HTTP/1.1', ['Host: a:1']));
      assert.ok(!stands(START, ['Host: a', 'Connection: upgrade', 'Upgrade: websocket']));
      assert.ok(!stands(START, ['Host: a'], () => request.replaceTarget('b')));
      assert.ok(!stands('GET / HTTP/1.0', []));
      assert.ok(stands('GET / HTTP/1.0', [], () => request.replaceHost('a')));
    });

    it('keeps TE where it was added for the next hop, and there alone', () => {
      const lines = ['Host: a', 'TE: trailers'];
      assert.ok(parse(START, lines));
      assert.ok(codec.hasWritten(write()));
      assert.ok(!encoded().includes('te: trailers'));
      assert.ok(parse(START, lines));
      request.append('te', 'trailers');
      assert.ok(codec.hasWritten(write()));
      assert.equal(encoded().filter((line) => line === 'te: trailers').length, 1);
      assert.ok(parse(START, lines));
      request.keepKnown(HEADER_ID.te);
      assert.ok(codec.hasWritten(write()));
      assert.equal(encoded().filter((line) => line === 'te: trailers').length, 1);
    });

    it('has room for prepared lines made again by heads of HTTP/2', () => {
      const large = (): PreparedLines => new PreparedLines([`x-large: ${'l'.repeat(PREPARED_BYTES / 2)}`]);
      for (const decode of [decodeRequest, decodeResponse]) {
        assert.ok(parse(START, ['Host: a']));
        for (let count = 0; count < 3; count += 1) request.appendPrepared(large());
        const placed = large();
        codec.writeRequest();
        decode();
        request.appendPrepared(placed);
        assert.ok(request.hasPieces);
        codec.writeRequest();
      }
    });

    function decodeRequest(): void {
      const encoder = new ReferenceEncoder();
      const fields = [
        [':method', 'GET'],
        [':scheme', 'http'],
        [':authority', 'a'],
        [':path', '/'],
      ] as const;
      const bytes = Buffer.from(fields.flatMap((one) => encoder.field(one, PLAIN)));
      const decoder = heads.createDecoder(4096);
      assert.ok(heads.decodeRequest(decoder, bytes, 0, bytes.length, LIMITS, 1) > 0);
      heads.release(decoder);
    }

    function decodeResponse(): void {
      const bytes = Buffer.from(new ReferenceEncoder().field([':status', '200'], PLAIN));
      const decoder = test.heads.createDecoder(4096);
      assert.ok(heads.decodeResponse(decoder, bytes, 0, bytes.length, LIMITS, 1, 1) > 0);
      heads.release(decoder);
    }
  });
}

const PLAIN = { form: 'plain', huffman: false, namesIndex: false } as const;
