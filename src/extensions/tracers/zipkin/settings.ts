// What main tells the workers of a Zipkin tracer.

import type { HttpTarget } from '../../http-target.ts';
import type { SpanCounterNames } from '../span-queue.ts';

export interface ZipkinSettings extends HttpTarget {
  readonly counters: SpanCounterNames;
  readonly encoding: 'json' | 'protobuf';
  readonly isLongId: boolean;
  /** A request's span is that of its client, if that has one. */
  readonly sharesSpans: boolean;
  /** `traceparent` is read where there are no headers of B3, and written beside them. */
  readonly speaksW3c: boolean;
}
