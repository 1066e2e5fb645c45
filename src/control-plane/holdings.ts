// What one thing that may go (a cluster, a listener) has been given in shared memory, beside what its parts keep themselves:
// scopes of stats and records. It gives all of it back at once, when no thread uses the thing any more. Main thread.

import type { Scope, StatsStore } from '../stats/index.ts';
import type { SharedMemoryOwner } from '../wasm/shared-memory-owner.ts';

export interface HoldingsSource {
  readonly stats: Pick<StatsStore, 'scope'>;
  readonly memory: SharedMemoryOwner;
}

export class Holdings {
  readonly #source: HoldingsSource;
  #scopes: Scope[] = [];
  #records: number[] = [];
  /** Of what is kept elsewhere. */
  #releases: (() => void)[] = [];

  constructor(source: HoldingsSource) {
    this.#source = source;
  }

  /** As StatsStore.scope. */
  scope(prefix: string): Scope {
    const scope = this.#source.stats.scope(prefix);
    this.#scopes.push(scope);
    return scope;
  }

  /** A cluster's record. @throws WeirError WEIR_SHARED_MEMORY_FULL. */
  clusterRecord(): number {
    return this.#hold(this.#source.memory.recordAllocator.allocateCluster());
  }

  /** A count over all workers. @throws WeirError WEIR_SHARED_MEMORY_FULL. */
  countRecord(): number {
    return this.#hold(this.#source.memory.recordAllocator.allocateCount());
  }

  /** @param release called once, when everything is given back. */
  hold(release: () => void): void {
    this.#releases.push(release);
  }

  /** Gives everything back: no thread uses any of it any more. Idempotent. */
  close(): void {
    const { reclaimer, recordAllocator } = this.#source.memory;
    // Nobody has to confirm that once more.
    const free = reclaimer.collect(() => {
      for (const release of this.#releases) release();
      for (const scope of this.#scopes) scope.close();
    });
    for (const record of this.#records) recordAllocator.free(record);
    this.#releases = [];
    this.#scopes = [];
    this.#records = [];
    free();
  }

  #hold(record: number): number {
    this.#records.push(record);
    return record;
  }
}
