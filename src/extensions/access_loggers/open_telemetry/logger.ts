// Entries of finished requests and connections to an OpenTelemetry collector, as log records by OTLP.

import {
  type AccessLogger,
  type AccessLoggerKind,
  compileTags,
  type FormatFacts,
  type ReportContext,
  ReportQueue,
} from '../../../data-plane/index.ts';
import { encodeExport, exportCall, takenOf } from '../../otlp/export.ts';
import { compileRecord, type EncodeRecord } from './records.ts';
import type { OpenTelemetryLogSettings } from './settings.ts';

const METHOD = '/opentelemetry.proto.collector.logs.v1.LogsService/Export';

export const OPEN_TELEMETRY_LOGGER: AccessLoggerKind = {
  open: (settings, context) => new OpenTelemetryLogger(settings as OpenTelemetryLogSettings, context),
};

class OpenTelemetryLogger implements AccessLogger {
  readonly #encode: EncodeRecord;
  readonly #queue: ReportQueue;

  constructor(settings: OpenTelemetryLogSettings, context: ReportContext) {
    const { target, resource, flushIntervalMs, bufferBytes, counters } = settings;
    this.#encode = compileRecord(settings, compileTags(settings.tags));
    const written = context.counter(counters.written);
    const dropped = context.counter(counters.dropped);
    const lose = (records: number): void => dropped.add(records);
    this.#queue = new ReportQueue(context, {
      cluster: target.cluster,
      flushIntervalMs: () => flushIntervalMs,
      isEnough: (_records, bytes) => bytes >= bufferBytes,
      request: (records) => exportCall(target, METHOD, encodeExport(resource, records), target.timeoutMs),
      takenOf: (answer, records) => takenOf(target, answer, records),
      count: {
        sent() {},
        timed() {},
        skipped: lose,
        taken: (records) => written.add(records),
        refused: lose,
        failed: lose,
        dropped: lose,
      },
    });
  }

  write(facts: FormatFacts): void {
    this.#queue.add(this.#encode(facts));
  }

  close(): Promise<void> {
    return this.#queue.close();
  }
}
