import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  compareRates,
  rateOf,
} from '../../../../../src/control-plane/cluster-manager/outlier-detection/success-rate.ts';

describe('the rates of hosts', () => {
  it('are percent of what went well, or nothing without requests', () => {
    assert.equal(rateOf({ total: 200, success: 199 }), 99.5);
    assert.equal(rateOf({ total: 3, success: 0 }), 0);
    assert.equal(rateOf({ total: 0, success: 0 }), undefined);
  });

  // Known answers: the population's standard deviation, worked out by hand.
  const cases = [
    { rates: [100, 100, 100, 100, 50], factor: 1.9, average: 90, threshold: 52 },
    { rates: [90, 100], factor: 1, average: 95, threshold: 90 },
    { rates: [70, 80, 90], factor: 1.5, average: 80, threshold: 80 - 1.5 * Math.sqrt(200 / 3) },
    { rates: [99, 99, 99], factor: 1.9, average: 99, threshold: 99 },
    { rates: [42], factor: 3, average: 42, threshold: 42 },
  ];
  for (const { rates, factor, average, threshold } of cases) {
    it(`of ${rates.join(', ')} have a threshold ${factor} deviations below ${average}`, () => {
      const compared = compareRates(rates, factor);
      assert.ok(Math.abs(compared.average - average) < 1e-9, `${compared.average}`);
      assert.ok(Math.abs(compared.threshold - threshold) < 1e-9, `${compared.threshold}`);
    });
  }

  it('never make all hosts outliers', () => {
    const rates = fc.array(fc.double({ min: 0, max: 100, noNaN: true }), { minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(rates, fc.double({ min: 0, max: 5, noNaN: true }), (all, factor) => {
        const { threshold } = compareRates(all, factor);
        // Rounding aside: equal hosts are no outliers either.
        return all.some((rate) => rate >= threshold - 1e-9);
      }),
    );
  });
});
