// What a subscription counts, under the prefix of whoever has it. Main thread.

import type { Clock } from '../../base/clock.ts';
import { type StatsStore, SUBSCRIPTION_STATS, SUBSCRIPTION_VERSION_TEXT } from '../../stats/index.ts';

/** Where it counts. */
export interface SubscriptionCells {
  add(name: 'update_attempt' | 'update_success' | 'update_failure' | 'update_rejected' | 'init_fetch_timeout'): void;
  set(name: 'update_time' | 'version', value: number): void;
  record(name: 'update_duration', milliseconds: number): void;
  showVersion(text: string): void;
  close(): void;
}

/** One version comes to thousands of subscriptions, one after the other. @param hash XXH64. */
export function hashOfVersions(hash: (text: string) => bigint): (text: string) => bigint {
  let last: { readonly text: string; readonly result: bigint } | undefined;
  return (text) => {
    if (last?.text !== text) last = { text, result: hash(text) };
    return last.result;
  };
}

export class SubscriptionStats {
  readonly #cells: SubscriptionCells;
  readonly #clock: Clock;
  readonly #hash: ((text: string) => bigint) | undefined;

  /** @param prefix with its dot. @param hash XXH64 of versions, the same in every proxy; absent where none are known. */
  static under(
    stats: Pick<StatsStore, 'scope'>,
    prefix: string,
    clock: Clock,
    hash?: (text: string) => bigint,
  ): SubscriptionStats {
    const scope = stats.scope(prefix);
    const block = scope.allocate(SUBSCRIPTION_STATS);
    const text = scope.textReadout(SUBSCRIPTION_VERSION_TEXT);
    const cells: SubscriptionCells = {
      add: (name) => block.add(name),
      set: (name, value) => block.set(name, value),
      record: (name, value) => block.record(name, value),
      showVersion: (version) => text.set(version),
      close: () => scope.close(),
    };
    return new SubscriptionStats(cells, clock, hash);
  }

  /** In the cells of somebody who counts more than that under one prefix. @param hash as for `under`. */
  constructor(cells: SubscriptionCells, clock: Clock, hash?: (text: string) => bigint) {
    this.#cells = cells;
    this.#clock = clock;
    this.#hash = hash;
  }

  /** Nobody asks any more. */
  close(): void {
    this.#cells.close();
  }

  /** The start waits no longer. */
  timedOut(): void {
    this.#cells.add('init_fetch_timeout');
  }

  attempt(): Attempt {
    return new Attempt(this.#cells, this.#clock, this.#hash);
  }
}

/** Tells how it has ended. One for each resource of a response: there may be thousands. */
class Attempt {
  readonly #cells: SubscriptionCells;
  readonly #clock: Clock;
  readonly #hash: ((text: string) => bigint) | undefined;
  readonly #beganMs: number;

  constructor(cells: SubscriptionCells, clock: Clock, hash: ((text: string) => bigint) | undefined) {
    this.#cells = cells;
    this.#clock = clock;
    this.#hash = hash;
    this.#beganMs = clock.monotonicMs();
    cells.add('update_attempt');
  }

  updated(version: string): void {
    const cells = this.#cells;
    cells.add('update_success');
    cells.set('update_time', this.#clock.wallMs());
    cells.record('update_duration', this.#clock.monotonicMs() - this.#beganMs);
    if (this.#hash !== undefined) cells.set('version', Number(this.#hash(version)));
    cells.showVersion(version);
  }

  rejected(): void {
    this.#cells.add('update_rejected');
  }

  /** Nothing could be read. */
  failed(): void {
    this.#cells.add('update_failure');
  }
}
