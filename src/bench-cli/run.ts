// One run of weir-bench from its arguments to its exit code.
//
//   options → cases → measure each → report (table, --json) → gate: measure what seems slower again → verdict

import { readFileSync, writeFileSync } from 'node:fs';
import type { Clock } from '../base/clock.ts';
import { errorMessage, WeirError } from '../base/errors.ts';
import { type BenchCase, caseId, type Suites } from './case.ts';
import { distributionText } from './distribution-text.ts';
import { judge, type Verdict } from './gate.ts';
import { measure } from './measure.ts';
import { type MeasureOptions, parseOptions } from './options.ts';
import { Progress } from './progress.ts';
import { reportText, verdictText } from './render.ts';
import { type Baseline, makeReport, parseBaseline, type ReportRow } from './report.ts';

export const EXIT_OK = 0;
/** The gate has found rows that are slower than allowed. */
export const EXIT_REGRESSION = 1;
/** Nothing was measured: bad options, unreadable baseline, unwritable report. */
export const EXIT_FAULT = 2;

export interface OutputStream {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

export interface RunContext {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  /** Release of weir. */
  readonly release: string;
  readonly suites: Suites;
  readonly clock: Clock;
}

/** @returns the exit code. */
export function runBench(argv: readonly string[], context: RunContext): number {
  const options = parseOptions(argv, context.release);
  try {
    if (options.kind === 'measure') return measureSuites(options, context);
    if (options.kind === 'fault') {
      context.stderr.write(options.text);
      return EXIT_FAULT;
    }
    if (options.kind === 'help') context.stdout.write(options.text);
    else for (const text of distributionText(options)) context.stdout.write(text);
    return EXIT_OK;
  } catch (error) {
    // A size that no table can have, a file that cannot be read: anything else is a bug and shows its stack.
    if (!(error instanceof WeirError)) throw error;
    context.stderr.write(`weir-bench: ${error.message}\n`);
    return EXIT_FAULT;
  }
}

function measureSuites(options: MeasureOptions, context: RunContext): number {
  const { suites, sizes, effort, json, gate } = options;
  // Before minutes are spent on measuring.
  const baseline = gate === undefined ? undefined : readBaseline(gate.baselineFile);
  const cases = suites.flatMap((name) => context.suites[name](sizes));
  if (baseline) checkOverlap(cases, baseline, gate!.baselineFile);
  let rows = measureCases(cases, options, context);
  let verdict: Verdict | undefined;
  if (baseline && gate) {
    verdict = judge(rows, baseline, gate.maxRegression);
    if (verdict.regressions.length > 0) {
      rows = measureAgain(rows, cases, verdict, options, context);
      verdict = judge(rows, baseline, gate.maxRegression);
    }
  }
  const report = makeReport(context.release, context.clock.wallMs(), effort, rows);
  context.stdout.write(reportText(report));
  if (json !== undefined) writeReport(json, `${JSON.stringify(report, null, 2)}\n`);
  if (!verdict || !gate) return EXIT_OK;
  context.stdout.write(`\n${verdictText(verdict, gate.maxRegression)}`);
  return verdict.regressions.length === 0 ? EXIT_OK : EXIT_REGRESSION;
}

function measureCases(cases: readonly BenchCase[], { effort }: MeasureOptions, context: RunContext): ReportRow[] {
  const progress = new Progress(context.stderr, cases.length);
  try {
    return cases.map((benchCase) => {
      progress.next(caseId(benchCase));
      const { suite, name } = benchCase;
      return { suite, name, ...measure(benchCase, effort, context.clock) };
    });
  } finally {
    progress.clear();
  }
}

/** One disturbed measurement must not fail a build: what is really slower is slower twice. The better one counts. */
function measureAgain(
  rows: readonly ReportRow[],
  cases: readonly BenchCase[],
  { regressions }: Verdict,
  options: MeasureOptions,
  context: RunContext,
): ReportRow[] {
  const slow = new Set(regressions.map(({ id }) => id));
  const again = measureCases(
    cases.filter((benchCase) => slow.has(caseId(benchCase))),
    options,
    context,
  );
  const second = new Map(again.map((row) => [caseId(row), row]));
  return rows.map((row) => {
    const other = second.get(caseId(row));
    return other && other.ratio < row.ratio ? { ...other, coldNs: row.coldNs } : row;
  });
}

function readBaseline(file: string): Baseline {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw fault(`--baseline: cannot read ${file}: ${errorMessage(error)}`);
  }
  const outcome = parseBaseline(text);
  if ('problem' in outcome) throw fault(`--baseline: ${file} ${outcome.problem}`);
  return outcome.baseline;
}

/** A gate that compares nothing would be passed by anything. */
function checkOverlap(cases: readonly BenchCase[], { ratios }: Baseline, file: string): void {
  if (cases.some((benchCase) => ratios.has(caseId(benchCase)))) return;
  throw fault(`--baseline: ${file} has no row of this run: make it with the same suites and sizes`);
}

function writeReport(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch (error) {
    throw fault(`--json: cannot write ${file}: ${errorMessage(error)}`);
  }
}

function fault(message: string): WeirError {
  return new WeirError('WEIR_BENCH', message);
}
