// Configurations as control planes write them and as they are passed around: each loads, and says no more than it has to.

import assert from 'node:assert/strict';
import path from 'node:path';
import { describe, it } from 'node:test';
import { faultTexts, loadFile } from '../../support/bootstrap.ts';

const FOLDER = path.join(import.meta.dirname, 'generated');

/** Fields, or keys of the runtime, that each is warned of. */
const WARNED: Readonly<Record<string, readonly string[]>> = {
  'by-hand': ['cors', 'connection_limit'],
  consul: ['error_level', 'connection_balance_config'],
  contour: ['error_level', 'warn_level', 'emit_filter_state'],
  emissary: ['error_level', 'enable_deprecated_v2_api', 'max_request_headers_kb'],
  'envoy-gateway': ['use_eds_cache_for_ads', 'error_level', 'warn_level', 'max_connections_to_accept_per_socket_event'],
  'istio-bootstrap': [
    'hidden_envoy_deprecated_use_original_dst',
    'http_reject_path_with_fragment',
    'error_level',
    'use_eds_cache_for_ads',
    'buffer_size_kb',
  ],
  'istio-sidecar': ['emit_filter_state', 'trace_sampled'],
};

/** Of a field the last name; of a value of the runtime that of its key. */
function nameOf(warning: string): string {
  const [place = '', what = ''] = warning.split(': ');
  const key = /^\S*?(\w+) (?:is not read by this build|has no effect)/.exec(what)?.[1];
  return key ?? place.slice(place.lastIndexOf('.') + 1);
}

describe('a configuration in the style of', () => {
  for (const [name, expected] of Object.entries(WARNED)) {
    it(name, () => {
      const loaded = loadFile(path.join(FOLDER, `${name}.yaml`));
      assert.deepEqual(faultTexts(loaded, 'error'), []);
      assert.deepEqual(faultTexts(loaded, 'warning').map(nameOf), expected);
    });
  }
});
