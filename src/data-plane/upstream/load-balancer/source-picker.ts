// Picking from the sources of host lists. Each answers with the index of a host in the cluster's order.

import type { HashTable, HostPicker } from '../../../wasm/lb.ts';
import type { DrawContext, PickContext } from './pick-context.ts';

/** What a pick answers when there is no host to use. */
export const NO_HOST = -1;

/** Hot: picks allocate nothing. */
export interface SourcePicker {
  pick(request: PickContext, draws: DrawContext | null): number;
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

  pick({ hashHi, hashLo }: PickContext, draws: DrawContext | null): number {
    return this.#hosts[this.#table.lookup(hashHi, hashLo, draws === null ? 0 : draws.draw)]!;
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

  pick(request: PickContext, draws: DrawContext | null): number {
    return this.#sources[this.#schedule.pick()]!.pick(request, draws);
  }
}
