// What the hosts of one cluster are picked from, in shared memory: the lists that are in use, their shares of the
// requests, and a balancer for each. Made anew when members or their health change. Main thread.

import type { ClusterSettings } from '../../../snapshot/index.ts';
import { type HashTable, type HostList, type HostSource, type LbTables, NO_HOSTS } from '../../../wasm/lb.ts';
import { type BalancerSettings, buildBalancer, buildHashTable, isHashed } from './balancers.ts';
import { type ListShare, type ShareLimits, shareOut } from './host-shares.ts';
import { type HostClasses, hostsByPriority, type ListedHost } from './priority-members.ts';

export type BalancingSettings = BalancerSettings & ShareLimits & Pick<ClusterSettings, 'lbPolicy'>;

/** Slots of one priority. */
const LIST_SLOTS = { all: 0, healthy: 1, degraded: 2 } as const;
const SLOTS_PER_PRIORITY = 3;

export class HostLists {
  /** Of the block; 0 when there is nothing to pick from. */
  readonly address: number;
  /** Of policies that go by hashes: the table built last. */
  readonly hashTable: HashTable | undefined;
  readonly #tables: LbTables;
  /** The balancers that the block names, as far as they lie in shared memory. */
  readonly #balancers: readonly HostList['plan'][];

  /** @throws WeirError WEIR_SHARED_MEMORY_FULL; nothing is left behind then. */
  constructor(tables: LbTables, settings: BalancingSettings, hosts: readonly ListedHost[]) {
    this.#tables = tables;
    const builder = new SourceBuilder(tables, settings, hosts);
    try {
      this.address = hosts.length === 0 ? 0 : tables.buildHostLists(builder.build()).address;
    } catch (error) {
      for (const balancer of builder.balancers) tables.free(balancer);
      throw error;
    }
    this.#balancers = builder.balancers;
    this.hashTable = builder.hashTable;
  }

  /** Gives the block and the balancers back once no worker reads them any more. */
  retire(): void {
    for (const balancer of this.#balancers) this.#tables.retire(balancer);
    if (this.address !== 0) this.#tables.retire(this);
  }
}

class SourceBuilder {
  readonly balancers: HostList['plan'][] = [];
  hashTable: HashTable | undefined;
  readonly #tables: LbTables;
  readonly #settings: BalancingSettings;
  readonly #hosts: readonly ListedHost[];
  readonly #priorities: readonly HostClasses[];
  /** By slot. */
  readonly #lists = new Map<number, HostSource>();

  constructor(tables: LbTables, settings: BalancingSettings, hosts: readonly ListedHost[]) {
    this.#tables = tables;
    this.#settings = settings;
    this.#hosts = hosts;
    this.#priorities = hostsByPriority(hosts);
  }

  build(): HostSource {
    const shares = shareOut(this.#hosts, this.#priorities, this.#settings);
    const [first] = shares;
    // The rule: all requests go to one list, and nobody has to draw.
    if (shares.length === 1 && first!.hosts !== 'all') return this.#listOf(first!);
    let upTo = 0;
    return {
      kind: 'shares',
      shares: shares.map((share) => {
        upTo += share.load;
        return { upTo, source: this.#listOf(share), isPanic: share.hosts === 'all' };
      }),
    };
  }

  #listOf({ priority, hosts }: ListShare): HostSource {
    // A hash must lead to the same host whatever share its request falls into, so degraded hosts are on no table.
    const used = hosts === 'degraded' && isHashed(this.#settings) ? 'healthy' : hosts;
    const slot = priority * SLOTS_PER_PRIORITY + LIST_SLOTS[used];
    let list = this.#lists.get(slot);
    if (list === undefined) {
      list = this.#buildList(this.#priorities[priority]![used], slot);
      this.#lists.set(slot, list);
    }
    return list;
  }

  #buildList(indexes: readonly number[], slot: number): HostSource {
    if (indexes.length === 0) return NO_HOSTS;
    const members = indexes.map((index) => this.#hosts[index]!);
    const plan = this.#buildPlan(members);
    this.balancers.push(plan);
    return { kind: 'list', hosts: indexes, plan, slot };
  }

  #buildPlan(members: readonly ListedHost[]): HostList['plan'] {
    if (!isHashed(this.#settings)) return buildBalancer(this.#tables, this.#settings, members);
    const { plan, table } = buildHashTable(this.#tables, this.#settings, members);
    this.hashTable = table;
    return plan;
  }
}
