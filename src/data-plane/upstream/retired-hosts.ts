// Counts down the hosts that one update has made superfluous. When the last of them is unused the worker confirms
// the update, and main may use their places in shared memory again.

import type { Host } from './host.ts';

export class RetiredHosts {
  readonly #onUnused: () => void;
  #inUse = 0;
  #isSealed = false;

  /** @param onUnused called once, after `seal`, when all hosts are unused. */
  constructor(onUnused: () => void) {
    this.#onUnused = onUnused;
  }

  add(host: Host): void {
    this.#inUse++;
    host.retire(() => this.#release());
  }

  /** No more hosts will come. */
  seal(): void {
    this.#isSealed = true;
    if (this.#inUse === 0) this.#onUnused();
  }

  #release(): void {
    this.#inUse--;
    if (this.#isSealed && this.#inUse === 0) this.#onUnused();
  }
}
