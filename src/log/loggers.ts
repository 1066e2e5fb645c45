// All loggers of one thread. The main thread's registry formats and writes; a worker's registry posts its
// records to the main thread, which hands them to `emit` of its own registry. Levels are decided on the main
// thread: `onLevelsChanged` tells it to send `levels()` to the workers, which call `applyLevels`. Logging never throws
// into the caller, whatever fails: the line is lost, and counted.

import { isLogComponent, LOG_COMPONENTS, type LogComponent } from '../base/log-components.ts';
import { type LogLevel, levelNumber, type MessageLevel } from '../base/log-levels.ts';
import { createWallClock } from '../base/wall-clock.ts';
import type { LineTable } from './line-table.ts';
import { Logger } from './logger.ts';
import type { LogRecord, LogSink } from './record.ts';
import { SourceLocator } from './source-location.ts';

/** Level by component; a component that is not named has the level `default`. */
export type LogLevels = Readonly<Record<string, LogLevel>> & { readonly default: LogLevel };

export interface LoggersOptions {
  readonly levels: LogLevels;
  readonly sink: LogSink;
  /** Id of this thread as `%t` shows it: `threadId` of node:worker_threads. */
  readonly threadId: number;
  /** Of the bundle that this thread runs; absent where the sources run as they are. */
  readonly lines?: LineTable | undefined;
  /** Milliseconds since 1970; the system's clock when absent. */
  readonly now?: () => number;
}

export class Loggers {
  readonly #loggers = new Map<string, Logger>();
  readonly #listeners = new Set<() => void>();
  readonly #locator: SourceLocator;
  readonly #sink: LogSink;
  readonly #threadId: number;
  readonly #now: () => number;
  #defaultLevel: LogLevel;
  #dropped = 0;

  constructor(options: LoggersOptions) {
    this.#locator = new SourceLocator({ lines: options.lines });
    this.#sink = options.sink;
    this.#threadId = options.threadId;
    this.#now = options.now ?? createWallClock();
    this.#defaultLevel = options.levels.default;
    const emit = this.#emitLocal.bind(this);
    for (const name of LOG_COMPONENTS) this.#loggers.set(name, new Logger(name, this.#defaultLevel, emit));
    this.applyLevels(options.levels);
  }

  /** The component's logger: always the same object, so owners may keep it. */
  get(component: LogComponent): Logger {
    return this.#loggers.get(component)!;
  }

  /** Every logger in listing order. */
  list(): readonly Logger[] {
    return [...this.#loggers.values()];
  }

  /** What a worker needs to log like this thread. */
  levels(): LogLevels {
    const levels: Record<string, LogLevel> & { default: LogLevel } = { default: this.#defaultLevel };
    for (const logger of this.#loggers.values()) {
      if (logger.level !== this.#defaultLevel) levels[logger.name] = logger.level;
    }
    return levels;
  }

  /** Takes over all levels of another registry. Names that are no component are ignored. */
  applyLevels(levels: LogLevels): void {
    this.#defaultLevel = levels.default;
    for (const logger of this.#loggers.values()) {
      logger.level = Object.hasOwn(levels, logger.name) ? levels[logger.name]! : levels.default;
    }
    this.#tellListeners();
  }

  /** Sets every logger. */
  setAll(level: LogLevel): void {
    this.applyLevels({ default: level });
  }

  /**
   * Sets several loggers, or none of them when a name is unknown.
   * @returns the first name that is no component, or undefined when all are set.
   */
  set(changes: Iterable<readonly [name: string, level: LogLevel]>): string | undefined {
    const wanted = [...changes];
    const unknown = wanted.find(([name]) => !isLogComponent(name));
    if (unknown !== undefined) return unknown[0];
    for (const [name, level] of wanted) this.#loggers.get(name)!.level = level;
    this.#tellListeners();
    return undefined;
  }

  /** Calls `listener` after each change of levels. @returns what takes the listener off again. */
  onLevelsChanged(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Lines lost so far, of this thread and of those that pass theirs on to it. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Lines have been lost on their way. */
  countDropped(lines: number): void {
    this.#dropped += lines;
  }

  /** Writes a record of another thread, which has already judged its level. */
  emit(record: LogRecord, threadId: number): void {
    try {
      this.#sink.write(record, threadId);
    } catch {
      this.countDropped(1);
    }
  }

  /**
   * Writes a message on behalf of code that knows only names, such as a log line from outside weir's own source.
   * Judged by the component's level like any other message; has no source location.
   */
  write(component: LogComponent, level: MessageLevel, message: string): void {
    if (levelNumber(this.get(component).level) > levelNumber(level)) return;
    const place = { file: '', line: 0, functionName: '' };
    this.emit({ logger: component, level, message, stack: '', timeMs: this.#now(), ...place }, this.#threadId);
  }

  #emitLocal(logger: string, level: MessageLevel, message: string, stack: string): void {
    const { file, line, functionName } = this.#locator.callerOfLogger();
    this.emit({ logger, level, message, stack, timeMs: this.#now(), file, line, functionName }, this.#threadId);
  }

  #tellListeners(): void {
    for (const listener of this.#listeners) listener();
  }
}
