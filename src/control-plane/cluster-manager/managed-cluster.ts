// One cluster and those who keep it up to date: the search for its members, their health checks, the detector of outliers among
// them, and the window in which
// changes are taken together. Main thread.
//
//   WARMING ──members found, or a failure; secrets there; first round of checks, if there are any──► ACTIVE ──stop──► ──close──►
//
// It is stopped when something takes its place, and closed when no worker uses it any more. While it
// warms, what checks find is only noted, and delivered at the end.

import { formatAddress, type IpAddress } from '../../base/address.ts';
import type { Clock } from '../../base/clock.ts';
import { errorMessage } from '../../base/errors.ts';
import { checkSystemCalls, needsSystemCalls } from '../../base/own-sockets.ts';
import type { SystemCalls } from '../../base/system-calls.ts';
import type { Logger } from '../../log/index.ts';
import type {
  AggregateShares,
  AssignmentPolicy,
  ClusterSettings,
  ConsecutiveKind,
  DiscoverySettings,
  EdsDiscoverySettings,
  HostRefusal,
  HostSettings,
  HostsUpdate,
  OutlierSettings,
  UpstreamTlsSettings,
} from '../../snapshot/index.ts';
import { upstreamContextsOf, withUpstreamContexts } from '../../snapshot/index.ts';
import { ENDPOINT_DISCOVERY_STATS, SUBSCRIPTION_VERSION_TEXT } from '../../stats/index.ts';
import { HealthFlag } from '../../wasm/shared-memory.ts';
import type { DnsCaches, HeldDnsCache } from '../dns-cache/dns-caches.ts';
import { SecretNeeds } from '../secrets/secret-needs.ts';
import type { SecretLeases } from '../secrets/secrets.ts';
import type { ChangedContexts } from '../tls/changed-contexts.ts';
import { ActiveCluster, type ClusterPlaces } from './active-cluster.ts';
import type { ActiveHost } from './active-host.ts';
import type { Discovery, DiscoveryListener, DiscoveryTools } from './discovery/discovery.ts';
import {
  type AssignmentRecord,
  EdsDiscovery,
  type EdsStats,
  type EdsTools,
  type KnownAssignment,
  resourceOf,
} from './discovery/eds.ts';
import { ForwardProxyDiscovery } from './discovery/forward-proxy.ts';
import { LateRedisCluster } from './discovery/late-redis-cluster.ts';
import { LogicalDnsDiscovery } from './discovery/logical-dns.ts';
import { type OnDemandMembers, OriginalDstDiscovery } from './discovery/original-dst.ts';
import { StaticDiscovery } from './discovery/static.ts';
import { StrictDnsDiscovery } from './discovery/strict-dns.ts';
import { HealthChecker, type HealthCheckTools } from './health-check/health-checker.ts';
import { originOfProbes } from './health-check/probe-origin.ts';
import { ProbeTls } from './health-check/probe-tls.ts';
import { type MergeStats, MergeWindow } from './merge-window.ts';
import { OutlierDetector, type OutlierTools } from './outlier-detection/outlier-detector.ts';
import { SlowStartTimer } from './slow-start-timer.ts';

/** As loggers know this file. */
const FILE = 'src/control-plane/cluster-manager/managed-cluster.ts';

export interface ManagedClusterTools extends ClusterPlaces, DiscoveryTools, EdsTools {
  readonly clock: Clock;
  readonly log: Logger;
  readonly health: HealthCheckTools;
  readonly outliers: OutlierTools;
  readonly updates: MergeStats;
  readonly dnsCaches: DnsCaches;
  readonly secrets: SecretLeases;
  /** Puts secrets that have come in their places. */
  readonly completeTls: (cluster: ManagedCluster) => void;
  /** Opened with the first call; undefined where there are none. */
  readonly systemCalls: () => SystemCalls | undefined;
  /** @param free to be called when no worker uses any more what the update replaces. */
  readonly publish: (cluster: ManagedCluster, update: HostsUpdate, free: () => void) => void;
  /** Tells workers that know the cluster. @param onApplied called once, when its handshakes go by it in all of them. */
  readonly publishTls: (cluster: ManagedCluster, changed: ChangedTls, onApplied: () => void) => void;
  /** Tells workers that there is no host of this name. */
  readonly refuse: (cluster: ManagedCluster, key: string, reason: HostRefusal) => void;
  /** Its members or their health have changed. */
  readonly onChange: (cluster: ManagedCluster) => void;
  /** Of the cluster whose place this one is to take. */
  readonly formerAssignment: (cluster: ManagedCluster) => KnownAssignment | undefined;
  /** The cluster is warm. */
  readonly onReady: (cluster: ManagedCluster) => void;
}

/** Settings by place (upstreamContextsOf). */
export type ChangedTls = ReadonlyMap<number, UpstreamTlsSettings>;

/** A cluster as it comes to its manager. */
export interface PutCluster {
  readonly settings: ClusterSettings;
  /** What the settings were made of. */
  readonly message: Uint8Array;
  readonly version: string;
  readonly addedViaApi: boolean;
}

export class ManagedCluster {
  readonly cluster: ActiveCluster;
  /** As it was put last. */
  settings: ClusterSettings;
  message: Uint8Array;
  version: string;
  updatedMs: number;
  readonly #tools: ManagedClusterTools;
  readonly #discovery: Discovery;
  /** Of the questions that discovery asks members; undefined where it asks none, or in cleartext. */
  #discoveryTls: ProbeTls | undefined;
  /** Undefined where members are found, and not made on demand. */
  readonly #onDemand: OriginalDstDiscovery<ActiveHost> | ForwardProxyDiscovery<ActiveHost> | undefined;
  /** Undefined where members come in another way. */
  readonly #eds: EdsDiscovery | undefined;
  readonly #checker: HealthChecker | undefined;
  readonly #detector: OutlierDetector | undefined;
  readonly #window: MergeWindow;
  readonly #slowStart: SlowStartTimer | undefined;
  /** Workers have been told of the cluster, or will begin with the state of the moment. */
  #isStarted = false;
  /** Undefined where nothing of its TLS contexts comes by discovery. */
  readonly #secrets: SecretNeeds | undefined;
  /** They have come, or are not waited for any longer. */
  #hasSecrets: boolean;
  /** Discovery has found members, or failed to. */
  #isFound = false;
  #isStopped = false;
  #isWarming = true;
  /** Checks have found something that no worker has been told. */
  #hasNews = false;

  /** @throws WeirError WEIR_SHARED_MEMORY_FULL, or WEIR_SOCKET_OPTIONS where the system cannot set those of its sockets. */
  constructor({ settings, message, version, addedViaApi }: PutCluster, tools: ManagedClusterTools) {
    this.#tools = tools;
    if (needsSystemCalls(settings)) checkSystemCalls(`cluster ${settings.name}`, tools.systemCalls());
    this.settings = settings;
    this.message = message;
    this.version = version;
    this.updatedMs = tools.clock.wallMs();
    const { discovery } = settings;
    const held = discovery.kind === 'forward-proxy' ? tools.dnsCaches.hold(discovery.cache) : undefined;
    this.cluster = makeCluster(settings, addedViaApi, tools, held);
    this.#window = new MergeWindow(tools.clock, settings.updateMergeWindowMs, tools.updates, () => this.#refresh());
    this.#slowStart =
      settings.slowStart === null
        ? undefined
        : new SlowStartTimer(
            tools.clock,
            settings.slowStart,
            () => this.cluster.growWeights(),
            () => this.#refresh(),
          );
    this.cluster.stats.set('warming_state', 1);
    const secrets = SecretNeeds.of(upstreamContextsOf(settings), tools.secrets);
    if (secrets !== undefined) this.cluster.holdings.hold(() => secrets.release());
    this.#secrets = secrets;
    this.#hasSecrets = secrets === undefined;
    try {
      this.#checker = settings.healthCheck && this.#createChecker(settings, settings.healthCheck);
      this.#detector = settings.outlierDetection && this.#createDetector(settings, settings.outlierDetection);
      this.cluster.outlier = this.#detector;
      this.#onDemand = this.#createOnDemand(discovery, held);
      this.#eds = discovery.kind === 'eds' ? this.#createEds(discovery) : undefined;
      this.#discovery = this.#onDemand ?? this.#eds ?? this.#createDiscovery(settings);
      // What needs no search is there from the start: the workers begin with it.
      if (discovery.kind === 'static') this.#discovery.start();
    } catch (error) {
      // Nobody has seen it.
      this.cluster.close();
      throw error;
    }
  }

  get isWarming(): boolean {
    return this.#isWarming;
  }

  /** What it waits for before it can serve; empty for one that does. */
  get waitsFor(): readonly string[] {
    if (!this.#isWarming) return [];
    if (this.#isFound && this.#hasSecrets) return ['first round of health checks'];
    return [...(this.#isFound ? [] : this.#soughtMembers), ...(this.#secrets?.targets ?? [])];
  }

  get #soughtMembers(): readonly string[] {
    const { discovery, name } = this.settings;
    if (discovery.kind === 'eds') return [`EDS ${resourceOf(name, discovery)}`];
    if (discovery.kind === 'redis') return [`slots of the Redis cluster ${name}`];
    const names = 'targets' in discovery ? discovery.targets : [];
    return names.map(({ name }) => `first resolution of ${name}`);
  }

  /** Undefined where its members come in another way. */
  get assignment(): AssignmentRecord | undefined {
    return this.#eds?.record;
  }

  /** In force, for a successor. */
  get knownAssignment(): KnownAssignment | undefined {
    return this.#eds?.known;
  }

  /**
   * Takes over what has been put under its name, if that can be done without another cluster in its place: it is the same, or
   * only its configured members are others.
   * @throws WeirError WEIR_SHARED_MEMORY_FULL; all is as before then.
   */
  takeOver({ settings, message, version }: PutCluster): boolean {
    const { hosts: _former, ...formerOthers } = this.settings;
    const { hosts, ...others } = settings;
    if (JSON.stringify(others) !== JSON.stringify(formerOthers)) return false;
    // Others have none configured: what they look for is part of how they look.
    if (settings.discovery.kind === 'static') this.#setMembers(hosts);
    this.settings = settings;
    this.message = message;
    this.keep(version);
    return true;
  }

  /** It has been put again as it was. */
  keep(version: string): void {
    this.version = version;
    this.updatedMs = this.#tools.clock.wallMs();
  }

  /** Has connections from now on be secured by other settings. @param onApplied called once, when all workers do. */
  secure(contexts: ChangedContexts<UpstreamTlsSettings>, onApplied: () => void): void {
    this.settings = withUpstreamContexts(
      this.settings,
      mapOf(contexts, ({ configured }) => configured),
    );
    const changed = mapOf(contexts, ({ settings }) => settings);
    this.cluster.secure(changed);
    this.#checker?.secure(changed);
    this.#discoveryTls?.update(changed);
    this.#tools.publishTls(this, changed, onApplied);
  }

  /** Starts to look for members, and to check them. */
  start(): void {
    this.#isStarted = true;
    this.#watchStart();
    if (!this.#isFound) this.#discovery.start();
    if (this.#secrets === undefined) this.#checker?.start();
    else this.#awaitSecrets(this.#secrets);
    this.#detector?.start();
  }

  #awaitSecrets(secrets: SecretNeeds): void {
    this.#tools.faults.run(`secrets of cluster ${this.settings.name}`, async () => {
      await secrets.whenMet();
      if (this.#isStopped) return;
      this.#tools.completeTls(this);
      this.#hasSecrets = true;
      this.#checker?.start();
      this.#goOn();
    });
  }

  /** Looks for nothing and checks nothing any more. Idempotent. */
  stop(): void {
    this.#isStopped = true;
    this.#discovery.stop();
    this.#checker?.stop();
    this.#detector?.stop();
    this.#window.cancel();
    this.#slowStart?.stop();
  }

  /** Values of the runtime have changed. */
  runtimeChanged(): void {
    if (!this.cluster.isOutdated) return;
    if (!this.#isStarted) this.cluster.refreshHealth()();
    else if (this.#isWarming) this.#hasNews = true;
    else this.#refresh();
  }

  /** Gives everything back, after `stop`: no worker uses the cluster any more. */
  close(): void {
    this.cluster.close();
  }

  /** The members of the local cluster, or their health, have changed. */
  localChanged(): void {
    if (this.cluster.settings.zoneRouting === null) return;
    // No worker has seen the former lists.
    if (!this.#isStarted) this.cluster.refreshHealth()();
    else if (this.#isWarming) this.#hasNews = true;
    else this.#window.change();
  }

  /** Requests of an aggregate cluster are shared out so from now on. */
  shareOut(shares: AggregateShares): void {
    if (!this.cluster.shareOut(shares) || !this.#isStarted) return;
    this.#tools.publish(this, this.cluster.sharesUpdate(), () => {});
  }

  /** A host has asked a worker to be left out. @param recordAddress of the host, which may have gone by now. */
  hostFailed(recordAddress: number): void {
    this.#checker?.failPassively((host) => host.recordAddress === recordAddress);
  }

  /** A host has failed as often in a row as it may. @param recordAddress of the host, which may have gone by now. */
  hostFailedInRow(recordAddress: number, kind: ConsecutiveKind): void {
    this.#detector?.failedInRow(recordAddress, kind);
  }

  /** A worker wants a host that it does not know. @returns why it gets none; undefined when one is on its way, or being looked for. */
  hostWanted(address: IpAddress): HostRefusal | undefined {
    if (this.#discovery instanceof LateRedisCluster) {
      this.#discovery.strangerNamed();
      return undefined;
    }
    return this.#onDemand === undefined ? 'overflow' : this.#onDemand.want(address);
  }

  #createOnDemand(
    settings: DiscoverySettings,
    held: HeldDnsCache | undefined,
  ): OriginalDstDiscovery<ActiveHost> | ForwardProxyDiscovery<ActiveHost> | undefined {
    if (held !== undefined) {
      return new ForwardProxyDiscovery(held.cache, this.#tools.log, {
        ...this.#membersOnDemand(),
        update: (host, member) => this.cluster.updateMember(host, member),
        refuse: (key, reason) => this.#tools.refuse(this, key, reason),
      });
    }
    if (settings.kind !== 'original-dst') return undefined;
    const afterMessages = (work: () => void) => setImmediate(this.#tools.faults.handler('taking hosts in', work));
    return new OriginalDstDiscovery(settings, { ...this.#tools, afterMessages }, this.#membersOnDemand());
  }

  #membersOnDemand(): OnDemandMembers<ActiveHost> {
    const { cluster } = this;
    return {
      name: cluster.name,
      get size() {
        return cluster.size;
      },
      members: () => cluster.members(),
      member: (key) => cluster.member(key),
      make: (member) => cluster.addMember(member),
      publish: (joined, onApplied) => {
        this.#checker?.addHosts(joined);
        this.#detector?.addHosts(joined);
        this.#publishAmendment(joined, [], onApplied);
      },
      remove: (hosts) => {
        const free = cluster.removeMembers(hosts);
        this.#setHosts();
        this.#publishAmendment([], hosts, free);
      },
      onReady: () => this.#discovered(),
    };
  }

  /** Beside what checks have found, which its own updates tell of. */
  #publishAmendment(joined: readonly ActiveHost[], gone: readonly ActiveHost[], free: () => void): void {
    const { clock, publish, updates } = this.#tools;
    const log = this.#tools.log.ofFile(FILE);
    const { cluster } = this;
    const startedMs = clock.monotonicMs();
    log.debug(`cluster ${cluster.name} has ${cluster.size} hosts: ${joined.length} more, ${gone.length} less`);
    updates.add('cluster_updated');
    publish(this, cluster.amendment(joined, gone), free);
    this.#tools.onChange(this);
    cluster.stats.record('update_duration', clock.monotonicMs() - startedMs);
  }

  #createDiscovery(settings: ClusterSettings): Discovery {
    const { discovery, hosts } = settings;
    const listener: DiscoveryListener = {
      onHosts: (found) => this.#tryUpdate(() => this.#setMembers(found)),
      onReady: () => this.#discovered(),
    };
    if (discovery.kind === 'redis') {
      const origin = originOfProbes(settings, this.#tools.systemCalls);
      const { health } = this.#tools;
      if (upstreamContextsOf(settings).some((tls) => tls !== undefined)) {
        this.#discoveryTls = new ProbeTls(settings, {}, this.cluster.holdings, health.handshakes);
      }
      const tools = { ...this.#tools, origin, tls: this.#discoveryTls, credentials: settings.credentials };
      return new LateRedisCluster(settings.name, discovery, this.cluster.stats, tools, listener);
    }
    if (!('targets' in discovery)) return new StaticDiscovery(hosts, listener);
    const Discovery = discovery.kind === 'strict-dns' ? StrictDnsDiscovery : LogicalDnsDiscovery;
    return new Discovery(settings.name, discovery, this.cluster.stats, this.#tools, listener);
  }

  #createEds(discovery: EdsDiscoverySettings): EdsDiscovery {
    const policy = policyOf(this.settings);
    return new EdsDiscovery(this.settings.name, discovery, this.#edsStats(), this.#tools, {
      onAssignment: ({ hosts, policy: given }) => this.#setAssignment(hosts, given),
      onStale: () => this.#tryUpdate(() => this.#setAssignment([], policy)),
      onReady: () => this.#discovered(),
      former: () => this.#tools.formerAssignment(this),
    });
  }

  #edsStats(): EdsStats {
    const { stats, holdings } = this.cluster;
    const scope = holdings.scope(`cluster.${this.settings.statName}.`);
    const block = scope.allocate(ENDPOINT_DISCOVERY_STATS);
    const version = scope.textReadout(SUBSCRIPTION_VERSION_TEXT);
    return {
      add: (row) => (row === 'init_fetch_timeout' ? block.add(row) : stats.add(row)),
      set: (row, value) => (row === 'update_time' ? block.set(row, value) : stats.set(row, value)),
      record: (row, value) => stats.record(row, value),
      count: (row) => stats.add(row),
      showVersion: (text) => version.set(text),
      // They go with the cluster.
      close: () => {},
    };
  }

  #createChecker(
    clusterSettings: ClusterSettings,
    settings: NonNullable<ClusterSettings['healthCheck']>,
  ): HealthChecker {
    const { name, statName, tls, transportSocketMatches } = clusterSettings;
    const { cluster } = this;
    const checked = {
      name,
      statName,
      ...(tls && { tls }),
      ...(transportSocketMatches && { transportSocketMatches }),
      origin: originOfProbes(clusterSettings, this.#tools.systemCalls),
      hasTraffic: () => cluster.hasTraffic(),
      onHealthChange: (host: ActiveHost) => this.#healthChanged(host),
      onPassed: (host: ActiveHost) => this.#detector?.checkPassed(host),
    };
    const { health } = this.#tools;
    cluster.holdings.hold(health.events.hold(settings.eventLogPaths));
    return new HealthChecker(settings, checked, { ...health, stats: cluster.holdings });
  }

  #createDetector({ name, statName }: ClusterSettings, settings: OutlierSettings): OutlierDetector {
    const onHealthChange = (host: ActiveHost): void => this.#healthChanged(host);
    const tools = { ...this.#tools.outliers, stats: this.cluster.holdings };
    return new OutlierDetector(settings, { name, statName, onHealthChange }, tools);
  }

  #setMembers(found: readonly HostSettings[]): void {
    // No worker has seen the former members.
    if (!this.#isStarted) this.cluster.setMembers(found)?.();
    else this.#updateMembers(() => this.cluster.setMembers(found));
    this.#setHosts();
  }

  /** @returns as EdsListener.onAssignment. @throws as well. */
  #setAssignment(found: readonly HostSettings[], policy: AssignmentPolicy): boolean {
    const isChanged = this.#updateMembers(() => this.cluster.setAssignment(found, policy));
    if (isChanged) this.#setHosts();
    return isChanged;
  }

  #setHosts(): void {
    const members = this.cluster.members();
    this.#checker?.setHosts(members);
    this.#detector?.setHosts(members);
  }

  #discovered(): void {
    this.#isFound = true;
    this.#goOn();
  }

  #goOn(): void {
    if (!this.#isFound || !this.#hasSecrets || !this.#isWarming) return;
    if (this.#checker === undefined) this.#becomeReady();
    else this.#checker.awaitFirstRound(() => this.#becomeReady());
  }

  #becomeReady(): void {
    this.#isWarming = false;
    this.cluster.stats.set('warming_state', 0);
    if (this.#hasNews) {
      this.#tools.updates.add('cluster_updated');
      this.#refresh();
    }
    this.#window.begin();
    this.#tools.onReady(this);
  }

  #healthChanged(host: ActiveHost): void {
    const log = this.#tools.log.ofFile(FILE);
    const { healthFlags } = host;
    if (log.enabled('debug')) {
      const check = host.lastCheck;
      const why =
        check === undefined
          ? 'not checked'
          : `${check.hasPassed ? 'passed' : 'failed'} by ${check.kind}, ${check.detail}`;
      const flags = healthFlags.toString(16);
      log.debug(
        `cluster ${this.cluster.name}: host ${formatAddress(host.address)} has health flags 0x${flags}: ${why}`,
      );
    }
    if (this.#isWarming) {
      this.#hasNews = true;
      return;
    }
    if ((healthFlags & HealthFlag.pendingDynamicRemoval) === 0 || !host.isRemovable) {
      this.#window.change();
      return;
    }
    this.#tryUpdate(() => {
      this.#updateMembers(() => this.cluster.dropFailed());
      this.#setHosts();
    });
  }

  /** @returns false when nothing has changed. @throws as ActiveCluster.setMembers. */
  #updateMembers(update: () => (() => void) | undefined): boolean {
    const { clock, publish, updates } = this.#tools;
    const log = this.#tools.log.ofFile(FILE);
    const { cluster } = this;
    const before = cluster.size;
    const startedMs = clock.monotonicMs();
    const free = update();
    if (free === undefined) return false;
    log.debug(`cluster ${cluster.name} has ${cluster.size} hosts, before ${before}`);
    updates.add('cluster_updated');
    this.#window.cancel();
    this.#hasNews = false;
    publish(this, cluster.takeUpdate(), free);
    this.#watchStart();
    this.#tools.onChange(this);
    // The time of a whole response is recorded by its subscription.
    if (this.#eds === undefined) cluster.stats.record('update_duration', clock.monotonicMs() - startedMs);
    return true;
  }

  #tryUpdate(update: () => void): void {
    // Who starts hears of it.
    if (!this.#isStarted) {
      update();
      return;
    }
    try {
      update();
    } catch (error) {
      // The shared memory is full. The members of before still serve.
      const { log } = this.#tools;
      const { cluster } = this;
      log.error(`cluster ${cluster.name} keeps its ${cluster.size} hosts: ${errorMessage(error)}`);
    }
  }

  /** The lists are new: hosts may have begun to start. */
  #watchStart(): void {
    if (this.cluster.isStarting) this.#slowStart!.start();
  }

  #refresh(): void {
    const { cluster } = this;
    try {
      const free = cluster.refreshHealth();
      this.#tools.publish(this, cluster.takeUpdate(), free);
      this.#watchStart();
      this.#tools.onChange(this);
    } catch (error) {
      this.#tools.log.error(`cluster ${cluster.name} is picked from as before: ${errorMessage(error)}`);
    }
  }
}

function mapOf<Key, From, To>(from: ReadonlyMap<Key, From>, convert: (value: From) => To): ReadonlyMap<Key, To> {
  return new Map([...from].map(([key, value]) => [key, convert(value)]));
}

function policyOf({ overprovisioningFactor, weightedPriorityHealth, dropShare }: ClusterSettings): AssignmentPolicy {
  return { overprovisioningFactor, weightedPriorityHealth, dropShare };
}

/** @throws as ManagedCluster; what it holds of its DNS cache is given back then. */
function makeCluster(
  settings: ClusterSettings,
  addedViaApi: boolean,
  tools: ManagedClusterTools,
  held: HeldDnsCache | undefined,
): ActiveCluster {
  try {
    const cluster = new ActiveCluster(settings, addedViaApi, tools, held?.lookups);
    if (held !== undefined) cluster.holdings.hold(held.release);
    return cluster;
  } catch (error) {
    held?.release();
    throw error;
  }
}
