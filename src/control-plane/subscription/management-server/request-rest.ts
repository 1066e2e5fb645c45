// What only acknowledges rests for a moment behind a long request: one that says thousands of names costs more than the response that
// it answers, so the responses of that moment have one answer.

import type { Clock } from '../../../base/clock.ts';

const LONG_BYTES = 65_536;
const REST_MS = 10;

export class RequestRest {
  readonly #clock: Clock;
  #untilMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** 0 where nothing has to wait. */
  get remainingMs(): number {
    return Math.max(0, this.#untilMs - this.#clock.monotonicMs());
  }

  /** @param bytes of a request that goes out. */
  noteSent(bytes: number): void {
    if (bytes >= LONG_BYTES) this.#untilMs = this.#clock.monotonicMs() + REST_MS;
  }
}
