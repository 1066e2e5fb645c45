// Any host with equal probability. Weights do not count: who wants them has the other policies.

import type { Random } from '../../../base/random.ts';
import type { HostPicker } from './host-picker.ts';

export class RandomPicker<T> implements HostPicker<T> {
  readonly #random: Random;
  #hosts: readonly T[] = [];

  constructor(random: Random) {
    this.#random = random;
  }

  setHosts(hosts: readonly T[]): void {
    this.#hosts = hosts;
  }

  next(): T | null {
    const count = this.#hosts.length;
    return count === 0 ? null : this.#hosts[this.#random.u32() % count]!;
  }
}
