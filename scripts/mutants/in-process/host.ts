// A process that keeps the instrumented sources loaded and runs tests with one mutant after the other switched on. Test
// files themselves are loaded anew each time, so that what they keep to themselves is new. Started by judge.ts.

import { mkdtempSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { reachedMutants } from '../test-process.ts';
import { DeclaredTests, failRunningTest, type RunWatcher } from './declared-tests.ts';
import type { HostAnswer, HostRequest, ObservedTest, TestSelection } from './messages.ts';

/** What the instrumented sources look at. */
interface Switch {
  activeMutant: string | undefined;
  hitCount: number;
  readonly hitLimit: number;
  currentTestId: string | undefined;
  readonly mutantCoverage: { static: Record<string, number>; perTest: Record<string, Record<string, number>> };
}

const { hitLimit } = (globalThis as unknown as { readonly __stryker__: Switch }).__stryker__;
const state: Switch = {
  activeMutant: undefined,
  hitCount: 0,
  hitLimit,
  currentTestId: undefined,
  mutantCoverage: { static: {}, perTest: {} },
};
Object.assign(globalThis, { __stryker__: state });

const STAND_IN = pathToFileURL(path.join(import.meta.dirname, 'declared-tests.ts')).href;
registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'node:test' ? { url: STAND_IN, shortCircuit: true } : next(specifier, context),
});

/** For the many cases of a property; most mutants are noticed by the first ones. */
const PROPERTY_LIMIT_MS = 500;
/** A property was not tried in full. */
let wasCut = false;
fc.configureGlobal({
  interruptAfterTimeLimit: PROPERTY_LIMIT_MS,
  // That it fails is enough; by what little it fails is not asked.
  endOnFailure: true,
  reporter: ({ failed, interrupted }) => {
    wasCut ||= interrupted;
    if (failed) throw new Error('a property fails');
  },
});

/** An error that came while no test was running. */
let stray: unknown;
for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
  process.on(event, (error: unknown) => {
    if (!failRunningTest(error)) stray ??= error;
  });
}
process.on('beforeExit', () => void failRunningTest(new Error('waits for what cannot happen')));
process.on('disconnect', () => process.exit());

function switchTo(mutantId: string | undefined): void {
  state.activeMutant = mutantId;
  state.hitCount = 0;
  // For the threads and programs that tests start.
  if (mutantId === undefined) delete process.env.__STRYKER_ACTIVE_MUTANT__;
  else process.env.__STRYKER_ACTIVE_MUTANT__ = mutantId;
}

const urlOf = (file: string): string => pathToFileURL(path.resolve(file)).href;
let loads = 0;

/** @returns the first thing that failed outside of tests; what fails in tests is told to the watcher. */
async function runFile(file: string, watcher: RunWatcher): Promise<unknown> {
  stray = undefined;
  try {
    const declared = await DeclaredTests.of(() => import(`${urlOf(file)}?load=${loads++}`));
    await declared.run(watcher);
  } catch (error) {
    return error ?? new Error('failed');
  }
  // What a test has left undone fails now rather than in the next one.
  for (let turn = 0; turn < 2; turn++) await new Promise(setImmediate);
  return stray;
}

const NONE: RunWatcher = { isWanted: () => false, started: () => {}, ended: () => true };

/** Runs all tests of a file, and keeps of `tests` those that pass. */
class Observation implements RunWatcher {
  readonly tests = new Map<string, number>();
  readonly #failed = new Set<string>();
  #startMs = 0;

  isWanted(): boolean {
    return true;
  }

  started(id: string): void {
    state.currentTestId = id;
    this.#startMs = performance.now();
  }

  ended(id: string, error: unknown): boolean {
    state.currentTestId = undefined;
    this.tests.set(id, performance.now() - this.#startMs);
    if (error !== undefined) this.#failed.add(id);
    for (const failed of this.#failed) this.tests.delete(failed);
    return true;
  }

  get isWhole(): boolean {
    return this.#failed.size === 0;
  }
}

/** Twice: the second time shows what is reached when everything is loaded and begun, and whether a test can be repeated. */
async function observe(file: string): Promise<HostAnswer> {
  const observation = new Observation();
  const reached = new Set<string>();
  const folder = mkdtempSync(path.join(tmpdir(), 'coverage-'));
  process.env.WEIR_MUTANTS_COVERAGE = folder;
  let failure: unknown;
  for (let round = 0; round < 2 && failure === undefined; round++) {
    state.mutantCoverage.static = {};
    state.mutantCoverage.perTest = {};
    failure = await runFile(file, observation);
    for (const hits of [state.mutantCoverage.static, ...Object.values(state.mutantCoverage.perTest)]) {
      for (const mutantId of Object.keys(hits)) reached.add(mutantId);
    }
  }
  delete process.env.WEIR_MUTANTS_COVERAGE;
  for (const mutantId of reachedMutants(folder)) reached.add(mutantId);
  const seen = { kind: 'observed', file, reached: [...reached] } as const;
  if (failure !== undefined) return { ...seen, tests: [], isWhole: false };
  const around = Object.keys(state.mutantCoverage.static);
  const tests = [...observation.tests].map(([id, ms]): ObservedTest => {
    return { id, ms, reached: [...new Set([...around, ...Object.keys(state.mutantCoverage.perTest[id] ?? {})])] };
  });
  return { ...seen, tests, isWhole: observation.isWhole };
}

async function load(source: string, files: readonly string[]): Promise<HostAnswer> {
  await import(urlOf(source));
  const reached = Object.keys(state.mutantCoverage.static);
  for (const file of files) await runFile(file, NONE);
  return { kind: 'loaded', reached };
}

/** Runs tests until the first failure. @returns the tests that were run, and the failure. */
async function runTests(file: string, tests: readonly string[]): Promise<{ ran: string[]; failure: string | null }> {
  const wanted = new Set(tests);
  const ran: string[] = [];
  let failed: string | null = null;
  const outside = await runFile(file, {
    isWanted: (id) => wanted.has(id),
    started: (id) => void ran.push(id),
    ended: (id, error) => {
      if (error !== undefined) failed ??= id;
      return error === undefined;
    },
  });
  if (failed === null && outside !== undefined) failed = String(outside);
  if (failed === null && ran.length < tests.length) failed = 'declares other tests';
  return { ran, failure: failed };
}

async function ask(mutantId: string, selection: TestSelection): Promise<HostAnswer> {
  const inFull: string[] = [];
  for (const { file, tests } of selection) {
    wasCut = false;
    switchTo(mutantId);
    const { ran, failure } = await runTests(file, tests);
    switchTo(undefined);
    if (failure === null) {
      if (!wasCut) inFull.push(file);
      continue;
    }
    const unchanged = await runTests(file, ran.length === 0 ? tests : ran);
    return { kind: 'failed', isSpoilt: unchanged.failure !== null, file, failure };
  }
  return { kind: 'passed', inFull };
}

async function answer(request: HostRequest): Promise<HostAnswer> {
  switch (request.kind) {
    case 'load':
      return await load(request.source, request.files);
    case 'observe':
      return await observe(request.file);
    case 'ask':
      return await ask(request.mutantId, request.selection);
  }
}

process.on('message', async (request: HostRequest) => {
  // Nothing but the tests may keep this process going, so that one that waits for what cannot happen is found out.
  process.channel!.unref();
  const found = await answer(request);
  process.channel!.ref();
  process.send!(found);
});
