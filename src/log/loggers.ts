// All loggers of one thread. The main thread's registry formats and writes; a worker's registry posts its
// records to the main thread, which hands them to `emit` of its own registry. Levels are decided on the main
// thread: `onLevelsChanged` tells it to send `levels()` to the workers, which call `applyLevels`. Logging never throws
// into the caller, whatever fails: the line is lost, and counted.

import { isLogComponent, LOG_COMPONENTS, type LogComponent } from '../base/log-components.ts';
import { type LogLevel, levelNumber, type MessageLevel } from '../base/log-levels.ts';
import { createWallClock } from '../base/wall-clock.ts';
import { type FileLevel, FileLevels } from './file-levels.ts';
import type { LineTable } from './line-table.ts';
import { type EmitRecord, type LevelOfFile, Logger } from './logger.ts';
import type { LogRecord, LogSink } from './record.ts';
import { SourceLocator } from './source-location.ts';

export interface LogLevels {
  /** Of components and files that are not named. */
  readonly default: LogLevel;
  /** By component. */
  readonly components?: Readonly<Record<string, LogLevel>>;
  /** Where each source file has a logger of its own: no components then. */
  readonly files?: readonly FileLevel[];
}

/** A logger as it is listed: of a component, or of a source file. */
export interface ListedLogger {
  readonly name: string;
  readonly level: LogLevel;
}

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
  readonly #emit: EmitRecord;
  readonly #listeners = new Set<() => void>();
  readonly #locator: SourceLocator;
  readonly #sink: LogSink;
  readonly #threadId: number;
  readonly #now: () => number;
  #defaultLevel: LogLevel;
  /** Undefined where loggers are components. */
  #files: FileLevels | undefined;
  /** Have written lines, on this thread or on others that pass theirs on to it. */
  readonly #seenFiles = new Set<string>();
  readonly #lines: LineTable | undefined;
  #dropped = 0;

  constructor(options: LoggersOptions) {
    this.#lines = options.lines;
    this.#locator = new SourceLocator({ lines: options.lines });
    this.#sink = options.sink;
    this.#threadId = options.threadId;
    this.#now = options.now ?? createWallClock();
    this.#defaultLevel = options.levels.default;
    this.#emit = this.#emitLocal.bind(this);
    const levelOfFile: LevelOfFile = (component, file) => this.#files?.levelOf(file) ?? component.level;
    for (const name of LOG_COMPONENTS) {
      this.#loggers.set(name, new Logger(name, this.#defaultLevel, this.#emit, levelOfFile));
    }
    this.applyLevels(options.levels);
  }

  /** The component's logger: always the same object, so owners may keep it. */
  get(component: LogComponent): Logger {
    return this.#loggers.get(component)!;
  }

  /** True where each source file has a logger of its own. */
  get isFineGrain(): boolean {
    return this.#files !== undefined;
  }

  /** Every logger in listing order. Of files those that log, or those seen so far where the sources run as they are. */
  list(): readonly ListedLogger[] {
    const files = this.#files;
    if (files === undefined) return [...this.#loggers.values()];
    const names = new Set([...(this.#lines?.filesThatLog ?? []), ...this.#seenFiles]);
    return [...names].sort().map((name) => ({ name, level: files.levelOf(name) }));
  }

  /** What a worker needs to log like this thread. */
  levels(): LogLevels {
    if (this.#files !== undefined) return { default: this.#defaultLevel, files: this.#files.rules };
    const components: Record<string, LogLevel> = {};
    for (const logger of this.#loggers.values()) {
      if (logger.level !== this.#defaultLevel) components[logger.name] = logger.level;
    }
    return { default: this.#defaultLevel, components };
  }

  /** Takes over all levels of another registry. Names that are no component are ignored. */
  applyLevels(levels: LogLevels): void {
    const { components = {} } = levels;
    this.#defaultLevel = levels.default;
    this.#files = levels.files && new FileLevels(levels.default, levels.files);
    for (const logger of this.#loggers.values()) {
      // Which file a message comes from is found out only when the message may be one that is written.
      if (this.#files !== undefined) logger.level = this.#files.lowest;
      else logger.level = Object.hasOwn(components, logger.name) ? components[logger.name]! : levels.default;
    }
    this.#tellListeners();
  }

  /** Sets every logger. */
  setAll(level: LogLevel): void {
    this.applyLevels(this.#files === undefined ? { default: level } : { default: level, files: [] });
  }

  /**
   * Sets several loggers, or none of them when a name is unknown. Of files the names are patterns, none of which is
   * unknown; they replace those of before.
   * @returns the first name that is no component, or undefined when all are set.
   */
  set(changes: Iterable<readonly [name: string, level: LogLevel]>): string | undefined {
    const wanted = [...changes];
    if (this.#files !== undefined) {
      this.applyLevels({ default: this.#defaultLevel, files: wanted.map(([pattern, level]) => ({ pattern, level })) });
      return undefined;
    }
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
    if (this.#files !== undefined && record.file !== '') this.#seenFiles.add(record.file);
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
    // A file of no name has the default.
    const threshold = this.#files?.levelOf('') ?? this.get(component).level;
    if (levelNumber(threshold) > levelNumber(level)) return;
    const place = { file: '', line: 0, functionName: '' };
    this.emit({ logger: component, level, message, stack: '', timeMs: this.#now(), ...place }, this.#threadId);
  }

  #emitLocal(logger: string, level: MessageLevel, message: string, stack: string): void {
    const { file, line, functionName } = this.#locator.callerOfLogger();
    const files = this.#files;
    if (files !== undefined && levelNumber(files.levelOf(file)) > levelNumber(level)) return;
    const name = files === undefined || file === '' ? logger : file;
    this.emit({ logger: name, level, message, stack, timeMs: this.#now(), file, line, functionName }, this.#threadId);
  }

  #tellListeners(): void {
    for (const logger of this.#loggers.values()) logger.settleFiles();
    for (const listener of this.#listeners) listener();
  }
}
