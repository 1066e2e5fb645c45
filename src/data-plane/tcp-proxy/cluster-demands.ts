// Clusters that connections of a TCP proxy want and this worker does not know: main has them discovered. Counts how that ends. Worker
// thread.

import type { ClusterDemandSettings } from '../../snapshot/index.ts';
import { TCP_ON_DEMAND_STATS } from '../../stats/index.ts';
import type { WorkerContext } from '../worker-context.ts';

const { on_demand_cluster_attempt, on_demand_cluster_missing, on_demand_cluster_success, on_demand_cluster_timeout } =
  TCP_ON_DEMAND_STATS.index;

/** Main waits longer than connections do, so that they know whether a cluster is missing or late. */
const FURTHER_WAIT_MS = 1000;

export class ClusterDemands {
  /** How long a connection waits; Infinity for as long as main does. */
  readonly timeoutMs: number;
  readonly #context: WorkerContext;
  readonly #settings: ClusterDemandSettings;
  readonly #statBase: number;

  /** @param statBlock of TCP_ON_DEMAND_STATS. */
  constructor(context: WorkerContext, settings: ClusterDemandSettings, statBlock: number) {
    this.#context = context;
    this.#settings = settings;
    this.#statBase = context.stats.base(statBlock);
    this.timeoutMs = settings.timeoutMs || Number.POSITIVE_INFINITY;
  }

  /** @param onAnswer told once, in a later turn. @returns what the waiting ends by; undefined where too many wait already. */
  ask(name: string, onAnswer: (isThere: boolean) => void): (() => void) | undefined {
    this.#count(on_demand_cluster_attempt);
    const { source, timeoutMs: ownMs } = this.#settings;
    const timeoutMs = ownMs === 0 ? 0 : ownMs + FURTHER_WAIT_MS;
    const leave = this.#context.demands.ask({ kind: 'cluster', name, source, timeoutMs }, (isThere) => {
      this.#count(isThere ? on_demand_cluster_success : on_demand_cluster_missing);
      onAnswer(isThere);
    });
    if (leave === undefined) this.#count(on_demand_cluster_missing);
    return leave;
  }

  /** A connection has waited for as long as it may. */
  noteLate(): void {
    this.#count(on_demand_cluster_timeout);
  }

  #count(stat: number): void {
    this.#context.stats.values[this.#statBase + stat]! += 1;
  }
}
