import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { AdminQuery } from '../../../src/admin/query.ts';
import { formatHealthFlags, HEALTH_FLAGS } from '../../../src/admin/render/health-flags.ts';
import { escapeHtml } from '../../../src/admin/render/html.ts';
import { formatG } from '../../../src/admin/render/number.ts';
import { jsonDuration } from '../../../src/base/json.ts';

describe('numbers in the form %g', () => {
  // Recorded from C's printf.
  const recorded: [value: number, text: string][] = [
    [0, '0'],
    [1, '1'],
    [-1, '-1'],
    [99.5, '99.5'],
    [100 / 3, '33.3333'],
    [99.9999999, '100'],
    [202.5, '202.5'],
    [1234.565, '1234.57'],
    [600_000, '600000'],
    [999_999, '999999'],
    [999_999.5, '1e+06'],
    [1e6, '1e+06'],
    [1_800_000, '1.8e+06'],
    [3_600_000, '3.6e+06'],
    [73_884_050, '7.3884e+07'],
    [73_884_150, '7.38842e+07'],
    [-0.00001234565, '-1.23456e-05'],
    [0.5, '0.5'],
    [0.0001, '0.0001'],
    [0.00001, '1e-05'],
    [100_000.5, '100000'],
    [100_001.5, '100002'],
    [-2_147_483_648, '-2.14748e+09'],
    [1.7976931348623157e308, '1.79769e+308'],
    [5e-324, '4.94066e-324'],
  ];
  it('are those of printf', () => {
    assert.deepEqual(
      recorded.map(([value]) => formatG(value)),
      recorded.map(([, text]) => text),
    );
  });

  it('have words where there is no number', () => {
    assert.deepEqual([Number.NaN, Infinity, -Infinity].map(formatG), ['nan', 'inf', '-inf']);
  });
});

describe('health flags', () => {
  it('are healthy without any', () => assert.equal(formatHealthFlags(0), 'healthy'));

  it('are joined in their fixed order', () => {
    assert.equal(formatHealthFlags(0x4 | 0x1 | 0x200), '/failed_active_hc/failed_eds_health/eds_status_draining');
    const all = HEALTH_FLAGS.reduce((flags, [bit]) => flags | bit, 0);
    assert.equal(formatHealthFlags(all), HEALTH_FLAGS.map(([, text]) => text).join(''));
  });
});

describe('text in HTML', () => {
  it('holds nothing that opens a tag or leaves a quoted attribute', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('<', '>', '"', "'", '&', 'a') }), (text) => {
        const escaped = escapeHtml(text);
        assert.doesNotMatch(escaped, /[<>"']|&(?!(amp|lt|gt|quot|#39);)/);
      }),
    );
  });
});

describe('durations in JSON', () => {
  it('have three decimals only when they are not whole seconds', () => {
    assert.deepEqual([0, 6000, 500, 1005, 90_000].map(jsonDuration), ['0s', '6s', '0.500s', '1.005s', '90s']);
  });
});

describe('a query', () => {
  it('keeps the order of its pairs', () => {
    const { pairs } = new AdminQuery('b=1&a=x%3Dy=z&c&b=2&=3');
    assert.deepEqual(pairs, [
      ['b', '1'],
      ['a', 'x=y=z'],
      ['c', ''],
      ['b', '2'],
      ['', '3'],
    ]);
  });

  it('gives back what was encoded', () => {
    const parameter = fc.tuple(fc.string({ minLength: 1 }), fc.string({ minLength: 1 }));
    fc.assert(
      fc.property(fc.uniqueArray(parameter, { selector: ([name]) => name }), (parameters) => {
        const query = new AdminQuery(
          parameters.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join('&'),
        );
        for (const [name, value] of parameters) assert.equal(query.value(name), value);
      }),
    );
  });
});
