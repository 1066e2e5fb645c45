// Brings changes of one cluster to the workers. Those that leave the members as they are, such as a host that turns
// unhealthy, are taken together: the first goes at once, what follows within the window goes when it ends. A change of
// members goes at once, and takes along what waits. Main thread.

import type { Clock } from '../../base/clock.ts';

/** Counters of the cluster manager that are written here. */
export interface MergeStats {
  add(
    name: 'cluster_updated' | 'cluster_updated_via_merge' | 'update_merge_cancelled' | 'update_out_of_merge_window',
  ): void;
}

export class MergeWindow {
  readonly #clock: Clock;
  readonly #windowMs: number;
  readonly #stats: MergeStats;
  readonly #deliver: () => void;
  #lastMs = Number.NEGATIVE_INFINITY;
  #cancelTimer: (() => void) | undefined;

  /** @param windowMs 0 delivers everything at once. @param deliver brings the state of the moment to the workers. */
  constructor(clock: Clock, windowMs: number, stats: MergeStats, deliver: () => void) {
    this.#clock = clock;
    this.#windowMs = windowMs;
    this.#stats = stats;
    this.#deliver = deliver;
  }

  /** A change that may wait for others. */
  change(): void {
    if (this.#windowMs > 0 && this.#clock.monotonicMs() - this.#lastMs <= this.#windowMs) {
      this.#cancelTimer ??= this.#clock.after(this.#windowMs, () => this.#end());
      return;
    }
    if (this.#windowMs > 0) this.#stats.add('update_out_of_merge_window');
    this.#stats.add('cluster_updated');
    this.#now();
  }

  /** The cluster begins to serve. What has been delivered for that was no update of it: the first one waits for nothing. */
  begin(): void {
    this.#lastMs = Number.NEGATIVE_INFINITY;
  }

  /** Somebody has just delivered everything, or the cluster has gone. */
  cancel(): void {
    this.#lastMs = this.#clock.monotonicMs();
    if (this.#cancelTimer === undefined) return;
    this.#cancelTimer();
    this.#cancelTimer = undefined;
    this.#stats.add('update_merge_cancelled');
  }

  #end(): void {
    this.#cancelTimer = undefined;
    this.#stats.add('cluster_updated_via_merge');
    this.#now();
  }

  #now(): void {
    this.cancel();
    this.#deliver();
  }
}
