// Traces for an OpenTelemetry collector: `traceparent` and `tracestate`, spans by OTLP over gRPC or HTTP.

import type {
  FinishedSpan,
  ReportQueue,
  SpanContext,
  SpanTag,
  TracedHead,
  Tracer,
  TracerContext,
  TracerKind,
} from '../../../data-plane/index.ts';
import { encodeExport, exportCall, takenOf } from '../../otlp/export.ts';
import { spanQueue } from '../span-queue.ts';
import { readTraceParent, traceParent } from '../trace-parent.ts';
import { encodeSpan } from './otlp-spans.ts';
import { isSampledBy } from './sampler.ts';
import type { OpenTelemetrySettings } from './settings.ts';

const METHOD = '/opentelemetry.proto.collector.trace.v1.TraceService/Export';
/** Members of a `tracestate` are for others; what is longer than all must pass on is not kept. */
const MAX_STATE_LENGTH = 4096;

export const OPEN_TELEMETRY_TRACER: TracerKind = {
  open: (settings, context) => new OpenTelemetryTracer(settings as OpenTelemetrySettings, context),
};

class OpenTelemetryTracer implements Tracer {
  readonly #settings: OpenTelemetrySettings;
  readonly #context: TracerContext;
  readonly #queue: ReportQueue;

  constructor(settings: OpenTelemetrySettings, context: TracerContext) {
    this.#settings = settings;
    this.#context = context;
    const { target, resource, maxSpans } = settings;
    this.#queue = spanQueue(context, {
      kind: 'opentelemetry',
      counters: settings.counters,
      cluster: target.cluster,
      timeoutMs: target.timeoutMs,
      maxSpans,
      request: (spans, timeoutMs) => exportCall(target, METHOD, encodeExport(resource, spans), timeoutMs),
      takenOf: (answer, spans) => takenOf(target, answer, spans),
    });
  }

  begin(head: TracedHead, isSampled: boolean): SpanContext {
    const { ids } = this.#context;
    const parent = readTraceParent(head.headerByName('traceparent'));
    const traceId = parent?.traceId ?? ids.nextLong();
    const state = parent === undefined ? '' : (head.headerByName('tracestate') ?? '');
    return {
      traceId,
      spanId: ids.next(),
      parentId: parent?.spanId ?? '',
      isSampled: isSampledBy(this.#settings.sampler, parent, isSampled, traceId),
      isShared: false,
      state: state.length > MAX_STATE_LENGTH ? '' : state,
    };
  }

  child(parent: SpanContext): SpanContext {
    return { ...parent, spanId: this.#context.ids.next(), parentId: parent.spanId };
  }

  carry(context: SpanContext): readonly SpanTag[] {
    return [
      ['traceparent', traceParent(context)],
      ['tracestate', context.state],
    ];
  }

  report(span: FinishedSpan): void {
    this.#queue.add(encodeSpan(span));
  }

  close(): void {
    void this.#queue.close();
  }
}
