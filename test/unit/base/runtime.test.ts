import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { circuitLimits } from '../../../src/base/circuit-limits.ts';
import { isWithin, RuntimeValues } from '../../../src/base/runtime.ts';
import { expectedValue, runtimeFraction, runtimeNumber } from '../../../src/base/runtime-values.ts';

function valuesOf(texts: Record<string, string>): RuntimeValues {
  return new RuntimeValues(new Map(Object.entries(texts)));
}

describe('runtime values', () => {
  it('are read as what is asked for, or as nothing', () => {
    const values = valuesOf({ whole: '7', part: '2.5', below: '-1.5', on: 'True', word: 'seven' });
    const keys = ['whole', 'part', 'below', 'on', 'word', 'missing', ''];
    const none = undefined;
    assert.deepEqual(
      keys.map((key) => values.integer(key)),
      [7, 2, none, none, none, none, none],
    );
    assert.deepEqual(
      keys.map((key) => values.number(key)),
      [7, 2.5, -1.5, none, none, none, none],
    );
    assert.deepEqual(
      keys.map((key) => values.flag(key)),
      [true, true, true, true, none, none, none],
    );
    assert.equal(valuesOf({ off: '0' }).flag('off'), false);
    assert.equal(values.text('word'), 'seven');
  });

  it('are found under both spellings of a key', () => {
    const values = valuesOf({ 'proxy.x': '1' });
    assert.deepEqual([values.integer('proxy.x'), values.integer('envoy.x')], [1, 1]);
  });

  it('have no number of an empty key, whatever is set', () => {
    assert.equal(valuesOf({ '': '5' }).integer(''), undefined);
  });
});

describe('a fraction of the runtime', () => {
  const cases: readonly (readonly [string, readonly [number, number] | undefined])[] = [
    ['25', [25, 100]],
    ['25.9', [25, 100]],
    ['101', [101, 100]],
    ['{"numerator":1,"denominator":"TEN_THOUSAND"}', [1, 10_000]],
    ['{"denominator":"MILLION","numerator":5}', [5, 1_000_000]],
    ['numerator: 3\ndenominator: TEN_THOUSAND\n', [3, 10_000]],
    ["{numerator: 3, denominator: 'HUNDRED'}", [3, 100]],
    ['{"numerator":2,"denominator":1}', [2, 10_000]],
    ['{"numerator":2}', [2, 100]],
    ['{}', [0, 100]],
    ['{"numerator":2,"denominator":"TEN"}', undefined],
    ['{"numerator":"many"}', undefined],
    ['{"numerator":1,"more":1}', undefined],
    ['half', undefined],
    ['-1', undefined],
  ];
  for (const [text, expected] of cases) {
    it(`is ${expected?.join(' of ') ?? 'none'} for ${JSON.stringify(text)}`, () => {
      const fraction = runtimeFraction(text);
      assert.deepEqual(fraction, expected && { numerator: expected[0], denominator: expected[1] });
    });
  }

  it('takes what is below its numerator, all of it above a hundred percent', () => {
    assert.deepEqual(
      [0, 29, 30, 129, 130].map((random) => isWithin({ numerator: 30, denominator: 100 }, random)),
      [true, true, false, true, false],
    );
    assert.equal(isWithin({ numerator: 101, denominator: 100 }, 99), true);
  });

  it('decides whether something happens in place of a percentage', () => {
    const values = valuesOf({ a: '10', b: '{"numerator":1,"denominator":"MILLION"}' });
    assert.deepEqual([values.happens('a', 100, 9), values.happens('a', 100, 10)], [true, false]);
    assert.deepEqual([values.happens('b', 100, 1_000_000), values.happens('b', 100, 1)], [true, false]);
    assert.deepEqual([values.happens('c', 40, 39), values.happens('c', 40, 40)], [true, false]);
  });
});

describe('what is derived from runtime values', () => {
  it('is worked out when they change, and only then', () => {
    const values = valuesOf({ limit: '1' });
    let times = 0;
    const doubled = values.derived((now) => {
      times += 1;
      return (now.integer('limit') ?? 0) * 2;
    });
    assert.deepEqual([doubled.value, doubled.value, times], [2, 2, 1]);
    values.replace(new Map([['limit', '5']]));
    assert.deepEqual([doubled.value, doubled.value, times], [10, 10, 2]);
    values.replace(new Map());
    assert.equal(doubled.value, 0);
  });

  it('may be the share of requests that a route takes', () => {
    const values = new RuntimeValues();
    const share = values.share({ key: 'k', default: { numerator: 5, denominator: 100 } });
    assert.deepEqual(share.value, { numerator: 5, denominator: 100 });
    values.replace(new Map([['k', '70']]));
    assert.deepEqual(share.value, { numerator: 70, denominator: 100 });
  });
});

describe('limits of circuit breakers', () => {
  const limits = { maxConnections: 1, maxPendingRequests: 2, maxRequests: 3, maxRetries: 4 };

  it('are those of the runtime for the cluster and the priority', () => {
    const values = valuesOf({
      'circuit_breakers.web.default.max_requests': '30',
      'circuit_breakers.web.high.max_retries': '40',
      'circuit_breakers.web.high.max_connection_pools': '50',
      'circuit_breakers.other.default.max_connections': '10',
      'circuit_breakers.web.default.max_connections': 'many',
    });
    assert.deepEqual(circuitLimits(values, 'web', 'default', limits), { ...limits, maxRequests: 30 });
    assert.deepEqual(circuitLimits(values, 'web', 'high', limits), {
      ...limits,
      maxRetries: 40,
      maxConnectionPools: 50,
    });
  });

  it('stay the configured ones otherwise', () => {
    assert.equal(circuitLimits(new RuntimeValues(), 'web', 'default', limits), limits);
    assert.equal(circuitLimits(valuesOf({ a: '1' }), 'web', 'default', limits), limits);
  });
});

describe('a key of the runtime', () => {
  it('says what its value should be', () => {
    const keys = [
      'upstream.healthy_panic_threshold',
      'health_check.verify_cluster',
      'proxy.restart_features.use_apple_api_for_dns_lookups',
      'circuit_breakers.a.b.high.max_requests',
      'circuit_breakers.a.b.high.max_dreams',
      'circuit_breakers.a.low.max_requests',
      'upstream.use_http2',
      'proxy.reloadable_features.anything',
      'routing.share',
    ];
    assert.deepEqual(keys.map(expectedValue), [
      'integer',
      'share',
      'flag',
      'integer',
      'none',
      'none',
      'none',
      'none',
      'any',
    ]);
  });
});

describe('a number of the runtime', () => {
  it('is finite and nothing but a number', () => {
    const texts = ['1', '-1', '+2', '.5', '1.', '1e3', '1e999', '1x', '', 'NaN', '0x10'];
    const none = undefined;
    assert.deepEqual(texts.map(runtimeNumber), [1, -1, 2, 0.5, 1, 1000, none, none, none, none, none]);
  });
});
