// Several workers' contexts in the test's own thread, over one shared memory and one clock, with sockets to upstreams
// that do what the test says. What stands on them, clusters and pools, is the real code.

import type { Socket } from 'node:net';
import type { Address } from '../../src/base/address.ts';
import { HostLists } from '../../src/control-plane/cluster-manager/host-lists/host-lists.ts';
import type { HttpFilterRegistry } from '../../src/data-plane/index.ts';
import type { UpstreamSocketOwner } from '../../src/data-plane/network/socket-events.ts';
import { Cluster } from '../../src/data-plane/upstream/cluster.ts';
import { RetiredHosts } from '../../src/data-plane/upstream/retired-hosts.ts';
import { WorkerContext } from '../../src/data-plane/worker-context.ts';
import { Loggers } from '../../src/log/index.ts';
import type { ClusterSnapshot } from '../../src/snapshot/index.ts';
import {
  CLUSTER_STATS,
  FILESYSTEM_STATS,
  HOST_STATS,
  HTTP2_STATS,
  MESSAGE_SIZE_STATS,
  OUTLIER_HOST_STATS,
  type StatTable,
  TIMEOUT_BUDGET_STATS,
  type WorkerStats,
} from '../../src/stats/index.ts';
import { compileHttp1, Http1Codec } from '../../src/wasm/http1.ts';
import { compileHttp2 } from '../../src/wasm/http2.ts';
import { LbKernel, type LbTables } from '../../src/wasm/lb.ts';
import type { SharedRecords } from '../../src/wasm/shared-memory.ts';
import { clusterSettings, hostSettings } from './clusters.ts';
import { lbModule, lbTables } from './lb.ts';
import { ManualClock } from './manual-clock.ts';
import { type StatsFixture, statsFixture } from './stats.ts';

/** The proxy's end of a connection to an upstream, as the codec, the writer and the TCP proxy use it. */
export class FakeUpstreamSocket {
  readonly address: Address;
  readonly localAddress = '127.0.0.1';
  readonly localPort = 1;
  readonly remoteFamily = 'IPv4';
  readonly owner: UpstreamSocketOwner;
  /** All that the proxy has written, in latin1. */
  received = '';
  /** The upstream takes nothing before `take`. */
  isSlow = false;
  /** The proxy reads. */
  isRead = true;
  wasReset = false;
  #state: 'connecting' | 'open' | 'closed' = 'connecting';
  #isEnded = false;
  #onSent: (() => void) | null = null;
  #unsentBytes = 0;

  constructor(address: Address, owner: UpstreamSocketOwner) {
    this.address = address;
    this.owner = owner;
  }

  get isConnecting(): boolean {
    return this.#state === 'connecting';
  }

  get isOpen(): boolean {
    return this.#state === 'open';
  }

  /** Connecting or open. */
  get isLive(): boolean {
    return this.#state !== 'closed';
  }

  // ---- What the proxy sees and does ----

  get connecting(): boolean {
    return this.isConnecting;
  }

  get writableLength(): number {
    return this.#unsentBytes;
  }

  get writableEnded(): boolean {
    return this.#isEnded;
  }

  get writableFinished(): boolean {
    return this.#isEnded && this.#unsentBytes === 0;
  }

  write(data: string | Buffer): boolean {
    this.received += typeof data === 'string' ? data : data.toString('latin1');
    if (this.isSlow) this.#unsentBytes += data.length;
    return !this.isSlow;
  }

  end(onSent?: () => void): void {
    this.#isEnded = true;
    this.#onSent = onSent ?? null;
  }

  resume(): void {
    this.isRead = true;
  }

  destroy(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    queueMicrotask(() => this.owner.onClose(null));
  }

  resetAndDestroy(): void {
    this.wasReset = true;
    this.destroy();
  }

  // ---- What the upstream does ----

  accept(): void {
    this.#state = 'open';
    this.owner.onConnect();
  }

  refuse(error: NodeJS.ErrnoException = systemError('ECONNREFUSED')): void {
    this.#break(error);
  }

  send(text: string): void {
    const buffer = this.owner.readBuffer();
    this.isRead = this.owner.onBytes(buffer, buffer.write(text, 'latin1'));
  }

  /** Takes all that waits. */
  take(): void {
    this.#unsentBytes = 0;
    this.isSlow = false;
    if (this.#isEnded) this.#onSent?.();
    else this.owner.onDrain();
  }

  /** Ends its side. */
  close(): void {
    this.owner.onEnd();
  }

  /** Both sides have ended. */
  finish(): void {
    this.#state = 'closed';
    this.owner.onClose(null);
  }

  reset(): void {
    this.#break(systemError('ECONNRESET'));
  }

  /** Takes nothing any more. */
  failSending(): void {
    this.owner.onSendFailed(systemError('ECONNRESET'));
  }

  #break(error: NodeJS.ErrnoException): void {
    this.#state = 'closed';
    this.owner.onClose(error);
  }
}

function systemError(code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(code), { code });
}

// Growing, since a codec of a test decodes heads as HTTP/2 does.
const http1 = compileHttp1();
const http2 = compileHttp2();

function keepSamples(stats: WorkerStats): Samples {
  const samples: Samples = new Map();
  const record = stats.record.bind(stats);
  stats.record = (index, value) => {
    samples.set(index, [...(samples.get(index) ?? []), value]);
    record(index, value);
  };
  return samples;
}

/** Of a histogram, by its index. */
type Samples = Map<number, number[]>;

export class UpstreamWorkers {
  /** What all draws give. */
  chance = 0;
  readonly clock = new ManualClock();
  readonly contexts: WorkerContext[];
  /** What main was told of hosts that want to be left out: the cluster and the host's record. */
  readonly reported: (readonly [string, number])[] = [];
  readonly #fixture: StatsFixture;
  readonly #codec = new Http1Codec(http1);
  readonly #logFilesBlock: number;
  readonly #http2Block: number;
  readonly #samples: readonly Samples[];
  #tables: LbTables | null = null;
  readonly #httpFilters: HttpFilterRegistry;
  readonly #onSocket: (socket: FakeUpstreamSocket, worker: number) => void;

  /** @param onSocket told of each connection that a worker opens, before anything happens on it. */
  constructor(
    workerCount: number,
    onSocket: (socket: FakeUpstreamSocket, worker: number) => void,
    httpFilters: HttpFilterRegistry = {},
  ) {
    this.#httpFilters = httpFilters;
    this.#onSocket = onSocket;
    this.#fixture = statsFixture({ workerCount });
    this.#logFilesBlock = this.#fixture.owner.cells.allocate(FILESYSTEM_STATS.size);
    this.#http2Block = this.#fixture.owner.cells.allocate(HTTP2_STATS.size);
    this.#samples = this.#fixture.workers.map(({ stats }) => keepSamples(stats));
    this.contexts = this.#fixture.workers.map((_, worker) => this.#createContext(worker));
  }

  /** Main's side of the memory, and the workers' own of the stats. */
  get stats(): StatsFixture {
    return this.#fixture;
  }

  /** The shared counts, as main sees them. */
  get records(): SharedRecords {
    return this.#fixture.owner.shared.records;
  }

  /** A new cluster with hosts at the ports 1 to `hostCount`. */
  cluster(hostCount: number, overrides: Partial<ClusterSnapshot['settings']>): ClusterSnapshot {
    const { cells, recordAllocator } = this.#fixture.owner;
    return {
      settings: clusterSettings('web', overrides),
      hosts: Array.from({ length: hostCount }, (_, index) => ({
        ...hostSettings({ kind: 'ip', ip: '127.0.0.1', port: index + 1 }),
        recordAddress: recordAllocator.allocateHost(1),
        statBlock: cells.allocate(HOST_STATS.size),
        outlierBlock: overrides.outlierDetection ? cells.allocate(OUTLIER_HOST_STATS.size) : 0,
      })),
      statBlock: cells.allocate(CLUSTER_STATS.size),
      budgetBlock: overrides.tracksTimeoutBudgets ? cells.allocate(TIMEOUT_BUDGET_STATS.size) : 0,
      http2Block: overrides.http2 === undefined ? 0 : cells.allocate(HTTP2_STATS.size),
      sizeBlock: overrides.tracksMessageSizes ? cells.allocate(MESSAGE_SIZE_STATS.size) : 0,
      tlsBlock: 0,
      tlsFactoryBlock: 0,
      recordAddress: recordAllocator.allocateCluster(),
      addedViaApi: false,
      isHealthChecked: false,
      hostLists: 0,
    };
  }

  /** The cluster with lists of its hosts, as main makes them; without, nobody is given a host. */
  balanced(snapshot: ClusterSnapshot): ClusterSnapshot {
    this.#tables ??= lbTables(this.#fixture.owner);
    const hosts = snapshot.hosts.map((host) => ({
      ...host,
      healthFlags: this.records.healthFlags(host.recordAddress),
    }));
    return { ...snapshot, hostLists: new HostLists(this.#tables, snapshot.settings, hosts).address };
  }

  /** Places for the stats of one owner. */
  statBlock(table: StatTable): number {
    return this.#fixture.owner.cells.allocate(table.size);
  }

  /** The cluster in one worker. */
  open(worker: number, snapshot: ClusterSnapshot): Cluster {
    const cluster = new Cluster(this.contexts[worker]!, snapshot);
    cluster.updateHosts(snapshot, new RetiredHosts(() => {}));
    return cluster;
  }

  /** Sum over all workers of a stat of the cluster. */
  clusterStat(snapshot: ClusterSnapshot, stat: keyof typeof CLUSTER_STATS.index): number {
    return this.#fixture.workers.reduce(
      (sum, { stats }) => sum + stats.values[stats.base(snapshot.statBlock) + CLUSTER_STATS.index[stat]]!,
      0,
    );
  }

  /** The same of one host, by its place in the snapshot. */
  hostStat(snapshot: ClusterSnapshot, host: number, stat: keyof typeof HOST_STATS.index): number {
    const { statBlock } = snapshot.hosts[host]!;
    return this.#fixture.workers.reduce(
      (sum, { stats }) => sum + stats.values[stats.base(statBlock) + HOST_STATS.index[stat]]!,
      0,
    );
  }

  /** What one worker has recorded in a histogram of the cluster, in order. */
  clusterSamples(snapshot: ClusterSnapshot, stat: keyof typeof CLUSTER_STATS.index, worker = 0): readonly number[] {
    return this.samples(snapshot.statBlock, CLUSTER_STATS.index[stat], worker);
  }

  /** The same of any histogram, by its owner's place for stats. */
  samples(statBlock: number, index: number, worker = 0): readonly number[] {
    return this.#samples[worker]!.get(this.#fixture.workers[worker]!.stats.base(statBlock) + index) ?? [];
  }

  /** Full names of the counters that one worker has met at run time. */
  dynamicStats(worker = 0): string[] {
    return this.#fixture.workers[worker]!.asked.map(({ scope, name }) => scope + name);
  }

  /** The worker has crashed: main takes back its counts, and another takes its place. */
  crash(worker: number): void {
    this.contexts[worker]!.wheel.close();
    this.#fixture.owner.clearWorker(worker);
    this.contexts[worker] = this.#createContext(worker);
  }

  #createContext(worker: number): WorkerContext {
    const { stats, memory } = this.#fixture.workers[worker]!;
    return new WorkerContext({
      stats,
      records: memory.records,
      lbKernel: new LbKernel(memory, lbModule),
      codec: this.#codec,
      http2,
      loggers: new Loggers({ levels: { default: 'off' }, threadId: worker, sink: { write() {} } }),
      clock: this.clock,
      random: { u32: () => this.chance },
      workerIndex: worker,
      http2Block: this.#http2Block,
      httpFilters: this.#httpFilters,
      networkFilters: {},
      reportHostFailure: (cluster, record) => void this.reported.push([cluster, record]),
      accessLogFiles: { flushIntervalMs: 10_000, statBlock: this.#logFilesBlock },
      connectUpstream: (address, owner) => {
        const socket = new FakeUpstreamSocket(address, owner);
        this.#onSocket(socket, worker);
        return socket as unknown as Socket;
      },
    });
  }
}
