// What AdaptiveConcurrency becomes, in both generations, and what of it is refused by name.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AdaptiveConcurrencySettings } from '../../../../src/extensions/filters.http/adaptive_concurrency/settings.ts';
import { type JsonObject, mustLoad } from '../../../support/bootstrap.ts';
import { filterFaults, filterSettings, withHttpFilter } from '../../../support/filter-config.ts';

const NAME = 'envoy.filters.http.adaptive_concurrency';
const V3 = 'envoy.extensions.filters.http.adaptive_concurrency.v3.AdaptiveConcurrency';
const V2 = 'envoy.config.filter.http.adaptive_concurrency.v2alpha.AdaptiveConcurrency';

/** @param limit, latency beside what is required. */
function fieldsOf(limit: JsonObject = {}, latency: JsonObject = {}, gradient: JsonObject = {}): JsonObject {
  return {
    gradient_controller_config: {
      concurrency_limit_params: { concurrency_update_interval: '0.1s', ...limit },
      min_rtt_calc_params: { interval: '60s', ...latency },
      ...gradient,
    },
  };
}

const settingsOf = (fields: JsonObject, type = V3): AdaptiveConcurrencySettings => filterSettings(NAME, type, fields);
const refusals = (fields: JsonObject): string[] => filterFaults('adaptive_concurrency', V3, fields);

describe('what adaptive concurrency is told', () => {
  it('has its defaults, in both generations', () => {
    const { gradient, enabled, status } = settingsOf(fieldsOf());
    assert.deepEqual(gradient, {
      updateIntervalMs: 100,
      maxLimit: 1000,
      minLimit: null,
      measuringLimit: 3,
      measureIntervalMs: 60_000,
      fixedLatencyMs: 0,
      measuredRequests: 50,
      jitter: 0.15,
      buffer: 0.25,
      quantile: 0.5,
    });
    assert.deepEqual([enabled, status], [{ key: '', default: true }, 503]);
    assert.deepEqual(settingsOf(fieldsOf(), V2).gradient, gradient);
  });

  it('says otherwise by its fields', () => {
    const { gradient } = settingsOf(
      fieldsOf(
        { max_concurrency_limit: 50, min_concurrency_limit: 4 },
        { request_count: 7, jitter: { value: 0 }, min_concurrency: 9, buffer: { value: 50 } },
        { sample_aggregate_percentile: { value: 90 } },
      ),
    );
    const { maxLimit, minLimit, measuringLimit, measuredRequests, jitter, buffer, quantile } = gradient;
    assert.deepEqual([maxLimit, minLimit, measuringLimit, measuredRequests], [50, 4, 9, 7]);
    assert.deepEqual([jitter, buffer, quantile], [0, 0.5, 0.9]);
    const fixed = settingsOf(fieldsOf({}, { interval: null, fixed_value: '0.2s' })).gradient;
    assert.deepEqual([fixed.measureIntervalMs, fixed.fixedLatencyMs], [null, 200]);
    const codes = [400, 429, 308, 200].map(
      (code) => settingsOf({ ...fieldsOf(), concurrency_limit_exceeded_status: { code } }).status,
    );
    assert.deepEqual(codes, [400, 429, 503, 503]);
  });

  it('counts behind the prefix of its connection manager', () => {
    const { filter } = mustLoad(withHttpFilter(NAME, V3, fieldsOf())).listeners[0]!.filterChains[0]!;
    assert.ok(filter.kind === 'http-connection-manager');
    const { counters, gauges, sharedCounts } = filter.httpFilters[0]!;
    const scope = 'adaptive_concurrency.gradient_controller';
    assert.deepEqual(counters, [`${scope}.rq_blocked`]);
    assert.deepEqual(
      gauges,
      [
        'min_rtt_calculation_active',
        'concurrency_limit',
        'gradient',
        'burst_queue_size',
        'min_rtt_msecs',
        'sample_rtt_msecs',
      ].map((name) => `${scope}.${name}`),
    );
    assert.equal(sharedCounts?.length, 1);
  });

  it('is refused by the name of the field', () => {
    const at = 'gradient_controller_config';
    assert.match(refusals({})[0]!, /gradient_controller_config/);
    assert.match(refusals({ [at]: { min_rtt_calc_params: { interval: '1s' } } })[0]!, /concurrency_limit_params/);
    const limit = { concurrency_update_interval: '1s' };
    assert.match(refusals({ [at]: { concurrency_limit_params: limit } })[0]!, /min_rtt_calc_params/);
    assert.match(refusals(fieldsOf({ concurrency_update_interval: '0s' }))[0]!, /concurrency_update_interval: /);
    assert.match(refusals(fieldsOf({ max_concurrency_limit: 0 }))[0]!, /max_concurrency_limit: /);
    assert.match(refusals(fieldsOf({ min_concurrency_limit: 0 }))[0]!, /min_concurrency_limit: /);
    assert.match(refusals(fieldsOf({}, { interval: '0.0001s' }))[0]!, /min_rtt_calc_params\.interval: /);
    assert.match(refusals(fieldsOf({}, { interval: null }))[0]!, /min_rtt_calc_params: has neither interval nor fixed/);
    assert.match(refusals(fieldsOf({}, { jitter: { value: 101 } }))[0]!, /jitter\.value: /);
    const both = filterFaults('adaptive_concurrency', V3, fieldsOf({}, { fixed_value: '1s' }), 'warning');
    assert.match(both[0]!, /fixed_value: is not used/);
  });
});
