// The set of clusters: makes each one's stats and shared records, starts the search for its members, and publishes
// what is found. Main thread.
//
//   a cluster:  WARMING ──first answer or failure──► ACTIVE ──members change──► ACTIVE, a new snapshot published
//
// The places of hosts that left are freed when every worker has said that nothing of it uses them any more.

import type { Clock } from '../../base/clock.ts';
import { errorMessage } from '../../base/errors.ts';
import type { Random } from '../../base/random.ts';
import type { Logger, Loggers } from '../../log/index.ts';
import type { ClusterSettings, ClusterSnapshot, HostSettings } from '../../snapshot/index.ts';
import { CLUSTER_MANAGER_STATS } from '../../stats/index.ts';
import type { DnsResolvers } from '../dns/resolvers.ts';
import { ActiveCluster, type ClusterPlaces } from './active-cluster.ts';
import type { Discovery, DiscoveryListener } from './discovery/discovery.ts';
import { LogicalDnsDiscovery } from './discovery/logical-dns.ts';
import { StaticDiscovery } from './discovery/static.ts';
import { StrictDnsDiscovery } from './discovery/strict-dns.ts';

/** Takes snapshots to the workers; WorkerPool does. */
export interface ClusterPublisher {
  /** @param onApplied called once, when no worker uses anything that the update has removed. */
  publishClusters(updated: readonly ClusterSnapshot[], removed: readonly string[], onApplied: () => void): void;
}

export interface ClusterManagerDependencies extends ClusterPlaces {
  readonly clock: Clock;
  /** For jitter. */
  readonly random: Random;
  readonly loggers: Loggers;
  readonly workers: ClusterPublisher;
  readonly resolvers: DnsResolvers;
}

interface ManagedCluster {
  readonly cluster: ActiveCluster;
  readonly discovery: Discovery;
  isWarming: boolean;
}

export class ClusterManager {
  readonly #deps: ClusterManagerDependencies;
  readonly #log: Logger;
  readonly #stats;
  readonly #clusters = new Map<string, ManagedCluster>();
  /** Clusters whose first answer the start of the server waits for. */
  readonly #awaited = new Set<string>();
  readonly #warm = Promise.withResolvers<void>();
  #isStarted = false;

  constructor(deps: ClusterManagerDependencies) {
    this.#deps = deps;
    this.#log = deps.loggers.get('upstream');
    this.#stats = deps.stats.scope('cluster_manager.').allocate(CLUSTER_MANAGER_STATS);
  }

  /**
   * Takes in a cluster of the bootstrap, before the start; the name is known to be new.
   * @throws WeirError WEIR_SHARED_MEMORY_FULL.
   */
  addStatic(settings: ClusterSettings): void {
    const { name } = settings;
    const cluster = new ActiveCluster(settings, false, this.#deps);
    const discovery = this.#createDiscovery(settings, cluster);
    this.#clusters.set(name, { cluster, discovery, isWarming: true });
    if (settings.waitForWarmOnInit) this.#awaited.add(name);
    this.#stats.add('cluster_added');
    this.#stats.set('active_clusters', this.#clusters.size);
    // What needs no search is there from the start: the workers begin with it.
    if (settings.discovery.kind === 'static') discovery.start();
  }

  /** Starts to look for members; resolves when nothing has to be waited for any more, or never after `stop`. */
  async start(): Promise<void> {
    this.#isStarted = true;
    for (const { discovery, isWarming } of this.#clusters.values()) if (isWarming) discovery.start();
    this.#countWarming();
    await this.#warm.promise;
  }

  /** Looks for nothing any more. Idempotent. */
  stop(): void {
    for (const { discovery } of this.#clusters.values()) discovery.stop();
    this.#deps.resolvers.cancel();
  }

  snapshots(): ClusterSnapshot[] {
    return [...this.#clusters.values()].map(({ cluster }) => cluster.snapshot);
  }

  /** Version of the last accepted cluster discovery update. */
  versionInfo(): string {
    return 'static';
  }

  *clusters(): Iterable<ActiveCluster> {
    for (const { cluster } of this.#clusters.values()) yield cluster;
  }

  #createDiscovery(settings: ClusterSettings, cluster: ActiveCluster): Discovery {
    const { discovery, hosts } = settings;
    const listener: DiscoveryListener = {
      onHosts: (members) => (this.#isStarted ? this.#update(cluster, members) : this.#begin(cluster, members)),
      onReady: () => this.#becameReady(cluster.name),
    };
    if (discovery.kind === 'static') return new StaticDiscovery(hosts, listener);
    const tools = { ...this.#deps, log: this.#log };
    const Discovery = discovery.kind === 'strict-dns' ? StrictDnsDiscovery : LogicalDnsDiscovery;
    return new Discovery(discovery, cluster.stats, tools, listener);
  }

  /** Members that no worker has seen yet. */
  #begin(cluster: ActiveCluster, members: readonly HostSettings[]): void {
    cluster.setMembers(members)?.();
  }

  #update(cluster: ActiveCluster, members: readonly HostSettings[]): void {
    const before = cluster.snapshot.hosts.length;
    const startedMs = this.#deps.clock.monotonicMs();
    try {
      const free = cluster.setMembers(members);
      if (free === undefined) return;
      this.#log.debug(`cluster ${cluster.name} has ${members.length} hosts, before ${before}`);
      this.#stats.add('cluster_updated');
      this.#deps.workers.publishClusters([cluster.snapshot], [], free);
      cluster.stats.record('update_duration', this.#deps.clock.monotonicMs() - startedMs);
    } catch (error) {
      // The shared memory is full. The members of before still serve.
      this.#log.error(`cluster ${cluster.name} keeps its ${before} hosts: ${errorMessage(error)}`);
    }
  }

  #becameReady(name: string): void {
    const managed = this.#clusters.get(name);
    if (managed !== undefined) managed.isWarming = false;
    this.#awaited.delete(name);
    if (this.#isStarted) this.#countWarming();
  }

  #countWarming(): void {
    const warming = [...this.#clusters.values()].filter(({ isWarming }) => isWarming).length;
    this.#stats.set('warming_clusters', warming);
    if (this.#awaited.size === 0) this.#warm.resolve();
  }
}
