// What one cluster and its hosts have counted since it was last asked, whatever has been reset meanwhile. A host that leaves goes on
// counting what is still on its way; when no worker uses it any more, what it has counted last is kept. Main thread. Owns the
// cluster's cells of CLUSTER_LOAD_STATS.

import type { TimeSlice } from '../../base/time-slice.ts';
import type { HostSnapshot } from '../../snapshot/index.ts';
import { CLUSTER_LOAD_STATS, type CounterLatch, HOST_STATS, type StatsStore } from '../../stats/index.ts';
import type { LoadCounts, LoadSum } from './load-sum.ts';

/** A member, as its cluster has it. */
export interface LoadedHost {
  /** It has left. */
  readonly isRetired: boolean;
  readonly snapshot: Pick<HostSnapshot, 'address' | 'locality' | 'priority' | 'statBlock'>;
}

/** Who wants to know. */
export interface LoadListener {
  readonly isTold: boolean;
  readonly isByHost: boolean;
  /** Of what is not there any more. */
  readonly pending: LoadSum;
  closed(load: ClusterLoad): void;
}

const { rq_success, rq_error, rq_total, cx_total, cx_connect_fail, rq_active, cx_active } = HOST_STATS.index;
const { rq_dropped, rq_drop_overload } = CLUSTER_LOAD_STATS.index;

export class ClusterLoad {
  /** First cell of CLUSTER_LOAD_STATS. */
  readonly block: number;
  readonly #stats: StatsStore;
  readonly #latch: CounterLatch;
  readonly #listener: LoadListener;
  readonly #members: () => readonly LoadedHost[];
  /** Workers may still use them. */
  readonly #leaving = new Set<LoadedHost>();
  /** Of what the load assignment drops; the last that had a name. */
  #category = '';
  #isClosed = false;

  /** @throws WeirError WEIR_SHARED_MEMORY_FULL. */
  constructor(stats: StatsStore, latch: CounterLatch, members: () => readonly LoadedHost[], listener: LoadListener) {
    this.#stats = stats;
    this.#latch = latch;
    this.#members = members;
    this.#listener = listener;
    this.block = stats.allocateUnnamed(CLUSTER_LOAD_STATS);
  }

  /** Requests are dropped in another category from now on. @param category empty for none. */
  dropIn(category: string): void {
    if (category === this.#category) return;
    if (this.#listener.isTold) this.#addDropped(this.#listener.pending);
    this.#category = category;
  }

  /** It is no member any more. */
  leave(host: LoadedHost): void {
    this.#leaving.add(host);
  }

  /** No worker uses one that has left any more: its cells are about to be given back. */
  free(host: LoadedHost): void {
    this.#leaving.delete(host);
    const { isTold, isByHost, pending } = this.#listener;
    const { snapshot } = host;
    if (isTold) pending.add(snapshot, { ...this.#countsOf(snapshot), inProgress: 0, activeConnections: 0 }, isByHost);
    this.#latch.forget(snapshot.statBlock, HOST_STATS.gaugesAt);
    if (this.#isClosed && this.#leaving.size === 0) this.#listener.closed(this);
  }

  /** All that has been counted since the last call. A cluster may have very many hosts. */
  async takeInto(sum: LoadSum, slice: TimeSlice): Promise<void> {
    if (!this.#isClosed) this.#addDropped(sum);
    const { isByHost } = this.#listener;
    for (const host of [...this.#members(), ...this.#leaving]) {
      if (slice.isOver()) await slice.rest();
      // What one that is free by now has counted last is kept.
      if (!host.isRetired || this.#leaving.has(host)) sum.add(host.snapshot, this.#countsOf(host.snapshot), isByHost);
    }
  }

  /** No worker uses it any more. */
  close(): void {
    this.#isClosed = true;
    if (this.#listener.isTold) this.#addDropped(this.#listener.pending);
    this.#latch.forget(this.block, CLUSTER_LOAD_STATS.gaugesAt);
    this.#stats.retireUnnamed(CLUSTER_LOAD_STATS, this.block);
    if (this.#leaving.size === 0) this.#listener.closed(this);
  }

  #addDropped(sum: LoadSum): void {
    const dropped = this.#latch.take(this.block + rq_dropped);
    sum.addDropped(dropped, this.#latch.take(this.block + rq_drop_overload), this.#category);
  }

  #countsOf({ statBlock }: LoadedHost['snapshot']): LoadCounts {
    const latch = this.#latch;
    const { cells } = this.#stats;
    return {
      successful: latch.take(statBlock + rq_success),
      failed: latch.take(statBlock + rq_error),
      issued: latch.take(statBlock + rq_total),
      newConnections: latch.take(statBlock + cx_total),
      failedConnections: latch.take(statBlock + cx_connect_fail),
      inProgress: cells.total(statBlock + rq_active),
      activeConnections: cells.total(statBlock + cx_active),
    };
  }
}
