// What main tells the workers of an OpenTelemetry tracer.

import type { Fraction } from '../../../snapshot/index.ts';
import type { OtlpTarget, ResourceAttributes } from '../../otlp/target.ts';
import type { SpanCounterNames } from '../span-queue.ts';

/** Who decides which traces are reported: null leaves it to the connection manager, and to whoever sent the request. */
export type SamplerSettings =
  | { readonly kind: 'always-on' }
  | { readonly kind: 'ratio'; readonly share: Fraction }
  /** As whoever sent the request has decided, else as the other one says. */
  | { readonly kind: 'parent-based'; readonly root: SamplerSettings }
  | null;

export interface OpenTelemetrySettings {
  readonly target: OtlpTarget;
  /** Of the process that reports; its name among them. */
  readonly resource: ResourceAttributes;
  readonly sampler: SamplerSettings;
  readonly maxSpans: number;
  readonly counters: SpanCounterNames;
}
