// The connections to a host that some requests share: of all clients, or of one where a cluster wants that. Each routing
// priority has a pool of its own, because each has its own limits.

import { ClusterPriority } from '../../../wasm/shared-records.ts';

/** What becomes of connections when nobody asks for one. */
export interface DrainablePool {
  /** True while a connection is here: no request waits without one. */
  readonly isUsed: boolean;
  /** Closes all there is, unless it carries something or is about to. @returns whether it has given a place back. */
  closeUnused(): boolean;
  /** Lets no connection of now carry a request that has not begun; new ones are made as they are needed. */
  renew(): void;
  /** Closes idle connections now and the rest when their requests are done. */
  drain(): void;
  /** Ends everything now; requests that wait are refused. */
  close(): void;
}

/** Connections to a host that one choice of it leads to. */
export interface PoolGroup {
  readonly isUsed: boolean;
  /** Of a priority, if it carries nothing. @returns whether a place for another has become free. */
  closeUnused(priority: ClusterPriority): boolean;
  /** A connection or a waiting request has gone. */
  forgetUnused(): void;
  /** These three as pools have them. */
  renew(): void;
  drain(): void;
  close(): void;
}

export class HostPools<Pool extends DrainablePool> implements PoolGroup {
  /** Of requests of the default priority. */
  readonly default: Pool;
  readonly #make: (priority: ClusterPriority) => Pool;
  #high: Pool | null = null;

  constructor(make: (priority: ClusterPriority) => Pool) {
    this.#make = make;
    this.default = make(ClusterPriority.default);
  }

  get isUsed(): boolean {
    return this.default.isUsed || (this.#high?.isUsed ?? false);
  }

  for(priority: ClusterPriority): Pool {
    if (priority === ClusterPriority.default) return this.default;
    this.#high ??= this.#make(priority);
    return this.#high;
  }

  closeUnused(priority: ClusterPriority): boolean {
    const pool = priority === ClusterPriority.default ? this.default : this.#high;
    return pool?.closeUnused() ?? false;
  }

  /** Two pools are kept in any case. */
  forgetUnused(): void {}

  /** Closes all there is of both, unless it carries something. */
  closeIdle(): void {
    this.default.closeUnused();
    this.#high?.closeUnused();
  }

  renew(): void {
    this.default.renew();
    this.#high?.renew();
  }

  drain(): void {
    this.default.drain();
    this.#high?.drain();
  }

  close(): void {
    this.default.close();
    this.#high?.close();
  }
}
