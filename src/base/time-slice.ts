// Long work on the main thread, cut into pieces: the event loop must be free again after a few milliseconds.

import { setImmediate as nextTurn } from 'node:timers/promises';

/** Well under the 20 ms that a page of the admin interface may stop the main thread. */
const SLICE_MS = 6;

/** Cheap steps between two looks at the clock. */
const STEPS_PER_LOOK = 64;

export class TimeSlice {
  #endsAtMs = performance.now() + SLICE_MS;
  #steps = 0;

  /** Counts one cheap step. @returns true when it is time to `await rest()`. */
  isOver(): boolean {
    this.#steps += 1;
    return this.#steps % STEPS_PER_LOOK === 0 && this.isOverNow();
  }

  /** For a look after each piece of work that may be long. */
  isOverNow(): boolean {
    return performance.now() >= this.#endsAtMs;
  }

  /** Lets the event loop run once, then begins a new slice. */
  async rest(): Promise<void> {
    await nextTurn();
    this.#endsAtMs = performance.now() + SLICE_MS;
  }
}
