// When a worker that has ended is started anew: at once the first time, later the more often it has ended lately, so that one
// that cannot run takes no processor from the others. Main thread.

import type { Clock } from '../../base/clock.ts';
import { errorMessage } from '../../base/errors.ts';
import type { Logger } from '../../log/index.ts';

/** Waits before a worker that ends again and again is started anew, by how often it ended lately. */
const RESTART_DELAYS_MS = [0, 100, 1_000, 5_000];
/** A worker that has run this long counts as healthy again. */
const STABLE_AFTER_MS = 30_000;

export class WorkerRestarts {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #start: (index: number) => void;
  /** By the monotonic clock, of each worker. */
  readonly #lossTimesMs: number[][];
  readonly #cancels = new Set<() => void>();

  /** @param start throws when the system has no thread to give; it is tried again then. */
  constructor(concurrency: number, clock: Clock, log: Logger, start: (index: number) => void) {
    this.#clock = clock;
    this.#log = log;
    this.#start = start;
    this.#lossTimesMs = Array.from({ length: concurrency }, () => []);
  }

  /** A worker has ended. */
  restartLater(index: number): void {
    const nowMs = this.#clock.monotonicMs();
    const losses = this.#lossTimesMs[index]!.filter((timeMs) => nowMs - timeMs < STABLE_AFTER_MS);
    const delayMs = RESTART_DELAYS_MS[Math.min(losses.length, RESTART_DELAYS_MS.length - 1)]!;
    this.#lossTimesMs[index] = [...losses, nowMs];
    const cancel = this.#clock.after(delayMs, () => {
      this.#cancels.delete(cancel);
      this.#restart(index);
    });
    this.#cancels.add(cancel);
  }

  /** Those that wait for their restart get none. */
  cancel(): void {
    for (const cancel of this.#cancels) cancel();
  }

  #restart(index: number): void {
    try {
      this.#start(index);
    } catch (error) {
      // The system has no thread or no descriptor to give, now.
      this.#log.error(`worker ${index} cannot be started again: ${errorMessage(error)}`);
      this.restartLater(index);
    }
  }
}
