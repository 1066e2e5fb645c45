// The set of clusters: makes them, starts them together, tells when they are warm, publishes what they become, and takes them
// away. Main thread.
//
//   put ──► WARMING ──ready──► ACTIVE ──removed, replaced──► DRAINING ──no worker uses it──► closed
//
// Until one is warm its predecessor serves. What hosts and clusters that left had been given is freed when every worker has
// said that nothing of it uses them any more.

import type { IpAddress } from '../../base/address.ts';
import { errorMessage } from '../../base/errors.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import type { Random } from '../../base/random.ts';
import { SystemCalls } from '../../base/system-calls.ts';
import type { Logger, Loggers } from '../../log/index.ts';
import type {
  ClusterSettings,
  ClusterSnapshot,
  ConsecutiveKind,
  EdsDiscoverySettings,
  HostRefusal,
  HostsUpdate,
  Locality,
  TlsSettings,
} from '../../snapshot/index.ts';
import { upstreamContextsOf } from '../../snapshot/index.ts';
import { CLUSTER_MANAGER_STATS } from '../../stats/index.ts';
import { compileHttp1, Http1Codec } from '../../wasm/http1.ts';
import type { DnsResolvers } from '../dns/resolvers.ts';
import { DnsCaches } from '../dns-cache/dns-caches.ts';
import {
  Failures,
  NO_MESSAGE,
  type RefusedResource,
  type ResourceRecord,
  type ResourceState,
} from '../resource-record.ts';
import type { SecretLeases } from '../secrets/secrets.ts';
import type { ActiveCluster, ClusterPlaces } from './active-cluster.ts';
import type { ActiveHost } from './active-host.ts';
import { AggregateClusters } from './aggregate-clusters.ts';
import type { EdsTools } from './discovery/eds.ts';
import { HealthEventLogs } from './health-check/event-log.ts';
import { HandshakeTurns } from './health-check/handshake-turns.ts';
import { LocalCluster } from './local-cluster.ts';
import { type ChangedTls, ManagedCluster, type ManagedClusterTools, type PutCluster } from './managed-cluster.ts';
import { OutlierEventLog } from './outlier-detection/event-log.ts';

/** Takes updates to the workers; WorkerPool does. Each tells `onApplied` once, when no worker uses what it has removed. */
export interface ClusterPublisher {
  /** A cluster that is new, or in the place of another. */
  publishCluster(cluster: ClusterSnapshot, onApplied: () => void): void;
  publishHosts(update: HostsUpdate, onApplied: () => void): void;
  /** Has connections of a cluster be secured by other settings. */
  secureCluster(name: string, changed: ChangedTls, onApplied: () => void): void;
  removeCluster(name: string, onApplied: () => void): void;
  /** There is no host of this name: who waits for it hears of it. */
  refuseHost(cluster: string, key: string, reason: HostRefusal): void;
}

export interface ClusterObserver {
  /** It is about to serve: secrets that have come are put in their places. */
  complete(cluster: ManagedCluster): void;
  /** It has been made; nobody has asked it for anything yet. */
  add(cluster: ManagedCluster): void;
  /** It opens no connections any more. */
  remove(cluster: ManagedCluster): void;
}

export interface ClusterManagerDependencies
  extends Omit<ClusterPlaces, 'local'>,
    Omit<EdsTools, 'log' | 'assignments'> {
  /** Name of the cluster that this proxy and its like are members of; empty for none. */
  readonly localCluster: string;
  /** Those that come by discovery. */
  readonly secrets: SecretLeases;
  /** How assignments of a cluster are read now. @param isLocal of the local cluster. */
  readonly assignments: (settings: EdsDiscoverySettings, isLocal: boolean) => ReturnType<EdsTools['assignments']>;
  /** Of this proxy. */
  readonly locality: Locality;
  /** For jitter. */
  readonly random: Random;
  readonly faults: FaultBoundary;
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
  readonly #local: LocalCluster;
  readonly #tools: ManagedClusterTools;
  /** Those that workers know, or will begin with. */
  readonly #clusters = new Map<string, ManagedCluster>();
  /** Of those, the ones that are not warm yet. */
  readonly #cold = new Set<ManagedCluster>();
  /** Those that are to follow when they are warm. */
  readonly #warming = new Map<string, ManagedCluster>();
  /** Those that workers have been told to let go. */
  readonly #draining = new Set<ManagedCluster>();
  readonly #aggregates = new AggregateClusters<ManagedCluster>(
    (name) => this.cluster(name),
    (text) => this.#log.warning(text),
  );
  readonly #failures = new Failures();
  #version = '';
  /** Clusters whose first answer the start of the server waits for. */
  readonly #awaited = new Set<string>();
  readonly #warm = Promise.withResolvers<void>();
  /** Told when none is to follow any more. */
  readonly #onAllFollowed: (() => void)[] = [];
  #isStarted = false;
  /** All that the start of the server waits for are known. */
  #isDiscovered = false;
  observer: ClusterObserver | undefined;
  /** Told of each that serves from now on, when workers have been. */
  onActivated: ((name: string) => void) | undefined;

  constructor(deps: ClusterManagerDependencies) {
    this.#deps = deps;
    this.#log = deps.loggers.get('upstream').ofFile('src/control-plane/cluster-manager/cluster-manager.ts');
    this.#stats = deps.stats.scope('cluster_manager.').allocate(CLUSTER_MANAGER_STATS);
    this.#local = new LocalCluster(deps.localCluster, deps.locality);
    this.#tools = {
      ...deps,
      local: this.#local,
      log: deps.loggers.get('upstream'),
      health: {
        ...deps,
        events: new HealthEventLogs(deps.clock, deps.loggers),
        handshakes: new HandshakeTurns(deps.clock),
        codec: onFirstUse(() => new Http1Codec(compileHttp1(), deps.headerPrefix)),
      },
      dnsCaches: new DnsCaches(deps),
      systemCalls: onFirstUse(() => SystemCalls.open()),
      outliers: { ...deps, events: new OutlierEventLog(deps.clock, deps.loggers, deps.outlierEventLogPath) },
      updates: this.#stats,
      completeTls: (managed) => this.observer?.complete(managed),
      publish: (managed, update, free) => {
        // No worker has seen what is warming.
        if (this.#clusters.get(managed.cluster.name) === managed) deps.workers.publishHosts(update, free);
        else free();
      },
      publishTls: (managed, changed, onApplied) => {
        const { name } = managed.cluster;
        if (this.#clusters.get(name) === managed) deps.workers.secureCluster(name, changed, onApplied);
        else onApplied();
      },
      assignments: (name, settings) => deps.assignments(settings, name === deps.localCluster),
      formerAssignment: (managed) => {
        const former = this.#clusters.get(managed.cluster.name);
        return former === managed ? undefined : former?.knownAssignment;
      },
      refuse: (managed, key, reason) => {
        const { name } = managed.cluster;
        if (this.#clusters.get(name) === managed) deps.workers.refuseHost(name, key, reason);
      },
      onChange: (managed) => this.#changed(managed),
      onReady: (managed) => this.#becameReady(managed),
    };
  }

  /**
   * Takes in a cluster of the bootstrap, before the start; the name is known to be new.
   * @throws WeirError WEIR_SHARED_MEMORY_FULL.
   */
  addStatic(settings: ClusterSettings, message: Uint8Array = NO_MESSAGE): void {
    const { name } = settings;
    if (settings.waitForWarmOnInit) this.#awaited.add(name);
    this.#serve(this.#make({ settings, message, version: '', addedViaApi: false }));
    this.#aggregates.changed(name);
    this.#stats.add('cluster_added');
  }

  /**
   * Takes in a cluster, after the start: a new one, or a successor of the one of its name. Nothing happens to one that is as it
   * was, and no other connection ends where only configured members are others.
   * @returns false for the name of a cluster of the other origin, which stays as it is.
   * @param message what the settings were made of.
   * @param addedViaApi false for one of a bootstrap that takes the place of the first.
   * @throws WeirError WEIR_SHARED_MEMORY_FULL, or WEIR_CONFIG_INVALID for an aggregate cluster that would be among its own; all
   *   is as before then.
   */
  put(settings: ClusterSettings, version: string, message: Uint8Array = NO_MESSAGE, addedViaApi = true): boolean {
    const { name } = settings;
    const active = this.#clusters.get(name);
    if (active !== undefined && active.cluster.addedViaApi !== addedViaApi) return false;
    try {
      this.#aggregates.check(settings);
      this.#put({ settings, message, version, addedViaApi }, active);
    } catch (error) {
      this.#noteFailure({ name, message, error: errorMessage(error) }, version, addedViaApi);
      throw error;
    }
    this.#failures.forget(name);
    if (addedViaApi) {
      this.#version = version;
      this.#await(name, settings.waitForWarmOnInit);
    }
    return true;
  }

  /** One that discovery has brought has come again as it was put last. @returns false where it is not there any more. */
  keep(name: string, version: string): boolean {
    const managed = this.#warming.get(name) ?? this.#clusters.get(name);
    if (managed?.cluster.addedViaApi !== true) return false;
    managed.keep(version);
    this.#version = version;
    return true;
  }

  /** One that discovery has brought may not be; the one before it stays. */
  refuse(refused: RefusedResource, version: string): void {
    // It would have been left out in any case.
    if (this.#clusters.get(refused.name)?.cluster.addedViaApi === false) return;
    this.#noteFailure(refused, version, true);
  }

  /** Nothing of a version that discovery has brought was refused. */
  accept(version: string): void {
    this.#version = version;
  }

  /**
   * Those that discovery has brought, and those that it could not; some more than once. Others may come and go on the way: one that
   * becomes warm then is found on one side or the other.
   */
  *discoveredNames(): Iterable<string> {
    for (const clusters of [this.#warming, this.#clusters]) {
      for (const { cluster } of clusters.values()) if (cluster.addedViaApi) yield cluster.name;
    }
    for (const { name, addedViaApi } of this.#failures.values()) if (addedViaApi) yield name;
  }

  /** There is one that serves. */
  isActive(name: string): boolean {
    return this.#clusters.has(name);
  }

  /** What hosts are checked with, for one who checks others. */
  get checking(): Pick<ManagedClusterTools, 'health' | 'systemCalls'> {
    return this.#tools;
  }

  /** Those that there are, or will be when they are warm. */
  names(): Iterable<string> {
    return new Set([...this.#clusters.keys(), ...this.#warming.keys()]);
  }

  /** @param addedViaApi its origin, as for `put`. @returns false when there is no such cluster of this origin. */
  remove(name: string, addedViaApi = true): boolean {
    const active = this.#clusters.get(name);
    if (active !== undefined && active.cluster.addedViaApi !== addedViaApi) return false;
    this.#failures.forget(name);
    const isWarming = this.#giveUpWarming(name);
    if (addedViaApi) this.#await(name, false);
    if (active === undefined && !isWarming) return false;
    this.#stats.add('cluster_removed');
    if (active === undefined) return true;
    this.#clusters.delete(name);
    if (this.#cold.delete(active)) this.#countWarming();
    this.#stats.set('active_clusters', this.#clusters.size);
    this.#noteLocal(name, undefined);
    this.#aggregates.serve(name, undefined);
    this.#aggregates.changed(name);
    this.#deps.workers.removeCluster(name, this.#drain(active));
    this.#log.debug(`cluster ${name} is removed`);
    return true;
  }

  /** All that there are, and those that could not be had. */
  dump(): ResourceRecord[] {
    const record = (managed: ManagedCluster, state: ResourceState): ResourceRecord => {
      const { message, version, updatedMs } = managed;
      const { name, addedViaApi } = managed.cluster;
      return { name, message, addedViaApi, version, updatedMs, state, error: '' };
    };
    return [
      ...[...this.#clusters.values()].map((managed) => record(managed, managed.isWarming ? 'warming' : 'active')),
      ...[...this.#warming.values()].map((managed) => record(managed, 'warming')),
      ...[...this.#draining].map((managed) => record(managed, 'draining')),
      ...this.#failures.values(),
    ];
  }

  /** Those that could not be had, and why. */
  failures(): Iterable<{ readonly name: string; readonly error: string }> {
    return this.#failures.values();
  }

  /**
   * Starts to look for members; resolves when nothing has to be waited for any more, or never after `stop`.
   * @param discovered resolves when discovery has brought its first clusters, or brings none.
   */
  async start(discovered: Promise<void> = Promise.resolve()): Promise<void> {
    this.#isStarted = true;
    for (const cluster of this.#clusters.values()) cluster.start();
    this.#countWarming();
    await discovered;
    this.#isDiscovered = true;
    this.#countWarming();
    await this.#warm.promise;
  }

  /** Resolves when all that have been put serve, or never after `stop`. */
  whenAllServe(): Promise<void> {
    if (this.#warming.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onAllFollowed.push(resolve));
  }

  /** Looks for nothing any more. Idempotent. */
  stop(): void {
    for (const cluster of [...this.#clusters.values(), ...this.#warming.values()]) cluster.stop();
    this.#tools.health.events.close();
    this.#tools.outliers.events.close();
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

  /** A worker wants a host that it does not know. @returns why it gets none; undefined when one is on its way, or being looked for. */
  hostWanted(clusterName: string, address: IpAddress): HostRefusal | undefined {
    const managed = this.#clusters.get(clusterName);
    return managed === undefined ? 'overflow' : managed.hostWanted(address);
  }

  /** A host has asked a worker to be left out; both may have gone by now. */
  hostFailed(clusterName: string, recordAddress: number): void {
    this.#clusters.get(clusterName)?.hostFailed(recordAddress);
  }

  /** Values of the runtime have changed: those that decide which hosts are picked from hold at once. */
  runtimeChanged(): void {
    for (const cluster of [...this.#clusters.values(), ...this.#warming.values()]) cluster.runtimeChanged();
    this.#aggregates.runtimeChanged();
  }

  snapshots(): ClusterSnapshot[] {
    return [...this.#clusters.values()].map(({ cluster }) => cluster.snapshot);
  }

  /** Version of the last accepted cluster discovery update; empty before the first. */
  get version(): string {
    return this.#version;
  }

  /** The same as a listing shows it. */
  versionInfo(): string {
    return this.#version || 'static';
  }

  /** The one that serves under the name. */
  cluster(name: string): ActiveCluster | undefined {
    return this.#clusters.get(name)?.cluster;
  }

  /** Those that serve, with what keeps them up to date. */
  managed(): Iterable<ManagedCluster> {
    return this.#clusters.values();
  }

  /** Those that cannot serve yet. */
  warming(): readonly ManagedCluster[] {
    return [...this.#clusters.values(), ...this.#warming.values()].filter(({ isWarming }) => isWarming);
  }

  *clusters(): Iterable<ActiveCluster> {
    for (const { cluster } of this.#clusters.values()) yield cluster;
  }

  /** Those in use. */
  *tlsContexts(): Iterable<TlsSettings> {
    for (const { cluster } of this.#clusters.values()) {
      const { settings } = cluster;
      // This is asked again and again, and of thousands of clusters most have none.
      if (settings.tls === undefined && settings.transportSocketMatches === undefined) continue;
      for (const tls of upstreamContextsOf(settings)) if (tls !== undefined) yield tls;
    }
  }

  #changed(managed: ManagedCluster): void {
    const { name } = managed.cluster;
    // While another warms, its predecessor serves.
    if (this.#clusters.get(name) !== managed) return;
    this.#aggregates.changed(name);
    if (name !== this.#local.name) return;
    for (const each of this.#clusters.values()) if (each !== managed) each.localChanged();
  }

  #put(given: PutCluster, active: ManagedCluster | undefined): void {
    const { name } = given.settings;
    const latest = this.#warming.get(name) ?? active;
    if (latest?.takeOver(given)) return;
    if (latest !== active && active?.takeOver(given)) {
      this.#giveUpWarming(name);
      return;
    }
    const managed = this.#make(given);
    this.#giveUpWarming(name);
    this.#stats.add(active === undefined ? 'cluster_added' : 'cluster_modified');
    this.#warming.set(name, managed);
    managed.start();
    if (managed.isWarming) this.#countWarming();
    else this.#activate(managed);
  }

  #make(given: PutCluster): ManagedCluster {
    const managed = new ManagedCluster(given, this.#tools);
    this.observer?.add(managed);
    return managed;
  }

  #stop(managed: ManagedCluster): void {
    this.observer?.remove(managed);
    managed.stop();
  }

  /** Whether the start of the server, if it is not over, waits for one that discovery has brought. */
  #await(name: string, isWanted: boolean): void {
    if (isWanted && this.#warming.has(name)) this.#awaited.add(name);
    else if (this.#awaited.delete(name)) this.#countWarming();
  }

  #noteFailure({ name, message, error }: RefusedResource, version: string, addedViaApi: boolean): void {
    const updatedMs = this.#deps.clock.wallMs();
    this.#failures.note({ name, message, addedViaApi, version, updatedMs, error });
  }

  /** @returns whether there was one. */
  #giveUpWarming(name: string): boolean {
    const managed = this.#warming.get(name);
    if (managed === undefined) return false;
    this.#warming.delete(name);
    this.#stop(managed);
    managed.close();
    this.#countWarming();
    return true;
  }

  /** It is warm: it serves from now on, in the place of its predecessor. */
  #activate(managed: ManagedCluster): void {
    const { name } = managed.cluster;
    if (!this.#warming.delete(name)) return;
    const former = this.#clusters.get(name);
    const letGo = former === undefined ? (): void => {} : this.#drain(former);
    this.#serve(managed);
    this.#deps.workers.publishCluster(managed.cluster.snapshot, letGo);
    // That was all of it.
    managed.cluster.takeUpdate();
    this.#aggregates.changed(name);
    this.#countWarming();
    this.#log.debug(`cluster ${name} ${former === undefined ? 'is new' : 'takes the place of its predecessor'}`);
    this.onActivated?.(name);
  }

  #serve(managed: ManagedCluster): void {
    const { name } = managed.cluster;
    const former = this.#clusters.get(name);
    if (former !== undefined) this.#cold.delete(former);
    this.#clusters.set(name, managed);
    if (managed.isWarming) this.#cold.add(managed);
    managed.cluster.show();
    this.#aggregates.serve(name, managed);
    this.#stats.set('active_clusters', this.#clusters.size);
    this.#noteLocal(name, managed);
  }

  /** @returns what gives everything back, to be called when no worker uses it any more. */
  #drain(managed: ManagedCluster): () => void {
    this.#stop(managed);
    this.#draining.add(managed);
    return () => {
      this.#draining.delete(managed);
      managed.close();
    };
  }

  /** The cluster that this proxy belongs to is another, or has gone. */
  #noteLocal(name: string, managed: ManagedCluster | undefined): void {
    if (name !== this.#local.name) return;
    this.#local.members = managed && ((): readonly ActiveHost[] => managed.cluster.members());
    for (const each of this.#clusters.values()) each.localChanged();
  }

  #becameReady(managed: ManagedCluster): void {
    const { name } = managed.cluster;
    this.#awaited.delete(name);
    this.#cold.delete(managed);
    if (this.#warming.get(name) === managed) this.#activate(managed);
    else if (this.#isStarted) this.#countWarming();
  }

  #countWarming(): void {
    this.#stats.set('warming_clusters', this.#cold.size + this.#warming.size);
    if (this.#awaited.size === 0 && this.#isDiscovered) this.#warm.resolve();
    if (this.#warming.size > 0) return;
    for (const tell of this.#onAllFollowed.splice(0)) tell();
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
