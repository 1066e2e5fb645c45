// Compressed bodies among real clients: curl, HTTP/2, slow readers, upgrades; requests that one proxy compresses and another
// decompresses; and the same bytes at the end, whatever pieces they came in.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { createGunzip, gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import type { JsonObject } from '../support/bootstrap.ts';
import { runProgram } from '../support/child-process.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo } from '../support/embedded-filters.ts';
import { untilEqual } from '../support/eventually.ts';
import { Http2Client } from '../support/http2-clients.ts';
import { decoded, type LibraryKind, libraryOf, readAnswer } from '../support/recoded-bodies.ts';
import { WireClient } from '../support/wire.ts';

const MIB = 1024 * 1024;
const KINDS: readonly LibraryKind[] = ['gzip', 'brotli', 'zstd'];
const TEXT = Array.from({ length: 400 }, (_, line) => `line ${line} of a text that repeats itself\n`).join('');
const ON: JsonObject = { response_direction_config: {} };

function compressor(kind: LibraryKind, fields: JsonObject = ON): JsonObject {
  return filterOf('compressor.v3.Compressor', { compressor_library: libraryOf('compressor', kind), ...fields });
}

function decompressor(kind: LibraryKind): JsonObject {
  return filterOf('decompressor.v3.Decompressor', { decompressor_library: libraryOf('decompressor', kind) });
}

describe('compressed bodies', () => {
  let upstream: Server;
  let proxy: Awaited<ReturnType<typeof createProxy>>;
  /** In front of it, for requests. */
  let nearer: Awaited<ReturnType<typeof createProxy>>;
  /** What the upstream does next, but for upgrades. */
  let handle: (request: IncomingMessage, response: ServerResponse) => void = () => {};
  const portOf = (listener: string): number => proxy.listeners.get(listener)!.port;

  before(async () => {
    upstream = createServer((request, response) => handle(request, response));
    upstream.on('upgrade', (_request, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n');
      socket.on('error', () => {});
      socket.pipe(socket);
    });
    upstream.listen(0, '127.0.0.1');
    await new Promise((resolve) => upstream.once('listening', resolve));
    const { port } = upstream.address() as AddressInfo;
    const listener = (name: string, cluster: string, filters: JsonObject[], fields: JsonObject = {}): JsonObject =>
      filteredListener(filters, [routeTo('/', {}, { route: { cluster } })], {
        manager: { stat_prefix: name, upgrade_configs: [{ upgrade_type: 'websocket' }] },
        listener: { name, ...fields },
      });
    const requests = { request_direction_config: { common_config: { content_type: ['text/plain'] } } };
    const far = KINDS.map((kind) => listener(`far-${kind}`, 'web', [decompressor(kind)]));
    const typed = (kind: LibraryKind, type: string): JsonObject =>
      compressor(kind, {
        response_direction_config: { common_config: { content_type: [type] }, status_header_enabled: true },
      });
    proxy = await createProxy(
      bootstrapOf(
        [
          listener(
            'all',
            'web',
            KINDS.map((kind) => compressor(kind)),
          ),
          listener('small', 'web', [compressor('gzip')], { per_connection_buffer_limit_bytes: 65_536 }),
          listener('typed', 'web', [typed('gzip', 'text/html'), typed('brotli', 'text/plain')]),
          listener('both', 'web', [compressor('gzip'), decompressor('gzip')]),
          listener('untyped', 'web', [compressor('gzip', { ...ON, ...requests }), decompressor('gzip')]),
          ...far,
        ],
        [clusterAt('web', port)],
        { stats_flush_on_admin: true },
      ),
    );
    // Those that compress requests for them, now that their ports are known.
    nearer = await createProxy(
      bootstrapOf(
        KINDS.map((kind) => listener(kind, kind, [compressor(kind, { ...ON, ...requests })])),
        KINDS.map((kind) => clusterAt(kind, portOf(`far-${kind}`))),
        { stats_flush_on_admin: true },
      ),
    );
  });

  after(async () => {
    await nearer?.close();
    await proxy?.close();
    upstream?.closeAllConnections();
    upstream?.close();
  });

  const answerText = (_request: IncomingMessage, response: ServerResponse): void => {
    response.writeHead(200, { 'content-type': 'text/plain', 'content-length': String(TEXT.length) }).end(TEXT);
  };

  for (const [kind, encoding] of [
    ['gzip', 'gzip'],
    ['brotli', 'br'],
  ] as const) {
    it(`are read by curl, ${kind}`, async (t) => {
      handle = answerText;
      const url = `http://127.0.0.1:${portOf('all')}/`;
      const features = await runProgram('curl', ['--version']);
      if (kind === 'brotli' && !features.stdout.includes('brotli')) return t.skip('this curl has no brotli');
      const flags = ['-s', '--compressed', '-D', '-', '-H', `accept-encoding: ${encoding}`];
      const { stdout } = await runProgram('curl', [...flags, url]);
      assert.match(stdout, new RegExp(`content-encoding: ${encoding}`));
      assert.ok(stdout.endsWith(TEXT));
    });
  }

  it('go over HTTP/2 with their length, and to a HEAD without', async (t) => {
    handle = answerText;
    const client = new Http2Client(t, portOf('all'));
    const stream = client.open({ ':path': '/', 'accept-encoding': 'gzip' }, { endStream: true });
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>];
    const bytes = await buffer(stream);
    assert.equal(headers['content-encoding'], 'gzip');
    assert.equal(headers['content-length'], String(bytes.length));
    assert.equal(gunzipSync(bytes).toString(), TEXT);
    const head = await client.fetch({ ':path': '/', ':method': 'HEAD', 'accept-encoding': 'gzip' });
    assert.deepEqual([head.headers['content-length'], head.body], [undefined, '']);
  });

  for (const kind of KINDS) {
    it(`of requests are compressed by one proxy and decompressed by another, ${kind}`, async () => {
      let body = '';
      let encoding: string | undefined = 'none';
      handle = (request, response) => {
        encoding = request.headers['content-encoding'];
        request.on('data', (piece: Buffer) => {
          body += piece.toString();
        });
        request.on('end', () => response.end('ok'));
      };
      const client = new WireClient(nearer.listeners.get(kind)!.port);
      client.write(`POST / HTTP/1.1\r\nhost: a\r\ncontent-type: text/plain\r\ncontent-length: ${TEXT.length}\r\n\r\n`);
      client.write(TEXT.slice(0, 1000));
      client.write(TEXT.slice(1000));
      assert.equal((await readAnswer(client)).status, 200);
      client.close();
      assert.deepEqual([encoding, body], [undefined, TEXT]);
      const near = (name: string): number =>
        nearer.stats.value(`http.${kind}.compressor.${kind}.${kind}.request.${name}`) ?? -1;
      const compressed = proxy.stats.value(
        `http.far-${kind}.decompressor.${kind}.${kind}.request.total_compressed_bytes`,
      );
      assert.deepEqual(['compressed', 'total_uncompressed_bytes', 'total_compressed_bytes'].map(near), [
        1,
        TEXT.length,
        compressed,
      ]);
      // What does not say how long it is, or is of another type, goes on as it came.
      const others = new WireClient(nearer.listeners.get(kind)!.port);
      others.write(
        'POST / HTTP/1.1\r\nhost: a\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
      );
      assert.equal((await readAnswer(others)).status, 200);
      others.write(
        `POST / HTTP/1.1\r\nhost: a\r\ncontent-type: image/png\r\ncontent-length: 100\r\n\r\n${'x'.repeat(100)}`,
      );
      assert.equal((await readAnswer(others)).status, 200);
      const encoded = 'content-type: text/plain\r\ncontent-encoding: other\r\ncontent-length: 100\r\n\r\n';
      others.write(`POST / HTTP/1.1\r\nhost: a\r\n${encoded}${'x'.repeat(100)}`);
      assert.equal((await readAnswer(others)).status, 200);
      assert.equal(encoding, 'other');
      others.close();
      assert.deepEqual(['compressed', 'not_compressed'].map(near), [1, 3]);
    });
  }

  for (const [kind, encoding] of [
    ['gzip', 'gzip'],
    ['brotli', 'br'],
    ['zstd', 'zstd'],
  ] as const) {
    it(`are the same bytes at the end, whatever pieces a response came in, ${kind}`, async () => {
      const pieces = fc.array(fc.tuple(fc.string({ minLength: 1, maxLength: 50 }), fc.integer({ min: 1, max: 3000 })), {
        maxLength: 5,
      });
      const client = new WireClient(portOf('all'));
      await fc.assert(
        fc.asyncProperty(pieces, fc.boolean(), async (drawn, hasLength) => {
          const parts = drawn.map(([text, times]) => Buffer.from(text.repeat(times)));
          const whole = Buffer.concat(parts);
          handle = async (_request, response) => {
            const length = hasLength ? { 'content-length': String(whole.length) } : {};
            response.writeHead(200, { 'content-type': 'text/plain', ...length });
            for (const part of parts) {
              response.write(part);
              await new Promise((resolve) => setImmediate(resolve));
            }
            response.end();
          };
          client.write(`GET / HTTP/1.1\r\nhost: a\r\naccept-encoding: ${encoding}\r\n\r\n`);
          const answer = await readAnswer(client);
          if (!hasLength || whole.length >= 30) assert.equal(answer.headers['content-encoding'], encoding);
          assert.ok(Buffer.from(decoded(answer)).equals(whole));
        }),
        { numRuns: 25 },
      );
      client.close();
    });
  }

  it('wait for a client that does not read, and the upstream with them', async () => {
    let written = 0;
    let isOver = false;
    handle = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' });
      // Hardly gets smaller.
      const piece = Buffer.from(Array.from({ length: 65_536 }, () => Math.floor(256 * Math.random())));
      const write = (): void => {
        if (isOver) {
          response.end();
          return;
        }
        written += piece.length;
        if (response.write(piece)) setImmediate(write);
      };
      response.on('drain', write);
      write();
    };
    const request = get({ port: portOf('small'), host: '127.0.0.1', headers: { 'accept-encoding': 'gzip' } });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const paused = (): boolean =>
      (proxy.stats.value('cluster.web.upstream_flow_control_paused_reading_total') ?? 0) > 0;
    await untilEqual(true, paused, 'a pause');
    let before = -1;
    await untilEqual(
      true,
      () => {
        const isStill = written === before;
        before = written;
        return isStill;
      },
      'an upstream that waits',
    );
    assert.ok(written < 64 * MIB, `${written} bytes on their way to a client that reads none`);
    isOver = true;
    assert.equal(response.headers['content-encoding'], 'gzip');
    let received = 0;
    for await (const bytes of response.pipe(createGunzip())) received += (bytes as Buffer).length;
    assert.equal(received, written);
  });

  it('are what tunnels never have', async () => {
    for (const listener of ['both', 'untyped']) {
      const client = new WireClient(portOf(listener));
      client.write(
        'GET / HTTP/1.1\r\nhost: a\r\ncontent-encoding: gzip\r\naccept-encoding: gzip\r\nconnection: upgrade\r\nupgrade: websocket\r\n' +
          'sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
      );
      assert.match(await client.until('\r\n\r\n'), /^HTTP\/1.1 101/);
      client.write('as it is');
      assert.equal(await client.until('as it is'), 'as it is');
      client.close();
    }
  });

  it('are in an encoding whose filter takes responses of their type, and each filter says what it made of them', async () => {
    handle = answerText;
    const client = new WireClient(portOf('typed'));
    client.write('GET / HTTP/1.1\r\nhost: a\r\naccept-encoding: gzip, br;q=0.5\r\n\r\n');
    const answer = await readAnswer(client);
    assert.equal(answer.headers['content-encoding'], 'br');
    assert.equal(
      answer.headers['x-proxy-compression-status'],
      `br;Compressed;OriginalLength=${TEXT.length},gzip;ContentTypeNotAllowed`,
    );
    assert.equal(decoded(answer), TEXT);
    client.close();
  });
});
