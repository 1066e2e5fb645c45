// Picking from the sources of host lists. Each answers with the index of a host in the cluster's order.

import type { Random } from '../../../base/random.ts';
import type { HostPicker } from '../../../wasm/lb.ts';

/** What a pick answers when there is no host to use. */
export const NO_HOST = -1;

/** Hot: picks allocate nothing. */
export type SourcePicker = HostPicker;

export const EMPTY_PICKER: SourcePicker = { pick: () => NO_HOST };

export class ListPicker implements SourcePicker {
  readonly #hosts: ArrayLike<number>;
  readonly #picker: HostPicker;

  constructor(hosts: ArrayLike<number>, picker: HostPicker) {
    this.#hosts = hosts;
    this.#picker = picker;
  }

  pick(): number {
    return this.#hosts[this.#picker.pick()]!;
  }
}

export interface PickedShare {
  /** A request that draws 1 to 100 goes to the first share that reaches so far. */
  readonly upTo: number;
  readonly picker: SourcePicker;
  readonly isPanic: boolean;
}

export class SharesPicker implements SourcePicker {
  readonly #shares: readonly PickedShare[];
  readonly #random: Random;
  readonly #onPanic: () => void;

  constructor(shares: readonly PickedShare[], random: Random, onPanic: () => void) {
    this.#shares = shares;
    this.#random = random;
    this.#onPanic = onPanic;
  }

  pick(): number {
    const drawn = (this.#random.u32() % 100) + 1;
    for (const share of this.#shares) {
      if (drawn > share.upTo) continue;
      if (share.isPanic) this.#onPanic();
      return share.picker.pick();
    }
    return NO_HOST;
  }
}
