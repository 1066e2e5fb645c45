import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CacheSettings } from '../../../../src/extensions/filters.http/cache/settings.ts';
import type { JsonObject } from '../../../support/bootstrap.ts';
import { filterFaults, filterSettings } from '../../../support/filter-config.ts';

const TYPE = 'envoy.extensions.filters.http.cache.v3.CacheConfig';
const BACKENDS = 'type.googleapis.com/envoy.extensions.http.cache';
const SIMPLE: JsonObject = { typed_config: { '@type': `${BACKENDS}.simple_http_cache.v3.SimpleHttpCacheConfig` } };

const settingsOf = (fields: JsonObject) =>
  filterSettings<CacheSettings>('envoy.filters.http.cache', TYPE, { ...SIMPLE, ...fields });

test('a cache goes by all that tells requests apart, unless it is told otherwise', () => {
  const { counters: _, ...least } = settingsOf({});
  assert.deepEqual(least, {
    key: { hasScheme: true, hasHost: true, included: [], excluded: [] },
    allowedVary: [],
    maxBodyBytes: 4 * 1024 * 1024,
    ignoresRequestDirectives: false,
  });
  const { counters: __, ...most } = settingsOf({
    allowed_vary_headers: [{ exact: 'accept' }],
    key_creator_params: {
      exclude_scheme: true,
      exclude_host: true,
      query_parameters_included: [{ name: 'a' }],
      query_parameters_excluded: [{ name: 'b', string_match: { exact: 'c' } }],
    },
    max_body_bytes: 7,
    ignore_request_cache_control_header: true,
  });
  assert.deepEqual(most, {
    key: {
      hasScheme: false,
      hasHost: false,
      included: [{ name: 'a', test: { kind: 'present', isPresent: true } }],
      excluded: [{ name: 'b', test: { kind: 'exact', value: 'c', ignoresCase: false } }],
    },
    allowedVary: [{ kind: 'exact', value: 'accept', ignoresCase: false }],
    maxBodyBytes: 7,
    ignoresRequestDirectives: true,
  });
  assert.equal(settingsOf({ max_body_bytes: 1e9 }).maxBodyBytes, 4 * 1024 * 1024);
});

test('what makes no cache is refused by the name of the field', () => {
  const faults = (fields: JsonObject) => filterFaults('cache', TYPE, { ...SIMPLE, ...fields }).join('\n');
  assert.equal(faults({ typed_config: null }), 'typed_config: is required');
  assert.equal(faults({ typed_config: null, disabled: true }), '');
  const file = { '@type': `${BACKENDS}.file_system_http_cache.v3.FileSystemHttpCacheConfig` };
  assert.match(
    faults({ typed_config: file }),
    /^typed_config: "\S+FileSystemHttpCacheConfig" is not supported by this build: cache keeps answers in memory$/,
  );
  assert.match(faults({ override_upstream_cluster: 'a' }), /^override_upstream_cluster: /);
  assert.match(faults({ allowed_vary_headers: [{ safe_regex: { regex: '(' } }] }), /^allowed_vary_headers\[0\]/);
  const bad = [{ name: 'a', string_match: { safe_regex: { regex: '(' } } }];
  assert.match(
    faults({ key_creator_params: { query_parameters_excluded: bad } }),
    /^key_creator_params\.query_parameters_excluded\[0\]/,
  );
});
