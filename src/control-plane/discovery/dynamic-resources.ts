// Clusters and listeners that come from outside while the proxy runs (CDS, LDS): asks for them, and has their managers take them in.
// Main thread.

import type { Clock } from '../../base/clock.ts';
import type { DiscoverableResources, DynamicResourcesSettings, ResourceType } from '../../config/index.ts';
import type { Logger } from '../../log/index.ts';
import type { ClusterSettings, ConfigSourceSettings, ListenerSettings } from '../../snapshot/index.ts';
import type { StatsStore } from '../../stats/index.ts';
import { FirstAnswer } from '../subscription/first-answer.ts';
import type { Subscriptions } from '../subscription/subscription.ts';
import { SubscriptionStats } from '../subscription/subscription-stats.ts';
import { DiscoveredSet, type ResourceManager } from './discovered-set.ts';

export interface DynamicResourcesDependencies {
  readonly settings: DynamicResourcesSettings;
  /** Of the bootstrap in force. */
  readonly discoverable: () => DiscoverableResources;
  readonly clusters: ResourceManager<ClusterSettings> & { names(): Iterable<string> };
  readonly listeners: ResourceManager<ListenerSettings>;
  /** A cluster has come because requests wanted it: it is another source's. None has when absent. */
  readonly isOnDemand?: (cluster: string) => boolean;
  readonly stats: StatsStore;
  readonly clock: Clock;
  /** XXH64. */
  readonly hash: (text: string) => bigint;
  readonly log: Logger;
  readonly subscriptions: Subscriptions;
  readonly onDeprecatedFields: (fields: ReadonlyMap<string, number>) => void;
}

interface Discovery<Settings> {
  readonly kind: string;
  /** Of its stats, with its dot. */
  readonly prefix: string;
  readonly manager: ResourceManager<Settings>;
  readonly removes: 'first' | 'last';
  /** As of DiscoveredSet. */
  readonly isForeign?: (name: string) => boolean;
  readonly type: () => ResourceType<Settings>;
}

export class DynamicResources {
  readonly #deps: DynamicResourcesDependencies;
  #closes: (() => void)[] = [];

  constructor(deps: DynamicResourcesDependencies) {
    this.#deps = deps;
  }

  get hasListeners(): boolean {
    return this.#deps.settings.listeners !== undefined;
  }

  /** Resolves with the first answer, whose clusters have been put then, or when it takes too long; at once where none come. */
  discoverClusters(): Promise<void> {
    const { settings, clusters: manager, discoverable } = this.#deps;
    const type = (): ResourceType<ClusterSettings> => discoverable().clusters();
    const prefix = 'cluster_manager.cds.';
    // Listeners and routes may lead to those that go for as long as there is nothing in their place.
    const { isOnDemand = () => false } = this.#deps;
    return this.#discover(settings.clusters, {
      kind: 'cluster',
      isForeign: isOnDemand,
      prefix,
      manager,
      removes: 'last',
      type,
    });
  }

  /** The same with listeners, whose routes are to find the clusters of the first answer. */
  discoverListeners(): Promise<void> {
    const { settings, listeners: manager, clusters, discoverable } = this.#deps;
    const type = (): ResourceType<ListenerSettings> => discoverable().listeners(clusters.names());
    const prefix = 'listener_manager.lds.';
    // Others may need their addresses.
    return this.#discover(settings.listeners, { kind: 'listener', prefix, manager, removes: 'first', type });
  }

  /** Nothing is asked for, put or removed any more. */
  close(): void {
    for (const close of this.#closes) close();
    this.#closes = [];
  }

  #discover<Settings>(source: ConfigSourceSettings | undefined, discovery: Discovery<Settings>): Promise<void> {
    if (source === undefined) return Promise.resolve();
    const { stats: store, clock, hash, log, subscriptions, onDeprecatedFields } = this.#deps;
    const { kind, prefix, manager, removes, type, isForeign = () => false } = discovery;
    const stats = SubscriptionStats.under(store, prefix, clock, hash);
    const answer = new FirstAnswer(`discovery of ${kind}s`, source.initialFetchTimeoutMs, { clock, log, stats });
    const onAnswered = (): void => answer.came();
    const owner = new DiscoveredSet({ kind, manager, removes, isForeign, log, onDeprecatedFields, onAnswered });
    const subscription = subscriptions.subscribe({ source, names: undefined, type, stats, owner });
    this.#closes.push(() => {
      subscription.close();
      owner.close();
      answer.close();
    });
    subscription.start();
    return answer.promise;
  }
}
