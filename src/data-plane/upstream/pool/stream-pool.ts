// HTTP/1 connections of this worker to one host. One request per connection at a time; the most recently used
// idle connection goes first, so that surplus ones grow old and close.
//
//                 open                    onConnected
//   newStream ──────────────► connecting ─────────────► idle ◄─── request done, reusable ───┐
//       │                          │ failed, timeout      │ newStream, or first in the queue │
//       │  nothing idle: queue     ▼                      ▼                                  │
//       └──────────► pending    closed  ◄──────────────  busy ───────────────────────────────┘
//
// Nobody waits beside an idle connection: one that becomes ready serves the queue until it is taken, and who meets it
// while the limit of requests is reached fails. Every queued request has a connection on its way, or its pool stands in
// the line of those that lack one under the circuit breaker; a pool without any opens one beyond the limit. With each
// request connections may be opened for those to come, below every limit. As long as it has a connection, a pool holds
// one of the places that pools have under the circuit breaker; where none is left, a pool that carries nothing closes
// for it. A failure to connect fails all that wait. A draining pool closes what is idle, and each other connection
// after its request.

import { CLUSTER_STATS } from '../../../stats/index.ts';
import { Http1ClientConnection } from '../../http/codec/http1/client-connection.ts';
import type { WorkerContext } from '../../worker-context.ts';
import type { CircuitBreaker } from '../circuit-breaker.ts';
import type { ConnectionOwner } from './connection-owner.ts';
import type { ConnectionPool, PoolClient } from './connection-pool.ts';
import { connectFailure, transportDetail, type UpstreamFailure } from './failure.ts';
import type { PoolHost, PoolTotals } from './pool-host.ts';
import { CONNECTS_PER_CALL, type WaitingPool } from './waiting-pools.ts';

const {
  upstream_cx_overflow,
  upstream_cx_pool_overflow,
  upstream_rq_pending_active,
  upstream_rq_pending_failure_eject,
  upstream_rq_pending_overflow,
  upstream_rq_pending_total,
  upstream_rq_cancelled,
} = CLUSTER_STATS.index;

export class StreamPool implements ConnectionPool, ConnectionOwner<Http1ClientConnection>, WaitingPool {
  readonly #context: WorkerContext;
  readonly #host: PoolHost;
  /** Limits of the routing priority that the pool serves. */
  readonly breaker: CircuitBreaker;
  readonly preamble: Buffer | null;
  readonly #connections = new Set<Http1ClientConnection>();
  readonly #idle: Http1ClientConnection[] = [];
  #pending: PoolClient[] = [];
  #connecting = 0;
  #isDraining = false;
  /** Under the circuit breaker. */
  #hasPlace = false;
  /** Connections for each request that runs or waits, 1 or more. */
  readonly #ratio: number;
  /** Null when nobody wants to know. */
  readonly #totals: PoolTotals | null;
  #notedRequests = 0;
  #notedConnections = 0;

  constructor(context: WorkerContext, host: PoolHost, breaker: CircuitBreaker, preamble: Buffer | null = null) {
    this.#context = context;
    this.#host = host;
    this.breaker = breaker;
    this.preamble = preamble;
    this.#ratio = host.cluster.settings.preconnect?.perHostRatio ?? 1;
    this.#totals = host.cluster.forecast?.totals ?? null;
  }

  get size(): number {
    return this.#connections.size;
  }

  get idleCount(): number {
    return this.#idle.length;
  }

  get pendingCount(): number {
    return this.#pending.length;
  }

  get isUsed(): boolean {
    return this.#connections.size > 0;
  }

  get connectingCount(): number {
    return this.#connecting;
  }

  get lacksConnection(): boolean {
    return this.#pending.length > this.#connecting;
  }

  /** Requests that run or wait. */
  get requestCount(): number {
    return this.#pending.length + this.#connections.size - this.#idle.length - this.#connecting;
  }

  newStream(client: PoolClient): void {
    const connections = this.#connections.size;
    if (this.#idle.length > 0) {
      this.#attach(client);
      this.#openAhead(CONNECTS_PER_CALL);
      this.#note();
      return;
    }
    if (this.#pending.length >= this.#connecting && this.#context.overload.refusesUpstreamConnection()) {
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
    this.#pending.push(client);
    this.#openForPending();
    this.#openAhead(CONNECTS_PER_CALL - (this.#connections.size - connections));
    this.#note();
  }

  openForNext(ratio: number): boolean {
    return this.#mayOpenAhead && (this.requestCount + 1) * ratio > this.#connections.size && this.#tryOpenAhead();
  }

  cancel(client: PoolClient): boolean {
    const index = this.#pending.indexOf(client);
    if (index === -1) return false;
    this.#pending.splice(index, 1);
    this.#leaveQueue();
    this.#count(upstream_rq_cancelled);
    this.#note();
    this.#host.onUserGone();
    return true;
  }

  closeUnused(): boolean {
    if (!this.#hasPlace || this.#pending.length > 0 || this.#idle.length < this.#connections.size) return false;
    for (const connection of this.#idle.splice(0)) connection.close();
    return !this.#hasPlace;
  }

  renew(): void {
    for (const connection of this.#connections) connection.closeAfterRequest();
  }

  drain(): void {
    this.#isDraining = true;
    for (const connection of this.#idle.splice(0)) connection.close();
  }

  close(): void {
    this.#isDraining = true;
    this.#failPending('connection termination', '');
    for (const connection of [...this.#connections]) connection.close();
    this.#connecting = 0;
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

  onConnected(connection: Http1ClientConnection): void {
    this.#connecting--;
    this.#makeReady(connection);
    this.#openForPending();
    this.#note();
  }

  onConnectFailed(connection: Http1ClientConnection, error: NodeJS.ErrnoException | null): void {
    this.#connecting--;
    this.#connections.delete(connection);
    const log = this.#context.logs.pool;
    if (log.enabled('debug')) {
      log.debug(`cannot connect to ${this.#host.label}: ${error?.message ?? 'closed'}`);
    }
    this.#failPending(connectFailure(error), transportDetail(error));
    this.#leaveUnused();
    this.#note();
    this.#host.onUserGone();
  }

  onConnectTimeout(connection: Http1ClientConnection): void {
    this.#connecting--;
    this.#connections.delete(connection);
    this.#failPending('connection timeout', '');
    this.#leaveUnused();
    this.#note();
    this.#host.onUserGone();
  }

  onReusable(connection: Http1ClientConnection): void {
    this.#makeReady(connection);
    this.#note();
  }

  onClosed(connection: Http1ClientConnection): void {
    this.#connections.delete(connection);
    const index = this.#idle.lastIndexOf(connection);
    if (index !== -1) this.#idle.splice(index, 1);
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

  #makeReady(connection: Http1ClientConnection): void {
    this.#idle.push(connection);
    // A client that fails may come back with its next request meanwhile, and take the connection.
    while (this.#pending.length > 0 && this.#idle.length > 0) {
      const next = this.#pending.shift()!;
      this.#leaveQueue();
      this.#attach(next);
    }
    if (this.#isDraining) this.drain();
  }

  /** To the connection that was used last. It stays idle when there is no place for the request. */
  #attach(client: PoolClient): void {
    if (this.breaker.tryAcquireRequest()) {
      client.onStream(this.#idle.pop()!);
      return;
    }
    this.#count(upstream_rq_pending_overflow);
    client.onPoolFailure('overflow', '');
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
    for (let n = 0; n < most && this.requestCount * this.#ratio > this.#connections.size; n++) {
      if (!this.#tryOpenAhead()) return;
    }
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
    totals.requests += this.requestCount - this.#notedRequests;
    totals.connections += this.#connections.size - this.#notedConnections;
    this.#notedRequests = this.requestCount;
    this.#notedConnections = this.#connections.size;
  }

  #openConnection(): void {
    this.#connections.add(new Http1ClientConnection(this.#context, this.#host, this));
    this.#connecting++;
    this.#note();
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
