// The churn run: clusters, members and listeners that are added, replaced and removed through the managers, thousands of times,
// in the real parts of the program and under real traffic. What must hold: nobody notices who does not use what has gone, and
// at the end everything is held that was held when warm, and nothing else. Some of the clusters have their members checked,
// others ask a DNS server for them, and most listeners write access logs.
//
//   start ─► warm-up rounds ─► rest ─► rounds ─► rest ─► stop
//                               │                 │
//                               └── what is held ─┘

import { once } from 'node:events';
import { mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import {
  Agent,
  type ClientRequest,
  createServer,
  type Server as HttpServer,
  type IncomingMessage,
  request,
} from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Server as TcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { SYSTEM_CLOCK } from '../../src/base/clock.ts';
import { errorMessage } from '../../src/base/errors.ts';
import { FaultBoundary } from '../../src/base/fault-boundary.ts';
import { RandomSequence } from '../../src/base/random.ts';
import { Server, WorkerPool } from '../../src/control-plane/index.ts';
import { Loggers } from '../../src/log/index.ts';
import type { ClusterSettings, ListenerSettings } from '../../src/snapshot/index.ts';
import {
  clusterNamed,
  httpFilter,
  type JsonObject,
  listenerWith,
  mustLoad,
  socketAddress,
  tcpFilter,
} from '../support/bootstrap.ts';
import { DnsServer } from '../support/dns-server.ts';
import { Ledger } from './ledger.ts';
import { resourcesOf } from './resources.ts';

export interface ChurnOptions {
  readonly rounds: number;
  readonly warmUpRounds: number;
  readonly workers: number;
  readonly signal?: AbortSignal;
  readonly onProgress?: (text: string) => void;
}

/** What is held at rest. */
export interface Held {
  /** Of stats, each of which is there once for each thread. */
  readonly cells: number;
  /** Of hosts, clusters and limits. */
  readonly records: number;
  /** Of shared memory: tables and lists, and what cells and records are carved from. */
  readonly sharedBytes: number;
  readonly descriptors: number;
  /** Of each worker, when nothing is left to collect. */
  readonly workerHeapKiB: readonly number[];
}

export interface ChurnReport {
  readonly rounds: number;
  readonly seconds: number;
  readonly violations: readonly string[];
  readonly outcomes: readonly (readonly [string, number])[];
  readonly warm: Held;
  readonly end: Held;
}

const UPSTREAMS = 4;
const CLUSTERS = ['c0', 'c1', 'c2', 'c3', 'd0', 'd1'] as const;
/** Those whose members a DNS server names. */
const NAMED: ReadonlySet<string> = new Set(['d0', 'd1']);
const UPSTREAM_NAME = 'upstream.test';
/** Versions of clusters with configured members that are checked. */
const CHECKED: ReadonlySet<number> = new Set([1, 3]);
const LISTENERS = ['l0', 'l1'] as const;
const LISTENER_VARIANTS = 7;
/** Of each cluster and policy. */
const MEMBER_VARIANTS = 10;
const POLICIES = ['ROUND_ROBIN', 'LEAST_REQUEST', 'RING_HASH', 'MAGLEV'];
/** Until a worker that is busy has heard of what is new. */
const EXCUSE_MS = 5000;
const DRAIN_MS = 2000;
const REST_MS = 60_000;
/** Generations that drain at once; rounds wait for fewer. */
const MAX_DRAINING = 64;
const HEAP_TOLERANCE = { factor: 1.1, KiB: 2048 };
/**
 * What is carved from grows with the most that was ever in use at once: another chunk of cells takes 128 KiB with two
 * workers, merged histograms kept for the next ones up to 96 KiB. It is hardly more after 40,000 rounds than after 10,000.
 */
const SHARED_TOLERANCE = { factor: 1.1, bytes: 256 * 1024 };

/** A cluster or listener that comes and goes, as its clients see it. */
interface Subject {
  readonly name: string;
  /** 0 while it is away. */
  sinceMs: number;
  removals: number;
  version: number;
  /** Of a listener. */
  port: number;
}

export async function runChurn(options: ChurnOptions): Promise<ChurnReport> {
  const startedMs = performance.now();
  await using bench = await ChurnBench.start(options);
  const say = options.onProgress ?? ((): void => {});
  say(`${options.warmUpRounds} rounds to warm up`);
  await bench.churn(options.warmUpRounds);
  const warm = await bench.rest();
  say(`${options.rounds} rounds`);
  await bench.churn(options.rounds, (round) => say(`${round} rounds, ${performance.now() - startedMs} ms`));
  const end = await bench.rest();
  compare(bench.ledger, warm, end);
  const { violations, outcomes } = bench.ledger;
  return { rounds: options.rounds, seconds: (performance.now() - startedMs) / 1000, violations, outcomes, warm, end };
}

function compare(ledger: Ledger, warm: Held, end: Held): void {
  for (const what of ['cells', 'records', 'descriptors'] as const) {
    if (end[what] > warm[what])
      ledger.violation(`${end[what]} ${what} are held at the end, ${warm[what]} were when warm`);
  }
  if (end.sharedBytes > warm.sharedBytes * SHARED_TOLERANCE.factor + SHARED_TOLERANCE.bytes) {
    ledger.violation(`${end.sharedBytes} bytes of shared memory at the end, ${warm.sharedBytes} when warm`);
  }
  for (const [index, heap] of end.workerHeapKiB.entries()) {
    const before = warm.workerHeapKiB[index]!;
    if (heap <= before * HEAP_TOLERANCE.factor + HEAP_TOLERANCE.KiB) continue;
    ledger.violation(`worker ${index} holds ${heap} KiB at the end, ${before} when warm`);
  }
}

class ChurnBench implements AsyncDisposable {
  readonly ledger = new Ledger();
  readonly #options: ChurnOptions;
  readonly #random = new RandomSequence(1);
  readonly #threads: Worker[] = [];
  readonly #upstreams: HttpServer[] = [];
  readonly #tcpUpstream: TcpServer;
  readonly #subjects = {
    clusters: CLUSTERS.map((name): Subject => ({ name, sinceMs: 0, removals: 0, version: 0, port: 0 })),
    listeners: LISTENERS.map((name): Subject => ({ name, sinceMs: 0, removals: 0, version: 0, port: 0 })),
  };
  readonly #agents: Agent[] = [];
  readonly #dns: DnsServer;
  /** Of access logs. */
  readonly #folder = mkdtempSync(path.join(tmpdir(), 'weir-churn-'));
  #server!: Server;
  #isOver = true;
  #clients: Promise<void>[] = [];
  #version = 0;
  readonly #variants = new Map<string, unknown>();

  private constructor(options: ChurnOptions, dns: DnsServer) {
    this.#options = options;
    this.#dns = dns;
    dns.set(UPSTREAM_NAME, ['127.0.0.1']);
    this.#tcpUpstream = createTcpServer((socket) => socket.on('error', () => {}).pipe(socket));
  }

  static async start(options: ChurnOptions): Promise<ChurnBench> {
    const bench = new ChurnBench(options, await DnsServer.start());
    await bench.#start();
    return bench;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#clients);
    await this.#server.stop(DRAIN_MS);
    for (const upstream of this.#upstreams) {
      upstream.closeAllConnections();
      upstream.close();
    }
    this.#tcpUpstream.close();
    await this.#dns[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true });
  }

  /** So many changes, under traffic. */
  async churn(rounds: number, onProgress?: (round: number) => void): Promise<void> {
    this.#isOver = false;
    this.#clients = [this.#tunnel(), ...Array.from({ length: 4 }, () => this.#steady())];
    for (const cluster of this.#subjects.clusters) this.#clients.push(this.#clusterClient(cluster));
    for (const listener of this.#subjects.listeners) this.#clients.push(this.#listenerClient(listener));
    for (let round = 1; round <= rounds && this.#options.signal?.aborted !== true; round++) {
      await this.#round(round);
      if (round % 1000 === 0) onProgress?.(round);
    }
    this.#isOver = true;
    await Promise.all(this.#clients);
  }

  /** Takes away all that comes and goes, and waits until nothing of it is left. */
  async rest(): Promise<Held> {
    for (const cluster of this.#subjects.clusters) this.#removeCluster(cluster);
    for (const listener of this.#subjects.listeners) await this.#removeListener(listener);
    for (const agent of this.#agents) agent.destroy();
    const { clusterManager, listenerManager, memory } = this.#server;
    const left = (): string[] =>
      [...clusterManager.dump(), ...listenerManager.dump()]
        .filter(({ state }) => state !== 'active')
        .map(({ name, version, state }) => `${name} ${version} is ${state}`);
    const deadline = performance.now() + REST_MS;
    const isAtRest = (): boolean => left().length === 0 && this.#server.listenerManager.activeConnections() === 0;
    while (!isAtRest() && performance.now() < deadline) await delay(20);
    for (const what of left()) this.ledger.violation(`at rest ${what}`);
    const connections = listenerManager.activeConnections();
    if (connections > 0) this.ledger.violation(`at rest there are ${connections} connections`);
    if (memory.reclaimer.waitingCount > 0)
      this.ledger.violation(`${memory.reclaimer.waitingCount} places are waited for`);
    // They are written to their end first, outside of the threads.
    while (openBelow(this.#folder) > 0 && performance.now() < deadline) await delay(20);
    const logs = openBelow(this.#folder);
    if (logs > 0) this.ledger.violation(`at rest ${logs} access logs are open`);
    const descriptors = await this.#descriptors();
    return {
      cells: memory.cells.usedCells,
      records: memory.recordAllocator.usedRecords,
      sharedBytes: memory.heap.usedBytes,
      descriptors,
      workerHeapKiB: await Promise.all(this.#threads.map(heapOf)),
    };
  }

  // ---- What comes and goes ----

  async #round(round: number): Promise<void> {
    const cluster = this.#pick(this.#subjects.clusters);
    if (cluster.sinceMs > 0 && this.#random.u32() % 6 === 0) this.#removeCluster(cluster);
    else this.#putCluster(cluster);
    if (round % 8 === 0) {
      const listener = this.#pick(this.#subjects.listeners);
      if (listener.sinceMs > 0 && this.#random.u32() % 4 === 0) await this.#removeListener(listener);
      else await this.#putListener(listener);
    }
    const { clusterManager, listenerManager } = this.#server;
    const draining = (): number =>
      [...clusterManager.dump(), ...listenerManager.dump()].filter(({ state }) => state === 'draining').length;
    do await new Promise((resolve) => setImmediate(resolve));
    while (draining() > MAX_DRAINING);
  }

  #putCluster(cluster: Subject): void {
    // Mostly the same cluster with other members, weights and health.
    if (this.#random.u32() % 3 === 0) cluster.version = this.#random.u32() % POLICIES.length;
    const key = `${cluster.name} ${cluster.version} ${this.#random.u32() % MEMBER_VARIANTS}`;
    const settings = this.#variant(key, () => this.#clusterSettings(cluster));
    this.#server.clusterManager.put(settings, String(++this.#version));
    if (cluster.sinceMs === 0) cluster.sinceMs = performance.now();
  }

  /** To read a configuration takes longer than to work on it. */
  #variant<Settings>(key: string, make: () => Settings): Settings {
    const known = this.#variants.get(key) as Settings | undefined;
    if (known !== undefined) return known;
    const settings = make();
    this.#variants.set(key, settings);
    return settings;
  }

  #clusterSettings(cluster: Subject): ClusterSettings {
    const settings = NAMED.has(cluster.name) ? this.#namedCluster(cluster) : this.#configuredCluster(cluster);
    return mustLoad({ static_resources: { clusters: [settings] } }).clusters[0]!;
  }

  /** Each version has a resolver of its own. */
  #namedCluster({ name, version }: Subject): JsonObject {
    const members = this.#upstreams.map((upstream): JsonObject => {
      const { port } = upstream.address() as AddressInfo;
      return { endpoint: { address: socketAddress(UPSTREAM_NAME, port) } };
    });
    return clusterNamed(name, {
      type: version % 2 === 0 ? 'STRICT_DNS' : 'LOGICAL_DNS',
      dns_lookup_family: 'V4_ONLY',
      dns_refresh_rate: '0.05s',
      typed_dns_resolver_config: {
        name: 'envoy.network.dns_resolver.cares',
        typed_config: {
          '@type': 'type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig',
          resolvers: [socketAddress('127.0.0.1', this.#dns.port)],
          query_tries: 1 + version,
          dns_resolver_options: { no_default_search_domain: true, use_tcp_for_dns_lookups: version === 3 },
        },
      },
      load_assignment: {
        cluster_name: name,
        endpoints: [{ lb_endpoints: version % 2 === 0 ? members : members.slice(0, 1) }],
      },
    });
  }

  #configuredCluster({ name, version }: Subject): JsonObject {
    const ports = this.#upstreams.map((upstream) => (upstream.address() as AddressInfo).port);
    const members = ports.flatMap((port, index): JsonObject[] => {
      // The first is always there, and well.
      if (index > 0 && this.#random.u32() % 3 === 0) return [];
      const health = index > 0 && this.#random.u32() % 4 === 0 ? { health_status: 'DEGRADED' } : {};
      const endpoint = { address: socketAddress('127.0.0.1', port) };
      return [{ endpoint, load_balancing_weight: 1 + (this.#random.u32() % 5), ...health }];
    });
    return clusterNamed(name, {
      connect_timeout: `${10 + version}s`,
      ...(CHECKED.has(version) ? { health_checks: [HEALTH_CHECK] } : {}),
      lb_policy: POLICIES[version]!,
      circuit_breakers: { thresholds: [{ max_connections: 1000 }] },
      load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: members }] },
      ...(version === 3 ? { maglev_lb_config: { table_size: 4099 } } : {}),
    });
  }

  #removeCluster(cluster: Subject): void {
    cluster.sinceMs = 0;
    cluster.removals += 1;
    this.#server.clusterManager.remove(cluster.name);
  }

  async #putListener(listener: Subject): Promise<void> {
    listener.version += 1;
    const variant = listener.version % LISTENER_VARIANTS;
    const settings = this.#variant(`${listener.name} ${variant}`, () =>
      listenerSettings(listener.name, variant, this.#folder),
    );
    await this.#server.listenerManager.put(settings, String(++this.#version));
    const found = [...this.#server.listenerManager.listeners()].find(({ name }) => name === listener.name)!;
    const [address] = found.addresses;
    listener.port = address?.kind === 'ip' ? address.port : 0;
    if (listener.sinceMs === 0) listener.sinceMs = performance.now();
  }

  async #removeListener(listener: Subject): Promise<void> {
    listener.sinceMs = 0;
    listener.removals += 1;
    await this.#server.listenerManager.remove(listener.name);
  }

  #pick<Thing>(things: readonly Thing[]): Thing {
    return things[this.#random.u32() % things.length]!;
  }

  // ---- Those who use it, or do not ----

  /** Never notices anything. */
  async #steady(): Promise<void> {
    const agent = this.#agent();
    const port = this.#portOf('main');
    while (!this.#isOver) {
      const status = await ask(port, 'steady', agent);
      this.ledger.count('steady', String(status));
      if (status !== 200) this.ledger.violation(`a request to a cluster that stays ended with ${status}`);
    }
    agent.destroy();
  }

  async #clusterClient(cluster: Subject): Promise<void> {
    const agent = this.#agent();
    const port = this.#portOf('main');
    while (!this.#isOver) await this.#use(cluster, 'cluster', () => ask(port, cluster.name, agent));
    agent.destroy();
  }

  async #listenerClient(listener: Subject): Promise<void> {
    while (!this.#isOver) {
      if (listener.port === 0) await delay(1);
      else await this.#use(listener, 'listener', () => ask(listener.port, 'steady', false));
    }
  }

  /** What was there all the time has to answer; so does it after changes of settings and members. */
  async #use(subject: Subject, kind: string, use: () => Promise<number | string>): Promise<void> {
    const { sinceMs, removals } = subject;
    const isKnown = sinceMs > 0 && performance.now() - sinceMs > EXCUSE_MS;
    const outcome = await use();
    const wasThere = sinceMs > 0 && subject.removals === removals;
    this.ledger.count(wasThere ? kind : `${kind} that comes or goes`, String(outcome));
    if (outcome === 200 || !wasThere) return;
    if (isKnown) this.ledger.violation(`${subject.name}, which was there all the time, answered ${outcome}`);
    else if (outcome !== 503) this.ledger.violation(`${subject.name}, which was new, answered ${outcome}`);
  }

  /** One connection, for all the time. */
  async #tunnel(): Promise<void> {
    const socket = connect(this.#portOf('tunnel'), '127.0.0.1');
    socket.on('error', () => {});
    await once(socket, 'connect');
    const closed = Promise.withResolvers<string>();
    socket.once('close', () => closed.resolve('closed'));
    while (!this.#isOver) {
      const echoed = new Promise<string>((resolve) => socket.once('data', () => resolve('echo')));
      socket.write('x');
      const outcome = await Promise.race([echoed, closed.promise]);
      this.ledger.count('tunnel', outcome);
      if (outcome !== 'echo') {
        this.ledger.violation('the tunnel has ended');
        return;
      }
      await delay(1);
    }
    socket.destroy();
  }

  // ---- Parts ----

  async #start(): Promise<void> {
    for (let index = 0; index < UPSTREAMS; index++) {
      const upstream = createServer((_request, response) => response.end('ok'));
      upstream.keepAliveTimeout = 0;
      upstream.listen(0, '127.0.0.1');
      await once(upstream, 'listening');
      this.#upstreams.push(upstream);
    }
    this.#tcpUpstream.listen(0, '127.0.0.1');
    await once(this.#tcpUpstream, 'listening');
    const loggers = new Loggers({
      levels: { default: 'warning' },
      threadId: 0,
      sink: { write: ({ level, message }) => this.ledger.violation(`${level}: ${message}`) },
    });
    const faults = new FaultBoundary((where, error) => this.ledger.violation(`${where}: ${errorMessage(error)}`));
    const collect = (worker: Worker): void => void this.#threads.push(worker);
    process.on('worker', collect);
    const workers = new WorkerPool({ concurrency: this.#options.workers, loggers, clock: SYSTEM_CLOCK, faults });
    this.#server = new Server({
      bootstrap: mustLoad(this.#bootstrap()),
      parts: {},
      workers,
      loggers,
      clock: SYSTEM_CLOCK,
      faults,
      revisionNumber: 0,
      versionText: '',
      unknownFields: 0,
      drainMs: DRAIN_MS,
      drainStrategy: 'gradual',
      fileFlushIntervalMs: 10_000,
    });
    await this.#server.start();
    process.off('worker', collect);
  }

  #bootstrap(): JsonObject {
    const member = (port: number): JsonObject => ({ endpoint: { address: socketAddress('127.0.0.1', port) } });
    const cluster = (name: string, ports: readonly number[]): JsonObject =>
      clusterNamed(name, { load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: ports.map(member) }] } });
    const portOf = (server: HttpServer | TcpServer): number => (server.address() as AddressInfo).port;
    const address = socketAddress('127.0.0.1', 0);
    return {
      // To make and take away so much at once holds threads up on a crowded machine, which would be warned of.
      watchdogs: {
        main_thread_watchdog: { megamiss_timeout: '0s' },
        worker_watchdog: { megamiss_timeout: '0s' },
      },
      static_resources: {
        listeners: [
          listenerWith([manager('churn')], { name: 'main', address }),
          listenerWith([tcpFilter({ stat_prefix: 'churn', cluster: 'raw' })], { name: 'tunnel', address }),
        ],
        clusters: [cluster('steady', this.#upstreams.map(portOf)), cluster('raw', [portOf(this.#tcpUpstream)])],
      },
    };
  }

  #portOf(listenerName: string): number {
    const found = [...this.#server.listenerManager.listeners()].find(({ name }) => name === listenerName)!;
    const [address] = found.addresses;
    return address?.kind === 'ip' ? address.port : 0;
  }

  #agent(): Agent {
    return new Agent({ keepAlive: true, maxSockets: 1 });
  }

  /** Closed connections are gone a little later. */
  async #descriptors(): Promise<number> {
    for (const upstream of this.#upstreams) upstream.closeIdleConnections();
    await delay(500);
    return resourcesOf(process.pid)?.descriptors ?? 0;
  }
}

const HEALTH_CHECK: JsonObject = {
  timeout: '5s',
  interval: '0.05s',
  no_traffic_interval: '0.05s',
  unhealthy_threshold: 3,
  healthy_threshold: 1,
  http_health_check: { path: '/' },
};

function manager(statPrefix: string, fields: JsonObject = {}): JsonObject {
  const routes = [{ match: { prefix: '/' }, route: { cluster_header: 'x-cluster', timeout: '30s' } }];
  const virtual_hosts = [{ name: 'all', domains: ['*'], routes }];
  return httpFilter({ stat_prefix: statPrefix, route_config: { virtual_hosts }, ...fields });
}

/** All but the first variant write logs: of requests, and some of connections, to files of the variant and of all. */
function listenerSettings(name: string, variant: number, folder: string): ListenerSettings {
  const logTo = (file: string): JsonObject => ({
    name: 'envoy.access_loggers.file',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog',
      path: path.join(folder, file),
    },
  });
  const listener = listenerWith(
    [manager(name, variant === 0 ? {} : { access_log: [logTo(`${name}-${variant}`), logTo('all')] })],
    {
      name,
      stat_prefix: name,
      address: socketAddress('127.0.0.1', 0),
      per_connection_buffer_limit_bytes: 100_000 + variant,
      ...(variant % 2 === 0 ? {} : { access_log: [logTo(`connections-${variant}`)] }),
    },
  );
  return mustLoad({ static_resources: { listeners: [listener] } }).listeners[0]!;
}

/** Files of all threads below a folder; 0 where there is no /proc. */
function openBelow(folder: string): number {
  const linkOf = (name: string): string => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`);
    } catch {
      // Closed since it was listed.
      return '';
    }
  };
  try {
    return readdirSync('/proc/self/fd').filter((name) => linkOf(name).startsWith(folder)).length;
  } catch {
    return 0;
  }
}

/** @returns the status, or what went wrong. */
async function ask(port: number, cluster: string, agent: Agent | false): Promise<number | string> {
  return await new Promise((resolve) => {
    const asked: ClientRequest = request(
      { port, host: '127.0.0.1', agent, headers: { 'x-cluster': cluster } },
      (response: IncomingMessage) => {
        response.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
        response.on('end', () => resolve(response.statusCode!));
        response.resume();
      },
    );
    asked.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    asked.end();
  });
}

/** Kibibytes in use, after a collection: a snapshot begins with one. */
async function heapOf(worker: Worker): Promise<number> {
  const snapshot = await worker.getHeapSnapshot();
  snapshot.resume();
  await once(snapshot, 'end');
  const { used_heap_size: bytes } = await worker.getHeapStatistics();
  return Math.round(bytes / 1024);
}
