// What a subscription counts, under the prefix of whoever has it. Main thread.

import type { Clock } from '../../base/clock.ts';
import { type StatsStore, SUBSCRIPTION_STATS, SUBSCRIPTION_VERSION_TEXT } from '../../stats/index.ts';

export class SubscriptionStats {
  readonly #clock: Clock;
  readonly #hash: ((text: string) => bigint) | undefined;
  readonly #block;
  readonly #versionText;
  readonly #scope;

  /** @param prefix with its dot. @param hash XXH64 of versions, the same in every proxy; absent where none are known. */
  constructor(stats: Pick<StatsStore, 'scope'>, prefix: string, clock: Clock, hash?: (text: string) => bigint) {
    this.#clock = clock;
    this.#hash = hash;
    const scope = stats.scope(prefix);
    this.#scope = scope;
    this.#block = scope.allocate(SUBSCRIPTION_STATS);
    this.#versionText = scope.textReadout(SUBSCRIPTION_VERSION_TEXT);
  }

  /** Nobody asks any more. */
  close(): void {
    this.#scope.close();
  }

  /** The start waits no longer. */
  timedOut(): void {
    this.#block.add('init_fetch_timeout');
  }

  /** @returns what tells how it ended; of `failed` nothing could be read. */
  attempt(): { updated(version: string): void; rejected(): void; failed(): void } {
    const beganMs = this.#clock.monotonicMs();
    this.#block.add('update_attempt');
    return {
      updated: (version) => {
        this.#block.add('update_success');
        this.#block.set('update_time', this.#clock.wallMs());
        this.#block.record('update_duration', this.#clock.monotonicMs() - beganMs);
        if (this.#hash !== undefined) this.#block.set('version', Number(this.#hash(version)));
        this.#versionText.set(version);
      },
      rejected: () => this.#block.add('update_rejected'),
      failed: () => this.#block.add('update_failure'),
    };
  }
}
