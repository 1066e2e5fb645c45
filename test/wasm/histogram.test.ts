import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ARENA_OFFER, CELLS_PER_SLAB, HISTOGRAM_BLOCK_SIZE } from '../../assembly/layout/shared-memory.ts';
import { WeirError } from '../../src/base/errors.ts';
import { arenaAddress } from '../../src/wasm/histogram-arenas.ts';
import { binWidth, leftEdge, positionAfter } from '../../src/wasm/histogram-bins.ts';
import { HistogramMerger } from '../../src/wasm/histogram-merger.ts';
import { HistogramRecorder, isRecordable, MAX_HISTOGRAM_VALUE } from '../../src/wasm/histogram-recorder.ts';
import { compileModule } from '../../src/wasm/instantiate.ts';
import { SharedMemory, workerSlab } from '../../src/wasm/shared-memory.ts';
import { SharedMemoryOwner } from '../../src/wasm/shared-memory-owner.ts';
import { HistogramSpan } from '../../src/wasm/stats-exports.ts';
import { ReferenceHistogram } from '../support/reference/histogram.ts';

const module = compileModule('stats');
const QUANTILES = [0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 1];
const BOUNDS = [
  0.5, 1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000, 600_000, 1_800_000,
  3_600_000,
];
const { interval, cumulative } = HistogramSpan;

class Fixture {
  readonly owner: SharedMemoryOwner;
  readonly merger: HistogramMerger;
  readonly cell: number;
  readonly recorders: readonly HistogramRecorder[];

  constructor(workerCount = 1) {
    this.owner = new SharedMemoryOwner({ workerCount, maxBytes: 64 * 1024 * 1024 });
    this.merger = new HistogramMerger(this.owner, module);
    this.cell = this.owner.cells.allocate(1);
    this.recorders = Array.from(
      { length: workerCount },
      (_, index) => new HistogramRecorder(SharedMemory.attach(this.owner.memory, index), module),
    );
  }

  record(value: number, worker = 0, cell = this.cell): boolean {
    return this.recorders[worker]!.record(cell + (worker + 1) * CELLS_PER_SLAB, value);
  }

  recordMany(values: Float64Array | Uint32Array, worker = 0): number {
    return this.recorders[worker]!.recordMany(this.cell + (worker + 1) * CELLS_PER_SLAB, values);
  }

  /** Merges and gives the quantiles of all samples. */
  mergedQuantiles(qs = QUANTILES): number[] {
    this.merger.merge(this.cell);
    return [...this.merger.quantiles(this.cell, cumulative, qs)];
  }
}

function histogramOf(...values: number[]): Fixture {
  const fixture = new Fixture();
  for (const value of values) assert.ok(fixture.record(value));
  fixture.merger.merge(fixture.cell);
  return fixture;
}

/** Length of main's offer to a worker. */
function offeredBlocks({ i32 }: SharedMemory, worker: number): number {
  let length = 0;
  let block = i32[(arenaAddress(workerSlab(worker)) + ARENA_OFFER) / 4]!;
  for (; block !== 0; block = i32[block / 4]!) length += 1;
  return length;
}

test('one sample of 100 gives 105 for every quantile', () => {
  assert.deepEqual(
    histogramOf(100).mergedQuantiles(),
    QUANTILES.map(() => 105),
  );
});

test('single values fall into the bins of two significant digits', () => {
  const cases: [number, number, number][] = [
    [0, 0, 0],
    [7, 7, 0.1],
    [7.9, 7, 0.1],
    [10, 10, 1],
    [42, 42, 1],
    [99, 99, 1],
    [109, 100, 10],
    [110, 110.000_000_000_000_01, 10],
    [230, 229.999_999_999_999_97, 10],
    [999, 990, 10],
    [1000, 1000, 100],
    [65_535, 65_000, 1000],
    [4_294_967_295, 4_200_000_000, 100_000_000],
    [4_294_967_296, 4_200_000_000, 100_000_000],
    [999_999_999_999, 990_000_000_000, 10_000_000_000],
    [MAX_HISTOGRAM_VALUE, 9e15, 1e14],
  ];
  for (const [value, left, width] of cases) {
    const { merger, cell } = histogramOf(value);
    assert.deepEqual(merger.bins(cell, cumulative), [{ left, width, count: 1 }], `${value}`);
  }
});

test('each power of ten and its neighbours are told apart', () => {
  for (let exponent = 1; exponent <= 15; exponent++) {
    const power = 10 ** exponent;
    const below = histogramOf(power - 1);
    const at = histogramOf(power);
    assert.equal(at.merger.bins(at.cell, cumulative)[0]!.left, power);
    assert.ok(below.merger.bins(below.cell, cumulative)[0]!.left < power);
  }
});

test('27 samples of 1 and 11 of 2 have the sum of their bins', () => {
  const { merger, cell } = histogramOf(...Array(27).fill(1), ...Array(11).fill(2));
  const twin = new ReferenceHistogram();
  twin.record(1, 27);
  twin.record(2, 11);
  assert.equal(merger.sum(cell, cumulative), twin.sum());
  assert.equal(merger.count(cell, cumulative), 38);
});

test('a bound counts the bin that begins at it, as long as the edge is not rounded above it', () => {
  const { merger, cell } = histogramOf(1000, 1099, 1100, 110);
  assert.deepEqual([...merger.cumulativeBuckets(cell, cumulative, [110, 999, 1000, 1100])], [0, 1, 3, 4]);
});

test('a histogram that was never recorded has no memory, no samples, and NaN for quantiles', () => {
  const { merger, cell } = new Fixture();
  assert.equal(merger.merge(cell), false);
  assert.equal(merger.isUsed(cell), false);
  assert.deepEqual([...merger.quantiles(cell, interval, [0.5, 1])], [Number.NaN, Number.NaN]);
  assert.deepEqual([...merger.cumulativeBuckets(cell, interval, [1, 2])], [0, 0]);
  assert.equal(merger.sum(cell, cumulative), 0);
  assert.deepEqual(merger.bins(cell, cumulative), []);
});

test('the interval holds what came between two merges, the cumulative counts everything', () => {
  const fixture = histogramOf(5, 5, 300);
  const { merger, cell } = fixture;
  assert.equal(merger.count(cell, interval), 3);
  fixture.record(70_000);
  merger.merge(cell);
  assert.deepEqual(merger.bins(cell, interval), [{ left: 70_000, width: 1000, count: 1 }]);
  assert.equal(merger.count(cell, cumulative), 4);
  merger.merge(cell);
  assert.equal(merger.count(cell, interval), 0);
  assert.deepEqual([...merger.quantiles(cell, interval, [0.5])], [Number.NaN]);
  assert.equal(merger.count(cell, cumulative), 4);
});

test('counts of a worker that pass 2^32 go on in the cumulative counts', () => {
  const fixture = histogramOf(5);
  const { merger, cell, owner } = fixture;
  const head = owner.shared.i32[(cell + CELLS_PER_SLAB) * 2]!;
  const bin = (owner.shared.i32[head / 4]! >>> 2) + 5;
  owner.shared.i32[bin] = 2 ** 32 - 1;
  merger.merge(cell);
  assert.equal(merger.count(cell, cumulative), 2 ** 32 - 1);
  fixture.record(5);
  fixture.record(5);
  merger.merge(cell);
  assert.equal(owner.shared.i32[bin], 1, 'the worker has wrapped');
  assert.equal(merger.count(cell, interval), 2);
  assert.deepEqual(merger.bins(cell, cumulative), [{ left: 5, width: 0.1, count: 2 ** 32 + 1 }]);
  const buckets = merger.cumulativeBuckets(cell, cumulative, [4, 5, 90]);
  assert.deepEqual([...buckets], [0, 2 ** 32 + 1, 2 ** 32 + 1]);
});

const sample = fc.oneof(
  fc.integer({ min: 0, max: 120 }),
  fc.integer({ min: 0, max: 20_000 }),
  fc.double({ min: 0, max: 1e6, noNaN: true }),
  fc.maxSafeInteger().map(Math.abs),
  fc.integer({ min: 0, max: 15 }).map((exponent) => 10 ** exponent),
);

test('whatever is recorded by several workers, all statistics equal those of the plain twin bit for bit', () => {
  const rounds = fc.array(fc.array(fc.tuple(sample, fc.nat(2)), { maxLength: 60 }), { minLength: 1, maxLength: 4 });
  const qs = fc
    .array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 12 })
    .map((list) => [...QUANTILES, ...list].sort((a, b) => a - b));
  fc.assert(
    fc.property(rounds, qs, fc.boolean(), (merges, quantiles, asBatch) => {
      const fixture = new Fixture(3);
      const { merger, cell } = fixture;
      const all = new ReferenceHistogram();
      for (const samples of merges) {
        const recent = new ReferenceHistogram();
        for (const worker of [0, 1, 2]) {
          const values = samples.filter(([, by]) => by === worker).map(([value]) => value);
          if (asBatch && values.length > 0) {
            assert.equal(fixture.recordMany(Float64Array.from(values), worker), values.length);
          } else for (const value of values) assert.ok(fixture.record(value, worker));
          for (const value of values) recent.record(value);
        }
        all.add(recent);
        merger.merge(cell);
        for (const [twin, span] of [
          [recent, interval],
          [all, cumulative],
        ] as const) {
          assert.deepEqual(merger.bins(cell, span), twin.bins());
          assert.equal(merger.count(cell, span), twin.count);
          assert.equal(merger.sum(cell, span), twin.sum());
          assert.deepEqual([...merger.quantiles(cell, span, quantiles)], twin.quantiles(quantiles));
          assert.deepEqual([...merger.cumulativeBuckets(cell, span, BOUNDS)], twin.cumulativeBuckets(BOUNDS));
        }
      }
    }),
    { numRuns: 150 },
  );
});

test('quantiles ascend with q and lie within one bin of the exact sample', () => {
  const samples = fc.array(fc.integer({ min: 1, max: 5_000_000 }), { minLength: 1, maxLength: 300 });
  fc.assert(
    fc.property(samples, (values) => {
      const found = histogramOf(...values).mergedQuantiles();
      const sorted = values.toSorted((a, b) => a - b);
      for (const [at, q] of QUANTILES.entries()) {
        if (at > 0) assert.ok(found[at]! >= found[at - 1]!);
        const exact = sorted[Math.max(0, Math.ceil(q * sorted.length - 1e-9) - 1)]!;
        assert.ok(Math.abs(found[at]! - exact) <= Math.max(0.1, exact * 0.1), `q ${q}: ${found[at]} for ${exact}`);
      }
    }),
    { numRuns: 60 },
  );
});

test('edges, widths and places of bounds agree with each other', () => {
  assert.equal(positionAfter(0), 1);
  assert.equal(positionAfter(Number.MAX_VALUE), 1500);
  for (let position = 1; position < 1500; position++) {
    if (position >= 100 && position % 100 < 10) continue;
    assert.equal(positionAfter(leftEdge(position)), position + 1);
    assert.ok(binWidth(position) > 0);
  }
});

test('values without a bin are told beforehand, and questions out of order are refused', () => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, -1, 2 ** 53 + 2]) assert.equal(isRecordable(value), false);
  for (const value of [0, -0, 0.5, 2 ** 53]) assert.equal(isRecordable(value), true);
  const { merger, cell } = histogramOf(1);
  const refused = (text: RegExp) => (error: unknown) => error instanceof WeirError && text.test(error.message);
  assert.throws(() => merger.quantiles(cell, interval, [0.5, 0.25]), refused(/quantiles\[1\]: 0.25/));
  assert.throws(() => merger.quantiles(cell, interval, [0.5, 1.01]), refused(/quantiles\[1\]: 1.01 .* to 1$/));
  assert.throws(() => merger.quantiles(cell, interval, [Number.NaN]), refused(/quantiles\[0\]: NaN/));
  assert.throws(() => merger.cumulativeBuckets(cell, interval, [-1]), refused(/bounds\[0\]: -1/));
  assert.throws(() => merger.quantiles(cell, interval, Array(513).fill(0)), refused(/513 exceed the limit 512/));
});

test('bounds are told apart by value, in any order of asking', () => {
  const { merger, cell } = histogramOf(5, 50, 500);
  const bounds = [10, 100];
  assert.deepEqual([...merger.cumulativeBuckets(cell, cumulative, bounds)], [1, 2]);
  bounds[0] = 4;
  assert.deepEqual([...merger.cumulativeBuckets(cell, cumulative, bounds)], [0, 2], 'a list that was changed');
  for (let n = 0; n < 20; n++) {
    assert.deepEqual(
      [...merger.cumulativeBuckets(cell, cumulative, [n * 10, 1000 + n])],
      [n > 0 ? (n < 5 ? 1 : 2) : 0, 3],
    );
  }
  assert.deepEqual([...merger.cumulativeBuckets(cell, cumulative, bounds)], [0, 2]);
});

test('disjoint buckets add up to the cumulative ones, and what is beyond the last bound is told', () => {
  const bounds = fc
    .uniqueArray(fc.integer({ min: 0, max: 50_000 }), { minLength: 1, maxLength: 30 })
    .map((list) => list.sort((a, b) => a - b));
  fc.assert(
    fc.property(fc.array(sample, { minLength: 1, maxLength: 200 }), bounds, (values, asked) => {
      const { merger, cell } = histogramOf(...values);
      const whole = [...merger.cumulativeBuckets(cell, cumulative, asked)];
      let sum = 0;
      const added = [...merger.disjointBuckets(cell, cumulative, asked)].map((count) => {
        assert.ok(count >= 0);
        sum += count;
        return sum;
      });
      assert.deepEqual(added, whole);
      const last = asked.at(-1)!;
      const beyond = merger.bins(cell, cumulative).filter(({ left }) => left >= last);
      assert.equal(
        merger.outOfBound(cell, cumulative, last),
        beyond.reduce((total, { count }) => total + count, 0),
      );
    }),
    { numRuns: 60 },
  );
});

test('a bound of 0 is one like any other', () => {
  const { merger, cell } = histogramOf(0, 0, 7);
  assert.deepEqual([...merger.disjointBuckets(cell, cumulative, [0, 10])], [2, 1]);
  assert.equal(merger.outOfBound(cell, cumulative, 0), 3);
});

test('the mean is the sum over the count, and NaN without samples', () => {
  const { merger, cell } = histogramOf(10, 20, 30);
  assert.equal(merger.mean(cell, cumulative), merger.sum(cell, cumulative) / 3);
  merger.merge(cell);
  assert.equal(merger.mean(cell, interval), Number.NaN);
});

test('one by one, in batches of doubles or of integers, by one thread or by two: the counts are the same', () => {
  const whole = fc.oneof(fc.nat(1200), fc.nat(3_000_000), fc.nat(2 ** 32 - 1), fc.constantFrom(2 ** 31, 2 ** 32 - 1));
  fc.assert(
    fc.property(fc.array(whole, { maxLength: 700 }), fc.nat(700), (values, cut) => {
      const [singly, doubles, integers] = [new Fixture(2), new Fixture(2), new Fixture(2)];
      for (const [at, value] of values.entries()) assert.ok(singly.record(value, at < cut ? 0 : 1));
      doubles.recordMany(Float64Array.from(values.slice(0, cut)), 1);
      doubles.recordMany(Float64Array.from(values.slice(cut)), 0);
      assert.equal(integers.recordMany(Uint32Array.from(values)), values.length);
      const bins = [singly, doubles, integers].map(({ merger, cell }) => {
        merger.merge(cell);
        return merger.bins(cell, interval);
      });
      const twin = new ReferenceHistogram();
      for (const value of values) twin.record(value);
      for (const found of bins) assert.deepEqual(found, twin.bins());
    }),
    { numRuns: 60 },
  );
});

test('each bin begins at its edge and ends before the next, by each way of recording', () => {
  const edges = Array.from({ length: 900 }, (_, at) => (10 + (at % 90)) * 10 ** Math.floor(at / 90));
  for (const edge of edges) {
    const values = [edge, edge + (edge - 1) / 10 ** 13, edge - 1].map(Math.floor).filter((value) => value <= 2 ** 53);
    const [singly, batch] = [new Fixture(), new Fixture()];
    const twin = new ReferenceHistogram();
    for (const value of values) {
      singly.record(value);
      twin.record(value);
    }
    batch.recordMany(Float64Array.from(values));
    for (const { merger, cell } of [singly, batch]) {
      merger.merge(cell);
      assert.deepEqual(merger.bins(cell, cumulative), twin.bins(), `${edge}`);
    }
  }
});

test('a batch takes the values that have a bin and counts those it refuses', () => {
  const fixture = new Fixture();
  const none = [Number.NaN, -1, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 2 ** 53 + 2, -0.5];
  const values = Float64Array.from(none.flatMap((value, at) => [at, value]));
  assert.equal(fixture.recordMany(values.subarray(1)), values.length - 1, 'all seen, at odd places and even ones');
  assert.equal(fixture.recorders[0]!.refusedCount, none.length);
  fixture.merger.merge(fixture.cell);
  assert.deepEqual(
    fixture.merger.bins(fixture.cell, cumulative).map(({ left, count }) => [left, count]),
    [1, 2, 3, 4, 5].map((value) => [value, 1]),
  );
  assert.equal(fixture.recordMany(Float64Array.of(-0, 2 ** 53)), 2);
  assert.equal(fixture.recorders[0]!.refusedCount, none.length);
});

test('a batch that finds no block says how far it came, and the rest can follow', () => {
  const fixture = new Fixture();
  const cells = Array.from({ length: 10 }, () => fixture.owner.cells.allocate(1));
  for (const cell of cells) assert.ok(fixture.record(3, 0, cell));
  const values = Float64Array.from({ length: 700 }, (_, at) => 10 ** Math.floor(at / 50));
  const seen = fixture.recordMany(values);
  // Powers of ten share a page with those below 100; six blocks are left.
  assert.equal(seen, 350);
  fixture.merger.arenas.refillAll();
  assert.equal(fixture.recordMany(values.subarray(seen)), values.length - seen);
  fixture.merger.merge(fixture.cell);
  assert.equal(fixture.merger.count(fixture.cell, cumulative), 700);
});

test('a thread that has not seen the memory grow counts into what it has not mapped', () => {
  const fixture = new Fixture();
  assert.ok(fixture.record(5));
  fixture.owner.heap.allocate(8 * 1024 * 1024);
  // Other histograms use up the offers from the old part of the memory.
  for (let n = 0; n < 200; n++) {
    if (!fixture.record(3, 0, fixture.owner.cells.allocate(1))) fixture.merger.arenas.refillAll();
  }
  for (const value of [333, 333, 3333, 333]) assert.ok(fixture.record(value));
  fixture.merger.merge(fixture.cell);
  assert.equal(fixture.merger.count(fixture.cell, cumulative), 5);
});

test('a worker whose blocks are used up is told so, and goes on once main has made another offer', () => {
  const fixture = new Fixture();
  const cells = Array.from({ length: 200 }, () => fixture.owner.cells.allocate(1));
  const taken = cells.filter((cell) => fixture.record(3, 0, cell));
  assert.equal(taken.length, 16, 'the first offer');
  assert.equal(fixture.record(4), false);
  fixture.merger.arenas.refillAll();
  assert.equal(fixture.record(4), true);
  assert.equal(cells.slice(16).filter((cell) => fixture.record(3, 0, cell)).length, 31, 'twice as many');
});

test('ten thousand histograms that come and go leave no block behind', () => {
  const fixture = new Fixture();
  const { owner, merger } = fixture;
  let settled = 0;
  for (let n = 0; n < 10_000; n++) {
    const cell = owner.cells.allocate(1);
    assert.ok(fixture.record(3, 0, cell) && fixture.record(n + 100, 0, cell));
    merger.merge(cell);
    assert.equal(merger.count(cell, cumulative), 2, 'bins of another histogram are not seen');
    merger.release(cell);
    owner.cells.free(cell, 1);
    merger.arenas.refillAll();
    if (n === 100) settled = owner.heap.usedBytes;
  }
  assert.equal(owner.heap.usedBytes, settled);
});

test('an offer is no longer than what the histograms of its slab have, however many have come and gone', () => {
  const FIRST_OFFER = 16;
  const coming = fc.record({
    worker: fc.nat(1),
    decades: fc.uniqueArray(fc.nat(6), { minLength: 1 }),
    isMerged: fc.boolean(),
    isRefilled: fc.boolean(),
  });
  const histograms = fc.array(coming, { minLength: 1, maxLength: 2000, size: 'max' });
  fc.assert(
    fc.property(histograms, fc.integer({ min: 1, max: 40 }), (sequence, mostAtOnce) => {
      const fixture = new Fixture(2);
      const { owner, merger } = fixture;
      const living: { cell: number; worker: number; blocks: number }[] = [];
      const used = [0, 0];
      const refill = (worker: number): void => {
        if (offeredBlocks(owner.shared, worker) > 0) return;
        merger.arenas.refill(workerSlab(worker));
        const length = offeredBlocks(owner.shared, worker);
        assert.ok(length >= FIRST_OFFER, `${length} blocks`);
        assert.ok(length <= FIRST_OFFER + used[worker]!, `${length} blocks, ${used[worker]} are in use`);
      };
      for (const { worker, decades, isMerged, isRefilled } of sequence) {
        const cell = owner.cells.allocate(1);
        // One block for each decade.
        for (const decade of decades) {
          const value = 10 ** (decade + 1);
          if (!fixture.record(value, worker, cell)) {
            refill(worker);
            assert.ok(fixture.record(value, worker, cell));
          }
          used[worker]! += 1;
        }
        living.push({ cell, worker, blocks: decades.length });
        if (isMerged) merger.merge(cell);
        if (living.length > mostAtOnce) {
          const oldest = living.shift()!;
          merger.release(oldest.cell);
          owner.cells.free(oldest.cell, 1);
          used[oldest.worker]! -= oldest.blocks;
        }
        if (isRefilled) refill(worker);
      }
    }),
    { numRuns: 20 },
  );
});

test('latencies of ten thousand requests cost a worker less than 2.3 KB', () => {
  const fixture = new Fixture();
  let state = 7;
  const uniform = (): number => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
  // Log-normal around 20 ms, as latencies are: nearly all between 1 ms and 1 s.
  for (let n = 0; n < 10_000; n++) {
    const normal = Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
    fixture.record(Math.min(9999, 20 * Math.exp(normal)));
  }
  const { i32 } = fixture.owner.shared;
  const head = i32[(fixture.cell + CELLS_PER_SLAB) * 2]! / 4;
  const pages = Array.from({ length: 15 }, (_, page) => i32[head + page]!).filter((bins) => bins !== 0).length;
  assert.ok(pages * HISTOGRAM_BLOCK_SIZE <= 2300, `${pages} pages`);
});
