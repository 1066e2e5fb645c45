// A data plane in the test's own thread, over real shared memory and real sockets, with the places for its stats
// allocated as the main thread does it.

import type { Address } from '../../src/base/address.ts';
import type { Clock } from '../../src/base/clock.ts';
import { SYSTEM_CLOCK } from '../../src/base/clock.ts';
import type { Random } from '../../src/base/random.ts';
import { DEFAULT_HTTP2_SETTINGS } from '../../src/config/resources/http2-options.ts';
import { HostLists } from '../../src/control-plane/cluster-manager/host-lists/host-lists.ts';
import { DataPlane, type HttpFilterRegistry, type NetworkFilterRegistry } from '../../src/data-plane/index.ts';
import { WorkerContext } from '../../src/data-plane/worker-context.ts';
import { HTTP_FILTERS, NETWORK_FILTERS } from '../../src/extensions/data-registry.ts';
import { Loggers } from '../../src/log/index.ts';
import {
  type AcceptLimitSnapshot,
  type ClusterSnapshot,
  type ConsecutiveKind,
  type FilterChainSettings,
  type FilterChainSnapshot,
  type HostSnapshot,
  type HttpConnectionManagerSettings,
  type ListenerFilterSettings,
  type ListenerSettings,
  type ListenerSnapshot,
  type NetworkFilterSettings,
  type NetworkFilterSnapshot,
  packClusters,
  type RouteSnapshot,
  type TcpProxySettings,
  type TerminalFilterSettings,
} from '../../src/snapshot/index.ts';
import {
  CLUSTER_STATS,
  FILESYSTEM_STATS,
  HOST_STATS,
  HTTP_INSPECTOR_STATS,
  HTTP_STATS,
  HTTP1_STATS,
  HTTP2_STATS,
  type Http2Stat,
  LISTENER_HTTP_STATS,
  LISTENER_STATS,
  LISTENER_WORKER_STATS,
  MESSAGE_SIZE_STATS,
  OUTLIER_HOST_STATS,
  PROXY_PROTOCOL_STATS,
  SSL_SOCKET_FACTORY_STATS,
  type StatTable,
  TCP_PROXY_STATS,
  TIMEOUT_BUDGET_STATS,
  TLS_INSPECTOR_STATS,
  TLS_STATS,
  UDP_CLUSTER_STATS,
  UDP_LISTENER_STATS,
  UDP_PROXY_STATS,
} from '../../src/stats/index.ts';
import { compileHttp1, Http1Codec } from '../../src/wasm/http1.ts';
import { compileHttp2 } from '../../src/wasm/http2.ts';
import { LbKernel } from '../../src/wasm/lb.ts';
import { closeAtEnd } from './close-at-end.ts';
import { clusterSettings, hostSettings } from './clusters.ts';
import { lbModule, lbTables } from './lb.ts';
import { filterChain, listenerSettings } from './listeners.ts';
import { NO_FURTHER_ENTRIES, PLAIN_FORWARDING, PLAIN_NORMALIZATION } from './plain-manager.ts';
import { routeTable } from './routes.ts';
import { statsFixture } from './stats.ts';

export { directRoute, forwardTo, retrySettings, routeFor, routeTable, routeTo } from './routes.ts';

const http1 = compileHttp1();
const http2 = compileHttp2();

const LISTENER_FILTER_STATS: Partial<Record<ListenerFilterSettings['kind'], StatTable>> = {
  'proxy-protocol': PROXY_PROTOCOL_STATS,
  'tls-inspector': TLS_INSPECTOR_STATS,
  'http-inspector': HTTP_INSPECTOR_STATS,
};

export interface FixtureOptions {
  readonly clock?: Clock;
  readonly readMode?: 'lean' | 'events';
  /** What decides by chance; always 0 by default. */
  readonly random?: Random;
  readonly headerPrefix?: string;
  /** Of the machine; nobody has said it by default. */
  readonly localAddress?: string;
  /** HTTP filters beside those of the build. */
  readonly httpFilters?: HttpFilterRegistry;
  /** The same of network filters. */
  readonly networkFilters?: NetworkFilterRegistry;
  /** Of access log files. */
  readonly flushIntervalMs?: number;
}

export type ClusterOverrides = Partial<ClusterSnapshot['settings']> & {
  readonly weights?: readonly number[];
  readonly subsetValues?: readonly HostSnapshot['subsetValues'][];
  /** Name of every host. */
  readonly hostname?: string;
};

/** Counters of one owner by name. */
export type StatReader<Name extends string> = (name: Name) => number;

export class DataPlaneFixture {
  readonly dataPlane: DataPlane;
  /** A context over the same memory, for units that need no whole data plane. */
  readonly context: WorkerContext;
  /** What the worker has told main of. */
  readonly outliers: { readonly cluster: string; readonly recordAddress: number; readonly kind: ConsecutiveKind }[] =
    [];
  readonly #fixture = statsFixture({ workerCount: 1 });
  readonly #tables = lbTables(this.#fixture.owner);
  readonly #blocks = new Map<string, number>();
  readonly #clusters = new Map<string, ClusterSnapshot>();
  /** Recorded values by index of the histogram. */
  readonly #samples = new Map<number, number[]>();
  readonly #forget = closeAtEnd(() => void this.dataPlane.shutdown(0));
  #nextListener = 1;
  #nextChain = 1;

  constructor(options: FixtureOptions = {}) {
    const worker = this.#fixture.workers[0]!;
    const record = worker.stats.record.bind(worker.stats);
    worker.stats.record = (index, value) => {
      this.#samples.set(index, [...(this.#samples.get(index) ?? []), value]);
      record(index, value);
    };
    const deps = {
      stats: worker.stats,
      records: worker.memory.records,
      lbKernel: new LbKernel(worker.memory, lbModule),
      codec: new Http1Codec(http1, options.headerPrefix),
      http2,
      loggers: new Loggers({ levels: { default: 'off' }, threadId: 0, sink: { write() {} } }),
      workerIndex: 0,
      http2Block: this.#allocate('http2', HTTP2_STATS),
      httpFilters: { ...HTTP_FILTERS, ...options.httpFilters },
      networkFilters: { ...NETWORK_FILTERS, ...options.networkFilters },
      random: options.random ?? { u32: () => 0 },
      ...(options.headerPrefix === undefined ? {} : { headerPrefix: options.headerPrefix }),
      ...(options.localAddress === undefined ? {} : { localAddress: options.localAddress }),
      clock: options.clock ?? SYSTEM_CLOCK,
      reportOutlier: (cluster: string, recordAddress: number, kind: ConsecutiveKind) =>
        this.outliers.push({ cluster, recordAddress, kind }),
      accessLogFiles: {
        flushIntervalMs: options.flushIntervalMs ?? 10_000,
        statBlock: this.#allocate('filesystem', FILESYSTEM_STATS),
      },
    };
    this.context = new WorkerContext(deps);
    this.dataPlane = new DataPlane({ ...deps, readMode: options.readMode ?? 'lean' });
  }

  /** Publishes a cluster, or its new state; a host keeps its record and stats by its address. */
  cluster(name: string, addresses: readonly Address[], overrides: ClusterOverrides = {}): ClusterSnapshot {
    const { weights, subsetValues, hostname = '', ...settings } = overrides;
    const before = this.#clusters.get(name);
    const members: Omit<ClusterSnapshot, 'hostLists'> = {
      settings: clusterSettings(name, settings),
      hosts: addresses.map((address, index) => {
        const known = before?.hosts.find((host) => JSON.stringify(host.address) === JSON.stringify(address));
        const weight = weights?.[index] ?? 1;
        const fields = hostSettings(address, { hostname, weight, subsetValues: subsetValues?.[index] ?? [] });
        if (known !== undefined) return { ...known, ...fields };
        const statBlock = this.#allocate(`host.${name}.${index}`, HOST_STATS);
        const recordAddress = this.#fixture.owner.recordAllocator.allocateHost(weight);
        const outlierBlock = settings.outlierDetection
          ? this.#allocate(`outlier.${name}.${index}`, OUTLIER_HOST_STATS)
          : 0;
        return { ...fields, recordAddress, statBlock, outlierBlock };
      }),
      statBlock: before?.statBlock ?? this.#allocate(`cluster.${name}`, CLUSTER_STATS),
      budgetBlock: settings.tracksTimeoutBudgets ? this.#allocate(`budgets.${name}`, TIMEOUT_BUDGET_STATS) : 0,
      http2Block: settings.http2 === undefined ? 0 : this.#allocate(`http2.${name}`, HTTP2_STATS),
      sizeBlock: settings.tracksMessageSizes ? this.#allocate(`sizes.${name}`, MESSAGE_SIZE_STATS) : 0,
      tlsBlock: settings.tls === undefined ? 0 : this.#allocate(`tls.${name}`, TLS_STATS),
      tlsFactoryBlock: settings.tls === undefined ? 0 : this.#allocate(`tls_factory.${name}`, SSL_SOCKET_FACTORY_STATS),
      recordAddress: before?.recordAddress ?? this.#fixture.owner.recordAllocator.allocateCluster(),
      addedViaApi: false,
      isHealthChecked: false,
    };
    const snapshot: ClusterSnapshot = { ...members, hostLists: this.#listsOf(members) };
    this.#clusters.set(name, snapshot);
    this.dataPlane.updateClusters(packClusters([snapshot]), []);
    return snapshot;
  }

  /** As `cluster`, with a record of its own, as main gives one to a cluster with other settings. */
  successor(name: string, addresses: readonly Address[], overrides: ClusterOverrides = {}): ClusterSnapshot {
    this.#clusters.delete(name);
    return this.cluster(name, addresses, overrides);
  }

  /** The cluster with these of its members, as main would publish it: with a balancer of their own. */
  withMembers(cluster: ClusterSnapshot, ...members: readonly number[]): ClusterSnapshot {
    const hosts = members.map((index) => cluster.hosts[index]!);
    return { ...cluster, hosts, hostLists: this.#listsOf({ ...cluster, hosts }) };
  }

  #listsOf({ settings, hosts }: Pick<ClusterSnapshot, 'settings' | 'hosts'>): number {
    const { records } = this.#fixture.owner.shared;
    const listed = hosts.map((host) => ({ ...host, healthFlags: records.healthFlags(host.recordAddress) }));
    return new HostLists(this.#tables, settings, listed).address;
  }

  /** Listens with one HTTP connection manager; returns the port. */
  async http(
    routes: readonly RouteSnapshot[],
    overrides: Partial<HttpConnectionManagerSettings> = {},
  ): Promise<number> {
    return await this.listen(httpManager(routes, overrides));
  }

  async tcp(cluster: string, overrides: Partial<TcpProxySettings> = {}): Promise<number> {
    return await this.listen(tcpProxy(cluster, overrides));
  }

  async listen(
    filter: TerminalFilterSettings,
    address: Address = { kind: 'ip', ip: '127.0.0.1', port: 0 },
  ): Promise<number> {
    const [port] = await this.listenWith({ addresses: [address], filterChains: [filterChain(filter)] });
    return port!;
  }

  /** A limit with a count of its own. */
  acceptLimit(maxConnections: number, runtimeKey = ''): AcceptLimitSnapshot {
    return { maxConnections, runtimeKey, recordAddress: this.#fixture.owner.recordAllocator.allocateCount() };
  }

  /** A counter of its own: its cell, and what this worker has counted. */
  counter(): { readonly cell: number; readonly read: () => number } {
    const key = `counter ${this.#blocks.size}`;
    const cell = this.#fixture.owner.cells.allocate(1);
    this.#blocks.set(key, cell);
    return { cell, read: () => this.#read(key, 0) };
  }

  /** Listens with any settings; returns the ports by address. */
  async listenWith(
    fields: Partial<ListenerSettings>,
    limits: Partial<Pick<ListenerSnapshot, 'globalLimit' | 'limit'>> = {},
  ): Promise<readonly number[]> {
    const settings = listenerSettings(fields);
    const snapshot: ListenerSnapshot = {
      id: this.#nextListener++,
      settings,
      statBlock: this.#allocate('listener', LISTENER_STATS),
      workerStatBlocks: [this.#allocate('listener-worker', LISTENER_WORKER_STATS)],
      globalLimit: this.acceptLimit(Number.POSITIVE_INFINITY),
      limit: this.acceptLimit(Number.POSITIVE_INFINITY),
      ...limits,
      listenerFilters: settings.listenerFilters.map((filter) => ({
        settings: filter,
        statBlock: this.#listenerFilterBlock(filter.kind),
      })),
      ...(settings.udp === undefined
        ? {}
        : {
            udp: {
              statBlock: this.#allocate('udp', UDP_PROXY_STATS),
              clusterStatBlocks: Object.fromEntries(
                (settings.udp.matcher?.clusters ?? [settings.udp.cluster]).map((name) => [
                  name,
                  this.#allocate(name === 'raw' ? 'udp-cluster' : `udp-cluster.${name}`, UDP_CLUSTER_STATS),
                ]),
              ),
              listenerStatBlock: this.#allocate('udp-listener', UDP_LISTENER_STATS),
            },
          }),
      filterChains: settings.filterChains.map((chain) => this.#chain(chain)),
      defaultFilterChain: settings.defaultFilterChain && this.#chain(settings.defaultFilterChain),
    };
    const portOf = (address: Address): number => (settings.bindsToPort || address.kind === 'pipe' ? 0 : address.port);
    return await this.dataPlane.listen(snapshot, settings.addresses.map(portOf));
  }

  #chain(settings: FilterChainSettings): FilterChainSnapshot {
    const isHttp = settings.filter.kind === 'http-connection-manager';
    return {
      id: this.#nextChain++,
      settings,
      filterStatBlock: isHttp ? this.#allocate('http', HTTP_STATS) : this.#allocate('tcp', TCP_PROXY_STATS),
      listenerHttpStatBlock: isHttp ? this.#allocate('listener-http', LISTENER_HTTP_STATS) : 0,
      http1StatBlock: isHttp ? this.#allocate('http1', HTTP1_STATS) : 0,
      networkFilters: settings.networkFilters.map((filter) => this.#networkFilter(filter)),
      ...(settings.filter.kind === 'extension' ? { terminal: this.#networkFilter(settings.filter) } : {}),
    };
  }

  #networkFilter(settings: NetworkFilterSettings): NetworkFilterSnapshot {
    const { statScope = '', counters = [], gauges = [], hasSharedCount = false } = settings;
    const named = [...counters, ...gauges].map((name) => [name, this.#allocate(statScope + name, { size: 1 })]);
    const countRecord = hasSharedCount ? this.#fixture.owner.recordAllocator.allocateCount() : 0;
    return { settings, cells: Object.fromEntries(named), countRecord };
  }

  readonly http1Stat: StatReader<keyof typeof HTTP1_STATS.index> = (name) =>
    this.#read('http1', HTTP1_STATS.index[name]);
  readonly http2Stat: StatReader<Http2Stat> = (name) => this.#read('http2', HTTP2_STATS.index[name]);
  /** Of the sessions to its hosts. */
  clusterHttp2Stat(cluster: string, name: Http2Stat): number {
    return this.#read(`http2.${cluster}`, HTTP2_STATS.index[name]);
  }

  readonly httpStat: StatReader<keyof typeof HTTP_STATS.index> = (name) => this.#read('http', HTTP_STATS.index[name]);
  readonly tcpStat: StatReader<keyof typeof TCP_PROXY_STATS.index> = (name) =>
    this.#read('tcp', TCP_PROXY_STATS.index[name]);
  readonly udpStat: StatReader<keyof typeof UDP_PROXY_STATS.index> = (name) =>
    this.#read('udp', UDP_PROXY_STATS.index[name]);
  readonly udpClusterStat: StatReader<keyof typeof UDP_CLUSTER_STATS.index> = (name) =>
    this.#read('udp-cluster', UDP_CLUSTER_STATS.index[name]);
  readonly udpListenerStat: StatReader<keyof typeof UDP_LISTENER_STATS.index> = (name) =>
    this.#read('udp-listener', UDP_LISTENER_STATS.index[name]);
  readonly listenerStat: StatReader<keyof typeof LISTENER_STATS.index> = (name) =>
    this.#read('listener', LISTENER_STATS.index[name]);
  readonly listenerWorkerStat: StatReader<keyof typeof LISTENER_WORKER_STATS.index> = (name) =>
    this.#read('listener-worker', LISTENER_WORKER_STATS.index[name]);
  readonly proxyProtocolStat: StatReader<keyof typeof PROXY_PROTOCOL_STATS.index> = (name) =>
    this.#read('proxy-protocol', PROXY_PROTOCOL_STATS.index[name]);
  readonly tlsInspectorStat: StatReader<keyof typeof TLS_INSPECTOR_STATS.index> = (name) =>
    this.#read('tls-inspector', TLS_INSPECTOR_STATS.index[name]);
  readonly httpInspectorStat: StatReader<keyof typeof HTTP_INSPECTOR_STATS.index> = (name) =>
    this.#read('http-inspector', HTTP_INSPECTOR_STATS.index[name]);
  /** Of all network filters, by whole name. */
  networkFilterStat(name: string): number {
    return this.#read(name, 0);
  }

  #listenerFilterBlock(kind: ListenerFilterSettings['kind']): number {
    const table = LISTENER_FILTER_STATS[kind];
    return table === undefined ? 0 : this.#allocate(kind, table);
  }

  clusterStat(name: string, stat: keyof typeof CLUSTER_STATS.index): number {
    return this.#read(`cluster.${name}`, CLUSTER_STATS.index[stat]);
  }

  hostStat(name: string, index: number, stat: keyof typeof HOST_STATS.index): number {
    return this.#read(`host.${name}.${index}`, HOST_STATS.index[stat]);
  }

  /** What has been recorded in a histogram, in order. */
  httpSamples(name: keyof typeof HTTP_STATS.index): readonly number[] {
    return this.#samplesOf('http', HTTP_STATS.index[name]);
  }

  listenerSamples(name: keyof typeof LISTENER_STATS.index): readonly number[] {
    return this.#samplesOf('listener', LISTENER_STATS.index[name]);
  }

  /** Of a cluster that wants to know. */
  budgetSamples(cluster: string, name: keyof typeof TIMEOUT_BUDGET_STATS.index): readonly number[] {
    return this.#samplesOf(`budgets.${cluster}`, TIMEOUT_BUDGET_STATS.index[name]);
  }

  sizeSamples(cluster: string, name: keyof typeof MESSAGE_SIZE_STATS.index): readonly number[] {
    return this.#samplesOf(`sizes.${cluster}`, MESSAGE_SIZE_STATS.index[name]);
  }

  clusterSamples(cluster: string, name: keyof typeof CLUSTER_STATS.index): readonly number[] {
    return this.#samplesOf(`cluster.${cluster}`, CLUSTER_STATS.index[name]);
  }

  /** A counter that was made at run time, such as `cluster.web.upstream_rq_200`. */
  dynamicStat(scope: string, name: string): number {
    const worker = this.#fixture.workers[0]!;
    for (const key of worker.asked.splice(0)) {
      const block = this.#fixture.owner.cells.allocate(1);
      this.#blocks.set(key.scope + key.name, block);
      worker.stats.resolve(key, block);
    }
    return this.#blocks.has(scope + name) ? this.#read(scope + name, 0) : 0;
  }

  /** What the shared records say of a cluster's circuit breaker counts. */
  breakerCount(name: string, count: 0 | 4 | 8 | 12): number {
    return this.breakerCountAt(this.recordOf(name), count);
  }

  recordOf(name: string): number {
    return this.#clusters.get(name)!.recordAddress;
  }

  /** Also of a cluster that has been replaced. */
  breakerCountAt(recordAddress: number, count: 0 | 4 | 8 | 12): number {
    return this.#fixture.workers[0]!.memory.records.clusterCount(recordAddress, 0, count);
  }

  async close(): Promise<void> {
    this.#forget();
    await this.dataPlane.shutdown(0);
    this.context.wheel.close();
  }

  #allocate(key: string, table: Pick<StatTable, 'size'>): number {
    const known = this.#blocks.get(key);
    if (known !== undefined) return known;
    const block = this.#fixture.owner.cells.allocate(table.size);
    this.#blocks.set(key, block);
    return block;
  }

  #samplesOf(key: string, index: number): readonly number[] {
    const block = this.#blocks.get(key);
    const { stats } = this.#fixture.workers[0]!;
    return block === undefined ? [] : (this.#samples.get(stats.base(block) + index) ?? []);
  }

  #read(key: string, index: number): number {
    const { stats } = this.#fixture.workers[0]!;
    const block = this.#blocks.get(key);
    return block === undefined ? 0 : stats.values[stats.base(block) + index]! + 0;
  }
}

/** An HTTP connection manager, which also takes HTTP/1.0. */
export function httpManager(
  routes: readonly RouteSnapshot[],
  overrides: Partial<HttpConnectionManagerSettings> = {},
): HttpConnectionManagerSettings {
  return {
    kind: 'http-connection-manager',
    statPrefix: 'test',
    accessLogs: [],
    clientCertificate: { mode: 'sanitize', subject: false, cert: false, chain: false, dns: false, uri: false },
    httpFilters: [],
    upgrades: [],
    routeTable: routeTable(routes),
    serverName: 'weir',
    serverHeader: 'overwrite',
    via: '',
    useRemoteAddress: false,
    xffNumTrustedHops: 0,
    skipXffAppend: false,
    generateRequestId: false,
    preserveExternalRequestId: false,
    idleTimeoutMs: 3_600_000,
    streamIdleTimeoutMs: 300_000,
    requestTimeoutMs: 0,
    requestHeadersTimeoutMs: 0,
    maxRequestHeadersBytes: 60 * 1024,
    maxHeadersCount: 100,
    suppressProxyHeaders: false,
    respectsExpectedTimeout: false,
    strictlyCheckedHeaders: [],
    codec: 'auto',
    http2: DEFAULT_HTTP2_SETTINGS,
    drainTimeoutMs: 5000,
    maxStreamDurationMs: 0,
    streamFlushTimeoutMs: overrides.streamIdleTimeoutMs ?? 300_000,
    delayedCloseTimeoutMs: 1000,
    proxiesInterim: false,
    enableTrailers: false,
    furtherLogEntries: NO_FURTHER_ENTRIES,
    forwarding: PLAIN_FORWARDING,
    normalization: { ...PLAIN_NORMALIZATION, acceptsHttp10: true },
    ...overrides,
  };
}

/** A TCP proxy to one cluster. */
export function tcpProxy(cluster: string, overrides: Partial<TcpProxySettings> = {}): TcpProxySettings {
  return {
    kind: 'tcp-proxy',
    statPrefix: 'test',
    accessLogs: [],
    furtherLogEntries: { onStart: false, onConnected: false, intervalMs: 0 },
    clusters: [{ cluster, weight: 1, criteria: null }],
    hashInputs: [],
    idleTimeoutMs: 3_600_000,
    clientIdleTimeoutMs: 0,
    upstreamIdleTimeoutMs: 0,
    maxConnectAttempts: 1,
    connectBackoff: null,
    maxConnectionDurationMs: 0,
    maxConnectionDurationJitterPercent: 0,
    awaitsData: false,
    tunnel: null,
    ...overrides,
  };
}

export function loopback(port: number): Address {
  return { kind: 'ip', ip: '127.0.0.1', port };
}
