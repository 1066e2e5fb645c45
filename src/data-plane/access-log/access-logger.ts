// What an access logger is: an extension that tells of finished requests or connections elsewhere than in a file.

import type { FormatFacts } from '../format/facts.ts';
import type { ReportContext } from '../tracing/tracer.ts';

export interface AccessLogger {
  /** Never waits, never fails; what there is no room for is dropped and counted. */
  write(facts: FormatFacts): void;
  /** Sends what it has. Nothing is written any more. Once. Resolves when all has been taken, or is lost. */
  close(): Promise<void>;
}

export interface AccessLoggerKind {
  /** @param settings as the extension's own conversion has made them. */
  open(settings: unknown, context: ReportContext): AccessLogger;
}

/** By name, as snapshots have it. */
export type AccessLoggerRegistry = Readonly<Record<string, AccessLoggerKind>>;
