import assert from 'node:assert/strict';
import { test } from 'node:test';
import { statTable } from '../../../src/stats/index.ts';
import { statsFixture } from '../../support/stats.ts';

const TABLE = statTable({
  rq_total: 'counter',
  rq_active: 'gauge',
  rq_time: 'histogram:ms',
  rq_share: 'histogram:percent',
});

test('a scope reads its stats by name, over all threads, and looks nothing up for it', () => {
  const { store, workers } = statsFixture();
  const scope = store.scope('cluster.web.');
  const block = scope.allocate(TABLE);
  block.add('rq_total', 2);
  block.set('rq_active', 3);
  const worker = workers[0]!;
  worker.stats.values[worker.stats.base(block.cell) + TABLE.index.rq_total]! += 5;
  const { total } = store.lookups;
  assert.equal(scope.value('rq_total'), 7);
  assert.equal(scope.value('rq_active'), 3);
  assert.equal(Object.is(scope.value('upstream_rq_200'), 0), true);
  assert.equal(store.lookups.total, total);
  const counter = worker.stats.dynamicCounter('cluster.web.', 'upstream_rq_200');
  counter.add(4);
  worker.answer(store);
  assert.equal(scope.value('upstream_rq_200'), 4);
});

test('a scope reads what was merged of a histogram of its own', async () => {
  const { store } = statsFixture();
  const scope = store.scope('cluster.web.');
  const block = scope.allocate(TABLE);
  block.record('rq_time', 300);
  block.record('rq_share', 500_000);
  const times = scope.histogram(block, 'rq_time');
  assert.deepEqual([...times.quantiles('interval', [0.5])], [Number.NaN]);
  await store.mergeHistograms();
  assert.equal(times.name, 'cluster.web.rq_time');
  assert.deepEqual([...times.quantiles('interval', [0.5])], [305]);
  assert.equal(scope.histogram(block, 'rq_share').unit, 'percent');
});
