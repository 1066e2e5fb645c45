// Blocks of random fields by random representations, decoded as the twin meant them; heads encoded, decoded by the twin.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import * as http1 from '../../../assembly/layout/http1.ts';
import * as layout from '../../../assembly/layout/http2.ts';
import { buildOutput } from '../../../src/base/package-root.ts';
import { PreparedLines } from '../../../src/wasm/http1.ts';
import {
  BlockFlag,
  blockFault,
  compileHttp2,
  EncodeFlag,
  HTTP2_FAULTS,
  Http2Heads,
  isCompressionError,
  NEVER_INDEXED_SEPARATOR,
} from '../../../src/wasm/http2.ts';
import { BUILDS, LIMITS, TestHeads } from '../../support/http2-heads.ts';
import { type Choice, type Field, ReferenceDecoder, ReferenceEncoder } from '../../support/reference/hpack.ts';
import { readWasm } from '../../support/wasm-binary.ts';

const START: readonly Field[] = [
  [':method', 'GET'],
  [':scheme', 'http'],
  [':authority', 'a.example'],
  [':path', '/'],
];

const NAMES = [
  'a',
  'x-one',
  'x-two',
  'server',
  'cache-control',
  'accept-encoding',
  'user-agent',
  'x-request-id',
  'vary',
];
const VALUES = ['', 'b', 'gzip, deflate', 'no-cache', 'x'.repeat(300), 'y'.repeat(1500), 'caf\xe9', '\t~\x20{'];
const text = fc
  .string({ unit: fc.constantFrom(...'abcXYZ019 ;=/"<\xff\x80'), maxLength: 60 })
  .map((value) => value.trim());
const field = fc.tuple(
  fc.constantFrom(...NAMES),
  fc.oneof(
    fc.constantFrom(...VALUES).map((value) => value.trim()),
    text,
  ),
) as fc.Arbitrary<Field>;
const choice: fc.Arbitrary<Choice> = fc.record({
  form: fc.constantFrom('indexed', 'indexed', 'plain', 'never'),
  huffman: fc.boolean(),
  namesIndex: fc.boolean(),
});
const block = fc.record({
  resize: fc.option(fc.constantFrom(0, 33, 64, 200, 1000, 4096), { freq: 3 }),
  fields: fc.array(fc.tuple(field, choice), { maxLength: 20 }),
});

describe('the HTTP/2 modules', () => {
  for (const name of BUILDS) {
    it(`${name} imports its memory, owns no data and exports what the facade declares`, () => {
      const binary = readWasm(readFileSync(buildOutput(`wasm/${name}.wasm`)));
      assert.equal(binary.hasDataSection, false);
      assert.equal(binary.mutableGlobals, 0);
      assert.deepEqual(binary.imports, ['env.memory']);
      assert.deepEqual(
        { ...binary.exports },
        {
          layoutVersion: '() -> i32',
          initTable: '(i32, i32, i32, i32) -> ',
          moveTable: '(i32, i32, i32, i32) -> ',
          limitTable: '(i32, i32) -> ',
          setPeerLimit: '(i32, i32) -> ',
          decodeRequest: '(i32, i32, i32, i32, i32) -> i32',
          decodeResponse: '(i32, i32, i32, i32, i32, i32) -> i32',
          decodeTrailers: '(i32, i32, i32, i32) -> i32',
          decodePart: '(i32, i32, i32) -> i32',
          encodeRequest: '(i32, i32) -> i32',
          encodeResponse: '(i32, i32) -> i32',
          encodeLines: '(i32, i32, i32, i32) -> i32',
        },
      );
    });
  }

  it('the layout continues that of HTTP/1 and fits its pages', () => {
    assert.equal(layout.HTTP2_START, http1.MEMORY_PAGES * http1.PAGE_BYTES);
    assert.ok(layout.HUFFMAN_LENGTHS + 256 <= layout.BLOCK_IN);
    assert.ok(layout.HTTP2_AREAS_END <= layout.TABLES);
    assert.equal(layout.TABLES, layout.CODEC_PAGES * http1.PAGE_BYTES);
    assert.ok((layout.BLOCK_LIMIT_BYTES * 8) / 5 <= layout.SCRATCH_BYTES);
  });

  it('every fault has a name of its own', () => {
    assert.equal(new Set(HTTP2_FAULTS.map(blockFault)).size, HTTP2_FAULTS.length);
    assert.equal(blockFault(http1.ERROR_HOST), 'host_invalid');
  });

  it('the SIMD build is the one that runs here', () => assert.equal(compileHttp2().name, 'http2'));
});

for (const build of BUILDS) {
  describe(`header blocks, ${build}`, () => {
    it('any representation of a field is read as that field, block after block', () => {
      const test = new TestHeads(build);
      fc.assert(
        fc.property(fc.array(block, { minLength: 1, maxLength: 8 }), (blocks) => {
          const encoder = new ReferenceEncoder();
          const decoder = test.heads.createDecoder(4096);
          try {
            for (const { resize, fields } of blocks) {
              const start = { form: 'indexed', huffman: true, namesIndex: true } as const;
              const bytes = Buffer.from([
                ...(resize === null ? [] : encoder.sizeUpdate(resize)),
                ...START.flatMap((one) => encoder.field(one, start)),
                ...fields.flatMap(([one, how]) => encoder.field(one, how)),
              ]);
              const length = test.heads.decodeRequest(decoder, bytes, 0, bytes.length, LIMITS, 1);
              assert.ok(length > 0, `fault ${length}`);
              const { request } = test.codec;
              assert.deepEqual(request.entries(), [['host', 'a.example'], ...fields.map(([one]) => one)]);
              // The head as HTTP/1 would have brought it, byte for byte but for the mark of what is never indexed.
              const head = test.codec.requestText(test.codec.writeRequest());
              const lines = fields.map(([[name, value], { form }]) => {
                return `${name}${form === 'never' ? NEVER_INDEXED_SEPARATOR : ': '}${value}\r\n`;
              });
              assert.equal(head, `GET / HTTP/1.1\r\nhost: a.example\r\n${lines.join('')}\r\n`);
              assert.equal(head.length, length);
            }
          } finally {
            test.heads.release(decoder);
          }
        }),
        { numRuns: 150 },
      );
    });

    it('a head that was written is read back as it was, whatever the peer allows its table', () => {
      const test = new TestHeads(build);
      const { codec, heads } = test;
      const part = fc.record({
        tableSize: fc.option(fc.constantFrom(0, 40, 300, 4096, 65536), { freq: 3 }),
        huffman: fc.boolean(),
        fields: fc.array(field, { maxLength: 15 }),
        added: fc.array(field, { maxLength: 3 }),
      });
      fc.assert(
        fc.property(fc.array(part, { minLength: 1, maxLength: 8 }), (parts) => {
          const encoder = heads.createEncoder();
          const twin = new ReferenceDecoder();
          try {
            for (const { tableSize, huffman, fields, added } of parts) {
              if (tableSize !== null) heads.setPeerTableSize(encoder, tableSize);
              const lines = fields.map(([name, value]) => `${name.toUpperCase()}: ${value}\r\n`);
              const head = Buffer.from(`GET / HTTP/1.1\r\nHost: a.example\r\n${lines.join('')}\r\n`, 'latin1');
              assert.equal(codec.parseRequest(head, 0, head.length, LIMITS), head.length);
              for (const [name, value] of added) codec.request.append(name, value);
              const written = test.block(heads.encodeRequest(encoder, huffman ? EncodeFlag.HUFFMAN : 0));
              const read = twin.decode(written).map(([name, value]): Field => [name, value]);
              assert.deepEqual(read, [
                [':method', 'GET'],
                [':scheme', 'http'],
                [':path', '/'],
                [':authority', 'a.example'],
                ...fields,
                ...added,
              ]);
              assert.ok(tableSize === null || twin.tableMax <= Math.max(tableSize, 0));
            }
          } finally {
            heads.release(encoder);
          }
        }),
        { numRuns: 150 },
      );
    });
  });
}

describe('encoding', () => {
  const test = new TestHeads();
  const { codec, heads } = test;

  function encode(lines: readonly string[], flags = 0, edit?: () => void): string[] {
    const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
    assert.equal(codec.parseRequest(head, 0, head.length, LIMITS), head.length);
    edit?.();
    const written = test.block(heads.encodeRequest(heads.createEncoder(), flags));
    return new ReferenceDecoder().decode(written).map(([name, value]) => `${name}: ${value}`);
  }

  it('edits of target, host and fields show, and fields of the connection do not', () => {
    const prepared = new PreparedLines(['X-Prepared: yes', 'Connection: close']);
    const fields = encode(
      [
        'POST /old HTTP/1.1',
        'Host: old',
        'Connection: x-hop',
        'X-Hop: 1',
        'Keep-Alive: 5',
        'TE: trailers',
        'X-Forwarded-Proto: https',
        'A: b',
        'C: d',
      ],
      0,
      () => {
        codec.request.replaceTarget('/new?x');
        codec.request.replaceHost('new.example');
        codec.request.dropByName('c');
        codec.request.appendPrepared(prepared);
        codec.request.append('transfer-encoding', 'chunked');
      },
    );
    assert.deepEqual(fields, [
      ':method: POST',
      ':scheme: https',
      ':path: /new?x',
      ':authority: new.example',
      'te: trailers',
      'x-forwarded-proto: https',
      'a: b',
      'x-prepared: yes',
    ]);
  });

  it('absolute forms, CONNECT and other methods have the pseudo fields that belong to them', () => {
    const start = (line: string): string[] => encode([line, 'Host: h:1']);
    assert.deepEqual(start('GET http://b?q HTTP/1.1'), [
      ':method: GET',
      ':scheme: http',
      ':path: /?q',
      ':authority: b',
    ]);
    assert.deepEqual(start('OPTIONS http://b HTTP/1.1').slice(0, 3), [':method: OPTIONS', ':scheme: http', ':path: *']);
    assert.deepEqual(start('CONNECT h:1 HTTP/1.1'), [':method: CONNECT', ':authority: h:1']);
    assert.deepEqual(start('BREW /pot HTTP/1.1')[0], ':method: BREW');
  });

  it(':scheme is what x-forwarded-proto says, received or added, if there is one', () => {
    const scheme = (lines: readonly string[], edit?: () => void): string =>
      encode(['GET / HTTP/1.1', 'Host: h', ...lines], 0, edit).find((field) => field.startsWith(':scheme'))!;
    const https = 'X-Forwarded-Proto: https';
    assert.equal(scheme([https]), ':scheme: https');
    assert.equal(scheme([https, https]), ':scheme: http');
    assert.equal(scheme(['X-Forwarded-Proto: http']), ':scheme: http');
    assert.equal(scheme(['X-Forwarded-Proto: httpx']), ':scheme: http');
    assert.equal(scheme(['X-Forwarded-Proto: https2']), ':scheme: http');
    assert.equal(
      scheme([], () => codec.request.append('x-forwarded-proto', 'https')),
      ':scheme: https',
    );
    assert.equal(
      scheme([https], () => codec.request.removeField('x-forwarded-proto')),
      ':scheme: http',
    );
    const prepared = new PreparedLines([https]);
    assert.equal(
      scheme([], () => codec.request.appendPrepared(prepared)),
      ':scheme: https',
    );
    assert.deepEqual(encode(['CONNECT h:1 HTTP/1.1', 'Host: h:1', https]), [
      ':method: CONNECT',
      ':authority: h:1',
      'x-forwarded-proto: https',
    ]);
  });

  it('an upgrade goes out as extended CONNECT where the peer takes one', () => {
    const lines = ['GET /chat HTTP/1.1', 'Host: h', 'Connection: upgrade', 'Upgrade: websocket'];
    assert.deepEqual(encode(lines, EncodeFlag.CONNECT_PROTOCOL), [
      ':method: CONNECT',
      ':protocol: websocket',
      ':scheme: http',
      ':path: /chat',
      ':authority: h',
    ]);
    const answer = Buffer.from('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n');
    assert.ok(codec.parseResponse(answer, 0, answer.length, LIMITS, 1) > 0);
    const block = test.block(heads.encodeResponse(heads.createEncoder(), EncodeFlag.CONNECT_PROTOCOL));
    assert.deepEqual(new ReferenceDecoder().decode(block), [[':status', '200', 'index']]);
  });

  it('a field enters the table when it comes twice, and goes by its index from then on', () => {
    const twin = new ReferenceDecoder();
    const fresh = heads.createEncoder();
    const forms = [1, 2, 3, 4].map(() => {
      const head = Buffer.from('GET / HTTP/1.1\r\nHost: h\r\nX-Same: same\r\n\r\n');
      codec.parseRequest(head, 0, head.length, LIMITS);
      return twin
        .decode(test.block(heads.encodeRequest(fresh, 0)))
        .map(([, , form]) => form)
        .join();
    });
    assert.deepEqual(forms, [
      'index,index,index,plain,plain',
      'index,index,index,indexed,indexed',
      'index,index,index,index,index',
      'index,index,index,index,index',
    ]);
  });

  it('credentials are never indexed, and what serves one message is not', () => {
    const encoder = heads.createEncoder();
    const twin = new ReferenceDecoder();
    const head = Buffer.from(
      'GET /x HTTP/1.1\r\nHost: h\r\nAuthorization: Basic x\r\nCookie: c\r\nIf-None-Match: "e"\r\nContent-Length: 5\r\n\r\n',
    );
    for (let round = 0; round < 4; round += 1) {
      codec.parseRequest(head, 0, head.length, LIMITS);
      const fields = twin.decode(test.block(heads.encodeRequest(encoder, EncodeFlag.HUFFMAN)));
      const forms = Object.fromEntries(fields.map(([name, , form]) => [name, form]));
      assert.equal(forms.authorization, 'never');
      assert.equal(forms.cookie, 'never');
      assert.equal(forms[':path'], 'never');
      assert.equal(forms['if-none-match'], 'plain');
      assert.equal(forms['content-length'], 'plain');
    }
  });

  it('lines become trailers, or a head with their status', () => {
    const encoder = heads.createEncoder();
    const read = (lines: string, status: number): string[] =>
      new ReferenceDecoder()
        .decode(test.block(heads.encodeLines(encoder, lines, status, 0)))
        .map(([name, value]) => `${name}=${value}`);
    assert.deepEqual(read('Grpc-Status: 0\r\nGrpc-Message:  \r\n', 0), ['grpc-status=0', 'grpc-message=']);
    assert.deepEqual(read('Content-Length: 0\r\nConnection: close\r\n', 503), [':status=503', 'content-length=0']);
    for (const status of [200, 204, 206, 304, 400, 404, 500]) assert.deepEqual(read('', status), [`:status=${status}`]);
  });

  it('an edit that could break out of its line is refused, as HTTP/1 does', () => {
    const head = Buffer.from('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
    const encoder = heads.createEncoder();
    codec.parseRequest(head, 0, head.length, LIMITS);
    codec.request.append('a', 'b\r\nc: d');
    assert.equal(blockFault(heads.encodeRequest(encoder, 0)), 'rewritten_head_invalid');
    codec.request.append('a', 'x'.repeat(40_000));
    assert.equal(blockFault(heads.encodeRequest(encoder, 0)), 'rewritten_head_too_large');
    assert.ok(heads.encodeRequest(encoder, 0) > 0);
  });
});

describe('tables', () => {
  it('blocks of connections that have ended serve the next ones', () => {
    const { heads, codec } = new TestHeads();
    const before = codec.memory.memory.buffer.byteLength;
    for (let connection = 0; connection < 10_000; connection += 1) {
      const tables = [heads.createDecoder(4096), heads.createEncoder()];
      for (const table of tables) heads.release(table);
    }
    assert.equal(heads.tableBytes, 0);
    assert.ok(codec.memory.memory.buffer.byteLength - before <= 2 ** 20);
    assert.throws(() => heads.release(64), RangeError);
  });

  it('both tables of a connection that has said little take at most 2 KiB, full ones less than 16', () => {
    const test = new TestHeads();
    const { codec, heads } = test;
    const decoder = heads.createDecoder(4096);
    const encoder = heads.createEncoder();
    assert.ok(heads.tableBytes <= 2048, `${heads.tableBytes} bytes`);
    for (let request = 0; request < 500; request += 1) {
      const head = Buffer.from(`GET / HTTP/1.1\r\nhost: a.example\r\nx: ${request >> 1}\r\n\r\n`);
      codec.parseRequest(head, 0, head.length, LIMITS);
      const block = test.block(heads.encodeRequest(encoder, 0));
      assert.ok(heads.decodeRequest(decoder, block, 0, block.length, LIMITS, BlockFlag.END_STREAM) > 0);
      assert.ok(test.requestLines().includes(`x: ${request >> 1}`));
    }
    assert.ok(heads.tableBytes > 4096, `${heads.tableBytes} bytes`);
    assert.ok(heads.tableBytes < 16384, `${heads.tableBytes} bytes`);
    heads.release(decoder);
    heads.release(encoder);
    assert.equal(heads.tableBytes, 0);
  });

  it('that find no memory to grow end their connection', () => {
    const test = new TestHeads();
    const { codec, heads } = test;
    const writer = new ReferenceEncoder();
    const decoder = heads.createDecoder(4096);
    codec.memory.grow = () => false;
    let codes = '';
    for (let request = 0; request < 100 && !codes.includes('broken'); request += 1) {
      const field: Field = ['x', 'y'.repeat(200) + request];
      const plain = START.flatMap((start) => writer.field(start, { form: 'plain', huffman: false, namesIndex: false }));
      const kept = writer.field(field, { form: 'indexed', huffman: false, namesIndex: false });
      const block = Buffer.from([...plain, ...kept]);
      const code = heads.decodeRequest(decoder, block, 0, block.length, LIMITS, BlockFlag.END_STREAM);
      codes += isCompressionError(code) ? 'broken' : '.';
      // What others take is not there any more.
      while (heads.createDecoder(4096) !== 0);
    }
    assert.match(codes, /^\.*broken$/);
    heads.release(decoder);
  });

  it('a head is read, changed and written as before when the memory has grown under it', () => {
    const test = new TestHeads();
    const { codec, heads } = test;
    const { memory } = codec.memory;
    const { byteLength } = memory.buffer;
    const bytes = Buffer.from('GET /grown HTTP/1.1\r\nhost: a.example\r\nx-old: 1\r\n\r\n');
    codec.parseRequest(bytes, 0, bytes.length, LIMITS);
    codec.request.append('x-before', '1');
    while (memory.buffer.byteLength === byteLength) assert.notEqual(heads.createDecoder(4096), 0);
    codec.request.append('x-behind', '2');
    assert.equal(codec.request.path(), '/grown');
    assert.equal(
      codec.requestText(codec.writeRequest()),
      'GET /grown HTTP/1.1\r\nhost: a.example\r\nx-old: 1\r\nx-before: 1\r\nx-behind: 2\r\n\r\n',
    );
    assert.deepEqual(test.request(START), ['GET /', 'host: a.example']);
    assert.ok(new Http2Heads(compileHttp2(), codec).tableBytes === 0);
  });
});
