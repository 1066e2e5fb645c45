// Files of events, a line each, by path. A write waits for nobody: what a file cannot take is left out and counted. Main
// thread. Owns the files.

import type { Clock } from '../../base/clock.ts';
import { errorMessage } from '../../base/errors.ts';
import { LogDestination, type Loggers, logTarget } from '../../log/index.ts';

export class EventFiles {
  readonly #clock: Clock;
  readonly #loggers: Loggers;
  readonly #what: string;
  readonly #files = new Map<string, LogDestination>();
  /** Owners by path. */
  readonly #holders = new Map<string, number>();

  /** @param what the events are, for log lines. */
  constructor(clock: Clock, loggers: Loggers, what: string) {
    this.#clock = clock;
    this.#loggers = loggers;
    this.#what = what;
  }

  /** Files of these paths stay open from their first event on, until all who hold them have let go. @returns what lets go. */
  hold(paths: readonly string[]): () => void {
    for (const path of paths) this.#holders.set(path, (this.#holders.get(path) ?? 0) + 1);
    return () => {
      for (const path of paths) this.#letGo(path);
    };
  }

  /** @param line without its end. */
  write(paths: readonly string[], line: string): void {
    for (const path of paths) {
      const file = this.#file(path);
      // What an open file cannot take it counts itself.
      if (file === undefined) this.#loggers.countDropped(1);
      else file.write(`${line}\n`);
    }
  }

  /** Goes on in new files, where the old ones were moved away. */
  reopen(): void {
    for (const [path, file] of this.#files) this.#trying(path, () => file.reopen());
  }

  /** Idempotent; what a file takes at once still gets into it. */
  close(): void {
    for (const file of this.#files.values()) file.close('none');
    this.#files.clear();
  }

  #letGo(path: string): void {
    const holders = this.#holders.get(path)! - 1;
    if (holders > 0) {
      this.#holders.set(path, holders);
      return;
    }
    this.#holders.delete(path);
    this.#files.get(path)?.close('none');
    this.#files.delete(path);
  }

  /** Undefined when it cannot be opened; the next event tries again. */
  #file(path: string): LogDestination | undefined {
    if (!this.#files.has(path)) this.#trying(path, () => this.#files.set(path, this.#open(path)));
    return this.#files.get(path);
  }

  #open(path: string): LogDestination {
    return LogDestination.open(logTarget(path), {
      clock: this.#clock,
      onDropped: (count) => this.#loggers.countDropped(count),
    });
  }

  #trying(path: string, open: () => void): void {
    try {
      open();
    } catch (error) {
      this.#loggers.get('upstream').error(`cannot write ${this.#what} to ${path}: ${errorMessage(error)}`);
    }
  }
}
