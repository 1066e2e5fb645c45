// What the owners of one prefix share, and what happens to it.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { derivedTable } from '../../../src/stats/derived-table.ts';
import { statTable } from '../../../src/stats/index.ts';
import { type PrefixHost, PrefixStats } from '../../../src/stats/prefix-stats.ts';
import { listing, statsFixture } from '../../support/stats.ts';

const TABLE = statTable({
  cx_total: 'counter',
  rq_total: 'counter',
  cx_active: 'gauge',
  rq_active: 'gauge',
  cx_length_ms: 'histogram:ms',
  rq_time: 'histogram:ms',
});

/** A store that only hands out cells. */
function hostWith(parts: Partial<PrefixHost>): PrefixHost {
  return { allocateCells: () => 1, ...parts } as PrefixHost;
}

describe('a stat by name', () => {
  it('is the same cell for everyone who asks under the prefix', () => {
    const { store, owner } = statsFixture();
    const first = store.scope('a.').counter('single');
    const usedCells = owner.cells.usedCells;
    assert.equal(store.scope('a.').counter('single').cell, first.cell);
    assert.equal(owner.cells.usedCells, usedCells);
    assert.notEqual(store.scope('a.').gauge('single').cell, first.cell, 'a gauge is another stat than a counter');
  });

  it("is the cell of a table's row that has the name and the kind", () => {
    const { store } = statsFixture();
    const scope = store.scope('a.');
    const block = scope.allocate(TABLE);
    scope.counter('rq_total').add(3);
    scope.gauge('rq_active').set(5);
    assert.deepEqual([block.value('rq_total'), block.value('rq_active')], [3, 5]);
    scope.counter('rq_active').add(7);
    assert.equal(block.value('rq_active'), 5, 'the row is no counter');
    scope.counter('toString').add(1);
    assert.equal(store.value('a.toString'), 1);
  });

  it('is a text once, whoever sets it', () => {
    const { store } = statsFixture();
    const [first, second] = [store.scope('a.').textReadout('version'), store.scope('a.').textReadout('version')];
    second.set('2');
    first.set('1');
    assert.deepEqual(
      store.textReadouts().map(({ name, value }) => [name, value]),
      [['a.version', '1']],
    );
  });

  it('is worked out by the last who has said how', async () => {
    const { store } = statsFixture();
    const scope = store.scope('a.');
    const [gauges, others] = ['open', 'shut'].map((name) => derivedTable({ [name]: (value: number) => value }));
    scope.derive(gauges!, 1);
    scope.derive(others!, 3);
    assert.deepEqual(await listing(store), ['a.open: 1', 'a.shut: 3']);
    scope.derive(gauges!, 2);
    assert.deepEqual(await listing(store), ['a.open: 2', 'a.shut: 3']);
  });
});

describe('a prefix beside others', () => {
  it('loses the gauges of a lost worker and no other cell', async () => {
    const { store, workers } = statsFixture();
    const blocks = Array.from({ length: 4 }, (_, n) => store.scope(`c${n}.`).allocate(TABLE));
    const { stats } = workers[0]!;
    for (const block of blocks) {
      for (let cell = 0; cell < TABLE.histogramsAt; cell++) stats.values[stats.base(block.cell) + cell]! += cell + 1;
      stats.record(stats.base(block.cell) + TABLE.index.rq_time, 10);
    }
    store.clearWorker(0);
    await store.mergeHistograms();
    for (const block of blocks) {
      const values = (['cx_total', 'rq_total', 'cx_active', 'rq_active'] as const).map((name) => block.value(name));
      assert.deepEqual(values, [1, 2, 0, 0]);
    }
    for await (const batch of store.histograms()) {
      for (const histogram of batch) {
        assert.equal(histogram.count('cumulative'), histogram.name.endsWith('rq_time') ? 1 : 0, histogram.name);
      }
    }
  });

  it('has no cells merged but those of its histograms', () => {
    const stats = new PrefixStats('a.', hostWith({ allocateCells: () => 100 }));
    stats.block(TABLE);
    stats.single('counter', 'single');
    assert.deepEqual([...stats.histogramCells()], [104, 105]);
  });

  it('gives all its cells back when its last owner is gone', () => {
    const { store, owner } = statsFixture();
    const before = owner.cells.usedCells;
    const scope = store.scope('a.');
    scope.allocate(TABLE);
    scope.counter('first');
    scope.counter('second');
    scope.gauge('third');
    assert.equal(owner.cells.usedCells, before + TABLE.size + 3);
    scope.close();
    owner.reclaimer.reclaim(owner.reclaimer.mark());
    assert.equal(owner.cells.usedCells, before);
  });
});
