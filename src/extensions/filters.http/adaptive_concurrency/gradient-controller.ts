// Finds out how many requests an upstream answers quickly at a time. Worker thread; what it knows is shared by all workers
// (gradient-state.ts), and whichever of them first finds that something is due does it.
//
//   measuring ──── enough responses: the latency of an idle upstream ───► following
//   (the least limit)                                                     (each interval: limit × gradient + √)
//        ▲                                                                     │
//        └───────── an interval is over, or five updates in a row ◄────────────┘
//                         have found the least limit
//
// gradient = (latency when idle + buffer) / latency now, 0.5 to 2: what is quick lets the limit grow, what is slow takes it back.
// Without requests nothing is due: an interval ends with the first request behind it.

import type { GradientState } from '../../../base/gradient-state.ts';

const LEAST_GRADIENT = 0.5;
const MOST_GRADIENT = 2;
/** Updates in a row that find the least limit make the latency of an idle upstream doubtful. */
const DOUBTFUL_UPDATES = 5;
const US_PER_MS = 1000;
const NEVER = Number.POSITIVE_INFINITY;

/** As they are now; all of GradientSettings, in the runtime's words. */
export interface GradientParameters {
  readonly updateIntervalMs: number;
  readonly maxLimit: number;
  readonly minLimit: number;
  /** Null where measurements leave the limit as it is. */
  readonly measuringLimit: number | null;
  /** Null where nothing is measured. */
  readonly measureIntervalMs: number | null;
  readonly fixedLatencyMs: number;
  readonly measuredRequests: number;
  readonly jitter: number;
  readonly buffer: number;
  readonly quantile: number;
}

/** Where it tells of what it does. */
export interface GradientGauges {
  measuring(is: boolean): void;
  limit(limit: number): void;
  gradient(gradient: number): void;
  headroom(requests: number): void;
  minLatencyMs(ms: number): void;
  latencyMs(ms: number): void;
}

export class GradientController {
  readonly #state: GradientState;
  readonly #parameters: () => GradientParameters;
  readonly #gauges: GradientGauges;
  /** A u32. */
  readonly #random: () => number;

  constructor(
    state: GradientState,
    parameters: () => GradientParameters,
    gauges: GradientGauges,
    random: () => number,
    nowMs: number,
  ) {
    this.#state = state;
    this.#parameters = parameters;
    this.#gauges = gauges;
    this.#random = random;
    state.locked(() => {
      if (!state.hasBegun) this.#begin(nowMs);
    });
  }

  /** How many requests may be on their way. @param nowMs of the system's monotonic clock. */
  limitAt(nowMs: number): number {
    this.#doWhatIsDue(nowMs);
    return this.#state.limit;
  }

  /** A request that was let through has been answered. */
  sample(startedMs: number, nowMs: number): void {
    const state = this.#state;
    this.#doWhatIsDue(nowMs);
    // It may have waited behind those of a higher limit.
    if (startedMs < state.measuredSinceMs) return;
    state.addSample((nowMs - startedMs) * US_PER_MS);
    if (!state.isMeasuring || state.samples < this.#parameters().measuredRequests) return;
    state.locked(() => {
      if (state.isMeasuring) this.#endMeasurement(nowMs);
    });
  }

  #begin(nowMs: number): void {
    const state = this.#state;
    const { measuringLimit, minLimit, measureIntervalMs, fixedLatencyMs, updateIntervalMs } = this.#parameters();
    state.hasBegun = true;
    state.measuredSinceMs = nowMs;
    state.nextMeasurementMs = NEVER;
    state.nextUpdateMs = nowMs + updateIntervalMs;
    this.#setLimit(measuringLimit ?? minLimit);
    if (measureIntervalMs !== null) this.#beginMeasurement(nowMs);
    else this.#setMinLatency(fixedLatencyMs * US_PER_MS);
  }

  #doWhatIsDue(nowMs: number): void {
    const state = this.#state;
    if (state.isMeasuring || (nowMs < state.nextUpdateMs && nowMs < state.nextMeasurementMs)) return;
    state.locked(() => {
      if (state.isMeasuring) return;
      const { nextUpdateMs, nextMeasurementMs } = state;
      if (nowMs >= nextUpdateMs && nextUpdateMs <= nextMeasurementMs) this.#update(nowMs);
      if (nowMs >= state.nextMeasurementMs) this.#beginMeasurement(nowMs);
    });
  }

  #update(nowMs: number): void {
    const state = this.#state;
    const { updateIntervalMs, quantile, minLimit, measureIntervalMs } = this.#parameters();
    state.nextUpdateMs = nowMs + updateIntervalMs;
    const latencyUs = state.takeQuantile(quantile);
    if (latencyUs === undefined) return;
    this.#gauges.latencyMs(Math.floor(latencyUs / US_PER_MS));
    const former = state.limit;
    const limit = this.#nextLimit(former, latencyUs);
    this.#setLimit(limit);
    state.leastInARow = limit === minLimit && former === minLimit ? state.leastInARow + 1 : 0;
    if (state.leastInARow < DOUBTFUL_UPDATES || measureIntervalMs === null) return;
    state.leastInARow = 0;
    state.nextMeasurementMs = nowMs;
  }

  #nextLimit(limit: number, latencyUs: number): number {
    const { buffer, minLimit, maxLimit } = this.#parameters();
    const minLatencyUs = this.#state.minLatencyUs;
    const raw = (minLatencyUs + minLatencyUs * buffer) / latencyUs;
    // No latency at all is as good as a very small one.
    const gradient = Number.isNaN(raw) ? 1 : Math.max(LEAST_GRADIENT, Math.min(MOST_GRADIENT, raw));
    const scaled = limit * gradient;
    const headroom = Math.sqrt(scaled);
    this.#gauges.gradient(gradient);
    this.#gauges.headroom(Math.floor(headroom));
    return Math.max(minLimit, Math.min(maxLimit, Math.floor(scaled + headroom)));
  }

  #beginMeasurement(nowMs: number): void {
    const state = this.#state;
    const { measuringLimit } = this.#parameters();
    state.formerLimit = state.limit;
    if (measuringLimit !== null) this.#setLimit(measuringLimit);
    state.forgetSamples();
    state.measuredSinceMs = nowMs;
    state.isMeasuring = true;
    this.#gauges.measuring(true);
  }

  #endMeasurement(nowMs: number): void {
    const state = this.#state;
    const { quantile, updateIntervalMs, measureIntervalMs, jitter } = this.#parameters();
    const latencyUs = state.takeQuantile(quantile);
    if (latencyUs === undefined) return;
    this.#setMinLatency(latencyUs);
    this.#setLimit(state.formerLimit);
    state.nextUpdateMs = nowMs + updateIntervalMs;
    const delayMs = measureIntervalMs === null ? NEVER : measureIntervalMs;
    const jitterMs = Math.floor(delayMs * jitter);
    state.nextMeasurementMs = nowMs + delayMs + (jitterMs > 0 && jitterMs !== NEVER ? this.#random() % jitterMs : 0);
    state.isMeasuring = false;
    this.#gauges.measuring(false);
  }

  #setLimit(limit: number): void {
    this.#state.limit = limit;
    this.#gauges.limit(limit);
  }

  #setMinLatency(us: number): void {
    this.#state.minLatencyUs = us;
    this.#gauges.minLatencyMs(Math.floor(us / US_PER_MS));
  }
}
