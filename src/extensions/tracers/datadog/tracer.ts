// Traces for a Datadog agent: headers and numbers of its kind, spans by the interface v0.4.

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
import { MAX_ANSWER_BYTES, shownText, spanQueue, takenByStatus } from '../span-queue.ts';
import { listHead, pack } from './message-pack.ts';
import type { DatadogSettings } from './settings.ts';

const PATH = '/v0.4/traces';
const DECIMAL = /^\d{1,20}$/;
const MAX_ID = 2n ** 64n;
const ID_DIGITS = 16;
/** Left to this side, and by somebody's own wish. */
const [KEPT, DROPPED] = ['1', '0'];
const PRIORITY = /^-?\d$/;

export const DATADOG_TRACER: TracerKind = {
  open: (settings, context) => new DatadogTracer(settings as DatadogSettings, context),
};

class DatadogTracer implements Tracer {
  readonly #settings: DatadogSettings;
  readonly #context: TracerContext;
  readonly #queue: ReportQueue;

  constructor(settings: DatadogSettings, context: TracerContext) {
    this.#settings = settings;
    this.#context = context;
    const { cluster, host } = settings;
    this.#queue = spanQueue(context, {
      kind: 'datadog',
      counters: settings.counters,
      cluster,
      timeoutMs: 0,
      request: (spans, timeoutMs) => ({
        cluster,
        method: 'POST',
        path: PATH,
        host,
        fields: [
          ['content-type', 'application/msgpack'],
          ['datadog-meta-lang', 'nodejs'],
          ['datadog-meta-tracer-version', '1'],
          ['x-datadog-trace-count', String(spans.length)],
        ],
        body: Buffer.concat([listHead(spans.length), ...spans]),
        isGrpc: false,
        timeoutMs,
        maxAnswerBytes: MAX_ANSWER_BYTES,
      }),
      takenOf: takenByStatus,
    });
  }

  begin(head: TracedHead, isSampled: boolean): SpanContext {
    const { ids } = this.#context;
    const traceId = hexOf(head.headerByName('x-datadog-trace-id'));
    const parentId = hexOf(head.headerByName('x-datadog-parent-id'));
    if (traceId === '') {
      return { traceId: ids.next(), spanId: ids.next(), parentId: '', isSampled, isShared: false, state: '' };
    }
    const said = head.headerByName('x-datadog-sampling-priority') ?? '';
    const priority = PRIORITY.test(said) ? said : '';
    return {
      traceId,
      spanId: ids.next(),
      parentId,
      isSampled: priority === '' ? isSampled : Number(priority) > 0,
      isShared: false,
      state: priority,
    };
  }

  child(parent: SpanContext): SpanContext {
    return { ...parent, spanId: this.#context.ids.next(), parentId: parent.spanId };
  }

  carry({ traceId, spanId, isSampled, state }: SpanContext): readonly SpanTag[] {
    return [
      ['x-datadog-trace-id', String(idOf(traceId))],
      ['x-datadog-parent-id', String(idOf(spanId))],
      ['x-datadog-sampling-priority', state || (isSampled ? KEPT : DROPPED)],
    ];
  }

  /** Each is a trace of one span to the agent, which puts together what belongs together. */
  report({ context, kind, name, startMs, endMs, tags, isError }: FinishedSpan): void {
    const start = Math.round(startMs * 1000);
    const item = pack([
      {
        service: this.#settings.service,
        name: 'envoy.proxy',
        resource: shownText(name),
        type: kind === 'server' ? 'web' : 'http',
        trace_id: idOf(context.traceId),
        span_id: idOf(context.spanId),
        parent_id: idOf(context.parentId || '0'),
        start: BigInt(start) * 1000n,
        duration: Math.max(1, Math.round(endMs * 1000) - start) * 1000,
        error: Number(isError),
        meta: {
          'span.kind': kind,
          ...Object.fromEntries(tags.map(([key, value]) => [shownText(key), shownText(value)])),
        },
        metrics: { _sampling_priority_v1: Number(context.state || KEPT) },
      },
    ]);
    this.#queue.add(item);
  }

  close(): void {
    void this.#queue.close();
  }
}

function idOf(hex: string): bigint {
  return BigInt(`0x${hex}`);
}

/** 16 digits of a decimal number; empty for none, and for 0. */
function hexOf(text: string | undefined): string {
  if (text === undefined || !DECIMAL.test(text)) return '';
  const id = BigInt(text);
  return id === 0n || id >= MAX_ID ? '' : id.toString(16).padStart(ID_DIGITS, '0');
}
