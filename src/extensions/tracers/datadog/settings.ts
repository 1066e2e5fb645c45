// What main tells the workers of a Datadog tracer.

import type { SpanCounterNames } from '../span-queue.ts';

export interface DatadogSettings {
  readonly cluster: string;
  readonly host: string;
  /** The service that spans belong to. */
  readonly service: string;
  readonly counters: SpanCounterNames;
}
