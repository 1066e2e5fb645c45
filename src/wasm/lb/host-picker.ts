// Balancers that follow no key: each thread opens a published plan with a seed of its own and picks. What a pick
// changes (random sequence, queue of deadlines) lies in the plan's block, one stretch per slab, so that a balancer is
// repeatable from its seed and module instances keep no state. A cursor over equal weights and a draw among all hosts are
// numbers here: a call into WASM would cost more than the pick.

import {
  LEAST_CHOICES,
  LEAST_PAIR_COUNT,
  LEAST_PAIR_MAX_HOSTS,
  LEAST_PAIRS,
  LEAST_RECORDS,
  LEAST_STATE_SIZE,
  SCHEDULE_QUEUE_STRIDE,
  SCHEDULE_QUEUES,
  TABLE_BODY,
} from '../../../assembly/layout/lb.ts';
import { HOST_ACTIVE_REQUESTS, HOST_RECORD_SIZE } from '../../../assembly/layout/shared-memory.ts';
import { RandomSequence } from '../../base/random.ts';
import type { SharedMemory } from '../shared-memory.ts';
import type { LbExports } from './exports.ts';
import type { LbKernel } from './kernel.ts';

/** How hosts are picked, ready to be published; plain data. */
export type PickPlan =
  /** The hosts in turn; no memory. */
  | { readonly kind: 'cycle'; readonly hostCount: number }
  /** Any host; no memory. */
  | { readonly kind: 'random'; readonly hostCount: number }
  /** The least busy of some drawn at random, or of all. */
  | { readonly kind: 'least-request'; readonly hostCount: number; readonly address: number }
  /** Earliest deadline first, by weights or by weights and active requests. */
  | SchedulePlan;

export interface SchedulePlan {
  readonly kind: 'schedule';
  readonly hostCount: number;
  readonly address: number;
}

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
      return new RandomPicker(plan.hostCount, seed);
    case 'least-request':
      return openLeastRequest(kernel, plan.address, plan.hostCount, seed);
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
  readonly #count: number;
  readonly #random: RandomSequence;

  constructor(hostCount: number, seed: number) {
    this.#count = hostCount;
    this.#random = new RandomSequence(seed);
  }

  pick(): number {
    return this.#random.u32() % this.#count;
  }
}

function openLeastRequest(kernel: LbKernel, address: number, hostCount: number, seed: number): HostPicker {
  kernel.shared.reach(address + TABLE_BODY);
  const choices = kernel.shared.i32[(address + LEAST_CHOICES) >>> 2];
  const isPaired = choices === 2 && hostCount <= LEAST_PAIR_MAX_HOSTS;
  return isPaired ? new PairPicker(kernel, address, hostCount, seed) : new LeastRequestPicker(kernel, address, seed);
}

/** The less busy of two. One call draws the pairs of many picks, so that it costs each of them little. */
class PairPicker implements HostPicker {
  // The export by itself: a call through a field is inlined, one through the table of exports is not.
  readonly #draw: LbExports['drawPairs'];
  readonly #table: number;
  readonly #state: number;
  /** Covers the plan and its records, and goes on doing so: shared memory grows, but never moves. */
  readonly #words: Int32Array<ArrayBufferLike>;
  /** Where in #words the active requests of each host are counted. */
  readonly #counts: Int32Array;
  // Indexes in #words, begun as numbers: a field that was undefined once is looked at anew by every pick.
  readonly #pairsEnd: number = 0;
  #nextPair: number = 0;

  constructor(kernel: LbKernel, address: number, hostCount: number, seed: number) {
    this.#draw = kernel.exports.drawPairs;
    this.#table = address;
    this.#state = seedState(kernel, address, seed);
    this.#counts = placesOfCounts(kernel.shared, address, hostCount);
    this.#words = kernel.shared.i32;
    this.#pairsEnd = ((this.#state + LEAST_PAIRS) >>> 2) + LEAST_PAIR_COUNT;
    this.#nextPair = this.#pairsEnd;
  }

  pick(): number {
    let at = this.#nextPair;
    if (at === this.#pairsEnd) at = this.#drawPairs();
    this.#nextPair = at + 1;
    const words = this.#words;
    const counts = this.#counts;
    const pair = words[at]!;
    const first = pair >>> 16;
    const second = pair & 0xffff;
    // Which is less busy is anyone's guess, so no jump: all bits are set when the second is.
    const wins = (words[counts[second]!]! - words[counts[first]!]!) >> 31;
    return first + ((second - first) & wins);
  }

  /** Returns the place of the first pair. */
  #drawPairs(): number {
    this.#draw(this.#table, this.#state);
    return this.#pairsEnd - LEAST_PAIR_COUNT;
  }
}

/** Indexes in `shared.i32`, which covers them from here on. */
function placesOfCounts(shared: SharedMemory, plan: number, hostCount: number): Int32Array {
  const records = (plan + shared.i32[(plan + LEAST_RECORDS) >>> 2]!) >>> 2;
  shared.reach(4 * (records + hostCount));
  const places = new Int32Array(hostCount);
  let end = 0;
  for (let host = 0; host < hostCount; host += 1) {
    const record = shared.i32[records + host]! >>> 0;
    places[host] = (record + HOST_ACTIVE_REQUESTS) >>> 2;
    end = Math.max(end, record + HOST_RECORD_SIZE);
  }
  shared.reach(end);
  return places;
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
