// Services that are asked about requests and hang, lie or vanish: requests are turned away, or go on where that is said, and the proxy waits
// no longer and reads no more than it was told.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createHttp2Server, type Http2Server, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo } from '../support/embedded-filters.ts';
import { counts, EXT_AUTHZ, HTTP2, OK, REPLIES, request } from '../support/guarded-proxy.ts';
import { unusedPort, WireClient, WireUpstream } from '../support/wire.ts';

/** An answer of gRPC that says yes: an empty message. */
const YES = Buffer.alloc(5);
const HUGE = 8 * 1024 * 1024;

/** What a service over HTTP does with the connection of a question. */
const OVER_HTTP: Readonly<Record<string, (socket: Socket) => void>> = {
  'says nothing': () => {},
  'says half a head': (socket) => void socket.write('HTTP/1.1 200 OK\r\ncontent-'),
  'stops in its body': (socket) => void socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf'),
  'leaves without a word': (socket) => void socket.destroy(),
  'leaves in its head': (socket) => void socket.end('HTTP/1.1 200 OK\r\ncontent-'),
  'breaks off in its body': (socket) => void socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf'),
  'is none of HTTP': (socket) => void socket.end('220 mail.example ESMTP\r\n'),
  'has two lengths': (socket) => void socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\ncontent-length: 4\r\n\r\n'),
  'has no end of its head': (socket) => void socket.write(`HTTP/1.1 200 OK\r\nx: ${'a'.repeat(HUGE)}`),
  'has no end of its body': (socket) => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${2 * HUGE}\r\n\r\n`);
    socket.write(Buffer.alloc(HUGE));
  },
  'says yes': (socket) => void socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'),
  'answers 500': (socket) => void socket.end('HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n'),
};

const GRPC_HEAD = { ':status': 200, 'content-type': 'application/grpc' };

function answers(stream: ServerHttp2Stream, body: Buffer, trailers: Record<string, string> | null): void {
  stream.respond(GRPC_HEAD, { waitForTrailers: trailers !== null });
  if (trailers !== null) stream.on('wantTrailers', () => stream.sendTrailers(trailers));
  stream.end(body);
}

/** The same of gRPC and the stream of a question. */
const OVER_GRPC: Readonly<Record<string, (stream: ServerHttp2Stream) => void>> = {
  'says nothing': () => {},
  'says yes, and does not end': (stream) => {
    stream.respond(GRPC_HEAD);
    stream.write(YES);
  },
  'resets the stream': (stream) => void stream.close(2),
  'closes the connection': (stream) => void stream.session?.destroy(),
  'says yes, and fails': (stream) => answers(stream, YES, { 'grpc-status': '13' }),
  'says yes, and nothing of its end': (stream) => answers(stream, YES, null),
  'has a status that is no number': (stream) => answers(stream, YES, { 'grpc-status': 'fine' }),
  'says yes twice': (stream) => answers(stream, Buffer.concat([YES, YES]), { 'grpc-status': '0' }),
  'says nothing, and ends well': (stream) => answers(stream, Buffer.alloc(0), { 'grpc-status': '0' }),
  'says half of what it announces': (stream) =>
    answers(stream, Buffer.from([0, 0, 0, 0, 9, 1]), { 'grpc-status': '0' }),
  'says what is no message': (stream) =>
    answers(stream, Buffer.from([0, 0, 0, 0, 2, 0xff, 0xff]), { 'grpc-status': '0' }),
  'says it in a coding that nobody has offered': (stream) =>
    answers(stream, Buffer.from([1, 0, 0, 0, 0]), { 'grpc-status': '0' }),
  'says too much': (stream) => answers(stream, Buffer.alloc(HUGE), { 'grpc-status': '0' }),
  'says yes': (stream) => answers(stream, YES, { 'grpc-status': '0' }),
  'answers 500': (stream) => {
    stream.respond({ ':status': 500 });
    stream.end();
  },
};

/** What hangs costs as much. */
const TIMEOUT = '3s';
const AWAY = 'is away';
/** What all the others are measured by. */
const WELL = 'says yes';
const MODES = [
  ['denies', {}],
  ['lets it go on', { failure_mode_allow: true }],
] as const;

/** As control planes name clusters: a name that is no host, for calls that name nobody else. */
const clusterOf = (protocol: string, what: string): string => `outbound|80|${protocol}|${what}`;
const named = (...words: readonly string[]): string => words.join(' ').replaceAll(/[ ,]+/g, '-');

describe('a service that is asked about requests', () => {
  const services: { close(): unknown }[] = [];
  let upstream: Awaited<ReturnType<typeof WireUpstream.answering>>;
  let proxy: Awaited<ReturnType<typeof createProxy>>;

  function listenersOf(protocol: string, what: string): readonly JsonObject[] {
    const cluster = clusterOf(protocol, what);
    const timeout = what === WELL ? '60s' : TIMEOUT;
    const service: JsonObject =
      protocol === 'http'
        ? { http_service: { server_uri: { uri: 'http://guard', cluster, timeout } } }
        : { grpc_service: { envoy_grpc: { cluster_name: cluster }, timeout }, transport_api_version: 'V3' };
    return MODES.map(([mode, fields]) => {
      const name = named(protocol, what, mode);
      return filteredListener([filterOf(EXT_AUTHZ, { ...service, ...fields })], [routeTo('/')], {
        listener: { name },
        manager: { stat_prefix: name, ...REPLIES },
      });
    });
  }

  before(async () => {
    upstream = await WireUpstream.answering(OK);
    const clusters: JsonObject[] = [clusterAt('web', upstream.port)];
    const listeners: JsonObject[] = [];
    for (const [what, act] of Object.entries(OVER_HTTP)) {
      const service = await WireUpstream.start((socket) => {
        socket.on('error', () => {});
        socket.once('data', () => act(socket));
      });
      services.push(service);
      clusters.push(clusterAt(clusterOf('http', what), service.port));
      listeners.push(...listenersOf('http', what));
    }
    for (const [what, act] of Object.entries(OVER_GRPC)) {
      const server: Http2Server = createHttp2Server();
      server.on('session', (session) => session.on('error', () => {}));
      server.on('stream', (stream: ServerHttp2Stream) => {
        stream.on('error', () => {});
        stream.resume().on('end', () => act(stream));
      });
      await once(server.listen(0, '127.0.0.1'), 'listening');
      services.push(server);
      clusters.push(clusterAt(clusterOf('grpc', what), (server.address() as AddressInfo).port, HTTP2));
      listeners.push(...listenersOf('grpc', what));
    }
    for (const protocol of ['http', 'grpc']) {
      clusters.push(clusterAt(clusterOf(protocol, AWAY), await unusedPort(), protocol === 'grpc' ? HTTP2 : {}));
      listeners.push(...listenersOf(protocol, AWAY));
    }
    proxy = await createProxy(bootstrapOf(listeners, clusters, { stats_flush_on_admin: true }), { logLevel: 'off' });
  });

  after(async () => {
    await proxy?.close({ graceMs: 0 });
    await upstream?.close();
    for (const service of services) service.close();
  });

  const cases = [
    ...Object.keys(OVER_HTTP).map((what) => ['http', what] as const),
    ...Object.keys(OVER_GRPC).map((what) => ['grpc', what] as const),
    ['http', AWAY] as const,
    ['grpc', AWAY] as const,
  ];
  for (const [protocol, what] of cases) {
    const outcome =
      what === WELL ? 'lets the request go on' : 'has the request turned away, or go on where that is said';
    it(`over ${protocol} and ${what} ${outcome}`, async () => {
      await Promise.all(
        MODES.map(async ([mode]) => {
          const name = named(protocol, what, mode);
          const client = new WireClient(proxy.listeners.get(name)!.port);
          const { status, body } = await client.write(request()).response();
          client.close();
          const found = await counts(proxy, `http.${name}.ext_authz.`);
          if (what === WELL) {
            assert.equal(status, 200);
            assert.deepEqual(found, { ok: 1 });
          } else if (mode === 'denies') {
            assert.deepEqual([status, body], [403, '|UAEX|ext_authz_error']);
            assert.deepEqual(found, { error: 1 });
          } else {
            assert.equal(status, 200);
            assert.deepEqual(found, { error: 1, failure_mode_allowed: 1 });
          }
        }),
      );
    });
  }
});
