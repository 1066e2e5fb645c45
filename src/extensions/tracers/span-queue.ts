// Spans on their way to a collector, as every tracer sends them: by the runtime keys and under the stats of its kind.

import { TRACER_KEYS } from '../../base/runtime-values.ts';
import { type CallAnswer, type CallRequest, type ReportContext, ReportQueue } from '../../data-plane/index.ts';

const DEFAULT_MIN_SPANS = 5;
const DEFAULT_INTERVAL_MS = 5000;
const DEFAULT_TIMEOUT_MS = 5000;
/** Answers of collectors are short. */
export const MAX_ANSWER_BYTES = 64 * 1024;
/** Where a call holds more, whatever the runtime says: collectors refuse long ones. */
const ENOUGH_BYTES = 256 * 1024;

/** Whole names. */
export interface SpanCounterNames {
  /** Spans that a call has begun with. */
  readonly sent: string;
  /** Calls because time was over. */
  readonly timed: string;
  /** Calls that were not made, because there is no such cluster. */
  readonly skipped: string;
  /** Calls that the collector has taken, refused, not answered. */
  readonly taken: string;
  readonly refused: string;
  readonly failed: string;
  /** Spans that were lost, for whatever reason. */
  readonly dropped: string;
}

export interface SpanQueueOptions {
  /** `zipkin`: part of the names of runtime keys. */
  readonly kind: string;
  readonly counters: SpanCounterNames;
  readonly cluster: string;
  /** Unless the runtime says otherwise; 0 for what is usual. */
  readonly timeoutMs: number;
  readonly request: (spans: readonly Buffer[], timeoutMs: number) => CallRequest;
  readonly takenOf: (answer: CallAnswer, spans: number) => number;
  readonly maxSpans?: number;
}

export function spanQueue(context: ReportContext, options: SpanQueueOptions): ReportQueue {
  const { kind, cluster, request, takenOf, maxSpans } = options;
  const prefix = `tracing.${kind}.`;
  const { runtime } = context;
  const integerOf = (key: string, byDefault: number) =>
    runtime.derived((values) => values.integer(prefix + key) ?? byDefault);
  const minSpans = integerOf(TRACER_KEYS.minSpans, DEFAULT_MIN_SPANS);
  const intervalMs = integerOf(TRACER_KEYS.flushIntervalMs, DEFAULT_INTERVAL_MS);
  const timeoutMs = integerOf(TRACER_KEYS.timeoutMs, options.timeoutMs || DEFAULT_TIMEOUT_MS);
  const names = options.counters;
  const [sent, timed, skipped] = [names.sent, names.timed, names.skipped].map((name) => context.counter(name));
  const [taken, refused, failed] = [names.taken, names.refused, names.failed].map((name) => context.counter(name));
  const dropped = context.counter(names.dropped);
  return new ReportQueue(context, {
    cluster,
    flushIntervalMs: () => intervalMs.value,
    isEnough: (spans, bytes) => spans >= minSpans.value || bytes >= ENOUGH_BYTES,
    request: (spans) => request(spans, timeoutMs.value),
    takenOf,
    ...(maxSpans === undefined ? {} : { maxItems: maxSpans }),
    count: {
      sent: (spans) => sent!.add(spans),
      timed: () => timed!.add(1),
      skipped(spans) {
        skipped!.add(1);
        dropped.add(spans);
      },
      taken: () => taken!.add(1),
      refused(spans) {
        refused!.add(1);
        dropped.add(spans);
      },
      failed(spans) {
        failed!.add(1);
        dropped.add(spans);
      },
      dropped: (spans) => dropped.add(spans),
    },
  });
}

/** Of collectors that take all of a call or nothing of it. */
export function takenByStatus({ status }: CallAnswer, spans: number): number {
  return status >= 200 && status < 300 ? spans : 0;
}

/** Microseconds since the Unix epoch, of milliseconds with a fraction. */
export function microseconds(ms: number): number {
  return Math.round(ms * 1000);
}

/** Byte text as characters; what is no UTF-8 shows as U+FFFD. */
export function shownText(text: string): string {
  return Buffer.from(text, 'latin1').toString();
}
