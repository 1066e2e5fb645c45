// A clock that a test turns by hand. Timers fire in order while it is turned.

import type { Clock } from '../../src/base/clock.ts';

interface Waiting {
  readonly atMs: number;
  readonly callback: () => void;
}

export class ManualClock implements Clock {
  #nowMs = 1000;
  readonly #waiting = new Set<Waiting>();

  monotonicMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return Date.UTC(2026, 0, 1) + this.#nowMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    const entry = { atMs: this.#nowMs + delayMs, callback };
    this.#waiting.add(entry);
    return () => this.#waiting.delete(entry);
  }

  get timerCount(): number {
    return this.#waiting.size;
  }

  /** Moves time on while nobody comes to fire anything: what was due meanwhile is late. */
  stall(forMs: number): void {
    this.#nowMs += forMs;
  }

  /** Moves time on, firing what comes due on the way. */
  turn(byMs: number): void {
    const targetMs = this.#nowMs + byMs;
    for (;;) {
      const due = [...this.#waiting].filter((entry) => entry.atMs <= targetMs).sort((a, b) => a.atMs - b.atMs)[0];
      if (due === undefined) break;
      this.#waiting.delete(due);
      this.#nowMs = Math.max(this.#nowMs, due.atMs);
      due.callback();
    }
    this.#nowMs = targetMs;
  }
}

/** One that tells the true time of day: what it sets as deadlines is read by others. */
export class PresentClock extends ManualClock {
  override wallMs(): number {
    return Date.now();
  }
}
