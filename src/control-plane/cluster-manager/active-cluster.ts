// One cluster in service: its settings, its places in shared memory, its members, and the view of it that listings
// read. Main thread. Owns the stats and records of the cluster and its hosts, and its host lists, until it is closed.

import { memberKey } from '../../base/address.ts';
import { circuitLimits } from '../../base/circuit-limits.ts';
import type { RuntimeDerived } from '../../base/runtime.ts';
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
  namesMembers,
  type UpstreamTlsSettings,
  withUpstreamContexts,
} from '../../snapshot/index.ts';
import {
  addCircuitBreakerGauges,
  type BreakerUse,
  breakerUses,
  CLUSTER_STATS,
  type HistogramReader,
  type Scope,
  type StatsStore,
} from '../../stats/index.ts';
import { HealthFlag } from '../../wasm/shared-memory.ts';
import type { SharedMemoryOwner } from '../../wasm/shared-memory-owner.ts';
import { Holdings } from '../holdings.ts';
import type { ClusterLoad } from '../load-reporting/cluster-load.ts';
import type { LoadLedger } from '../load-reporting/load-ledger.ts';
import type { ActiveHost } from './active-host.ts';
import { clusterBlocks } from './cluster-blocks.ts';
import { hashTableGauges, type ShowHashTable } from './host-lists/hash-table-gauges.ts';
import type { HostLists } from './host-lists/host-lists.ts';
import { ListMaker, type ListMakerDependencies } from './host-lists/list-maker.ts';
import { HostSet, type HostSetChange } from './host-set.ts';
import { countJoined, countMembers, countSubsets } from './membership-stats.ts';
import type { OutlierRates } from './outlier-detection/success-rate.ts';
import { TransportSocketMatcher } from './transport-socket-matcher.ts';

/** Counters of times that a breaker was full. */
const OVERFLOWS = ['upstream_cx_overflow', 'upstream_rq_pending_overflow', 'upstream_rq_retry_overflow'] as const;

const NO_HOSTS: ReadonlySet<ActiveHost> = new Set();

/** What holds of a new host until its first check has ended. Who has named it waits for it: it serves until it fails. */
function flagsBeforeChecks(settings: ClusterSettings): number {
  const { healthCheck: check } = settings;
  if (check === undefined || namesMembers(settings)) return 0;
  const { failedActiveHealthCheck, pendingActiveHealthCheck } = HealthFlag;
  return check.excludesNewHosts ? failedActiveHealthCheck | pendingActiveHealthCheck : failedActiveHealthCheck;
}

/** Where a cluster's stats and records are made, and its balancers. */
export interface ClusterPlaces extends ListMakerDependencies {
  readonly stats: StatsStore;
  readonly memory: SharedMemoryOwner;
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
  readonly #maker: ListMaker;
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
      this.#maker = new ListMaker(places, settings);
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
      const blocks = clusterBlocks(settings, scope, holdings);
      const recordAddress = holdings.clusterRecord();
      // Behind all that the holdings give back where one of it fails.
      this.#lists = this.#maker.make(settings, []);
      this.#snapshot = Object.freeze({
        settings: clusterSettings,
        hosts: [],
        hostLists: this.#lists.address,
        statBlock: this.stats.cell,
        ...blocks,
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
    countMembers(this.stats, this.#hostSet.hosts);
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
    countJoined(this.stats, member.weight);
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
    countMembers(this.stats, this.#hostSet.hosts);
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
    return this.#maker.isOutdated(this.#snapshot.settings);
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
    return this.#maker.panicThreshold(this.settings);
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
    countSubsets(this.stats, former.subsets, this.#lists.subsets);
    for (const event of this.#lists.zoneEvents) this.stats.add(event);
    this.#showTable();
    countMembers(this.stats, this.#hostSet.hosts);
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
    return this.#maker.make(settings, namesMembers(settings) ? [] : this.#hostSet.hosts);
  }
}
