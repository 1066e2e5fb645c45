// OutlierDetection message → OutlierSettings. Field rules have been checked before.

import type { OutlierSettings } from '../../snapshot/index.ts';
import type { FaultSink } from './fault-sink.ts';
import type { OutlierDetection } from './messages.ts';
import { durationMsOr, valueOr } from './units.ts';

const DEFAULT_INTERVAL_MS = 10_000;
const DEFAULT_BASE_EJECTION_TIME_MS = 30_000;
/** Or the base time, where that is longer. */
const DEFAULT_MAX_EJECTION_TIME_MS = 300_000;

/** @returns undefined without a message: nobody is ejected. */
export function convertOutlierDetection(
  message: OutlierDetection | null,
  at: string,
  faults: FaultSink,
): OutlierSettings | undefined {
  if (message === null) return undefined;
  const baseEjectionTimeMs = durationMsOr(message.base_ejection_time, DEFAULT_BASE_EJECTION_TIME_MS);
  const maxEjectionTimeMs = durationMsOr(
    message.max_ejection_time,
    Math.max(DEFAULT_MAX_EJECTION_TIME_MS, baseEjectionTimeMs),
  );
  if (maxEjectionTimeMs < baseEjectionTimeMs) {
    faults.error(
      `${at}.max_ejection_time`,
      `${maxEjectionTimeMs} ms is less than base_ejection_time, which is ${baseEjectionTimeMs} ms`,
    );
  }
  return {
    intervalMs: durationMsOr(message.interval, DEFAULT_INTERVAL_MS),
    baseEjectionTimeMs,
    maxEjectionTimeMs,
    maxEjectionTimeJitterMs: durationMsOr(message.max_ejection_time_jitter, 0),
    maxEjectionPercent: valueOr(message.max_ejection_percent, 10),
    consecutive5xx: valueOr(message.consecutive_5xx, 5),
    consecutiveGatewayFailure: valueOr(message.consecutive_gateway_failure, 5),
    consecutiveLocalOriginFailure: valueOr(message.consecutive_local_origin_failure, 5),
    successRateMinimumHosts: valueOr(message.success_rate_minimum_hosts, 5),
    successRateRequestVolume: valueOr(message.success_rate_request_volume, 100),
    successRateStdevFactor: valueOr(message.success_rate_stdev_factor, 1900),
    failurePercentageThreshold: valueOr(message.failure_percentage_threshold, 85),
    failurePercentageMinimumHosts: valueOr(message.failure_percentage_minimum_hosts, 5),
    failurePercentageRequestVolume: valueOr(message.failure_percentage_request_volume, 50),
    enforcing: {
      'consecutive-5xx': valueOr(message.enforcing_consecutive_5xx, 100),
      'consecutive-gateway-failure': valueOr(message.enforcing_consecutive_gateway_failure, 0),
      'consecutive-local-origin-failure': valueOr(message.enforcing_consecutive_local_origin_failure, 100),
      'success-rate': valueOr(message.enforcing_success_rate, 100),
      'local-origin-success-rate': valueOr(message.enforcing_local_origin_success_rate, 100),
      'failure-percentage': valueOr(message.enforcing_failure_percentage, 0),
      'local-origin-failure-percentage': valueOr(message.enforcing_failure_percentage_local_origin, 0),
    },
    splitsLocalOrigin: message.split_external_local_origin_errors,
    alwaysEjectsOneHost: message.always_eject_one_host?.value,
    endsWithPassedCheck: valueOr(message.successful_active_health_check_uneject_host, true),
  };
}
