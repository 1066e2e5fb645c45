// How long a client may take before its connection gets to its terminal filter, and while the process ends how long one may that
// has not said anything. Worker thread.

import { NEWCOMER_MS } from './terminal-filter.ts';
import { type TimeoutOwner, TimerEntry, type TimerWheel } from './timer-wheel.ts';

/** What is on its way to the filter. */
export interface Arrival {
  /** Nothing has come from the client. */
  readonly isSilent: boolean;
  /** It has taken longer than it may. */
  onTooLate(): void;
  /** It has said nothing, and the process ends. */
  onSilence(): void;
}

export class ArrivalTimer implements TimeoutOwner {
  readonly #arrival: Arrival;
  readonly #wheel: TimerWheel;
  readonly #timer: TimerEntry;
  /** Monotonic; infinite for no limit. */
  readonly #deadlineMs: number;

  /** @param startMs monotonic. @param timeoutMs 0 for no limit. */
  constructor(arrival: Arrival, wheel: TimerWheel, startMs: number, timeoutMs: number) {
    this.#arrival = arrival;
    this.#wheel = wheel;
    this.#timer = new TimerEntry(this);
    this.#deadlineMs = timeoutMs > 0 ? startMs + timeoutMs : Number.POSITIVE_INFINITY;
    if (timeoutMs > 0) wheel.arm(this.#timer, this.#deadlineMs);
  }

  /** The process ends: it goes on for as long as it may once it has begun, which it has to soon. @param startMs of the connection. */
  endIfSilent(startMs: number): void {
    if (this.#arrival.isSilent) this.#wheel.arm(this.#timer, Math.min(this.#deadlineMs, startMs + NEWCOMER_MS));
  }

  remove(): void {
    this.#wheel.remove(this.#timer);
  }

  onTimeout(nowMs: number): void {
    if (nowMs >= this.#deadlineMs) this.#arrival.onTooLate();
    else if (this.#arrival.isSilent) this.#arrival.onSilence();
    else this.#wheel.arm(this.#timer, this.#deadlineMs);
  }
}
