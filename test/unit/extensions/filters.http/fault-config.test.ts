// What HTTPFault becomes, in both generations, and what of it is refused by name.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { FaultFilterSettings, FaultSettings } from '../../../../src/extensions/filters.http/fault/settings.ts';
import { faultTexts, type JsonObject, load, mustLoad } from '../../../support/bootstrap.ts';
import { filterFaults, filterSettings, withHttpFilter } from '../../../support/filter-config.ts';

const V3 = 'envoy.extensions.filters.http.fault.v3.HTTPFault';
const V2 = 'envoy.config.filter.http.fault.v2.HTTPFault';

function faultOf(fields: JsonObject, type = V3): FaultSettings {
  return filterSettings<FaultFilterSettings>('envoy.filters.http.fault', type, fields).fault;
}

const refusals = (fields: JsonObject, type = V3): string[] => filterFaults('fault', type, fields);

describe('what a fault filter is told', () => {
  it('is the same in both generations, by either name', () => {
    const fields: JsonObject = {
      delay: { fixed_delay: '2s', percentage: { numerator: 5, denominator: 'TEN_THOUSAND' } },
      abort: { http_status: 503, percentage: { numerator: 7 } },
      response_rate_limit: { fixed_limit: { limit_kbps: 4 }, percentage: { numerator: 1 } },
      upstream_cluster: 'web',
      downstream_nodes: ['a'],
      max_active_faults: 9,
    };
    const { delay, abort, rateLimit, upstreamCluster, nodes, maxActive } = faultOf(fields);
    assert.deepEqual(delay?.share.default, { numerator: 5, denominator: 10_000 });
    assert.equal(delay?.fixedMs?.default, 2000);
    assert.deepEqual(abort?.share.default, { numerator: 7, denominator: 100 });
    assert.equal(abort?.status?.code.default, 503);
    assert.deepEqual([rateLimit?.bytesPerSecond, upstreamCluster, nodes, maxActive.default], [4096, 'web', ['a'], 9]);
    assert.deepEqual(faultOf(fields, V2), faultOf(fields));
    const older = filterSettings<FaultFilterSettings>('envoy.fault', V2, fields);
    assert.deepEqual(older.fault, faultOf(fields));
  });

  it('may name whole percents in the older generation, which newer shares go before', () => {
    const shares = (of: JsonObject): unknown[] => {
      const { delay, abort } = faultOf(
        { delay: { fixed_delay: '1s', type: 'FIXED', ...of }, abort: { http_status: 500, ...of } },
        V2,
      );
      return [delay?.share.default, abort?.share.default];
    };
    assert.deepEqual(shares({ percent: 40 }), Array(2).fill({ numerator: 40, denominator: 100 }));
    const both = { percent: 40, percentage: { numerator: 3, denominator: 'MILLION' } };
    assert.deepEqual(shares(both), Array(2).fill({ numerator: 3, denominator: 1_000_000 }));
    assert.deepEqual(shares({}), Array(2).fill({ numerator: 0, denominator: 100 }));
  });

  it('has the runtime keys that it names, or those that everybody knows', () => {
    const parts: JsonObject = {
      delay: { fixed_delay: '1s' },
      abort: { http_status: 500 },
      response_rate_limit: { header_limit: {} },
    };
    const keysOf = ({ delay, abort, rateLimit, maxActive }: FaultSettings): unknown[] => [
      delay?.share.key,
      delay?.fixedMs?.key,
      abort?.share.key,
      abort?.status?.code.key,
      rateLimit?.share.key,
      maxActive.key,
    ];
    assert.deepEqual(keysOf(faultOf(parts)), [
      'fault.http.delay.fixed_delay_percent',
      'fault.http.delay.fixed_duration_ms',
      'fault.http.abort.abort_percent',
      'fault.http.abort.http_status',
      'fault.http.rate_limit.response_percent',
      'fault.http.max_active_faults',
    ]);
    const named = {
      delay_percent_runtime: 'a',
      delay_duration_runtime: 'b',
      abort_percent_runtime: 'c',
      abort_http_status_runtime: 'd',
      response_rate_limit_percent_runtime: 'e',
      max_active_faults_runtime: 'f',
    };
    assert.deepEqual(keysOf(faultOf({ ...parts, ...named })), ['a', 'b', 'c', 'd', 'e', 'f']);
    const grpc: JsonObject = { abort: { grpc_status: 14 } };
    assert.equal(faultOf(grpc).abort?.status?.code.key, 'fault.http.abort.grpc_status');
    assert.equal(faultOf({ ...grpc, abort_grpc_status_runtime: 'g' }).abort?.status?.code.key, 'g');
  });

  it('is refused by the name of the field', () => {
    assert.match(refusals({ delay: { percentage: { numerator: 1 } } })[0]!, /^delay.*fixed_delay/);
    assert.match(refusals({ delay: { fixed_delay: '0s' } })[0]!, /^delay\.fixed_delay: /);
    assert.match(refusals({ abort: { percentage: { numerator: 1 } } })[0]!, /^abort.*http_status/);
    assert.match(refusals({ abort: { http_status: 199 } })[0]!, /^abort\.http_status: .*199/);
    assert.match(refusals({ abort: { http_status: 600 } })[0]!, /^abort\.http_status: .*600/);
    assert.match(refusals({ response_rate_limit: { percentage: {} } })[0]!, /^response_rate_limit.*fixed_limit/);
    const slow = { response_rate_limit: { fixed_limit: { limit_kbps: 0 } } };
    assert.match(refusals(slow)[0]!, /^response_rate_limit\.fixed_limit\.limit_kbps: /);
    assert.match(refusals({ abort: { http_status: 500, percent: 101 } }, V2)[0]!, /^abort\.percent: .*101/);
    const headers = [{ name: 'x', string_match: { safe_regex: { regex: '(' } } }];
    assert.match(refusals({ headers })[0]!, /^headers\[0\]\.string_match\.safe_regex/);
    assert.match(refusals({ delay: { fixed_delay: '1s', percentag: {} } })[0]!, /percentag/);
  });

  it('is refused at a route by its place there', () => {
    const entry = { '@type': `type.googleapis.com/${V3}`, abort: { http_status: 7 } };
    const [text] = faultTexts(
      load(withHttpFilter('envoy.filters.http.fault', V3, {}, { 'envoy.filters.http.fault': entry })),
    );
    assert.match(text!, /routes\[0\]\.typed_per_filter_config\["envoy\.filters\.http\.fault"\]\.abort\.http_status: /);
  });

  it('counts what it does, and one gauge', () => {
    const { filter } = mustLoad(withHttpFilter('envoy.filters.http.fault', V3, {})).listeners[0]!.filterChains[0]!;
    assert.ok(filter.kind === 'http-connection-manager');
    const { counters, gauges, sharedCounts, settings } = filter.httpFilters[0]!;
    assert.deepEqual(gauges, ['fault.active_faults']);
    assert.deepEqual(sharedCounts, [(settings as FaultFilterSettings).activeCount]);
    assert.deepEqual(counters, [
      'fault.delays_injected',
      'fault.aborts_injected',
      'fault.response_rl_injected',
      'fault.faults_overflow',
    ]);
  });
});
