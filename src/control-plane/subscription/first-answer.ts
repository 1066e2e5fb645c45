// What the start of the server waits for where resources come from outside: the first answer, if only that there is none, and no
// longer than its source allows. Main thread.

import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../log/index.ts';
import type { SubscriptionStats } from './subscription-stats.ts';

export interface FirstAnswerDependencies {
  readonly clock: Clock;
  readonly log: Logger;
  readonly stats: Pick<SubscriptionStats, 'timedOut'>;
}

export class FirstAnswer {
  readonly #answered = Promise.withResolvers<void>();
  #endWait = (): void => {};
  #isOver = false;

  /** @param what that is waited for, as the log names it. @param timeoutMs 0 for any time. */
  constructor(what: string, timeoutMs: number, { clock, log, stats }: FirstAnswerDependencies) {
    if (timeoutMs === 0) return;
    this.#endWait = clock.after(timeoutMs, () => {
      stats.timedOut();
      log.warning(`${what}: there has been no answer for ${timeoutMs} ms`);
      this.#end();
    });
  }

  /** It is there, or is not waited for any longer. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Resolves when it is there, or is not waited for any longer; never after `close`. */
  get promise(): Promise<void> {
    return this.#answered.promise;
  }

  /** It is there. Idempotent. */
  came(): void {
    this.#endWait();
    this.#end();
  }

  #end(): void {
    this.#isOver = true;
    this.#answered.resolve();
  }

  close(): void {
    this.#endWait();
  }
}
