// The access log files of one worker, one for each destination however many logs write to it. A file once opened
// stays until the worker ends: logs of a drained listener and of its successor go on in the same one.

import type { Clock } from '../../base/clock.ts';
import { type Logger, type LogTarget, logTarget, STANDARD_ERROR, STANDARD_OUTPUT } from '../../log/index.ts';
import type { AccessLogDestination, AccessLogFileSettings } from '../../snapshot/index.ts';
import type { WorkerStats } from '../../stats/index.ts';
import { LogFile, type LogFileOptions } from './log-file.ts';

export class LogFiles {
  readonly #options: LogFileOptions;
  readonly #files = new Map<LogTarget, LogFile>();

  constructor(settings: AccessLogFileSettings, deps: { stats: WorkerStats; clock: Clock; log: Logger }) {
    this.#options = {
      ...deps,
      statBase: deps.stats.base(settings.statBlock),
      flushIntervalMs: settings.flushIntervalMs,
    };
  }

  /** The file of a destination, opened at once; the same one for the same place. */
  file(destination: AccessLogDestination): LogFile {
    const target = targetOf(destination);
    const known = this.#files.get(target);
    if (known !== undefined) return known;
    const file = new LogFile(target, this.#options);
    this.#files.set(target, file);
    return file;
  }

  reopen(): void {
    for (const file of this.#files.values()) file.reopen();
  }

  flush(): void {
    for (const file of this.#files.values()) file.flush();
  }

  /** Resolves when everything is written, or has failed to be for a second. */
  async close(): Promise<void> {
    await Promise.all([...this.#files.values()].map((file) => file.close()));
    this.#files.clear();
  }
}

function targetOf(destination: AccessLogDestination): LogTarget {
  switch (destination.kind) {
    case 'file':
      return logTarget(destination.path);
    case 'stdout':
      return STANDARD_OUTPUT;
    case 'stderr':
      return STANDARD_ERROR;
  }
}
