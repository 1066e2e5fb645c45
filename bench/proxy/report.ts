// What a run has shown, as tables for people and as JSON for programs.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { MemoryResult } from './memory.ts';
import type { Comparison, WorkloadResult } from './rounds.ts';
import type { ScalingResult } from './scaling.ts';

export interface Report {
  readonly date: string;
  readonly command: string;
  readonly machine: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly rounds: number;
  readonly starts: number;
  readonly seconds: number;
  readonly workloads: readonly WorkloadResult[];
  readonly memory: readonly MemoryResult[];
  readonly scaling: readonly ScalingResult[];
}

const BEGIN = '<!-- proxy: begin, written by npm run bench -- proxy -->';
const END = '<!-- proxy: end -->';
const KIB = 1024;

/** The section as Markdown, which reads well enough on a terminal, too. */
export function renderReport(report: Report): string {
  const parts = [
    `## Proxy\n\n${provenance(report)}`,
    report.workloads.length > 0 ? workloadTables(report.workloads) : '',
    report.memory.length > 0 ? memoryTable(report.memory) : '',
    report.scaling.length > 0 ? scalingTable(report.scaling) : '',
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

/** Replaces the section between the markers, or adds it at the end. */
export function writeSection(file: string, section: string): void {
  const before = existsSync(file) ? readFileSync(file, 'utf8') : '# Benchmark results\n';
  const marked = `${BEGIN}\n${section}\n${END}`;
  const begin = before.indexOf(BEGIN);
  const end = before.indexOf(END);
  const after =
    begin === -1 || end === -1
      ? `${before.trimEnd()}\n\n${marked}\n`
      : before.slice(0, begin) + marked + before.slice(end + END.length);
  writeFileSync(file, after);
}

function provenance({ date, command, machine, versions, rounds, starts, seconds }: Report): string {
  const named = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return [
    `${date}, \`${command}\`, ${machine}.`,
    `${named.join('; ')}.`,
    '',
    `One worker each on a core of its own, generator and upstream on another; ${rounds} alternating rounds of ${seconds} s`,
    `by ${starts} processes of each, one after the other; medians over the rounds. Only ratios within one run mean anything: other`,
    'work may have shared the machine.',
  ].join('\n');
}

function workloadTables(results: readonly WorkloadResult[]): string {
  const caveats = results.filter(({ caveat }) => caveat !== '').map(({ title, caveat }) => `- ${title}: ${caveat}`);
  return [ratioTable(results), ...(caveats.length > 0 ? [caveats.join('\n')] : []), figureTable(results)].join('\n\n');
}

function ratioTable(results: readonly WorkloadResult[]): string {
  const rows = results.flatMap(({ title, comparisons }) =>
    comparisons.map((comparison) => [title, comparison.peer, ...ratioCells(comparison)]),
  );
  const header = ['workload', 'peer', 'req/s weir/peer', 'quartiles', 'CPU peer/weir', 'p99 weir/peer', 'bar', ''];
  return table(header, rows);
}

function ratioCells({ rate, spread, cpu, p99, bar, passed }: Comparison): string[] {
  const verdict = passed === null ? '' : passed ? 'reached' : 'MISSED';
  return [fixed(rate), spread.map(fixed).join(' to '), fixed(cpu), fixed(p99), bar === null ? '' : fixed(bar), verdict];
}

function figureTable(results: readonly WorkloadResult[]): string {
  const rows = results.flatMap(({ title, contenders }) =>
    contenders.map(({ name, requestsPerSecond, cpuMicrosecondsPerRequest, coreShare, p50Ms, p99Ms }) => [
      title,
      name,
      requestsPerSecond.toFixed(0),
      cpuMicrosecondsPerRequest.toFixed(1),
      `${(coreShare * 100).toFixed(0)} %`,
      fixed(p50Ms),
      fixed(p99Ms),
    ]),
  );
  return table(['workload', 'proxy', 'req/s', 'CPU us/request', 'core', 'p50 ms', 'p99 ms'], rows);
}

function memoryTable(results: readonly MemoryResult[]): string {
  const rows = results.map(({ name, protocol, connections, perConnectionBytes, underLoadBytes }) => [
    name,
    protocol,
    String(connections),
    `${fixed(perConnectionBytes / KIB)} KiB`,
    underLoadBytes.map((bytes) => (bytes / KIB / KIB).toFixed(0)).join(', '),
  ]);
  return table(
    ['proxy', 'protocol', 'idle connections', 'resident per connection', 'MiB after each 4 s of load'],
    rows,
  );
}

function scalingTable(results: readonly ScalingResult[]): string {
  const rows = results.map(({ name, cores, oneWorker, twoWorkers }) => [
    name,
    String(cores),
    oneWorker.requestsPerSecond.toFixed(0),
    twoWorkers.requestsPerSecond.toFixed(0),
    fixed(twoWorkers.requestsPerSecond / oneWorker.requestsPerSecond),
    fixed(twoWorkers.requestsPerCpuSecond / oneWorker.requestsPerCpuSecond),
  ]);
  const header = ['proxy', 'cores', 'req/s, 1 worker', 'req/s, 2 workers', 'ratio', 'ratio per CPU second'];
  const note =
    results[0]!.cores >= 4
      ? ''
      : '\n\nOn this machine workers, generator and upstream share all cores, in both runs alike: the ratio is that of a\nwhole system which was busy before, and the last column what a request costs beside another worker.';
  return table(header, rows) + note;
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((text, column) => Math.max(text.length, 3, ...rows.map((row) => row[column]!.length)));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column]!)).join(' | ')} |`;
  return [line(header), `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...rows.map(line)].join('\n');
}

function fixed(value: number): string {
  if (Number.isNaN(value)) return '–';
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}
