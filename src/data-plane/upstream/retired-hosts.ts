// Counts down the hosts and clusters that one update has made superfluous. When the last of them is unused the worker confirms
// the update, and main may use their places in shared memory again.

interface Retiring {
  /** @param onUnused told once, in a later turn, when nothing uses it any more. */
  retire(onUnused: () => void): void;
}

export class RetiredHosts {
  readonly #onUnused: () => void;
  #inUse = 0;

  /** @param onUnused called once, after `seal`, when all of them are unused. */
  constructor(onUnused: () => void) {
    this.#onUnused = onUnused;
  }

  add(leaving: Retiring): void {
    this.#inUse++;
    leaving.retire(() => this.#release());
  }

  /** No more will come. In the turn of the first one. */
  seal(): void {
    if (this.#inUse === 0) this.#onUnused();
  }

  #release(): void {
    this.#inUse--;
    if (this.#inUse === 0) this.#onUnused();
  }
}
