// What BandwidthLimit becomes, and what of it is refused by name.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { BandwidthLimitSettings } from '../../../../src/extensions/filters.http/bandwidth_limit/settings.ts';
import { faultTexts, type JsonObject, load, mustLoad } from '../../../support/bootstrap.ts';
import { filterFaults, filterSettings, withHttpFilter } from '../../../support/filter-config.ts';

const NAME = 'envoy.filters.http.bandwidth_limit';
const TYPE = 'envoy.extensions.filters.http.bandwidth_limit.v3.BandwidthLimit';

const settingsOf = (fields: JsonObject): BandwidthLimitSettings =>
  filterSettings(NAME, TYPE, { stat_prefix: 'a', ...fields });
const refusals = (fields: JsonObject): string[] =>
  filterFaults('bandwidth_limit', TYPE, { stat_prefix: 'a', ...fields });

describe('what a bandwidth limit is told', () => {
  it('limits nothing by itself', () => {
    const { limitsRequests, limitsResponses, bucket, enabled, trailers } = settingsOf({});
    assert.deepEqual([limitsRequests, limitsResponses, bucket, trailers], [false, false, null, null]);
    assert.deepEqual(enabled, { key: '', default: true });
  });

  it('is a rate, for the directions that it names', () => {
    const modes = ['DISABLED', 'REQUEST', 'RESPONSE', 'REQUEST_AND_RESPONSE'].map((enable_mode) => {
      const { limitsRequests, limitsResponses } = settingsOf({ limit_kbps: 100, enable_mode });
      return [limitsRequests, limitsResponses];
    });
    assert.deepEqual(modes, [
      [false, false],
      [true, false],
      [false, true],
      [true, true],
    ]);
    const { state, ...tokens } = settingsOf({ limit_kbps: '100' }).bucket!.tokens;
    assert.deepEqual(tokens, { maxTokens: 102_400, tokensPerFill: 5120, fillIntervalMs: 50 });
    assert.equal(new Int32Array(state)[0], 5120, 'what one fill brings');
    const slow = settingsOf({ limit_kbps: 1, fill_interval: '0.02s' }).bucket!.tokens;
    assert.deepEqual([slow.maxTokens, slow.tokensPerFill, slow.fillIntervalMs], [1024, 20.48, 20]);
    assert.deepEqual(settingsOf({ runtime_enabled: { default_value: false, runtime_key: 'k' } }).enabled, {
      key: 'k',
      default: false,
    });
  });

  it('names its trailers as it is told', () => {
    assert.deepEqual(settingsOf({ enable_response_trailers: true }).trailers, {
      requestMs: 'bandwidth-request-delay-ms',
      responseMs: 'bandwidth-response-delay-ms',
      requestHeldMs: 'bandwidth-request-filter-delay-ms',
      responseHeldMs: 'bandwidth-response-filter-delay-ms',
    });
    const named = settingsOf({ enable_response_trailers: true, response_trailer_prefix: 'X-My' });
    assert.equal(named.trailers?.requestMs, 'x-my-bandwidth-request-delay-ms');
    assert.equal(settingsOf({ response_trailer_prefix: 'x' }).trailers, null);
  });

  it('is counted under its own prefix', () => {
    const bootstrap = withHttpFilter(NAME, TYPE, { stat_prefix: 'a' });
    const { filter } = mustLoad(bootstrap).listeners[0]!.filterChains[0]!;
    assert.ok(filter.kind === 'http-connection-manager');
    const { wholeCounters, wholeGauges, wholeTimes } = filter.httpFilters[0]!;
    const of = (names: readonly string[]) =>
      ['request', 'response'].flatMap((direction) =>
        names.map((name) => `a.http_bandwidth_limit.${direction}_${name}`),
      );
    assert.deepEqual(wholeCounters, of(['enabled', 'enforced', 'incoming_total_size', 'allowed_total_size']));
    assert.deepEqual(wholeGauges, of(['pending', 'incoming_size', 'allowed_size']));
    assert.deepEqual(wholeTimes, of(['transfer_duration']));
  });

  it('is refused by the name of the field', () => {
    assert.match(refusals({ stat_prefix: '' })[0]!, /^stat_prefix: /);
    assert.match(refusals({ enable_mode: 'REQUEST' })[0]!, /^limit_kbps: is required where enable_mode/);
    assert.match(refusals({ limit_kbps: 0 })[0]!, /^limit_kbps: /);
    assert.match(refusals({ limit_kbps: 2_097_152 })[0]!, /^limit_kbps: 2097152 exceeds the limit 2097151$/);
    assert.deepEqual(refusals({ limit_kbps: 2_097_151 }), []);
    for (const fill_interval of ['0.019s', '1.001s']) {
      assert.match(refusals({ limit_kbps: 1, fill_interval })[0]!, /^fill_interval: /);
    }
    assert.match(refusals({ response_trailer_prefix: 'a b' })[0]!, /^response_trailer_prefix: /);
    assert.match(refusals({ named_bucket_selector: { explicit_bucket: 'b' } })[0]!, /^named_bucket_selector: /);
    assert.match(refusals({ named_bucket_configurations: [{ name: 'b', limit_kbps: 1 }] })[0]!, /^named_bucket_config/);
  });

  it('is refused at a route without a limit', () => {
    const entry = { '@type': `type.googleapis.com/${TYPE}`, stat_prefix: 'a' };
    const [text] = faultTexts(load(withHttpFilter(NAME, TYPE, { stat_prefix: 'a' }, { [NAME]: entry })));
    assert.match(
      text!,
      /typed_per_filter_config\["envoy\.filters\.http\.bandwidth_limit"\]\.limit_kbps: is required at routes$/,
    );
  });
});
