// Lets the weights of a cluster's new hosts grow, step by step, for as long as they start. Main thread.

import type { Clock } from '../../base/clock.ts';
import type { SlowStartSettings } from '../../snapshot/index.ts';

const STEPS = 100;
const SHORTEST_STEP_MS = 20;
const LONGEST_STEP_MS = 1000;

export class SlowStartTimer {
  readonly #clock: Clock;
  readonly #stepMs: number;
  readonly #grow: () => boolean;
  readonly #onEnd: () => void;
  #cancelTimer: (() => void) | undefined;

  /**
   * @param grow brings weights up to date; false when no host starts any more.
   * @param onEnd called after the last step.
   */
  constructor(clock: Clock, { windowMs }: SlowStartSettings, grow: () => boolean, onEnd: () => void) {
    this.#clock = clock;
    this.#stepMs = Math.min(LONGEST_STEP_MS, Math.max(SHORTEST_STEP_MS, windowMs / STEPS));
    this.#grow = grow;
    this.#onEnd = onEnd;
  }

  /** Hosts have begun to start. */
  start(): void {
    this.#cancelTimer ??= this.#clock.after(this.#stepMs, () => this.#step());
  }

  /** Idempotent. */
  stop(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  #step(): void {
    this.#cancelTimer = undefined;
    if (this.#grow()) this.start();
    else this.#onEnd();
  }
}
