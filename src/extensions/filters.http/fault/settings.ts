// What main tells the workers of a fault filter: by itself, or what one level of a route says instead.

import type { JsonObject } from '../../../base/json.ts';
import type { Fraction, HeaderMatch, RuntimeSetting } from '../../../snapshot/index.ts';

export interface FaultSettings {
  readonly delay: DelaySettings | null;
  readonly abort: AbortSettings | null;
  readonly rateLimit: RateLimitSettings | null;
  /** Only requests whose route names this cluster; empty for all. */
  readonly upstreamCluster: string;
  /** Only requests that pass all. */
  readonly headers: readonly HeaderMatch[];
  /** Only clients of these nodes; none for all. */
  readonly nodes: readonly string[];
  /** Requests with faults at a time, over all workers; infinite for no limit. */
  readonly maxActive: RuntimeSetting<number>;
  readonly countsByClient: boolean;
  /** What a request with a fault is marked by; null for nothing. */
  readonly metadata: JsonObject | null;
}

interface Shared {
  readonly share: RuntimeSetting<Fraction>;
}

export interface DelaySettings extends Shared {
  /** Null: the request says how long. */
  readonly fixedMs: RuntimeSetting<number> | null;
}

export interface AbortSettings extends Shared {
  /** Null: the request says which. */
  readonly status: { readonly kind: 'http' | 'grpc'; readonly code: RuntimeSetting<number> } | null;
}

export interface RateLimitSettings extends Shared {
  /** Null: the request says how slow. */
  readonly bytesPerSecond: number | null;
}

/** Names behind `http.<stat_prefix>.`. */
export interface FaultStatNames {
  readonly delays: string;
  readonly aborts: string;
  readonly slowed: string;
  readonly overflow: string;
  /** A gauge; the others are counters. */
  readonly active: string;
}

/** Of the filter itself. */
export interface FaultFilterSettings {
  readonly stats: FaultStatNames;
  /** Of the count over all workers that the limit goes by. */
  readonly activeCount: string;
  /** Where a route says nothing. */
  readonly fault: FaultSettings;
}
