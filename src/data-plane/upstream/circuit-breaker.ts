// Limits of one cluster and routing priority. The counts are shared by all workers; what is acquired must be
// released exactly once, also when the connection or request ends by accident. A connection that is released makes
// place for one that a pool waits for.

import { circuitLimits, retryLimit } from '../../base/circuit-limits.ts';
import type { RuntimeDerived } from '../../base/runtime.ts';
import type { CircuitBreakerThresholds } from '../../snapshot/index.ts';
import { ClusterCount, ClusterPriority, type SharedRecords } from '../../wasm/shared-records.ts';
import type { WorkerContext } from '../worker-context.ts';
import { type WaitingPool, WaitingPools } from './pool/waiting-pools.ts';

export class CircuitBreaker {
  readonly #context: WorkerContext;
  readonly #records: SharedRecords;
  readonly #cluster: number;
  readonly priority: ClusterPriority;
  /** The configured ones, as the runtime has them. */
  readonly #limits: RuntimeDerived<CircuitBreakerThresholds>;
  /** Connections that one host may have, whatever their priority; Infinity for no limit. */
  readonly maxConnectionsPerHost: number;
  /** Null until a pool lacks a connection. */
  #waitingPools: WaitingPools | null = null;

  /** @param cluster address of its record. */
  constructor(
    context: WorkerContext,
    cluster: number,
    clusterName: string,
    priority: ClusterPriority,
    limits: CircuitBreakerThresholds,
  ) {
    this.#context = context;
    this.#records = context.records;
    this.#cluster = cluster;
    this.priority = priority;
    this.maxConnectionsPerHost = limits.maxConnectionsPerHost ?? Number.POSITIVE_INFINITY;
    const priorityName = priority === ClusterPriority.default ? 'default' : 'high';
    this.#limits = context.runtime.derived((values) => circuitLimits(values, clusterName, priorityName, limits));
  }

  /** Of the cluster alone: Host.tryAcquireConnection asks here. */
  tryAcquireConnection(): boolean {
    return this.#records.tryAcquire(
      this.#cluster,
      this.priority,
      ClusterCount.connections,
      this.#limits.value.maxConnections,
    );
  }

  /** Takes a connection beyond any limit: a pool without one must be able to make progress. */
  acquireConnection(): void {
    this.#records.addClusterCount(this.#cluster, this.priority, ClusterCount.connections, 1);
  }

  releaseConnection(): void {
    this.#records.addClusterCount(this.#cluster, this.priority, ClusterCount.connections, -1);
    this.#waitingPools?.onPlaceFreed();
  }

  /** Some pool waits for a place. */
  get isAwaited(): boolean {
    return this.#waitingPools?.isAwaited ?? false;
  }

  /**
   * Has the pool open the connections that it lacks, now or as soon as there are places.
   * @param most that it may open now.
   * @returns false when the limit makes it wait.
   */
  openConnections(pool: WaitingPool, most: number): boolean {
    this.#waitingPools ??= new WaitingPools(this.#context);
    return this.#waitingPools.add(pool, most);
  }

  /** For a pool that is to have connections. */
  tryAcquirePool(): boolean {
    const limit = this.#limits.value.maxConnectionPools ?? Number.POSITIVE_INFINITY;
    return this.#records.tryAcquire(this.#cluster, this.priority, ClusterCount.connectionPools, limit);
  }

  releasePool(): void {
    this.#records.addClusterCount(this.#cluster, this.priority, ClusterCount.connectionPools, -1);
  }

  tryAcquirePending(): boolean {
    const limit = this.#limits.value.maxPendingRequests;
    return this.#records.tryAcquire(this.#cluster, this.priority, ClusterCount.pendingRequests, limit);
  }

  releasePending(): void {
    this.#records.addClusterCount(this.#cluster, this.priority, ClusterCount.pendingRequests, -1);
  }

  tryAcquireRequest(): boolean {
    return this.#records.tryAcquire(
      this.#cluster,
      this.priority,
      ClusterCount.requests,
      this.#limits.value.maxRequests,
    );
  }

  releaseRequest(): void {
    this.#records.addClusterCount(this.#cluster, this.priority, ClusterCount.requests, -1);
  }

  /** For a retry, from the decision to what becomes of it. */
  tryAcquireRetry(): boolean {
    return this.#records.tryAcquire(this.#cluster, this.priority, ClusterCount.retries, this.#retryLimit());
  }

  /** Beyond any limit: for one that has been decided on, under a cluster that has been replaced since. */
  acquireRetry(): void {
    this.#records.addClusterCount(this.#cluster, this.priority, ClusterCount.retries, 1);
  }

  releaseRetry(): void {
    this.#records.addClusterCount(this.#cluster, this.priority, ClusterCount.retries, -1);
  }

  #retryLimit(): number {
    const { requests, pendingRequests } = ClusterCount;
    const running =
      this.#records.clusterCount(this.#cluster, this.priority, requests) +
      this.#records.clusterCount(this.#cluster, this.priority, pendingRequests);
    return retryLimit(this.#limits.value, running);
  }
}
