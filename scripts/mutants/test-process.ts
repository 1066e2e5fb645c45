// One test file run in processes of its own, against sources that hold all mutants, of which one may be switched on.
// The run ends with the first test that fails; nothing of it is left over, neither process nor file.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const PRELOAD = pathToFileURL(path.join(import.meta.dirname, 'preload.mjs')).href;
const NODE_FLAGS = ['--disable-warning=ExperimentalWarning', '--enable-source-maps', '--test-reporter=tap'];
/** A test that has failed, as the TAP reporter prints it. */
const FAILED_TEST = /^\s*not ok \d+ - (?!.*# (?:TODO|SKIP))(.*)$/m;

export interface TestProcessOptions {
  /** Folder that holds the instrumented tree. */
  readonly root: string;
  /** Relative to `root`. */
  readonly testFile: string;
  /** Switches this mutant on; without one, the mutants that are reached are noted. */
  readonly mutantId?: string;
  readonly limitMs: number;
}

export type TestProcessResult =
  | { readonly outcome: 'passed'; readonly ms: number; readonly reached: readonly string[] }
  | { readonly outcome: 'failed'; readonly ms: number; readonly failure: string; readonly output: string }
  | { readonly outcome: 'timed-out'; readonly ms: number };

export async function runTestProcess(options: TestProcessOptions): Promise<TestProcessResult> {
  // Whatever the tests write lies here, so that it goes with the run, also when that is killed.
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-mutants-'));
  try {
    const coverage = path.join(folder, 'coverage');
    const own = path.join(folder, 'tmp');
    for (const made of [coverage, own]) mkdirSync(made);
    const child = spawn(process.execPath, [...NODE_FLAGS, options.testFile], {
      cwd: options.root,
      stdio: ['ignore', 'pipe', 'pipe'],
      // A process group, which holds all programs that the test starts.
      detached: true,
      env: {
        ...testEnvironment(options.root, own),
        ...(options.mutantId === undefined
          ? { WEIR_MUTANTS_COVERAGE: coverage }
          : { __STRYKER_ACTIVE_MUTANT__: options.mutantId }),
      },
    });
    return await settle(child, options.limitMs, () => reachedMutants(coverage));
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** @param temporary  the folder for whatever the tests write. */
export function testEnvironment(root: string, temporary: string): NodeJS.ProcessEnv {
  const { NODE_TEST_CONTEXT: _context, WEIR_TEST_MAIN: _main, ...env } = process.env;
  return {
    ...env,
    TMPDIR: temporary,
    NODE_COMPILE_CACHE: path.join(root, 'compile-cache'),
    NODE_OPTIONS: `--import=${PRELOAD}`,
  };
}

function settle(child: ChildProcess, limitMs: number, reached: () => string[]): Promise<TestProcessResult> {
  const startMs = performance.now();
  return new Promise((resolve) => {
    let output = '';
    let result: TestProcessResult | undefined;
    const end = (outcome: TestProcessResult): void => {
      result ??= outcome;
      killGroup(child);
    };
    const elapsed = (): number => performance.now() - startMs;
    const timer = setTimeout(() => end({ outcome: 'timed-out', ms: elapsed() }), limitMs);
    for (const stream of [child.stdout!, child.stderr!]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
        const failure = FAILED_TEST.exec(output)?.[1];
        if (failure !== undefined) end({ outcome: 'failed', ms: elapsed(), failure, output });
      });
    }
    child.once('exit', (code, signal) => {
      if (code === 0) end({ outcome: 'passed', ms: elapsed(), reached: reached() });
      else end({ outcome: 'failed', ms: elapsed(), failure: `ended with ${code ?? signal}`, output });
      clearTimeout(timer);
      resolve(result!);
    });
  });
}

/** Ends what is left of a child's own process group; there may be nothing. */
export function killGroup(child: ChildProcess): void {
  try {
    process.kill(-child.pid!, 'SIGKILL');
  } catch {
    // All of it has ended by itself.
  }
}

/** What preload.mjs has noted in a folder. */
export function reachedMutants(folder: string): string[] {
  const ids = readdirSync(folder).flatMap((file) => readFileSync(path.join(folder, file), 'utf8').split('\n'));
  return [...new Set(ids)].filter((id) => id !== '');
}
