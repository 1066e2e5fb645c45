// A proxy with one listener for each filter that holds or rewrites bodies, in front of upstreams that tell what has arrived and whether
// they could read it.

import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { BOOKSHOP } from './bookshop.ts';
import type { JsonObject } from './bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from './embedded.ts';
import { filteredListener, filterOf, routeTo } from './embedded-filters.ts';

const TYPES = 'type.googleapis.com/envoy.extensions';
/** A request that stands in a body. */
export const HIDDEN = 'GET /hidden HTTP/1.1\r\nhost: a\r\n\r\n';
const library = (kind: string): JsonObject => ({
  name: 'gzip',
  typed_config: { '@type': `${TYPES}.compression.gzip.${kind}` },
});

/** Of what taps write. */
const FOLDER = mkdtempSync(path.join(tmpdir(), 'weir-body-filters-'));

/** By the names of their listeners. */
export const BODY_FILTERS: Readonly<Record<string, JsonObject | null>> = {
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
  tap: filterOf('tap.v3.Tap', {
    common_config: {
      static_config: {
        match: { any_match: true },
        output_config: {
          max_buffered_rx_bytes: 100,
          sinks: [{ format: 'JSON_BODY_AS_BYTES', file_per_tap: { path_prefix: path.join(FOLDER, 'tap') } }],
        },
      },
    },
  }),
  bandwidth_limit: filterOf('bandwidth_limit.v3.BandwidthLimit', {
    stat_prefix: 'limited',
    enable_mode: 'REQUEST_AND_RESPONSE',
    limit_kbps: 1_000_000,
  }),
  fault: filterOf('fault.v3.HTTPFault', {
    delay: { fixed_delay: '0.001s', percentage: { numerator: 100 } },
    response_rate_limit: { fixed_limit: { limit_kbps: 1_000_000 }, percentage: { numerator: 100 } },
  }),
  ext_authz_grpc: filterOf('ext_authz.v3.ExtAuthz', {
    grpc_service: { envoy_grpc: { cluster_name: 'away' } },
    failure_mode_allow: true,
    with_request_body: { max_request_bytes: 20, allow_partial_message: true, pack_as_bytes: true },
  }),
  own: { name: 'own', typed_config: { '@type': `${TYPES}.filters.http.module.v3.Module` } },
};

/** Where requests are sent, and where they arrive; to answers that are misread. */
export interface BodyPaths {
  readonly to: string;
  readonly at: string;
  readonly wire: string;
}
const PATHS: BodyPaths = { to: '/seen', at: '/seen', wire: '/wire' };
const TRANSCODED: BodyPaths = {
  to: '/v1/shelves/5/books',
  at: '/bookshop.Shop/CreateBook',
  wire: '/v1/shelves/3/books/7',
};
const BOOK = JSON.stringify({ title: HIDDEN });
/** No message: a book of which nothing is known. */
const GRPC_ANSWER = Buffer.alloc(5);

export function pathsOf(filter: string): BodyPaths {
  return filter === 'grpc_json_transcoder' ? TRANSCODED : PATHS;
}

/** Statuses of gRPC are trailers. */
function managerFor(filter: string): JsonObject {
  return filter === 'grpc_json_transcoder' ? { http_protocol_options: { enable_trailers: true } } : {};
}

/** The body that arrives as, or with, one that has a request in it. */
export function bodyFor(filter: string): string {
  if (filter === 'decompressor') return gzipSync(HIDDEN).toString('latin1');
  return filter === 'grpc_json_transcoder' ? BOOK : HIDDEN;
}

interface Asked {
  readonly url: string;
  readonly body: string;
  /** Names and values of its head. */
  readonly lines: readonly string[];
}

export class BodyFilterProxy {
  /** Whole requests that have arrived, at upstreams and at whoever is asked beside them. */
  asked: Asked[] = [];
  /** Of what the proxy has sent, by whoever reads it. */
  misread = 0;
  /** What the upstream that knows no rules answers next. */
  answer = '';
  readonly #web: Server = this.#recording();
  readonly #guard: Server = this.#recording();
  readonly #wire: TcpServer;
  readonly #away: TcpServer = createTcpServer((socket) => socket.destroy());
  #proxy: Awaited<ReturnType<typeof createProxy>> | null = null;

  static async start(): Promise<BodyFilterProxy> {
    const made = new BodyFilterProxy();
    try {
      await made.#start();
    } catch (error) {
      await made.close();
      throw error;
    }
    return made;
  }

  private constructor() {
    this.#wire = createTcpServer((socket) => {
      socket.on('error', () => {}).on('data', () => socket.write(this.answer));
    });
  }

  /** @param filter of those of BODY_FILTERS. */
  portOf(filter: string): number {
    return this.#proxy!.listeners.get(filter)!.port;
  }

  reset(): void {
    this.asked = [];
    this.misread = 0;
  }

  async close(): Promise<void> {
    await this.#proxy?.close({ graceMs: 0 });
    for (const server of [this.#web, this.#guard]) {
      server.closeAllConnections();
      server.close();
    }
    this.#wire.close();
    this.#away.close();
    rmSync(FOLDER, { recursive: true, force: true });
  }

  async #start(): Promise<void> {
    const webPort = await portOf(this.#web);
    const clusters = [
      clusterAt('web', webPort),
      clusterAt('shop', webPort, { http_protocol_options: { enable_trailers: true } }),
      clusterAt('guard', await portOf(this.#guard)),
      clusterAt('wire', await portOf(this.#wire)),
      clusterAt('away', await portOf(this.#away), { http2_protocol_options: {} }),
    ];
    const listeners = Object.entries(BODY_FILTERS).map(([name, filter]) =>
      filteredListener(
        filter === null ? [] : [filter],
        [
          { match: { prefix: pathsOf(name).wire }, route: { cluster: 'wire' } },
          { match: { prefix: '/direct' }, direct_response: { status: 404, body: { inline_string: 'direct' } } },
          routeTo('/', {}, { route: { cluster: name === 'grpc_json_transcoder' ? 'shop' : 'web' } }),
        ],
        { listener: { name }, manager: { stat_prefix: name, ...managerFor(name) } },
      ),
    );
    this.#proxy = await createProxy(bootstrapOf(listeners, clusters), {
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
  }

  #recording(): Server {
    return createServer(async (request, response) => {
      const parts: Buffer[] = [];
      try {
        for await (const part of request) parts.push(part as Buffer);
      } catch {
        return;
      }
      this.asked.push({ url: request.url!, body: Buffer.concat(parts).toString('latin1'), lines: request.rawHeaders });
      if (request.url !== TRANSCODED.at) {
        response.end('fine');
        return;
      }
      response.writeHead(200, { 'content-type': 'application/grpc', trailer: 'grpc-status' });
      response.addTrailers({ 'grpc-status': '0' });
      response.end(GRPC_ANSWER);
    }).on('clientError', (error: NodeJS.ErrnoException, socket) => {
      // Parsers say what they have found wrong; an end that comes early is no such thing.
      if (error.code?.startsWith('HPE_') === true && error.code !== 'HPE_INVALID_EOF_STATE') this.misread += 1;
      socket.destroy();
    });
  }
}

async function portOf(server: Server | TcpServer): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}
