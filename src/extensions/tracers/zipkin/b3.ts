// The headers of B3: one for each fact, or all of them in `b3`.

import type { SpanContext, SpanTag, TracedHead } from '../../../data-plane/index.ts';
import { readTraceParent, traceParent } from '../trace-parent.ts';

const TRACE_ID = /^(?:[0-9a-f]{16}){1,2}$/;
const SPAN_ID = /^[0-9a-f]{16}$/;

/** What was said of the trace before. */
export interface B3 {
  /** Empty where nothing can be read: a new trace. */
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string;
  /** Undefined: it is left to this side. */
  readonly isSampled: boolean | undefined;
  readonly isDebug: boolean;
}

const NOTHING: B3 = { traceId: '', spanId: '', parentId: '', isSampled: undefined, isDebug: false };

export function readB3(head: TracedHead, speaksW3c: boolean): B3 {
  const single = head.headerByName('b3');
  if (single !== undefined) return ofSingle(single);
  const flags = head.headerByName('x-b3-flags');
  const found = withState(
    {
      traceId: head.headerByName('x-b3-traceid')?.toLowerCase() ?? '',
      spanId: head.headerByName('x-b3-spanid')?.toLowerCase() ?? '',
      parentId: head.headerByName('x-b3-parentspanid')?.toLowerCase() ?? '',
    },
    flags === '1' ? 'd' : (head.headerByName('x-b3-sampled')?.toLowerCase() ?? ''),
  );
  if (found.traceId !== '' || !speaksW3c) return found;
  const parent = readTraceParent(head.headerByName('traceparent'));
  return parent === undefined ? found : { ...NOTHING, ...parent };
}

/** `{trace}-{span}-{state}-{parent}`, of which the last two may be missing; or the state alone. */
function ofSingle(text: string): B3 {
  const parts = text.toLowerCase().split('-');
  if (parts.length === 1) return withState(NOTHING, parts[0]!);
  const [traceId = '', spanId = '', state = '', parentId = ''] = parts;
  return withState({ traceId, spanId, parentId }, state);
}

/** @param state `1` or `true`, `0` or `false`, `d` for debugging; anything else says nothing. */
function withState(ids: Pick<B3, 'traceId' | 'spanId' | 'parentId'>, state: string): B3 {
  const isDebug = state === 'd';
  const yes = isDebug || state === '1' || state === 'true';
  const isSampled = yes ? true : state === '0' || state === 'false' ? false : undefined;
  if (!TRACE_ID.test(ids.traceId) || !SPAN_ID.test(ids.spanId)) return { ...NOTHING, isSampled, isDebug };
  const { traceId, spanId } = ids;
  return { traceId, spanId, parentId: SPAN_ID.test(ids.parentId) ? ids.parentId : '', isSampled, isDebug };
}

/** @param context whose `state` is `d` where somebody debugs. */
export function writeB3(context: SpanContext, speaksW3c: boolean): readonly SpanTag[] {
  const fields: SpanTag[] = [
    ['b3', ''],
    ['x-b3-traceid', context.traceId],
    ['x-b3-spanid', context.spanId],
    ['x-b3-parentspanid', context.parentId],
    ['x-b3-sampled', context.isSampled ? '1' : '0'],
    ['x-b3-flags', context.state === 'd' ? '1' : ''],
  ];
  if (speaksW3c) fields.push(['traceparent', traceParent(context)]);
  return fields;
}
