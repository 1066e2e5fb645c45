// From some hosts of a cluster to the source that requests for them are served from: shares by priority and health, turns
// by locality, lists with their balancers. Main thread.

import type { ClusterSettings } from '../../../snapshot/index.ts';
import {
  type HashTable,
  type HostList,
  type HostSource,
  type HostTurns,
  type HostZones,
  type LbTables,
  NO_HOSTS,
  type SchedulePlan,
} from '../../../wasm/lb.ts';
import { type BalancerSettings, buildBalancer, buildHashTable, buildStarting, isHashed } from './balancers.ts';
import type { HashKeys } from './hash-keys.ts';
import { type ListShare, type ShareLimits, shareOut } from './host-shares.ts';
import { effectiveWeights, hostsByLocality, type LocalityMembers } from './localities.ts';
import { type HostClasses, hostsByPriority, type ListedHost } from './priority-members.ts';
import type { StartShare } from './slow-start.ts';
import {
  isRouted,
  type LocalZones,
  routeByZone,
  type ZoneRefusal,
  type ZoneRoutes,
  zoneShares,
} from './zone-routing.ts';

export type SourceSettings = BalancerSettings &
  ShareLimits &
  Pick<ClusterSettings, 'failsTrafficOnPanic' | 'weighsLocalities' | 'zoneRouting'>;

/** Slots of one priority. */
const LIST_SLOTS = { all: 0, healthy: 1, degraded: 2 } as const;
const SLOTS_PER_PRIORITY = 3;
/** More than the slots of all priorities: a locality's lists have slots of their own behind them. */
const SLOTS_PER_LOCALITY = 1024;

/** A list of hosts of which some have only a part of their weights. */
export interface StartingList {
  readonly hosts: readonly number[];
  readonly plan: SchedulePlan;
}

/** What is built for a cluster, to be given back with it. */
export interface Built {
  /** Null where all hosts have their whole weights. */
  readonly shareOf: StartShare | null;
  /** Asked where tables are built by hashes. */
  readonly keys: HashKeys;
  readonly starting: StartingList[];
  /** Null where there is no local cluster. */
  readonly localZones: LocalZones | null;
  /** How often zones were worked out, and could not be used. */
  readonly zoneEvents: ZoneEvent[];
  /** That lie in shared memory, or need none. */
  readonly balancers: HostList['plan'][];
  /** The last one. */
  hashTable: HashTable | undefined;
}

/** Counted when zones are worked out; the names are those of stats. */
export type ZoneEvent = 'lb_recalculate_zone_structures' | NonNullable<ZoneRefusal>;

/** What a locality weighs beside its own weight, for some of the hosts. */
export type ScaleLocality = (locality: LocalityMembers) => number;

export class SourceBuilder {
  readonly #built: Built;
  readonly #tables: LbTables;
  readonly #settings: SourceSettings;
  readonly #hosts: readonly ListedHost[];
  readonly #scaleLocality: ScaleLocality | null;
  readonly #priorities: readonly HostClasses[];
  #zoneRoutes: ZoneRoutes | ZoneRefusal | undefined;
  /** By slot. */
  readonly #sources = new Map<number, HostSource>();

  constructor(
    tables: LbTables,
    settings: SourceSettings,
    hosts: readonly ListedHost[],
    indexes: Iterable<number>,
    built: Built,
    scaleLocality: ScaleLocality | null = null,
  ) {
    this.#tables = tables;
    this.#settings = settings;
    this.#hosts = hosts;
    this.#built = built;
    this.#scaleLocality = scaleLocality;
    this.#priorities = hostsByPriority(hosts, indexes);
  }

  build(): HostSource {
    const shares = shareOut(this.#hosts, this.#priorities, this.#settings);
    const [first] = shares;
    // The rule: all requests go to one list, and nobody has to draw.
    if (shares.length === 1 && first!.hosts !== 'all') return this.#sourceOf(first!);
    let upTo = 0;
    return {
      kind: 'shares',
      shares: shares.map((share) => {
        upTo += share.load;
        const { priority, availability, hosts } = share;
        return { upTo, source: this.#sourceOf(share), isPanic: hosts === 'all', priority, availability };
      }),
    };
  }

  #sourceOf({ priority, hosts }: ListShare): HostSource {
    const isByHash = isHashed(this.#settings);
    if (hosts === 'all' && this.#settings.failsTrafficOnPanic && !isByHash) return NO_HOSTS;
    // A hash must lead to the same host whatever share its request falls into, so degraded hosts are on no table.
    const used = hosts === 'degraded' && isByHash ? 'healthy' : hosts;
    const slot = priority * SLOTS_PER_PRIORITY + LIST_SLOTS[used];
    let source = this.#sources.get(slot);
    if (source === undefined) {
      source = this.#buildSource(this.#priorities[priority]!, used, slot);
      this.#sources.set(slot, source);
    }
    return source;
  }

  #buildSource(classes: HostClasses, used: ListShare['hosts'], slot: number): HostSource {
    if (!this.#settings.weighsLocalities) {
      const isFirst = slot < SLOTS_PER_PRIORITY;
      return (isFirst ? this.#buildZones(used, slot) : undefined) ?? this.#buildList(classes[used], slot);
    }
    const localities = this.#localitiesOf(classes);
    if (isHashed(this.#settings)) return this.#buildWeighedTable(localities, used, slot);
    // In panic all hosts are alike, wherever they are.
    if (used === 'all') return this.#buildList(classes.all, slot);
    return this.#buildTurns(localities, used, slot) ?? this.#buildList(classes[used], slot);
  }

  /** @returns undefined where all hosts of the first priority are alike. */
  #buildZones(used: ListShare['hosts'], slot: number): HostZones | undefined {
    const { localZones } = this.#built;
    if (used === 'all' || localZones === null || isHashed(this.#settings)) return undefined;
    const routes = this.#routesByZone(localZones);
    if (!isRouted(routes)) return undefined;
    return {
      kind: 'zones',
      isDirect: routes.isDirect,
      isPanic: localZones.isPanic,
      failsInPanic: this.#settings.failsTrafficOnPanic,
      localShare: routes.localShare,
      any: this.#buildList(this.#priorities[0]![used], slot),
      zones: zoneShares(routes, ({ hosts }, at) => this.#buildList(hosts[used], (at + 1) * SLOTS_PER_LOCALITY + slot)),
    };
  }

  /** The same for healthy hosts and for degraded ones. */
  #routesByZone(zones: LocalZones): ZoneRoutes | ZoneRefusal {
    const { zoneRouting } = this.#settings;
    if (zoneRouting === null) return null;
    if (this.#zoneRoutes === undefined) {
      this.#zoneRoutes = routeByZone(this.#hosts, this.#priorities[0]!.all, zones, zoneRouting);
      this.#built.zoneEvents.push('lb_recalculate_zone_structures');
      if (typeof this.#zoneRoutes === 'string') this.#built.zoneEvents.push(this.#zoneRoutes);
    }
    return this.#zoneRoutes;
  }

  #localitiesOf({ all }: HostClasses): readonly LocalityMembers[] {
    const scale = this.#scaleLocality;
    const localities = hostsByLocality(this.#hosts, all);
    if (scale === null) return localities;
    return localities.map((each) => ({ ...each, weight: Math.round(each.weight * scale(each)) }));
  }

  /** @returns undefined when no locality has weight and usable hosts. */
  #buildTurns(
    localities: readonly LocalityMembers[],
    used: 'healthy' | 'degraded',
    slot: number,
  ): HostTurns | undefined {
    const weights = effectiveWeights(localities, used, this.#settings.overprovisioningFactor);
    if (!weights.some((weight) => weight > 0)) return undefined;
    const sources = localities.flatMap(({ hosts }, at) =>
      weights[at]! > 0 ? [this.#buildList(hosts[used], (at + 1) * SLOTS_PER_LOCALITY + slot)] : [],
    );
    const schedule = this.#tables.buildTurns(weights.filter((weight) => weight > 0));
    this.#built.balancers.push(schedule);
    return { kind: 'turns', schedule, sources };
  }

  /** A table goes by the weights of localities as they are configured, whatever their health. */
  #buildWeighedTable(localities: readonly LocalityMembers[], used: ListShare['hosts'], slot: number): HostSource {
    const sum = localities.reduce((total, { weight }) => total + weight, 0);
    const weighed = localities.filter(({ weight }) => weight > 0);
    const indexes = weighed.flatMap(({ hosts }) => hosts[used]);
    const shares = weighed.flatMap(({ weight, hosts }) =>
      [...this.#weightShares(hosts[used])].map((share) => (weight / sum) * share),
    );
    return this.#buildList(indexes, slot, Float64Array.from(shares));
  }

  /** @param shares what each host has of 1, for policies that go by hashes; default by their weights. */
  #buildList(indexes: readonly number[], slot: number, shares?: Float64Array): HostSource {
    if (indexes.length === 0) return NO_HOSTS;
    if (isHashed(this.#settings)) return this.#buildTable(indexes, slot, shares ?? this.#weightShares(indexes));
    const members = indexes.map((index) => this.#hosts[index]!);
    const plan = this.#buildStarting(indexes, members) ?? buildBalancer(this.#tables, this.#settings, members);
    this.#built.balancers.push(plan);
    return { kind: 'list', hosts: indexes, plan, slot };
  }

  /** @returns undefined when no host starts, or there is nothing to choose. */
  #buildStarting(indexes: readonly number[], members: readonly ListedHost[]): SchedulePlan | undefined {
    const { shareOf, starting } = this.#built;
    if (shareOf === null || indexes.length === 1) return undefined;
    const shares = indexes.map(shareOf);
    if (shares.every((share) => share === 1)) return undefined;
    const plan = buildStarting(this.#tables, this.#settings, members, shares);
    starting.push({ hosts: indexes, plan });
    return plan;
  }

  #buildTable(indexes: readonly number[], slot: number, shares: Float64Array): HostSource {
    const keys = this.#built.keys.of(this.#hosts);
    const { plan, table } = buildHashTable(this.#tables, this.#settings, keys, indexes, shares);
    this.#built.balancers.push(plan);
    this.#built.hashTable = table;
    const list = { kind: 'list', hosts: indexes, plan, slot } as const;
    const { balancePercent: percent } = this.#settings.hashing;
    return percent === 0 ? list : { kind: 'bounded', table: list, percent, shares };
  }

  /** What each host has of 1. */
  #weightShares(indexes: readonly number[]): Float64Array {
    const sum = indexes.reduce((total, index) => total + this.#hosts[index]!.weight, 0);
    const shares = new Float64Array(indexes.length);
    for (const [at, index] of indexes.entries()) shares[at] = this.#hosts[index]!.weight / sum;
    return shares;
  }
}
