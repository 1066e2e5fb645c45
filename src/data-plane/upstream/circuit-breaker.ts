// Limits of one cluster and routing priority. The counts are shared by all workers; what is acquired must be
// released exactly once, also when the connection or request ends by accident. A connection that is released makes
// place for one that a pool waits for.

import type { CircuitBreakerThresholds } from '../../snapshot/index.ts';
import { ClusterCount, type ClusterPriority, type SharedRecords } from '../../wasm/shared-records.ts';
import type { WorkerContext } from '../worker-context.ts';
import { type WaitingPool, WaitingPools } from './pool/waiting-pools.ts';

export class CircuitBreaker {
  readonly #context: WorkerContext;
  readonly #records: SharedRecords;
  readonly #cluster: number;
  readonly #priority: ClusterPriority;
  readonly #limits: CircuitBreakerThresholds;
  /** Null until a pool lacks a connection. */
  #waitingPools: WaitingPools | null = null;

  constructor(context: WorkerContext, cluster: number, priority: ClusterPriority, limits: CircuitBreakerThresholds) {
    this.#context = context;
    this.#records = context.records;
    this.#cluster = cluster;
    this.#priority = priority;
    this.#limits = limits;
  }

  tryAcquireConnection(): boolean {
    return this.#records.tryAcquire(
      this.#cluster,
      this.#priority,
      ClusterCount.connections,
      this.#limits.maxConnections,
    );
  }

  /** Takes a connection beyond any limit: a pool without one must be able to make progress. */
  acquireConnection(): void {
    this.#records.addClusterCount(this.#cluster, this.#priority, ClusterCount.connections, 1);
  }

  releaseConnection(): void {
    this.#records.addClusterCount(this.#cluster, this.#priority, ClusterCount.connections, -1);
    this.#waitingPools?.onPlaceFreed();
  }

  /**
   * Has the pool open the connections that it lacks, now or as soon as there are places.
   * @param most that it may open now.
   * @returns false when the limit makes it wait.
   */
  openConnections(pool: WaitingPool, most: number): boolean {
    this.#waitingPools ??= new WaitingPools(this.#context, () => this.tryAcquireConnection());
    return this.#waitingPools.add(pool, most);
  }

  tryAcquirePending(): boolean {
    const limit = this.#limits.maxPendingRequests;
    return this.#records.tryAcquire(this.#cluster, this.#priority, ClusterCount.pendingRequests, limit);
  }

  releasePending(): void {
    this.#records.addClusterCount(this.#cluster, this.#priority, ClusterCount.pendingRequests, -1);
  }

  tryAcquireRequest(): boolean {
    return this.#records.tryAcquire(this.#cluster, this.#priority, ClusterCount.requests, this.#limits.maxRequests);
  }

  releaseRequest(): void {
    this.#records.addClusterCount(this.#cluster, this.#priority, ClusterCount.requests, -1);
  }
}
