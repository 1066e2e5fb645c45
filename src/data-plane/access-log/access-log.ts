// The access logs of one listener or filter, compiled from its snapshot. Each stream or connection passes here once,
// at its end; a filter decides, a format makes the entry and a file takes it, or a logger does both.

import type { AccessLogDestination, AccessLogSettings, ReportedLogSettings } from '../../snapshot/index.ts';
import type { FormatFacts } from '../format/facts.ts';
import { UpstreamCalls } from '../router/upstream-call.ts';
import { reportContext } from '../tracing/report-context.ts';
import type { ClusterMap } from '../upstream/cluster-map.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { AccessLoggers, HeldLogger } from './access-loggers.ts';
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

interface Report {
  readonly passes: PassesFilter | null;
  readonly held: HeldLogger;
}

/** What is logged of one listener or filter. */
interface Logged {
  readonly accessLogs: readonly AccessLogSettings[];
  readonly reportedLogs?: readonly ReportedLogSettings[];
}

export class AccessLog {
  readonly #files: LogFiles;
  readonly #loggers: AccessLoggers;
  readonly #entries: readonly Entry[];
  readonly #reports: readonly Report[];

  private constructor(
    { logFiles, accessLoggers }: WorkerContext,
    entries: readonly Entry[],
    reports: readonly Report[],
  ) {
    this.#files = logFiles;
    this.#loggers = accessLoggers;
    this.#entries = entries;
    this.#reports = reports;
  }

  /** To be closed. @returns null without settings: then nothing needs to be noted for logs. */
  static compile(
    context: WorkerContext,
    clusters: ClusterMap,
    { accessLogs, reportedLogs = [] }: Logged,
  ): AccessLog | null {
    if (accessLogs.length + reportedLogs.length === 0) return null;
    const { random, runtime } = context;
    const passesOf = (filter: AccessLogSettings['filter']): PassesFilter | null =>
      filter === null ? null : compileFilter(filter, random, runtime);
    const entries = accessLogs.map(({ destination, format, filter }) => ({
      passes: passesOf(filter),
      line: compileLine(format),
      destination,
      file: context.logFiles.hold(destination),
    }));
    const reports = reportedLogs.map(({ logger, filter }) => ({
      passes: passesOf(filter),
      held: context.accessLoggers.hold(logger, () => reportContext(context, new UpstreamCalls(context, clusters))),
    }));
    return new AccessLog(context, entries, reports);
  }

  write(facts: FormatFacts): void {
    for (const { passes, line, file } of this.#entries) {
      if (passes === null || passes(facts)) file.write(line(facts));
    }
    for (const { passes, held } of this.#reports) if (passes === null || passes(facts)) held.logger.write(facts);
  }

  /** Nobody writes any more. Once. */
  close(): void {
    for (const { destination } of this.#entries) this.#files.release(destination);
    for (const { held } of this.#reports) this.#loggers.release(held);
  }
}
