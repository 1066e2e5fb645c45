import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import fc from 'fast-check';
import {
  decodeLimitResponse,
  encodeLimitRequest,
  limitFields,
} from '../../../../src/extensions/filters.http/ratelimit/service.ts';
import type { RateLimitFilterSettings } from '../../../../src/extensions/filters.http/ratelimit/settings.ts';
import { faultTexts, type JsonObject, load } from '../../../support/bootstrap.ts';
import { filterFaults, filterSettings, withHttpFilter } from '../../../support/filter-config.ts';
import { RateLimitRequestType, RateLimitResponseType } from '../../../support/rate-limit-service.ts';

const NAME = 'envoy.filters.http.ratelimit';
const V3 = 'envoy.extensions.filters.http.ratelimit.v3.RateLimit';
const V2 = 'envoy.config.filter.http.rate_limit.v2.RateLimit';
const SERVICE: JsonObject = { grpc_service: { envoy_grpc: { cluster_name: 'web' } } };
const ALL: JsonObject = { domain: 'd', rate_limit_service: SERVICE };
const share = (numerator: number, key = '') => ({ key, default: { numerator, denominator: 100 } });

describe('the settings of the ratelimit filter', () => {
  it('are by default those of the reference', () => {
    assert.deepEqual(filterSettings<RateLimitFilterSettings>(NAME, V3, ALL), {
      stats: {
        ok: 'ratelimit.ok',
        overLimit: 'ratelimit.over_limit',
        error: 'ratelimit.error',
        failureModeAllowed: 'ratelimit.failure_mode_allowed',
      },
      service: { cluster: 'web', authority: 'web', timeoutMs: 20, metadata: [], generation: 'v3' },
      domain: 'd',
      stage: 0,
      requests: 'both',
      enabled: share(100, 'ratelimit.http_filter_enabled'),
      enforced: share(100, 'ratelimit.http_filter_enforcing'),
      deniesFailure: share(0),
      status: 429,
      statusOnError: 500,
      isResourceExhausted: false,
      tellsLimits: false,
      marksRefusals: true,
      responseEdits: [],
      rateLimits: [],
    });
  });

  it('are the same in both generations, by either name', () => {
    const fields: JsonObject = {
      ...ALL,
      stage: 3,
      request_type: 'internal',
      timeout: '0.25s',
      failure_mode_deny: true,
      rate_limited_as_resource_exhausted: true,
    };
    const settings = filterSettings<RateLimitFilterSettings>(NAME, V3, fields);
    const { stage, requests, service, deniesFailure, isResourceExhausted } = settings;
    assert.deepEqual(
      [stage, requests, service.timeoutMs, deniesFailure, isResourceExhausted],
      [3, 'internal', 250, share(100), true],
    );
    assert.deepEqual(filterSettings<RateLimitFilterSettings>('envoy.rate_limit', V2, fields), settings);
    const older = { ...fields, rate_limit_service: { cluster_name: 'web', use_data_plane_proto: true } };
    assert.deepEqual(filterSettings<RateLimitFilterSettings>('envoy.rate_limit', V2, older), settings);
  });

  const rate_limits = (fields: JsonObject): JsonObject => ({
    ...ALL,
    rate_limits: [{ actions: [{ remote_address: {} }], ...fields }],
  });

  for (const [what, fields, expected] of [
    ['no domain', { rate_limit_service: SERVICE }, /^domain: /],
    ['no service', { domain: 'd' }, /^rate_limit_service: /],
    ['a service without a place', { domain: 'd', rate_limit_service: {} }, /^rate_limit_service\.grpc_service: /],
    [
      'a cluster that is none',
      { domain: 'd', rate_limit_service: { grpc_service: { envoy_grpc: { cluster_name: 'wed' } } } },
      /^rate_limit_service\.grpc_service\.envoy_grpc\.cluster_name: .*"wed".*"web"/,
    ],
    [
      'a library of its own',
      {
        domain: 'd',
        rate_limit_service: { grpc_service: { google_grpc: { target_uri: 'a:1', stat_prefix: 'a' } } },
      },
      /^rate_limit_service\.grpc_service\.google_grpc: /,
    ],
    ['a stage beyond ten', { ...ALL, stage: 11 }, /^stage: /],
    ['a type that is none', { ...ALL, request_type: 'inner' }, /^request_type: /],
    ['a limit of a stage', rate_limits({ stage: 0 }), /^rate_limits\[0\]\.stage: /],
    ['a limit with a key', rate_limits({ disable_key: 'x' }), /^rate_limits\[0\]\.disable_key: /],
    [
      'a header that frames',
      { ...ALL, response_headers_to_add: [{ header: { key: 'content-length', value: '1' } }] },
      /^response_headers_to_add\[0\]/,
    ],
  ] as const) {
    test(`are refused by the name of the field: ${what}`, () => {
      const faults = filterFaults('ratelimit', V3, fields as JsonObject);
      assert.match(faults.join('\n'), new RegExp(expected.source, 'm'));
    });
  }

  test('of v2 need a service, too', () => {
    const faults = filterFaults('ratelimit', V2, { domain: 'd' });
    assert.deepEqual(faults, ['rate_limit_service: names no service, and the bootstrap names none']);
    const bootstrap = withHttpFilter(NAME, V2, { domain: 'd' });
    assert.match(
      faultTexts(load({ ...bootstrap, rate_limit_service: { cluster_name: 'wed' } }), 'error')[0]!,
      /^rate_limit_service\.cluster_name: .*"wed"/,
    );
    assert.deepEqual(faultTexts(load({ ...bootstrap, rate_limit_service: { cluster_name: 'web' } }), 'error'), []);
  });

  test('of a route are refused, too', () => {
    const faultsOf = (fields: JsonObject): readonly string[] => {
      const type = 'type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute';
      return faultTexts(load(withHttpFilter(NAME, V3, ALL, { [NAME]: { '@type': type, ...fields } })), 'error');
    };
    assert.deepEqual(faultsOf({ vh_rate_limits: 'IGNORE' }), []);
    assert.match(faultsOf({ rate_limits: [{ stage: 1, actions: [{ remote_address: {} }] }] })[0]!, /\.stage: /);
    assert.match(faultsOf({ rate_limits: [{}] })[0]!, /rate_limits\[0\]\.actions/);
  });
});

describe('a message of the rate limit service', () => {
  const pair = fc.tuple(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }));

  test('is written as the library reads it', () => {
    const descriptor = fc.record({
      entries: fc.array(pair, { minLength: 1, maxLength: 4 }),
      limit: fc.option(fc.record({ requests: fc.nat(), unit: fc.integer({ min: 1, max: 6 }) })),
      hits: fc.option(fc.nat({ max: 1e9 })),
    });
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.array(descriptor, { maxLength: 4 }), (domain, descriptors) => {
        const bytes = (text: string): string => Buffer.from(text).toString('latin1');
        const asked = descriptors.map(({ entries, ...rest }) => ({
          entries: entries.map(([key, value]): [string, string] => [bytes(key), bytes(value)]),
          ...rest,
        }));
        const read = RateLimitRequestType.toObject(RateLimitRequestType.decode(encodeLimitRequest(domain, asked)), {
          defaults: true,
          longs: Number,
        });
        assert.equal(read.domain, domain);
        assert.deepEqual(
          read.descriptors,
          descriptors.map(({ entries, limit, hits }) => ({
            entries: entries.map(([key, value]) => ({ key, value })),
            limit: limit && { requests_per_unit: limit.requests, unit: limit.unit },
            hits_addend: hits === null ? null : { value: hits },
          })),
        );
      }),
    );
  });

  test('is read as the library has written it', () => {
    const status = fc.record({
      limit: fc.option(fc.record({ requests: fc.nat(), unit: fc.integer({ min: 0, max: 6 }), name: fc.string() })),
      remaining: fc.nat(),
      seconds: fc.nat(),
    });
    fc.assert(
      fc.property(fc.constantFrom(0, 1, 2), fc.array(status), fc.uint8Array(), (overall_code, statuses, body) => {
        const answer = {
          overall_code,
          raw_body: body,
          statuses: statuses.map(({ limit, remaining, seconds }) => ({
            ...(limit === null
              ? {}
              : { current_limit: { requests_per_unit: limit.requests, unit: limit.unit, name: limit.name } }),
            limit_remaining: remaining,
            duration_until_reset: { seconds, nanos: 5 },
          })),
          response_headers_to_add: [{ key: 'A', raw_value: Buffer.from([0xff]) }],
          request_headers_to_add: [{ key: 'b', value: 'é' }],
        };
        const bytes = RateLimitResponseType.encode(RateLimitResponseType.fromObject(answer)).finish();
        const read = decodeLimitResponse(Buffer.from(bytes));
        const windows = [0, 1, 60, 3600, 86_400, 2_592_000, 31_536_000];
        assert.deepEqual(read, {
          isOverLimit: overall_code === 2,
          statuses: statuses.map(({ limit, remaining, seconds }) => ({
            limit: limit && {
              requests: limit.requests,
              windowSeconds: windows[limit.unit],
              name: Buffer.from(limit.name).toString('latin1'),
            },
            remaining,
            secondsToReset: seconds,
          })),
          responseFields: [['a', '\xff']],
          requestFields: [['b', 'Ã©']],
          body: Buffer.from(body),
          metadata: null,
        });
        for (const [, value] of limitFields(read.statuses)) assert.equal(typeof value, 'string');
      }),
    );
  });

  test('is read, or refused, whatever its bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        try {
          decodeLimitResponse(Buffer.from(bytes));
        } catch (error) {
          assert.ok(error instanceof Error);
        }
      }),
    );
  });
});
