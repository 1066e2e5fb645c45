// Main's own handles of stats, and what listings say of a stat.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { derivedTable } from '../../../src/stats/derived-table.ts';
import { type NumericStat, statTable } from '../../../src/stats/index.ts';
import { listing, statsFixture } from '../../support/stats.ts';

const TABLE = statTable({
  cx_total: 'counter',
  rq_total: 'counter',
  cx_active: 'gauge',
  rq_active: 'gauge',
  cx_length_ms: 'histogram:ms',
  rq_time: 'histogram:ms',
});

test('each row of a block is added to, set and recorded by itself', async () => {
  const { store } = statsFixture();
  const block = store.scope('a.').allocate(TABLE);
  block.add('cx_total');
  block.add('rq_total', 2);
  block.set('cx_active', 3);
  block.set('rq_active', 4);
  block.set('rq_active', 5);
  for (let n = 0; n < 3; n++) block.record('rq_time', 10);
  block.record('cx_length_ms', 10);
  await store.mergeHistograms();
  const expected = ['a.cx_active: 3', 'a.cx_total: 1', 'a.rq_active: 5', 'a.rq_total: 2'];
  assert.deepEqual(await listing(store), expected);
  for await (const batch of store.histograms()) {
    assert.deepEqual(
      batch.map((histogram) => [histogram.name, histogram.count('cumulative')]),
      [
        ['a.cx_length_ms', 1],
        ['a.rq_time', 3],
      ],
    );
  }
});

test('what nobody has touched reads 0', () => {
  const { store } = statsFixture();
  assert.equal(store.scope('a.').counter('single').value, 0);
  assert.equal(store.scope('a.').gauge('other').value, 0);
  assert.equal(store.scope('a.').allocate(TABLE).value('rq_total'), 0);
  assert.equal(store.value('a.rq_total'), 0);
});

test('a gauge that is worked out counts as used from when it was first seen to differ from 0', async () => {
  const { store } = statsFixture();
  let value = 0;
  const gauges = derivedTable<() => number>({ other: () => 0, open: (read) => read() });
  store.scope('a.').derive(gauges, () => value);
  const used = (): Promise<string[]> => listing(store, true);
  assert.deepEqual(await listing(store), ['a.open: 0', 'a.other: 0']);
  assert.deepEqual(await used(), []);
  value = 2;
  assert.deepEqual(await used(), ['a.open: 2']);
  value = 0;
  assert.deepEqual(await used(), ['a.open: 0']);

  store.scope('b.').derive(gauges, () => 1);
  assert.deepEqual((await used()).at(-1), 'b.open: 1', 'also when that is the first look');
});

test('stats that share a name show its kind and tags, and are used when one of them is', async () => {
  const { store } = statsFixture();
  const [outer, inner] = [store.scope('cluster.x.'), store.scope('cluster.x.retry.')];
  for (const scope of [outer, inner]) scope.counter(scope === outer ? 'retry.upstream_rq_200' : 'upstream_rq_200');
  const only = async (): Promise<NumericStat> => {
    for await (const batch of store.countersAndGauges()) {
      const found = batch.filter(({ name }) => name === 'cluster.x.retry.upstream_rq_200');
      assert.equal(found.length, 1);
      return found[0]!;
    }
    throw new Error('nothing is listed');
  };
  const stat = await only();
  assert.deepEqual(
    [stat.kind, stat.isUsed, stat.value, stat.extractedName],
    ['counter', false, 0, 'cluster.retry.upstream_rq'],
  );
  assert.deepEqual(
    stat.tags.map(({ name, value }) => `${name}=${value}`),
    ['proxy.cluster_name=x', 'proxy.response_code=200'],
  );
  inner.counter('upstream_rq_200').add(0);
  assert.equal(stat.isUsed, true);
  outer.counter('retry.upstream_rq_200').add(2);
  inner.close();
  assert.deepEqual([stat.isLive, stat.isUsed, stat.value], [true, true, 2]);
  outer.close();
  assert.deepEqual([stat.isLive, stat.isUsed], [false, false]);
});

test('a text that nobody has set is empty and unused', () => {
  const { store } = statsFixture();
  store.scope('a.').textReadout('version');
  assert.deepEqual(
    store.textReadouts().map(({ value, isUsed }) => [value, isUsed]),
    [['', false]],
  );
});
