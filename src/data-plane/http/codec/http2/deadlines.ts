// Several deadlines of one owner over one entry of the worker's wheel. Moving one is a store or two; of those that have passed
// the one with the lowest number is told first.

import type { TimeoutOwner, TimerEntry, TimerWheel } from '../../../network/timer-wheel.ts';

const NEVER = Number.POSITIVE_INFINITY;

export interface DeadlinesOwner {
  /** A deadline has passed, and is none any more. @param kind number of it. */
  onDeadline(kind: number, nowMs: number): void;
}

export class Deadlines implements TimeoutOwner {
  readonly #owner: DeadlinesOwner;
  readonly #wheel: TimerWheel;
  /** Lent with the first deadline. */
  #timer: TimerEntry | null = null;
  /** Monotonic, by kind. */
  readonly #dueMs: number[];

  /** @param kinds how many there are, from 0. */
  constructor(owner: DeadlinesOwner, wheel: TimerWheel, kinds: number) {
    this.#owner = owner;
    this.#wheel = wheel;
    this.#dueMs = new Array<number>(kinds).fill(NEVER);
  }

  isSet(kind: number): boolean {
    return this.#dueMs[kind] !== NEVER;
  }

  /** Monotonic, infinite while it is not set. */
  dueMs(kind: number): number {
    return this.#dueMs[kind]!;
  }

  /** @param timeoutMs 0 for no limit. */
  set(kind: number, nowMs: number, timeoutMs: number): void {
    this.setAt(kind, timeoutMs > 0 ? nowMs + timeoutMs : NEVER);
  }

  setAt(kind: number, dueMs: number): void {
    this.#dueMs[kind] = dueMs;
    if (dueMs !== NEVER) this.#schedule(dueMs);
  }

  clear(kind: number): void {
    this.#dueMs[kind] = NEVER;
  }

  /** There are none any more: the wheel no longer keeps the owner alive. */
  remove(): void {
    this.#dueMs.fill(NEVER);
    if (this.#timer !== null) this.#wheel.takeBack(this.#timer);
    this.#timer = null;
  }

  onTimeout(nowMs: number): void {
    const passed = this.#dueMs.findIndex((dueMs) => dueMs <= nowMs);
    if (passed >= 0) {
      this.#dueMs[passed] = NEVER;
      this.#owner.onDeadline(passed, nowMs);
    }
    let first = NEVER;
    for (const dueMs of this.#dueMs) first = Math.min(first, dueMs);
    if (first !== NEVER) this.#schedule(first);
  }

  /** Sees to it that the timer looks no later than then. */
  #schedule(dueMs: number): void {
    this.#timer ??= this.#wheel.lend(this);
    if (dueMs < this.#timer.deadlineMs) this.#wheel.arm(this.#timer, dueMs);
  }
}
