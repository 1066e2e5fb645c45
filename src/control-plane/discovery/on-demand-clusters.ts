// Clusters that requests want (on-demand CDS): each is asked for by its name, of the source that whoever wanted it first has named, and stays
// for as long as that has it. Everybody who waits is told when it serves, or is not to be had. Main thread.

import type { Clock } from '../../base/clock.ts';
import { errorMessage } from '../../base/errors.ts';
import type { DiscoverableResources, DiscoveredResponse } from '../../config/index.ts';
import type { Logger } from '../../log/index.ts';
import type { ClusterSettings, ConfigSourceSettings } from '../../snapshot/index.ts';
import type { StatsStore } from '../../stats/index.ts';
import { type DemandAnswer, OpenDemands } from '../open-demands.ts';
import type { RefusedResource } from '../resource-record.ts';
import { logWarnings } from '../subscription/resource-warnings.ts';
import type { Subscription, SubscriptionOwner, Subscriptions } from '../subscription/subscription.ts';
import { SubscriptionStats } from '../subscription/subscription-stats.ts';

/** Who has the clusters; ClusterManager does. */
export interface OnDemandManager {
  /** It serves. */
  isActive(name: string): boolean;
  put(settings: ClusterSettings, version: string, message: Uint8Array): boolean;
  remove(name: string): unknown;
  refuse(refused: RefusedResource, version: string): void;
}

export interface OnDemandClustersDependencies {
  readonly manager: OnDemandManager;
  readonly subscriptions: Subscriptions;
  /** Of the bootstrap in force. */
  readonly discoverable: () => DiscoverableResources;
  readonly stats: Pick<StatsStore, 'scope'>;
  readonly clock: Clock;
  /** XXH64. */
  readonly hash: (text: string) => bigint;
  readonly log: Logger;
  readonly onDeprecatedFields: (fields: ReadonlyMap<string, number>) => void;
}

/** As loggers know this file. */
const FILE = 'src/control-plane/discovery/on-demand-clusters.ts';
/** Of all of them together. */
const STAT_PREFIX = 'cluster_manager.odcds.';

export class OnDemandClusters {
  readonly #deps: OnDemandClustersDependencies;
  readonly #demands: OpenDemands;
  readonly #clusters = new Map<string, OnDemandCluster>();
  #stats: SubscriptionStats | undefined;
  #isClosed = false;

  constructor(deps: OnDemandClustersDependencies) {
    this.#deps = deps;
    this.#demands = new OpenDemands(deps.clock, (name) => {
      deps.log.ofFile(FILE).debug(`cluster ${name} has not come in time`);
      // One that has come and is still getting warm may serve others.
      if (this.#clusters.get(name)?.hasCome === false) this.#forget(name);
    });
  }

  /** It has come on demand: what other sources do not tell of stays. */
  has(name: string): boolean {
    return this.#clusters.get(name)?.hasCome === true;
  }

  /** A request wants a cluster. @param timeoutMs for how long it is waited for. */
  demand(name: string, source: ConfigSourceSettings, timeoutMs: number, answer: DemandAnswer): void {
    if (this.#isClosed || this.#deps.manager.isActive(name)) {
      answer(!this.#isClosed);
      return;
    }
    if (!this.#demands.add(name, timeoutMs, answer) || this.#clusters.has(name)) return;
    const { clock, hash, log } = this.#deps;
    log.ofFile(FILE).debug(`cluster ${name} is asked for on demand`);
    this.#stats ??= SubscriptionStats.under(this.#deps.stats, STAT_PREFIX, clock, hash);
    const cluster = new OnDemandCluster(name, source, this.#stats, this.#deps, {
      onCome: () => {
        if (this.#deps.manager.isActive(name)) this.activated(name);
      },
      onAbsent: () => this.#forget(name),
      onRefused: () => {
        if (!cluster.hasCome) this.#forget(name);
      },
    });
    this.#clusters.set(name, cluster);
    cluster.start();
  }

  /** A cluster serves, wherever it has come from. */
  activated(name: string): void {
    this.#demands.settle(name, true);
  }

  /** The next request that wants it asks anew. */
  #forget(name: string): void {
    this.#clusters.get(name)?.close();
    this.#clusters.delete(name);
    this.#demands.settle(name, false);
  }

  /** Nothing is asked for any more. */
  close(): void {
    this.#isClosed = true;
    for (const cluster of this.#clusters.values()) cluster.close();
    this.#demands.close();
  }
}

interface ClusterEvents {
  onCome(): void;
  /** The source has none of this name, or none any more. */
  onAbsent(): void;
  onRefused(): void;
}

class OnDemandCluster implements SubscriptionOwner<ClusterSettings> {
  readonly #name: string;
  readonly #deps: OnDemandClustersDependencies;
  readonly #events: ClusterEvents;
  readonly #subscription: Subscription;
  #isClosed = false;
  /** It has been put. */
  hasCome = false;

  constructor(
    name: string,
    source: ConfigSourceSettings,
    stats: SubscriptionStats,
    deps: OnDemandClustersDependencies,
    events: ClusterEvents,
  ) {
    this.#name = name;
    this.#deps = deps;
    this.#events = events;
    const type = () => deps.discoverable().clusters();
    const request = { source, names: new Set([name]), type, stats, owner: this };
    this.#subscription = deps.subscriptions.subscribe(request);
  }

  start(): void {
    this.#subscription.start();
  }

  /** The server may come back: whoever waits does so for as long as allowed. */
  onFailed(): void {}

  onResponse(response: DiscoveredResponse<ClusterSettings>): readonly string[] {
    if (this.#isClosed) return [];
    const { manager, log, onDeprecatedFields } = this.#deps;
    const name = this.#name;
    for (const offered of response.offered()) {
      if (offered.name !== name) continue;
      const resource = offered.read();
      const { message, version = response.version } = resource;
      logWarnings(`cluster ${name}`, resource, log);
      if (!resource.isGood) {
        manager.refuse({ name, message, error: resource.errors.join('; ') }, version);
        this.#events.onRefused();
        return resource.errors.map((error) => `cluster ${name}: ${error}`);
      }
      onDeprecatedFields(resource.deprecatedFields);
      try {
        if (!manager.put(resource.resource, version, message)) {
          log.warning(`cluster ${name} is left out: the bootstrap has one of this name`);
        }
      } catch (error) {
        this.#events.onRefused();
        return [`cluster ${name}: ${errorMessage(error)}`];
      }
      this.hasCome = true;
      this.#events.onCome();
      return [];
    }
    if (response.removed.includes(name)) {
      if (this.hasCome) manager.remove(name);
      this.#events.onAbsent();
    }
    return [];
  }

  close(): void {
    this.#isClosed = true;
    this.#subscription.close();
  }
}
