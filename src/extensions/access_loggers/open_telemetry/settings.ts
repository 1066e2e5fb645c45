// What main tells the workers of an access log whose entries are log records of OTLP.

import type { CustomTag, FormatSegments } from '../../../snapshot/index.ts';
import type { OtlpTarget, ResourceAttributes } from '../../otlp/target.ts';

/** What a record says, or a part of it. Names are byte text. */
export type LogValue =
  | { readonly kind: 'text'; readonly segments: FormatSegments }
  | { readonly kind: 'list'; readonly items: readonly LogValue[] }
  | { readonly kind: 'map'; readonly entries: readonly (readonly [name: string, value: LogValue])[] };

export interface OpenTelemetryLogSettings {
  readonly target: OtlpTarget;
  readonly resource: ResourceAttributes;
  /** Null for none. */
  readonly body: LogValue | null;
  readonly attributes: readonly (readonly [name: string, value: LogValue])[];
  readonly tags: readonly CustomTag[];
  readonly flushIntervalMs: number;
  /** Records that together are as long are sent at once. */
  readonly bufferBytes: number;
  readonly counters: { readonly written: string; readonly dropped: string };
}
