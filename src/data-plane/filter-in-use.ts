// What a chain has made of one configuration of a filter that comes by discovery. A request, or a connection, keeps to the one that it began
// with until it is over; one that has been replaced gives everything back when its last request has ended.

import type { Clock } from '../base/clock.ts';

export class FilterInUse {
  readonly #clock: Clock;
  readonly #close: () => void;
  #requests = 0;
  /** Called when the last request has ended; null while others may come. */
  #onGone: (() => void) | null = null;

  /** @param close gives back what the filter was made with. */
  constructor(clock: Clock, close: () => void) {
    this.#clock = clock;
    this.#close = close;
  }

  /** A request begins; it calls `leave` once, at its end. */
  enter(): void {
    this.#requests += 1;
  }

  leave(): void {
    this.#requests -= 1;
    if (this.#requests === 0 && this.#onGone !== null) this.#go(this.#onGone);
  }

  /** No other request begins. @param onGone called once, in a later turn, when the last one has ended. */
  retire(onGone: () => void): void {
    this.#onGone = onGone;
    if (this.#requests === 0) this.#go(onGone);
  }

  /** What ends with a request may still count in the same turn. */
  #go(onGone: () => void): void {
    this.#onGone = null;
    this.#clock.after(0, () => {
      this.#close();
      onGone();
    });
  }

  /** No request uses it any more. */
  close(): void {
    this.#close();
  }
}
