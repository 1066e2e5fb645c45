// Chooses hosts as main has worked it out: which lists serve the requests, in what shares, and which balancer picks from
// each stand in shared memory. Lists are read before the first pick from them, so that clusters without traffic cost
// nothing. Step 4 of the request flow.

import type { Random } from '../../../base/random.ts';
import type { Fraction } from '../../../base/runtime.ts';
import type { SubsetSettings } from '../../../snapshot/index.ts';
import {
  type BoundedHosts,
  CyclePicker,
  type HostList,
  type HostSource,
  type HostSubsets,
  type HostZones,
  isHashPlan,
  type LbKernel,
  openHashTable,
  openPicker,
  readHostLists,
} from '../../../wasm/lb.ts';
import { BoundedPicker, type ClusterLoads } from './bounded-picker.ts';
import { type Criteria, contextOf, type DrawContext, type PickContext } from './pick-context.ts';
import { hashPercent, randomPercent, SharesPicker } from './shares-picker.ts';
import { EMPTY_PICKER, HashPicker, ListPicker, type SourcePicker, TurnsPicker } from './source-picker.ts';
import { SubsetsPicker } from './subsets-picker.ts';
import { type ZonePickEvent, ZonesPicker } from './zones-picker.ts';

export interface LoadBalancerOptions {
  readonly kernel: LbKernel;
  /** Drawn from when lists are opened: where each worker begins. */
  readonly seeds: Random;
  /** Drawn from per request, where chance decides. */
  readonly random: Random;
  /** Requests of equal hashes go to the same host, as long as it is there. */
  readonly isHashed: boolean;
  /** Null when requests choose among all hosts. */
  readonly subsets: SubsetSettings | null;
  readonly loads: ClusterLoads;
  /** Of requests that go by locality, where lists do. */
  readonly zoneRouting: { readonly value: Fraction };
  readonly count: (event: PickEvent) => void;
}

/** What is counted of a pick; the names are those of stats. */
export type PickEvent =
  /** Any host of a priority, because too few are available. */
  | 'lb_healthy_panic'
  /** The subset that the request asks for; one instead that the cluster names; any host in its place. */
  | 'lb_subsets_selected'
  | 'lb_subsets_fallback'
  | 'lb_subsets_fallback_panic'
  | ZonePickEvent;

/** Balancers that take turns, by slot: they go on where they stood when the lists change. */
type Cycles = Map<number, CyclePicker>;

/** Beside the names of subsets, those of all hosts and of the default subset; a subset's name is never a bare word. */
const ANY = 'any';
const DEFAULT = 'default';

export class LoadBalancer {
  readonly #options: LoadBalancerOptions;
  readonly #drawn: DrawnHash;
  /** By the name of the subset. */
  readonly #cycles = new Map<string, Cycles>();
  /** 0 until the first lists have come. */
  #address = 0;
  /** Null until the lists are read. */
  #picker: SourcePicker | null = null;

  constructor(options: LoadBalancerOptions) {
    this.#options = options;
    this.#drawn = new DrawnHash(options.random);
  }

  /** @param address of the host lists that main has published. */
  setLists(address: number): void {
    const isInUse = this.#picker !== null;
    this.#address = address;
    this.#picker = null;
    // Here rather than with the next request.
    if (isInUse) this.#open();
  }

  /**
   * Index of the host for a request in the cluster's order, or NO_HOST. Hot: no allocation, one call at most.
   * @param request null when nothing is known of it.
   * @param draws null when it is picked for once.
   */
  pick(request: PickContext | null, draws: DrawContext | null = null): number {
    const picker = this.#picker ?? this.#open();
    if (!this.#options.isHashed) return picker.pick(request ?? NOTHING_KNOWN, draws);
    return picker.pick(request?.hasHash ? request : this.#drawn.draw(request?.criteria ?? null), draws);
  }

  #open(): SourcePicker {
    const { kernel } = this.#options;
    const picker = this.#address === 0 ? EMPTY_PICKER : this.#openAs(ANY, readHostLists(kernel.shared, this.#address));
    this.#picker = picker;
    return picker;
  }

  #openAs(subset: string, source: HostSource): SourcePicker {
    let cycles = this.#cycles.get(subset);
    if (cycles === undefined) {
      cycles = new Map();
      this.#cycles.set(subset, cycles);
    }
    return this.#openSource(source, cycles);
  }

  #openSource(source: HostSource, cycles: Cycles): SourcePicker {
    switch (source.kind) {
      case 'none':
        return EMPTY_PICKER;
      case 'list':
        return this.#openList(source, cycles);
      case 'bounded':
        return this.#openBounded(source);
      case 'zones':
        return this.#openZones(source, cycles);
      case 'subsets':
        return this.#openSubsets(source);
      case 'turns': {
        const { kernel, seeds } = this.#options;
        const sources = source.sources.map((each) => this.#openSource(each, cycles));
        return new TurnsPicker(openPicker(kernel, source.schedule, seeds.u32()), sources);
      }
      case 'shares': {
        const { isHashed, random, count } = this.#options;
        const shares = source.shares.map((share) => ({ ...share, picker: this.#openSource(share.source, cycles) }));
        return new SharesPicker(shares, isHashed ? hashPercent : randomPercent(random), () =>
          count('lb_healthy_panic'),
        );
      }
    }
  }

  #openZones({ any, zones, ...routes }: HostZones, cycles: Cycles): SourcePicker {
    const { zoneRouting: enabled, random, count } = this.#options;
    return new ZonesPicker({
      routes,
      any: this.#openSource(any, cycles),
      zones: zones.map(({ upTo, source }) => ({ upTo, picker: this.#openSource(source, cycles) })),
      enabled,
      random,
      count,
    });
  }

  #openSubsets({ any, defaultSubset, names, sourceOf }: HostSubsets): SourcePicker {
    const { subsets, count } = this.#options;
    this.#forgetBut(names);
    return new SubsetsPicker({
      settings: subsets!,
      any: this.#openAs(ANY, any),
      defaultSubset: this.#openAs(DEFAULT, defaultSubset),
      names,
      open: (index) => this.#openAs(names[index]!, sourceOf(index)),
      count,
    });
  }

  #openBounded({ table: { hosts, plan }, percent, shares }: BoundedHosts): SourcePicker {
    const { kernel, loads } = this.#options;
    if (!isHashPlan(plan)) return EMPTY_PICKER;
    return new BoundedPicker({ hosts, table: openHashTable(kernel, plan), percent, shares, loads });
  }

  #forgetBut(names: readonly string[]): void {
    const kept = new Set([ANY, DEFAULT, ...names]);
    for (const name of this.#cycles.keys()) if (!kept.has(name)) this.#cycles.delete(name);
  }

  #openList({ hosts, plan, slot }: HostList, cycles: Cycles): SourcePicker {
    const { kernel, seeds } = this.#options;
    if (isHashPlan(plan)) return new HashPicker(hosts, openHashTable(kernel, plan));
    const picker = openPicker(kernel, plan, cycles.get(slot)?.position ?? seeds.u32());
    if (picker instanceof CyclePicker) cycles.set(slot, picker);
    return new ListPicker(hosts, picker);
  }
}

const NOTHING_KNOWN = contextOf(null);

/** Takes the place of a hash where the request has none. */
class DrawnHash implements PickContext {
  readonly hasHash = false;
  readonly destination = null;
  hashHi = 0;
  hashLo = 0;
  criteria: Criteria | null = null;
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  draw(criteria: Criteria | null): PickContext {
    this.hashHi = this.#random.u32() | 0;
    this.hashLo = this.#random.u32() | 0;
    this.criteria = criteria;
    return this;
  }
}
