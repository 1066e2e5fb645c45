import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ExtAuthzSettings } from '../../../../src/extensions/filters.http/ext_authz/settings.ts';
import type { JsonObject } from '../../../support/bootstrap.ts';
import { faultTexts, load } from '../../../support/bootstrap.ts';
import { filterFaults, filterSettings, withHttpFilter } from '../../../support/filter-config.ts';

const V3 = 'envoy.extensions.filters.http.ext_authz.v3.ExtAuthz';
const V2 = 'envoy.config.filter.http.ext_authz.v2.ExtAuthz';
const HTTP = { server_uri: { uri: 'http://a', cluster: 'web', timeout: '0.25s' } };
const GRPC = { envoy_grpc: { cluster_name: 'web' } };

describe('the settings of an authorization service', () => {
  test('are the same in both generations, by either name', () => {
    const fields: JsonObject = {
      http_service: {
        ...HTTP,
        path_prefix: '/check',
        authorization_request: {
          allowed_headers: { patterns: [{ exact: 'cookie' }] },
          headers_to_add: [{ key: 'X-A', value: 'b' }],
        },
        authorization_response: { allowed_upstream_headers: { patterns: [{ prefix: 'x-' }] } },
      },
      failure_mode_allow: true,
      with_request_body: { max_request_bytes: 5, allow_partial_message: true },
      clear_route_cache: true,
      status_on_error: { code: 'ServiceUnavailable' },
      stat_prefix: 'waf',
    };
    const settings = filterSettings<ExtAuthzSettings>('envoy.filters.http.ext_authz', V3, fields);
    const { stats, service, ...rest } = settings;
    assert.equal(stats.ok, 'ext_authz.waf.ok');
    assert.deepEqual(service, {
      kind: 'http',
      cluster: 'web',
      timeoutMs: 250,
      retry: null,
      pathPrefix: '/check',
      add: [['x-a', 'b']],
      toUpstream: [{ kind: 'prefix', value: 'x-', ignoresCase: false }],
      appendedToUpstream: null,
      toClient: null,
      toClientOnSuccess: null,
      toMetadata: null,
    });
    assert.deepEqual(rest, {
      failsOpen: true,
      tellsFailOpen: false,
      body: { maxBytes: 5, allowsPart: true, isRaw: false },
      clearsRoute: true,
      statusOnError: 503,
      enabled: null,
      enabledMetadata: null,
      deniesDisabled: { key: '', default: false },
      allowedHeaders: [{ kind: 'exact', value: 'cookie', ignoresCase: false }],
      disallowedHeaders: null,
      validates: false,
      countsByCluster: true,
    });
    assert.deepEqual(filterSettings<ExtAuthzSettings>('envoy.ext_authz', V2, fields), settings);
  });

  test('are by default those of the reference', () => {
    const { service, statusOnError, stats } = filterSettings<ExtAuthzSettings>('envoy.filters.http.ext_authz', V3, {
      grpc_service: GRPC,
      transport_api_version: 'V3',
    });
    assert.deepEqual(service, {
      kind: 'grpc',
      cluster: 'web',
      authority: 'web',
      generation: 'v3',
      timeoutMs: 200,
      metadata: [],
      includesCertificate: false,
      includesTlsSession: false,
      labels: {},
      hasRawHeaders: false,
      metadataNamespaces: [],
      routeMetadataNamespaces: [],
      keepsMetadata: true,
    });
    assert.deepEqual([statusOnError, stats.denied], [403, 'ext_authz.denied']);
  });

  for (const [what, fields, expected] of [
    ['no service', {}, /grpc_service or http_service is required/],
    [
      'an authority that is none',
      { grpc_service: { envoy_grpc: { cluster_name: 'web', authority: 'a b' } } },
      /^grpc_service\.envoy_grpc\.authority: "a b" is no host/,
    ],
    [
      'a cluster that is none',
      { grpc_service: { envoy_grpc: { cluster_name: 'wed' } } },
      /^grpc_service\.envoy_grpc\.cluster_name: .*"wed".*"web"/,
    ],
    [
      'the same of HTTP',
      { http_service: { server_uri: { ...HTTP.server_uri, cluster: 'x' } } },
      /^http_service\.server_uri\.cluster: /,
    ],
    [
      'a library of its own',
      { grpc_service: { google_grpc: { target_uri: 'a:1', stat_prefix: 'a' } } },
      /^grpc_service\.google_grpc: is not .*: say envoy_grpc with .* a cluster with HTTP\/2 whose host is "a:1"$/,
    ],
    [
      'the same with TLS',
      {
        grpc_service: {
          google_grpc: { target_uri: 'a:1', stat_prefix: 'a', channel_credentials: { ssl_credentials: {} } },
        },
      },
      /^grpc_service\.google_grpc: .* a cluster with HTTP\/2 and TLS whose host is "a:1"$/,
    ],
    ['a prefix without a slash', { http_service: { ...HTTP, path_prefix: 'a' } }, /^http_service\.path_prefix: .*"a"/],
    ['a body of nothing', { http_service: HTTP, with_request_body: { max_request_bytes: 0 } }, /max_request_bytes/],
    [
      'bad patterns',
      { http_service: HTTP, allowed_headers: { patterns: [{ safe_regex: { regex: '(' } }] } },
      /^allowed_headers\.patterns\[0\]\.safe_regex/,
    ],
    [
      'bad metadata',
      { grpc_service: { ...GRPC, initial_metadata: [{ key: 'grpc-x', value: 'a' }] } },
      /^grpc_service\.initial_metadata\[0\]\.key: /,
    ],
    [
      'hosts of retries',
      { http_service: { ...HTTP, retry_policy: { host_selection_retry_max_attempts: 2 } } },
      /^http_service\.retry_policy\.host_selection_retry_max_attempts: /,
    ],
    [
      'a test of metadata that tests nothing',
      { http_service: HTTP, filter_enabled_metadata: { filter: 'a', path: [{ key: 'a' }] } },
      /^filter_enabled_metadata\.value: /,
    ],
    [
      'what this build lacks',
      { http_service: HTTP, decoder_header_mutation_rules: { disallow_all: true } },
      /^decoder_header_mutation_rules: .* trusted/,
    ],
  ] as const) {
    test(`are refused by the name of the field: ${what}`, () => {
      const faults = filterFaults('ext_authz', V3, fields as JsonObject);
      assert.match(faults.join('\n'), new RegExp(expected.source, 'm'));
    });
  }

  test('of a route are refused, too', () => {
    const perRoute = (fields: JsonObject): JsonObject => ({
      'envoy.filters.http.ext_authz': {
        '@type': 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute',
        ...fields,
      },
    });
    const faultsOf = (fields: JsonObject): readonly string[] =>
      faultTexts(
        load(withHttpFilter('envoy.filters.http.ext_authz', V3, { http_service: HTTP }, perRoute(fields))),
        'error',
      );
    assert.deepEqual(faultsOf({ disabled: true }), []);
    assert.match(faultsOf({})[0]!, /disabled|check_settings|override/);
    assert.match(faultsOf({ disabled: false })[0]!, /disabled/);
  });
});
