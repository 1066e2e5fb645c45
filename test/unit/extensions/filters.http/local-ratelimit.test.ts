import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { LocalRateLimitSettings } from '../../../../src/extensions/filters.http/local_ratelimit/settings.ts';
import { maskedAddress } from '../../../../src/extensions/filters.http/rate-limit-descriptors.ts';
import { faultTexts, type JsonObject, load, mustLoad } from '../../../support/bootstrap.ts';
import { filterFaults, filterSettings, withHttpFilter } from '../../../support/filter-config.ts';

const NAME = 'envoy.filters.http.local_ratelimit';
const TYPE = 'envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit';
const BUCKET: JsonObject = { max_tokens: 5, tokens_per_fill: 2, fill_interval: '0.25s' };

const faults = (fields: JsonObject): string[] => filterFaults('local_ratelimit', TYPE, { stat_prefix: 'x', ...fields });

function rateLimitFaults(action: JsonObject, fields: JsonObject = {}): string[] {
  const rate_limits = [{ actions: [action], ...fields }];
  const bootstrap = withHttpFilter(NAME, TYPE, { stat_prefix: 'x' }, {}, { route: { cluster: 'web', rate_limits } });
  return faultTexts(load(bootstrap), 'error').map((text) => text.replace(/^.*\.rate_limits\[0\]\.?/, ''));
}

describe('what a local rate limit is told', () => {
  it('is nothing where nothing is said', () => {
    const { counters, bucket, enabled, enforced, ...rest } = filterSettings<LocalRateLimitSettings>(NAME, TYPE, {
      stat_prefix: 'edge',
    });
    assert.deepEqual([bucket, enabled, enforced], [null, null, null]);
    assert.deepEqual(Object.values(counters), [
      'edge.http_local_rate_limit.enabled',
      'edge.http_local_rate_limit.enforced',
      'edge.http_local_rate_limit.rate_limited',
      'edge.http_local_rate_limit.ok',
    ]);
    assert.deepEqual(rest, {
      status: 429,
      descriptors: [],
      openDescriptors: [],
      stage: 0,
      rateLimits: [],
      hostLimits: 'override',
      alwaysTakesDefault: true,
      isPerConnection: false,
      tellsLimits: false,
      isResourceExhausted: false,
      responseEdits: [],
      requestEdits: [],
    });
  });

  it('is a bucket by its name of before, too', () => {
    const fields = { stat_prefix: 'x', token_bucket: BUCKET };
    const { bucket } = filterSettings<LocalRateLimitSettings>('envoy.local_rate_limit', TYPE, fields);
    assert.deepEqual([bucket!.maxTokens, bucket!.tokensPerFill, bucket!.fillIntervalMs], [5, 2, 250]);
    const least = filterSettings<LocalRateLimitSettings>(NAME, TYPE, {
      stat_prefix: 'x',
      token_bucket: { max_tokens: 1, fill_interval: '0.05s' },
    });
    assert.deepEqual([least.bucket!.tokensPerFill, least.bucket!.fillIntervalMs], [1, 50]);
  });

  it('is refused by the name of the field', () => {
    assert.match(filterFaults('local_ratelimit', TYPE, {})[0]!, /^stat_prefix: /);
    const withBucket = (fields: JsonObject): string[] => faults({ token_bucket: { ...BUCKET, ...fields } });
    assert.deepEqual(withBucket({ fill_interval: '0.049s' }), ['token_bucket.fill_interval: 49 ms is less than 50 ms']);
    assert.deepEqual(withBucket({ max_tokens: 4_000_000_000 }), [
      'token_bucket.max_tokens: 4000000000 exceeds the limit 2147483647',
    ]);
    assert.match(withBucket({ max_tokens: 0 })[0]!, /^token_bucket\.max_tokens: /);
    assert.match(withBucket({ tokens_per_fill: 0 })[0]!, /^token_bucket\.tokens_per_fill/);
    assert.match(faults({ stage: 11 })[0]!, /^stage: /);
    const descriptors = [{ entries: [{ key: 'a', value: '' }], token_bucket: { ...BUCKET, fill_interval: '0.01s' } }];
    assert.deepEqual(faults({ descriptors }), ['descriptors[0].token_bucket.fill_interval: 10 ms is less than 50 ms']);
    assert.match(faults({ max_dynamic_descriptors: 0 })[0]!, /^max_dynamic_descriptors: /);
    assert.deepEqual(faults({ descriptors, max_dynamic_descriptors: 65_537 }), [
      'max_dynamic_descriptors: 65537 exceeds the limit 65536',
    ]);
    assert.match(faults({ local_cluster_rate_limit: {} })[0]!, /^local_cluster_rate_limit: .*not supported/);
    const header = [{ header: { key: 'x', value: '%NOPE%' } }];
    assert.match(
      faults({ response_headers_to_add: header })[0]!,
      /^response_headers_to_add\[0\]\.header\.value: .*NOPE/,
    );
  });

  it('keeps descriptors without some value apart from those that name all', () => {
    const entries = (...values: string[]): JsonObject[] => values.map((value, at) => ({ key: `k${at}`, value }));
    const { descriptors, openDescriptors } = filterSettings<LocalRateLimitSettings>(NAME, TYPE, {
      stat_prefix: 'x',
      max_dynamic_descriptors: 7,
      descriptors: [
        { entries: entries('a', 'b'), token_bucket: BUCKET, shadow_mode: true },
        { entries: entries('a', ''), token_bucket: BUCKET },
      ],
    });
    assert.deepEqual(
      descriptors.map((one) => [one.entries, one.isShadow]),
      [
        [
          [
            ['k0', 'a'],
            ['k1', 'b'],
          ],
          true,
        ],
      ],
    );
    assert.deepEqual(
      openDescriptors.map((one) => [one.entries, one.isShadow, one.buckets.maxKeys, one.buckets.maxTokens]),
      [
        [
          [
            ['k0', 'a'],
            ['k1', ''],
          ],
          false,
          7,
          5,
        ],
      ],
    );
  });

  it('has a bucket at routes', () => {
    const entry = { '@type': `type.googleapis.com/${TYPE}`, stat_prefix: 'r' };
    const [fault] = faultTexts(load(withHttpFilter(NAME, TYPE, { stat_prefix: 'x' }, { [NAME]: entry })));
    assert.match(
      fault!,
      /typed_per_filter_config\["envoy\.filters\.http\.local_ratelimit"\]\.token_bucket: is required at routes$/,
    );
  });

  it('hears what routes call their requests', () => {
    assert.match(rateLimitFaults({})[0]!, /^actions\[0\]/);
    assert.match(
      rateLimitFaults({ request_headers: { descriptor_key: 'a' } })[0]!,
      /^actions\[0\]\.request_headers\.header_name/,
    );
    assert.match(rateLimitFaults({ generic_key: {} })[0]!, /^actions\[0\]\.generic_key\.descriptor_value/);
    const extension = { extension: { name: 'x' } };
    assert.match(rateLimitFaults(extension)[0]!, /^actions\[0\]\.extension/);
    const hits = (fields: JsonObject): string => rateLimitFaults({ remote_address: {} }, { hits_addend: fields })[0]!;
    assert.match(hits({ format: '%REQUEST%' }), /^hits_addend\.format: .*REQUEST/);
    assert.match(hits({ format: 'one' }), /^hits_addend\.format/);
    assert.match(hits({ number: 1, format: '%REQ(x)%' }), /^hits_addend\.format: .*number/);
    assert.match(hits({ number: 1_000_000_001 }), /^hits_addend\.number/);
    const regex = { name: 'x', string_match: { safe_regex: { regex: '(' } } };
    const matching = { header_value_match: { descriptor_value: 'a', headers: [regex] } };
    assert.match(rateLimitFaults(matching)[0]!, /^actions\[0\]\.header_value_match\.headers\[0\]\.string_match/);
    const query = { query_parameter_value_match: { descriptor_value: 'a', query_parameters: [regex] } };
    assert.match(rateLimitFaults(query)[0]!, /^actions\[0\]\.query_parameter_value_match\.query_parameters\[0\]/);
  });

  it('finds the same limits at all routes of a host that add nothing', () => {
    const host = (rate_limits: JsonObject[]): unknown[] => {
      const bootstrap = withHttpFilter(NAME, TYPE, { stat_prefix: 'x' });
      const text = JSON.stringify(bootstrap).replace(
        '"domains":',
        `"rate_limits":${JSON.stringify(rate_limits)},"domains":`,
      );
      const { filter } = mustLoad(text).listeners[0]!.filterChains[0]!;
      assert.ok(filter.kind === 'http-connection-manager');
      return filter.routeTable.virtualHosts[0]!.routes.map((route) => route.rateLimits);
    };
    assert.deepEqual(host([]), [undefined]);
    assert.deepEqual(host([{ stage: 3, actions: [{ source_cluster: {} }] }]), [
      {
        ofRoute: [],
        ofHost: [
          {
            stage: 3,
            hits: null,
            actions: [{ kind: 'fixed', key: 'source_cluster', value: [], byDefault: '' }],
            disableKey: '',
            limitAt: null,
            isAtEnd: false,
            tellsLimits: null,
          },
        ],
        includesHost: false,
      },
    ]);
  });
});

describe('networks of clients', () => {
  it('are the first bits of their addresses', () => {
    const of = (address: string, v4 = 32, v6 = 128): string | undefined => maskedAddress(address, v4, v6);
    assert.deepEqual(
      [of('203.0.113.255', 25), of('203.0.113.255'), of('1.2.3.4', 0)],
      ['203.0.113.128/25', '203.0.113.255/32', '0.0.0.0/0'],
    );
    assert.deepEqual([of('2001:db8:aaaa:ffff::1', 32, 50), of('::1')], ['2001:db8:aaaa:c000::/50', '::1/128']);
    assert.deepEqual([of('::ffff:1.2.3.4', 8), of('')], ['1.0.0.0/8', undefined]);
  });
});
