// Access log entries of a request that takes long: one after each interval, until it is over.

import type { TimeoutOwner, TimerEntry, TimerWheel } from '../network/timer-wheel.ts';

export class PeriodicEntries implements TimeoutOwner {
  readonly #wheel: TimerWheel;
  readonly #timer: TimerEntry;
  readonly #intervalMs: number;
  readonly #write: (nowMs: number) => void;

  /** To be ended. @param write an entry. */
  constructor(wheel: TimerWheel, nowMs: number, intervalMs: number, write: (nowMs: number) => void) {
    this.#wheel = wheel;
    this.#intervalMs = intervalMs;
    this.#write = write;
    this.#timer = wheel.lend(this);
    wheel.arm(this.#timer, nowMs + intervalMs);
  }

  onTimeout(nowMs: number): void {
    this.#wheel.arm(this.#timer, nowMs + this.#intervalMs);
    this.#write(nowMs);
  }

  /** Nothing is written any more. Once. */
  end(): void {
    this.#wheel.takeBack(this.#timer);
  }
}
