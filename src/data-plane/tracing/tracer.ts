// What a tracer is: an extension that gives requests their place in a trace, by the headers of its kind, and reports spans
// to a collector. Runs in a worker; each connection manager has one of its own.

import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import type { RuntimeValues } from '../../base/runtime.ts';
import type { TracedNode } from '../../snapshot/index.ts';
import type { FilterCounter } from '../http/filter.ts';
import type { CallReceiver, CallRequest } from '../http/filter-call.ts';
import type { OutgoingStream, StreamReceiver, StreamRequest } from '../http/outgoing-stream.ts';
import type { TraceIds } from './trace-ids.ts';

/** The place of a span in its trace. */
export interface SpanContext {
  /** 16 or 32 hexadecimal digits in lower case. */
  readonly traceId: string;
  /** 16 digits. */
  readonly spanId: string;
  /** 16 digits, or empty for the first span of a trace. */
  readonly parentId: string;
  /** Its span is reported. */
  readonly isSampled: boolean;
  /** The span is the client's, too: this side adds its half. */
  readonly isShared: boolean;
  /** What those before have said of the trace, for those behind; the tracer's own. */
  readonly state: string;
}

/** Looks at a request's head as it is now. */
export interface TracedHead {
  /** @param name in lower case. Several fields of a name are joined. */
  headerByName(name: string): string | undefined;
}

export type SpanTag = readonly [name: string, value: string];

/** A span that is over. All texts are byte text. */
export interface FinishedSpan {
  readonly context: SpanContext;
  readonly kind: 'server' | 'client';
  readonly name: string;
  /** Milliseconds since the Unix epoch, with a fraction. */
  readonly startMs: number;
  readonly endMs: number;
  readonly tags: readonly SpanTag[];
  readonly isError: boolean;
  /** Moments of the request, where somebody wants to know. */
  readonly events: readonly { readonly name: string; readonly atMs: number }[];
}

export interface Tracer {
  /**
   * The place of a request in the trace that its headers name, or in a new one.
   * @param isSampled what was decided here; what the headers say counts more.
   * @param isEgress the request begins here.
   */
  begin(head: TracedHead, isSampled: boolean, isEgress: boolean): SpanContext;
  /** The place of a request that this one leads to. */
  child(parent: SpanContext): SpanContext;
  /** Headers in lower case that tell of a place; an empty value takes the header away. */
  carry(context: SpanContext): readonly SpanTag[];
  /** Never waits, never fails; what there is no room for is dropped and counted. */
  report(span: FinishedSpan): void;
  /** Sends what it has. Nothing is reported any more. */
  close(): void;
}

/** What tracers and other reporters may know of their worker. */
export interface ReportContext {
  readonly clock: Clock;
  readonly random: Random;
  readonly runtime: RuntimeValues;
  /** One by its whole name, which the settings name among their counters. */
  counter(name: string): Pick<FilterCounter, 'add'>;
  hasCluster(name: string): boolean;
  /** As for filters. The call lives until it ends by itself. */
  call(request: CallRequest, receiver: CallReceiver): void;
  /** One that lives until either side ends it. @returns null for one that has ended at once. */
  stream(request: StreamRequest, receiver: StreamReceiver): OutgoingStream | null;
}

export interface TracerContext extends ReportContext {
  readonly ids: TraceIds;
  readonly node: TracedNode;
}

export interface TracerKind {
  /** @param settings as the extension's own conversion has made them. */
  open(settings: unknown, context: TracerContext): Tracer;
}

/** By name, as snapshots have it. */
export type TracerRegistry = Readonly<Record<string, TracerKind>>;
