// The report of a run, which --json writes and --baseline reads back.

import os from 'node:os';
import { errorMessage } from '../base/errors.ts';
import { caseId } from './case.ts';
import type { Effort, Measurement } from './measure.ts';

/** Raised when a field changes its meaning. */
export const REPORT_FORMAT = 1;

export interface ReportRow extends Measurement {
  readonly suite: string;
  readonly name: string;
}

export interface Report {
  readonly format: number;
  /** Release of weir. */
  readonly weir: string;
  /** ISO 8601, UTC. */
  readonly date: string;
  readonly machine: { readonly cpu: string; readonly cores: number; readonly node: string; readonly platform: string };
  readonly effort: Effort;
  readonly rows: readonly ReportRow[];
}

export function makeReport(weir: string, wallMs: number, effort: Effort, rows: readonly ReportRow[]): Report {
  return {
    format: REPORT_FORMAT,
    weir,
    date: new Date(wallMs).toISOString(),
    machine: {
      cpu: os.cpus()[0]?.model.trim() ?? 'unknown',
      cores: os.availableParallelism(),
      node: process.versions.node,
      platform: `${process.platform}-${process.arch}`,
    },
    effort,
    rows,
  };
}

export interface Baseline {
  /** Ratio by caseId. */
  readonly ratios: ReadonlyMap<string, number>;
}

export type BaselineOutcome = { readonly baseline: Baseline } | { readonly problem: string };

/** Reads the text of a report as far as a gate needs it. */
export function parseBaseline(text: string): BaselineOutcome {
  let report: unknown;
  try {
    report = JSON.parse(text);
  } catch (error) {
    return { problem: `is not JSON: ${errorMessage(error)}` };
  }
  if (!isRecord(report) || !Array.isArray(report.rows)) return { problem: 'is not a report of weir-bench: no rows' };
  if (report.format !== REPORT_FORMAT) {
    return { problem: `has format ${String(report.format)}, this version reads ${REPORT_FORMAT}: make it again` };
  }
  const ratios = new Map<string, number>();
  for (const [at, row] of (report.rows as unknown[]).entries()) {
    const fault = isRecord(row) ? rowFault(row) : 'is no object';
    if (fault !== undefined) return { problem: `rows[${at}] ${fault}` };
    const { suite, name, ratio } = row as unknown as ReportRow;
    ratios.set(caseId({ suite, name }), ratio);
  }
  return { baseline: { ratios } };
}

function rowFault(row: Readonly<Record<string, unknown>>): string | undefined {
  if (typeof row.suite !== 'string' || typeof row.name !== 'string') return 'has no suite or no name';
  const { ratio } = row;
  const isPositive = typeof ratio === 'number' && ratio > 0 && Number.isFinite(ratio);
  return isPositive ? undefined : `has the ratio ${String(ratio)}, not a number above 0`;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
