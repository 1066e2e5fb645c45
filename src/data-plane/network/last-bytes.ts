// Bounds the time in which an upstream's last bytes come: those that it sent before it stopped taking any.

import type { Clock } from '../../base/clock.ts';
import { type TimeoutOwner, TimerEntry, type TimerWheel } from './timer-wheel.ts';

/** Silence after which nothing more is expected. */
const SILENCE_MS = 1000;

export class LastBytes implements TimeoutOwner {
  readonly #wheel: TimerWheel;
  readonly #clock: Clock;
  readonly #onSilence: () => void;
  readonly #timer = new TimerEntry(this);

  /** @param onSilence called when nothing has come for so long. */
  constructor({ wheel, clock }: { readonly wheel: TimerWheel; readonly clock: Clock }, onSilence: () => void) {
    this.#wheel = wheel;
    this.#clock = clock;
    this.#onSilence = onSilence;
  }

  /** Waits from now on. @param isPaused nobody reads: while a client is slow to take what has come, the rest may wait. */
  wait(isPaused: boolean): void {
    if (isPaused) this.#wheel.disarm(this.#timer);
    else this.#wheel.arm(this.#timer, this.#clock.monotonicMs() + SILENCE_MS);
  }

  /** The connection is over. */
  remove(): void {
    this.#wheel.remove(this.#timer);
  }

  onTimeout(): void {
    this.#onSilence();
  }
}
