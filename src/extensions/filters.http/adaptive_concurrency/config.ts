// AdaptiveConcurrency message → settings of the adaptive_concurrency filter.

import { makeGradientState } from '../../../base/gradient-state.ts';
import {
  durationMsOr,
  type FaultSink,
  type HttpFilterManifest,
  type MessageTypes,
  rejected,
  runtimeFlagOf,
  supported,
  valueOr,
} from '../../../config/index.ts';
import type { AdaptiveConcurrencySettings, GradientSettings, GradientStatNames } from './settings.ts';

const PACKAGE = 'proxy.extensions.filters.http.adaptive_concurrency.v3';
const FILTER = `${PACKAGE}.AdaptiveConcurrency`;
const GRADIENT = `${PACKAGE}.GradientControllerConfig`;
const SCOPE = 'adaptive_concurrency.gradient_controller';
const UNAVAILABLE = 503;
const LEAST_ERROR = 400;
const DEFAULTS = { maxLimit: 1000, measuringLimit: 3, measuredRequests: 50, jitter: 15, buffer: 25, percentile: 50 };

type FilterMessage = MessageTypes[`${typeof PACKAGE}.AdaptiveConcurrency`];
type GradientMessage = MessageTypes[`${typeof PACKAGE}.GradientControllerConfig`];

const STATS: GradientStatNames = {
  blocked: `${SCOPE}.rq_blocked`,
  measuring: `${SCOPE}.min_rtt_calculation_active`,
  limit: `${SCOPE}.concurrency_limit`,
  gradient: `${SCOPE}.gradient`,
  headroom: `${SCOPE}.burst_queue_size`,
  minLatencyMs: `${SCOPE}.min_rtt_msecs`,
  latencyMs: `${SCOPE}.sample_rtt_msecs`,
};

export const ADAPTIVE_CONCURRENCY: HttpFilterManifest = {
  support: {
    [FILTER]: {
      otherwise: rejected(),
      fields: {
        gradient_controller_config: supported('one limit for all workers'),
        enabled: supported(),
        concurrency_limit_exceeded_status: supported('503 for those below 400'),
      },
    },
    [GRADIENT]: {
      otherwise: rejected(),
      fields: {
        sample_aggregate_percentile: supported(),
        concurrency_limit_params: supported(),
        min_rtt_calc_params: supported(),
      },
    },
    [`${GRADIENT}.ConcurrencyLimitCalculationParams`]: {
      otherwise: rejected(),
      fields: {
        max_concurrency_limit: supported(),
        concurrency_update_interval: supported('ends with the first request behind it'),
        min_concurrency_limit: supported(),
      },
    },
    [`${GRADIENT}.MinimumRTTCalculationParams`]: {
      otherwise: rejected(),
      fields: {
        interval: supported('ends with the first request behind it'),
        request_count: supported(),
        jitter: supported(),
        min_concurrency: supported(),
        buffer: supported(),
        fixed_value: supported('where there is no interval'),
      },
    },
    'proxy.type.v3.HttpStatus': { otherwise: rejected(), fields: { code: supported() } },
  },
  convert(message, at, { faults }, name) {
    const {
      gradient_controller_config: gradient,
      enabled,
      concurrency_limit_exceeded_status,
    } = message as FilterMessage;
    if (gradient === null) return undefined;
    const code = concurrency_limit_exceeded_status?.code ?? UNAVAILABLE;
    const settings: AdaptiveConcurrencySettings = {
      stats: STATS,
      gradient: convertGradient(gradient, `${at}.gradient_controller_config`, faults),
      enabled: runtimeFlagOf(enabled, true),
      status: code < LEAST_ERROR ? UNAVAILABLE : code,
      outstanding: `requests of ${name}`,
      state: makeGradientState(),
    };
    const { blocked, ...gauges } = STATS;
    return {
      name: 'filters.http.adaptive_concurrency',
      settings,
      counters: [blocked],
      gauges: Object.values(gauges),
      sharedCounts: [settings.outstanding],
    };
  },
};

function convertGradient(message: GradientMessage, at: string, faults: FaultSink): GradientSettings {
  const { concurrency_limit_params: limit, min_rtt_calc_params: latency } = message;
  const isMeasured = (latency?.interval ?? null) !== null;
  const isFixed = (latency?.fixed_value ?? null) !== null;
  if (latency !== null && !isMeasured && !isFixed) {
    faults.error(`${at}.min_rtt_calc_params`, 'has neither interval nor fixed_value');
  }
  if (isMeasured && isFixed) {
    faults.warning(`${at}.min_rtt_calc_params.fixed_value`, 'is not used where there is an interval');
  }
  const share = (percent: { readonly value: number } | null | undefined, byDefault: number): number =>
    valueOr(percent, byDefault) / 100;
  const minLimit = limit?.min_concurrency_limit ?? null;
  return {
    updateIntervalMs: durationMsOr(limit?.concurrency_update_interval ?? null, 0),
    maxLimit: valueOr(limit?.max_concurrency_limit, DEFAULTS.maxLimit),
    minLimit: minLimit === null ? null : minLimit.value,
    measuringLimit: valueOr(latency?.min_concurrency, DEFAULTS.measuringLimit),
    measureIntervalMs: isMeasured ? durationMsOr(latency?.interval ?? null, 0) : null,
    fixedLatencyMs: durationMsOr(latency?.fixed_value ?? null, 0),
    measuredRequests: valueOr(latency?.request_count, DEFAULTS.measuredRequests),
    jitter: share(latency?.jitter, DEFAULTS.jitter),
    buffer: share(latency?.buffer, DEFAULTS.buffer),
    quantile: share(message.sample_aggregate_percentile, DEFAULTS.percentile),
  };
}
