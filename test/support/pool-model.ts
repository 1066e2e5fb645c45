// What the connection pools of one cluster should look like, beside the real ones, in several workers: each step acts on
// the pools or on the sockets below them, and then everything is held against what the steps have made of it.

import assert from 'node:assert/strict';
import { Http1ClientConnection } from '../../src/data-plane/http/codec/http1/client-connection.ts';
import type { ResponseReceiver, UpstreamStream } from '../../src/data-plane/http/codec/upstream-stream.ts';
import { TcpUpstream } from '../../src/data-plane/tcp-proxy/tcp-upstream.ts';
import type { Cluster } from '../../src/data-plane/upstream/cluster.ts';
import type { Host } from '../../src/data-plane/upstream/host.ts';
import type { PoolClient } from '../../src/data-plane/upstream/pool/connection-pool.ts';
import type { StreamPool } from '../../src/data-plane/upstream/pool/stream-pool.ts';
import { RetiredHosts } from '../../src/data-plane/upstream/retired-hosts.ts';
import type { CircuitBreakerThresholds, ClusterSnapshot } from '../../src/snapshot/index.ts';
import { Framing, Method } from '../../src/wasm/http1.ts';
import { ClusterCount, ClusterPriority } from '../../src/wasm/shared-memory.ts';
import { NO_LIMITS } from './clusters.ts';
import { streamPool } from './upstream-request.ts';
import { type FakeUpstreamSocket, UpstreamWorkers } from './upstream-workers.ts';

const HEAD = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
const ANSWER = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';
const LAST_ANSWER = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n';
const NO_BYTES = Buffer.alloc(0);
const CONNECT_TIMEOUT_MS = 5000;
const IDLE_TIMEOUT_MS = 7000;
/** Long enough for a worker to see what others have given back. */
const LOOK_MS = 40;
const CONNECTS_PER_CALL = 3;
/** In the place of the worker that a step acted in. */
const NOBODY = -1;

const PRIORITIES = [ClusterPriority.default, ClusterPriority.high] as const;

type Limits = Omit<CircuitBreakerThresholds, 'maxRetries'>;

interface Connection {
  readonly socket: FakeUpstreamSocket;
  readonly worker: number;
  readonly priority: ClusterPriority;
  readonly port: number;
  /** Null for a raw connection. */
  readonly pool: StreamPool | null;
}

interface RawConnection {
  readonly worker: number;
  readonly upstream: TcpUpstream;
}

export interface Arrivals {
  readonly host: number;
  readonly isHigh: boolean;
  readonly count: number;
  /** So many more come, each at the very moment at which the one before it is over. */
  readonly followers: number;
}

class Request implements PoolClient, ResponseReceiver {
  readonly awaitsUpgrade = false;
  readonly matchesUpstreamScheme = false;
  readonly upstreamWire = null;
  readonly requestFraming = Framing.NONE;
  readonly requestTrailers = null;
  readonly bufferLimitBytes = 1024;
  readonly worker: number;
  readonly pool: StreamPool;
  readonly priority: ClusterPriority;
  stream: UpstreamStream | null = null;
  state: 'waiting' | 'active' | 'over' = 'waiting';
  readonly #model: PoolModel;
  readonly #followers: number;

  constructor(model: PoolModel, worker: number, pool: StreamPool, priority: ClusterPriority, followers: number) {
    this.#model = model;
    this.worker = worker;
    this.pool = pool;
    this.priority = priority;
    this.#followers = followers;
  }

  onStream(stream: UpstreamStream): void {
    assert.equal(this.state, 'waiting');
    this.state = 'active';
    this.stream = stream;
    stream.start(this, Method.GET, HEAD, NO_BYTES, 0, 0, true);
  }

  onPoolFailure(failure: string): void {
    assert.equal(this.state, 'waiting');
    if (failure === 'overflow') this.#model.assertLimitMet(this.priority);
    this.#end();
  }

  onInterimHead(): void {}

  onResponseHead(): boolean {
    assert.equal(this.state, 'active');
    this.#end();
    return true;
  }

  onResponseBody(): boolean {
    return assert.fail('no response has a body');
  }

  onResponseTrailers(): void {}

  onUpstreamReset(): void {
    assert.equal(this.state, 'active');
    this.#end();
  }

  onUpstreamDrain(): void {}

  cancel(): void {
    const wasWaiting = this.state === 'waiting';
    this.state = 'over';
    if (wasWaiting) assert.ok(this.pool.cancel(this));
    else this.stream!.abort(true);
  }

  #end(): void {
    this.state = 'over';
    if (this.#followers > 0) this.#model.request(this.worker, this.pool, this.priority, this.#followers - 1);
  }
}

/** Acts return the worker that they were in, NOBODY for none or all. */
export class PoolModel {
  readonly #workers: UpstreamWorkers;
  readonly #hostCount: number;
  #snapshot!: ClusterSnapshot;
  #limits!: Record<ClusterPriority, Limits>;
  /** Connections for each request. */
  #ratio = 1;
  #clusters: Cluster[] = [];
  #connections: Connection[] = [];
  #raw: RawConnection[] = [];
  #requests: Request[] = [];
  readonly #ports = new WeakMap<StreamPool, number>();
  /** Connections that have ended so far. */
  #ended = 0;
  /** By worker: others have given back connections, and it cannot have seen that yet. */
  #isStale: boolean[] = [];

  constructor(workerCount: number, hostCount: number) {
    this.#workers = new UpstreamWorkers(workerCount, (socket, worker) => this.#onSocket(socket, worker));
    this.#hostCount = hostCount;
  }

  /** A new cluster in the place of the one before. */
  begin(limits: Limits, highLimits: Limits, perHostRatio: number): void {
    // Where a run has failed.
    for (const cluster of this.#clusters) cluster.close();
    this.#ratio = perHostRatio;
    this.#limits = { [ClusterPriority.default]: limits, [ClusterPriority.high]: highLimits };
    this.#snapshot = this.#workers.cluster(this.#hostCount, {
      ...(perHostRatio > 1 ? { preconnect: { perHostRatio, predictiveRatio: 1 } } : {}),
      circuitBreakers: { default: { ...NO_LIMITS, ...limits }, high: { ...NO_LIMITS, ...highLimits } },
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
      idleTimeoutMs: IDLE_TIMEOUT_MS,
    });
    this.#clusters = this.#workers.contexts.map((_, worker) => this.#workers.open(worker, this.#snapshot));
    this.#isStale = this.#clusters.map(() => false);
    this.#connections = [];
    this.#raw = [];
    this.#requests = [];
  }

  // ---- Acts ----

  request(worker: number, pool: StreamPool, priority: ClusterPriority, followers: number): void {
    const request = new Request(this, worker, pool, priority, followers);
    this.#requests.push(request);
    pool.newStream(request);
  }

  arrive(worker: number, { host: index, isHigh, count, followers }: Arrivals): number {
    const host = pick(this.#clusters[worker]!.hosts, index);
    const priority = isHigh ? ClusterPriority.high : ClusterPriority.default;
    if (host === undefined) return NOBODY;
    const pool = streamPool(host, priority);
    this.#ports.set(pool, (host.address as { readonly port: number }).port);
    for (let n = 0; n < count; n++) this.request(worker, pool, priority, followers);
    return worker;
  }

  accept(n: number): number {
    return this.#onOneOf(this.#connecting, n, (socket) => socket.accept());
  }

  refuse(n: number): number {
    return this.#onOneOf(this.#connecting, n, (socket) => socket.refuse());
  }

  answer(n: number, isLast: boolean): number {
    return this.#onOneOf(this.#busy, n, (socket) => socket.send(isLast ? LAST_ANSWER : ANSWER));
  }

  /** An idle or busy connection is lost. */
  lose(n: number, byReset: boolean): number {
    const open = this.#live.filter(({ socket, pool }) => socket.isOpen && pool !== null);
    return this.#onOneOf(open, n, (socket) => (byReset ? socket.reset() : socket.close()));
  }

  cancel(n: number): number {
    const request = pick(this.#unfinished, n);
    request?.cancel();
    return request?.worker ?? NOBODY;
  }

  /** A proxied TCP connection, which takes a place under the same limit, if there is one. */
  openRaw(worker: number, index: number): number {
    const cluster = this.#clusters[worker]!;
    const context = this.#workers.contexts[worker]!;
    const host = pick(cluster.hosts, index);
    if (host === undefined || !host.tryAcquireConnection(cluster.breaker)) return NOBODY;
    const owner = {
      bufferLimitBytes: 1024,
      onUpstreamConnected() {},
      onUpstreamConnectFailed() {},
      onUpstreamBytes: () => true,
      onUpstreamEnd() {},
      onUpstreamDrain() {},
      onUpstreamClosed() {},
    };
    const upstream = new TcpUpstream(context, host, owner, context.clock.monotonicMs(), cluster.breaker);
    this.#raw.push({ worker, upstream });
    return worker;
  }

  closeRaw(n: number): number {
    const raw = pick(this.#raw, n);
    if (raw === undefined) return NOBODY;
    this.#raw.splice(this.#raw.indexOf(raw), 1);
    raw.upstream.destroy();
    return raw.worker;
  }

  /** The host is a member of the cluster, or is not any more; if it has left, its pools drain. */
  setHost(worker: number, index: number, isMember: boolean): number {
    const cluster = this.#clusters[worker]!;
    const members = new Set(cluster.hosts.map(({ record }) => record));
    const { recordAddress } = this.#snapshot.hosts[index]!;
    if (isMember) members.add(recordAddress);
    else members.delete(recordAddress);
    const hosts = this.#snapshot.hosts.filter((host) => members.has(host.recordAddress));
    cluster.updateHosts({ ...this.#snapshot, hosts }, new RetiredHosts(() => {}));
    return worker;
  }

  renew(worker: number): number {
    for (const host of this.#clusters[worker]!.hosts) host.renewConnections();
    return worker;
  }

  /** The worker is gone, with all that it had, and starts anew. */
  crash(worker: number): number {
    const isElsewhere = (owned: { readonly worker: number }): boolean => owned.worker !== worker;
    this.#ended += this.#connections.length;
    this.#connections = this.#connections.filter(isElsewhere);
    this.#ended -= this.#connections.length;
    this.#raw = this.#raw.filter(isElsewhere);
    this.#requests = this.#requests.filter(isElsewhere);
    this.#workers.crash(worker);
    this.#clusters[worker] = this.#workers.open(worker, this.#snapshot);
    this.#isStale.fill(true);
    return NOBODY;
  }

  turn(ms: number): number {
    this.#workers.clock.turn(ms);
    return NOBODY;
  }

  // ---- Checks ----

  async step(act: () => number): Promise<void> {
    const worker = act();
    for (let turn = 0; turn < 5; turn++) await null;
    this.#noteEnded(worker);
    this.#assertCounts();
    this.#assertNobodyForgotten();
  }

  /** Gives every worker the time to look at the limits. */
  async look(): Promise<void> {
    let ended: number;
    do {
      ended = this.#ended;
      await this.step(() => this.turn(LOOK_MS));
    } while (this.#ended > ended);
    this.#isStale.fill(false);
    this.#assertNobodyForgotten();
  }

  assertLimitMet(priority: ClusterPriority): void {
    const { maxRequests, maxPendingRequests } = this.#limits[priority];
    const isMet =
      this.#count(priority, ClusterCount.requests) >= maxRequests ||
      this.#count(priority, ClusterCount.pendingRequests) >= maxPendingRequests;
    assert.ok(isMet, 'an overflow below the limits');
  }

  /** With upstreams that answer everybody is served or refused in the end, and nothing is left behind. */
  async finish(): Promise<void> {
    for (let round = 0; this.#unfinished.length + this.#connecting.length > 0; round++) {
      assert.ok(round < 1000, 'requests that nobody serves');
      await this.look();
      while (this.#connecting.length > 0) await this.step(() => this.accept(0));
      while (this.#busy.length > 0) await this.step(() => this.answer(0, false));
    }
    while (this.#raw.length > 0) await this.step(() => this.closeRaw(0));
    for (const cluster of this.#clusters) {
      cluster.close();
      await this.step(() => NOBODY);
    }
    await this.look();
    assert.equal(this.#live.length, 0);
  }

  // ---- Inside ----

  get #unfinished(): Request[] {
    return this.#requests.filter(({ state }) => state !== 'over');
  }

  get #live(): Connection[] {
    return this.#connections.filter(({ socket }) => socket.isLive);
  }

  get #connecting(): Connection[] {
    return this.#live.filter(({ socket }) => socket.isConnecting);
  }

  /** Those that carry a request. */
  get #busy(): Connection[] {
    const used = new Set(this.#requests.filter(({ state }) => state === 'active').map(({ stream }) => stream));
    return this.#live.filter(({ socket }) => used.has(socket.owner as Http1ClientConnection));
  }

  #onOneOf(connections: readonly Connection[], n: number, act: (socket: FakeUpstreamSocket) => void): number {
    const connection = pick(connections, n);
    if (connection === undefined) return NOBODY;
    act(connection.socket);
    return connection.worker;
  }

  #count(priority: ClusterPriority, count: ClusterCount): number {
    return this.#workers.records.clusterCount(this.#snapshot.recordAddress, priority, count);
  }

  /** As all workers count them. */
  #connectionsOf(port: number): number {
    return this.#workers.records.activeConnections(this.#snapshot.hosts[port - 1]!.recordAddress);
  }

  #perHost(priority: ClusterPriority): number {
    return this.#limits[priority].maxConnectionsPerHost ?? Number.POSITIVE_INFINITY;
  }

  #liveOf(priority: ClusterPriority): number {
    return this.#live.filter((connection) => connection.priority === priority).length;
  }

  #onSocket(socket: FakeUpstreamSocket, worker: number): void {
    const { port } = socket.address as { readonly port: number };
    const { default: byDefault, high } = ClusterPriority;
    const isHigh = this.#count(high, ClusterCount.connections) > this.#liveOf(high);
    const priority = isHigh ? high : byDefault;
    const { owner } = socket;
    const pool = owner instanceof Http1ClientConnection ? streamPool(owner.host as Host, priority) : null;
    const isBeyond =
      this.#count(priority, ClusterCount.connections) > this.#limits[priority].maxConnections ||
      this.#connectionsOf(port) > this.#perHost(priority);
    if (isBeyond) {
      assert.equal(pool?.size, 0, 'only a pool without any connection goes beyond the limit');
    }
    if (pool !== null) assert.ok(pool.size < pool.requestCount * this.#ratio, 'a connection that nobody may want');
    this.#connections.push({ socket, worker, priority, port, pool });
  }

  #noteEnded(worker: number): void {
    const ended = this.#connections.length - this.#live.length;
    this.#connections = this.#live;
    this.#requests = this.#unfinished;
    this.#ended += ended;
    // Of a place at a host the line of the other priority hears in time only.
    const isTold = PRIORITIES.every((priority) => this.#perHost(priority) === Number.POSITIVE_INFINITY);
    if (ended > 0) this.#isStale = this.#isStale.map((isStale, other) => isStale || other !== worker || !isTold);
  }

  #assertCounts(): void {
    for (const priority of PRIORITIES) {
      const { maxPendingRequests, maxRequests } = this.#limits[priority];
      const inState = (state: Request['state']): number =>
        this.#requests.filter((request) => request.priority === priority && request.state === state).length;
      assert.equal(this.#count(priority, ClusterCount.connections), this.#liveOf(priority));
      const pools = this.#live.filter((each) => each.priority === priority && each.pool !== null);
      assert.equal(this.#count(priority, ClusterCount.connectionPools), new Set(pools.map(({ pool }) => pool)).size);
      assert.equal(this.#count(priority, ClusterCount.pendingRequests), inState('waiting'));
      assert.equal(this.#count(priority, ClusterCount.requests), inState('active'));
      assert.ok(inState('waiting') <= maxPendingRequests && inState('active') <= maxRequests);
    }
    this.#snapshot.hosts.forEach(({ recordAddress }, index) => {
      const isHere = ({ port }: Connection): boolean => port === index + 1;
      assert.equal(this.#workers.records.activeConnections(recordAddress), this.#live.filter(isHere).length);
      assert.equal(this.#workers.records.activeRequests(recordAddress), this.#busy.filter(isHere).length);
    });
    const pools = new Set([...this.#requests, ...this.#connections].map(({ pool }) => pool));
    for (const pool of pools) if (pool !== null) this.#assertPool(pool);
  }

  #assertPool(pool: StreamPool): void {
    const isHere = (owned: { readonly pool: StreamPool | null }): boolean => owned.pool === pool;
    const size = this.#live.filter(isHere).length;
    const connecting = this.#connecting.filter(isHere).length;
    const idle = size - connecting - this.#busy.filter(isHere).length;
    const waiting = this.#requests.filter((request) => isHere(request) && request.state === 'waiting').length;
    assert.deepEqual(
      { size: pool.size, expected: pool.expectedCount, idle: pool.readyCount, waiting: pool.pendingCount },
      { size, expected: connecting + idle, idle, waiting },
    );
    assert.ok(waiting === 0 || idle === 0, 'a request waits beside a ready connection');
    assert.ok(waiting === 0 || size > 0, 'a request waits for nothing');
  }

  /** Nobody lacks a connection while there is a place for one. */
  #assertNobodyForgotten(): void {
    for (const { worker, priority, pool } of this.#requests) {
      const mayWait =
        this.#isStale[worker] ||
        !pool.lacksConnection ||
        pool.expectedCount >= CONNECTS_PER_CALL ||
        this.#count(priority, ClusterCount.connections) >= this.#limits[priority].maxConnections ||
        this.#connectionsOf(this.#ports.get(pool)!) >= this.#perHost(priority);
      assert.ok(mayWait, 'a request waits for a connection that nobody opens');
    }
  }
}

function pick<T>(items: readonly T[], n: number): T | undefined {
  return items[n % items.length];
}
