// Identifiers of traces and spans: random hexadecimal digits, drawn by the page. Never all zeros, which stands for none.

import { randomFillSync } from 'node:crypto';

const SPAN_BYTES = 8;
const POOL_BYTES = 512 * SPAN_BYTES;

export class TraceIds {
  readonly #fill: (pool: Buffer) => void;
  readonly #pool = Buffer.allocUnsafeSlow(POOL_BYTES);
  #used = POOL_BYTES;

  /** @param fill writes random bytes; the system's unless a test has its own. */
  constructor(fill: (pool: Buffer) => void = randomFillSync) {
    this.#fill = fill;
  }

  /** 16 digits. */
  next(): string {
    for (;;) {
      if (this.#used === POOL_BYTES) {
        this.#fill(this.#pool);
        this.#used = 0;
      }
      const digits = this.#pool.toString('hex', this.#used, this.#used + SPAN_BYTES);
      this.#used += SPAN_BYTES;
      if (digits !== '0000000000000000') return digits;
    }
  }

  /** 32 digits. */
  nextLong(): string {
    return this.next() + this.next();
  }
}
