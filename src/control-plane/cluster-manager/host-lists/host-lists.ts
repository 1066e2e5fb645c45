// What the hosts of one cluster are picked from, in shared memory: the lists that are in use, their shares of the
// requests, and a balancer for each. Made anew when members or their health change. Main thread.

import type { ClusterSettings } from '../../../snapshot/index.ts';
import type { HostList, HostSource, LbTables, PickPlan } from '../../../wasm/lb.ts';
import { NO_HOSTS } from '../../../wasm/lb.ts';
import { buildBalancer } from './balancers.ts';
import { type ListShare, shareOut } from './host-shares.ts';
import { type HostClasses, hostsByPriority, type ListedHost } from './priority-members.ts';

export type BalancingSettings = Pick<
  ClusterSettings,
  'lbPolicy' | 'leastRequest' | 'healthyPanicThreshold' | 'overprovisioningFactor' | 'weightedPriorityHealth'
>;

/** Slots of one priority. */
const LIST_SLOTS = { all: 0, healthy: 1, degraded: 2 } as const;
const SLOTS_PER_PRIORITY = 3;

export class HostLists {
  /** Of the block; 0 when there is nothing to pick from. */
  readonly address: number;
  readonly #tables: LbTables;
  /** The balancers that the block names. */
  readonly #plans: readonly PickPlan[];

  /** @throws WeirError WEIR_SHARED_MEMORY_FULL; nothing is left behind then. */
  constructor(tables: LbTables, settings: BalancingSettings, hosts: readonly ListedHost[]) {
    const plans: PickPlan[] = [];
    this.#tables = tables;
    this.#plans = plans;
    this.address = 0;
    if (hosts.length === 0) return;
    try {
      const source = buildSource(hosts, settings, (list) => {
        const plan = buildBalancer(tables, settings, list);
        plans.push(plan);
        return plan;
      });
      ({ address: this.address } = tables.buildHostLists(source));
    } catch (error) {
      for (const plan of plans) tables.free(plan);
      throw error;
    }
  }

  /** Gives the block and the balancers back once no worker reads them any more. */
  retire(): void {
    for (const plan of this.#plans) this.#tables.retire(plan);
    if (this.address !== 0) this.#tables.retire(this);
  }
}

type BuildBalancer = (hosts: readonly ListedHost[]) => PickPlan;

function buildSource(hosts: readonly ListedHost[], settings: BalancingSettings, build: BuildBalancer): HostSource {
  const priorities = hostsByPriority(hosts);
  const shares = shareOut(hosts, priorities, settings);
  const lists = new Map<number, HostSource>();
  const listOf = (share: ListShare): HostSource => {
    const slot = share.priority * SLOTS_PER_PRIORITY + LIST_SLOTS[share.hosts];
    const known = lists.get(slot);
    if (known) return known;
    const list = buildList(hosts, priorities[share.priority]![share.hosts], slot, build);
    lists.set(slot, list);
    return list;
  };
  const [first] = shares;
  // The rule: all requests go to one list, and nobody has to draw.
  if (shares.length === 1 && first!.hosts !== 'all') return listOf(first!);
  let upTo = 0;
  return {
    kind: 'shares',
    shares: shares.map((share) => {
      upTo += share.load;
      return { upTo, source: listOf(share), isPanic: share.hosts === 'all' };
    }),
  };
}

function buildList(
  hosts: readonly ListedHost[],
  list: HostClasses['all'],
  slot: number,
  build: BuildBalancer,
): HostList | typeof NO_HOSTS {
  if (list.length === 0) return NO_HOSTS;
  return { kind: 'list', hosts: list, plan: build(list.map((index) => hosts[index]!)), slot };
}
