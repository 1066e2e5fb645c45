import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { WeirError } from '../../../src/base/errors.ts';
import { PlainHistogram } from '../../../src/bench-cli/twins/histogram.ts';
import { PERCENT_SCALE, UNITS } from '../../../src/core/histogram.ts';
import { createCore, type Histogram } from '../../../src/core/index.ts';
import * as stats from '../../../src/stats/index.ts';
import { ReferenceHistogram } from '../../support/reference/histogram.ts';

const core = createCore({ maxMemoryMiB: 64 });
let made = 0;
const freshHistogram = (unit: stats.HistogramUnit = 'ms'): Histogram => {
  made += 1;
  return core.histogram(`histogram ${made}`, { unit });
};

const refused = (text: string) => (error: unknown) =>
  error instanceof WeirError && error.code === 'WEIR_CORE_ARGUMENT' && error.message === text;

describe('a counter of the core', () => {
  it('is made once per name, starts at 0 and adds 1 where nothing is said', () => {
    const counter = core.counter('requests');
    assert.equal(counter.value, 0n);
    counter.add();
    core.counter('requests').add(41);
    assert.equal(counter.value, 42n);
    assert.equal(core.counter('others').value, 0n);
  });

  it('stays exact beyond what a double can hold', () => {
    const steps = fc.array(fc.oneof(fc.maxSafeInteger().map(Math.abs), fc.nat(9)), { maxLength: 30 });
    let n = 0;
    fc.assert(
      fc.property(steps, (values) => {
        n += 1;
        const counter = core.counter(`large ${n}`);
        for (const value of values) counter.add(value);
        assert.equal(
          counter.value,
          values.reduce((sum, value) => sum + BigInt(value), 0n),
        );
      }),
    );
  });

  it('refuses what is no whole number of 0 or more, and stays as it was', () => {
    const counter = core.counter('refusing');
    for (const n of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      assert.throws(() => counter.add(n), refused(`n: ${n} is not a whole number from 0 to 9007199254740991`));
    }
    assert.equal(counter.value, 0n);
    assert.throws(() => core.counter(''), refused('name: "" is not a string of 1 character or more'));
  });
});

describe('a histogram of the core', () => {
  it('answers like the plain twin, whatever is recorded and in whatever way', () => {
    const sample = fc.oneof(
      fc.nat(300),
      fc.maxSafeInteger().map(Math.abs),
      fc.double({ min: 0, max: 1e6, noNaN: true }),
    );
    const qs = [0, 0.5, 0.9, 0.999, 1];
    const bounds = [0.5, 1, 10, 250, 10_000, 3_600_000];
    fc.assert(
      fc.property(fc.array(sample, { maxLength: 80 }), fc.boolean(), (values, asBatch) => {
        const histogram = freshHistogram();
        const twin = new ReferenceHistogram();
        for (const value of values) twin.record(value);
        if (asBatch) assert.equal(histogram.recordMany(Float64Array.from(values)), values.length);
        else for (const value of values) assert.equal(histogram.record(value), true);
        histogram.merge();
        for (const span of [histogram.interval, histogram.cumulative]) {
          assert.equal(span.count, values.length);
          assert.equal(span.sum, twin.sum());
          assert.equal(span.mean, values.length === 0 ? Number.NaN : twin.sum() / values.length);
          assert.deepEqual([...span.quantiles(qs)], twin.quantiles(qs));
          assert.deepEqual([...span.buckets(bounds)], twin.cumulativeBuckets(bounds));
          assert.deepEqual(span.bins(), twin.bins());
        }
      }),
      { numRuns: 60 },
    );
  });

  it('answers like the plain histogram that benchmarks compare it with', () => {
    const values = Float64Array.from({ length: 5000 }, (_, n) => Math.floor(10 ** ((12 * n) / 5000)));
    const histogram = freshHistogram();
    const [active, twin] = [new PlainHistogram(), new PlainHistogram()];
    histogram.recordMany(values);
    active.recordMany(values);
    histogram.merge();
    twin.mergeAndClear(active);
    const qs = Array.from({ length: 101 }, (_, n) => n / 100);
    assert.deepEqual(histogram.cumulative.quantiles(qs), twin.quantiles(qs));
    assert.deepEqual(
      histogram.cumulative.buckets(stats.DEFAULT_BUCKET_BOUNDS),
      twin.cumulativeBuckets(stats.DEFAULT_BUCKET_BOUNDS),
    );
  });

  it('keeps the interval apart from all time', () => {
    const histogram = freshHistogram();
    histogram.recordMany(Uint32Array.of(5, 50, 500));
    histogram.merge();
    histogram.record(7);
    histogram.merge();
    assert.deepEqual([histogram.interval.count, histogram.cumulative.count], [1, 4]);
    histogram.merge();
    assert.deepEqual([histogram.interval.count, histogram.interval.mean], [0, Number.NaN]);
    assert.deepEqual([...histogram.interval.quantiles([0.5, 1])], [Number.NaN, Number.NaN]);
  });

  it('takes in far more values and decades than its first supply of memory', () => {
    const many = createCore();
    const values = Float64Array.from({ length: 40_000 }, (_, n) => 10 ** (n % 15));
    for (let n = 0; n < 50; n += 1) {
      const histogram = many.histogram(`h${n}`);
      assert.equal(histogram.recordMany(values), values.length);
      histogram.merge();
      assert.equal(histogram.cumulative.count, values.length);
    }
  });

  it('gives disjoint buckets that add up to the cumulative ones', () => {
    const histogram = freshHistogram('bytes');
    histogram.recordMany(Uint32Array.from({ length: 1000 }, (_, n) => n * 7));
    histogram.merge();
    const bounds = [10, 100, 1000, 5000];
    let sum = 0;
    const added = histogram.cumulative.buckets(bounds, 'disjoint').map((count) => {
      sum += count;
      return sum;
    });
    assert.deepEqual(added, histogram.cumulative.buckets(bounds));
  });

  it('notices that the caller has changed its list of bounds', () => {
    const histogram = freshHistogram();
    histogram.recordMany(Uint32Array.of(1, 20, 300));
    histogram.merge();
    const bounds = [1, 10];
    assert.deepEqual([...histogram.cumulative.buckets(bounds)], [1, 1]);
    bounds[1] = 1000;
    assert.deepEqual([...histogram.cumulative.buckets(bounds)], [1, 3]);
  });

  it('answers quantiles in the order asked for', () => {
    const histogram = freshHistogram();
    histogram.recordMany(Uint32Array.from({ length: 100 }, (_, n) => n));
    histogram.merge();
    const [high, low, middle] = histogram.cumulative.quantiles([1, 0, 0.5]);
    assert.deepEqual([low, middle, high], [...histogram.cumulative.quantiles([0, 0.5, 1])]);
    assert.ok(low! < middle! && middle! < high!);
  });

  it('keeps fractions of percent values, in the scale of the proxy', () => {
    assert.equal(PERCENT_SCALE, stats.PERCENT_SCALE);
    const histogram = freshHistogram('percent');
    assert.equal(histogram.recordMany(Float64Array.of(0.57, 0.29)), 2);
    histogram.record(1);
    histogram.merge();
    const { cumulative } = histogram;
    assert.deepEqual(
      cumulative.bins().map(({ left }) => left),
      [0.29, 0.57, 1],
    );
    assert.deepEqual([...cumulative.buckets([0.3, 0.6, 2])], [1, 2, 3]);
    assert.ok(Math.abs(cumulative.sum - 1.86) < 0.1);
    assert.ok(cumulative.quantiles([0.5])[0]! > 0.57 && cumulative.quantiles([0.5])[0]! < 0.58);
  });

  it('refuses and counts what has no bin, one by one and in batches', () => {
    const histogram = freshHistogram();
    for (const value of [Number.NaN, -1, Number.POSITIVE_INFINITY, 2 ** 53 + 2]) {
      assert.equal(histogram.record(value), false);
    }
    assert.equal(histogram.recordMany(Float64Array.of(1, Number.NaN, 2, -0.5)), 2);
    assert.equal(histogram.refusedCount, 6);
    histogram.merge();
    assert.equal(histogram.cumulative.count, 2);
    assert.equal(freshHistogram().refusedCount, 0);
  });

  it('refuses questions that have no answer, naming what is wrong', () => {
    const histogram = freshHistogram();
    const { cumulative } = histogram;
    const untyped = histogram as unknown as { recordMany(values: unknown): number };
    assert.throws(() => cumulative.quantiles([0.5, 1.5]), refused('qs[1]: 1.5 is not a number from 0 to 1'));
    assert.throws(() => cumulative.quantiles(Array(513).fill(0)), refused('qs: 513 entries exceed the limit 512'));
    assert.throws(() => cumulative.buckets([5, 1]), refused('bounds[1]: 1 is negative or less than the one before'));
    assert.throws(
      () => cumulative.buckets([1], 'both' as 'disjoint'),
      refused('mode: "both" is none of cumulative, disjoint'),
    );
    assert.throws(
      () => untyped.recordMany([1, 2]),
      refused('values: a list is neither a Float64Array nor a Uint32Array'),
    );
  });

  it('has one unit for life', () => {
    const histogram = core.histogram('sized', { unit: 'bytes' });
    assert.equal(core.histogram('sized'), histogram);
    assert.equal(histogram.unit, 'bytes');
    assert.equal(core.histogram('plain').unit, 'count');
    assert.throws(
      () => core.histogram('sized', { unit: 'ms' }),
      refused('unit: ms is not the unit that "sized" was made with, bytes'),
    );
    assert.throws(
      () => core.histogram('x', { unit: 's' as 'ms' }),
      refused(`unit: "s" is none of ${UNITS.join(', ')}`),
    );
  });
});
