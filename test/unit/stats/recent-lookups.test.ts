import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RecentLookups } from '../../../src/stats/recent-lookups.ts';
import { statsFixture } from '../../support/stats.ts';

describe('recent lookups', () => {
  it('are counted always, and named while names are collected', () => {
    const lookups = new RecentLookups();
    lookups.record('before');
    assert.deepEqual([lookups.total, lookups.names, lookups.isCollecting], [1, [], false]);
    lookups.collect(true);
    for (const name of ['b', 'a', 'c', 'b', 'b', 'c']) lookups.record(name);
    lookups.collect(true);
    assert.deepEqual(
      [lookups.total, lookups.names],
      [
        7,
        [
          ['a', 1],
          ['c', 2],
          ['b', 3],
        ],
      ],
    );
    lookups.collect(false);
    lookups.record('after');
    assert.deepEqual([lookups.total, lookups.names], [8, []]);
    lookups.collect(true);
    lookups.record('x');
    lookups.clear();
    assert.deepEqual([lookups.total, lookups.names, lookups.isCollecting], [0, [], true]);
  });

  it('are those of the last hundred names', () => {
    const lookups = new RecentLookups();
    lookups.collect(true);
    for (let at = 0; at < 100; at++) lookups.record(`n${at}`);
    lookups.record('n0');
    lookups.record('new');
    const names = new Map(lookups.names);
    assert.deepEqual([names.size, names.get('n0'), names.has('n1'), names.get('new')], [100, 2, false, 1]);
  });

  it('are those of main and of workers, and go with a reset of the counters', () => {
    const { store, workers } = statsFixture();
    store.lookups.collect(true);
    const scope = store.scope('cluster.web.');
    scope.counter('a');
    scope.gauge('b');
    scope.textReadout('c');
    workers[0]!.stats.dynamicCounter('cluster.web.', 'upstream_rq_418');
    workers[0]!.answer(store);
    store.value('cluster.web.a');
    assert.deepEqual(store.lookups.names, [
      ['cluster.web.b', 1],
      ['cluster.web.c', 1],
      ['cluster.web.upstream_rq_418', 1],
      ['cluster.web.a', 2],
    ]);
    store.resetCounters();
    assert.deepEqual([store.lookups.total, store.lookups.names], [0, []]);
  });
});
