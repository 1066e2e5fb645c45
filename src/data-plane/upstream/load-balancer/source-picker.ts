// Picking from the sources of host lists. Each answers with the index of a host in the cluster's order.

import type { Random } from '../../../base/random.ts';
import type { HashTable, HostPicker } from '../../../wasm/lb.ts';
import type { PickContext } from './pick-context.ts';

/** What a pick answers when there is no host to use. */
export const NO_HOST = -1;

/** Hot: picks allocate nothing. */
export interface SourcePicker {
  pick(request: PickContext): number;
}

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

/** The host that the request's hash leads to. */
export class HashPicker implements SourcePicker {
  readonly #hosts: ArrayLike<number>;
  readonly #table: HashTable;

  constructor(hosts: ArrayLike<number>, table: HashTable) {
    this.#hosts = hosts;
    this.#table = table;
  }

  pick({ hashHi, hashLo }: PickContext): number {
    return this.#hosts[this.#table.lookup(hashHi, hashLo, 0)]!;
  }
}

/** Sources in turn, by their weights. */
export class TurnsPicker implements SourcePicker {
  readonly #schedule: HostPicker;
  readonly #sources: readonly SourcePicker[];

  constructor(schedule: HostPicker, sources: readonly SourcePicker[]) {
    this.#schedule = schedule;
    this.#sources = sources;
  }

  pick(request: PickContext): number {
    return this.#sources[this.#schedule.pick()]!.pick(request);
  }
}

export interface PickedShare {
  /** A request that draws 1 to 100 goes to the first share that reaches so far. */
  readonly upTo: number;
  readonly picker: SourcePicker;
  readonly isPanic: boolean;
}

/** A number for each request, 0 to 99. */
export type DrawPercent = (request: PickContext) => number;

export function randomPercent(random: Random): DrawPercent {
  return () => random.u32() % 100;
}

/** What 2^32 leaves when it is divided by 100. */
const HIGH_HALF = 96;

/** The request's hash modulo 100: equal hashes draw alike. */
export function hashPercent({ hashHi, hashLo }: PickContext): number {
  return (((hashHi >>> 0) % 100) * HIGH_HALF + ((hashLo >>> 0) % 100)) % 100;
}

export class SharesPicker implements SourcePicker {
  readonly #shares: readonly PickedShare[];
  readonly #draw: DrawPercent;
  readonly #onPanic: () => void;

  constructor(shares: readonly PickedShare[], draw: DrawPercent, onPanic: () => void) {
    this.#shares = shares;
    this.#draw = draw;
    this.#onPanic = onPanic;
  }

  pick(request: PickContext): number {
    const drawn = this.#draw(request) + 1;
    for (const share of this.#shares) {
      if (drawn > share.upTo) continue;
      if (share.isPanic) this.#onPanic();
      return share.picker.pick(request);
    }
    return NO_HOST;
  }
}
