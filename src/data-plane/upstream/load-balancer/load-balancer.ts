// Chooses hosts as main has worked it out: which lists serve the requests, in what shares, and which balancer picks from
// each stand in shared memory. Lists are read before the first pick from them, so that clusters without traffic cost
// nothing. Step 4 of the request flow.

import type { Random } from '../../../base/random.ts';
import { CyclePicker, type HostSource, type LbKernel, openPicker, readHostLists } from '../../../wasm/lb.ts';
import { EMPTY_PICKER, ListPicker, SharesPicker, type SourcePicker } from './source-picker.ts';

export interface LoadBalancerOptions {
  readonly kernel: LbKernel;
  /** Drawn from when lists are opened: where each worker begins. */
  readonly seeds: Random;
  /** Drawn from per request, where several lists share them. */
  readonly random: Random;
  /** A request goes to any host of a priority because too few are available. */
  readonly onPanic: () => void;
}

export class LoadBalancer {
  readonly #options: LoadBalancerOptions;
  /** Those that take turns, by slot: they go on where they stood when the lists change. */
  readonly #cycles = new Map<number, CyclePicker>();
  #address = 0;
  /** Null until the lists are read. */
  #picker: SourcePicker | null = null;

  constructor(options: LoadBalancerOptions) {
    this.#options = options;
  }

  /** @param address of the host lists that main has published; 0 when there are no hosts. */
  setLists(address: number): void {
    const isInUse = this.#picker !== null;
    this.#address = address;
    this.#picker = null;
    // Here rather than with the next request.
    if (isInUse) this.#open();
  }

  /** Index of the host for the next request in the cluster's order, or NO_HOST. Hot: no allocation, one call at most. */
  pick(): number {
    return (this.#picker ?? this.#open()).pick();
  }

  #open(): SourcePicker {
    const { kernel } = this.#options;
    const picker = this.#address === 0 ? EMPTY_PICKER : this.#openSource(readHostLists(kernel.shared, this.#address));
    this.#picker = picker;
    return picker;
  }

  #openSource(source: HostSource): SourcePicker {
    const { kernel, seeds, random, onPanic } = this.#options;
    switch (source.kind) {
      case 'none':
        return EMPTY_PICKER;
      case 'list': {
        const known = this.#cycles.get(source.slot);
        const picker = openPicker(kernel, source.plan, known?.position ?? seeds.u32());
        if (picker instanceof CyclePicker) this.#cycles.set(source.slot, picker);
        return new ListPicker(source.hosts, picker);
      }
      case 'shares': {
        const shares = source.shares.map((share) => ({ ...share, picker: this.#openSource(share.source) }));
        return new SharesPicker(shares, random, onPanic);
      }
    }
  }
}
