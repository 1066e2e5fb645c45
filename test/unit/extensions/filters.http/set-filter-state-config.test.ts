import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SetFilterStateSettings } from '../../../../src/extensions/filters.http/set_filter_state/settings.ts';
import type { JsonObject } from '../../../support/bootstrap.ts';
import { filterFaults, filterSettings } from '../../../support/filter-config.ts';

const TYPE = 'envoy.extensions.filters.http.set_filter_state.v3.Config';

const saying = (object_key: string, fields: JsonObject = {}): JsonObject => ({
  on_request_headers: [{ object_key, format_string: { text_format_source: { inline_string: 'a' } }, ...fields }],
});
const faults = (fields: JsonObject): string => filterFaults('set_filter_state', TYPE, fields).join('\n');

test('says what it is told to, and leaves the route alone', () => {
  const settings = filterSettings<SetFilterStateSettings>('envoy.filters.http.set_filter_state', TYPE, {
    ...saying('own', { read_only: true, skip_if_empty: true }),
  });
  assert.deepEqual(settings, {
    values: [{ key: 'own', segments: ['a'], isReadOnly: true, skipsEmpty: true }],
    choosesRouteAgain: false,
  });
});

test('what is read of connections alone, and what is no text, is refused', () => {
  assert.equal(faults(saying('own', { factory_key: 'envoy.string' })), '');
  assert.equal(
    faults(saying('envoy.tcp_proxy.cluster')),
    'on_request_headers[0].object_key: "envoy.tcp_proxy.cluster" is read by nothing here; there are envoy.upstream.dynamic_host, envoy.upstream.dynamic_port, your own names',
  );
  assert.match(
    faults(saying('own', { factory_key: 'envoy.ip' })),
    /^on_request_headers\[0\]\.factory_key: "envoy\.ip"/,
  );
  assert.match(
    faults({ on_request_headers: [{ object_key: 'own' }] }),
    /^on_request_headers\[0\]: format_string must be set/,
  );
  const json = { format_string: { json_format: { a: 'b' } } };
  assert.match(faults(saying('own', json)), /^on_request_headers\[0\]\.format_string\.json_format: is no text/);
});
