// The host with the fewest requests in flight, over all workers. Equal weights: the least busy of a few drawn at
// random, which comes close to the least busy of all at a fraction of the cost (Mitzenmacher, "The power of two
// choices"). Unequal weights or a configured bias: the EDF scheduler with weights that shrink as a host gets busy.

import type { Random } from '../../../base/random.ts';
import type { LeastRequestSettings } from '../../../snapshot/index.ts';
import { EdfScheduler, SEED_MODULUS } from './edf.ts';
import { areWeightsEqual, type HostPicker, type WeightedHost } from './host-picker.ts';

const DEFAULT_BIAS = 1;

export class LeastRequest<T extends WeightedHost> implements HostPicker<T> {
  readonly #random: Random;
  readonly #activeOf: (host: T) => number;
  readonly #choiceCount: number;
  readonly #isBiased: boolean;
  readonly #bias: number;
  #hosts: readonly T[] = [];
  #scheduler: EdfScheduler<T> | null = null;

  /** @param activeOf requests in flight on a host, of all workers. */
  constructor(random: Random, settings: LeastRequestSettings, activeOf: (host: T) => number) {
    const { choiceCount, activeRequestBias } = settings;
    this.#random = random;
    this.#activeOf = activeOf;
    this.#choiceCount = choiceCount;
    this.#isBiased = activeRequestBias !== undefined;
    // A negative bias would prefer busy hosts; the reference falls back, too.
    this.#bias = activeRequestBias !== undefined && activeRequestBias >= 0 ? activeRequestBias : DEFAULT_BIAS;
  }

  setHosts(hosts: readonly T[]): void {
    this.#hosts = hosts;
    const isScheduled = this.#isBiased || !areWeightsEqual(hosts);
    const seed = this.#random.u32() % SEED_MODULUS;
    this.#scheduler = isScheduled ? new EdfScheduler(hosts, (host) => this.#weightOf(host), seed) : null;
  }

  next(): T | null {
    if (this.#scheduler !== null) return this.#scheduler.pick() ?? null;
    const hosts = this.#hosts;
    const count = hosts.length;
    if (count === 0) return null;
    if (count === 1) return hosts[0]!;
    let best = hosts[this.#random.u32() % count]!;
    let bestActive = this.#activeOf(best);
    for (let choice = 1; choice < this.#choiceCount; choice++) {
      const host = hosts[this.#random.u32() % count]!;
      const active = this.#activeOf(host);
      if (active >= bestActive) continue;
      best = host;
      bestActive = active;
    }
    return best;
  }

  #weightOf(host: T): number {
    const active = this.#activeOf(host) + 1;
    return host.weight / (this.#bias === 1 ? active : active ** this.#bias);
  }
}
