// What the page makes of what it is told, without a browser.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { bytes, duration, percent, short } from '../../../src/page/format.ts';
import { PageHistory } from '../../../src/page/history.ts';
import { StatList } from '../../../src/page/stat-list.ts';

describe('numbers of the page', () => {
  const numbers: [number | null, string][] = [
    [null, '–'],
    [Number.NaN, '–'],
    [0, '0'],
    [0.001, '~0'],
    [0.42, '0.42'],
    [7.314, '7.31'],
    [9.999, '10.0'],
    [42, '42'],
    [42.04, '42.0'],
    [99.96, '100'],
    [731.4, '731'],
    [999.7, '1.00k'],
    [12_345, '12.3k'],
    [1_000_000, '1.00M'],
    [-3.5, '-3.50'],
  ];
  for (const [value, text] of numbers) it(`writes ${value} as ${text}`, () => assert.equal(short(value), text));

  it('shows no share as all that is not all', () => {
    assert.deepEqual([1, 0.99999, 0.9899, 0.5, 0, null].map(percent), ['100', '>99.99', '99.0', '50.0', '0', '–']);
  });

  it('writes sizes and times in their largest units', () => {
    assert.deepEqual([bytes(1.5 * 2 ** 20), bytes(3 * 2 ** 30), bytes(null)], ['1.5 MiB', '3.00 GiB', '–']);
    assert.deepEqual([0, 61, 7260, 90_000].map(duration), ['0 s', '1 min 1 s', '2 h 1 min', '1 d 1 h']);
  });
});

describe('the history of the page', () => {
  it('keeps five minutes, and knows nothing of points that it was not told', () => {
    const history = new PageHistory();
    history.begin(1, [1000, 2000]);
    assert.deepEqual(history.append('cluster', 'a', [[5, 6]], 2).all(0), [5, 6]);
    history.begin(2, [3000]);
    history.begin(4, [4000, 5000]);
    const late = history.append('cluster', 'a', [[8, 9]], 2);
    assert.deepEqual(late.all(0), [5, 6, null, 8, 9]);
    assert.deepEqual(history.append('listener', 'a', [[1, 2]], 2).all(0), [null, null, null, 1, 2]);
    assert.deepEqual([late.last(0), late.mean(0, 2), late.mean(1, 2)], [9, 8.5, null]);
    history.begin(
      500,
      Array.from({ length: 300 }, (_, at) => at * 1000),
    );
    assert.equal(history.append('cluster', 'a', [Array.from({ length: 300 }, () => 1)], 300).all(0).length, 300);
  });

  it('begins anew with a server that was started anew', () => {
    const history = new PageHistory();
    history.begin(100, [1000]);
    history.append('cluster', 'a', [[5]], 1);
    history.begin(0, [2000]);
    assert.deepEqual(history.times, [2]);
    assert.deepEqual(history.append('cluster', 'a', [[6]], 1).all(0), [6]);
  });
});

describe('the list of stats', () => {
  const told = { hash: 'x', names: ['a.rq_total', 'a.Active', 'b.rq_time', 'v'], kinds: 'cght', isCut: false };
  const rowsOf = (list: StatList, text: string, kind: string) =>
    list.matching(text, kind).places.map((at) => list.rowAt(at));
  const namesOf = (list: StatList, text: string, kind = ''): string[] =>
    rowsOf(list, text, kind).map(({ name }) => name);

  it('finds names by words in any case, by expressions and by kind', () => {
    const list = new StatList();
    list.take({ ...told, values: [1, 2, 3, 'text'] }, 1);
    assert.deepEqual(namesOf(list, ''), told.names);
    assert.deepEqual(namesOf(list, 'RQ a'), ['a.rq_total']);
    assert.deepEqual(namesOf(list, 'active'), ['a.Active']);
    assert.deepEqual(namesOf(list, '/^.\\.rq/'), ['a.rq_total', 'b.rq_time']);
    assert.deepEqual(namesOf(list, '', 'h'), ['b.rq_time']);
    assert.deepEqual(list.matching('/(/', ''), { places: [], isWrong: true });
  });

  it('knows how fast values change, also when stats have come between', () => {
    const list = new StatList();
    list.take({ ...told, values: [10, 5, 3, 'text'] }, 1);
    list.follow(rowsOf(list, '', ''));
    list.take({ hash: 'x', values: [30, 1, 3, 'text'], isCut: false }, 3);
    const changes = rowsOf(list, '', '').map(({ change }) => change);
    assert.deepEqual(changes, [10, -2, 0, null]);
    list.take({ ...told, hash: 'y', names: ['a.new', ...told.names], kinds: 'ccght', values: [7, 31, 1, 3, 't'] }, 4);
    assert.deepEqual(list.row('a.rq_total')?.change, 1);
    assert.deepEqual(list.row('a.new')?.change, null);
    assert.deepEqual(list.row('a.rq_total')?.values, [10, 1]);
    assert.deepEqual(list.row('a.Active')?.values, [1, 1]);
    // Counters that were reset.
    list.take({ hash: 'y', values: [0, 0, 1, 0, 't'], isCut: false }, 5);
    assert.equal(list.row('a.rq_total')?.change, null);
  });
});
