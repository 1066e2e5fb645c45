// What a former run has found and this one need not ask again: a mutant that a test has noticed stays noticed as long as
// its code stays, and one that is known to be equivalent stays so. Survivors are asked about every time.

import { readFileSync, writeFileSync } from 'node:fs';
import type { MutantResult } from '@stryker-mutator/api/core';
import type { EquivalentMutants } from './equivalents.ts';
import { reportOf } from './report.ts';

/** The report that StrykerJS keeps and reads again, as far as it matters here. */
interface KeptReport {
  readonly files: Record<string, { readonly source: string; mutants: readonly MutantResult[] }>;
  /** With their texts StrykerJS would ask again about every mutant that a changed file has noticed. */
  readonly testFiles?: Record<string, { source?: string }>;
}

/** Takes out of the report about `source` whatever has to be asked again; does nothing where there is no report. */
export function forgetSurvivors(reportFile: string, source: string, known: readonly EquivalentMutants[]): void {
  let report: KeptReport;
  try {
    report = JSON.parse(readFileSync(reportFile, 'utf8')) as KeptReport;
  } catch {
    return;
  }
  for (const testFile of Object.values(report.testFiles ?? {})) delete testFile.source;
  for (const kept of Object.values(report.files)) {
    kept.mutants = kept.mutants.filter(
      (mutant) => reportOf(source, kept.source, [mutant], known).survivors.length === 0,
    );
  }
  writeFileSync(reportFile, JSON.stringify(report));
}
