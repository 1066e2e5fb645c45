// A TCP proxy with real clients, and upstreams that do what a test says when it says so; by a clock turned by hand.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { TestContext } from 'node:test';
import type { Endpoint } from '../../src/data-plane/format/facts.ts';
import { DownstreamConnection } from '../../src/data-plane/network/downstream-connection.ts';
import { ACCEPTED_SOCKET_OPTIONS } from '../../src/data-plane/network/socket-events.ts';
import { TcpProxy } from '../../src/data-plane/tcp-proxy/tcp-proxy.ts';
import type { Cluster } from '../../src/data-plane/upstream/cluster.ts';
import { ClusterMap } from '../../src/data-plane/upstream/cluster-map.ts';
import { type ClusterSnapshot, packClusters, type TcpProxySettings } from '../../src/snapshot/index.ts';
import { type CLUSTER_STATS, TCP_ON_DEMAND_STATS, TCP_PROXY_STATS } from '../../src/stats/index.ts';
import { ClusterCount, ClusterPriority } from '../../src/wasm/shared-memory.ts';
import { tcpProxy } from './data-plane.ts';
import { eventually } from './eventually.ts';
import { filterChain } from './listeners.ts';
import { type FakeUpstreamSocket, UpstreamWorkers } from './upstream-workers.ts';
import { WireClient } from './wire.ts';

export const CONNECT_TIMEOUT_MS = 5000;
export const IDLE_TIMEOUT_MS = 60_000;
const INGRESS = { chainName: '', chainMetadata: undefined, listenerMetadata: undefined };

export interface TcpProxyBenchOptions {
  readonly cluster?: Partial<ClusterSnapshot['settings']>;
  readonly settings?: Partial<TcpProxySettings>;
  readonly hosts?: number;
  /** Where clients meant to go. */
  readonly destination?: Endpoint;
}

/** Ends with the test. */
export class TcpProxyBench {
  readonly sockets: FakeUpstreamSocket[] = [];
  readonly workers = new UpstreamWorkers(1, (socket) => void this.sockets.push(socket));
  readonly context = this.workers.contexts[0]!;
  readonly clusters = new ClusterMap(this.context);
  readonly snapshot: ClusterSnapshot;
  readonly proxy: TcpProxy;
  /** Connections of clients that the proxy has let go of. */
  closed = 0;
  /** Bugs that a connection has met. */
  readonly faults: unknown[] = [];
  readonly #t: TestContext;
  readonly #destination: Endpoint | undefined;

  constructor(t: TestContext, { cluster, settings, hosts = 1, destination }: TcpProxyBenchOptions) {
    this.#t = t;
    this.#destination = destination;
    this.context.logFault = (_what, error) => void this.faults.push(error);
    this.context.readMode = 'lean';
    const members = this.workers.cluster(hosts, { connectTimeoutMs: CONNECT_TIMEOUT_MS, ...cluster });
    this.snapshot = this.workers.balanced(members);
    this.clusters.update(packClusters([this.snapshot]), [], () => {});
    const filter = tcpProxy('web', { idleTimeoutMs: IDLE_TIMEOUT_MS, ...settings });
    const filterStatBlock = this.workers.statBlock(TCP_PROXY_STATS);
    const chain = {
      id: 1,
      settings: filterChain(filter),
      filterStatBlock,
      ...(filter.onDemand && { onDemandStatBlock: this.workers.statBlock(TCP_ON_DEMAND_STATS) }),
      listenerHttpStatBlock: 0,
      http1StatBlock: 0,
      networkFilters: [],
    };
    this.proxy = new TcpProxy(this.context, this.clusters, chain, INGRESS, filter);
  }

  get cluster(): Cluster {
    return this.clusters.get('web')!;
  }

  get upstream(): FakeUpstreamSocket {
    return this.sockets.at(-1)!;
  }

  /** A client whose connection has been accepted. */
  async client(): Promise<WireClient> {
    const onConnectionClosed = (): void => void this.closed++;
    const server = createServer(ACCEPTED_SOCKET_OPTIONS, (socket) => {
      const downstream = new DownstreamConnection(socket, this.context.clock.monotonicMs(), 1024 * 1024);
      downstream.open({ onConnectionClosed });
      if (this.#destination !== undefined) downstream.restoreDestination(this.#destination);
      this.proxy.accept(downstream);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const accepting = once(server, 'connection');
    const wire = new WireClient((server.address() as { port: number }).port);
    const [socket] = await accepting;
    this.#t.after(() => {
      wire.close();
      socket.destroy();
      server.close();
    });
    return wire;
  }

  wait(ms: number): void {
    this.workers.clock.turn(ms);
  }

  async until(condition: () => boolean, what: string): Promise<void> {
    await eventually(condition, what);
  }

  /** Time goes on meanwhile, but for less than an idle timeout: whether a client has the last bytes is looked for. */
  async untilClosed(): Promise<void> {
    const deadlineMs = this.context.clock.monotonicMs() + IDLE_TIMEOUT_MS / 2;
    await eventually(() => {
      if (this.closed === 0 && this.context.clock.monotonicMs() < deadlineMs) this.wait(1);
      return this.closed === 1;
    }, 'the end of the connection');
    await this.settle();
    this.assertNothingLeft();
  }

  /** Whatever is on its way by now. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
  }

  stat(name: keyof typeof TCP_PROXY_STATS.index): number {
    const { stats } = this.context;
    return stats.values[this.proxy.statBase + TCP_PROXY_STATS.index[name]]! + 0;
  }

  clusterStat(name: keyof typeof CLUSTER_STATS.index): number {
    return this.workers.clusterStat(this.snapshot, name);
  }

  assertNothingLeft(): void {
    const { records } = this.workers;
    assert.deepEqual(this.faults, []);
    assert.equal(this.proxy.connectionCount, 0);
    assert.equal(this.clusterStat('upstream_cx_active'), 0);
    assert.equal(this.stat('upstream_flush_active'), 0);
    const { recordAddress } = this.snapshot;
    assert.equal(records.clusterCount(recordAddress, ClusterPriority.default, ClusterCount.connections), 0);
    this.wait(10 * IDLE_TIMEOUT_MS);
    assert.equal(this.context.wheel.size, 0);
  }
}
