// A server of HTTP over TLS whose protocols a test says, and a proxy in front of it, in the test's own process.

import { once } from 'node:events';
import http from 'node:http';
import { performServerHandshake, type ServerHttp2Stream } from 'node:http2';
import { type AddressInfo, createServer as createPlainServer, type Server as PlainServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { createServer, type Server, type TLSSocket, type TlsOptions } from 'node:tls';
import { clusterNamed, clusterSettings, type JsonObject } from './bootstrap.ts';
import type { TestCertificate } from './certificates.ts';
import { closeAtEnd } from './close-at-end.ts';
import { type ClusterOverrides, DataPlaneFixture, loopback, routeTo } from './data-plane.ts';

const TYPES = 'type.googleapis.com/envoy.extensions';
const HTTP_OPTIONS = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';

/** A request of whatever protocol. */
export interface SecureRequest {
  /** As its connection agreed on it by ALPN; empty for nothing. */
  readonly alpn: string;
  /** That was really spoken. */
  readonly protocol: 'HTTP/1.1' | 'HTTP/2';
  readonly serverName: string;
  /** Common name of the certificate that was shown; empty for none. */
  readonly clientName: string;
  readonly path: string;
  answer(body?: string): void;
}

interface SecureOptions {
  readonly spoken?: 'by-alpn' | 'HTTP/2';
  /** Beside its certificate. */
  readonly tls?: TlsOptions;
}

type OnRequest = (request: SecureRequest) => void;

export class SecureUpstream {
  /** That it offers, in the order of its liking; the server says nothing where there are none. */
  readonly protocols: string[];
  /** Connections whose handshake came to its end. */
  readonly connections: TLSSocket[] = [];
  readonly requests: SecureRequest[] = [];
  readonly #server: PlainServer;
  readonly #secured: Server;
  #holdsHandshakes = false;
  readonly #sockets = new Set<Socket>();
  readonly #http1 = http.createServer();
  readonly #onRequest: OnRequest;

  static async start(
    t: TestContext,
    pair: TestCertificate,
    protocols: readonly string[],
    onRequest: OnRequest = (request) => request.answer(),
    options: SecureOptions = {},
  ): Promise<SecureUpstream> {
    const upstream = new SecureUpstream(pair, protocols, onRequest, options);
    upstream.#server.listen(0, '127.0.0.1');
    await once(upstream.#server, 'listening');
    const forget = closeAtEnd(() => upstream.close());
    t.after(() => {
      upstream.close();
      forget();
    });
    return upstream;
  }

  private constructor(
    { certificate, key }: TestCertificate,
    protocols: readonly string[],
    onRequest: OnRequest,
    { spoken = 'by-alpn', tls = {} }: SecureOptions,
  ) {
    this.protocols = [...protocols];
    this.#onRequest = onRequest;
    const ALPNCallback = ({ protocols: offered }: { readonly protocols: string[] }): string | undefined =>
      this.protocols.find((protocol) => offered.includes(protocol));
    const alpn = protocols.length === 0 ? {} : { ALPNCallback };
    this.#secured = createServer({ cert: certificate, key, ...alpn, ...tls }, (socket) => {
      this.connections.push(socket);
      socket.on('error', () => {});
      if (spoken === 'HTTP/2' || socket.alpnProtocol === 'h2') this.#serveHttp2(socket);
      else this.#http1.emit('connection', socket);
    });
    this.#server = createPlainServer((socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => this.#sockets.delete(socket));
      if (!this.#holdsHandshakes) this.#secured.emit('connection', socket);
    });
    this.#http1.on('request', (request, response) => {
      const { socket } = request;
      this.#tell(socket as TLSSocket, 'HTTP/1.1', request.url ?? '', (body) => response.end(body));
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Connections from now on get no answer. */
  holdHandshakes(): void {
    this.#holdsHandshakes = true;
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }

  /** Whatever was agreed on. */
  #serveHttp2(socket: TLSSocket): void {
    const session = performServerHandshake(socket);
    session.on('error', () => {});
    session.on('stream', (stream: ServerHttp2Stream, headers) => {
      stream.on('error', () => {});
      this.#tell(socket, 'HTTP/2', String(headers[':path']), (body) => {
        stream.respond({ ':status': 200 });
        stream.end(body);
      });
    });
  }

  #tell(socket: TLSSocket, protocol: SecureRequest['protocol'], path: string, answer: (body?: string) => void): void {
    const { servername } = socket as TLSSocket & { readonly servername?: string | false };
    const clientName = String(socket.getPeerCertificate().subject?.CN ?? '');
    const request = {
      alpn: socket.alpnProtocol || '',
      serverName: servername || '',
      clientName,
      protocol,
      path,
      answer,
    };
    this.requests.push(request);
    this.#onRequest(request);
  }
}

/** Fields of a cluster with HttpProtocolOptions. */
export function httpOptions(fields: JsonObject): JsonObject {
  return {
    typed_extension_protocol_options: {
      [HTTP_OPTIONS]: { '@type': `type.googleapis.com/${HTTP_OPTIONS}`, ...fields },
    },
  };
}

/** Field of a cluster that speaks TLS. @param common of its CommonTlsContext. */
export function securely(common: JsonObject = {}, context: JsonObject = {}): JsonObject {
  const type = `${TYPES}.transport_sockets.tls.v3.UpstreamTlsContext`;
  return {
    transport_socket: { name: 'tls', typed_config: { '@type': type, common_tls_context: common, ...context } },
  };
}

/** A proxy whose cluster `web` is configured so. @returns it and the port of its listener. */
export async function proxyBy(
  t: TestContext,
  upstreamPort: number,
  fields: JsonObject,
  overrides: ClusterOverrides = {},
): Promise<{ readonly proxy: DataPlaneFixture; readonly port: number }> {
  const { hosts: _, ...own } = clusterSettings(clusterNamed('web', fields));
  const proxy = new DataPlaneFixture();
  proxy.cluster('web', [loopback(upstreamPort)], { ...own, ...overrides });
  const port = await proxy.http([routeTo('web')]);
  t.after(() => proxy.close());
  return { proxy, port };
}
