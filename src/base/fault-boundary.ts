// Where the failures of callbacks end that belong to no connection: timers, signals, messages between threads. What they
// throw is told of and counted, and costs nothing else: the thread goes on. Either thread; each has one of its own.

import type { Clock } from './clock.ts';

/** Told of what was thrown; `where` completes "a fault in". What it throws itself is lost. */
export type ReportFault = (where: string, error: unknown) => void;

export class FaultBoundary {
  readonly #report: ReportFault;
  #count = 0;

  constructor(report: ReportFault) {
    this.#report = report;
  }

  /** Faults since the start. */
  get count(): number {
    return this.#count;
  }

  report(where: string, error: unknown): void {
    this.#count += 1;
    try {
      this.#report(where, error);
    } catch {
      // Out of the means to say it. The count remains.
    }
  }

  /** Calls it now; a promise that it returns may fail as well. */
  run(where: string, callback: () => unknown): void {
    try {
      const result = callback();
      if (result instanceof Promise) result.catch((error: unknown) => this.report(where, error));
    } catch (error) {
      this.report(where, error);
    }
  }

  /** A clock whose timers fail without harm. */
  clock(clock: Clock): Clock {
    return {
      monotonicMs: () => clock.monotonicMs(),
      wallMs: () => clock.wallMs(),
      after: (delayMs, callback) => clock.after(delayMs, () => this.run('a timer', callback)),
    };
  }

  /**
   * The last resort of this thread: contains what no other boundary has caught, event handlers and promises that nobody
   * awaits. @returns what lifts it again; then such a fault ends the thread.
   */
  containUncaught(): () => void {
    const onUncaught = (error: unknown): void => this.report('an event handler', error);
    process.on('uncaughtException', onUncaught);
    return () => process.off('uncaughtException', onUncaught);
  }
}
