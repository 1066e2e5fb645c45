// `npm run mutants -- src/stats`: changes the code of a folder in one small way after the other and asks the tests that
// concern it each time. What no test notices is printed as a survivor; the exit code is 1 when there are any that
// equivalents.ts does not explain. Results are kept in build/mutants/. Runs at a low priority.

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import type { LogLevel, MutantResult } from '@stryker-mutator/api/core';
import { Stryker } from '@stryker-mutator/core';
import { PACKAGE_ROOT as root } from '../../src/base/package-root.ts';
import { concernedTests, nearestTests, readImportGraph, repeatableTests } from './concerned-tests.ts';
import { EQUIVALENT_MUTANTS } from './equivalents.ts';
import { forgetSurvivors } from './former-results.ts';
import { type MutantsReport, renderReport, renderSum, reportOf } from './report.ts';
import { MESSAGES, type RunSettings, SETTINGS_KEY, TEST_RUNNER } from './stryker-plugins.ts';

const USAGE = `usage: npm run mutants -- <folder or file below src/>... [options]
  --concurrency 1   test files that run at a time
  --tests 8         test files that are asked about one source file, the nearest ones
  --by <test file>  asks this one in their place; may be given more than once
  --force           ask again about what a test has noticed before
`;
/** Look at the whole tree, or run for long: no tests of one folder. */
const UNCONCERNED = /^test\/(?:architecture|soak)\//;
const COMMENT = /\/\*[\s\S]*?\*\/|\/\/.*/g;
const MAX_MS = 2 ** 31 - 1;

function filesBelow(place: string): string[] {
  if (statSync(path.join(root, place)).isFile()) return [place];
  return readdirSync(path.join(root, place), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && !entry.name.endsWith('.d.ts'))
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)).split(path.sep).join('/'))
    .sort();
}

function readArguments() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      concurrency: { type: 'string', default: '1' },
      tests: { type: 'string', default: '8' },
      by: { type: 'string', multiple: true, default: [] },
      force: { type: 'boolean', default: false },
    },
  });
  const places = positionals.map((place) => path.posix.normalize(place).replace(/\/$/, ''));
  const [concurrency, maxTestFiles] = [Number(values.concurrency), Number(values.tests)];
  if (places.length === 0 || !(concurrency >= 1) || !(maxTestFiles >= 1)) throw new Error('nothing to do');
  const missing = values.by.find((file) => !existsSync(path.join(root, file)));
  if (missing !== undefined) throw new Error(`no test file ${missing}`);
  return { places, concurrency, maxTestFiles, chosenTests: values.by, force: values.force };
}

let args: ReturnType<typeof readArguments>;
let sources: string[];
try {
  args = readArguments();
  sources = args.places.flatMap(filesBelow);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
  process.exit(2);
}

os.setPriority(os.constants.priority.PRIORITY_BELOW_NORMAL);
process.chdir(root);
const testFiles = filesBelow('test').filter((file) => file.endsWith('.test.ts') && !UNCONCERNED.test(file));
const graph = readImportGraph(root, testFiles);
const reports: MutantsReport[] = [];
for (const source of sources) {
  const text = readFileSync(path.join(root, source), 'utf8');
  // What holds types alone has nothing to change.
  if (stripTypeScriptTypes(text).replaceAll(COMMENT, '').trim() === '') continue;
  const nearest =
    args.chosenTests.length > 0
      ? args.chosenTests
      : nearestTests(concernedTests(graph, source, testFiles), args.maxTestFiles);
  process.stderr.write(`# ${source}, by ${nearest.length} test files: ${nearest.join(' ')}\n`);
  const report = reportOf(source, text, await run(source, nearest), EQUIVALENT_MUTANTS);
  process.stdout.write(renderReport(report));
  reports.push(report);
}
process.stdout.write(renderSum(reports));
process.exit(reports.every(({ survivors }) => survivors.length === 0) ? 0 : 1);

/** One source file at a time: what has been found is kept when a long run is broken off. */
async function run(source: string, nearest: readonly string[]): Promise<readonly MutantResult[]> {
  const incrementalFile = `build/mutants/${source.replaceAll('/', '-')}.json`;
  if (!args.force) forgetSurvivors(incrementalFile, source, EQUIVALENT_MUTANTS);
  const settings: RunSettings = { source, testFiles: nearest, repeatable: repeatableTests(graph, nearest) };
  return await new Stryker({
    mutate: [source],
    testRunner: TEST_RUNNER,
    plugins: [path.join(import.meta.dirname, 'stryker-plugins.ts')],
    ignorers: [MESSAGES],
    [SETTINGS_KEY]: settings,
    allowEmpty: true,
    concurrency: args.concurrency,
    coverageAnalysis: 'perTest',
    incremental: true,
    incrementalFile,
    force: args.force,
    // One for each run: whoever ends first takes it away.
    tempDirName: `build/mutants/tree-${process.pid}`,
    ignorePatterns: ['/bench', '/biome.json', '/build/compile-cache', '/build/mutants', '/dist', '/docs'],
    reporters: process.stdout.isTTY ? ['progress'] : [],
    logLevel: 'error' as LogLevel,
    // Node runs the instrumented sources as they are; no compiler sees them.
    disableTypeChecks: false,
    tsconfigFile: 'none',
    // Each test file has a limit of its own.
    timeoutMS: MAX_MS / 2,
    timeoutFactor: 1,
    dryRunTimeoutMinutes: MAX_MS / 60_000 / 2,
    warnings: false,
  }).runMutationTest();
}
