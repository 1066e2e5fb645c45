// Chooses hosts as main has worked it out: which lists serve the requests, in what shares, and which balancer picks from
// each stand in shared memory. Lists are read before the first pick from them, so that clusters without traffic cost
// nothing. Step 4 of the request flow.

import type { Random } from '../../../base/random.ts';
import {
  CyclePicker,
  type HostList,
  type HostSource,
  isHashPlan,
  type LbKernel,
  openHashTable,
  openPicker,
  readHostLists,
} from '../../../wasm/lb.ts';
import type { PickContext } from './pick-context.ts';
import {
  EMPTY_PICKER,
  HashPicker,
  hashPercent,
  ListPicker,
  randomPercent,
  SharesPicker,
  type SourcePicker,
  TurnsPicker,
} from './source-picker.ts';

export interface LoadBalancerOptions {
  readonly kernel: LbKernel;
  /** Drawn from when lists are opened: where each worker begins. */
  readonly seeds: Random;
  /** Drawn from per request, where chance decides. */
  readonly random: Random;
  /** Requests of equal hashes go to the same host, as long as it is there. */
  readonly isHashed: boolean;
  /** A request goes to any host of a priority because too few are available. */
  readonly onPanic: () => void;
}

export class LoadBalancer {
  readonly #options: LoadBalancerOptions;
  readonly #drawn: DrawnHash;
  /** Those that take turns, by slot: they go on where they stood when the lists change. */
  readonly #cycles = new Map<number, CyclePicker>();
  #address = 0;
  /** Null until the lists are read. */
  #picker: SourcePicker | null = null;

  constructor(options: LoadBalancerOptions) {
    this.#options = options;
    this.#drawn = new DrawnHash(options.random);
  }

  /** @param address of the host lists that main has published; 0 when there are no hosts. */
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
   */
  pick(request: PickContext | null): number {
    const picker = this.#picker ?? this.#open();
    if (request?.hasHash) return picker.pick(request);
    if (this.#options.isHashed) this.#drawn.draw();
    return picker.pick(this.#drawn);
  }

  #open(): SourcePicker {
    const { kernel } = this.#options;
    const picker = this.#address === 0 ? EMPTY_PICKER : this.#openSource(readHostLists(kernel.shared, this.#address));
    this.#picker = picker;
    return picker;
  }

  #openSource(source: HostSource): SourcePicker {
    switch (source.kind) {
      case 'none':
        return EMPTY_PICKER;
      case 'list':
        return this.#openList(source);
      case 'turns': {
        const { kernel, seeds } = this.#options;
        const sources = source.sources.map((each) => this.#openSource(each));
        return new TurnsPicker(openPicker(kernel, source.schedule, seeds.u32()), sources);
      }
      case 'shares': {
        const { isHashed, random, onPanic } = this.#options;
        const shares = source.shares.map((share) => ({ ...share, picker: this.#openSource(share.source) }));
        return new SharesPicker(shares, isHashed ? hashPercent : randomPercent(random), onPanic);
      }
    }
  }

  #openList({ hosts, plan, slot }: HostList): SourcePicker {
    const { kernel, seeds } = this.#options;
    if (isHashPlan(plan)) return new HashPicker(hosts, openHashTable(kernel, plan));
    const picker = openPicker(kernel, plan, this.#cycles.get(slot)?.position ?? seeds.u32());
    if (picker instanceof CyclePicker) this.#cycles.set(slot, picker);
    return new ListPicker(hosts, picker);
  }
}

/** Takes the place of a hash where the request has none. */
class DrawnHash implements PickContext {
  readonly hasHash = false;
  hashHi = 0;
  hashLo = 0;
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  draw(): void {
    this.hashHi = this.#random.u32() | 0;
    this.hashLo = this.#random.u32() | 0;
  }
}
