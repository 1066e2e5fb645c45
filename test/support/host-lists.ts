// The hosts of one cluster and what picks among them, without a proxy around: main's host lists, one worker's balancer.

import { type Random, RandomSequence } from '../../src/base/random.ts';
import { isHashed } from '../../src/control-plane/cluster-manager/host-lists/balancers.ts';
import {
  type BalancingSettings,
  HostLists,
  type ListSituation,
} from '../../src/control-plane/cluster-manager/host-lists/host-lists.ts';
import type { ListedHost } from '../../src/control-plane/cluster-manager/host-lists/priority-members.ts';
import type { StartShare } from '../../src/control-plane/cluster-manager/host-lists/slow-start.ts';
import { LoadBalancer, type PickEvent } from '../../src/data-plane/upstream/load-balancer/load-balancer.ts';
import {
  type Criteria,
  type DrawContext,
  type PickContext,
  RequestHash,
} from '../../src/data-plane/upstream/load-balancer/pick-context.ts';
import { NO_HOST } from '../../src/data-plane/upstream/load-balancer/source-picker.ts';
import { BALANCING } from './clusters.ts';
import { openLb } from './lb.ts';

export const lb = openLb();

export interface NamedHost extends ListedHost {
  readonly name: string;
}

export function host(name: string, fields: Partial<ListedHost> = {}): NamedHost {
  return {
    name,
    address: { kind: 'pipe', path: name, mode: 0 },
    hostname: '',
    hashKey: '',
    subsetValues: [],
    weight: 1,
    locality: { region: '', zone: '', subZone: '' },
    localityWeight: 0,
    priority: 0,
    healthFlags: 0,
    recordAddress: 0,
    ...fields,
  };
}

/** What is known of a request with this hash. */
export function requestHash(hash: bigint, criteria: Criteria | null = null): RequestHash {
  const result = new RequestHash(criteria);
  result.add(Number(hash >> 32n) | 0, Number(hash & 0xffff_ffffn) | 0);
  return result;
}

export class BalancedCluster {
  /** Of requests that go by locality. */
  readonly zoneRouting = { value: { numerator: 100, denominator: 100 } };
  /** Requests in flight on each host, by its place among the hosts. */
  readonly active: number[] = [];
  /** Of the cluster, where it is not the sum of those. */
  activeInAll: number | undefined;
  readonly counts: Partial<Record<PickEvent, number>> = {};
  #hosts: readonly NamedHost[] = [];
  #lists: HostLists | undefined;
  readonly #settings: BalancingSettings;
  readonly #balancer: LoadBalancer;

  /** @param seeds where lists begin. */
  constructor(settings: Partial<BalancingSettings> = {}, seed = 2463534242, seeds: Random = new RandomSequence(seed)) {
    this.#settings = { ...BALANCING, ...settings };
    this.#balancer = new LoadBalancer({
      kernel: lb.kernel,
      seeds,
      random: new RandomSequence(seed),
      isHashed: isHashed(this.#settings),
      subsets: this.#settings.subsets,
      loads: {
        ofCluster: () => this.activeInAll ?? this.active.reduce((sum, active) => sum + active, 0),
        ofHost: (index) => this.active[index] ?? 0,
      },
      zoneRouting: this.zoneRouting,
      count: (event) => {
        this.counts[event] = (this.counts[event] ?? 0) + 1;
      },
    });
  }

  /** Requests that went to any host of a priority. */
  get panics(): number {
    return this.counts.lb_healthy_panic ?? 0;
  }

  /** As main does it when members or health change. */
  setHosts(...hosts: readonly NamedHost[]): this {
    return this.setHostsStarting(null, ...hosts);
  }

  /** @param shareOf what each host has of its weight; null for all. */
  setHostsStarting(shareOf: StartShare | null, ...hosts: readonly NamedHost[]): this {
    return this.setHostsIn({ shareOf }, ...hosts);
  }

  setHostsIn(situation: ListSituation, ...hosts: readonly NamedHost[]): this {
    const former = this.#lists;
    this.#hosts = hosts;
    this.#lists = new HostLists(lb.tables, this.#settings, hosts, situation);
    this.#balancer.setLists(this.#lists.address);
    lb.owner.reclaimer.collect(() => former?.retire())();
    return this;
  }

  /** Of the lists. */
  get address(): number {
    return this.#lists!.address;
  }

  /** As main does it while hosts start. */
  grow(): boolean {
    return this.#lists!.grow();
  }

  get zoneEvents(): readonly string[] {
    return this.#lists!.zoneEvents;
  }

  /** Gives all of it back. */
  close(): void {
    const lists = this.#lists;
    this.#lists = undefined;
    lb.owner.reclaimer.collect(() => lists?.retire())();
  }

  /** Name of the next host, or `none`. */
  pick(request: PickContext | null = null, draws: DrawContext | null = null): string {
    const index = this.#balancer.pick(request, draws);
    return index === NO_HOST ? 'none' : this.#hosts[index]!.name;
  }

  picks(count: number): string {
    return Array.from({ length: count }, () => this.pick()).join('');
  }

  /** How often each name comes in so many picks. */
  shares(count: number): Record<string, number> {
    const counts: Record<string, number> = {};
    for (let pick = 0; pick < count; pick += 1) {
      const name = this.pick();
      counts[name] = (counts[name] ?? 0) + 1;
    }
    return counts;
  }
}
