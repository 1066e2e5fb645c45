import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ForwardAction } from '../../../../src/snapshot/index.ts';
import { faultTexts, type JsonObject, load, mustLoad, withRoutes } from '../../../support/bootstrap.ts';
import { retrySettings } from '../../../support/routes.ts';

function table(route: JsonObject, virtualHost: JsonObject = {}, routeFields: JsonObject = {}): JsonObject {
  const routes = [{ match: { prefix: '/' }, route: { cluster: 'web', ...route }, ...routeFields }];
  return { virtual_hosts: [{ name: 'all', domains: ['*'], routes, ...virtualHost }] };
}

function actionOf(...parts: Parameters<typeof table>): ForwardAction {
  const { filter } = mustLoad(withRoutes(table(...parts))).listeners[0]!.filterChains[0]!;
  assert.equal(filter.kind, 'http-connection-manager');
  const { action } = filter.routeTable.virtualHosts[0]!.routes[0]!;
  assert.equal(action.kind, 'cluster');
  return action;
}

function faultsOf(policy: JsonObject, severity: 'error' | 'warning' = 'error'): string[] {
  return faultTexts(load(withRoutes(table({ retry_policy: policy }))), severity).map((text) =>
    text.replace(/^.*retry_policy\./, ''),
  );
}

function typed(name: string, fields: JsonObject = {}): JsonObject {
  return { '@type': `type.googleapis.com/envoy.extensions.retry.${name}`, ...fields };
}

describe('a retry policy', () => {
  it('has defaults', () => {
    assert.deepEqual(actionOf({ retry_policy: { retry_on: '5xx' } }).retry, retrySettings());
    assert.equal(actionOf({}).retry, null);
  });

  it('is read in full', () => {
    const policy = {
      retry_on: 'connect-failure, gateway-error,refused-stream,envoy-ratelimited,cancelled,http3-post-connect-failure',
      num_retries: 4,
      per_try_timeout: '0.25s',
      per_try_idle_timeout: '3s',
      retriable_status_codes: [418, 503],
      retry_back_off: { base_interval: '0.010s', max_interval: '2s' },
      rate_limited_retry_back_off: {
        reset_headers: [{ name: 'Retry-After' }, { name: 'x-reset', format: 'UNIX_TIMESTAMP' }],
        max_interval: '60s',
      },
      retriable_headers: [{ name: 'X-Again', present_match: true }],
      retriable_request_headers: [{ name: 'x-safe', string_match: { exact: 'yes' } }],
      host_selection_retry_max_attempts: 5,
      retry_host_predicate: [
        { name: 'a', typed_config: typed('host.previous_hosts.v3.PreviousHostsPredicate') },
        { name: 'b', typed_config: typed('host.omit_canary_hosts.v3.OmitCanaryHostsPredicate') },
        {
          name: 'c',
          typed_config: typed('host.omit_host_metadata.v3.OmitHostMetadataConfig', {
            metadata_match: { filter_metadata: { 'envoy.lb': { stage: 'old' } } },
          }),
        },
      ],
      retry_priority: {
        name: 'd',
        typed_config: typed('priority.previous_priorities.v3.PreviousPrioritiesConfig', { update_frequency: 2 }),
      },
    };
    assert.deepEqual(actionOf({ retry_policy: policy }).retry, {
      conditions: ['connect-failure', 'gateway-error', 'refused-stream', 'ratelimited', 'cancelled'],
      maxRetries: 4,
      perTryTimeoutMs: 250,
      perTryIdleTimeoutMs: 3000,
      backOff: { baseMs: 10, maxMs: 2000 },
      rateLimitedBackOff: {
        headers: [
          { name: 'retry-after', format: 'seconds' },
          { name: 'x-reset', format: 'unix-timestamp' },
        ],
        maxMs: 60_000,
      },
      retriableStatusCodes: [418, 503],
      retriableHeaders: [
        { name: 'x-again', test: { kind: 'present', isPresent: true }, isInverted: false, treatMissingAsEmpty: false },
      ],
      retriableRequestHeaders: [
        {
          name: 'x-safe',
          test: { kind: 'exact', value: 'yes', ignoresCase: false },
          isInverted: false,
          treatMissingAsEmpty: false,
        },
      ],
      hostPredicates: [
        { kind: 'previous-hosts' },
        { kind: 'canary-hosts' },
        { kind: 'metadata', values: { stage: 'old' } },
      ],
      maxFurtherDraws: 5,
      previousPrioritiesFrequency: 2,
    });
  });

  it('gives ten times the base as longest wait', () => {
    const policy = { retry_on: '5xx', retry_back_off: { base_interval: '0.030s' } };
    assert.deepEqual(actionOf({ retry_policy: policy }).retry!.backOff, { baseMs: 30, maxMs: 300 });
  });

  it('warns of statuses that no response has', () => {
    assert.deepEqual(faultsOf({ retry_on: '5xx', retriable_status_codes: [99, 100, 599, 600] }, 'warning'), [
      'retriable_status_codes[0]: no response has status 99',
      'retriable_status_codes[3]: no response has status 600',
    ]);
  });

  it('is refused or warned about where it makes no sense', () => {
    assert.deepEqual(faultsOf({ retry_on: '5xx', per_try_timeout: '-1s' }), ['per_try_timeout: -1s is negative']);
    assert.match(faultsOf({ retry_on: '5xx,nonsense' }, 'warning')[0]!, /^retry_on: no condition is called "nonsense"/);
    assert.match(
      faultsOf({ retry_on: '5xx', retry_back_off: { base_interval: '2s', max_interval: '1s' } })[0]!,
      /^retry_back_off.max_interval: 1000ms is below base_interval 2000ms/,
    );
    assert.match(faultsOf({ retry_on: '5xx', host_selection_retry_max_attempts: -1 })[0]!, /-1 is below 0/);
  });

  it('of a route takes the place of the one of its virtual host', () => {
    const ofHost = {
      retry_policy: { retry_on: 'reset', num_retries: 5 },
      hedge_policy: { hedge_on_per_try_timeout: true },
    };
    assert.deepEqual(actionOf({}, ofHost).retry, retrySettings({ conditions: ['reset'], maxRetries: 5 }));
    assert.deepEqual(actionOf({ retry_policy: { retry_on: '5xx' } }, ofHost).retry, retrySettings());
    assert.equal(actionOf({}, ofHost).hedgesOnPerTryTimeout, true);
    assert.equal(actionOf({ hedge_policy: {} }, ofHost).hedgesOnPerTryTimeout, false);
  });

  it('may stand in an extension, where there is no other', () => {
    const typedPolicy = (retryOn: string): JsonObject => ({
      '@type': 'type.googleapis.com/envoy.config.route.v3.RetryPolicy',
      retry_on: retryOn,
    });
    assert.deepEqual(actionOf({ retry_policy_typed_config: typedPolicy('5xx') }).retry, retrySettings());
    assert.deepEqual(actionOf({}, { retry_policy_typed_config: typedPolicy('5xx') }).retry, retrySettings());
    const both = { retry_policy: { retry_on: '5xx' }, retry_policy_typed_config: typedPolicy('reset') };
    assert.deepEqual(actionOf(both).retry, retrySettings());
    const other = {
      '@type': 'type.googleapis.com/envoy.config.route.v3.RetryPolicy.RetryBackOff',
      base_interval: '1s',
    };
    const report = load(withRoutes(table({ retry_policy_typed_config: other })));
    assert.match(faultTexts(report, 'warning')[0]!, /retry_policy_typed_config: .*RetryBackOff/);
  });

  it('is warned of options that no predicate can choose', () => {
    const predicate = { name: 'other', typed_config: typed('host.previous_hosts.v3.PreviousHostsPredicate') };
    const policy = { retry_on: '5xx', retry_options_predicates: [predicate] };
    assert.match(faultsOf(policy, 'warning')[0]!, /^retry_options_predicates.*the schema has no such predicate/);
  });

  it('may have requests go out together', () => {
    const hedgingOf = (...parts: Parameters<typeof table>) => {
      const { initialRequests, additionalRequestShare } = actionOf(...parts);
      return [initialRequests, additionalRequestShare];
    };
    const chance = (numerator: number) => ({ additional_request_chance: { numerator, denominator: 'TEN_THOUSAND' } });
    assert.deepEqual(hedgingOf({}), [1, null]);
    assert.deepEqual(hedgingOf({ hedge_policy: { initial_requests: 3 } }), [3, null]);
    assert.deepEqual(hedgingOf({ hedge_policy: chance(0) }), [1, null]);
    assert.deepEqual(hedgingOf({}, { hedge_policy: chance(25) }), [1, { numerator: 25, denominator: 10_000 }]);
    assert.deepEqual(hedgingOf({ hedge_policy: {} }, { hedge_policy: { initial_requests: 3 } }), [1, null]);
    const faults = (policy: JsonObject) => faultTexts(load(withRoutes(table({ hedge_policy: policy }))), 'error');
    assert.match(faults({ initial_requests: 17 })[0]!, /hedge_policy.initial_requests: 17 exceeds the limit 16$/);
    assert.deepEqual(faults({ initial_requests: 16, ...chance(10_000) }), []);
    assert.match(faults(chance(10_001))[0]!, /additional_request_chance: 10001 of 10000 is more than certain$/);
  });

  it('knows how much of a body is kept, by route and by virtual host', () => {
    const limitOf = (...parts: Parameters<typeof table>) => {
      const { replayLimitBytes, isReplayLimitCapped } = actionOf(...parts);
      return [replayLimitBytes, isReplayLimitCapped];
    };
    assert.deepEqual(limitOf({}), [null, false]);
    assert.deepEqual(limitOf({}, { per_request_buffer_limit_bytes: 100 }), [100, true]);
    assert.deepEqual(limitOf({}, { per_request_buffer_limit_bytes: 100 }, { per_request_buffer_limit_bytes: 7 }), [
      7,
      false,
    ]);
    assert.deepEqual(limitOf({}, {}, { request_body_buffer_limit: '5000000000' }), [5_000_000_000, false]);
  });

  it('may tell an upstream that the try before ran out of time', () => {
    assert.equal(actionOf({}, { include_is_timeout_retry_header: true }).tellsTimeoutRetry, true);
    assert.equal(actionOf({}).tellsTimeoutRetry, false);
  });
});
