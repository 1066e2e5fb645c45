import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  DEFAULT_BUCKET_BOUNDS,
  type HistogramReader,
  LISTED_QUANTILES,
  type StatsStore,
  statTable,
} from '../../../src/stats/index.ts';
import { listing, statsFixture } from '../../support/stats.ts';

const TABLE = statTable({ rq_total: 'counter', rq_time: 'histogram:ms', budget_used: 'histogram:percent' });
const { rq_time, budget_used } = TABLE.index;

async function histogramsOf(store: StatsStore): Promise<Map<string, HistogramReader>> {
  const found = new Map<string, HistogramReader>();
  for await (const batch of store.histograms()) for (const histogram of batch) found.set(histogram.name, histogram);
  return found;
}

test('what main and the workers record is one histogram after a merge', async () => {
  const { store, workers } = statsFixture();
  const block = store.scope('http.in.').allocate(TABLE);
  const time = (await histogramsOf(store)).get('http.in.rq_time')!;
  for (const { stats } of workers) stats.record(stats.base(block.cell) + rq_time, 100);
  block.record('rq_time', 200);
  assert.equal(time.isUsed, false, 'until a merge has seen a sample');
  await store.mergeHistograms();
  assert.deepEqual([time.isUsed, time.unit, time.count('interval'), time.count('cumulative')], [true, 'ms', 3, 3]);
  assert.deepEqual(
    [...time.quantiles('cumulative', [0.25, 0.5, 1])].map((value) => value.toFixed(2)),
    ['103.33', '106.67', '205.00'],
  );
  assert.equal(time.buckets('cumulative', DEFAULT_BUCKET_BOUNDS)[6], 2, 'at most 100');
  await store.mergeHistograms();
  assert.ok(time.quantiles('interval', LISTED_QUANTILES).every(Number.isNaN));
  assert.equal(time.count('cumulative'), 3);
  assert.deepEqual(time.tags, [{ name: 'proxy.http_conn_manager_prefix', value: 'in' }]);
});

test('percent histograms are recorded as millionths and read as ratios', async () => {
  const { store } = statsFixture();
  const block = store.scope('cluster.a.').allocate(TABLE);
  block.record('budget_used', 250_000);
  await store.mergeHistograms();
  const budget = (await histogramsOf(store)).get('cluster.a.budget_used')!;
  assert.equal(budget.quantiles('cumulative', [0.5])[0], 0.255);
  assert.deepEqual(budget.bins('cumulative'), [{ left: 0.25, width: 0.01, count: 1 }]);
  assert.deepEqual([...budget.buckets('cumulative', [0.2, 0.25])], [0, 1]);
  assert.ok(Math.abs(budget.sum('cumulative') - 0.255) < 0.001);
});

test('values that have no bin are refused and counted, and nothing else suffers', async () => {
  const { store, workers } = statsFixture();
  const block = store.scope('a.').allocate(TABLE);
  const { stats } = workers[0]!;
  for (const value of [Number.NaN, -1, Number.POSITIVE_INFINITY, 12])
    stats.record(stats.base(block.cell) + rq_time, value);
  workers[0]!.answer(store);
  await store.mergeHistograms();
  assert.equal(store.value('stats.histogram_values_refused'), 3);
  assert.equal((await histogramsOf(store)).get('a.rq_time')!.count('cumulative'), 1);
  assert.throws(() => block.record('rq_time', -1), { code: 'WEIR_HISTOGRAM' });
});

test('a batch is recorded like its values one by one, refusals and waiting samples included', async () => {
  const { store, workers } = statsFixture();
  const { stats } = workers[0]!;
  const block = store.scope('a.').allocate(TABLE);
  const index = stats.base(block.cell) + rq_time;
  stats.recordMany(index, Float64Array.of(3, -1, 30, Number.NaN, 300));
  stats.recordMany(index, Uint32Array.of(3, 4_000_000_000));
  // Nothing is left of the first offer after these.
  for (let n = 0; n < 20; n++) stats.record(stats.base(store.scope(`b${n}.`).allocate(TABLE).cell) + rq_time, 1);
  stats.recordMany(index, Float64Array.of(5, 50_000, 500_000, 7));
  assert.ok(stats.waitingSamples >= 2);
  let isWritten = false;
  stats.whenWritten(() => {
    isWritten = true;
  });
  assert.ok(!isWritten);
  for (let n = 0; n < 4; n++) {
    await store.mergeHistograms();
    workers[0]!.answer(store);
    stats.resolve(
      { scope: 'stats.', name: 'histogram_memory_waits' },
      store.dynamicCell({ scope: 'stats.', name: 'histogram_memory_waits' }),
    );
  }
  await store.mergeHistograms();
  assert.equal(stats.waitingSamples, 0);
  assert.ok(isWritten);
  assert.equal((await histogramsOf(store)).get('a.rq_time')!.count('cumulative'), 9);
  assert.equal(store.value('stats.histogram_values_refused'), 2);
});

test('samples that find no memory wait for it and are not lost', async () => {
  const { store, workers } = statsFixture();
  const { stats } = workers[0]!;
  const blocks = Array.from({ length: 500 }, (_, n) => store.scope(`cluster.c${n}.`).allocate(TABLE));
  for (const block of blocks) {
    stats.record(stats.base(block.cell) + rq_time, 5);
    stats.record(stats.base(block.cell) + budget_used, 5);
  }
  await store.mergeHistograms();
  const counted = async (): Promise<number> =>
    [...(await histogramsOf(store)).values()].reduce((sum, histogram) => sum + histogram.count('cumulative'), 0);
  const before = await counted();
  assert.ok(before < 1000, 'the first offer is smaller than that');
  while (workers[0]!.asked.length > 0) {
    workers[0]!.answer(store);
    // The next question would come from a timer.
    stats.record(stats.base(blocks[0]!.cell) + rq_time, 5);
    await store.mergeHistograms();
  }
  for (let n = 0; n < 8; n++) {
    stats.resolve(
      { scope: 'stats.', name: 'histogram_memory_waits' },
      store.dynamicCell({ scope: 'stats.', name: 'histogram_memory_waits' }),
    );
  }
  await store.mergeHistograms();
  assert.ok((await counted()) >= 1000);
  assert.ok(store.value('stats.histogram_memory_waits')! >= 1);
});

test('the histograms of a closed scope give their memory back', async () => {
  const { store, owner, workers } = statsFixture();
  const { stats } = workers[0]!;
  let settled = 0;
  for (let n = 0; n < 3000; n++) {
    const scope = store.scope(`cluster.c${n}.`);
    const block = scope.allocate(TABLE);
    stats.record(stats.base(block.cell) + rq_time, n);
    block.record('rq_time', n);
    await store.mergeHistograms();
    scope.close();
    owner.reclaimer.reclaim(owner.reclaimer.mark());
    if (n === 2000) settled = owner.shared.byteLength;
  }
  assert.ok(owner.shared.byteLength <= settled + 4 * 1024 * 1024);
  assert.equal((await histogramsOf(store)).size, 0);
  assert.deepEqual(await listing(store), []);
});
