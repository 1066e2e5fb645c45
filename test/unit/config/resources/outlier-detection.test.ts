import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  clusterErrors,
  clusterNamed,
  clusterSettings,
  faultTexts,
  load,
  mustLoad,
  withClusters,
} from '../../../support/bootstrap.ts';
import { outlierSettings } from '../../../support/outliers.ts';

describe('outlier detection', () => {
  it('is off without its message', () => {
    assert.equal(clusterSettings(clusterNamed('web')).outlierDetection, undefined);
  });

  it('has defaults', () => {
    assert.deepEqual(outlierSettings(), {
      intervalMs: 10_000,
      baseEjectionTimeMs: 30_000,
      maxEjectionTimeMs: 300_000,
      maxEjectionTimeJitterMs: 0,
      maxEjectionPercent: 10,
      consecutive5xx: 5,
      consecutiveGatewayFailure: 5,
      consecutiveLocalOriginFailure: 5,
      successRateMinimumHosts: 5,
      successRateRequestVolume: 100,
      successRateStdevFactor: 1900,
      failurePercentageThreshold: 85,
      failurePercentageMinimumHosts: 5,
      failurePercentageRequestVolume: 50,
      enforcing: {
        'consecutive-5xx': 100,
        'consecutive-gateway-failure': 0,
        'consecutive-local-origin-failure': 100,
        'success-rate': 100,
        'local-origin-success-rate': 100,
        'failure-percentage': 0,
        'local-origin-failure-percentage': 0,
      },
      splitsLocalOrigin: false,
      alwaysEjectsOneHost: undefined,
      endsWithPassedCheck: true,
    });
  });

  it('takes over every field', () => {
    const fields = {
      consecutive_5xx: 1,
      interval: '2s',
      base_ejection_time: '3s',
      max_ejection_percent: 4,
      enforcing_consecutive_5xx: 5,
      enforcing_success_rate: 6,
      success_rate_minimum_hosts: 7,
      success_rate_request_volume: 8,
      success_rate_stdev_factor: 9,
      consecutive_gateway_failure: 10,
      enforcing_consecutive_gateway_failure: 11,
      split_external_local_origin_errors: true,
      consecutive_local_origin_failure: 13,
      enforcing_consecutive_local_origin_failure: 14,
      enforcing_local_origin_success_rate: 15,
      failure_percentage_threshold: 16,
      enforcing_failure_percentage: 17,
      enforcing_failure_percentage_local_origin: 18,
      failure_percentage_minimum_hosts: 19,
      failure_percentage_request_volume: 20,
      max_ejection_time: '21s',
      max_ejection_time_jitter: '22s',
      successful_active_health_check_uneject_host: false,
      always_eject_one_host: false,
    };
    assert.deepEqual(outlierSettings(fields), {
      consecutive5xx: 1,
      intervalMs: 2000,
      baseEjectionTimeMs: 3000,
      maxEjectionPercent: 4,
      successRateMinimumHosts: 7,
      successRateRequestVolume: 8,
      successRateStdevFactor: 9,
      consecutiveGatewayFailure: 10,
      splitsLocalOrigin: true,
      consecutiveLocalOriginFailure: 13,
      failurePercentageThreshold: 16,
      failurePercentageMinimumHosts: 19,
      failurePercentageRequestVolume: 20,
      maxEjectionTimeMs: 21_000,
      maxEjectionTimeJitterMs: 22_000,
      enforcing: {
        'consecutive-5xx': 5,
        'consecutive-gateway-failure': 11,
        'consecutive-local-origin-failure': 14,
        'success-rate': 6,
        'local-origin-success-rate': 15,
        'failure-percentage': 17,
        'local-origin-failure-percentage': 18,
      },
      endsWithPassedCheck: false,
      alwaysEjectsOneHost: false,
    });
  });

  it('has a longest time that follows a longer base', () => {
    assert.equal(outlierSettings({ base_ejection_time: '400s' }).maxEjectionTimeMs, 400_000);
  });

  it('refuses what contradicts itself or is out of range', () => {
    const errorsOf = (fields: Record<string, string | number>): string[] =>
      clusterErrors(clusterNamed('web', { outlier_detection: fields }));
    const at = 'static_resources.clusters[0].outlier_detection';
    assert.deepEqual(errorsOf({ base_ejection_time: '10s', max_ejection_time: '9s' }), [
      `${at}.max_ejection_time: 9000 ms is less than base_ejection_time, which is 10000 ms`,
    ]);
    for (const field of ['interval', 'base_ejection_time', 'max_ejection_time']) {
      const [first] = errorsOf({ [field]: '0s' });
      assert.ok(first?.startsWith(`${at}.${field}: `), `${field}: ${first}`);
    }
    for (const field of ['max_ejection_percent', 'enforcing_success_rate', 'failure_percentage_threshold']) {
      const [first] = errorsOf({ [field]: 101 });
      assert.ok(first?.startsWith(`${at}.${field}: `), `${field}: ${first}`);
    }
  });

  it('warns of further monitors', () => {
    const cluster = clusterNamed('web', { outlier_detection: { monitors: [{ name: 'x' }] } });
    const [warning] = faultTexts(load(withClusters(cluster)), 'warning');
    assert.ok(warning?.startsWith('static_resources.clusters[0].outlier_detection.monitors'), String(warning));
  });
});

describe('the file of ejections', () => {
  const bootstrap = { cluster_manager: { outlier_detection: { event_log_path: '/var/log/outliers' } } };

  it('is named by the cluster manager', () => {
    assert.equal(mustLoad(bootstrap).outlierEventLogPath, '/var/log/outliers');
    assert.equal(mustLoad({}).outlierEventLogPath, '');
  });

  it('must be writable', () => {
    const result = load(bootstrap, { findLogPathFault: () => 'permission denied' });
    assert.deepEqual(faultTexts(result), [
      'cluster_manager.outlier_detection.event_log_path: "/var/log/outliers" cannot be written: permission denied',
    ]);
  });
});
