// The facade of the HTTP/1 codec: look-ups, edits, rewriting, limits, and that no edit can break out of its line.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import * as layout from '../../assembly/layout/http1.ts';
import { WeirError } from '../../src/base/errors.ts';
import { buildOutput } from '../../src/base/package-root.ts';
import { knownSpellings } from '../../src/wasm/http1/known-headers.ts';
import {
  ChunkScanner,
  ChunkSpan,
  CODEC_ERRORS,
  codecError,
  compileHttp1,
  Framing,
  HEAD_LIMIT_BYTES,
  HEADER_ID,
  HeadFlag,
  Http1Codec,
  Method,
  PreparedLines,
} from '../../src/wasm/http1.ts';
import { compileModule } from '../../src/wasm/instantiate.ts';
import { readWasm } from '../support/wasm-binary.ts';

const LIMITS = { maxHeadBytes: 61440, maxFields: 100 };

const lines = (...text: string[]): Buffer => Buffer.from(`${text.join('\r\n')}\r\n\r\n`, 'latin1');

describe('HTTP/1 modules', () => {
  for (const name of ['http1', 'http1-scalar'] as const) {
    it(`${name} imports its memory, owns no data and exports what the facade declares`, () => {
      const binary = readWasm(readFileSync(buildOutput(`wasm/${name}.wasm`)));
      assert.equal(binary.hasDataSection, false);
      assert.equal(binary.mutableGlobals, 0);
      assert.deepEqual(binary.imports, ['env.memory']);
      assert.deepEqual(
        { ...binary.exports },
        {
          layoutVersion: '() -> i32',
          parseRequest: '(i32, i32, i32, i32, i32) -> i32',
          parseResponse: '(i32, i32, i32, i32, i32, i32) -> i32',
          writeRequest: '(i32) -> i32',
          writeResponse: '() -> i32',
        },
      );
    });
  }

  it('the layout fits its pages, each area aligned for the steps of 16 bytes', () => {
    assert.ok(layout.MEMORY_END <= layout.MEMORY_PAGES * layout.PAGE_BYTES);
    for (const address of [layout.REQUEST_RECORD, layout.RESPONSE_RECORD, layout.REQUEST_FIELDS, layout.REQUEST_OUT]) {
      assert.equal(address % 16, 0);
    }
    const heads = HEAD_LIMIT_BYTES + layout.NEW_TARGET_BYTES + layout.NEW_HOST_BYTES + layout.LINES_BYTES;
    assert.ok(heads + layout.PREPARED_BYTES + 64 <= layout.REQUEST_OUT_BYTES);
  });

  it('every error has a reason of its own', () => {
    const reasons = CODEC_ERRORS.slice(1).map((error) => error?.reason);
    assert.equal(new Set(reasons).size, reasons.length);
    assert.ok(!reasons.includes(undefined));
    assert.throws(() => codecError(-1000), RangeError);
  });

  it('the SIMD build is the one that runs here', () => {
    assert.equal(compileHttp1().name, 'http1');
  });
});

for (const name of ['http1', 'http1-scalar'] as const) {
  describe(`HTTP/1 codec, ${name}`, () => {
    const codec = new Http1Codec({ name, module: compileModule(name) });
    const { request, response } = codec;
    const parse = (bytes: Buffer): number => codec.parseRequest(bytes, 0, bytes.length, LIMITS);
    const rewritten = (): string => codec.requestText(codec.writeRequest());

    it('tells a request by its parts', () => {
      const bytes = lines('POST /a/b?c HTTP/1.1', 'Host: x.example:81', 'Content-Length: 12', 'Accept: */*');
      assert.equal(parse(bytes), bytes.length);
      assert.equal(request.headLength, bytes.length);
      assert.equal(request.methodId, Method.POST);
      assert.equal(request.method, 'POST');
      assert.equal(request.target(), '/a/b?c');
      assert.equal(request.path(), '/a/b?c');
      assert.equal(request.authority(), 'x.example:81');
      assert.equal(request.framing, Framing.LENGTH);
      assert.equal(request.contentLength, 12);
      assert.equal(request.isPersistent, true);
      assert.equal(request.fieldCount, 3);
    });

    it('knows every method that has an id', () => {
      for (const [method, id] of Object.entries(Method)) {
        if (method === 'OTHER') continue;
        parse(lines(`${method} ${method === 'CONNECT' ? 'x:1' : '/'} HTTP/1.1`, 'Host: x'));
        assert.equal(request.methodId, id);
        assert.equal(request.method, method);
      }
    });

    it('finds every known header by its id, in any case and in both spellings', () => {
      for (const [spelling, id] of knownSpellings()) {
        const value = id === HEADER_ID['content-length'] ? '7' : id === HEADER_ID.host ? 'x' : 'chunked';
        for (const written of [spelling, spelling.toUpperCase()]) {
          parse(lines('GET / HTTP/1.0', `${written}: ${value}`, `${written}x: no`, `y${written}: no`));
          assert.equal(request.idAt(0), id, written);
          assert.equal(request.idAt(1), 0, written);
          assert.equal(request.idAt(2), 0, written);
          assert.equal(request.header(id), value);
          assert.equal(request.has(id), true);
        }
      }
    });

    it('joins repeated fields and walks them in order', () => {
      parse(lines('GET / HTTP/1.1', 'Host: x', 'X-Forwarded-For: 1', 'X-Any: a', 'x-forwarded-for: 2', 'x-any: b'));
      const id = HEADER_ID['x-forwarded-for'];
      assert.equal(request.header(id), '1, 2');
      assert.equal(request.indexOf(id), 1);
      assert.equal(request.nextIndexOf(1), 3);
      assert.equal(request.nextIndexOf(3), -1);
      assert.equal(request.headerByName('x-any'), 'a, b');
      assert.equal(request.headerByName('x-none'), undefined);
      assert.equal(request.header(HEADER_ID.cookie), undefined);
      assert.equal(request.nameAt(4), 'x-any');
    });

    it('forgets the last head', () => {
      parse(lines('GET / HTTP/1.1', 'Host: x', 'Cookie: a', 'Content-Length: 3'));
      request.append('x-a', '1');
      parse(lines('GET / HTTP/1.1', 'Host: y'));
      assert.equal(request.has(HEADER_ID.cookie), false);
      assert.equal(request.contentLength, -1);
      assert.equal(rewritten(), 'GET / HTTP/1.1\r\nHost: y\r\n\r\n');
    });

    it('writes nothing after a head that was refused', () => {
      parse(lines('GET / HTTP/1.1', 'Host: x'));
      assert.ok(parse(lines('GET / HTTP/1.1')) < 0);
      assert.equal(codec.writeRequest(), 0);
    });

    it('copies an untouched head byte by byte', () => {
      const bytes = lines('GET /x HTTP/1.1', 'Host: x', 'X-Odd:   spaced   ', 'x-8bit: caf\xe9', 'X-Empty:');
      parse(bytes);
      assert.equal(rewritten(), bytes.toString('latin1'));
    });

    it('leaves out what is dropped, alone or in a row, first or last', () => {
      const fields = ['Host: x', 'A: 1', 'B: 2', 'C: 3', 'D: 4'];
      for (let mask = 0; mask < 32; mask += 1) {
        parse(lines('GET / HTTP/1.1', ...fields));
        fields.forEach((_, index) => {
          if ((mask >> index) & 1) request.drop(index);
        });
        const kept = fields.filter((_, index) => ((mask >> index) & 1) === 0);
        assert.equal(rewritten(), lines('GET / HTTP/1.1', ...kept).toString('latin1'));
      }
    });

    it('drops by id and by name, and takes a mark back', () => {
      parse(
        lines('GET / HTTP/1.1', 'Host: x', 'Connection: upgrade', 'Upgrade: websocket', 'Via: a', 'X-Y: 1', 'via: b'),
      );
      assert.notEqual(request.flags & HeadFlag.UPGRADE, 0);
      request.dropKnown(HEADER_ID.via);
      request.dropKnown(HEADER_ID.cookie);
      request.dropByName('x-y');
      request.keep(request.indexOf(HEADER_ID.upgrade));
      request.append('connection', 'upgrade');
      const expected = lines('GET / HTTP/1.1', 'Host: x', 'Upgrade: websocket', 'connection: upgrade');
      assert.equal(rewritten(), expected.toString('latin1'));
    });

    it('writes Host first and the new target when they are replaced', () => {
      parse(lines('GET /old HTTP/1.1', 'Accept: */*', 'Host: old'));
      request.replaceTarget('/new?x');
      request.replaceHost('new.example:8080');
      assert.equal(
        rewritten(),
        lines('GET /new?x HTTP/1.1', 'host: new.example:8080', 'Accept: */*').toString('latin1'),
      );
    });

    it('turns an absolute form into origin form with its own Host', () => {
      const forms: [string, string][] = [
        ['GET http://b:1/p?q HTTP/1.1', 'GET /p?q HTTP/1.1'],
        ['GET http://b:1 HTTP/1.1', 'GET / HTTP/1.1'],
        ['GET http://b:1?q HTTP/1.1', 'GET /?q HTTP/1.1'],
        ['OPTIONS http://b:1 HTTP/1.1', 'OPTIONS * HTTP/1.1'],
      ];
      for (const [received, written] of forms) {
        parse(lines(received, 'Host: a', 'X: y'));
        assert.equal(rewritten(), lines(written, 'host: b:1', 'X: y').toString('latin1'));
      }
    });

    it('writes HTTP/1.1 for HTTP/1.0 and skips the empty line in front', () => {
      parse(Buffer.concat([Buffer.from('\r\n'), lines('GET / HTTP/1.0', 'Connection: close', 'A: 1')]));
      request.replaceHost('x');
      assert.equal(rewritten(), lines('GET / HTTP/1.1', 'host: x', 'A: 1').toString('latin1'));
    });

    it('appends prepared lines before others', () => {
      const prepared = new PreparedLines(['x-forwarded-proto: http', 'via: 1.1 weir']);
      for (let round = 0; round < 3; round += 1) {
        parse(lines('GET / HTTP/1.1', 'Host: x'));
        request.append('x-a', String(round));
        request.appendLine('x-b: 1');
        request.appendLineBytes(Buffer.from('x-c: 2'));
        request.appendPrepared(prepared);
        const expected = ['Host: x', 'x-forwarded-proto: http', 'via: 1.1 weir', `x-a: ${round}`, 'x-b: 1', 'x-c: 2'];
        assert.equal(rewritten(), lines('GET / HTTP/1.1', ...expected).toString('latin1'));
      }
    });

    it('goes on when more lines are prepared than fit', () => {
      const many = Array.from({ length: 60 }, (_, index) => new PreparedLines([`x-${index}: ${'v'.repeat(1000)}`]));
      for (let round = 0; round < 3; round += 1) {
        for (let index = 0; index < many.length; index += 5) {
          parse(lines('GET / HTTP/1.1', 'Host: x'));
          const some = many.slice(index, index + 20);
          for (const prepared of some) request.appendPrepared(prepared);
          const added = rewritten().split('\r\n').slice(2, -2).sort();
          assert.deepEqual(added, some.map((prepared) => prepared.text.trimEnd()).sort());
        }
      }
    });

    it('rewrites a response', () => {
      const bytes = lines('HTTP/1.0 200', 'Server: x', 'Content-Length: 3', 'Connection: close');
      assert.equal(codec.parseResponse(bytes, 0, bytes.length, LIMITS, Method.GET), bytes.length);
      assert.equal(response.status, 200);
      response.dropKnown(HEADER_ID.server);
      response.append('server', 'weir');
      const written = codec.responseText(codec.writeResponse());
      assert.equal(written, lines('HTTP/1.1 200 ', 'Content-Length: 3', 'server: weir').toString('latin1'));
    });

    it('joins the first body bytes to a written response head', () => {
      const bytes = lines('HTTP/1.1 200 OK', 'Content-Length: 8');
      codec.parseResponse(bytes, 0, bytes.length, LIMITS, Method.GET);
      const length = codec.writeResponse();
      const body = Buffer.from('..b\u00f6dy\0\r\n..', 'latin1');
      const joined = codec.responseTextWithBody(length, body, 2, body.length - 2);
      assert.equal(joined, `${bytes.toString('latin1')}b\u00f6dy\0\r\n`);
    });

    it('keeps a request while a response is parsed and written', () => {
      parse(lines('GET /kept HTTP/1.1', 'Host: x'));
      request.append('a', 'b');
      const bytes = lines('HTTP/1.1 200 OK', 'Content-Length: 3');
      codec.parseResponse(bytes, 0, bytes.length, LIMITS, Method.GET);
      response.append('c', 'd');
      codec.writeResponse();
      assert.equal(rewritten(), lines('GET /kept HTTP/1.1', 'Host: x', 'a: b').toString('latin1'));
    });

    it('parses a response in the shared read buffer, wherever in it, and leaves the buffer as it was', () => {
      const bytes = lines('HTTP/1.1 204 No Content', 'X: y');
      for (const at of [0, 1, 15, codec.readBuffer.length - bytes.length]) {
        bytes.copy(codec.readBuffer, at);
        const end = at + bytes.length;
        assert.equal(codec.parseResponse(codec.readBuffer, at, end, LIMITS, Method.GET), bytes.length);
        assert.equal(response.header(HEADER_ID.via), undefined);
        assert.equal(codec.responseText(codec.writeResponse()), bytes.toString('latin1'));
        assert.deepEqual(codec.readBuffer.subarray(at, end), bytes);
      }
    });

    it('copies a written head in front of body bytes', () => {
      parse(lines('GET / HTTP/1.1', 'Host: x'));
      const target = Buffer.alloc(100, '.');
      const end = codec.copyRequest(codec.writeRequest(), target, 3);
      assert.equal(target.toString('latin1', 0, end + 1), '...GET / HTTP/1.1\r\nHost: x\r\n\r\n.');
    });

    it('parses at any offset of a larger chunk and leaves it as it was', () => {
      const head = lines('GET / HTTP/1.1', 'Host: x');
      const chunk = Buffer.concat([Buffer.from('before'), head, Buffer.alloc(9000, 'b')]);
      const before = Buffer.from(chunk);
      assert.equal(codec.parseRequest(chunk, 6, chunk.length, LIMITS), head.length);
      assert.deepEqual(chunk, before);
    });

    it('takes a head of 65,535 bytes and refuses one byte more, whatever the limit says', () => {
      const limits = { maxHeadBytes: 1 << 20, maxFields: 100 };
      const start = 'GET / HTTP/1.1\r\nHost: x\r\nX: ';
      for (const [size, ok] of [
        [HEAD_LIMIT_BYTES, true],
        [HEAD_LIMIT_BYTES + 1, false],
      ] as const) {
        const bytes = Buffer.from(`${start}${'v'.repeat(size - start.length - 4)}\r\n\r\n`);
        const result = codec.parseRequest(bytes, 0, bytes.length, limits);
        assert.equal(result, ok ? size : layout.ERROR_HEAD_TOO_LARGE);
        if (ok) assert.equal(rewritten(), bytes.toString('latin1'));
      }
    });

    it('takes 1,024 fields and refuses one more, whatever the limit says', () => {
      const limits = { maxHeadBytes: 65535, maxFields: 1 << 20 };
      const fields = Array.from({ length: 1024 }, (_, index) => (index === 0 ? 'Host: x' : `x-${index}: ${index}`));
      const bytes = lines('GET / HTTP/1.1', ...fields);
      assert.equal(codec.parseRequest(bytes, 0, bytes.length, limits), bytes.length);
      assert.equal(request.headerByName('x-1023'), '1023');
      const more = lines('GET / HTTP/1.1', ...fields, 'one: more');
      assert.equal(codec.parseRequest(more, 0, more.length, limits), layout.ERROR_TOO_MANY_FIELDS);
    });

    it('writes the largest edits and refuses larger ones', () => {
      const value = 'v'.repeat(layout.LINES_BYTES - 5);
      const target = `/${'t'.repeat(layout.NEW_TARGET_BYTES - 1)}`;
      parse(lines('GET / HTTP/1.1', 'Host: x'));
      request.append('a', value);
      request.replaceTarget(target);
      assert.equal(rewritten(), lines(`GET ${target} HTTP/1.1`, 'Host: x', `a: ${value}`).toString('latin1'));

      const tooLarge: (() => void)[] = [
        () => request.append('a', `${value}v`),
        () => request.replaceTarget(`${target}t`),
        () => request.replaceHost('h'.repeat(layout.NEW_HOST_BYTES + 1)),
        () => {
          for (let index = 0; index < 1000; index += 1) request.append('a', 'v'.repeat(100));
        },
      ];
      for (const edit of tooLarge) {
        parse(lines('GET / HTTP/1.1', 'Host: x'));
        edit();
        assert.equal(codecError(codec.writeRequest()).reason, 'rewritten_head_too_large');
        parse(lines('GET / HTTP/1.1', 'Host: x'));
        assert.equal(rewritten(), 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      }
    });

    it('lets no edit end its line', () => {
      const attacks: (() => void)[] = [
        () => request.append('a', 'b\r\nc: d'),
        () => request.append('a\r\nb', 'c'),
        () => request.appendLine('a: b\r\nc: d'),
        () => request.appendLineBytes(Buffer.from('a: b\r\nc: d')),
        () => request.append('a', `${'long '.repeat(20)}\r\nc: d`),
        () => request.append('a', 'b\n'),
        () => request.append('a', '\0'),
        // U+010D and U+010A lose their upper byte in latin1 and become CR and LF.
        () => request.append('a', 'b\u010d\u010ac: d'),
        () => request.replaceTarget('/ HTTP/1.1\r\nX: y'),
        () => request.replaceTarget('/a b'),
        () => request.replaceTarget('/\u0120'),
        () => request.replaceHost('x\r\nX: y'),
        () => request.replaceHost('a b'),
        () => request.replaceHost('a/b'),
      ];
      for (const attack of attacks) {
        parse(lines('GET / HTTP/1.1', 'Host: x'));
        attack();
        assert.equal(codecError(codec.writeRequest()).reason, 'rewritten_head_invalid');
      }
    });

    it('writes any latin1 value without control characters as it is', () => {
      const value = fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)) });
      fc.assert(
        fc.property(fc.array(value, { maxLength: 5 }), (values) => {
          parse(lines('GET / HTTP/1.1', 'Host: x'));
          for (const text of values) request.append('a', text);
          const isClean = values.every((text) => /^[\t\x20-\x7e\x80-\xff]*$/.test(text));
          const length = codec.writeRequest();
          assert.equal(length > 0, isClean);
          if (!isClean) return;
          const expected = lines('GET / HTTP/1.1', 'Host: x', ...values.map((text) => `a: ${text}`));
          assert.equal(codec.requestText(length), expected.toString('latin1'));
        }),
      );
    });

    it('reports underscores in names, and only there', () => {
      parse(lines('GET /a_b HTTP/1.1', 'Host: x', 'X-A: a_b', 'x_a: 1', 'X-A-Name-Longer-Than-16_: 1'));
      assert.notEqual(request.flags & HeadFlag.UNDERSCORE, 0);
      assert.deepEqual(
        [0, 1, 2, 3].map((index) => request.hasUnderscore(index)),
        [false, false, true, true],
      );
      parse(lines('GET /a_b HTTP/1.1', 'Host: x', 'X-A: a_b'));
      assert.equal(request.flags & HeadFlag.UNDERSCORE, 0);
    });

    it('tells the https scheme of an absolute form', () => {
      parse(lines('GET https://x/ HTTP/1.1', 'Host: x'));
      assert.notEqual(request.flags & HeadFlag.HTTPS, 0);
    });
  });
}

describe('prepared header lines', () => {
  it('refuse what is not exactly one header line', () => {
    for (const line of ['', 'a', 'a: b\r\nc: d', 'a b: c', ': a', 'a: \0', 'a: \u0100']) {
      assert.throws(
        () => new PreparedLines([line]),
        (error) => error instanceof WeirError && error.code === 'WEIR_HTTP1_HEADER_LINE',
      );
    }
  });
});

describe('chunk scanner', () => {
  it('passes data by arithmetic, not by looking at it', () => {
    const scanner = new ChunkScanner();
    const size = 0x7fffffff;
    assert.equal(scanner.scan(Buffer.from(`${size.toString(16)}\r\n`), 0, 10), 10);
    assert.equal(scanner.remainingInChunk, size);
    assert.equal(scanner.scan(Buffer.alloc(0), 5, 1_000_005), 1_000_005);
    assert.equal(scanner.remainingInChunk, size - 1_000_000);
  });

  it('names the spans and where the body ends within a buffer', () => {
    const scanner = new ChunkScanner();
    const bytes = Buffer.from('..2;x\r\nok\r\n0\r\nT: 1\r\n\r\nGET');
    const spans: [number, string][] = [];
    for (let at = 2; !scanner.isDone; ) {
      const end = scanner.next(bytes, at, bytes.length);
      spans.push([scanner.span, bytes.toString('latin1', at, end)]);
      at = end;
    }
    assert.deepEqual(spans, [
      [ChunkSpan.FRAMING, '2;x\r\n'],
      [ChunkSpan.DATA, 'ok'],
      [ChunkSpan.FRAMING, '\r\n0\r\n'],
      [ChunkSpan.TRAILERS, 'T: 1\r\n\r\n'],
    ]);
    assert.equal(scanner.scan(bytes, 22, 25), 22);
    scanner.reset();
    assert.equal(scanner.scan(bytes, 2, bytes.length), bytes.length - 3);
    assert.equal(scanner.isDone, true);
  });

  it('stays refused after an error until it is reset', () => {
    const scanner = new ChunkScanner();
    assert.ok(scanner.scan(Buffer.from('x'), 0, 1) < 0);
    assert.ok(scanner.scan(Buffer.from('0\r\n\r\n'), 0, 5) < 0);
    scanner.reset();
    assert.equal(scanner.scan(Buffer.from('0\r\n\r\n'), 0, 5), 5);
  });
});

describe('a request head that is read again as it was written', () => {
  const codec = new Http1Codec(compileHttp1());
  const wide = { ...LIMITS, maxHeadBytes: HEAD_LIMIT_BYTES };
  const parse = (head: Buffer): number => codec.parseRequest(head, 0, head.length, wide);

  it('has its edits among its fields', () => {
    assert.ok(parse(lines('GET / HTTP/1.1', 'Host: a', 'Cookie: one')) > 0);
    codec.request.dropKnown(HEADER_ID.cookie);
    codec.request.append('cookie', 'two');
    assert.ok(codec.reparseRequest(codec.writeRequest(), wide) > 0);
    assert.equal(codec.request.header(HEADER_ID.cookie), 'two');
  });

  it('is refused when the edits have made it too large, and no other head suffers', () => {
    const response = lines('HTTP/1.1 200 OK', 'Server: upstream', 'Content-Length: 0');
    assert.ok(codec.parseResponse(response, 0, response.length, wide, Method.GET) > 0);
    assert.ok(parse(lines('GET / HTTP/1.1', 'Host: a', `X-Large: ${'v'.repeat(HEAD_LIMIT_BYTES - 100)}`)) > 0);
    codec.request.append('x-more', 'v'.repeat(1000));
    assert.equal(codecError(codec.reparseRequest(codec.writeRequest(), wide)).reason, 'head_too_large');
    assert.equal(codec.response.header(HEADER_ID.server), 'upstream');
  });
});
