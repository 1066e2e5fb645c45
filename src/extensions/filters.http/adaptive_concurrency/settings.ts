// What the adaptive_concurrency filter and its configuration share.

import type { RuntimeSetting } from '../../../snapshot/index.ts';

/** Of the gradient controller, before the runtime has had its say. */
export interface GradientSettings {
  /** Between changes of the limit. */
  readonly updateIntervalMs: number;
  readonly maxLimit: number;
  /** Null where the limit is held to `measuringLimit` while latency is measured, which is then the least one, too. */
  readonly minLimit: number | null;
  /** The limit while latency is measured. */
  readonly measuringLimit: number;
  /** Between measurements; null where `fixedLatencyMs` takes their place. */
  readonly measureIntervalMs: number | null;
  readonly fixedLatencyMs: number;
  /** Responses that a measurement takes. */
  readonly measuredRequests: number;
  /** 0 to 1. */
  readonly jitter: number;
  /** What is added to the latency that was measured, as a part of it. */
  readonly buffer: number;
  /** Which of the latencies counts, 0 to 1. */
  readonly quantile: number;
}

/** Names behind `http.<stat_prefix>.`; all gauges but the first. */
export interface GradientStatNames {
  readonly blocked: string;
  readonly measuring: string;
  readonly limit: string;
  /** In thousandths. */
  readonly gradient: string;
  readonly headroom: string;
  readonly minLatencyMs: string;
  readonly latencyMs: string;
}

export interface AdaptiveConcurrencySettings {
  readonly stats: GradientStatNames;
  readonly gradient: GradientSettings;
  readonly enabled: RuntimeSetting<boolean>;
  /** Of refusals. */
  readonly status: number;
  /** Name of the count of requests on their way. */
  readonly outstanding: string;
  /** What all workers know together, STATE_BYTES of it. */
  readonly state: ArrayBufferLike;
}
