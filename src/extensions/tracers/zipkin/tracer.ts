// Traces for a Zipkin collector: headers of B3, spans in the second version of its format.

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
import { MAX_ANSWER_BYTES, spanQueue, takenByStatus } from '../span-queue.ts';
import { readB3, writeB3 } from './b3.ts';
import type { ZipkinSettings } from './settings.ts';
import { CODECS } from './span-codec.ts';

/** Collectors refuse spans of nobody. */
const UNKNOWN_SERVICE = 'proxy';

export const ZIPKIN_TRACER: TracerKind = {
  open: (settings, context) => new ZipkinTracer(settings as ZipkinSettings, context),
};

class ZipkinTracer implements Tracer {
  readonly #settings: ZipkinSettings;
  readonly #context: TracerContext;
  readonly #queue: ReportQueue;

  constructor(settings: ZipkinSettings, context: TracerContext) {
    this.#settings = settings;
    this.#context = context;
    const { cluster, host, path, headers, timeoutMs } = settings;
    const codec = CODECS[settings.encoding];
    this.#queue = spanQueue(context, {
      kind: 'zipkin',
      counters: settings.counters,
      cluster,
      timeoutMs,
      request: (spans, timeoutMs) => ({
        cluster,
        method: 'POST',
        path,
        host,
        fields: [['content-type', codec.contentType], ...headers],
        body: codec.joined(spans),
        isGrpc: false,
        timeoutMs,
        maxAnswerBytes: MAX_ANSWER_BYTES,
      }),
      takenOf: takenByStatus,
    });
  }

  begin(head: TracedHead, isSampled: boolean, isEgress: boolean): SpanContext {
    const { sharesSpans, speaksW3c, isLongId } = this.#settings;
    const { ids } = this.#context;
    const before = readB3(head, speaksW3c);
    const common = { isSampled: before.isSampled ?? isSampled, state: before.isDebug ? 'd' : '' };
    if (before.traceId === '') {
      const spanId = ids.next();
      return { ...common, traceId: isLongId ? ids.nextLong() : ids.next(), spanId, parentId: '', isShared: false };
    }
    const { traceId, spanId, parentId } = before;
    if (sharesSpans && !isEgress) return { ...common, traceId, spanId, parentId, isShared: true };
    return { ...common, traceId, spanId: ids.next(), parentId: spanId, isShared: false };
  }

  child(parent: SpanContext): SpanContext {
    return { ...parent, spanId: this.#context.ids.next(), parentId: parent.spanId, isShared: false };
  }

  carry(context: SpanContext): readonly SpanTag[] {
    return writeB3(context, this.#settings.speaksW3c);
  }

  report(span: FinishedSpan): void {
    this.#queue.add(CODECS[this.#settings.encoding].encode(span, this.#context.node.cluster || UNKNOWN_SERVICE));
  }

  close(): void {
    void this.#queue.close();
  }
}
