// Host, cluster and count records in shared memory: the state that changes per request or per health check and
// that several workers write. Any thread; each worker has an accessor for its own slab.
//
// Every count is written twice: atomically in the record, where the total over all workers stands, and
// plainly in the slab's ledger cells, which say what this worker alone has added. When a worker crashes,
// main takes the ledger back from the totals, so that no request stays "active" for ever.

import {
  CELL_SIZE,
  CELLS_PER_SLAB,
  CLUSTER_CONNECTION_POOLS,
  CLUSTER_CONNECTIONS,
  CLUSTER_DEFAULT_PRIORITY,
  CLUSTER_HIGH_PRIORITY,
  CLUSTER_LEDGER,
  CLUSTER_PENDING_REQUESTS,
  CLUSTER_REQUESTS,
  CLUSTER_RETRIES,
  COUNT_LEDGER,
  COUNT_VALUE,
  HOST_ACTIVE_CONNECTIONS,
  HOST_ACTIVE_REQUESTS,
  HOST_CONSECUTIVE_5XX,
  HOST_CONSECUTIVE_GATEWAY_FAILURES,
  HOST_CONSECUTIVE_LOCAL_FAILURES,
  HOST_COUNTS_AT,
  HOST_HEALTH_FLAGS,
  HOST_LEDGER,
  HOST_TIMES,
  HOST_WANTED,
  HOST_WEIGHT,
} from '../../assembly/layout/shared-memory.ts';

/** The bits of a host's health flags, in the order in which listings name them. */
export const HealthFlag = {
  failedActiveHealthCheck: 0x1,
  failedOutlierCheck: 0x2,
  failedEdsHealth: 0x4,
  degradedActiveHealthCheck: 0x8,
  degradedEdsHealth: 0x10,
  pendingDynamicRemoval: 0x20,
  pendingActiveHealthCheck: 0x40,
  excludedViaImmediateHealthCheckFail: 0x80,
  activeHealthCheckTimeout: 0x100,
  edsStatusDraining: 0x200,
} as const;

/** Flags that together decide what a host may be used for. */
export const HealthMask = {
  /** Not used while enough others are healthy. */
  unhealthy:
    HealthFlag.failedActiveHealthCheck |
    HealthFlag.failedOutlierCheck |
    HealthFlag.failedEdsHealth |
    HealthFlag.edsStatusDraining,
  degraded: HealthFlag.degradedActiveHealthCheck | HealthFlag.degradedEdsHealth,
  /** Does not count when the health of its priority is worked out. */
  excluded:
    HealthFlag.pendingActiveHealthCheck | HealthFlag.excludedViaImmediateHealthCheckFail | HealthFlag.edsStatusDraining,
} as const;

/** Routing priority; add it to nothing, pass it. The value is the place of the priority's counts in the record. */
export const ClusterPriority = { default: CLUSTER_DEFAULT_PRIORITY, high: CLUSTER_HIGH_PRIORITY } as const;
export type ClusterPriority = (typeof ClusterPriority)[keyof typeof ClusterPriority];

/** What a circuit breaker limits; each is a count over all workers. */
export const ClusterCount = {
  connections: CLUSTER_CONNECTIONS,
  pendingRequests: CLUSTER_PENDING_REQUESTS,
  requests: CLUSTER_REQUESTS,
  retries: CLUSTER_RETRIES,
  connectionPools: CLUSTER_CONNECTION_POOLS,
} as const;
export type ClusterCount = (typeof ClusterCount)[keyof typeof ClusterCount];

/** Failures of a host one after the other; a success of the same kind ends the row. */
export const FailureRow = {
  serverErrors: HOST_CONSECUTIVE_5XX,
  gatewayFailures: HOST_CONSECUTIVE_GATEWAY_FAILURES,
  localFailures: HOST_CONSECUTIVE_LOCAL_FAILURES,
} as const;
export type FailureRow = (typeof FailureRow)[keyof typeof FailureRow];

/** The part of the shared memory that records need; SharedMemory has it. */
export interface RecordMemory {
  readonly f64: Float64Array<ArrayBufferLike>;
  readonly i32: Int32Array<ArrayBufferLike>;
  reach(end: number): void;
}

export class SharedRecords {
  readonly #memory: RecordMemory;
  /** f64 index of this slab's copy of a cell, relative to main's. */
  readonly #slabCells: number;

  /** @param slab  MAIN_SLAB, or workerSlab(index): whose ledger is written. */
  constructor(memory: RecordMemory, slab: number) {
    this.#memory = memory;
    this.#slabCells = slab * CELLS_PER_SLAB;
  }

  /** Adds to the requests in flight on a host; returns the new total over all workers. Hot: ~10 ns. */
  addActiveRequests(host: number, n: number): number {
    return this.#add(host + HOST_ACTIVE_REQUESTS, host + HOST_LEDGER, 0, n);
  }

  activeRequests(host: number): number {
    return this.#load(host + HOST_ACTIVE_REQUESTS);
  }

  /** Adds to the open connections of a host; returns the new total over all workers. */
  addActiveConnections(host: number, n: number): number {
    return this.#add(
      host + HOST_ACTIVE_CONNECTIONS,
      host + HOST_LEDGER,
      (HOST_ACTIVE_CONNECTIONS - HOST_COUNTS_AT) / 4,
      n,
    );
  }

  /** Takes a place for a connection to a host, as tryAcquire does; give it back with addActiveConnections(…, -1). */
  tryAcquireHostConnection(host: number, limit: number): boolean {
    const ledgerIndex = (HOST_ACTIVE_CONNECTIONS - HOST_COUNTS_AT) / 4;
    return this.#tryAdd(host + HOST_ACTIVE_CONNECTIONS, host + HOST_LEDGER, ledgerIndex, limit);
  }

  activeConnections(host: number): number {
    return this.#load(host + HOST_ACTIVE_CONNECTIONS);
  }

  /** HealthFlag bits; 0 says healthy. */
  healthFlags(host: number): number {
    return this.#load(host + HOST_HEALTH_FLAGS);
  }

  /** Main: sets or clears one HealthFlag; returns whether it was different before. */
  setHealthFlag(host: number, flag: number, on: boolean): boolean {
    const at = this.#index(host + HOST_HEALTH_FLAGS);
    const before = on ? Atomics.or(this.#memory.i32, at, flag) : Atomics.and(this.#memory.i32, at, ~flag);
    return ((before & flag) !== 0) !== on;
  }

  /** One more failure in a row, over all workers; returns how many that makes. A lost worker's stay in the row. */
  addFailure(host: number, row: FailureRow): number {
    const at = this.#index(host + row);
    return Atomics.add(this.#memory.i32, at, 1) + 1;
  }

  /** Ends a row. Hot: a row that has ended is read and left alone. */
  endFailures(host: number, row: FailureRow): void {
    const at = this.#index(host + row);
    if (Atomics.load(this.#memory.i32, at) !== 0) Atomics.store(this.#memory.i32, at, 0);
  }

  /** A request has named the host, and was turned away. What is noted already is left alone. */
  noteWanted(host: number): void {
    const at = this.#index(host + HOST_WANTED);
    if (Atomics.load(this.#memory.i32, at) === 0) Atomics.store(this.#memory.i32, at, 1);
  }

  /** Main: whether that has happened since this was asked last. */
  takeWanted(host: number): boolean {
    const at = this.#index(host + HOST_WANTED);
    return Atomics.exchange(this.#memory.i32, at, 0) === 1;
  }

  /**
   * Cell of the histogram that response times of the host go into; 0 for none. Hot: asked at the end of each response, whose request
   * was counted in the record, so that this thread has it mapped; and late news do no harm, so that it is no atomic read.
   */
  hostTimes(host: number): number {
    return this.#memory.i32[(host + HOST_TIMES) >>> 2]!;
  }

  /** Main: has workers record response times from now on, or no more. */
  setHostTimes(host: number, cell: number): void {
    const at = this.#index(host + HOST_TIMES);
    Atomics.store(this.#memory.i32, at, cell);
  }

  /** Load-balancing weight, 1 or more. */
  weight(host: number): number {
    return this.#load(host + HOST_WEIGHT) >>> 0;
  }

  /** Main: the weight changes in place when a host's configuration does. */
  setWeight(host: number, weight: number): void {
    const at = this.#index(host + HOST_WEIGHT);
    Atomics.store(this.#memory.i32, at, weight);
  }

  /** Total over all workers of what a circuit breaker limits. */
  clusterCount(cluster: number, priority: ClusterPriority, count: ClusterCount): number {
    return this.#load(cluster + priority + count);
  }

  /** Adds without asking a limit; returns the new total over all workers. */
  addClusterCount(cluster: number, priority: ClusterPriority, count: ClusterCount, n: number): number {
    const line = cluster + priority;
    return this.#add(line + count, line + CLUSTER_LEDGER, count / 4, n);
  }

  /**
   * Takes one of a limited count, over all workers: never exceeds `limit`, and fails only when the limit is
   * really reached (adding first and undoing later would make another worker fail for nothing).
   * Give it back with addClusterCount(…, -1).
   */
  tryAcquire(cluster: number, priority: ClusterPriority, count: ClusterCount, limit: number): boolean {
    const line = cluster + priority;
    return this.#tryAdd(line + count, line + CLUSTER_LEDGER, count / 4, limit);
  }

  /** What a count record says, over all workers. */
  count(record: number): number {
    return this.#load(record + COUNT_VALUE);
  }

  /** Adds to a count record without asking a limit; returns the new total over all workers. */
  addCount(record: number, n: number): number {
    return this.#add(record + COUNT_VALUE, record + COUNT_LEDGER, 0, n);
  }

  /** tryAcquire for a count record. Give it back with addCount(…, -1). */
  tryAcquireCount(record: number, limit: number): boolean {
    return this.#tryAdd(record + COUNT_VALUE, record + COUNT_LEDGER, 0, limit);
  }

  #add(countAddress: number, ledgerAddress: number, ledgerIndex: number, n: number): number {
    const at = this.#index(countAddress);
    this.#writeLedger(ledgerAddress, ledgerIndex, n);
    return Atomics.add(this.#memory.i32, at, n) + n;
  }

  #tryAdd(countAddress: number, ledgerAddress: number, ledgerIndex: number, limit: number): boolean {
    const at = this.#index(countAddress);
    const i32 = this.#memory.i32;
    let seen = Atomics.load(i32, at);
    while (seen < limit) {
      const before = Atomics.compareExchange(i32, at, seen, seen + 1);
      if (before === seen) {
        this.#writeLedger(ledgerAddress, ledgerIndex, 1);
        return true;
      }
      seen = before;
    }
    return false;
  }

  #writeLedger(ledgerAddress: number, ledgerIndex: number, n: number): void {
    const cell = this.#memory.i32[ledgerAddress >>> 2]! + this.#slabCells + ledgerIndex;
    // The ledger may lie in a younger part of the memory than the record.
    if (cell >= this.#memory.f64.length) this.#memory.reach((cell + 1) * CELL_SIZE);
    this.#memory.f64[cell]! += n;
  }

  #load(address: number): number {
    // First the index: it may replace the view.
    const at = this.#index(address);
    return Atomics.load(this.#memory.i32, at);
  }

  #index(address: number): number {
    if (address >= this.#memory.i32.byteLength) this.#memory.reach(address + 4);
    return address >>> 2;
  }
}
