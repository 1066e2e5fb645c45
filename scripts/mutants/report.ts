// What a run of mutants has found, in words: the survivors with their places, and a count of everything else.

import type { MutantResult } from '@stryker-mutator/api/core';
import type { EquivalentMutants } from './equivalents.ts';

/** Longer pieces of code are cut in the middle of a change. */
const MAX_CODE_LENGTH = 70;

export interface Survivor {
  /** From 1. */
  readonly line: number;
  readonly column: number;
  /** The line in which the change begins, without its indent. */
  readonly code: string;
  /** `before → after`. */
  readonly change: string;
  /** No concerned test runs this code at all. */
  readonly isUncovered: boolean;
}

export interface MutantsReport {
  readonly file: string;
  readonly survivors: readonly Survivor[];
  /** Survivors that equivalents.ts explains. */
  readonly equivalents: readonly Survivor[];
  /** What equivalents.ts explains although a test notices it, or the code is gone. */
  readonly needless: readonly { readonly line: string; readonly change: string }[];
  /** Mutants by what became of them. */
  readonly counts: ReadonlyMap<MutantResult['status'], number>;
}

/** @param text  the source file that the results are about, as it was when they were found. */
export function reportOf(
  file: string,
  text: string,
  results: readonly MutantResult[],
  known: readonly EquivalentMutants[],
): MutantsReport {
  const counts = new Map<MutantResult['status'], number>();
  for (const { status } of results) counts.set(status, (counts.get(status) ?? 0) + 1);
  const lines = text.split('\n');
  const all = results
    .filter(({ status }) => status === 'Survived' || status === 'NoCoverage')
    .map((result) => survivorOf(lines, result))
    .sort((a, b) => a.line - b.line || a.column - b.column);
  const explanations = known.filter((entry) => entry.file === file);
  const explains = (line: string, change: string, survivor: Survivor): boolean =>
    line === survivor.code && change === survivor.change;
  const isKnown = (survivor: Survivor): boolean =>
    explanations.some(({ line, changes }) => changes.some((change) => explains(line, change, survivor)));
  return {
    file,
    survivors: all.filter((survivor) => !isKnown(survivor)),
    equivalents: all.filter(isKnown),
    needless: explanations.flatMap(({ line, changes }) =>
      changes
        .filter((change) => !all.some((survivor) => explains(line, change, survivor)))
        .map((change) => ({ line, change })),
    ),
    counts,
  };
}

function survivorOf(lines: readonly string[], result: MutantResult): Survivor {
  const { start, end } = result.location;
  const touched = lines.slice(start.line - 1, end.line);
  touched[touched.length - 1] = touched.at(-1)!.slice(0, end.column - 1);
  touched[0] = touched[0]!.slice(start.column - 1);
  return {
    line: start.line,
    column: start.column,
    code: lines[start.line - 1]!.trim(),
    change: `${brief(touched.join(' '))} → ${brief(result.replacement ?? '')}`,
    isUncovered: result.status === 'NoCoverage',
  };
}

/** On one line, and of bounded length. */
function brief(code: string): string {
  const text = code.replace(/\s+/g, ' ').trim();
  if (text.length <= MAX_CODE_LENGTH) return text;
  const half = (MAX_CODE_LENGTH - 1) / 2;
  return `${text.slice(0, Math.ceil(half))}…${text.slice(-Math.floor(half))}`;
}

export function renderReport({ file, survivors, needless }: MutantsReport): string {
  const found = survivors.map(
    ({ line, column, code, change, isUncovered }) =>
      `${file}:${line}:${column}${isUncovered ? ' (no test comes here)' : ''}\n    ${code}\n    ${change}\n`,
  );
  const stale = needless.map(
    ({ line, change }) => `${file}: explained in equivalents.ts, but noticed:\n    ${line}\n    ${change}\n`,
  );
  return [...found, ...stale].join('');
}

export function renderSum(reports: readonly MutantsReport[]): string {
  const sum = (count: (report: MutantsReport) => number): number =>
    reports.reduce((total, report) => total + count(report), 0);
  const withStatus = (status: MutantResult['status']): number => sum(({ counts }) => counts.get(status) ?? 0);
  const noticed = withStatus('Killed') + withStatus('Timeout') + withStatus('RuntimeError');
  return (
    `${reports.length} files: ${noticed} mutants noticed, ${withStatus('Timeout')} of them by a test that did not end; ` +
    `${sum(({ equivalents }) => equivalents.length)} equivalent; ${sum(({ survivors }) => survivors.length)} survive; ` +
    `${withStatus('Ignored')} left out\n`
  );
}
