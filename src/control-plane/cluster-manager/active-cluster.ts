// One cluster in service: its settings, its places in shared memory, its members, and the view of it that listings
// read. Main thread. Owns the stats and records of the cluster and its hosts, and its host lists, until it is closed.

import { memberKey } from '../../base/address.ts';
import { circuitLimits } from '../../base/circuit-limits.ts';
import type { Clock } from '../../base/clock.ts';
import type { RuntimeDerived, RuntimeValues } from '../../base/runtime.ts';
import { PANIC_THRESHOLD, ZONE_FORCED_FROM, ZONE_MIN_CLUSTER_SIZE } from '../../base/runtime-values.ts';
import {
  type AggregateShares,
  type AssignmentPolicy,
  type ClusterSettings,
  type ClusterSnapshot,
  type HealthCheckSettings,
  type HostSettings,
  type HostSnapshot,
  type HostsUpdate,
  type LookupLimit,
  NO_CELLS,
  namesMembers,
  type SlowStartSettings,
  type UpstreamTlsSettings,
  upstreamContextsOf,
  withUpstreamContexts,
  type ZoneRoutingSettings,
} from '../../snapshot/index.ts';
import {
  addCircuitBreakerGauges,
  type BreakerUse,
  breakerUses,
  CLUSTER_STATS,
  type HistogramReader,
  HTTP2_STATS,
  MESSAGE_SIZE_STATS,
  type Scope,
  SSL_SOCKET_FACTORY_STATS,
  type StatsStore,
  TIMEOUT_BUDGET_STATS,
  TLS_STATS,
} from '../../stats/index.ts';
import type { LbTables } from '../../wasm/lb.ts';
import { HealthFlag, HealthMask } from '../../wasm/shared-memory.ts';
import type { SharedMemoryOwner } from '../../wasm/shared-memory-owner.ts';
import { Holdings } from '../holdings.ts';
import type { ClusterLoad } from '../load-reporting/cluster-load.ts';
import type { LoadLedger } from '../load-reporting/load-ledger.ts';
import type { ActiveHost } from './active-host.ts';
import { HashKeys } from './host-lists/hash-keys.ts';
import { hashTableGauges, type ShowHashTable } from './host-lists/hash-table-gauges.ts';
import { type BalancingSettings, HostLists } from './host-lists/host-lists.ts';
import { isBelow } from './host-lists/priority-load.ts';
import { hostsByPriority, priorityState } from './host-lists/priority-members.ts';
import { type StartShare, startShare } from './host-lists/slow-start.ts';
import type { Subsets } from './host-lists/subsets.ts';
import type { LocalZones } from './host-lists/zone-routing.ts';
import { HostSet, type HostSetChange } from './host-set.ts';
import type { LocalCluster } from './local-cluster.ts';
import type { OutlierRates } from './outlier-detection/success-rate.ts';
import { TransportSocketMatcher } from './transport-socket-matcher.ts';

/** Counters of times that a breaker was full. */
const OVERFLOWS = ['upstream_cx_overflow', 'upstream_rq_pending_overflow', 'upstream_rq_retry_overflow'] as const;

const { unhealthy: UNHEALTHY, degraded: DEGRADED, excluded: EXCLUDED } = HealthMask;

/** Percent. */
const ALL = 100;

const NO_HOSTS: ReadonlySet<ActiveHost> = new Set();

/** What holds of a new host until its first check has ended. Who has named it waits for it: it serves until it fails. */
function flagsBeforeChecks(settings: ClusterSettings): number {
  const { healthCheck: check } = settings;
  if (check === undefined || namesMembers(settings)) return 0;
  const { failedActiveHealthCheck, pendingActiveHealthCheck } = HealthFlag;
  return check.excludesNewHosts ? failedActiveHealthCheck | pendingActiveHealthCheck : failedActiveHealthCheck;
}

type RuntimeSettings = Pick<BalancingSettings, 'healthyPanicThreshold' | 'zoneRouting' | 'leastRequest'>;

/** Where a cluster's stats and records are made. */
export interface ClusterPlaces {
  readonly stats: StatsStore;
  readonly memory: SharedMemoryOwner;
  /** Builds balancers in shared memory. */
  readonly tables: LbTables;
  readonly runtime: RuntimeValues;
  readonly clock: Clock;
  readonly local: LocalCluster;
  /** Absent where no load is reported. */
  readonly loads?: LoadLedger | undefined;
}

/** Totals are since the start. */
export interface ClusterUse {
  /** Times that a breaker was full. */
  readonly overflows: number;
  readonly members: number;
  readonly membersHealthy: number;
  readonly membersDegraded: number;
  readonly activeRequests: number;
  readonly activeConnections: number;
}

function isSamePolicy(a: AssignmentPolicy, b: AssignmentPolicy): boolean {
  return (
    a.overprovisioningFactor === b.overprovisioningFactor &&
    a.weightedPriorityHealth === b.weightedPriorityHealth &&
    a.dropCategory === b.dropCategory &&
    isSameShare(a.dropShare, b.dropShare)
  );
}

function isSameShare(a: AssignmentPolicy['dropShare'], b: AssignmentPolicy['dropShare']): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

export class ActiveCluster {
  readonly stats;
  /** What discovery calls it, where that is not its name; else empty. */
  readonly edsServiceName: string;
  /** For those who work for the cluster: theirs goes with it. */
  readonly holdings: Holdings;
  readonly #places: ClusterPlaces;
  readonly #scope: Scope;
  readonly #hostSet: HostSet;
  readonly #showHashTable: ShowHashTable | undefined;
  readonly #hashKeys: HashKeys;
  /** Undefined where nobody is told of it. */
  readonly #load: ClusterLoad | undefined;
  /** Undefined: all hosts have the transport socket of the cluster. */
  readonly #sockets: TransportSocketMatcher | undefined;
  readonly #check: HealthCheckSettings | undefined;
  /** As the runtime has them. */
  readonly #limits: RuntimeDerived<ClusterSettings['circuitBreakers']>;
  /** What its outlier detector knows, if it has one; for listings. */
  outlier: OutlierRates | undefined;
  /** What discovery has found last. */
  #found: readonly HostSettings[] = [];
  #hasHadTraffic = false;
  #lists: HostLists;
  /** Settings that the runtime may override, as they were when the lists were made. */
  #builtWith = '';
  #snapshot: ClusterSnapshot;
  /** Members on demand have come or gone since the snapshot was made. */
  #isAmended = false;
  /** What workers know of its members. */
  #told: readonly HostSnapshot[] = [];
  /** What they know of the requests that are turned away. */
  #toldShare: ClusterSettings['dropShare'];

  /**
   * A cluster without members.
   * @param lookups where its requests wait for names to be looked up.
   * @throws WeirError WEIR_SHARED_MEMORY_FULL.
   */
  constructor(settings: ClusterSettings, addedViaApi: boolean, places: ClusterPlaces, lookups?: LookupLimit) {
    const holdings = new Holdings(places);
    const scope = holdings.scope(`cluster.${settings.statName}.`);
    this.holdings = holdings;
    this.#places = places;
    this.#scope = scope;
    this.edsServiceName = settings.discovery.kind === 'eds' ? settings.discovery.serviceName : '';
    this.#toldShare = settings.dropShare;
    try {
      this.stats = scope.allocate(CLUSTER_STATS);
      this.#showHashTable = hashTableGauges(holdings, settings);
      this.#hashKeys = new HashKeys(settings.hashing.usesHostname);
      const { transportSocketMatches: matches } = settings;
      this.#sockets = matches && new TransportSocketMatcher(holdings, settings.statName, matches);
      this.#check = settings.healthCheck;
      this.#hostSet = new HostSet(places, flagsBeforeChecks(settings), settings.outlierDetection !== undefined);
      const { name, circuitBreakers, dropCategory } = settings;
      this.#load = places.loads?.open(name, this.edsServiceName, () => this.#hostSet.hosts);
      if (this.#load !== undefined) {
        holdings.hold(() => this.#load!.close());
        this.#load.dropIn(dropCategory ?? '');
      }
      this.#limits = places.runtime.derived((values) => ({
        default: circuitLimits(values, name, 'default', circuitBreakers.default),
        high: circuitLimits(values, name, 'high', circuitBreakers.high),
      }));
      const { hosts: _members, discovery: _discovery, healthCheck: _check, ...clusterSettings } = settings;
      const budgetBlock = settings.tracksTimeoutBudgets ? scope.allocate(TIMEOUT_BUDGET_STATS).cell : NO_CELLS;
      const isSecured = upstreamContextsOf(settings).some((tls) => tls !== undefined);
      const tlsBlock = isSecured
        ? holdings.scope(`cluster.${settings.statName}.ssl.`).allocate(TLS_STATS).cell
        : NO_CELLS;
      const tlsFactoryBlock = isSecured
        ? holdings.scope(`cluster.${settings.statName}.client_ssl_socket_factory.`).allocate(SSL_SOCKET_FACTORY_STATS)
            .cell
        : NO_CELLS;
      const http2Block =
        settings.http2 === undefined
          ? NO_CELLS
          : holdings.scope(`cluster.${settings.statName}.http2.`).allocate(HTTP2_STATS).cell;
      const sizeBlock = settings.tracksMessageSizes ? scope.allocate(MESSAGE_SIZE_STATS).cell : NO_CELLS;
      const recordAddress = holdings.clusterRecord();
      this.#lists = this.#listsOf(settings, []);
      this.#snapshot = Object.freeze({
        settings: clusterSettings,
        hosts: [],
        hostLists: this.#lists.address,
        statBlock: this.stats.cell,
        budgetBlock,
        sizeBlock,
        tlsBlock,
        tlsFactoryBlock,
        http2Block,
        recordAddress,
        addedViaApi,
        isHealthChecked: settings.healthCheck !== undefined,
        ...(lookups && { lookups }),
        ...(this.#load && { loadBlock: this.#load.block }),
      });
    } catch (error) {
      holdings.close();
      throw error;
    }
  }

  /** It serves from now on: gauges of its name are its own. */
  show(): void {
    const { default: byDefault, high } = this.#snapshot.settings.circuitBreakers;
    addCircuitBreakerGauges({
      scope: this.#scope,
      records: this.#places.memory.shared.records,
      recordAddress: this.#snapshot.recordAddress,
      limits: this.#limits,
      tracksRemaining: { default: byDefault.tracksRemaining ?? false, high: high.tracksRemaining ?? false },
    });
    this.#showTable();
    this.#countMembers();
  }

  /** Gives everything back: no worker uses any of it any more, and nobody on this thread does after it. */
  close(): void {
    this.#places.memory.reclaimer.collect(() => {
      for (const host of this.#hostSet.hosts) this.#retire(host);
      this.#lists.retire();
    })();
    this.holdings.close();
  }

  /** The cluster as workers should see it now; a new object after each change. */
  get snapshot(): ClusterSnapshot {
    // Thousands of members may come one by one: their list is made for who reads it.
    if (this.#isAmended) {
      const hosts = Object.freeze(this.#hostSet.hosts.map((host) => host.snapshot));
      this.#snapshot = Object.freeze({ ...this.#snapshot, hosts });
      this.#isAmended = false;
    }
    return this.#snapshot;
  }

  get settings(): ClusterSnapshot['settings'] {
    return this.#snapshot.settings;
  }

  /**
   * Takes over what discovery has found. A checked host that is not among it any more stays while it passes.
   * @returns what gives the places of removed hosts back, to be called when no worker uses them any more; undefined
   *   when nothing has changed.
   * @throws WeirError WEIR_SHARED_MEMORY_FULL; the members are as before then.
   */
  setMembers(found: readonly HostSettings[]): (() => void) | undefined {
    return this.#update(found, this.#snapshot.settings);
  }

  /** The same with what is said of the cluster as a whole. */
  setAssignment(found: readonly HostSettings[], policy: AssignmentPolicy): (() => void) | undefined {
    const { settings } = this.#snapshot;
    // Without one it has none.
    const { dropCategory: _former, ...others } = settings;
    const free = this.#update(found, isSamePolicy(policy, settings) ? settings : { ...others, ...policy });
    this.#load?.dropIn(policy.dropCategory ?? '');
    return free;
  }

  /** The same as `setMembers` without those that stayed because they passed, and do no longer. */
  dropFailed(): (() => void) | undefined {
    return this.#update(this.#found, this.#snapshot.settings);
  }

  /** Adds a member that no balancer picks from, and that is not there. @throws as setMembers. */
  addMember(member: HostSettings): ActiveHost {
    const host = this.#hostSet.add(member);
    this.#sockets?.assign(member);
    this.#isAmended = true;
    // As all of them begin: healthy, and with the same weight.
    this.stats.add('membership_change');
    this.stats.add('membership_total');
    this.stats.add('membership_healthy');
    this.stats.set('max_host_weight', member.weight);
    return host;
  }

  /** Gives such a member other settings under its name; workers are told as of one that has joined. */
  updateMember(host: ActiveHost, member: HostSettings): void {
    host.update(member);
    this.#isAmended = true;
  }

  /** Takes such members out. @returns as setMembers. */
  removeMembers(hosts: readonly ActiveHost[]): () => void {
    this.#hostSet.remove(hosts);
    this.#isAmended = true;
    this.stats.add('membership_change');
    this.#countMembers();
    return this.#places.memory.reclaimer.collect(() => {
      for (const host of hosts) this.#retire(host);
    });
  }

  /** By its address or name. */
  member(key: string): ActiveHost | undefined {
    return this.#hostSet.get(key);
  }

  /**
   * Works out anew which hosts are picked from, after flags of theirs have changed.
   * @returns as setMembers.
   * @throws as setMembers; the lists are as before then.
   */
  refreshHealth(): () => void {
    const formerLists = this.#lists;
    this.#lists = this.#buildLists();
    this.#snapshot = Object.freeze({ ...this.#snapshot, hostLists: this.#lists.address });
    this.#showLists(formerLists);
    return this.#places.memory.reclaimer.collect(() => formerLists.retire());
  }

  /** Has connections be secured by other settings. @param changed by place (upstreamContextsOf). */
  secure(changed: ReadonlyMap<number, UpstreamTlsSettings>): void {
    const settings = withUpstreamContexts(this.#snapshot.settings, changed);
    this.#snapshot = Object.freeze({ ...this.#snapshot, settings });
  }

  /** An aggregate cluster's requests are shared out so from now on. @returns false when they are already. */
  shareOut(aggregate: AggregateShares): boolean {
    if (JSON.stringify(aggregate) === JSON.stringify(this.#snapshot.aggregate)) return false;
    this.#snapshot = Object.freeze({ ...this.#snapshot, aggregate });
    return true;
  }

  /** What workers are told of it. */
  sharesUpdate(): HostsUpdate {
    const { settings, hostLists, aggregate } = this.#snapshot;
    const update = { cluster: settings.name, hostLists, order: null, hosts: [], health: [], amendment: null };
    return aggregate === undefined ? update : { ...update, aggregate };
  }

  /** What has changed about the members since this was asked last: the next update of the workers. */
  takeUpdate(): HostsUpdate {
    const { settings, hosts, hostLists } = this.#snapshot;
    const { dropShare } = settings;
    const told = this.#told;
    this.#told = hosts;
    const health = this.#hostSet.takeHealthNews().map((host) => host.recordAddress);
    const hasNewShare = !isSameShare(dropShare, this.#toldShare);
    this.#toldShare = dropShare;
    const share = hasNewShare ? { dropShare } : {};
    const update = { cluster: settings.name, hostLists, order: null, hosts: [], health, amendment: null, ...share };
    // Of members on demand their amendments tell.
    if (told === hosts || namesMembers(settings)) return update;
    const known = new Map(told.map((host) => [host.recordAddress, host]));
    const isReordered =
      told.length !== hosts.length || hosts.some((host, at) => host.recordAddress !== told[at]!.recordAddress);
    return {
      ...update,
      order: isReordered ? hosts.map(({ recordAddress }) => recordAddress) : null,
      hosts: hosts.filter((host) => known.get(host.recordAddress) !== host),
    };
  }

  /** What workers are told of members on demand. */
  amendment(joined: readonly ActiveHost[], gone: readonly ActiveHost[]): HostsUpdate {
    const { settings, hostLists } = this.#snapshot;
    const amendment = {
      joined: joined.map(({ snapshot }) => snapshot),
      gone: gone.map(({ recordAddress }) => recordAddress),
    };
    return { cluster: settings.name, hostLists, order: null, hosts: [], health: [], amendment };
  }

  /** The runtime has other values than those that the lists were made with. */
  get isOutdated(): boolean {
    return JSON.stringify(this.#runtimeSettings(this.#snapshot.settings)) !== this.#builtWith;
  }

  /** Some hosts have only a part of their weights. */
  get isStarting(): boolean {
    return this.#lists.isStarting;
  }

  /** Brings the weights of hosts that start up to date. @returns false when all have their whole weights by now. */
  growWeights(): boolean {
    return this.#lists.grow();
  }

  /** A worker has opened a connection for traffic since the start. */
  hasTraffic(): boolean {
    this.#hasHadTraffic ||= this.stats.value('upstream_cx_total') > 0;
    return this.#hasHadTraffic;
  }

  /** How busy it is, over all workers. */
  use(): ClusterUse {
    return {
      overflows: OVERFLOWS.reduce((sum, name) => sum + this.stats.value(name), 0),
      members: this.stats.value('membership_total'),
      membersHealthy: this.stats.value('membership_healthy'),
      membersDegraded: this.stats.value('membership_degraded'),
      activeRequests: this.stats.value('upstream_rq_active'),
      activeConnections: this.stats.value('upstream_cx_active'),
    };
  }

  breakers(): readonly BreakerUse[] {
    const { records } = this.#places.memory.shared;
    return breakerUses({ records, recordAddress: this.#snapshot.recordAddress, limits: this.#limits });
  }

  get size(): number {
    return this.#hostSet.size;
  }

  /** Value of a counter or gauge of the cluster by the part of its name behind the cluster's; 0 where there is none yet. */
  counted(name: string): number {
    return this.#scope.value(name);
  }

  get requestTimes(): HistogramReader {
    return this.#scope.histogram(this.stats, 'upstream_rq_time');
  }

  /** In the order of the snapshot. */
  members(): readonly ActiveHost[] {
    return this.#hostSet.hosts;
  }

  get name(): string {
    return this.settings.name;
  }

  get observabilityName(): string {
    return this.settings.observabilityName;
  }

  /** In percent, as the runtime has it. */
  get panicThreshold(): number {
    return this.#panicThreshold(this.settings);
  }

  get circuitBreakers(): ClusterSettings['circuitBreakers'] {
    return this.#limits.value;
  }

  get addedViaApi(): boolean {
    return this.#snapshot.addedViaApi;
  }

  get tracksHosts(): boolean {
    return this.snapshot.settings.tracksHosts ?? false;
  }

  hosts(): readonly ActiveHost[] {
    return this.#hostSet.hosts.toSorted((a, b) => a.priority - b.priority);
  }

  #retire(host: ActiveHost): void {
    const load = this.#load;
    if (load !== undefined) {
      load.leave(host);
      // Before its cells are free.
      this.#places.memory.reclaimer.retire(() => load.free(host));
    }
    host.retire();
  }

  /** In the cluster's stats: members, subsets, tables. */
  #showLists(former: HostLists): void {
    this.#countSubsets(former.subsets, this.#lists.subsets);
    for (const event of this.#lists.zoneEvents) this.stats.add(event);
    this.#showTable();
    this.#countMembers();
  }

  #showTable(): void {
    const { hashTable } = this.#lists;
    // Policies that build tables are those that have gauges for them.
    if (hashTable) this.#showHashTable!(hashTable);
  }

  /** Marks them, and takes the mark off those that have come back. */
  #passingWithoutDiscovery(): readonly HostSettings[] {
    if (this.#check === undefined || this.#check.removesPassingHosts) return [];
    const found = new Set(this.#found.map(memberKey));
    const passing: HostSettings[] = [];
    for (const host of this.#hostSet.hosts) {
      const isFound = found.has(memberKey(host.snapshot));
      const stays = !isFound && !host.isCheckDisabled && !host.isRemovable;
      host.setHealthFlags(HealthFlag.pendingDynamicRemoval, stays);
      if (stays) passing.push(host.snapshot);
    }
    return passing;
  }

  #update(found: readonly HostSettings[], settings: ClusterSnapshot['settings']): (() => void) | undefined {
    const former = { found: this.#found, lists: this.#lists };
    let change: HostSetChange | undefined;
    try {
      this.#found = found;
      change = this.#hostSet.update([...found, ...this.#passingWithoutDiscovery()]);
      if (change === undefined && settings === this.#snapshot.settings) return undefined;
      this.#lists = this.#buildLists(settings);
    } catch (error) {
      this.#places.memory.reclaimer.collect(() => change?.undo())();
      this.#found = former.found;
      this.#passingWithoutDiscovery();
      throw error;
    }
    const { added = NO_HOSTS, removed = [] } = change ?? {};
    const hosts =
      change === undefined ? this.#snapshot.hosts : Object.freeze(this.#hostSet.hosts.map(({ snapshot }) => snapshot));
    this.#snapshot = Object.freeze({ ...this.#snapshot, settings, hosts, hostLists: this.#lists.address });
    for (const host of added) this.#sockets?.assign(host.snapshot);
    if (added.size > 0 || removed.length > 0) this.stats.add('membership_change');
    this.#showLists(former.lists);
    return this.#places.memory.reclaimer.collect(() => {
      for (const host of removed) this.#retire(host);
      former.lists.retire();
    });
  }

  #buildLists(settings = this.#snapshot.settings): HostLists {
    // Nobody picks from a list where requests name their hosts.
    return this.#listsOf(settings, namesMembers(settings) ? [] : this.#hostSet.hosts);
  }

  #listsOf(settings: ClusterSnapshot['settings'], hosts: readonly ActiveHost[]): HostLists {
    const runtimeSettings = this.#runtimeSettings(settings);
    const lists = new HostLists(this.#places.tables, { ...settings, ...runtimeSettings }, hosts, {
      shareOf: this.#startShares(settings.slowStart, hosts),
      localZones: this.#localZones(runtimeSettings.healthyPanicThreshold),
      keys: this.#hashKeys,
    });
    this.#builtWith = JSON.stringify(runtimeSettings);
    return lists;
  }

  /** As the runtime has them now. */
  #runtimeSettings(settings: ClusterSnapshot['settings']): RuntimeSettings {
    const { runtime } = this.#places;
    const { activeRequestBias: bias, activeRequestBiasKey } = settings.leastRequest;
    // Who has no bias has no key either.
    const activeRequestBias = runtime.number(activeRequestBiasKey) ?? bias;
    return {
      healthyPanicThreshold: this.#panicThreshold(settings),
      zoneRouting: this.#zoneRouting(settings.zoneRouting),
      leastRequest: { ...settings.leastRequest, activeRequestBias },
    };
  }

  #panicThreshold({ healthyPanicThreshold }: Pick<ClusterSettings, 'healthyPanicThreshold'>): number {
    return Math.min(ALL, this.#places.runtime.integer(PANIC_THRESHOLD) ?? healthyPanicThreshold);
  }

  #zoneRouting(settings: ZoneRoutingSettings | null): ZoneRoutingSettings | null {
    if (settings === null) return null;
    const { runtime } = this.#places;
    const { forcedFrom, minClusterSize } = settings;
    return {
      ...settings,
      minClusterSize: runtime.integer(ZONE_MIN_CLUSTER_SIZE) ?? minClusterSize,
      forcedFrom: forcedFrom === null ? null : (runtime.integer(ZONE_FORCED_FROM) ?? forcedFrom),
    };
  }

  #localZones(healthyPanicThreshold: number): LocalZones | null {
    const { locality, members } = this.#places.local;
    if (members === undefined) return null;
    const hosts = members();
    const [first] = hostsByPriority(hosts, hosts.keys());
    return { locality, hosts, isPanic: isBelow(priorityState(hosts, first!, false).counts, healthyPanicThreshold) };
  }

  #startShares(settings: SlowStartSettings | null, hosts: readonly ActiveHost[]): StartShare | null {
    if (settings === null) return null;
    const { runtime, clock } = this.#places;
    const { key, default: byDefault } = settings.aggression;
    const aggression = runtime.derived((values) => {
      const value = values.number(key);
      return value !== undefined && value > 0 ? value : byDefault;
    });
    return (index) => {
      const host = hosts[index]!;
      // Degraded hosts and those in panic are not spared.
      if ((host.healthFlags & (UNHEALTHY | DEGRADED)) !== 0) return 1;
      return startShare(settings, aggression.value, clock.monotonicMs() - host.startedMs);
    };
  }

  /** Both are null where there are none by the settings. */
  #countSubsets(former: Subsets | null, latest: Subsets | null): void {
    if (latest === null) return;
    const { members, duplicates } = latest;
    const missingIn = (others: Subsets['members'], names: Iterable<string>): number =>
      [...names].filter((name) => !others.has(name)).length;
    this.stats.add('lb_subsets_created', missingIn(former!.members, members.keys()));
    this.stats.add('lb_subsets_removed', missingIn(members, former!.members.keys()));
    this.stats.set('lb_subsets_active', members.size);
    this.stats.set('lb_subsets_single_host_per_subset_duplicate', duplicates);
  }

  #countMembers(): void {
    const { hosts } = this.#hostSet;
    let [healthy, degraded, excluded, highest] = [0, 0, 0, 0];
    // One walk, without closures: there may be ten thousand.
    for (const { healthFlags, weight } of hosts) {
      if ((healthFlags & (UNHEALTHY | DEGRADED)) === 0) healthy += 1;
      else if ((healthFlags & UNHEALTHY) === 0) degraded += 1;
      if ((healthFlags & EXCLUDED) !== 0) excluded += 1;
      highest = Math.max(highest, weight);
    }
    this.stats.set('membership_total', hosts.length);
    this.stats.set('membership_healthy', healthy);
    this.stats.set('membership_degraded', degraded);
    this.stats.set('membership_excluded', excluded);
    this.stats.set('max_host_weight', highest);
  }
}
