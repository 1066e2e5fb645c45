// RFC 7541 sections 6.2.3 and 7.1.3: what came as a literal that is never indexed goes on as one, by whichever way a head or trailers
// take through the proxy, and nothing else does.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { Trailers } from '../../../src/data-plane/http/trailers.ts';
import { Method } from '../../../src/wasm/http1.ts';
import { BUILDS, LIMITS, TestHeads } from '../../support/http2-heads.ts';
import { type Choice, type Field, ReferenceDecoder, ReferenceEncoder } from '../../support/reference/hpack.ts';

const START: readonly Field[] = [
  [':method', 'GET'],
  [':scheme', 'http'],
  [':authority', 'a.example'],
  [':path', '/'],
];
const NO_LIMITS = { maxHeadBytes: 65_535, maxFields: 1024 };
/** Never indexed, however they came. */
const CREDENTIALS = new Set(['authorization', 'cookie', 'set-cookie', 'proxy-authorization']);

const choice: fc.Arbitrary<Choice> = fc.record({
  form: fc.constantFrom('indexed', 'plain', 'never'),
  huffman: fc.boolean(),
  namesIndex: fc.boolean(),
});
const field = fc.tuple(
  fc.constantFrom('x-key', 'x-other', 'etag', 'user-agent', 'accept', 'authorization', 'set-cookie', 'x_odd'),
  fc.constantFrom('', 'v', 'a b  c', 'gzip, deflate', 'x'.repeat(200)),
) as fc.Arbitrary<Field>;
const fields = fc.array(fc.tuple(field, choice), { minLength: 1, maxLength: 12 });
type Fields = readonly (readonly [Field, Choice])[];

function expected(sent: Fields): string[] {
  return sent.map(([[name, value], { form }]) => {
    return `${name}: ${value} ${form === 'never' || CREDENTIALS.has(name) ? 'never' : 'may be'}`;
  });
}

for (const build of BUILDS) {
  describe(`fields that are never indexed, ${build}`, () => {
    const test = new TestHeads(build);
    const { codec, heads } = test;

    /** Sends the fields in twice, since what comes a second time is what enters a table, and reads what came out. */
    function passed(sent: Fields, start: readonly Field[], pass: (block: Buffer) => number): string[] {
      const encoder = new ReferenceEncoder();
      const decoder = new ReferenceDecoder();
      let got: string[] = [];
      for (let round = 0; round < 2; round += 1) {
        const first = { form: 'plain', huffman: false, namesIndex: true } as const;
        const block = [...start.map((one) => [one, first] as const), ...sent].flatMap((one) => encoder.field(...one));
        got = decoder
          .decode(test.block(pass(Buffer.from(block))))
          .filter(([name]) => !name.startsWith(':'))
          .map(([name, value, form]) => `${name}: ${value} ${form === 'never' ? 'never' : 'may be'}`);
      }
      return got;
    }

    function check(
      start: readonly Field[],
      makePass: () => { pass: (block: Buffer) => number; end: () => void },
    ): void {
      fc.assert(
        fc.property(fields, (sent) => {
          const { pass, end } = makePass();
          try {
            assert.deepEqual(passed(sent, start, pass), expected(sent));
          } finally {
            end();
          }
        }),
      );
    }

    function withTables(pass: (decoder: number, encoder: number, block: Buffer) => number) {
      return () => {
        const decoder = heads.createDecoder(4096);
        const encoder = heads.createEncoder();
        return {
          pass: (block: Buffer) => pass(decoder, encoder, block),
          end: () => {
            heads.release(decoder);
            heads.release(encoder);
          },
        };
      };
    }

    it('a request goes on from where it lies', () => {
      const make = withTables((decoder, encoder, block) => {
        assert.ok(heads.decodeRequest(decoder, block, 0, block.length, LIMITS, 1) > 0);
        return heads.encodeRequest(encoder, 0);
      });
      check(START, make);
    });

    it('a request waits as text, and is read again', () => {
      const make = withTables((decoder, encoder, block) => {
        assert.ok(heads.decodeRequest(decoder, block, 0, block.length, LIMITS, 1) > 0);
        const text = Buffer.from(codec.requestText(codec.writeRequest()), 'latin1');
        assert.ok(codec.parseRequest(text, 0, text.length, NO_LIMITS) > 0);
        return heads.encodeRequest(encoder, 0);
      });
      check(START, make);
    });

    it('an answer goes on from where it lies, and as text', () => {
      for (const waits of [false, true]) {
        const make = withTables((decoder, encoder, block) => {
          assert.ok(heads.decodeResponse(decoder, block, 0, block.length, LIMITS, 1, Method.GET) > 0);
          if (waits) {
            const text = Buffer.from(codec.responseText(codec.writeResponse()), 'latin1');
            assert.ok(codec.parseResponse(text, 0, text.length, NO_LIMITS, Method.GET) > 0);
          }
          return heads.encodeResponse(encoder, 0);
        });
        check([[':status', '200']], make);
      }
    });

    it('trailers go on', () => {
      const make = withTables((decoder, encoder, block) => {
        const length = heads.decodeTrailers(decoder, block, 0, block.length, LIMITS);
        assert.ok(length >= 0);
        return heads.encodeLines(encoder, Trailers.parse(heads.linesText(length)).text(), 0, 0);
      });
      check([], make);
    });

    it('HTTP/1 peers see whitespace alone, and not at credentials, which have no need of it', () => {
      const never = { form: 'never', huffman: false, namesIndex: false } as const;
      const encoder = new ReferenceEncoder();
      const sent: Field[] = [...START, ['x-key', 'k'], ['authorization', 'Basic x'], ['cookie', 'c']];
      const block = Buffer.from(sent.flatMap((one) => encoder.field(one, never)));
      const decoder = heads.createDecoder(4096);
      assert.ok(heads.decodeRequest(decoder, block, 0, block.length, LIMITS, 1) > 0);
      heads.release(decoder);
      assert.equal(codec.request.headerByName('x-key'), 'k');
      const lines = codec.requestText(codec.writeRequest()).split('\r\n').slice(2);
      assert.deepEqual(lines, ['x-key:  k', 'authorization: Basic x', 'cookie: c', '', '']);
    });

    /** How the pseudo fields of a request go out that came in these forms. @param edits of its head. */
    function pseudoForms(
      start: readonly Field[],
      form: Choice['form'],
      { waits = false, edits = () => {} }: { waits?: boolean; edits?: () => void } = {},
    ): Record<string, string> {
      const [decoder, encoder] = [heads.createDecoder(4096), heads.createEncoder()];
      const [sent, read] = [new ReferenceEncoder(), new ReferenceDecoder()];
      let forms: Record<string, string> = {};
      for (let round = 0; round < 3; round += 1) {
        const block = Buffer.from(start.flatMap((one) => sent.field(one, { form, huffman: false, namesIndex: true })));
        assert.ok(heads.decodeRequest(decoder, block, 0, block.length, LIMITS, 1) > 0);
        edits();
        if (waits) {
          const text = Buffer.from(codec.requestText(codec.writeRequest()), 'latin1');
          assert.ok(codec.parseRequest(text, 0, text.length, NO_LIMITS) > 0);
        }
        const out = read.decode(test.block(heads.encodeRequest(encoder, 0)));
        forms = Object.fromEntries(out.map(([name, , how]) => [name, how === 'never' ? 'never' : 'may be']));
      }
      heads.release(decoder);
      heads.release(encoder);
      return forms;
    }

    it('an authority goes on as it came, also as text, unless it is replaced; a path and a method of its own never may be', () => {
      const PATCH: readonly Field[] = [[':method', 'PATCH'], ...START.slice(1, 3), [':path', '/secret']];
      for (const waits of [false, true]) {
        const rest = { ':method': 'never', ':scheme': 'may be', ':path': 'never' };
        assert.deepEqual(pseudoForms(PATCH, 'never', { waits }), { ...rest, ':authority': 'never' });
        assert.deepEqual(pseudoForms(PATCH, 'plain', { waits }), { ...rest, ':authority': 'may be' });
        const edits = (): void => codec.request.replaceHost('other');
        assert.deepEqual(pseudoForms(PATCH, 'never', { waits, edits }), { ...rest, ':authority': 'may be' });
      }
      const CONNECT: readonly Field[] = [
        [':method', 'CONNECT'],
        [':authority', 'a.example:443'],
      ];
      assert.deepEqual(pseudoForms(CONNECT, 'never'), { ':method': 'never', ':authority': 'never' });
      assert.deepEqual(pseudoForms(CONNECT, 'plain'), { ':method': 'never', ':authority': 'may be' });
    });

    it('an authority that Host says in place of :authority goes on as it came', () => {
      const HOST: readonly Field[] = [...START.slice(0, 2), START[3]!, ['host', 'a.example']];
      assert.equal(pseudoForms(HOST, 'never')[':authority'], 'never');
      assert.equal(pseudoForms(HOST, 'plain')[':authority'], 'may be');
    });
  });
}
