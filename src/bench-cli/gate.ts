// The gate: holds the ratios of a run against those of a baseline. Times differ from machine to machine; how much
// faster the core is than plain TypeScript on the same machine, in the same minute, differs little.

import { caseId } from './case.ts';
import type { Baseline, ReportRow } from './report.ts';

export interface Regression {
  readonly id: string;
  readonly baselineRatio: number;
  readonly ratio: number;
  /** ratio / baselineRatio: 1.25 is a quarter slower than the baseline says. */
  readonly factor: number;
}

export interface Verdict {
  /** Rows that both sides have. */
  readonly compared: number;
  /** Slower than allowed, the worst first. */
  readonly regressions: readonly Regression[];
  /** Rows of this run that the baseline does not know: make it again to have them watched. */
  readonly unknown: readonly string[];
}

export function judge(rows: readonly ReportRow[], baseline: Baseline, maxRegression: number): Verdict {
  const known = rows.filter((row) => baseline.ratios.has(caseId(row)));
  return {
    compared: known.length,
    regressions: known
      .map((row) => regressionOf(row, baseline.ratios.get(caseId(row))!))
      .filter(({ factor }) => factor > maxRegression)
      .sort((a, b) => b.factor - a.factor),
    unknown: rows.filter((row) => !known.includes(row)).map(caseId),
  };
}

function regressionOf(row: ReportRow, baselineRatio: number): Regression {
  return { id: caseId(row), baselineRatio, ratio: row.ratio, factor: row.ratio / baselineRatio };
}
