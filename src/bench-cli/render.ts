// What weir-bench prints: the table of a run and the verdict of the gate.

import type { Verdict } from './gate.ts';
import type { Report } from './report.ts';
import { formatNs, significant, textTable } from './text-table.ts';

export function reportText({ machine, weir, effort, rows }: Report): string {
  const head = `weir ${weir}, Node ${machine.node}, ${machine.platform}, ${machine.cores} cores, ${machine.cpu}; ${effort.rounds} rounds of ${effort.roundMs} ms\n\n`;
  const table = textTable(
    [
      { title: 'suite' },
      { title: 'operation' },
      { title: 'weir', isFigure: true },
      { title: 'plain TypeScript', isFigure: true },
      { title: 'ratio', isFigure: true },
      { title: 'spread', isFigure: true },
      { title: 'cold', isFigure: true },
    ],
    rows.map((row) => [
      row.suite,
      row.name,
      formatNs(row.subjectNs),
      formatNs(row.twinNs),
      significant(row.ratio),
      percent(row.spread),
      formatNs(row.coldNs),
    ]),
  );
  return `${head}${table}`;
}

export function verdictText({ compared, regressions, unknown }: Verdict, maxRegression: number): string {
  const lines = unknown.map((id) => `not in the baseline: ${id}\n`);
  if (regressions.length === 0) {
    return `${lines.join('')}gate: ${compared} rows compared, none more than ${maxRegression} times the baseline\n`;
  }
  const table = textTable(
    [
      { title: 'slower than allowed' },
      { title: 'baseline ratio', isFigure: true },
      { title: 'ratio now', isFigure: true },
      { title: 'factor', isFigure: true },
    ],
    regressions.map(({ id, baselineRatio, ratio, factor }) => [
      id,
      significant(baselineRatio),
      significant(ratio),
      significant(factor),
    ]),
  );
  const count = `${regressions.length} of ${compared} rows are more than ${maxRegression} times the baseline`;
  return `${lines.join('')}gate: ${count}, measured twice\n\n${table}`;
}

function percent(share: number): string {
  return `±${significant(share * 100)}%`;
}
