// What StrykerJS is given of ours. The test runner runs node:test files, which are programs of their own and may start
// threads and further programs; the ignorer leaves out mutants that only reword a message or do
// not fit the types.

import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { StrykerOptions } from '@stryker-mutator/api/core';
import { commonTokens, declareClassPlugin, declareValuePlugin, PluginKind, tokens } from '@stryker-mutator/api/plugin';
import {
  type DryRunResult,
  DryRunStatus,
  type MutantRunOptions,
  type MutantRunResult,
  MutantRunStatus,
  type TestResult,
  type TestRunner,
  type TestRunnerCapabilities,
  TestStatus,
} from '@stryker-mutator/api/test-runner';
import type { babel } from '@stryker-mutator/core';
import { InProcessJudge, type JudgeOptions, type Observation, observe, sumOfMs } from './in-process/judge.ts';
import { runTestProcess, type TestProcessResult } from './test-process.ts';

/** How a run is set up; travels to the test runner in the options of StrykerJS. */
export interface RunSettings {
  /** The file that is changed, relative to the root. */
  readonly source: string;
  /** Test files to ask, the nearest first, relative to the root. */
  readonly testFiles: readonly string[];
  /** Those of them that are asked in one process first. */
  readonly repeatable: readonly string[];
}

export const SETTINGS_KEY = 'weirMutants';

/** Without a mutant, a test file may take this long. */
const FIRST_RUN_LIMIT_MS = 300_000;
/** With a mutant, so many times as long as without, and this much more: the machine may have become busy. */
const SLOWDOWN_FACTOR = 4;
const SLOWDOWN_MS = 10_000;
/** Loading a test file in a process of its own, where only the time of its tests is known. */
const START_MS = 3_000;
/** What the first run has found, for those that follow; at the root of the instrumented tree. */
const FIRST_RUN_FILE = 'first-run.json';

interface FirstRun {
  /** How long each test file takes without a mutant, in ms. */
  readonly times: Readonly<Record<string, number>>;
  readonly observation: Observation;
}

class NodeTestRunner implements TestRunner {
  static readonly inject = tokens(commonTokens.options);
  readonly #settings: RunSettings;
  #judge: InProcessJudge | undefined;
  #firstRun: FirstRun | undefined;

  constructor(options: StrykerOptions) {
    this.#settings = options[SETTINGS_KEY] as RunSettings;
  }

  capabilities(): TestRunnerCapabilities {
    return { reloadEnvironment: true };
  }

  async dryRun(): Promise<DryRunResult> {
    const tests: TestResult[] = [];
    const perTest: Record<string, Record<string, number>> = {};
    const times: Record<string, number> = {};
    const observation = await observe(this.#judgeOptions, this.#settings.repeatable);
    for (const testFile of this.#settings.testFiles) {
      const observed = observation.files.find(({ file, isWhole }) => file === testFile && isWhole);
      if (observed !== undefined) {
        const timeSpentMs = 2 * sumOfMs(observed.tests) + START_MS;
        tests.push({ id: testFile, name: testFile, timeSpentMs, status: TestStatus.Success });
        const reached = [...observation.atLoad, ...observed.reached];
        perTest[testFile] = Object.fromEntries(reached.map((mutantId) => [mutantId, 1]));
        times[testFile] = timeSpentMs;
        continue;
      }
      const result = await this.#runUnchanged(testFile);
      const facts = { id: testFile, name: testFile, fileName: path.resolve(testFile), timeSpentMs: result.ms };
      if (result.outcome === 'passed') {
        tests.push({ ...facts, status: TestStatus.Success });
        perTest[testFile] = Object.fromEntries(result.reached.map((mutantId) => [mutantId, 1]));
        times[testFile] = result.ms;
      } else {
        const failureMessage = result.outcome === 'failed' ? `${result.failure}\n${result.output}` : 'did not end';
        tests.push({ ...facts, status: TestStatus.Failed, failureMessage });
      }
    }
    const firstRun: FirstRun = { times, observation };
    writeFileSync(FIRST_RUN_FILE, JSON.stringify(firstRun));
    return { status: DryRunStatus.Complete, tests, mutantCoverage: { static: {}, perTest } };
  }

  async mutantRun({ activeMutant, testFilter }: MutantRunOptions): Promise<MutantRunResult> {
    const reaching = new Set(testFilter);
    this.#firstRun ??= JSON.parse(readFileSync(FIRST_RUN_FILE, 'utf8')) as FirstRun;
    this.#judge ??= new InProcessJudge(this.#judgeOptions, this.#firstRun.observation);
    const judgement = await this.#judge.ask(activeMutant.id);
    if (judgement.outcome === 'timed-out') return { status: MutantRunStatus.Timeout, reason: judgement.failure };
    if (judgement.outcome === 'failed') {
      const { failure: failureMessage } = judgement;
      return { status: MutantRunStatus.Killed, killedBy: [], failureMessage, nrOfTests: 1 };
    }
    // Those that have said what they can need not be asked again.
    for (const file of judgement.outcome === 'passed' ? judgement.files : []) reaching.delete(file);
    let nrOfTests = 0;
    for (const testFile of this.#settings.testFiles.filter((file) => reaching.has(file))) {
      nrOfTests += 1;
      const limitMs = SLOWDOWN_FACTOR * this.#firstRun.times[testFile]! + SLOWDOWN_MS;
      const result = await runTestProcess({ root: process.cwd(), testFile, mutantId: activeMutant.id, limitMs });
      if (result.outcome === 'timed-out') return { status: MutantRunStatus.Timeout, reason: testFile };
      if (result.outcome === 'failed') {
        return { status: MutantRunStatus.Killed, killedBy: [testFile], failureMessage: result.failure, nrOfTests };
      }
    }
    return { status: MutantRunStatus.Survived, nrOfTests };
  }

  async dispose(): Promise<void> {
    this.#judge?.close();
  }

  get #judgeOptions(): JudgeOptions {
    return { root: process.cwd(), source: this.#settings.source };
  }

  /** Twice where it fails: on a busy machine one run says little. */
  async #runUnchanged(testFile: string): Promise<TestProcessResult> {
    const options = { root: process.cwd(), testFile, limitMs: FIRST_RUN_LIMIT_MS };
    const first = await runTestProcess(options);
    return first.outcome === 'passed' ? first : await runTestProcess(options);
  }
}

const LOG_METHODS: readonly string[] = ['trace', 'debug', 'info', 'warning', 'error', 'critical'];
/** These take a code first, which is not a matter of wording. */
const CODED_ERRORS: readonly string[] = ['WeirError'];

/** Says why a piece of code is not worth a mutant; undefined where it is. */
function reasonToIgnore({ node, parent }: babel.NodePath): string | undefined {
  // StrykerJS puts a text into it, which is of another type than its elements almost everywhere.
  if (node.type === 'ArrayExpression' && node.elements.length === 0) return 'empty list';
  if (node.type !== 'StringLiteral' && node.type !== 'TemplateLiteral') return undefined;
  if (parent?.type === 'NewExpression' && parent.callee.type === 'Identifier') {
    const { name } = parent.callee;
    const isCode = CODED_ERRORS.includes(name) && parent.arguments[0] === node;
    return name.endsWith('Error') && !isCode ? 'wording of an error' : undefined;
  }
  if (parent?.type !== 'CallExpression' || parent.callee.type !== 'MemberExpression') return undefined;
  const { object, property } = parent.callee;
  if (property.type !== 'Identifier') return undefined;
  const isFaultsPlace = property.name === 'run' && nameOf(object) === 'faults' && parent.arguments[0] === node;
  return LOG_METHODS.includes(property.name) || isFaultsPlace ? 'wording of a log line' : undefined;
}

/** Of a variable or a member. */
function nameOf(node: babel.NodePath['node']): string | undefined {
  const named = node.type === 'MemberExpression' ? node.property : node;
  return named.type === 'Identifier' ? named.name : undefined;
}

export const TEST_RUNNER = 'node-test-processes';
export const MESSAGES = 'messages';

export const strykerPlugins = [
  declareClassPlugin(PluginKind.TestRunner, TEST_RUNNER, NodeTestRunner),
  declareValuePlugin(PluginKind.Ignore, MESSAGES, { shouldIgnore: (place) => reasonToIgnore(place as babel.NodePath) }),
];

/** Makes the settings an option that StrykerJS knows. */
export const strykerValidationSchema = { properties: { [SETTINGS_KEY]: { type: 'object' } } };
