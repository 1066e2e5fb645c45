// Least request in plain TypeScript: the best of two random hosts, and the weighted schedule (earliest deadline first)
// over a binary heap.

import type { PlainHost } from './maglev.ts';

export class PlainTwoChoices {
  readonly active: Int32Array;
  #state = 0x2545_f491;

  constructor(hostCount: number) {
    this.active = new Int32Array(hostCount);
  }

  pick(): number {
    const first = this.#draw();
    const second = this.#draw();
    return this.active[second]! < this.active[first]! ? second : first;
  }

  /** xorshift32, reduced to a host by multiplication. */
  #draw(): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x;
    return Math.floor(((x >>> 0) / 0x1_0000_0000) * this.active.length);
  }
}

interface Turn {
  readonly host: number;
  deadline: number;
  order: number;
}

export class PlainSchedule {
  readonly active: Int32Array;
  readonly #weights: readonly number[];
  readonly #heap: Turn[];
  #order: number;

  constructor(hosts: readonly PlainHost[]) {
    this.active = new Int32Array(hosts.length);
    this.#weights = hosts.map(({ weight }) => weight);
    this.#heap = hosts
      .map(({ weight }, host) => ({ host, deadline: 1 / weight, order: host }))
      .sort((a, b) => a.deadline - b.deadline || a.order - b.order);
    this.#order = hosts.length;
  }

  pick(): number {
    const turn = this.#heap[0]!;
    turn.deadline += (this.active[turn.host]! + 1) / this.#weights[turn.host]!;
    turn.order = this.#order;
    this.#order += 1;
    this.#sink();
    return turn.host;
  }

  #sink(): void {
    const heap = this.#heap;
    const turn = heap[0]!;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isEarlier(heap[child + 1]!, heap[child]!)) child += 1;
      if (!isEarlier(heap[child]!, turn)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = turn;
  }
}

function isEarlier(a: Turn, b: Turn): boolean {
  return a.deadline < b.deadline || (a.deadline === b.deadline && a.order < b.order);
}
