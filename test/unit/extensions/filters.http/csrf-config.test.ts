import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CsrfSettings } from '../../../../src/extensions/filters.http/csrf/settings.ts';
import type { JsonObject } from '../../../support/bootstrap.ts';
import { filterFaults, filterSettings } from '../../../support/filter-config.ts';

const V3 = 'envoy.extensions.filters.http.csrf.v3.CsrfPolicy';
const V2 = 'envoy.config.filter.http.csrf.v2.CsrfPolicy';
const ENABLED: JsonObject = { default_value: { numerator: 5, denominator: 'MILLION' }, runtime_key: 'a' };

test('a policy against forgery is the same in both generations, by either name', () => {
  const fields: JsonObject = {
    filter_enabled: ENABLED,
    shadow_enabled: { default_value: { numerator: 7 }, runtime_key: 'b' },
    additional_origins: [{ exact: 'a.test' }],
  };
  const { policy } = filterSettings<CsrfSettings>('envoy.filters.http.csrf', V3, fields);
  assert.deepEqual(policy, {
    enabled: { key: 'a', default: { numerator: 5, denominator: 1_000_000 } },
    shadowed: { key: 'b', default: { numerator: 7, denominator: 100 } },
    origins: [{ kind: 'exact', value: 'a.test', ignoresCase: false }],
  });
  assert.deepEqual(filterSettings<CsrfSettings>('envoy.csrf', V2, fields).policy, policy);
  const least = filterSettings<CsrfSettings>('envoy.csrf', V3, { filter_enabled: ENABLED }).policy;
  assert.deepEqual(least, { enabled: policy.enabled, shadowed: null, origins: [] });
});

test('a policy against forgery is refused by the name of the field', () => {
  assert.match(filterFaults('csrf', V3, {})[0]!, /^filter_enabled: /);
  const additional_origins = [{ safe_regex: { regex: '(' } }];
  const [bad] = filterFaults('csrf', V3, { filter_enabled: ENABLED, additional_origins });
  assert.match(bad!, /^additional_origins\[0\]\.safe_regex/);
});
