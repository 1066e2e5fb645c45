import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { judge } from '../../../src/bench-cli/gate.ts';
import { quantile } from '../../../src/bench-cli/measure.ts';
import { makeReport, parseBaseline, type ReportRow } from '../../../src/bench-cli/report.ts';
import { formatNs, significant, textTable } from '../../../src/bench-cli/text-table.ts';

function row(name: string, ratio: number): ReportRow {
  return { suite: 'maglev', name, ratio, subjectNs: 1, twinNs: 1 / ratio, spread: 0, coldNs: 1 };
}

function baselineOf(rows: readonly ReportRow[]) {
  const outcome = parseBaseline(JSON.stringify(makeReport('0.1.0', 0, { rounds: 3, roundMs: 1 }, rows)));
  assert.ok('baseline' in outcome);
  return outcome.baseline;
}

describe('the gate', () => {
  it('compares ratios, not times: a machine ten times slower passes', () => {
    const baseline = baselineOf([row('lookup', 0.5)]);
    const slowMachine = { ...row('lookup', 0.5), subjectNs: 10, twinNs: 20 };
    assert.deepEqual(judge([slowMachine], baseline, 1.1), { compared: 1, regressions: [], unknown: [] });
  });

  it('lists what is slower than allowed, the worst first, and lets the limit itself pass', () => {
    const baseline = baselineOf([row('a', 1), row('b', 0.1), row('c', 2)]);
    const verdict = judge([row('a', 1.2), row('b', 0.2), row('c', 2.2)], baseline, 1.1);
    assert.deepEqual(
      verdict.regressions.map(({ id, factor }) => [id, factor]),
      [
        ['maglev: b', 2],
        ['maglev: a', 1.2],
      ],
    );
  });

  it('names rows that the baseline does not know, and ignores those that this run left out', () => {
    const verdict = judge([row('new', 9)], baselineOf([row('old', 1)]), 1.1);
    assert.deepEqual(verdict, { compared: 0, regressions: [], unknown: ['maglev: new'] });
  });
});

describe('a baseline', () => {
  const good = makeReport('0.1.0', 0, { rounds: 3, roundMs: 1 }, [row('lookup', 1)]);
  const faults: { name: string; text: string; problem: RegExp }[] = [
    { name: 'no JSON', text: '{', problem: /^is not JSON: / },
    { name: 'another document', text: '{"a":1}', problem: /^is not a report of weir-bench/ },
    { name: 'a list', text: '[]', problem: /^is not a report of weir-bench/ },
    { name: 'another format', text: JSON.stringify({ ...good, format: 2 }), problem: /^has format 2, .* reads 1/ },
    { name: 'a row that is none', text: JSON.stringify({ ...good, rows: [7] }), problem: /^rows\[0\] is no object/ },
    {
      name: 'a ratio of 0',
      text: JSON.stringify({ ...good, rows: [row('a', 1), { ...row('b', 1), ratio: 0 }] }),
      problem: /^rows\[1\] has the ratio 0/,
    },
    {
      name: 'a row without a name',
      text: JSON.stringify({ ...good, rows: [{ suite: 'maglev', ratio: 1 }] }),
      problem: /^rows\[0\] has no suite or no name/,
    },
  ];
  for (const { name, text, problem } of faults) {
    it(`that is ${name} is refused with the reason`, () => {
      const outcome = parseBaseline(text);
      assert.match('problem' in outcome ? outcome.problem : '', problem);
    });
  }
});

describe('figures', () => {
  it('have three significant digits and a unit that fits', () => {
    assert.deepEqual([0.1234, 3.456, 999, 1234, 45_678_901, 2.5e9].map(formatNs), [
      '0.123 ns',
      '3.46 ns',
      '999 ns',
      '1.23 us',
      '45.7 ms',
      '2.50 s',
    ]);
    assert.deepEqual([0, 0.0000004, 123_456].map(significant), ['0', '0.000000', '123456']);
  });

  it('stand to the right in tables, texts to the left', () => {
    const text = textTable(
      [{ title: 'name' }, { title: 'ns', isFigure: true }],
      [
        ['lookup', '5'],
        ['a', '123'],
      ],
    );
    assert.equal(text, 'name     ns\n-----------\nlookup    5\na       123\n');
  });

  it('are quantiles between their neighbours', () => {
    assert.equal(quantile([4, 1, 3, 2], 0.5), 2.5);
    assert.equal(quantile([5], 0.75), 5);
    assert.equal(quantile([1, 2, 3], 1), 3);
  });
});
