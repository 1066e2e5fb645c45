// The access log files of one worker, one for each destination however many logs write to it. A file stays open until the
// last log that holds it has let go: those of a listener and of its successor go on in the same one.

import type { Clock } from '../../base/clock.ts';
import { type Logger, type LogTarget, logTarget, STANDARD_ERROR, STANDARD_OUTPUT } from '../../log/index.ts';
import type { AccessLogDestination, AccessLogFileSettings } from '../../snapshot/index.ts';
import type { WorkerStats } from '../../stats/index.ts';
import { LogFile, type LogFileOptions } from './log-file.ts';

export class LogFiles {
  readonly #options: LogFileOptions;
  readonly #held = new Map<LogTarget, HeldFile>();
  /** Those that nobody holds, while they write what they have. */
  readonly #closing = new Set<Promise<void>>();

  constructor(settings: AccessLogFileSettings, deps: { stats: WorkerStats; clock: Clock; log: Logger }) {
    this.#options = {
      ...deps,
      statBase: deps.stats.base(settings.statBlock),
      flushIntervalMs: settings.flushIntervalMs,
    };
  }

  /** The file of a destination, opened with its first holder; each of them calls `release` once. */
  hold(destination: AccessLogDestination): LogFile {
    const target = targetOf(destination);
    const held = this.#held.get(target) ?? { file: new LogFile(target, this.#options), holders: 0 };
    this.#held.set(target, held);
    held.holders += 1;
    return held.file;
  }

  /** With its last holder a file is closed, behind what has been written to it. */
  release(destination: AccessLogDestination): void {
    const target = targetOf(destination);
    const held = this.#held.get(target)!;
    held.holders -= 1;
    if (held.holders > 0) return;
    this.#held.delete(target);
    const closed = held.file.close().finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
  }

  reopen(): void {
    for (const { file } of this.#held.values()) file.reopen();
  }

  /** Resolves when everything is written, or has failed to be for a second. */
  async close(): Promise<void> {
    const files = [...this.#held.values()].map(({ file }) => file.close());
    this.#held.clear();
    await Promise.all([...files, ...this.#closing]);
  }
}

interface HeldFile {
  readonly file: LogFile;
  holders: number;
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
