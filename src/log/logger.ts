// A logger of one component. Any thread. A message below the level costs one comparison; callers guard the
// building of costly texts with `enabled`.

import { LOG_LEVELS, type LogLevel, levelNumber, type MessageLevel } from '../base/log-levels.ts';

/** Receives what passed the level; called directly by the level's method, so that the caller is two frames up. */
export type EmitRecord = (logger: string, level: MessageLevel, message: string, stack: string) => void;

/** Of one file that logs by this component. */
export type LevelOfFile = (component: Logger, file: string) => LogLevel;

export class Logger {
  readonly name: string;
  readonly #emit: EmitRecord;
  #threshold: number;
  readonly #levelOfFile: LevelOfFile;
  readonly #ofFiles = new Map<string, Logger>();

  /** Made by `Loggers`, one per component. */
  constructor(name: string, level: LogLevel, emit: EmitRecord, levelOfFile: LevelOfFile = (logger) => logger.level) {
    this.name = name;
    this.#threshold = levelNumber(level);
    this.#emit = emit;
    this.#levelOfFile = levelOfFile;
  }

  /**
   * For the messages of a single source file, kept as long as the registry: where files have levels it knows its own, so that
   * what is off costs a comparison, and not the search for the caller.
   * @param file as it is listed, `src/log/logger.ts`.
   */
  ofFile(file: string): Logger {
    let logger = this.#ofFiles.get(file);
    if (logger === undefined) {
      logger = new Logger(this.name, this.#levelOfFile(this, file), this.#emit);
      this.#ofFiles.set(file, logger);
    }
    return logger;
  }

  /** Levels have changed. */
  settleFiles(): void {
    for (const [file, logger] of this.#ofFiles) logger.level = this.#levelOfFile(this, file);
  }

  get level(): LogLevel {
    return LOG_LEVELS[this.#threshold]!;
  }

  set level(level: LogLevel) {
    this.#threshold = levelNumber(level);
  }

  /** True when a message of this level would be written; guard costly message texts with it. */
  enabled(level: MessageLevel): boolean {
    return this.#threshold <= levelNumber(level);
  }

  trace(message: string): void {
    if (this.#threshold <= 0) this.#emit(this.name, 'trace', message, '');
  }

  debug(message: string): void {
    if (this.#threshold <= 1) this.#emit(this.name, 'debug', message, '');
  }

  info(message: string): void {
    if (this.#threshold <= 2) this.#emit(this.name, 'info', message, '');
  }

  /** @param stack as for `error`. */
  warning(message: string, stack = ''): void {
    if (this.#threshold <= 3) this.#emit(this.name, 'warning', message, stack);
  }

  /** @param stack frames of an error, by stackFrames, or where a thread is: the only lines of a record beside its first. */
  error(message: string, stack = ''): void {
    if (this.#threshold <= 4) this.#emit(this.name, 'error', message, stack);
  }

  /** @param stack as for `error`. */
  critical(message: string, stack = ''): void {
    if (this.#threshold <= 5) this.#emit(this.name, 'critical', message, stack);
  }
}
