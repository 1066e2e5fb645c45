// Bodies that the decompressor filter makes readable, through the whole proxy: which it takes, what the heads say, what becomes
// of those that are broken or grow too much, and what is counted.

import assert from 'node:assert/strict';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import * as zlib from 'node:zlib';
import fc from 'fast-check';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo } from '../support/embedded-filters.ts';
import { untilEqual } from '../support/eventually.ts';
import { type Answer, type LibraryKind, libraryOf, readAnswer } from '../support/recoded-bodies.ts';
import { WireClient } from '../support/wire.ts';

const TYPE = 'decompressor.v3.Decompressor';
const TEXT = Array.from({ length: 400 }, (_, line) => `line ${line} of a text that repeats itself\n`).join('');
const ZEROS = Buffer.alloc(8 * 1024 * 1024);
const DICTIONARY = 'of a text that repeats itself, known to both sides beforehand '.repeat(8);
const MODES = {
  gzip: zlib.gzipSync,
  br: zlib.brotliCompressSync,
  zstd: zlib.zstdCompressSync,
} as const;
type Coding = keyof typeof MODES;
const KINDS: Readonly<Record<Coding, LibraryKind>> = { gzip: 'gzip', br: 'brotli', zstd: 'zstd' };

function decompressor(kind: LibraryKind, fields: JsonObject = {}, library: JsonObject = {}): JsonObject {
  return filterOf(TYPE, { decompressor_library: libraryOf('decompressor', kind, library), ...fields });
}

interface Asked {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: Buffer;
}

interface Reached {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

describe('the decompressor filter', () => {
  let upstream: Server;
  let proxy: Awaited<ReturnType<typeof createProxy>>;
  const clients = new Map<string, WireClient>();
  /** What the upstream answers next, and what it was asked last. */
  let answer: { status: number; headers: Record<string, string>; pieces: readonly Buffer[] } = {
    status: 200,
    headers: {},
    pieces: [],
  };
  let reached: Reached | null = null;

  before(async () => {
    upstream = createServer((request, response) => {
      const pieces: Buffer[] = [];
      request.on('data', (piece: Buffer) => pieces.push(piece));
      request.on('error', () => {});
      request.on('end', () => {
        reached = { headers: request.headers, body: Buffer.concat(pieces) };
        response.writeHead(answer.status, answer.headers);
        for (const piece of answer.pieces) response.write(piece);
        response.end();
      });
    });
    upstream.listen(0, '127.0.0.1');
    await new Promise((resolve) => upstream.once('listening', resolve));
    const off = { common_config: { enabled: { default_value: false, runtime_key: 'none' } } };
    const listener = (name: string, filters: JsonObject[]): JsonObject =>
      filteredListener(filters, [routeTo('/')], { manager: { stat_prefix: name }, listener: { name } });
    const listeners = [
      listener('gzip', [decompressor('gzip')]),
      listener('br', [decompressor('brotli')]),
      listener('zstd', [decompressor('zstd')]),
      listener('all', [decompressor('zstd'), decompressor('brotli'), decompressor('gzip')]),
      listener('narrow', [decompressor('gzip', {}, { max_inflate_ratio: 3, window_bits: 9 })]),
      listener('responses', [decompressor('gzip', { request_direction_config: off })]),
      listener('requests', [decompressor('gzip', { response_direction_config: off })]),
      listener('ignoring', [
        decompressor('gzip', {
          request_direction_config: { advertise_accept_encoding: false },
          response_direction_config: { common_config: { ignore_no_transform_header: true } },
        }),
      ]),
      listener('buffered', [decompressor('gzip'), filterOf('buffer.v3.Buffer', { max_request_bytes: TEXT.length })]),
      listener('dictionary', [decompressor('zstd', {}, { dictionaries: [{ inline_string: DICTIONARY }] })]),
    ];
    const { port } = upstream.address() as AddressInfo;
    proxy = await createProxy(bootstrapOf(listeners, [clusterAt('web', port)], { stats_flush_on_admin: true }));
  });

  after(async () => {
    for (const client of clients.values()) client.close();
    await proxy?.close();
    upstream?.closeAllConnections();
    upstream?.close();
  });

  function send(client: WireClient, { method = 'GET', headers = {}, body = Buffer.alloc(0) }: Asked): void {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const length = method === 'POST' && !('transfer-encoding' in headers) ? `content-length: ${body.length}\r\n` : '';
    client.write(`${method} / HTTP/1.1\r\nhost: a\r\n${lines.join('')}${length}\r\n`);
    if (body.length > 0) client.write(body);
  }

  async function ask(asked: Asked = {}, listener = 'gzip'): Promise<Answer> {
    const client = clients.get(listener) ?? new WireClient(proxy.listeners.get(listener)!.port);
    send(client, asked);
    const answered = await readAnswer(client, asked.method !== 'HEAD');
    if (answered.headers.connection === 'close') {
      client.close();
      clients.delete(listener);
    } else clients.set(listener, client);
    return answered;
  }

  function answerWith(coding: string, bytes: Buffer, headers: Record<string, string> = {}, status = 200): void {
    const length = { 'content-length': String(bytes.length), 'content-encoding': coding };
    answer = { status, headers: { 'content-type': 'text/plain', ...length, ...headers }, pieces: [bytes] };
  }

  const count = (name: string, listener = 'gzip'): number =>
    proxy.stats.value(`http.${listener}.decompressor.${name}`) ?? -1;

  for (const coding of ['gzip', 'br', 'zstd'] as const) {
    it(`decompresses responses and requests in ${coding}`, async () => {
      const bytes = MODES[coding](TEXT);
      answerWith(coding, bytes);
      const { headers, body } = await ask(
        { method: 'POST', headers: { 'content-encoding': coding }, body: bytes },
        coding,
      );
      assert.deepEqual([headers['content-encoding'], body.toString()], [undefined, TEXT]);
      assert.equal(reached!.headers['content-encoding'], undefined);
      assert.equal(reached!.body.toString(), TEXT);
      for (const direction of ['request', 'response']) {
        const prefix = `${KINDS[coding]}.${KINDS[coding]}.${direction}.`;
        const names = ['decompressed', 'not_decompressed', 'total_compressed_bytes', 'total_uncompressed_bytes'];
        assert.deepEqual(
          names.map((name) => count(prefix + name, coding)),
          [1, 0, bytes.length, TEXT.length],
        );
      }
    });

    it(`refuses what is no ${coding}, is cut short, or grows too much, and goes on with others`, async () => {
      const whole = MODES[coding](TEXT);
      const headers = { 'content-encoding': coding };
      const bodies = [Buffer.from('this is nothing of that kind'), whole.subarray(0, -5), MODES[coding](ZEROS)];
      // Where nobody would look for it.
      bodies.push(Buffer.concat([whole, Buffer.from('and something else')]), Buffer.concat([whole, Buffer.from('x')]));
      for (const body of bodies) {
        assert.equal((await ask({ method: 'POST', headers, body }, coding)).status, 400);
      }
      answer = { status: 200, headers: {}, pieces: [Buffer.from('ok')] };
      assert.equal((await ask({ method: 'POST', headers, body: whole }, coding)).status, 200);
      assert.equal(reached!.body.toString(), TEXT);
      const failures = { gzip: 'zlib_data_error', br: 'brotli_error', zstd: 'zstd_generic_error' }[coding];
      assert.ok(count(`${KINDS[coding]}.${KINDS[coding]}.decompressor_library.${failures}`, coding) > 0);
    });
  }

  it('reads several bodies in one where the encoding has them, and padding behind gzip', async () => {
    answer = { status: 200, headers: {}, pieces: [] };
    const bodies: [Coding, Buffer][] = [
      ['gzip', Buffer.concat([zlib.gzipSync('one'), zlib.gzipSync(''), zlib.gzipSync('two')])],
      ['gzip', Buffer.concat([zlib.gzipSync('onetwo'), Buffer.alloc(512)])],
      ['zstd', Buffer.concat([zlib.zstdCompressSync('one'), zlib.zstdCompressSync('two')])],
    ];
    for (const [coding, body] of bodies) {
      const { status } = await ask({ method: 'POST', headers: { 'content-encoding': coding }, body }, coding);
      assert.deepEqual([status, reached!.body.toString()], [200, 'onetwo'], coding);
    }
  });

  it('answers for an upstream whose response is broken, or breaks off what has begun', async () => {
    answerWith('gzip', Buffer.from('this is no gzip'));
    const { status } = await ask();
    assert.equal(status, 502);
    const bytes = zlib.gzipSync(TEXT);
    // The head goes first, as there is no length to wait for.
    answer = { status: 200, headers: { 'content-encoding': 'gzip' }, pieces: [bytes.subarray(0, -8)] };
    const client = new WireClient(proxy.listeners.get('gzip')!.port);
    send(client, {});
    const text = await client.rest();
    assert.match(text, /^HTTP\/1.1 200/);
    assert.doesNotMatch(text, /\r\n0\r\n\r\n$/);
    client.close();
    answerWith('gzip', zlib.gzipSync(ZEROS));
    const bomb = new WireClient(proxy.listeners.get('gzip')!.port);
    send(bomb, {});
    assert.ok((await bomb.rest()).length < ZEROS.length / 2);
    bomb.close();
    assert.equal(count('gzip.gzip.decompressor_library.zlib_buf_error') > 0, true);
  });

  it('lets bodies grow as far as it is told', async () => {
    const narrow = (text: string): Buffer => zlib.gzipSync(text, { windowBits: 9 });
    answerWith('gzip', narrow('abcdefghijklmnopqrstuvwxyz'));
    assert.equal((await ask({}, 'narrow')).body.toString(), 'abcdefghijklmnopqrstuvwxyz');
    answerWith('gzip', narrow('x'.repeat(200)));
    assert.equal((await ask({}, 'narrow')).status, 502);
    // Where nothing is said, a short body may.
    answerWith('gzip', zlib.gzipSync('x'.repeat(60_000)));
    assert.equal((await ask()).body.length, 60_000);
    // A window that is larger than configured.
    answerWith('gzip', zlib.gzipSync(TEXT.slice(0, 600), { windowBits: 15 }));
    assert.equal((await ask({}, 'narrow')).status, 502);
  });

  it('has no more memory taken than eight MiB by what a frame of zstd asks for', async () => {
    const framed = (windowBits: number): Buffer =>
      zlib.zstdCompressSync(TEXT, { params: { [zlib.constants.ZSTD_c_windowLog]: windowBits } });
    const streamed = (windowBits: number): Promise<Buffer> =>
      new Promise((resolve) => {
        const stream = zlib.createZstdCompress({ params: { [zlib.constants.ZSTD_c_windowLog]: windowBits } });
        const pieces: Buffer[] = [];
        stream.on('data', (piece: Buffer) => pieces.push(piece)).on('end', () => resolve(Buffer.concat(pieces)));
        stream.end(TEXT);
      });
    assert.ok(framed(23).length > 0);
    const headers = { 'content-encoding': 'zstd' };
    assert.equal((await ask({ method: 'POST', headers, body: await streamed(23) }, 'zstd')).status, 200);
    assert.equal((await ask({ method: 'POST', headers, body: await streamed(24) }, 'zstd')).status, 400);
  });

  it('reads frames of zstd by the dictionaries that it has', async () => {
    const dictionary = Buffer.from(DICTIONARY);
    answerWith('zstd', zlib.zstdCompressSync(TEXT, { dictionary }));
    assert.equal((await ask({}, 'dictionary')).body.toString(), TEXT);
    answerWith('zstd', zlib.zstdCompressSync('short'));
    assert.equal((await ask({}, 'dictionary')).body.toString(), 'short');
    answerWith('zstd', zlib.zstdCompressSync('repeats itself, known to both sides', { dictionary }));
    assert.equal((await ask({}, 'zstd')).status, 502);
  });

  it('takes off the encoding that was put on last, and leaves the others', async () => {
    const twice = zlib.brotliCompressSync(zlib.gzipSync(TEXT));
    answerWith('gzip, br', twice);
    const once = await ask({}, 'br');
    assert.deepEqual([once.headers['content-encoding'], zlib.gunzipSync(once.body).toString()], ['gzip', TEXT]);
    const left = await ask();
    assert.deepEqual([left.headers['content-encoding'], left.body.length], ['gzip, br', twice.length]);
    // Each in its turn: the last of the chain sees responses first.
    answerWith('br, gzip', zlib.gzipSync(zlib.brotliCompressSync(TEXT)));
    const both = await ask({}, 'all');
    assert.deepEqual([both.headers['content-encoding'], both.body.toString()], [undefined, TEXT]);
    answerWith('X-GZip', zlib.gzipSync(TEXT));
    assert.equal((await ask()).body.toString(), TEXT);
  });

  it('leaves alone what is not compressed, a part, not to be changed, or without a body', async () => {
    answer = { status: 200, headers: { 'content-length': '2' }, pieces: [Buffer.from('ok')] };
    assert.equal((await ask()).headers['content-length'], '2');
    const bytes = zlib.gzipSync(TEXT);
    const isLeft = async (asked: Asked = {}): Promise<boolean> => {
      const { headers } = await ask(asked);
      return headers['content-encoding'] === 'gzip' && headers['content-length'] === String(bytes.length);
    };
    answerWith('gzip', bytes, { 'cache-control': 'max-age=1, no-transform' });
    assert.ok(await isLeft());
    assert.equal((await ask({}, 'ignoring')).body.toString(), TEXT);
    answerWith('gzip', bytes, { 'content-range': `bytes 0-${bytes.length - 1}/10000` }, 206);
    assert.ok(await isLeft());
    answerWith('gzip', bytes);
    assert.ok(await isLeft({ method: 'HEAD' }));
    answer = { status: 200, headers: { 'content-encoding': 'gzip' }, pieces: [] };
    assert.equal((await ask()).body.length, 0);
  });

  it('lets requests that are not compressed keep their framing', async () => {
    answer = { status: 200, headers: {}, pieces: [] };
    const client = new WireClient(proxy.listeners.get('gzip')!.port);
    client.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\nexpect: 100-continue\r\n\r\n');
    await client.until('100 Continue\r\n\r\n');
    client.write('hello');
    assert.equal((await readAnswer(client)).status, 200);
    assert.deepEqual([reached!.headers['content-length'], reached!.body.toString()], ['5', 'hello']);
    client.close();
  });

  it('works in one direction where the other is off', async () => {
    const bytes = zlib.gzipSync(TEXT);
    const asked = { method: 'POST', headers: { 'content-encoding': 'gzip' }, body: bytes };
    answerWith('gzip', bytes);
    assert.equal((await ask(asked, 'responses')).body.toString(), TEXT);
    assert.deepEqual([reached!.headers['content-encoding'], reached!.body.length], ['gzip', bytes.length]);
    assert.equal((await ask(asked, 'requests')).headers['content-encoding'], 'gzip');
    assert.equal(reached!.body.toString(), TEXT);
  });

  it('asks upstreams for its encoding, unless they are asked already, or it is not to', async () => {
    answer = { status: 200, headers: {}, pieces: [] };
    const heard = async (accepted: string | null, listener = 'gzip'): Promise<string | undefined> => {
      await ask({ headers: accepted === null ? {} : { 'accept-encoding': accepted } }, listener);
      return reached!.headers['accept-encoding'];
    };
    assert.equal(await heard(null), 'gzip');
    assert.equal(await heard('br;q=0.5'), 'br;q=0.5, gzip');
    assert.equal(await heard('GZIP, br'), 'GZIP, br');
    assert.equal(await heard('gzip;q=0, br'), 'br, gzip');
    assert.equal(await heard('br', 'ignoring'), 'br');
    assert.equal(await heard('br', 'requests'), 'br');
  });

  it('weakens validators of what it changes', async () => {
    answerWith('gzip', zlib.gzipSync(TEXT), { etag: '"abc"', 'accept-ranges': 'bytes' });
    const { headers } = await ask();
    assert.deepEqual([headers.etag, headers['accept-ranges']], ['W/"abc"', undefined]);
    answerWith('gzip', zlib.gzipSync(TEXT), { etag: 'W/"abc"' });
    assert.equal((await ask()).headers.etag, 'W/"abc"');
  });

  it('gives a filter behind it the body as it is then, with its limit and its length', async () => {
    answer = { status: 200, headers: {}, pieces: [] };
    const headers = { 'content-encoding': 'gzip' };
    assert.equal((await ask({ method: 'POST', headers, body: zlib.gzipSync(TEXT) }, 'buffered')).status, 200);
    assert.deepEqual([reached!.headers['content-length'], reached!.body.toString()], [String(TEXT.length), TEXT]);
    const longer = zlib.gzipSync(`${TEXT}!`);
    assert.equal((await ask({ method: 'POST', headers, body: longer }, 'buffered')).status, 413);
  });

  for (const coding of ['gzip', 'br', 'zstd'] as const) {
    it(`hands on the same whatever pieces a body in ${coding} comes in`, async () => {
      answer = { status: 200, headers: {}, pieces: [] };
      const body = fc.tuple(fc.string({ maxLength: 2000 }), fc.integer({ min: 1, max: 40 }));
      const cuts = fc.array(fc.nat({ max: 500 }), { maxLength: 6 });
      await fc.assert(
        fc.asyncProperty(body, cuts, async ([text, times], sizes) => {
          const whole = Buffer.from(text.repeat(times));
          const bytes = MODES[coding](whole);
          const client = new WireClient(proxy.listeners.get(coding)!.port);
          client.write(
            `POST / HTTP/1.1\r\nhost: a\r\ncontent-encoding: ${coding}\r\ntransfer-encoding: chunked\r\n\r\n`,
          );
          let at = 0;
          for (const size of [...sizes, bytes.length]) {
            const piece = bytes.subarray(at, at + size);
            at += size;
            if (piece.length === 0) continue;
            client.write(Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]));
            await new Promise((resolve) => setImmediate(resolve));
          }
          client.write('0\r\n\r\n');
          assert.equal((await readAnswer(client)).status, 200);
          assert.ok(reached!.body.equals(whole));
          client.close();
        }),
        { numRuns: 25 },
      );
    });
  }

  it('lets go of a stream whose client leaves in the middle of it', async () => {
    const client = new WireClient(proxy.listeners.get('gzip')!.port);
    client.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-encoding: gzip\r\ncontent-length: 100000\r\n\r\n');
    client.write(zlib.gzipSync(TEXT).subarray(0, 200));
    client.close();
    await untilEqual(0, () => proxy.stats.value('http.gzip.downstream_rq_active') ?? 0, 'requests that are active');
    answer = { status: 200, headers: {}, pieces: [] };
    assert.equal((await ask()).status, 200);
  });
});
