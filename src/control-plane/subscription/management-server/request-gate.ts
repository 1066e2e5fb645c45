// Holds requests back while responses are taken in: what those lead to (endpoints of clusters, routes of listeners) is asked for
// together then, and not name by name. All streams of the proxy share one. Main thread.

import type { Clock } from '../../../base/clock.ts';

/** Whoever takes longer lets requests through meanwhile. */
const LONGEST_MS = 100;

export class RequestGate {
  readonly #clock: Clock;
  #holders = 0;
  #waiting: (() => void)[] = [];
  #endWait = (): void => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @returns what ends it; idempotent. */
  hold(): () => void {
    this.#holders += 1;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#holders -= 1;
      if (this.#holders === 0) this.#open();
    };
  }

  /** @param go called once: in a moment, or when nobody holds requests back any more. */
  whenOpen(go: () => void): void {
    this.#waiting.push(go);
    if (this.#waiting.length > 1) return;
    this.#endWait = this.#clock.after(this.#holders === 0 ? 0 : LONGEST_MS, () => this.#open());
  }

  #open(): void {
    this.#endWait();
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const go of waiting) go();
  }
}
