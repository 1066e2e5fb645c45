// Limits of one cluster and routing priority. The counts are shared by all workers; what is acquired must be
// released exactly once, also when the connection or request ends by accident.

import type { CircuitBreakerThresholds } from '../../snapshot/index.ts';
import { ClusterCount, type ClusterPriority, type SharedRecords } from '../../wasm/shared-records.ts';

export class CircuitBreaker {
  readonly #records: SharedRecords;
  readonly #cluster: number;
  readonly #priority: ClusterPriority;
  readonly #limits: CircuitBreakerThresholds;

  constructor(records: SharedRecords, cluster: number, priority: ClusterPriority, limits: CircuitBreakerThresholds) {
    this.#records = records;
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
