// What the configuration says of traces: which requests are traced, what their spans tell, and which extension reports
// them.

import type { Fraction, RuntimeSetting } from '../base/runtime.ts';
import type { FormatSegments } from './format.ts';
import type { MetadataSource } from './metadata.ts';

/** Shares of requests. */
export interface TraceSampling {
  /** Of those that bring x-client-trace-id. */
  readonly client: RuntimeSetting<Fraction>;
  /** Of all others. */
  readonly random: RuntimeSetting<Fraction>;
  /** Of those that would be traced, for whatever reason. */
  readonly overall: RuntimeSetting<Fraction>;
}

/** A tag that the configuration adds to spans. Texts are byte text. */
export interface CustomTag {
  readonly name: string;
  readonly value:
    | { readonly kind: 'literal'; readonly text: string }
    /** Name in lower case. `missing` is empty for a tag that is left out then. */
    | { readonly kind: 'request-header'; readonly name: string; readonly missing: string }
    | {
        readonly kind: 'metadata';
        readonly source: MetadataSource;
        /** The namespace first. */
        readonly path: readonly string[];
        readonly missing: string;
      }
    | { readonly kind: 'format'; readonly segments: FormatSegments };
}

/** An extension that reports spans. */
export interface TracerSettings {
  /** Name in the registries of both planes, `tracers.zipkin`. */
  readonly name: string;
  /** For the extension alone; anything that can be cloned. */
  readonly settings: unknown;
  /** Counters that it writes, by whole names. */
  readonly wholeCounters: readonly string[];
}

/** Who traces. */
export interface TracedNode {
  readonly id: string;
  readonly cluster: string;
  readonly zone: string;
}

export interface TracingSettings {
  /** Null where requests are chosen and nobody is told of them. */
  readonly tracer: TracerSettings | null;
  readonly node: TracedNode;
  readonly sampling: TraceSampling;
  /** What was decided goes on in x-request-id, in place of one of its digits. */
  readonly packsReason: boolean;
  /** All who see an x-request-id draw alike from it. */
  readonly drawsById: boolean;
  /** Requests go out from here, instead of coming in. */
  readonly isEgress: boolean;
  /** Spans tell of the moments of their requests. */
  readonly isVerbose: boolean;
  /** Of the path in `http.url`, in characters. */
  readonly maxPathLength: number;
  readonly tags: readonly CustomTag[];
  /** Each attempt has a span of its own. */
  readonly hasUpstreamSpans: boolean;
  /** Names of spans; null for those that there are without. */
  readonly operation: FormatSegments | null;
  readonly upstreamOperation: FormatSegments | null;
}

/** What a route says of its traces. */
export interface RouteTracing {
  /** In place of the connection manager's. */
  readonly sampling?: TraceSampling;
  /** Beside the connection manager's; of two of a name this one counts. */
  readonly tags?: readonly CustomTag[];
  readonly operation?: FormatSegments;
  readonly upstreamOperation?: FormatSegments;
  readonly decorator?: {
    /** Byte text. */
    readonly operation: string;
    /** The other side of the request is told. */
    readonly isPropagated: boolean;
  };
}
