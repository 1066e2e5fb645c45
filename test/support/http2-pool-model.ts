// Upstreams of HTTP/2 beside the real pools, connections and sessions of one worker: they read the frames that are sent to them, know
// which streams run, and say what a step has them say. After each step both sides have to agree.

import assert from 'node:assert/strict';
import { setImmediate as turnOver } from 'node:timers/promises';
import { DEFAULT_HTTP2_SETTINGS } from '../../src/config/resources/http2-options.ts';
import { ErrorCode, FrameFlag, FrameType, PREFACE, Setting } from '../../src/data-plane/http/codec/http2/frames.ts';
import type { ResponseReceiver, UpstreamStream } from '../../src/data-plane/http/codec/upstream-stream.ts';
import type { Cluster } from '../../src/data-plane/upstream/cluster.ts';
import type { Host } from '../../src/data-plane/upstream/host.ts';
import type { PooledConnection } from '../../src/data-plane/upstream/pool/connection-owner.ts';
import type { PoolClient } from '../../src/data-plane/upstream/pool/connection-pool.ts';
import type { StreamPool } from '../../src/data-plane/upstream/pool/stream-pool.ts';
import { RetiredHosts } from '../../src/data-plane/upstream/retired-hosts.ts';
import type { ClusterSnapshot } from '../../src/snapshot/index.ts';
import { Framing, Method } from '../../src/wasm/http1.ts';
import { ClusterCount, ClusterPriority } from '../../src/wasm/shared-memory.ts';
import { NO_LIMITS } from './clusters.ts';
import { data, frame, headers, readFrames, word } from './http2-session.ts';
import { streamPool } from './upstream-request.ts';
import { type FakeUpstreamSocket, UpstreamWorkers } from './upstream-workers.ts';

const HEAD = 'GET / HTTP/1.1\r\nhost: a.example\r\n\r\n';
const OK = [[':status', '200']] as const;
const NO_BYTES = Buffer.alloc(0);
const CONNECT_TIMEOUT_MS = 5000;
const IDLE_TIMEOUT_MS = 7000;
/** As many are tried before the upstream has said how many it takes. */
const STREAMS_BEFORE_SETTINGS = 100;

/** No exchange that has begun ends by this side's own fault. */
const BY_UPSTREAM = new Set(['remote reset', 'remote refused stream reset', 'connection termination']);

export interface Limits {
  readonly maxConnections: number;
  readonly maxPendingRequests: number;
  readonly maxRequests: number;
  /** 0 for no limit. */
  readonly maxRequestsPerConnection: number;
  readonly maxConcurrentStreams: number;
  /** Connections for each request. */
  readonly perHostRatio: number;
}

/** How an exchange ends that has begun. */
export type Ending = 'answered' | 'trailers' | 'reset' | 'refused' | 'reset behind the head';

class Request implements PoolClient, ResponseReceiver {
  readonly awaitsUpgrade = false;
  readonly matchesUpstreamScheme = false;
  readonly upstreamWire = null;
  readonly requestFraming = Framing.NONE;
  readonly requestTrailers = null;
  readonly bufferLimitBytes = 1024;
  readonly pool: StreamPool;
  state: 'waiting' | 'active' | 'over' = 'waiting';
  #stream: UpstreamStream | null = null;

  constructor(pool: StreamPool) {
    this.pool = pool;
  }

  onStream(stream: UpstreamStream): void {
    assert.equal(this.state, 'waiting');
    this.state = 'active';
    this.#stream = stream;
    stream.start(this, Method.GET, HEAD, NO_BYTES, 0, 0, true);
  }

  onPoolFailure(): void {
    assert.equal(this.state, 'waiting');
    this.#end();
  }

  onResponseHead(_bytes: Buffer, _start: number, _end: number, isEnd: boolean): boolean {
    assert.equal(this.state, 'active');
    if (isEnd) this.#end();
    return true;
  }

  onResponseBody(_bytes: Buffer, _start: number, _end: number, isEnd: boolean): boolean {
    assert.equal(this.state, 'active');
    if (isEnd) this.#end();
    return true;
  }

  onResponseTrailers(): void {
    assert.equal(this.state, 'active');
  }

  onUpstreamReset(failure: string): void {
    assert.equal(this.state, 'active');
    assert.ok(BY_UPSTREAM.has(failure), failure);
    this.#end();
  }

  onUpstreamDrain(): void {}

  onInterimHead(): void {}

  cancel(): void {
    const wasWaiting = this.state === 'waiting';
    this.state = 'over';
    if (wasWaiting) assert.ok(this.pool.cancel(this));
    else this.#stream!.abort(true);
  }

  #end(): void {
    this.state = 'over';
  }
}

/** The other end of a connection. */
class Upstream {
  readonly socket: FakeUpstreamSocket;
  /** Streams that run. */
  readonly open = new Set<number>();
  /** Streams that it takes at once, as far as it has said so. */
  maxStreams = Number.POSITIVE_INFINITY;
  hasLeft = false;
  #readTo = PREFACE.length;
  #requests = 0;
  #lastId = 0;
  readonly #limits: Limits;

  constructor(socket: FakeUpstreamSocket, limits: Limits) {
    this.socket = socket;
    this.#limits = limits;
  }

  get lastId(): number {
    return this.#lastId;
  }

  say(...frames: readonly Buffer[]): void {
    this.socket.send(Buffer.concat(frames).toString('latin1'));
  }

  /** Reads what the proxy has sent, and holds it against what it may send. */
  read(): void {
    const received = Buffer.from(this.socket.received, 'latin1');
    if (received.length <= this.#readTo) return;
    const frames = readFrames(received.subarray(this.#readTo));
    this.#readTo = received.length;
    for (const { type, flags, streamId } of frames) {
      if (type === FrameType.HEADERS) this.#onRequest(streamId, flags);
      else if (type === FrameType.RST_STREAM) this.open.delete(streamId);
    }
  }

  #onRequest(streamId: number, flags: number): void {
    assert.ok(streamId > this.#lastId && streamId % 2 === 1, `stream ${streamId} behind ${this.#lastId}`);
    assert.ok((flags & FrameFlag.END_STREAM) !== 0);
    assert.ok(!this.hasLeft, 'a request behind a GOAWAY');
    this.#lastId = streamId;
    this.#requests++;
    const { maxConcurrentStreams, maxRequestsPerConnection } = this.#limits;
    const most = Math.min(maxConcurrentStreams, this.maxStreams, STREAMS_BEFORE_SETTINGS);
    assert.ok(this.open.size < most, `more than ${most} streams`);
    assert.ok(maxRequestsPerConnection === 0 || this.#requests <= maxRequestsPerConnection, 'too many requests');
    this.open.add(streamId);
  }
}

export class Http2PoolModel {
  readonly #workers: UpstreamWorkers;
  readonly #hostCount: number;
  #snapshot!: ClusterSnapshot;
  #limits!: Limits;
  #cluster: Cluster | null = null;
  #upstreams: Upstream[] = [];
  #requests: Request[] = [];

  constructor(hostCount: number) {
    this.#workers = new UpstreamWorkers(1, (socket) => this.#onSocket(socket));
    this.#hostCount = hostCount;
  }

  /** A new cluster in the place of the one before. */
  async begin(limits: Limits): Promise<void> {
    // Where a run has failed.
    this.#cluster?.close();
    await turnOver();
    this.#limits = limits;
    const { maxRequestsPerConnection, maxConcurrentStreams, perHostRatio, ...breaker } = limits;
    this.#snapshot = this.#workers.cluster(this.#hostCount, {
      ...(perHostRatio > 1 ? { preconnect: { perHostRatio, predictiveRatio: 1 } } : {}),
      circuitBreakers: { default: { ...NO_LIMITS, ...breaker }, high: { ...NO_LIMITS, ...breaker } },
      http2: { settings: { ...DEFAULT_HTTP2_SETTINGS, maxConcurrentStreams }, use: 'always' },
      maxRequestsPerConnection,
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
      idleTimeoutMs: IDLE_TIMEOUT_MS,
    });
    this.#cluster = this.#workers.open(0, this.#snapshot);
    this.#upstreams = [];
    this.#requests = [];
  }

  // ---- Acts ----

  arrive(index: number, count: number): void {
    const host = pick(this.#cluster!.hosts, index);
    if (host === undefined) return;
    const pool = streamPool(host as Host);
    for (let n = 0; n < count; n++) {
      const request = new Request(pool);
      this.#requests.push(request);
      pool.newStream(request);
    }
  }

  /** @param maxStreams null where it says nothing of them. */
  async accept(n: number, maxStreams: number | null): Promise<void> {
    const upstream = pick(this.#connecting, n);
    if (upstream === undefined) return;
    upstream.socket.accept();
    // What leaves at once is on its way to an upstream that has said nothing yet.
    await turnOver();
    upstream.read();
    if (upstream.socket.isOpen) this.#announce(upstream, maxStreams);
  }

  refuse(n: number): void {
    pick(this.#connecting, n)?.socket.refuse();
  }

  announce(n: number, maxStreams: number): void {
    const upstream = pick(this.#open, n);
    if (upstream !== undefined) this.#announce(upstream, maxStreams);
  }

  end(n: number, how: Ending): void {
    const busy = this.#open.flatMap((upstream) => [...upstream.open].map((id) => ({ upstream, id })));
    const exchange = pick(busy, n);
    if (exchange === undefined) return;
    const { upstream, id } = exchange;
    upstream.open.delete(id);
    upstream.say(...ENDINGS[how](id));
  }

  /** It takes none of the streams above one of those that it has seen. */
  leave(n: number, share: number): void {
    const upstream = pick(
      this.#open.filter(({ hasLeft }) => !hasLeft),
      n,
    );
    if (upstream === undefined) return;
    const last = Math.floor((upstream.lastId * share) / 100);
    upstream.hasLeft = true;
    for (const id of upstream.open) if (id > last) upstream.open.delete(id);
    upstream.say(frame(FrameType.GOAWAY, 0, 0, Buffer.concat([word(last), word(0)])));
  }

  lose(n: number, byReset: boolean): void {
    const upstream = pick(this.#open, n);
    if (byReset) upstream?.socket.reset();
    else upstream?.socket.close();
  }

  cancel(n: number): void {
    pick(this.#unfinished, n)?.cancel();
  }

  setHost(index: number, isMember: boolean): void {
    const members = new Set(this.#cluster!.hosts.map(({ record }) => record));
    const { recordAddress } = this.#snapshot.hosts[index]!;
    if (isMember) members.add(recordAddress);
    else members.delete(recordAddress);
    const hosts = this.#snapshot.hosts.filter((host) => members.has(host.recordAddress));
    this.#cluster!.updateHosts({ ...this.#snapshot, hosts }, new RetiredHosts(() => {}));
  }

  renew(): void {
    for (const host of this.#cluster!.hosts) host.renewConnections();
  }

  turn(ms: number): void {
    this.#workers.clock.turn(ms);
  }

  /** Also those that connect. */
  get connectionCount(): number {
    return this.#upstreams.length;
  }

  // ---- Checks ----

  async step(act: () => void | Promise<void>): Promise<void> {
    await act();
    // Frames leave at the end of a turn.
    await turnOver();
    await turnOver();
    this.#upstreams = this.#upstreams.filter(({ socket }) => socket.isLive);
    for (const upstream of this.#open) upstream.read();
    this.#assertCounts();
    this.#assertReady();
    for (const pool of new Set(this.#requests.map((request) => request.pool))) this.#assertPool(pool);
  }

  /** With upstreams that answer everybody is served or refused in the end, and nothing is left behind. */
  async finish(): Promise<void> {
    for (let round = 0; this.#unfinished.length + this.#connecting.length > 0; round++) {
      assert.ok(round < 1000, 'requests that nobody serves');
      while (this.#connecting.length > 0) await this.step(() => this.accept(0, 5));
      while (this.#open.some(({ open }) => open.size > 0)) await this.step(() => this.end(0, 'answered'));
      for (const upstream of this.#open) {
        if (upstream.maxStreams === 0 && !upstream.hasLeft) await this.step(() => this.#announce(upstream, 5));
      }
      // Who waits under the circuit breaker is looked at in time.
      await this.step(() => this.turn(40));
    }
    await this.step(() => this.#cluster!.close());
    assert.equal(this.#upstreams.length, 0, 'connections that nobody closes');
  }

  // ---- Inside ----

  get #unfinished(): Request[] {
    return this.#requests.filter(({ state }) => state !== 'over');
  }

  get #connecting(): Upstream[] {
    return this.#upstreams.filter(({ socket }) => socket.isConnecting);
  }

  get #open(): Upstream[] {
    return this.#upstreams.filter(({ socket }) => socket.isOpen);
  }

  #onSocket(socket: FakeUpstreamSocket): void {
    this.#upstreams.push(new Upstream(socket, this.#limits));
  }

  #announce(upstream: Upstream, maxStreams: number | null): void {
    if (maxStreams !== null) upstream.maxStreams = maxStreams;
    const setting = maxStreams === null ? [] : [0, Setting.MAX_CONCURRENT_STREAMS, 0, 0, 0, maxStreams];
    upstream.say(frame(FrameType.SETTINGS, 0, 0, setting));
  }

  #count(count: ClusterCount): number {
    return this.#workers.records.clusterCount(this.#snapshot.recordAddress, ClusterPriority.default, count);
  }

  #assertCounts(): void {
    const unfinished = this.#unfinished;
    const waiting = unfinished.filter(({ state }) => state === 'waiting').length;
    const active = unfinished.length - waiting;
    const running = this.#open.reduce((sum, { open }) => sum + open.size, 0);
    assert.deepEqual(
      {
        connections: this.#count(ClusterCount.connections),
        waiting: this.#count(ClusterCount.pendingRequests),
        active: this.#count(ClusterCount.requests),
        running: active,
      },
      { connections: this.#upstreams.length, waiting, active, running },
    );
    assert.ok(active <= this.#limits.maxRequests && waiting <= this.#limits.maxPendingRequests);
    const stat = this.#workers.clusterStat(this.#snapshot, 'upstream_rq_active');
    assert.equal(stat, active);
  }

  /** What takes streams is known to its pool: nobody else would give it any. */
  #assertReady(): void {
    for (const { socket } of this.#open) {
      const { freeStreams, isReady } = socket.owner as unknown as PooledConnection;
      assert.equal(isReady, freeStreams > 0);
    }
  }

  #assertPool(pool: StreamPool): void {
    if (pool.pendingCount === 0) return;
    assert.equal(pool.readyCount, 0, 'a request waits beside a connection that takes it');
    assert.ok(pool.size > 0, 'a request waits for nothing');
  }
}

const ENDINGS: Readonly<Record<Ending, (id: number) => Buffer[]>> = {
  answered: (id) => [headers(id, OK)],
  trailers: (id) => [headers(id, OK, 0), data(id, 'body'), headers(id, [['x-end', 'yes']])],
  reset: (id) => [frame(FrameType.RST_STREAM, 0, id, word(ErrorCode.INTERNAL_ERROR))],
  refused: (id) => [frame(FrameType.RST_STREAM, 0, id, word(ErrorCode.REFUSED_STREAM))],
  'reset behind the head': (id) => [headers(id, OK, 0), frame(FrameType.RST_STREAM, 0, id, word(ErrorCode.CANCEL))],
};

function pick<T>(items: readonly T[], n: number): T | undefined {
  return items[n % items.length];
}
