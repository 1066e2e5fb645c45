// Counts down the hosts that one update has made superfluous. When the last of them is unused the worker confirms
// the update, and main may use their places in shared memory again.

import type { Host } from './host.ts';

export class RetiredHosts {
  readonly #onUnused: () => void;
  #inUse = 0;

  /** @param onUnused called once, after `seal`, when all hosts are unused. */
  constructor(onUnused: () => void) {
    this.#onUnused = onUnused;
  }

  add(host: Host): void {
    this.#inUse++;
    host.retire(() => this.#release());
  }

  /** No more hosts will come. In the turn of the first one: a host tells in a later turn that it is unused. */
  seal(): void {
    if (this.#inUse === 0) this.#onUnused();
  }

  #release(): void {
    this.#inUse--;
    if (this.#inUse === 0) this.#onUnused();
  }
}
