import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type HistogramForm, histogramText } from '../../../src/admin/render/histogram-text.ts';
import { statTable } from '../../../src/stats/index.ts';
import { statsFixture } from '../../support/stats.ts';

const TABLE = statTable({ h: 'histogram:ms' });

/** Text of a histogram after each of `intervals` has been recorded and merged. */
async function textOf(intervals: readonly (readonly number[])[], form: HistogramForm): Promise<string> {
  const { store } = statsFixture();
  const block = store.scope('').allocate(TABLE);
  for (const values of intervals) {
    for (const value of values) block.record('h', value);
    await store.mergeHistograms();
  }
  for await (const batch of store.histograms()) {
    for (const histogram of batch) if (histogram.name === 'h') return histogramText(histogram, form);
  }
  return '';
}

describe('a histogram as text', () => {
  it('says so when nothing was recorded', async () => {
    assert.equal(await textOf([[]], 'none'), 'h: No recorded values\n');
    assert.equal(await textOf([[]], 'cumulative'), 'h: No recorded values\n');
  });

  it('shows quantiles of the interval and since the start', async () => {
    const text = await textOf([[100], [200]], 'summary');
    const values: Record<string, string> = Object.fromEntries(
      text
        .trim()
        .slice(3)
        .split(' ')
        .map((pair) => pair.replace(')', '').split('(') as [string, string]),
    );
    assert.equal(values.P0, '205,105');
    assert.equal(values.P100, '205,205');
    assert.deepEqual(Object.keys(values), ['P0', 'P25', 'P50', 'P75', 'P90', 'P95', 'P99', 'P99.5', 'P99.9', 'P100']);
  });

  it('shows an empty interval as nan', async () => {
    assert.match(await textOf([[7], []], 'none'), /^h: P0\(nan,7\.05\) /);
  });

  it('counts each bucket up to its bound in cumulative form', async () => {
    assert.equal(
      await textOf([[300]], 'cumulative'),
      'h: B0.5(0,0) B1(0,0) B5(0,0) B10(0,0) B25(0,0) B50(0,0) B100(0,0) B250(0,0) B500(1,1) B1000(1,1) B2500(1,1) B5000(1,1) B10000(1,1) B30000(1,1) B60000(1,1) B300000(1,1) B600000(1,1) B1.8e+06(1,1) B3.6e+06(1,1)\n',
    );
  });

  it('counts each bucket by itself in disjoint form', async () => {
    const text = await textOf([[300, 20], [20]], 'disjoint');
    assert.match(text, / B10\(0,0\) B25\(1,2\) B50\(0,0\) /);
    assert.match(text, / B250\(0,0\) B500\(0,1\) B1000\(0,0\) /);
  });

  it('lists bins in detailed form', async () => {
    assert.match(
      await textOf([[7, 42]], 'detailed'),
      /^h:\n {2}totals=7,0\.1:1, 42,1:1\n {2}intervals=7,0\.1:1, 42,1:1\n {2}summary=P0\(/,
    );
  });
});
