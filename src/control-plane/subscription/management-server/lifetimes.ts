// Resources that live for a time unless they come again (TTL of the discovery protocol). Main thread.

import type { Clock } from '../../../base/clock.ts';

export class Lifetimes {
  readonly #clock: Clock;
  readonly #onEnd: (name: string) => void;
  readonly #ends = new Map<string, () => void>();

  /** @param onEnd called for each whose time is over. */
  constructor(clock: Clock, onEnd: (name: string) => void) {
    this.#clock = clock;
    this.#onEnd = onEnd;
  }

  /** It has come, or a heartbeat has. @param ttlMs undefined for ever. */
  renew(name: string, ttlMs: number | undefined): void {
    this.forget(name);
    if (ttlMs === undefined) return;
    const end = this.#clock.after(ttlMs, () => {
      this.#ends.delete(name);
      this.#onEnd(name);
    });
    this.#ends.set(name, end);
  }

  forget(name: string): void {
    // Few types have any.
    if (this.#ends.size === 0) return;
    this.#ends.get(name)?.();
    this.#ends.delete(name);
  }

  close(): void {
    for (const end of this.#ends.values()) end();
    this.#ends.clear();
  }
}
