// Which hosts the next requests of a cluster will go to, so that connections are there before them. What is foreseen is
// what happens: the next requests get these hosts, in this order. Made for clusters with a predictive ratio above 1.
// Step 4 of the request flow.

import type { ClusterPriority } from '../../wasm/shared-records.ts';
import type { DownstreamConnection } from '../network/downstream-connection.ts';
import type { Host } from './host.ts';
import type { PoolTotals } from './pool/pool-host.ts';
import { CONNECTS_PER_CALL } from './pool/waiting-pools.ts';

export class HostForecast {
  readonly totals: PoolTotals = { requests: 0, capacity: 0 };
  /** Connections per request, above 1. */
  readonly #ratio: number;
  readonly #pick: () => Host | null;
  #foreseen: Host[] = [];
  /** As many are foreseen at most. */
  #healthyHosts = 0;

  /** @param pick the host of one request. */
  constructor(ratio: number, pick: () => Host | null) {
    this.#ratio = ratio;
    this.#pick = pick;
  }

  /** The host of the request at hand; null when none was foreseen. */
  take(): Host | null {
    return this.#foreseen.shift() ?? null;
  }

  /** The hosts have changed: what was foreseen is not true any more. */
  forget(hosts: readonly Host[]): void {
    this.#foreseen = [];
    this.#healthyHosts = hosts.reduce((count, host) => count + (host.isHealthy ? 1 : 0), 0);
  }

  /** A request is about to ask its pool for a connection: opens those that the next ones will want. */
  openAhead(priority: ClusterPriority, downstream: DownstreamConnection | null): void {
    const { totals } = this;
    for (let n = 0; n < CONNECTS_PER_CALL; n++) {
      const isEnough = (totals.requests + 1) * this.#ratio <= totals.capacity;
      if (isEnough || this.#foreseen.length >= this.#healthyHosts) return;
      const host = this.#pick();
      if (host === null) return;
      this.#foreseen.push(host);
      if (!host.poolFor(priority, downstream).openForNext(this.#ratio)) return;
    }
  }
}
