// Waits after failures: random below a bound that doubles with each failure. The randomness keeps many that failed
// together from coming back together.

import type { Random } from './random.ts';

export class JitteredBackoff {
  readonly #random: Random;
  readonly #baseMs: number;
  readonly #maxMs: number;
  #boundMs: number;

  /** @param baseMs bound of the first wait, above 0. @param maxMs not below it. */
  constructor(random: Random, baseMs: number, maxMs: number) {
    this.#random = random;
    this.#baseMs = baseMs;
    this.#maxMs = maxMs;
    this.#boundMs = baseMs;
  }

  /** The next wait, at least a millisecond. */
  nextMs(): number {
    const boundMs = this.#boundMs;
    this.#boundMs = Math.min(boundMs * 2, this.#maxMs);
    return Math.max(1, this.#random.u32() % boundMs);
  }

  /** It has worked again. */
  reset(): void {
    this.#boundMs = this.#baseMs;
  }
}
