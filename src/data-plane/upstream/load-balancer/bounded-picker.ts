// Picking from a table of hashes with bounded loads: the host that the hash leads to, unless it has more requests in
// flight than its share of all of them allows; then the first that has not, in an order that follows from the hash.
// Source: "Consistent Hashing with Bounded Loads", Mirrokni et al., 2018; the order is the reference's.

import { MersenneTwister } from '../../../base/mersenne-twister.ts';
import type { HashTable } from '../../../wasm/lb.ts';
import type { DrawContext, PickContext } from './pick-context.ts';
import type { SourcePicker } from './source-picker.ts';

/** Requests in flight, over all workers. */
export interface ClusterLoads {
  ofCluster(): number;
  /** @param index of the host in the cluster's order. */
  ofHost(index: number): number;
}

export interface BoundedPickerOptions {
  readonly hosts: ArrayLike<number>;
  readonly table: HashTable;
  /** 100 or more. */
  readonly percent: number;
  /** What each host has of 1. */
  readonly shares: Float64Array;
  readonly loads: ClusterLoads;
}

export class BoundedPicker implements SourcePicker {
  readonly #options: BoundedPickerOptions;
  readonly #order = new MersenneTwister();
  /** Of the hosts in the table; shuffled anew for each walk. */
  readonly #indexes: Uint32Array;

  constructor(options: BoundedPickerOptions) {
    this.#options = options;
    this.#indexes = new Uint32Array(options.hosts.length);
  }

  pick({ hashHi, hashLo }: PickContext, draws: DrawContext | null): number {
    const { hosts, table, percent, loads } = this.#options;
    const index = table.lookup(hashHi, hashLo, draws === null ? 0 : draws.draw);
    const slots = Math.floor(((loads.ofCluster() + 1) * percent + 99) / 100);
    const load = this.#loadOf(index, slots);
    return hosts[load <= 1 ? index : this.#walk(index, load, slots, hashLo)]!;
  }

  /** The first host that is within its bound, or the one that is the least beyond. */
  #walk(from: number, load: number, slots: number, seed: number): number {
    const indexes = this.#indexes;
    const order = this.#order;
    const count = indexes.length;
    for (let at = 0; at < count; at += 1) indexes[at] = at;
    order.seed(seed);
    let best = from;
    let leastLoad = load;
    for (let at = 0; at < count; at += 1) {
      const drawn = at + order.below(count - at);
      const index = indexes[drawn]!;
      indexes[drawn] = indexes[at]!;
      indexes[at] = index;
      if (index === from) continue;
      const other = this.#loadOf(index, slots);
      if (other <= 1) return index;
      if (other < leastLoad) {
        best = index;
        leastLoad = other;
      }
    }
    return best;
  }

  /** As a part of what the host may have. @param slots of all hosts. */
  #loadOf(index: number, slots: number): number {
    const { hosts, shares, loads } = this.#options;
    return loads.ofHost(hosts[index]!) / Math.max(1, Math.ceil(slots * shares[index]!));
  }
}
