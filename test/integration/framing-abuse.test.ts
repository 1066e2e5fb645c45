// Messages whose ends can be read in more than one way, through every filter that holds or rewrites bodies: nothing that is a body to the proxy
// may become a request to an upstream, nor a response to another client.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Server as TcpServer } from 'node:net';
import { after, before, beforeEach, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { BOOKSHOP } from '../support/bookshop.ts';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo } from '../support/embedded-filters.ts';

const TYPES = 'type.googleapis.com/envoy.extensions';
const HIDDEN = 'GET /hidden HTTP/1.1\r\nhost: a\r\n\r\n';
const library = (kind: string): JsonObject => ({
  name: 'gzip',
  typed_config: { '@type': `${TYPES}.compression.gzip.${kind}` },
});

/** By the names of their listeners. */
const FILTERS: Readonly<Record<string, JsonObject | null>> = {
  nothing: null,
  buffer: filterOf('buffer.v3.Buffer', { max_request_bytes: 100_000 }),
  compressor: filterOf('compressor.v3.Compressor', {
    compressor_library: library('compressor.v3.Gzip'),
    request_direction_config: { common_config: { min_content_length: 1 } },
    response_direction_config: { common_config: { min_content_length: 1 } },
  }),
  decompressor: filterOf('decompressor.v3.Decompressor', { decompressor_library: library('decompressor.v3.Gzip') }),
  grpc_http1_bridge: filterOf('grpc_http1_bridge.v3.Config'),
  grpc_web: filterOf('grpc_web.v3.GrpcWeb'),
  grpc_json_transcoder: filterOf('grpc_json_transcoder.v3.GrpcJsonTranscoder', {
    proto_descriptor: BOOKSHOP,
    services: ['bookshop.Shop'],
    match_incoming_request_route: true,
  }),
  ext_authz: filterOf('ext_authz.v3.ExtAuthz', {
    http_service: { server_uri: { uri: 'http://guard', cluster: 'guard', timeout: '60s' } },
    with_request_body: { max_request_bytes: 100_000 },
  }),
  cache: filterOf('cache.v3.CacheConfig', {
    typed_config: { '@type': `${TYPES}.http.cache.simple_http_cache.v3.SimpleHttpCacheConfig` },
  }),
  custom_response: filterOf('custom_response.v3.CustomResponse', {
    custom_response_matcher: {
      matcher_tree: {
        input: {
          name: 'status',
          typed_config: { '@type': 'type.googleapis.com/envoy.type.matcher.v3.HttpResponseStatusCodeMatchInput' },
        },
        exact_match_map: {
          map: {
            200: {
              action: {
                name: 'other',
                typed_config: {
                  '@type': `${TYPES}.http.custom_response.redirect_policy.v3.RedirectPolicy`,
                  uri: 'http://web/other',
                },
              },
            },
          },
        },
      },
    },
  }),
  own: { name: 'own', typed_config: { '@type': `${TYPES}.filters.http.module.v3.Module` } },
};

/** Where requests are sent, and where they arrive; to answers that are misread. */
interface Paths {
  readonly to: string;
  readonly at: string;
  readonly wire: string;
}
const PATHS: Paths = { to: '/seen', at: '/seen', wire: '/wire' };
const TRANSCODED: Paths = {
  to: '/v1/shelves/5/books',
  at: '/bookshop.Shop/CreateBook',
  wire: '/v1/shelves/3/books/7',
};
const BOOK = JSON.stringify({ title: HIDDEN });
/** No message: a book of which nothing is known. */
const GRPC_ANSWER = Buffer.alloc(5);

function pathsOf(filter: string): Paths {
  return filter === 'grpc_json_transcoder' ? TRANSCODED : PATHS;
}

/** Statuses of gRPC are trailers. */
function managerFor(filter: string): JsonObject {
  return filter === 'grpc_json_transcoder' ? { http_protocol_options: { enable_trailers: true } } : {};
}

/** The body that arrives as, or with, one that has a request in it. */
function bodyFor(filter: string): string {
  if (filter === 'decompressor') return gzipSync(HIDDEN).toString('latin1');
  return filter === 'grpc_json_transcoder' ? BOOK : HIDDEN;
}

/** What no recipient may take for one request, without its first line. */
const REQUESTS: Readonly<Record<string, string>> = {
  'a length beside chunks': `content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'chunks beside a length': `transfer-encoding: chunked\r\ncontent-length: ${HIDDEN.length}\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'two lengths': `content-length: 0\r\ncontent-length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
  'two lengths in one field': `content-length: 0, ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
  'a length with a sign': `content-length: +0\r\n\r\n${HIDDEN}`,
  'a negative length': `content-length: -1\r\n\r\n${HIDDEN}`,
  'a hexadecimal length': `content-length: 0x0\r\n\r\n${HIDDEN}`,
  'a folded coding': `transfer-encoding:\r\n chunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'a folded length': `content-length:\r\n 0\r\n\r\n${HIDDEN}`,
  'a space before the colon': `content-length: 5\r\ntransfer-encoding : chunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'a coding before chunked': `transfer-encoding: identity, chunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'a coding behind chunked': `transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'two codings': `transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'an unknown coding': `transfer-encoding: xchunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'a coding with a control character': `transfer-encoding: \x0bchunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'a NUL in a field': `x-a: a\x00b\r\ncontent-length: 0\r\n\r\n${HIDDEN}`,
  'a bare CR in a field': `x-a: a\rcontent-length: 5\r\ncontent-length: 0\r\n\r\n${HIDDEN}`,
  'a size of chunks with a sign': `transfer-encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n${HIDDEN}`,
  'a size of chunks with a prefix': `transfer-encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n${HIDDEN}`,
  'a size of chunks that overflows': `transfer-encoding: chunked\r\n\r\n10000000000000005\r\nhello\r\n0\r\n\r\n${HIDDEN}`,
  'an empty size of chunks': `transfer-encoding: chunked\r\n\r\n\r\nhello\r\n0\r\n\r\n${HIDDEN}`,
  'a chunk longer than its size': `transfer-encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n${HIDDEN}`,
  'a chunk extension that ends with LF': `transfer-encoding: chunked\r\n\r\n5;a\nhello\r\n0\r\n\r\n${HIDDEN}`,
  'a chunk extension with a bare CR': `transfer-encoding: chunked\r\n\r\n5;a\rb\r\nhello\r\n0\r\n\r\n${HIDDEN}`,
  'a chunk that ends with LF': `transfer-encoding: chunked\r\n\r\n5\r\nhello\n0\r\n\r\n${HIDDEN}`,
};

/** What upstreams may not answer, in place of `HTTP/1.1 200 OK` with a body. */
const STOLEN = 'HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nstolen';
const RESPONSES: Readonly<Record<string, string>> = {
  'a length beside chunks': `content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${STOLEN}`,
  'two lengths': `content-length: 2\r\ncontent-length: 3\r\n\r\nok${STOLEN}`,
  'a length with a sign': `content-length: +2\r\n\r\nok${STOLEN}`,
  'a folded length': `content-length:\r\n 2\r\n\r\nok${STOLEN}`,
  'an unknown coding behind chunked': `transfer-encoding: chunked, x\r\n\r\n0\r\n\r\n${STOLEN}`,
  'a size of chunks with a sign': `transfer-encoding: chunked\r\n\r\n+2\r\nok\r\n0\r\n\r\n${STOLEN}`,
  'a chunk longer than its size': `transfer-encoding: chunked\r\n\r\n1\r\nok\r\n0\r\n\r\n${STOLEN}`,
  'more than its length': `content-length: 2\r\n\r\nok${STOLEN}`,
  'more than its chunks': `transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n${STOLEN}`,
};

/** Of a message with a book in it that has nothing but a title, behind the number of a shelf. */
function textWithin(message: string): string {
  const at = message.indexOf('GET ');
  return message.slice(at, at + HIDDEN.length);
}

async function portOf(server: Server | TcpServer): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

describe('bodies whose ends can be read in more than one way', () => {
  let proxy: Awaited<ReturnType<typeof createProxy>>;
  let web: Server;
  let guard: Server;
  let wire: TcpServer;
  let asked: { url: string; body: string; lines: readonly string[] }[] = [];
  /** Of what the proxy has sent, by whoever reads it. */
  let misread = 0;
  /** What the upstream that knows no rules answers next. */
  let answer = '';

  before(async () => {
    const recording = (): Server =>
      createServer(async (request, response) => {
        const parts: Buffer[] = [];
        try {
          for await (const part of request) parts.push(part as Buffer);
        } catch {
          return;
        }
        asked.push({ url: request.url!, body: Buffer.concat(parts).toString('latin1'), lines: request.rawHeaders });
        if (request.url !== TRANSCODED.at) {
          response.end('fine');
          return;
        }
        response.writeHead(200, { 'content-type': 'application/grpc', trailer: 'grpc-status' });
        response.addTrailers({ 'grpc-status': '0' });
        response.end(GRPC_ANSWER);
      }).on('clientError', (error: NodeJS.ErrnoException, socket) => {
        // Parsers say what they have found wrong; an end that comes early is no such thing.
        if (error.code?.startsWith('HPE_') === true && error.code !== 'HPE_INVALID_EOF_STATE') misread += 1;
        socket.destroy();
      });
    web = recording();
    guard = recording();
    wire = createTcpServer((socket) => {
      socket.on('error', () => {}).on('data', () => socket.write(answer));
    });
    const webPort = await portOf(web);
    const clusters = [
      clusterAt('web', webPort),
      clusterAt('shop', webPort, { http_protocol_options: { enable_trailers: true } }),
      clusterAt('guard', await portOf(guard)),
      clusterAt('wire', await portOf(wire)),
    ];
    const listeners = Object.entries(FILTERS).map(([name, filter]) =>
      filteredListener(
        filter === null ? [] : [filter],
        [
          { match: { prefix: pathsOf(name).wire }, route: { cluster: 'wire' } },
          routeTo('/', {}, { route: { cluster: name === 'grpc_json_transcoder' ? 'shop' : 'web' } }),
        ],
        { listener: { name }, manager: { stat_prefix: name, ...managerFor(name) } },
      ),
    );
    proxy = await createProxy(bootstrapOf(listeners, clusters), {
      logLevel: 'off',
      httpFilters: {
        own: {
          requestBody: 'edits',
          responseBody: 'edits',
          create: () => () => ({
            decodeData(data) {
              data.bytes = Buffer.from(data.bytes);
            },
            encodeData(data) {
              data.bytes = Buffer.from(data.bytes);
            },
          }),
        },
      },
    });
  });

  after(async () => {
    await proxy?.close({ graceMs: 0 });
    for (const server of [web, guard]) {
      server?.closeAllConnections();
      server?.close();
    }
    wire?.close();
  });

  beforeEach(() => {
    asked = [];
    misread = 0;
  });

  /** All that comes back, until the proxy ends the connection. Whoever ends it first is gone, and hears of nothing. */
  async function exchange(listener: string, text: string): Promise<string> {
    const socket = connect(proxy.listeners.get(listener)!.port, '127.0.0.1');
    let told = '';
    socket.setEncoding('latin1').on('data', (part) => {
      told += part;
    });
    socket.on('error', () => {}).write(text, 'latin1');
    await once(socket, 'close');
    return told;
  }

  for (const filter of Object.keys(FILTERS)) {
    it(`never make requests of bodies, with ${filter}`, async () => {
      for (const [shape, text] of Object.entries(REQUESTS)) {
        const { to, at } = pathsOf(filter);
        for (const type of ['text/plain', 'application/json', 'application/grpc', 'application/grpc-web']) {
          const fields = `host: a\r\ncontent-type: ${type}\r\ncontent-encoding: gzip\r\n`;
          const what = `${shape}, ${type}`;
          const told = await exchange(filter, `POST ${to} HTTP/1.1\r\n${fields}${text}`);
          assert.deepEqual(
            asked.filter(({ url }) => url !== to && url !== at && url !== '/other'),
            [],
            what,
          );
          assert.equal(misread, 0, what);
          // Nobody is told that it was fine: a 400, or nothing where an answer had begun.
          assert.doesNotMatch(told, /fine/, what);
          assert.ok((told.match(/HTTP\/1\.1 /g)?.length ?? 0) <= 1, what);
        }
      }
    });

    it(`go on as one request where there is one way to read them, with ${filter}`, async () => {
      const body = bodyFor(filter);
      const { to, at } = pathsOf(filter);
      const size = body.length.toString(16);
      const fields = `POST ${to} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: text/plain\r\n${
        filter === 'decompressor' ? 'content-encoding: gzip\r\n' : ''
      }`;
      const shapes = [
        `content-length: ${body.length}\r\n\r\n${body}`,
        `transfer-encoding: chunked\r\n\r\n${size};ext="a;b"\r\n${body}\r\n0\r\n\r\n`,
        `transfer-encoding: chunked\r\n\r\n000${size}\r\n${body}\r\n000\r\ncontent-length: 3\r\ntransfer-encoding: x\r\nhost: b\r\n\r\n`,
      ];
      for (const text of shapes) {
        asked = [];
        const told = await exchange(filter, fields + text);
        // Trailers that frame a message are left out, or have it refused.
        assert.match(
          told,
          text.includes('000\r\ncontent-length') ? /^HTTP\/1\.1 (200|400) / : /^HTTP\/1\.1 200 /,
          text,
        );
        assert.equal(misread, 0, text);
        for (const { url, lines } of asked) {
          assert.ok(url === at || url === '/other', text);
          const names = lines.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase());
          for (const name of ['host', 'content-length', 'transfer-encoding']) {
            assert.ok(names.filter((each) => each === name).length <= 1, `${name} twice: ${text}`);
          }
          assert.ok(!(names.includes('content-length') && names.includes('transfer-encoding')), text);
        }
        const seen = asked.filter(({ url, body: bytes }) => url === at && bytes !== '');
        if (told.startsWith('HTTP/1.1 200') && filter !== 'compressor') {
          // A message has its fields between others.
          const bodies = seen.map(({ body: bytes }) => (filter === 'grpc_json_transcoder' ? textWithin(bytes) : bytes));
          assert.deepEqual(new Set(bodies), new Set([HIDDEN]), text);
        }
      }
    });

    it(`never answer another client, with ${filter}`, async () => {
      for (const [shape, text] of Object.entries(RESPONSES)) {
        for (const type of ['text/plain', 'application/grpc', 'text/plain']) {
          answer = `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\n${text}`;
          const { wire: path } = pathsOf(filter);
          const told = await exchange(filter, `GET ${path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`);
          assert.doesNotMatch(told, /stolen/, shape);
          assert.equal(told.match(/HTTP\/1\.1 /g)?.length, 1, shape);
        }
      }
    });
  }
});
