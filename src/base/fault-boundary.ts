// Where the failures of callbacks end that belong to no connection: timers, signals, messages between threads; on main, whose
// process may be somebody else's, those of all events and of promises that nobody awaits. What they throw is told of and counted,
// and costs nothing else: the thread goes on. Either thread; each has one of its own.

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
    this.handler(where, callback)();
  }

  /** For an event, or whatever else begins a turn of the event loop: it may fail without harm. @param where, asked after a fault. */
  handler<Args extends readonly unknown[]>(
    where: string | ((...args: Args) => string),
    callback: (...args: Args) => unknown,
  ): (...args: Args) => void {
    return (...args) => {
      const report = (error: unknown): void => this.report(typeof where === 'string' ? where : where(...args), error);
      try {
        const result = callback(...args);
        if (result instanceof Promise) result.catch(report);
      } catch (error) {
        report(error);
      }
    };
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
