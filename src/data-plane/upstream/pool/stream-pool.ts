// Connections of this worker to one host, of whatever protocol. One of HTTP/1 carries a stream at a time, others as many as
// both sides agree on; the one that was used last goes first, so that surplus ones grow old and close.
//
//                 open                    onConnected
//   newStream ──────────────► connecting ─────────────► ready ◄─── a stream done, takes more ───┐
//       │                          │ failed, timeout      │ newStream, or first in the queue     │
//       │  none ready: queue       ▼                      ▼                                      │
//       └──────────► pending    closed  ◄──────────────  full ───────────────────────────────────┘
//
// Nobody waits beside a ready connection: one that becomes ready serves the queue until it is full, and who meets it
// while the limit of requests is reached fails. Every queued request has a place on a connection on its way, or its pool
// stands in the line of those that lack one under the circuit breaker; a pool without any opens one beyond the limit. With
// each request connections may be opened for those to come, below every limit. As long as it has a connection, a pool holds
// one of the places that pools have under the circuit breaker; where none is left, a pool that carries nothing closes
// for it. A failure to connect fails all that wait. A draining pool closes what is idle, and each other connection
// after its streams.

import { CLUSTER_STATS } from '../../../stats/index.ts';
import type { WorkerContext } from '../../worker-context.ts';
import type { CircuitBreaker } from '../circuit-breaker.ts';
import type { Opening } from '../opening.ts';
import type { ConnectionOwner, OpenConnection, PooledConnection } from './connection-owner.ts';
import type { ConnectionPool, PoolClient } from './connection-pool.ts';
import { connectFailure, transportDetail, type UpstreamFailure } from './failure.ts';
import type { PoolHost, PoolTotals } from './pool-host.ts';
import { CONNECTS_PER_CALL, type WaitingPool } from './waiting-pools.ts';

/** As loggers know this file. */
const FILE = 'src/data-plane/upstream/pool/stream-pool.ts';

const {
  upstream_cx_overflow,
  upstream_cx_pool_overflow,
  upstream_rq_pending_active,
  upstream_rq_pending_failure_eject,
  upstream_rq_pending_overflow,
  upstream_rq_pending_total,
  upstream_rq_cancelled,
} = CLUSTER_STATS.index;

export class StreamPool implements ConnectionPool, ConnectionOwner, WaitingPool {
  readonly #context: WorkerContext;
  readonly #host: PoolHost;
  /** Limits of the routing priority that the pool serves. */
  readonly breaker: CircuitBreaker;
  readonly opening: Opening;
  readonly #open: OpenConnection;
  readonly #connections = new Set<PooledConnection>();
  /** Those that take a stream now. */
  readonly #ready: PooledConnection[] = [];
  #pending: PoolClient[] = [];
  /** The first ones of these, which have had a stream before. */
  #pendingAgain = 0;
  /** Streams that run, and those that connections take beside them, now or when they are there. */
  #running = 0;
  #expected = 0;
  #isDraining = false;
  /** Under the circuit breaker. */
  #hasPlace = false;
  /** Connections for each request that runs or waits, 1 or more. */
  readonly #ratio: number;
  /** Null when nobody wants to know. */
  readonly #totals: PoolTotals | null;
  #notedRequests = 0;
  #notedCapacity = 0;

  constructor(context: WorkerContext, host: PoolHost, breaker: CircuitBreaker, opening: Opening, open: OpenConnection) {
    this.#context = context;
    this.#open = open;
    this.#host = host;
    this.breaker = breaker;
    this.opening = opening;
    this.#ratio = host.cluster.settings.preconnect?.perHostRatio ?? 1;
    this.#totals = host.cluster.forecast?.totals ?? null;
  }

  get size(): number {
    return this.#connections.size;
  }

  get readyCount(): number {
    return this.#ready.length;
  }

  get pendingCount(): number {
    return this.#pending.length;
  }

  get isUsed(): boolean {
    return this.#connections.size > 0;
  }

  /** Streams that its connections take beside those that run, now or when they are there. */
  get expectedCount(): number {
    return this.#expected;
  }

  /** Nobody waits beside a ready connection: what is expected comes with those on their way. */
  get lacksConnection(): boolean {
    return this.#pending.length > this.#expected;
  }

  /** Requests that run or wait. */
  get requestCount(): number {
    return this.#pending.length + this.#running;
  }

  newStream(client: PoolClient, isAgain = false): void {
    const connections = this.#connections.size;
    if (this.#ready.length > 0) {
      this.#attach(client);
      this.#openAhead(CONNECTS_PER_CALL);
      this.#note();
      return;
    }
    if (this.#pending.length >= this.#expected && this.#context.overload.refusesUpstreamConnection()) {
      client.onPoolFailure('overflow', '');
      return;
    }
    if (!this.#takePlace()) {
      this.#count(upstream_cx_pool_overflow);
      client.onPoolFailure('no pool', '');
      return;
    }
    if (!this.breaker.tryAcquirePending()) {
      this.#leaveUnused();
      this.#count(upstream_rq_pending_overflow);
      client.onPoolFailure('overflow', '');
      return;
    }
    this.#count(upstream_rq_pending_total);
    this.#gauge(upstream_rq_pending_active, 1);
    if (isAgain) {
      this.#pending.splice(this.#pendingAgain, 0, client);
      this.#pendingAgain += 1;
    } else this.#pending.push(client);
    this.#openForPending();
    this.#openAhead(CONNECTS_PER_CALL - (this.#connections.size - connections));
    this.#note();
  }

  openForNext(ratio: number): boolean {
    return this.#mayOpenAhead && (this.requestCount + 1) * ratio > this.#capacity && this.#tryOpenAhead();
  }

  cancel(client: PoolClient): boolean {
    const index = this.#pending.indexOf(client);
    if (index === -1) return false;
    this.#pending.splice(index, 1);
    if (index < this.#pendingAgain) this.#pendingAgain -= 1;
    this.#leaveQueue();
    this.#count(upstream_rq_cancelled);
    if (this.#isDraining) this.drain();
    this.#note();
    this.#host.onUserGone();
    return true;
  }

  closeUnused(): boolean {
    if (!this.#hasPlace || this.requestCount > 0 || this.#ready.length < this.#connections.size) return false;
    this.#retireReady();
    return !this.#hasPlace;
  }

  renew(): void {
    for (const connection of this.#connections) connection.closeAfterStreams();
  }

  drain(): void {
    this.#isDraining = true;
    this.#retireReady();
    // Those that take no stream now may carry none either, and would stay. Who waits still needs them.
    if (this.#pending.length === 0) this.renew();
  }

  close(): void {
    this.#isDraining = true;
    this.#failPending('connection termination', '');
    for (const connection of [...this.#connections]) connection.close();
    this.#note();
  }

  get isHostFull(): boolean {
    return this.#host.isFull(this.breaker);
  }

  tryOpenConnection(): boolean {
    const hasPlace = this.#host.tryAcquireConnection(this.breaker);
    if (hasPlace) this.#openConnection();
    return hasPlace;
  }

  // ---- Called by connections ----

  onReplaced(connection: PooledConnection, by: PooledConnection): void {
    this.#forget(connection);
    this.#add(by);
  }

  onConnected(connection: PooledConnection): void {
    this.onCapacity(connection);
    this.#openForPending();
    this.#note();
  }

  onConnectFailed(connection: PooledConnection, error: NodeJS.ErrnoException | null): void {
    const log = this.#context.logs.pool.ofFile(FILE);
    if (log.enabled('debug')) {
      log.debug(`cannot connect to ${this.#host.label}: ${error?.message ?? 'closed'}`);
    }
    this.#failConnecting(connection, connectFailure(error), transportDetail(error));
  }

  onConnectTimeout(connection: PooledConnection): void {
    this.#failConnecting(connection, 'connection timeout', '');
  }

  onStreamEnd(connection: PooledConnection): void {
    this.#running--;
    this.onCapacity(connection);
    this.#note();
  }

  onCapacity(connection: PooledConnection): void {
    const { freeStreams } = connection;
    this.#expect(connection, freeStreams + connection.comingStreams);
    if (freeStreams > 0) {
      if (!connection.isReady) this.#makeReady(connection);
    } else if (connection.isReady) this.#unready(connection);
  }

  onClosed(connection: PooledConnection, lostStreams: number): void {
    this.#running -= lostStreams;
    this.#forget(connection);
    // Who waits may have no other connection to wait for.
    this.#openForPending();
    this.#leaveUnused();
    this.#note();
    this.#host.onUserGone();
  }

  // ---- Inside ----

  #takePlace(): boolean {
    if (this.#hasPlace) return true;
    const { breaker } = this;
    this.#hasPlace =
      breaker.tryAcquirePool() || (this.#host.cluster.closeUnusedPool(breaker.priority) && breaker.tryAcquirePool());
    return this.#hasPlace;
  }

  #leaveUnused(): void {
    if (!this.#hasPlace || this.#connections.size > 0) return;
    this.#hasPlace = false;
    this.breaker.releasePool();
  }

  #makeReady(connection: PooledConnection): void {
    connection.isReady = true;
    this.#ready.push(connection);
    // A client that fails may come back with its next request meanwhile, and take the connection.
    while (this.#pending.length > 0 && this.#ready.length > 0) {
      const next = this.#pending.shift()!;
      if (this.#pendingAgain > 0) this.#pendingAgain -= 1;
      this.#leaveQueue();
      this.#attach(next);
    }
    if (this.#isDraining) this.drain();
  }

  #unready(connection: PooledConnection): void {
    connection.isReady = false;
    this.#ready.splice(this.#ready.lastIndexOf(connection), 1);
  }

  /** Idle connections close; the others take no more streams. */
  #retireReady(): void {
    for (const connection of this.#ready.splice(0)) {
      connection.isReady = false;
      connection.closeAfterStreams();
    }
  }

  /** To the connection that was used last. It stays ready when there is no place for the request. */
  #attach(client: PoolClient): void {
    if (!this.breaker.tryAcquireRequest()) {
      this.#count(upstream_rq_pending_overflow);
      client.onPoolFailure('overflow', '');
      return;
    }
    const connection = this.#ready.at(-1)!;
    if (connection.freeStreams === 1) {
      connection.isReady = false;
      this.#ready.pop();
    }
    connection.expected--;
    this.#expected--;
    this.#running++;
    client.onStream(connection.openStream());
  }

  #expect(connection: PooledConnection, streams: number): void {
    this.#expected += streams - connection.expected;
    connection.expected = streams;
  }

  #forget(connection: PooledConnection): void {
    this.#connections.delete(connection);
    this.#expect(connection, 0);
    if (connection.isReady) this.#unready(connection);
  }

  #failConnecting(connection: PooledConnection, failure: UpstreamFailure, detail: string): void {
    this.#forget(connection);
    this.#failPending(failure, detail);
    if (this.#isDraining) this.drain();
    this.#leaveUnused();
    this.#note();
    this.#host.onUserGone();
  }

  #openForPending(): void {
    if (!this.lacksConnection) return;
    let most = CONNECTS_PER_CALL;
    if (this.#connections.size === 0) {
      this.#openFirst();
      most--;
    }
    if (this.lacksConnection && !this.breaker.openConnections(this, most)) this.#count(upstream_cx_overflow);
  }

  /** What requests to come may want, as far as this one stands for more: nobody waits for these. */
  #openAhead(most: number): void {
    if (this.#ratio === 1 || !this.#mayOpenAhead) return;
    for (let n = 0; n < most && this.requestCount * this.#ratio > this.#capacity; n++) {
      if (!this.#tryOpenAhead()) return;
    }
  }

  /** Streams that all its connections carry, or could, also those on their way. */
  get #capacity(): number {
    return this.#running + this.#expected;
  }

  /** Hosts that are not well get no more than requests need, and places that others wait for are theirs. */
  get #mayOpenAhead(): boolean {
    return !this.#isDraining && this.#host.isHealthy && !this.breaker.isAwaited;
  }

  #tryOpenAhead(): boolean {
    // No pool goes for the sake of requests to come.
    this.#hasPlace ||= this.breaker.tryAcquirePool();
    if (!this.#hasPlace) return false;
    const isOpened = this.tryOpenConnection();
    if (!isOpened) this.#count(upstream_cx_overflow);
    this.#leaveUnused();
    return isOpened;
  }

  #note(): void {
    const totals = this.#totals;
    if (totals === null) return;
    const capacity = this.#capacity;
    totals.requests += this.requestCount - this.#notedRequests;
    totals.capacity += capacity - this.#notedCapacity;
    this.#notedRequests = this.requestCount;
    this.#notedCapacity = capacity;
  }

  #openConnection(): void {
    this.#add(this.#open(this.#context, this.#host, this));
    this.#note();
  }

  #add(connection: PooledConnection): void {
    this.#connections.add(connection);
    this.#expect(connection, connection.comingStreams);
  }

  #openFirst(): void {
    if (this.tryOpenConnection()) return;
    this.#count(upstream_cx_overflow);
    this.#host.acquireConnection(this.breaker);
    this.#openConnection();
  }

  #failPending(failure: UpstreamFailure, detail: string): void {
    const failed = this.#pending;
    this.#pending = [];
    this.#pendingAgain = 0;
    for (const client of failed) {
      this.#leaveQueue();
      this.#count(upstream_rq_pending_failure_eject);
      client.onPoolFailure(failure, detail);
    }
  }

  #leaveQueue(): void {
    this.breaker.releasePending();
    this.#gauge(upstream_rq_pending_active, -1);
  }

  #count(stat: number): void {
    this.#context.stats.values[this.#host.cluster.statBase + stat]! += 1;
  }

  #gauge(stat: number, change: number): void {
    this.#context.stats.values[this.#host.cluster.statBase + stat]! += change;
  }
}
