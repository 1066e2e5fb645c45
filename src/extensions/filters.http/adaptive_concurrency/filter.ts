// Refuses requests beyond what the upstream answers quickly, which gradient-controller.ts finds out. Worker thread; step 3 of the
// request flow. The latency of a request is that from here to the end of its response, whatever its status.

import { GradientState } from '../../../base/gradient-state.ts';
import type { RuntimeDerived, RuntimeValues } from '../../../base/runtime.ts';
import type {
  FilterCallbacks,
  FilterContext,
  FilterCounter,
  FilterStatus,
  HttpFilter,
  HttpFilterKind,
  LocalReply,
  SharedCount,
} from '../../../data-plane/index.ts';
import { GradientController, type GradientGauges, type GradientParameters } from './gradient-controller.ts';
import type { AdaptiveConcurrencySettings, GradientSettings, GradientStatNames } from './settings.ts';

const KEYS = 'adaptive_concurrency.gradient_controller';
const NOTHING: HttpFilter = {};
const NOT_STARTED = -1;

/** What all requests of a connection manager share. */
class Concurrency {
  readonly controller: GradientController;
  readonly outstanding: SharedCount;
  readonly blocked: FilterCounter;
  readonly refusal: LocalReply;
  readonly context: FilterContext;
  readonly isEnabled: RuntimeDerived<boolean>;

  constructor(settings: AdaptiveConcurrencySettings, context: FilterContext) {
    const { stats, gradient, state, enabled } = settings;
    const parameters = context.runtime.derived((values) => parametersOf(gradient, values));
    this.context = context;
    this.isEnabled = context.runtime.derived((values) => values.flag(enabled.key) ?? enabled.default);
    this.outstanding = context.sharedCount(settings.outstanding);
    this.blocked = context.counter(stats.blocked);
    this.refusal = {
      status: settings.status,
      body: 'reached concurrency limit',
      flag: '-',
      details: 'reached_concurrency_limit',
    };
    this.controller = new GradientController(
      new GradientState(state),
      () => parameters.value,
      gaugesOf(stats, context),
      () => context.random(),
      context.sharedNowMs(),
    );
  }
}

class ConcurrencyFilter implements HttpFilter {
  readonly #concurrency: Concurrency;
  readonly #callbacks: FilterCallbacks;
  #startedMs = NOT_STARTED;

  constructor(concurrency: Concurrency, callbacks: FilterCallbacks) {
    this.#concurrency = concurrency;
    this.#callbacks = callbacks;
  }

  decodeHeaders(): FilterStatus {
    const { controller, outstanding, context, blocked, refusal } = this.#concurrency;
    if (this.#callbacks.isHealthCheck) return 'continue';
    const nowMs = context.sharedNowMs();
    if (outstanding.tryAdd(controller.limitAt(nowMs))) {
      this.#startedMs = nowMs;
      return 'continue';
    }
    blocked.add(1);
    this.#callbacks.reply(refusal);
    return 'stop';
  }

  onDestroy(): void {
    if (this.#startedMs === NOT_STARTED) return;
    const { controller, outstanding, context } = this.#concurrency;
    outstanding.remove();
    // What is broken off says nothing of the upstream.
    if (this.#callbacks.isComplete) controller.sample(this.#startedMs, context.sharedNowMs());
  }
}

function parametersOf(settings: GradientSettings, values: RuntimeValues): GradientParameters {
  const count = (key: string, byDefault: number): number => Math.max(1, values.integer(`${KEYS}.${key}`) ?? byDefault);
  const share = (key: string, byDefault: number): number => {
    const percent = values.number(`${KEYS}.${key}`);
    return percent === undefined ? byDefault : Math.max(0, percent) / 100;
  };
  const { minLimit, measureIntervalMs } = settings;
  const measuringLimit = count('min_concurrency', settings.measuringLimit);
  const ownMinLimit = values.integer(`${KEYS}.min_concurrency_limit`) ?? minLimit;
  return {
    updateIntervalMs: count('sample_rtt_calc_interval_ms', settings.updateIntervalMs),
    maxLimit: count('max_concurrency_limit', settings.maxLimit),
    minLimit: Math.max(1, ownMinLimit ?? measuringLimit),
    measuringLimit: ownMinLimit === null ? measuringLimit : null,
    measureIntervalMs: measureIntervalMs === null ? null : count('min_rtt_calc_interval_ms', measureIntervalMs),
    fixedLatencyMs: settings.fixedLatencyMs,
    measuredRequests: count('min_rtt_aggregate_request_count', settings.measuredRequests),
    jitter: Math.min(1, share('jitter', settings.jitter)),
    buffer: share('min_rtt_buffer', settings.buffer),
    quantile: Math.min(1, share('sample_aggregate_percentile', settings.quantile)),
  };
}

function gaugesOf(names: GradientStatNames, context: FilterContext): GradientGauges {
  const measuring = context.gauge(names.measuring);
  const limit = context.gauge(names.limit);
  const gradient = context.gauge(names.gradient);
  const headroom = context.gauge(names.headroom);
  const minLatencyMs = context.gauge(names.minLatencyMs);
  const latencyMs = context.gauge(names.latencyMs);
  return {
    measuring: (is) => measuring.set(Number(is)),
    limit: (requests) => limit.set(requests),
    gradient: (value) => gradient.set(Math.floor(value * 1000)),
    headroom: (requests) => headroom.set(requests),
    minLatencyMs: (ms) => minLatencyMs.set(ms),
    latencyMs: (ms) => latencyMs.set(ms),
  };
}

export const ADAPTIVE_CONCURRENCY_FILTER: HttpFilterKind = {
  requestBody: 'none',
  encodes: false,
  responseBody: 'none',
  compile(settings, context) {
    const concurrency = new Concurrency(settings as AdaptiveConcurrencySettings, context);
    return (callbacks) => (concurrency.isEnabled.value ? new ConcurrencyFilter(concurrency, callbacks) : NOTHING);
  },
};
