// The set of clusters: makes them, starts them together, tells when they are warm, and publishes what they become. Main
// thread.
//
// The places of hosts that left are freed when every worker has said that nothing of it uses them any more.

import type { Random } from '../../base/random.ts';
import type { Logger, Loggers } from '../../log/index.ts';
import type { ClusterSettings, ClusterSnapshot, ConsecutiveKind, HostsUpdate, Locality } from '../../snapshot/index.ts';
import { CLUSTER_MANAGER_STATS } from '../../stats/index.ts';
import { compileHttp1, Http1Codec } from '../../wasm/http1.ts';
import type { DnsResolvers } from '../dns/resolvers.ts';
import type { ActiveCluster, ClusterPlaces } from './active-cluster.ts';
import { HealthEventLogs } from './health-check/event-log.ts';
import { LocalCluster } from './local-cluster.ts';
import { ManagedCluster, type ManagedClusterTools } from './managed-cluster.ts';
import { OutlierEventLog } from './outlier-detection/event-log.ts';

/** Takes updates to the workers; WorkerPool does. Each tells `onApplied` once, when no worker uses what it has removed. */
export interface ClusterPublisher {
  publishHosts(update: HostsUpdate, onApplied: () => void): void;
}

export interface ClusterManagerDependencies extends Omit<ClusterPlaces, 'local'> {
  /** Name of the cluster that this proxy and its like are members of; empty for none. */
  readonly localCluster: string;
  /** Of this proxy. */
  readonly locality: Locality;
  /** For jitter. */
  readonly random: Random;
  readonly loggers: Loggers;
  readonly workers: ClusterPublisher;
  readonly resolvers: DnsResolvers;
  /** Where ejections of outliers are written; empty for nowhere. */
  readonly outlierEventLogPath: string;
  /** First part of the names of the proxy's own headers, without its final '-'. */
  readonly headerPrefix: string;
}

export class ClusterManager {
  readonly #deps: ClusterManagerDependencies;
  readonly #log: Logger;
  readonly #stats;
  readonly #tools: ManagedClusterTools;
  readonly #clusters = new Map<string, ManagedCluster>();
  /** Clusters whose first answer the start of the server waits for. */
  readonly #awaited = new Set<string>();
  readonly #warm = Promise.withResolvers<void>();
  #isStarted = false;

  constructor(deps: ClusterManagerDependencies) {
    this.#deps = deps;
    this.#log = deps.loggers.get('upstream');
    this.#stats = deps.stats.scope('cluster_manager.').allocate(CLUSTER_MANAGER_STATS);
    this.#tools = {
      ...deps,
      local: new LocalCluster(deps.localCluster, deps.locality),
      log: this.#log,
      health: {
        ...deps,
        events: new HealthEventLogs(deps.clock, deps.loggers),
        codec: onFirstUse(() => new Http1Codec(compileHttp1(), deps.headerPrefix)),
      },
      outliers: { ...deps, events: new OutlierEventLog(deps.clock, deps.loggers, deps.outlierEventLogPath) },
      updates: this.#stats,
      publish: (update, free) => deps.workers.publishHosts(update, free),
      onChange: (cluster) => this.#changed(cluster),
      onReady: ({ cluster }) => this.#becameReady(cluster.name),
    };
  }

  /**
   * Takes in a cluster of the bootstrap, before the start; the name is known to be new.
   * @throws WeirError WEIR_SHARED_MEMORY_FULL.
   */
  addStatic(settings: ClusterSettings): void {
    const { name } = settings;
    if (settings.waitForWarmOnInit) this.#awaited.add(name);
    const managed = new ManagedCluster(settings, false, this.#tools);
    this.#clusters.set(name, managed);
    const { local } = this.#tools;
    if (name === local.name) {
      local.members = () => managed.cluster.members();
      managed.localChanged();
      this.#changed(managed);
    }
    this.#stats.add('cluster_added');
    this.#stats.set('active_clusters', this.#clusters.size);
  }

  /** Starts to look for members; resolves when nothing has to be waited for any more, or never after `stop`. */
  async start(): Promise<void> {
    this.#isStarted = true;
    for (const cluster of this.#clusters.values()) cluster.start();
    this.#countWarming();
    await this.#warm.promise;
  }

  /** Looks for nothing any more. Idempotent. */
  stop(): void {
    for (const cluster of this.#clusters.values()) cluster.stop();
    this.#tools.health.events.close();
    this.#tools.outliers.events.close();
    this.#deps.resolvers.cancel();
  }

  /** Goes on in new files of health check events and ejections, where the old ones were moved away. */
  reopenEventLogs(): void {
    this.#tools.health.events.reopen();
    this.#tools.outliers.events.reopen();
  }

  /** A host has failed as often in a row as it may; both may have gone by now. */
  hostFailedInRow(clusterName: string, recordAddress: number, kind: ConsecutiveKind): void {
    this.#clusters.get(clusterName)?.hostFailedInRow(recordAddress, kind);
  }

  /** A host has asked a worker to be left out; both may have gone by now. */
  hostFailed(clusterName: string, recordAddress: number): void {
    this.#clusters.get(clusterName)?.hostFailed(recordAddress);
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

  #changed({ cluster }: ManagedCluster): void {
    const { local } = this.#tools;
    if (cluster.name !== local.name || local.members === undefined) return;
    for (const managed of this.#clusters.values()) if (managed.cluster !== cluster) managed.localChanged();
  }

  #becameReady(name: string): void {
    this.#awaited.delete(name);
    if (this.#isStarted) this.#countWarming();
  }

  #countWarming(): void {
    const warming = [...this.#clusters.values()].filter(({ isWarming }) => isWarming).length;
    this.#stats.set('warming_clusters', warming);
    if (this.#awaited.size === 0) this.#warm.resolve();
  }
}

/** Makes a thing when it is asked for first. */
function onFirstUse<Thing>(make: () => Thing): () => Thing {
  let made: Thing | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
