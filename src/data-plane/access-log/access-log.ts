// The access logs of one listener or filter, compiled from its snapshot. Each stream or connection passes here once,
// at its end; a filter decides, a format makes the entry, a file takes it.

import type { AccessLogDestination, AccessLogSettings } from '../../snapshot/index.ts';
import type { FormatFacts } from '../format/facts.ts';
import type { WorkerContext } from '../worker-context.ts';
import { compileFilter, type PassesFilter } from './filter.ts';
import { compileLine } from './line.ts';
import type { LogFile } from './log-file.ts';
import type { LogFiles } from './log-files.ts';

interface Entry {
  readonly passes: PassesFilter | null;
  readonly line: (facts: FormatFacts) => string;
  readonly destination: AccessLogDestination;
  readonly file: LogFile;
}

export class AccessLog {
  readonly #files: LogFiles;
  readonly #entries: readonly Entry[];

  private constructor(files: LogFiles, entries: readonly Entry[]) {
    this.#files = files;
    this.#entries = entries;
  }

  /** To be closed. @returns null without settings: then nothing needs to be noted for logs. */
  static compile(context: WorkerContext, settings: readonly AccessLogSettings[]): AccessLog | null {
    if (settings.length === 0) return null;
    return new AccessLog(
      context.logFiles,
      settings.map(({ destination, format, filter }) => ({
        passes: filter === null ? null : compileFilter(filter, context.random, context.runtime),
        line: compileLine(format),
        destination,
        file: context.logFiles.hold(destination),
      })),
    );
  }

  write(facts: FormatFacts): void {
    for (const { passes, line, file } of this.#entries) {
      if (passes === null || passes(facts)) file.write(line(facts));
    }
  }

  /** Nobody writes any more. Once. */
  close(): void {
    for (const { destination } of this.#entries) this.#files.release(destination);
  }
}
