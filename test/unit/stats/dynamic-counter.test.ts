// What a worker counts under a name of its own: before, after and without an answer of main.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DynamicCounter } from '../../../src/stats/dynamic-counter.ts';
import { DynamicHistogram } from '../../../src/stats/dynamic-histogram.ts';
import { listing, statsFixture } from '../../support/stats.ts';

/** Cells of which that of block n is the n-th; none has been touched. */
function untouchedCells(): { readonly values: Float64Array; base(block: number): number } {
  return { values: new Float64Array(8).fill(-0), base: (block) => block };
}

test('what is counted before the answer comes goes into the cell with it, once', () => {
  const view = untouchedCells();
  const counter = new DynamicCounter(view);
  counter.add();
  counter.add(4);
  counter.resolve(3);
  counter.add(2);
  assert.deepEqual([...view.values], [-0, -0, -0, 7, -0, -0, -0, -0]);
});

test('a refused counter writes nowhere, neither what it had counted nor what comes', () => {
  const view = untouchedCells();
  const counter = new DynamicCounter(view);
  counter.add(5);
  counter.resolve(0);
  counter.add(2);
  assert.deepEqual([...view.values], Array(8).fill(-0));
});

test('only the first answer counts', () => {
  const view = untouchedCells();
  const counter = new DynamicCounter(view);
  counter.resolve(3);
  counter.resolve(0);
  counter.resolve(5);
  counter.add();
  assert.deepEqual([...view.values], [-0, -0, -0, 1, -0, -0, -0, -0]);

  const refused = new DynamicCounter(view);
  refused.resolve(0);
  refused.resolve(5);
  refused.add();
  assert.deepEqual([...view.values], [-0, -0, -0, 1, -0, -0, -0, -0]);
});

test('a counter that has been asked for and never counted does not show as used', async () => {
  const { store, workers } = statsFixture();
  store.scope('cluster.web.');
  workers[0]!.stats.dynamicCounter('cluster.web.', 'upstream_rq_200');
  workers[0]!.answer(store);
  assert.deepEqual(await listing(store), ['cluster.web.upstream_rq_200: 0']);
  assert.deepEqual(await listing(store, true), []);
});

/** Notes what is recorded, and where. */
function noted(): {
  readonly samples: (readonly [number, number])[];
  base(block: number): number;
  record(index: number, value: number): void;
} {
  const samples: (readonly [number, number])[] = [];
  return { samples, base: (block) => block * 10, record: (index, value) => void samples.push([index, value]) };
}

test('times that are recorded before the answer comes go into the histogram with it, once', () => {
  const view = noted();
  const histogram = new DynamicHistogram(view);
  histogram.record(7);
  histogram.record(8);
  assert.deepEqual(view.samples, []);
  histogram.resolve(3);
  histogram.resolve(4);
  histogram.record(9);
  assert.deepEqual(view.samples, [
    [30, 7],
    [30, 8],
    [30, 9],
  ]);
});

test('a refused histogram records nothing, and one without an answer keeps no more than a burst', () => {
  const view = noted();
  const refused = new DynamicHistogram(view);
  refused.record(1);
  refused.resolve(0);
  refused.record(2);
  assert.deepEqual(view.samples, []);
  const late = new DynamicHistogram(view);
  for (let value = 0; value < 10_000; value++) late.record(value);
  late.resolve(1);
  assert.equal(view.samples.length, 4096);
});

test('a histogram by name is one cell for all who ask, and goes with its scope', async () => {
  const { store, workers } = statsFixture({ workerCount: 2 });
  const scope = store.scope('cluster.web.');
  for (const [index, worker] of workers.entries()) {
    worker.stats.dynamicTime('cluster.web.', 'canary.upstream_rq_time').record(10 + index);
    worker.answer(store);
  }
  const { stats } = workers[0]!;
  const name = 'canary.upstream_rq_time';
  assert.equal(stats.dynamicTime('cluster.web.', name), stats.dynamicTime('cluster.web.', name));
  await store.mergeHistograms();
  const shown: string[] = [];
  for await (const batch of store.histograms()) shown.push(...batch.map((stat) => `${stat.name} ${stat.unit}`));
  assert.deepEqual(shown, ['cluster.web.canary.upstream_rq_time ms']);
  for await (const batch of store.histograms()) assert.equal(batch[0]!.count('cumulative'), 2);
  scope.close();
  for await (const batch of store.histograms()) assert.deepEqual(batch, []);
});
