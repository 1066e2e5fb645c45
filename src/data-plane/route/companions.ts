// Requests that go out beside the first one, without waiting for it to be slow: how many a route wants. Made once per
// snapshot.

import { type Fraction, isWithin } from '../../base/runtime.ts';
import type { ForwardAction } from '../../snapshot/index.ts';

export class Companions {
  readonly #always: number;
  /** One more for this share of requests; null for none. */
  readonly #share: Fraction | null;

  constructor(always: number, share: Fraction | null) {
    this.#always = always;
    this.#share = share;
  }

  /** For one request. @param random uniform, 0 to 2^32 - 1. */
  count(random: number): number {
    return this.#share !== null && isWithin(this.#share, random) ? this.#always + 1 : this.#always;
  }
}

/** @returns null where one request goes out first. */
export function compileCompanions({ initialRequests, additionalRequestShare }: ForwardAction): Companions | null {
  if (initialRequests === 1 && additionalRequestShare === null) return null;
  return new Companions(initialRequests - 1, additionalRequestShare);
}
