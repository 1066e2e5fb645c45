// The value of the Date header, made anew at most once a second.

import type { Clock } from '../../base/clock.ts';

export class HttpDate {
  readonly #clock: Clock;
  #text = '';
  #expiresMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** As in RFC 9110 section 5.6.7. @param nowMs the event's monotonic time. */
  text(nowMs: number): string {
    if (nowMs >= this.#expiresMs) {
      const wallMs = this.#clock.wallMs();
      this.#text = new Date(wallMs).toUTCString();
      this.#expiresMs = nowMs + 1000 - (wallMs % 1000);
    }
    return this.#text;
  }
}
