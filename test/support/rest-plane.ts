// A management server of the tests that is asked by HTTP: has resources by type, answers with those that are asked for, or 304, and
// keeps what it has been asked.

import {
  createServer,
  type Server as HttpServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import { createServer as createSecureServer, type ServerOptions } from 'node:https';
import type { AddressInfo, Server, Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { clusterNamed, type JsonObject, socketAddress } from './bootstrap.ts';
import { untilEqual } from './eventually.ts';

/** As it came. */
export interface RestRequest {
  readonly path: string;
  readonly method: string;
  readonly host: string;
  readonly contentType: string;
  /** Number of its connection, from 1. */
  readonly connection: number;
  readonly body: {
    readonly node?: { readonly id: string; readonly build_version?: string; readonly metadata?: JsonObject };
    readonly version_info?: string;
    readonly type_url?: string;
    readonly resource_names?: readonly string[];
    readonly response_nonce?: string;
    readonly error_detail?: { readonly code: number; readonly message: string };
  };
}

interface Held {
  readonly version: string;
  readonly resources: readonly JsonObject[];
}

/** In the place of an answer. */
export type OddAnswer = (response: ServerResponse) => void;

export class RestPlane {
  readonly requests: RestRequest[] = [];
  port = 0;
  /** Undefined: as it should be. */
  odd: OddAnswer | undefined;
  /** It closes connections behind each answer. */
  keepsNothing = false;
  readonly #held = new Map<string, Held>();
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  #connections = 0;
  #lastNonce = 0;

  /** @param port 0 for any. @param tls what a server of HTTPS has. */
  static async start(
    t: TestContext,
    { port = 0, protocol = 'http1', tls }: { port?: number; protocol?: 'http1' | 'http2'; tls?: ServerOptions } = {},
  ): Promise<RestPlane> {
    const plane = new RestPlane(protocol, tls);
    await new Promise<void>((resolve, reject) => {
      plane.#server.once('error', reject).listen(port, '127.0.0.1', resolve);
    });
    plane.port = (plane.#server.address() as AddressInfo).port;
    t.after(() => plane.stop());
    return plane;
  }

  private constructor(protocol: 'http1' | 'http2', tls: ServerOptions | undefined) {
    const answer: RequestListener = (request, response) => void this.#answer(request, response);
    if (protocol === 'http2') this.#server = createHttp2Server(answer as never) as unknown as Server;
    else this.#server = tls === undefined ? createServer(answer) : createSecureServer(tls, answer);
    this.#server.on('connection', (socket: Socket) => {
      this.#connections += 1;
      numbers.set(socket, this.#connections);
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
  }

  /** All connections end at once. */
  stop(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Those over which nothing is asked at the moment. */
  endIdleConnections(): void {
    (this.#server as HttpServer).closeIdleConnections();
  }

  /** @param path without its generation: `clusters`. @param typeName without `envoy.`. */
  set(path: string, version: string, typeName: string, resources: readonly JsonObject[]): void {
    const typed = resources.map((json) => ({ '@type': `type.googleapis.com/envoy.${typeName}`, ...json }));
    this.#held.set(path, { version, resources: typed });
  }

  /** Of a path, in their order. */
  asked(path: string): readonly RestRequest[] {
    return this.requests.filter((request) => request.path.endsWith(`:${path}`));
  }

  /** Resolves with the first question that says this version has been taken over. */
  async accepted(path: string, version: string): Promise<RestRequest> {
    const find = (): RestRequest | undefined => this.asked(path).find(({ body }) => body.version_info === version);
    await untilEqual(true, () => find() !== undefined, `${path} of version ${version}`);
    return find()!;
  }

  /** Resolves with the first question that says what is wrong. */
  async refused(path: string): Promise<RestRequest> {
    const find = (): RestRequest | undefined => this.asked(path).find(({ body }) => body.error_detail !== undefined);
    await untilEqual(true, () => find() !== undefined, `a refusal of ${path}`);
    return find()!;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const body = JSON.parse(Buffer.concat(pieces).toString()) as RestRequest['body'];
    const path = request.url ?? '';
    const { host = '', 'content-type': contentType = '', ':authority': authority } = request.headers;
    const connection = numbers.get(request.socket) ?? 0;
    const asked = {
      path,
      method: request.method ?? '',
      host: String(authority ?? host),
      contentType,
      connection,
      body,
    };
    this.requests.push(asked);
    if (this.odd !== undefined) this.odd(response);
    else this.#answerWell(asked, response);
  }

  #answerWell({ path, body }: RestRequest, response: ServerResponse): void {
    const held = this.#held.get(path.slice(path.indexOf(':') + 1));
    if (this.keepsNothing) response.setHeader('connection', 'close');
    if (held === undefined) response.writeHead(404).end();
    else if (held.version === body.version_info) response.writeHead(304).end();
    else response.end(this.#textOf(held, body.resource_names ?? []));
  }

  #textOf({ version, resources }: Held, names: readonly string[]): string {
    const wanted = new Set(names);
    const told = resources.filter(
      ({ name, cluster_name: cluster }) => wanted.size === 0 || wanted.has(String(name ?? cluster)),
    );
    this.#lastNonce += 1;
    return JSON.stringify({ version_info: version, resources: told, nonce: `nonce-${this.#lastNonce}` });
  }
}

const numbers = new WeakMap<object, number>();

const ANY_PORT = socketAddress('127.0.0.1', 0);

export function restSource(generation: 'V2' | 'V3', fields: JsonObject = {}): JsonObject {
  const api_config_source = {
    api_type: 'REST',
    cluster_names: ['control'],
    refresh_delay: '0.02s',
    request_timeout: '20s',
    transport_api_version: generation,
    ...fields,
  };
  return { resource_api_version: generation, api_config_source };
}

export function restBootstrap(
  ports: readonly number[],
  { generation = 'V3', api = {}, server = {}, source = {} }: BootstrapOptions = {},
): string {
  const of = { ...restSource(generation, api), ...source };
  const lb_endpoints = ports.map((port) => ({ endpoint: { address: socketAddress('127.0.0.1', port) } }));
  const load_assignment = { cluster_name: 'control', endpoints: [{ lb_endpoints }] };
  return JSON.stringify({
    node: { id: 'me', cluster: 'us', metadata: { token: 'shown to servers' } },
    admin: { address: ANY_PORT },
    dynamic_resources: { cds_config: of, lds_config: of },
    static_resources: { clusters: [clusterNamed('control', { load_assignment, ...server })] },
  });
}

interface BootstrapOptions {
  readonly generation?: 'V2' | 'V3';
  /** Of the api_config_source. */
  readonly api?: JsonObject;
  /** Of the server's cluster. */
  readonly server?: JsonObject;
  /** Of each source. */
  readonly source?: JsonObject;
}
