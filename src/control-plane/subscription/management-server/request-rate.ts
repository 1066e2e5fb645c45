// How many requests may go to a management server: a bucket of tokens that fills up evenly.

import type { Clock } from '../../../base/clock.ts';
import type { RequestRateSettings } from '../../../snapshot/index.ts';

export class RequestRate {
  readonly #settings: RequestRateSettings;
  readonly #clock: Clock;
  #tokens: number;
  #filledMs: number;

  constructor(settings: RequestRateSettings, clock: Clock) {
    this.#settings = settings;
    this.#clock = clock;
    this.#tokens = settings.burst;
    this.#filledMs = clock.monotonicMs();
  }

  /** Takes a token. @returns 0, or after how many milliseconds there will be one. */
  take(): number {
    const { burst, perSecond } = this.#settings;
    const nowMs = this.#clock.monotonicMs();
    this.#tokens = Math.min(burst, this.#tokens + ((nowMs - this.#filledMs) / 1000) * perSecond);
    this.#filledMs = nowMs;
    if (this.#tokens >= 1) {
      this.#tokens -= 1;
      return 0;
    }
    return Math.max(1, Math.ceil(((1 - this.#tokens) / perSecond) * 1000));
  }
}
