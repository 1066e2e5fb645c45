// One log message on its way to a sink, on the thread that wrote it or, cloned, on the main thread.

import type { MessageLevel } from '../base/log-levels.ts';

export interface LogRecord {
  readonly logger: string;
  readonly level: MessageLevel;
  /** May hold text from outside: a sink has to keep it on one line. */
  readonly message: string;
  /** Frames of an error of our own, as stackFrames of base/errors.ts gives them; empty without. */
  readonly stack: string;
  /** Milliseconds since 1970 with a fraction: microseconds are kept, nanoseconds only nearly. */
  readonly timeMs: number;
  /** Source file of the log call relative to the package, `src/…`; empty when unknown. */
  readonly file: string;
  /** Line of the log call, from 1; 0 when unknown. */
  readonly line: number;
  /** Function of the log call; empty at the top level of a file. */
  readonly functionName: string;
}

/** Where records go: formatted text on the main thread, a message to the main thread in a worker. */
export interface LogSink {
  /** @param threadId of the thread that wrote the record; 0 is the main thread. */
  write(record: LogRecord, threadId: number): void;
}
