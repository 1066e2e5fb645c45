// Balancers that follow no key: each thread opens a published plan with a seed of its own and picks. What a pick
// changes (random sequence, queue of deadlines) lies in the plan's block, one stretch per slab, so that a balancer is
// repeatable from its seed and module instances keep no state. A cursor over equal weights is a number here: a call
// into WASM would cost more than the pick.

import { LEAST_STATE_SIZE, SCHEDULE_QUEUE_STRIDE, SCHEDULE_QUEUES, TABLE_BODY } from '../../../assembly/layout/lb.ts';
import type { LbExports } from './exports.ts';
import type { LbKernel } from './kernel.ts';

/** How hosts are picked, ready to be published; plain data. */
export type PickPlan =
  /** The hosts in turn; no memory. */
  | { readonly kind: 'cycle'; readonly hostCount: number }
  /** Any host; memory for the random sequences. */
  | { readonly kind: 'random'; readonly hostCount: number; readonly address: number }
  /** The least busy of some drawn at random, or of all. */
  | { readonly kind: 'least-request'; readonly hostCount: number; readonly address: number }
  /** Earliest deadline first, by weights or by weights and active requests. */
  | { readonly kind: 'schedule'; readonly hostCount: number; readonly address: number };

export interface HostPicker {
  /** Index of the next host in the plan's list. Hot: at most one call, no allocation. */
  pick(): number;
}

/** Schedules start as if `seed` modulo this many picks had been made, which stays exact in doubles. */
const SEED_MODULUS = 429_496_729;

/**
 * Makes this thread's picker of a plan.
 * @param seed  whole number of 0 to 2^53 - 1. A cursor or schedule starts that many picks in; random ones repeat their
 * sequence.
 */
export function openPicker(kernel: LbKernel, plan: PickPlan, seed: number): HostPicker {
  switch (plan.kind) {
    case 'cycle':
      return new CyclePicker(plan.hostCount, seed);
    case 'random':
      return new RandomPicker(kernel, plan.address, plan.hostCount, seed);
    case 'least-request':
      return new LeastRequestPicker(kernel, plan.address, seed);
    case 'schedule':
      return new SchedulePicker(kernel, plan.address, seed);
  }
}

export class CyclePicker implements HostPicker {
  readonly #count: number;
  #next: number;
  /** Picks of all full turns. */
  #turns: number;

  constructor(hostCount: number, seed: number) {
    this.#count = hostCount;
    this.#next = seed % hostCount;
    this.#turns = seed - this.#next;
  }

  /** The seed with which a picker over another list goes on where this one stands. */
  get position(): number {
    return this.#turns + this.#next;
  }

  pick(): number {
    const host = this.#next;
    if (host + 1 < this.#count) {
      this.#next = host + 1;
    } else {
      this.#next = 0;
      this.#turns += this.#count;
    }
    return host;
  }
}

export class RandomPicker implements HostPicker {
  readonly #exports: LbExports;
  readonly #state: number;
  readonly #count: number;

  constructor(kernel: LbKernel, address: number, hostCount: number, seed: number) {
    this.#exports = kernel.exports;
    this.#count = hostCount;
    this.#state = seedState(kernel, address, seed);
  }

  pick(): number {
    return this.#exports.randomIndex(this.#state, this.#count);
  }
}

export class LeastRequestPicker implements HostPicker {
  readonly #exports: LbExports;
  readonly #table: number;
  readonly #state: number;

  constructor(kernel: LbKernel, address: number, seed: number) {
    this.#exports = kernel.exports;
    this.#table = address;
    this.#state = seedState(kernel, address, seed);
  }

  pick(): number {
    return this.#exports.leastRequestPick(this.#table, this.#state);
  }
}

export class SchedulePicker implements HostPicker {
  readonly #exports: LbExports;
  readonly #table: number;
  readonly #queue: number;

  constructor(kernel: LbKernel, address: number, seed: number) {
    const { shared } = kernel;
    this.#exports = kernel.exports;
    this.#table = address;
    shared.reach(address + TABLE_BODY);
    const queues = shared.i32[(address + SCHEDULE_QUEUES) >>> 2]! >>> 0;
    const stride = shared.i32[(address + SCHEDULE_QUEUE_STRIDE) >>> 2]! >>> 0;
    this.#queue = address + queues + shared.slab * stride;
    kernel.exports.startQueue(address, this.#queue, seed % SEED_MODULUS);
  }

  pick(): number {
    return this.#exports.schedulePick(this.#table, this.#queue);
  }
}

/** Starts the random sequence of this thread's slab in a block; returns the address of its state. */
function seedState(kernel: LbKernel, address: number, seed: number): number {
  const state = address + TABLE_BODY + kernel.shared.slab * LEAST_STATE_SIZE;
  kernel.exports.seedRandom(state, Math.floor(seed / 2 ** 32), seed >>> 0);
  return state;
}
