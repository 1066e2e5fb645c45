// The place of a request in a trace as `traceparent` says it (W3C Trace Context, section 3.2).

import type { SpanContext } from '../../data-plane/index.ts';

const TRACE_PARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const NO_TRACE = '0'.repeat(32);
const NO_SPAN = '0'.repeat(16);
const SAMPLED = 1;

export interface ForeignPlace {
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
}

/** @returns undefined for none, and for one that breaks the rules. */
export function readTraceParent(text: string | undefined): ForeignPlace | undefined {
  const match = text === undefined ? null : TRACE_PARENT.exec(text);
  if (match === null) return undefined;
  const [, version, traceId, spanId, flags, rest] = match;
  // Later versions may say more behind it; the first may not.
  if (version === 'ff' || (version === '00' && rest !== undefined)) return undefined;
  if (traceId === NO_TRACE || spanId === NO_SPAN) return undefined;
  return { traceId: traceId!, spanId: spanId!, isSampled: (Number.parseInt(flags!, 16) & SAMPLED) !== 0 };
}

export function traceParent({ traceId, spanId, isSampled }: SpanContext): string {
  return `00-${traceId.padStart(32, '0')}-${spanId}-${isSampled ? '01' : '00'}`;
}
