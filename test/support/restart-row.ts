// A row of weirs that take over from one another, at addresses of this test alone, and the upstreams behind them.

import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer as createHttpServer, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { clusterNamed, httpFilter, type JsonObject, listenerWith, socketAddress, tcpFilter } from './bootstrap.ts';
import { untilEqual } from './eventually.ts';
import { startWeir, type WeirOptions, type WeirProcess } from './weir-process.ts';

/** Ports are those of an address that nobody else has: everything in 127.0.0.0/8 is this machine. */
export const PORTS = { http: 10_000, tcp: 10_001, single: 10_002, admin: 9901 } as const;
const PACE_MS = 10;
export const PIECE = Buffer.alloc(1 << 20, 'x');

export class RestartRow implements AsyncDisposable {
  readonly ip: string;
  readonly baseId: number;
  readonly folder = mkdtempSync(path.join(tmpdir(), 'weir-row-'));
  readonly weirs: WeirProcess[] = [];
  readonly #upstreams: readonly Server[];
  readonly #sockets = new Set<Socket>();
  readonly #extra: readonly string[];

  /** @param extra arguments of every weir. */
  static async open(extra: readonly string[] = []): Promise<RestartRow> {
    const http = createHttpServer(({ url }, response) => {
      const pieces = Number(/^\/mib\/(\d+)$/.exec(url ?? '')?.[1] ?? 0);
      if (pieces === 0) response.end('ok');
      else void sendPieces(response, pieces);
    });
    http.keepAliveTimeout = 0;
    const echo = createServer((socket) => void socket.on('error', () => {}).pipe(socket));
    for (const server of [http, echo]) await once(server.listen(0, '127.0.0.1'), 'listening');
    return new RestartRow([http, echo], extra);
  }

  private constructor(upstreams: readonly Server[], extra: readonly string[]) {
    const random = (): number => Math.floor(Math.random() * 253) + 1;
    this.ip = `127.${random()}.${random()}.${random()}`;
    this.baseId = Math.floor(Math.random() * 100_000_000);
    this.#upstreams = upstreams;
    this.#extra = extra;
    for (const server of upstreams) {
      server.on('connection', (socket: Socket) => {
        this.#sockets.add(socket);
        socket.on('close', () => this.#sockets.delete(socket));
      });
    }
  }

  get newest(): WeirProcess {
    return this.weirs.at(-1)!;
  }

  get pipe(): string {
    return path.join(this.folder, 'listener.sock');
  }

  bootstrap(fields: JsonObject = {}): JsonObject {
    const [http, tcp] = this.#upstreams.map((server) => (server.address() as AddressInfo).port);
    const member = (port: number): JsonObject => ({ endpoint: { address: socketAddress('127.0.0.1', port) } });
    const cluster = (name: string, port: number): JsonObject =>
      clusterNamed(name, {
        load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [member(port)] }] },
      });
    const routes = [{ match: { prefix: '/' }, route: { cluster: 'http', timeout: '0s' } }];
    const route_config = { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] };
    const web = httpFilter({ stat_prefix: 'web', route_config });
    return {
      admin: { address: socketAddress(this.ip, PORTS.admin) },
      stats_flush_interval: '0.2s',
      static_resources: {
        listeners: [
          listenerWith([web], { name: 'http', stat_prefix: 'http', address: socketAddress(this.ip, PORTS.http) }),
          listenerWith([tcpFilter({ cluster: 'tcp', stat_prefix: 'echo' })], {
            name: 'tcp',
            stat_prefix: 'tcp',
            address: socketAddress(this.ip, PORTS.tcp),
          }),
          listenerWith([web], {
            name: 'single',
            stat_prefix: 'single',
            address: socketAddress(this.ip, PORTS.single),
            enable_reuse_port: false,
          }),
          listenerWith([web], { name: 'pipe', stat_prefix: 'pipe', address: { pipe: { path: this.pipe } } }),
        ],
        clusters: [cluster('http', http!), cluster('tcp', tcp!)],
      },
      ...fields,
    };
  }

  /** The next one of the row, which takes over from the last. @returns once it is live. */
  async start(args: readonly string[] = [], options: WeirOptions = {}): Promise<WeirProcess> {
    const epoch = String(this.weirs.length);
    const place = args.includes('--restart-epoch') ? [] : ['--restart-epoch', epoch];
    const own = ['--base-id', String(this.baseId), ...place, ...this.#extra, ...args];
    const configYaml = options.configYaml ?? JSON.stringify(this.bootstrap());
    const weir = await startWeir({ ...options, configYaml, args: own });
    this.weirs.push(weir);
    return weir;
  }

  /** The same, and it has told the last one to drain. */
  async takeOver(args: readonly string[] = [], options: WeirOptions = {}): Promise<WeirProcess> {
    const weir = await this.start(args, options);
    await untilSaid(weir, 'hot restart: has taken over');
    return weir;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.weirs.map((weir) => weir.stop()));
    for (const socket of this.#sockets) socket.destroy();
    for (const server of this.#upstreams) server.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Resolves when the weir has logged the text so many times. */
export async function untilSaid(weir: WeirProcess, text: string, times = 1): Promise<void> {
  await untilEqual(true, () => weir.output.stderr.split(text).length > times, `"${text}" in the log`);
}

/** Slowly enough to be under way while something else happens, and to leave the processors to that. */
async function sendPieces(response: ServerResponse, pieces: number): Promise<void> {
  for (let piece = 0; piece < pieces && !response.destroyed; piece++) {
    response.write(PIECE);
    do await delay(PACE_MS);
    while (response.writableNeedDrain && !response.destroyed);
  }
  response.end();
}
