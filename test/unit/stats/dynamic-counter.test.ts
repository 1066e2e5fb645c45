// What a worker counts under a name of its own: before, after and without an answer of main.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DynamicCounter } from '../../../src/stats/dynamic-counter.ts';
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
