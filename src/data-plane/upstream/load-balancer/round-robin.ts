// Round robin over one list of hosts. Equal weights: a cursor that starts at a random place and survives host
// changes. Unequal weights: the EDF scheduler. One instance per worker and list; workers do not coordinate,
// their random starts keep them from marching in step.

import { EdfScheduler, SEED_MODULUS } from './edf.ts';
import { areWeightsEqual, type HostPicker, type WeightedHost } from './host-picker.ts';

export class RoundRobin<T extends WeightedHost> implements HostPicker<T> {
  readonly #seed: number;
  #cursor: number;
  #hosts: readonly T[] = [];
  #scheduler: EdfScheduler<T> | null = null;

  /** @param seed 0 to 2^32 - 1, drawn once per instance. */
  constructor(seed: number) {
    this.#seed = seed;
    this.#cursor = seed;
  }

  setHosts(hosts: readonly T[]): void {
    this.#hosts = hosts;
    const isScheduled = !areWeightsEqual(hosts);
    this.#scheduler = isScheduled ? new EdfScheduler(hosts, (host) => host.weight, this.#seed % SEED_MODULUS) : null;
  }

  /** The next host in turn, or null when there is none. */
  next(): T | null {
    if (this.#scheduler !== null) return this.#scheduler.pick() ?? null;
    const count = this.#hosts.length;
    if (count === 0) return null;
    const host = this.#hosts[this.#cursor % count]!;
    this.#cursor = this.#cursor >= Number.MAX_SAFE_INTEGER ? 0 : this.#cursor + 1;
    return host;
  }
}
