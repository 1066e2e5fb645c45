// Long work on main's event loop, cut into pieces: the loop must be free again after a few milliseconds.

import { setImmediate } from 'node:timers/promises';
import { type Clock, SYSTEM_CLOCK } from '../base/clock.ts';

/** A third of what the admin interface may stop main for: the caller's own work comes on top. */
const SLICE_MS = 6;
/** Steps between two looks at the clock. */
const STEPS_PER_LOOK = 256;

export class TimeSlice {
  readonly #clock: Clock;
  #endsAt: number;
  #steps = 0;

  constructor(clock: Clock = SYSTEM_CLOCK) {
    this.#clock = clock;
    this.#endsAt = clock.monotonicMs() + SLICE_MS;
  }

  /** Counts one cheap step; true when it is time to `await rest()`. */
  isOver(): boolean {
    this.#steps += 1;
    return this.#steps % STEPS_PER_LOOK === 0 && this.isOverNow();
  }

  /** After a piece of work of unknown length. */
  isOverNow(): boolean {
    return this.#clock.monotonicMs() >= this.#endsAt;
  }

  /** Lets the event loop run once, then begins a new slice. */
  async rest(): Promise<void> {
    await setImmediate();
    this.#endsAt = this.#clock.monotonicMs() + SLICE_MS;
  }
}
