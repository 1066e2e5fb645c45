// What the hosts of one cluster are picked from, in shared memory: the lists that are in use, their shares of the
// requests, and a balancer for each. Made anew when members or their health change. Main thread.

import type { ClusterSettings, SubsetSettings } from '../../../snapshot/index.ts';
import { type HashTable, type HostSource, type LbTables, NO_HOSTS } from '../../../wasm/lb.ts';
import { HashKeys } from './hash-keys.ts';
import { hostsByLocality, localityKey } from './localities.ts';
import { hostsByPriority, type ListedHost } from './priority-members.ts';
import type { StartShare } from './slow-start.ts';
import {
  type Built,
  type ScaleLocality,
  SourceBuilder,
  type SourceSettings,
  type ZoneEvent,
} from './source-builder.ts';
import { hostsHaving, type Subsets, subsetsOf } from './subsets.ts';
import type { LocalZones } from './zone-routing.ts';

export type BalancingSettings = SourceSettings & Pick<ClusterSettings, 'subsets'>;

export interface ListSituation {
  /** Null where all hosts have their whole weights. Asked again by `grow`. */
  readonly shareOf?: StartShare | null;
  /** Null without a local cluster. */
  readonly localZones?: LocalZones | null;
  /** Known from the lists before these. */
  readonly keys?: HashKeys;
}

export class HostLists {
  /** Of the block. */
  readonly address: number;
  /** Of policies that go by hashes: the table built last. */
  readonly hashTable: HashTable | undefined;
  /** Null where there are none by the settings. */
  readonly subsets: Subsets | null;
  readonly #tables: LbTables;
  readonly #hosts: readonly ListedHost[];
  readonly #built: Built;

  /**
   * @param situation what beside the hosts decides.
   * @throws WeirError WEIR_SHARED_MEMORY_FULL; nothing is left behind then.
   */
  constructor(
    tables: LbTables,
    settings: BalancingSettings,
    hosts: readonly ListedHost[],
    { shareOf = null, localZones = null, keys = new HashKeys(settings.hashing.usesHostname) }: ListSituation = {},
  ) {
    const built: Built = {
      shareOf,
      keys,
      starting: [],
      localZones,
      zoneEvents: [],
      balancers: [],
      hashTable: undefined,
    };
    this.#tables = tables;
    this.#hosts = hosts;
    this.#built = built;
    this.subsets = settings.subsets && subsetsOf(hosts, settings.subsets);
    try {
      this.address = tables.buildHostLists(this.#build(settings, hosts, built)).address;
    } catch (error) {
      for (const balancer of built.balancers) tables.free(balancer);
      throw error;
    }
    this.hashTable = built.hashTable;
  }

  /** Gives the block and the balancers back once no worker reads them any more. */
  retire(): void {
    for (const balancer of this.#built.balancers) this.#tables.retire(balancer);
    this.#tables.retire(this);
  }

  /** What was counted while zones were worked out. */
  get zoneEvents(): readonly ZoneEvent[] {
    return this.#built.zoneEvents;
  }

  /** Some hosts have only a part of their weights. */
  get isStarting(): boolean {
    return this.#built.starting.length > 0;
  }

  /** Brings the weights of hosts that start up to date. @returns false when all have their whole weights by now. */
  grow(): boolean {
    const { starting, shareOf } = this.#built;
    let isGrowing = false;
    for (const { hosts, plan } of starting) {
      for (const [at, index] of hosts.entries()) {
        const share = shareOf!(index);
        isGrowing ||= share < 1;
        this.#tables.setWeight(plan, at, this.#hosts[index]!.weight * share);
      }
    }
    return isGrowing;
  }

  #build(settings: BalancingSettings, hosts: readonly ListedHost[], built: Built): HostSource {
    const { subsets } = settings;
    if (subsets === null) return new SourceBuilder(this.#tables, settings, hosts, hosts.keys(), built).build();
    const weighsLocalities = settings.weighsLocalities && subsets.weighsLocalities;
    const scale = subsets.scalesLocalityWeights ? scaleBySize(hosts) : null;
    const sourceOf = (indexes: Iterable<number>): HostSource =>
      new SourceBuilder(this.#tables, { ...settings, weighsLocalities }, hosts, indexes, built, scale).build();
    const { members } = this.subsets!;
    const sources = [...members.values()].map(sourceOf);
    const inDefault = hostsHaving(hosts, subsets.defaultSubset, subsets.listAsAny);
    const mayNeed = fallbacksOf(subsets);
    return {
      kind: 'subsets',
      any: mayNeed.has('any-host') ? sourceOf(hosts.keys()) : NO_HOSTS,
      defaultSubset: mayNeed.has('default-subset') ? sourceOf(inDefault) : NO_HOSTS,
      names: [...members.keys()],
      sourceOf: (index) => sources[index]!,
    };
  }
}

function fallbacksOf({ fallback, panicModeAny, selectors }: SubsetSettings): ReadonlySet<string> {
  const ofSelectors = selectors.map((selector) => selector.fallback);
  return new Set([fallback, ...ofSelectors, ...(panicModeAny ? ['any-host'] : [])]);
}

/** By the part of a locality's hosts that is among those at hand. */
function scaleBySize(hosts: readonly ListedHost[]): ScaleLocality {
  const sizes = hostsByPriority(hosts, hosts.keys()).map(
    ({ all }) =>
      new Map(hostsByLocality(hosts, all).map((each) => [localityKey(each.locality), each.hosts.all.length])),
  );
  return ({ locality, hosts: { all } }) => all.length / sizes[hosts[all[0]!]!.priority]!.get(localityKey(locality))!;
}
