// The proxy of the benchmark, with its probe, and the client that waits for an update to reach traffic.

import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { systemMonotonicMs } from '../../src/base/clock.ts';
import { MAIN_FLAG } from '../../src/process/young-generation.ts';
import { socketAddress } from '../proxy/contenders/weir.ts';
import { residentBytesOf } from '../proxy/pinned-process.ts';
import type { ProbeFigures, ProbeOrder } from './probe.ts';
import { clusterName } from './resources.ts';

const PROBE = path.join(import.meta.dirname, 'probe.ts');
const SERVER = path.join(import.meta.dirname, 'management-server.ts');
const NODE_FLAGS = [MAIN_FLAG, '--disable-sigusr1', '--disable-warning=ExperimentalWarning', '--enable-source-maps'];
const MEGABYTE = 1e6;
const POLL_MS = 100;
const START_LIMIT_MS = 300_000;

/** Asks a child over its channel, one question after the other. */
export async function ask<Answer>(child: ChildProcess, question: unknown): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const onMessage = (answer: unknown): void => resolve(answer as Answer);
  const onExit = (): void => reject(new Error('it has ended'));
  child.once('message', onMessage).once('exit', onExit);
  child.send(question as object);
  try {
    return await promise;
  } finally {
    child.off('message', onMessage).off('exit', onExit);
  }
}

export async function startServer(
  clusters: number,
  hosts: number,
  livePort: number,
): Promise<{ readonly child: ChildProcess; readonly port: number }> {
  const args = ['--clusters', clusters, '--hosts', hosts, '--live-port', livePort];
  const child = fork(SERVER, args.map(String), { execArgv: ['--disable-warning=ExperimentalWarning'] });
  const [port] = (await once(child, 'message')) as [number];
  return { child, port };
}

/** Answers every request with its name, on all addresses of the loopback. */
export async function startUpstream(name: string): Promise<{ readonly port: number; stop(): void }> {
  const answer = `HTTP/1.1 200 OK\r\ncontent-length: ${name.length}\r\n\r\n${name}`;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    socket.on('data', () => socket.write(answer));
  });
  server.listen(0, '0.0.0.0');
  await once(server, 'listening');
  const address = server.address() as { readonly port: number };
  return {
    port: address.port,
    stop: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Where discovery comes from: a management server, or a file of clusters. */
export type Origin = { readonly serverPort: number } | { readonly clustersFile: string };

export class MeasuredProxy {
  readonly child: ChildProcess;
  readonly startedMs = systemMonotonicMs();
  readonly #addressFile: string;
  readonly #profiles: string | undefined;
  #livePort = 0;

  /** @param checkout folder of the weir to run; its dist/ must be built. @param profiles folder for profiles of main. */
  constructor(folder: string, checkout: string, origin: Origin, profiles?: string) {
    const config = path.join(folder, 'bootstrap.json');
    this.#addressFile = path.join(folder, 'admin-address');
    this.#profiles = profiles;
    rmSync(this.#addressFile, { force: true });
    writeFileSync(config, JSON.stringify(bootstrap(origin)));
    const command = ['--import', PROBE, path.join(checkout, 'dist/src/main.js'), '-c', config, '-l', 'error'];
    const options = ['--disable-hot-restart', '--concurrency', '2', '--admin-address-path', this.#addressFile];
    this.child = spawn(process.execPath, [...NODE_FLAGS, ...command, ...options], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
  }

  /** Resolves with how long it took from its start. */
  async live(): Promise<number> {
    while (!(await this.#isLive())) {
      if (this.child.exitCode !== null || this.child.signalCode !== null) throw new Error('weir has ended');
      if (systemMonotonicMs() - this.startedMs > START_LIMIT_MS) throw new Error('weir does not come to be live');
      await delay(POLL_MS);
    }
    return systemMonotonicMs() - this.startedMs;
  }

  async admin(pathAndQuery: string): Promise<string> {
    const answer = await fetch(`http://${readFileSync(this.#addressFile, 'latin1')}${pathAndQuery}`);
    return await answer.text();
  }

  /** Of the listener. */
  async port(): Promise<number> {
    if (this.#livePort === 0) {
      this.#livePort = Number(/:(\d+)$/m.exec(await this.admin('/listeners'))![1]);
    }
    return this.#livePort;
  }

  get residentMegabytes(): number {
    return residentBytesOf(this.child.pid!) / MEGABYTE;
  }

  async probe(order: Exclude<ProbeOrder, 'read'>): Promise<void> {
    await ask<null>(this.child, order);
  }

  async figures(): Promise<ProbeFigures> {
    return await ask<ProbeFigures>(this.child, 'read');
  }

  /** What main costs while `work` lasts. */
  async during<Result>(name: string, work: () => Promise<Result>): Promise<[Result, ProbeFigures]> {
    if (this.#profiles !== undefined) await this.probe('profile');
    await this.probe('reset');
    const result = await work();
    const figures = await this.figures();
    if (this.#profiles !== undefined) {
      await this.probe({ saveProfileTo: path.join(this.#profiles, `${name}.cpuprofile`) });
    }
    return [result, figures];
  }

  /**
   * One request after the other over one connection, until one is answered by the upstream of this name.
   * @returns when that answer had come.
   */
  async reached(name: string): Promise<number> {
    const socket = connect(await this.port(), '127.0.0.1');
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    socket.setNoDelay(true).setEncoding('latin1').on('error', reject);
    socket.on('data', (text: string) => {
      if (text.endsWith(name)) resolve(systemMonotonicMs());
      else socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    });
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    const atMs = await promise;
    socket.destroy();
    return atMs;
  }

  async end(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, 'exit');
    this.child.kill();
    await ended;
  }

  async #isLive(): Promise<boolean> {
    try {
      const address = readFileSync(this.#addressFile, 'latin1');
      return (await fetch(`http://${address}/ready`)).status === 200;
    } catch {
      return false;
    }
  }
}

function bootstrap(origin: Origin): object {
  const servers =
    'serverPort' in origin
      ? [
          {
            name: 'xds',
            connect_timeout: '5s',
            http2_protocol_options: {},
            load_assignment: {
              cluster_name: 'xds',
              endpoints: [{ lb_endpoints: [{ endpoint: { address: socketAddress(origin.serverPort) } }] }],
            },
          },
        ]
      : [];
  const grpc = {
    api_type: 'GRPC',
    transport_api_version: 'V3',
    grpc_services: [{ envoy_grpc: { cluster_name: 'xds' } }],
  };
  const dynamic =
    'serverPort' in origin
      ? { ads_config: grpc, cds_config: { ads: {}, resource_api_version: 'V3', initial_fetch_timeout: '0s' } }
      : { cds_config: { path: origin.clustersFile, initial_fetch_timeout: '0s' } };
  const route = { match: { prefix: '/' }, route: { cluster: clusterName(0) } };
  const manager = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
    stat_prefix: 'in',
    route_config: { validate_clusters: false, virtual_hosts: [{ name: 'all', domains: ['*'], routes: [route] }] },
    http_filters: [
      {
        name: 'router',
        typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
      },
    ],
  };
  return {
    node: { id: 'bench', cluster: 'bench' },
    admin: { address: socketAddress(0) },
    dynamic_resources: dynamic,
    static_resources: {
      clusters: servers,
      listeners: [
        {
          name: 'in',
          address: socketAddress(0),
          filter_chains: [{ filters: [{ name: 'http', typed_config: manager }] }],
        },
      ],
    },
  };
}
