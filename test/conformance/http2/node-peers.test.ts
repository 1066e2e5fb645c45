// Sessions on sockets, with node:http2 at the other end: an independent reading of the same two RFCs, in both directions.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import http2 from 'node:http2';
import net from 'node:net';
import { after, describe, it } from 'node:test';
import fc from 'fast-check';
import { DEFAULT_HTTP2_SETTINGS } from '../../../src/config/resources/http2-options.ts';
import { Http2Session } from '../../../src/data-plane/http/codec/http2/session.ts';
import type { SessionOwner } from '../../../src/data-plane/http/codec/http2/session-owner.ts';
import type { SessionStream, StreamHandler } from '../../../src/data-plane/http/codec/http2/session-stream.ts';
import { LIMITS } from '../../support/http2-heads.ts';
import { codecs } from '../../support/http2-session.ts';

type Fields = readonly (readonly [string, string])[];

/** Streams that have trailers and no content each bring an empty frame, side by side here. */
const OPTIONS = { ...DEFAULT_HTTP2_SETTINGS, maxConsecutiveEmptyFrames: 10 };

/** Reads from a socket and writes to it once a turn. */
class SocketOwner implements SessionOwner {
  readonly session: Http2Session;
  readonly #socket: net.Socket;
  onNew: (stream: SessionStream) => void = () => undefined;
  fault = '';

  constructor(socket: net.Socket, isServer: boolean) {
    this.#socket = socket;
    this.session = new Http2Session(codecs, this, isServer, OPTIONS, LIMITS);
    this.session.start();
    socket.on('data', (bytes: Buffer) => this.session.receive(bytes, 0, bytes.length));
    socket.on('drain', () => this.session.drained());
    socket.on('error', () => undefined);
    socket.on('close', () => this.session.close(2, false, 'gone'));
  }

  onStream(stream: SessionStream): void {
    this.onNew(stream);
  }

  onOversizedRequest(stream: SessionStream): void {
    this.session.respondLines(stream, 431, 'content-length: 0\r\n', true);
  }

  onBlock(): void {}

  onSettings(): void {}

  onDirty(): void {
    setImmediate(() => {
      this.session.flush();
    });
  }

  write(slab: Buffer, length: number): boolean {
    return this.#socket.write(slab.subarray(0, length));
  }

  count(): void {
    // Of no interest here.
  }
  onGoaway(): void {
    // Nor this.
  }
  onPong(): void {
    // Nor this.
  }
  onDrainRead(): void {
    // Nor this.
  }
  onSessionFault(fault: { reason: string }): void {
    this.fault = fault.reason;
    this.#socket.destroySoon();
  }
  onIdle(): void {
    // Nor this.
  }
}

/** Sends back what it gets: fields as they were read, content, trailers. */
class Echo implements StreamHandler {
  readonly #session: Http2Session;
  readonly #stream: SessionStream;

  constructor(session: Http2Session, stream: SessionStream) {
    this.#session = session;
    this.#stream = stream;
  }

  onHead(isEnd: boolean): void {
    const { request } = codecs.codec;
    const fields = request.entries().filter(([name]) => name !== 'host' && name !== 'content-length');
    const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    const seen = `x-seen: ${request.method} ${request.path()} ${request.authority()}\r\n`;
    this.#session.respondLines(this.#stream, 200, seen + lines, isEnd);
  }

  onInterimHead(): void {
    assert.fail('a request has no interim head');
  }

  onData(bytes: Buffer, start: number, end: number, isEnd: boolean): void {
    this.#session.send(this.#stream, bytes, start, end, isEnd);
    this.#session.consume(this.#stream, end - start);
  }

  onTrailers(lines: string): void {
    this.#session.send(this.#stream, Buffer.alloc(0), 0, 0, true, lines);
  }

  onReset(): void {
    // The client has gone.
  }

  onWritable(): void {
    // What it was is sent; nothing else waits for it.
  }
}

const name = fc.stringMatching(/^[a-z][a-z0-9_-]{0,12}$/).map((text) => `x-${text}`);
const value = fc.string({ unit: fc.constantFrom(...'abcXYZ019 ;=/"<{}~\t'), maxLength: 80 }).map((text) => text.trim());
const fieldList = fc.uniqueArray(fc.tuple(name, value), { selector: ([field]) => field, maxLength: 12 });
const content = fc.oneof(fc.constant(''), fc.string({ maxLength: 200 }), fc.constant('0123456789'.repeat(20_000)));
const exchange = fc.record({
  path: fc.webPath().map((path) => `/${path.replaceAll('#', '')}`),
  fields: fieldList,
  body: content,
  trailers: fieldList,
});

describe('node:http2 as the other end', () => {
  it('its client gets from our server what it sent', async () => {
    const owners: SocketOwner[] = [];
    const server = net.createServer((socket) => {
      const owner = new SocketOwner(socket, true);
      owner.onNew = (stream) => {
        stream.handler = new Echo(owner.session, stream);
      };
      owners.push(owner);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as net.AddressInfo;
    const client = http2.connect(`http://127.0.0.1:${port}`);
    after(() => {
      client.destroy();
      server.close();
    });
    await fc.assert(
      fc.asyncProperty(fc.array(exchange, { minLength: 1, maxLength: 6 }), async (exchanges) => {
        await Promise.all(
          exchanges.map(async ({ path, fields, body, trailers }) => {
            const request = client.request(
              { ':method': 'POST', ':path': path, ...Object.fromEntries(fields) },
              { waitForTrailers: trailers.length > 0 },
            );
            request.on('wantTrailers', () => request.sendTrailers(Object.fromEntries(trailers)));
            const ended: Promise<Fields> = new Promise((resolve) => {
              let behind: Fields = [];
              request.on('trailers', (headers) => {
                behind = Object.entries(headers).map(([key, text]) => [key, String(text)] as const);
              });
              request.on('close', () => resolve(behind));
            });
            request.end(body);
            const [headers] = (await once(request, 'response')) as [http2.IncomingHttpHeaders];
            const parts: Buffer[] = [];
            for await (const part of request) parts.push(part as Buffer);
            assert.equal(headers['x-seen'], `POST ${path} 127.0.0.1:${port}`);
            for (const [field, text] of fields) assert.equal(headers[field], text);
            assert.equal(Buffer.concat(parts).toString(), body);
            assert.deepEqual(new Map(await ended), new Map(trailers));
          }),
        );
      }),
      { numRuns: 25 },
    );
    assert.deepEqual(
      owners.map(({ fault }) => fault),
      [''],
    );
    assert.equal(owners[0]!.session.streamCount, 0);
  });

  it('our client gets from its server what it sent', async () => {
    const server = http2.createServer();
    server.on('stream', (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => {
      const fields = Object.fromEntries(Object.entries(headers).filter(([field]) => field.startsWith('x-')));
      stream.additionalHeaders({ ':status': 103 });
      stream.respond({ ':status': 201, 'x-path': headers[':path']!, ...fields }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'x-last': 'yes' }));
      stream.pipe(stream);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as net.AddressInfo;
    const socket = net.connect(port, '127.0.0.1');
    const owner = new SocketOwner(socket, false);
    after(() => {
      socket.destroy();
      server.close();
    });
    await once(socket, 'connect');
    await fc.assert(
      fc.asyncProperty(fc.array(exchange, { minLength: 1, maxLength: 6 }), async (exchanges) => {
        await Promise.all(
          exchanges.map(({ path, fields, body }) => {
            const bytes = Buffer.from(body);
            const lines = fields.map(([field, text]) => `${field}: ${text}\r\n`).join('');
            const head = Buffer.from(`POST ${path} HTTP/1.1\r\nHost: h\r\n${lines}\r\n`, 'latin1');
            assert.equal(codecs.codec.parseRequest(head, 0, head.length, LIMITS), head.length);
            const stream = owner.session.request(0, false)!;
            return new Promise<void>((resolve, reject) => {
              let heard = '';
              const parts: Buffer[] = [];
              const finish = (trailers: string): void => {
                assert.equal(heard, `103 201 ${path}`);
                assert.equal(Buffer.concat(parts).toString(), body);
                assert.equal(trailers, 'x-last: yes\r\n');
                resolve();
              };
              stream.handler = {
                onInterimHead: (status) => {
                  heard += `${status} `;
                },
                onHead: () => {
                  const { response } = codecs.codec;
                  heard += `${response.status} ${response.headerByName('x-path')}`;
                  for (const [field, text] of fields) assert.equal(response.headerByName(field), text);
                },
                onData: (chunk, start, end) => {
                  parts.push(Buffer.from(chunk.subarray(start, end)));
                  owner.session.consume(stream, end - start);
                },
                onTrailers: finish,
                onReset: (code, _isLocal, reason) => reject(new Error(`${code} ${reason}`)),
                onWritable: () => undefined,
              };
              owner.session.send(stream, bytes, 0, bytes.length, true);
            });
          }),
        );
      }),
      { numRuns: 25 },
    );
    assert.equal(owner.fault, '');
    assert.equal(owner.session.streamCount, 0);
  });
});
