// Asks unit tests about mutants without starting a process for each: a host keeps sources and tests loaded, and a mutant
// is switched on in it. Says less than processes of their own do: of code that runs only once, while it is loaded, and of
// tests that cannot be repeated it says nothing.

import { type ChildProcess, fork } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { killGroup, testEnvironment } from '../test-process.ts';
import type { HostAnswer, HostRequest, ObservedFile, ObservedTest, TestSelection } from './messages.ts';

const HOST = path.join(import.meta.dirname, 'host.ts');
const LOAD_LIMIT_MS = 60_000;
/** For running all tests of a file twice. */
const OBSERVE_LIMIT_MS = 120_000;
/** With a mutant, so many times as long as without, and `patienceMs` more. */
const SLOWDOWN_FACTOR = 4;
const PATIENCE_MS = 2_000;

export interface JudgeOptions {
  /** Folder that holds the instrumented tree. */
  readonly root: string;
  /** The instrumented file, relative to `root`. */
  readonly source: string;
  /** For a busy machine. Tests that take longer are asked a second time, in a new host. */
  readonly patienceMs?: number;
}

/** What unit tests do without a mutant; what judges start from. */
export interface Observation {
  /** Mutants in code that runs while the source is loaded. */
  readonly atLoad: readonly string[];
  readonly files: readonly ObservedFile[];
}

export type Judgement =
  | { readonly outcome: 'failed' | 'timed-out'; readonly failure: string }
  /** No test notices the mutant; these files have nothing more to say. */
  | { readonly outcome: 'passed'; readonly files: readonly string[] }
  /** None can say anything about it. */
  | { readonly outcome: 'unknown' };

/** @param testFiles  relative to the root. Those are left out that cannot be run here. */
export async function observe(options: JudgeOptions, testFiles: readonly string[]): Promise<Observation> {
  const files: ObservedFile[] = [];
  let atLoad: readonly string[] = [];
  let host: Host | null = null;
  for (const file of testFiles) {
    if (host === null) {
      host = new Host(options.root);
      const loaded = await host.request({ kind: 'load', source: options.source, files: [] }, LOAD_LIMIT_MS);
      if (typeof loaded === 'object' && loaded.kind === 'loaded') atLoad = loaded.reached;
    }
    const answer = await host.request({ kind: 'observe', file }, OBSERVE_LIMIT_MS);
    if (typeof answer === 'object' && answer.kind === 'observed') {
      files.push(answer);
    } else {
      host.end();
      host = null;
    }
  }
  host?.end();
  return { atLoad, files };
}

interface TestOfFile extends ObservedTest {
  readonly file: string;
}

export class InProcessJudge {
  readonly #options: JudgeOptions;
  readonly #tests: readonly TestOfFile[];
  readonly #wholeFiles: ReadonlySet<string>;
  readonly #atLoad: ReadonlySet<string>;
  #host: Host | null = null;

  constructor(options: JudgeOptions, { atLoad, files }: Observation) {
    this.#options = options;
    this.#tests = files.flatMap(({ file, tests }) => tests.map((observed) => ({ ...observed, file })));
    this.#wholeFiles = new Set(files.filter(({ isWhole }) => isWhole).map(({ file }) => file));
    this.#atLoad = new Set(atLoad);
  }

  async ask(mutantId: string): Promise<Judgement> {
    const reaching = this.#atLoad.has(mutantId) ? [] : this.#tests.filter(({ reached }) => reached.includes(mutantId));
    if (reaching.length === 0) return { outcome: 'unknown' };
    const first = await this.#askOnce(mutantId, reaching);
    if (first.outcome === 'passed' || first.outcome === 'failed') return first;
    // Perhaps because of something that the mutants before have left behind.
    return await this.#askOnce(mutantId, reaching);
  }

  close(): void {
    this.#host?.end();
    this.#host = null;
  }

  async #askOnce(mutantId: string, reaching: readonly TestOfFile[]): Promise<Judgement> {
    const host = this.#host ?? (await this.#start());
    const selection = selectionOf(reaching);
    const limitMs = SLOWDOWN_FACTOR * sumOfMs(reaching) + (this.#options.patienceMs ?? PATIENCE_MS);
    const answer = await host?.request({ kind: 'ask', mutantId, selection }, limitMs);
    if (typeof answer === 'object') {
      if (answer.kind === 'passed')
        return { outcome: 'passed', files: answer.inFull.filter((file) => this.#wholeFiles.has(file)) };
      if (answer.kind === 'failed' && !answer.isSpoilt) return { outcome: 'failed', failure: answer.failure };
    }
    this.close();
    if (answer === 'late') return { outcome: 'timed-out', failure: selection[0]!.file };
    if (answer === 'gone') return { outcome: 'failed', failure: 'the process has ended' };
    return { outcome: 'unknown' };
  }

  async #start(): Promise<Host | null> {
    const files = [...new Set(this.#tests.map(({ file }) => file))];
    const host = new Host(this.#options.root);
    this.#host = host;
    const answer = await host.request({ kind: 'load', source: this.#options.source, files }, LOAD_LIMIT_MS);
    if (typeof answer === 'object' && answer.kind === 'loaded') return host;
    this.close();
    return null;
  }
}

/** How long they take without a mutant. */
export const sumOfMs = (tests: readonly ObservedTest[]): number => tests.reduce((total, { ms }) => total + ms, 0);

/** The quickest file first: most mutants are noticed by any of them. */
function selectionOf(tests: readonly TestOfFile[]): TestSelection {
  const byFile = [...Map.groupBy(tests, ({ file }) => file)].sort(([, a], [, b]) => sumOfMs(a) - sumOfMs(b));
  return byFile.map(([file, ofFile]) => ({ file, tests: ofFile.map(({ id }) => id) }));
}

/** One process; ends with its answer to a request when that takes too long. */
class Host {
  /** Whatever the tests write lies here. */
  readonly #folder = mkdtempSync(path.join(tmpdir(), 'weir-mutants-'));
  readonly #child: ChildProcess;

  constructor(root: string) {
    const temporary = path.join(this.#folder, 'tmp');
    mkdirSync(temporary);
    this.#child = fork(HOST, [], {
      cwd: root,
      execArgv: ['--disable-warning=ExperimentalWarning'],
      env: testEnvironment(root, temporary),
      stdio: ['ignore', 'ignore', process.env.WEIR_MUTANTS_DEBUG ? 'inherit' : 'ignore', 'ipc'],
      // A process group, which holds all programs that tests start.
      detached: true,
    });
  }

  /** When the answer is `late` or the process `gone`, the host is of no more use. */
  request(request: HostRequest, limitMs: number): Promise<HostAnswer | 'late' | 'gone'> {
    const child = this.#child;
    return new Promise((resolve) => {
      const settle = (answer: HostAnswer | 'late' | 'gone'): void => {
        clearTimeout(timer);
        child.off('message', settle).off('exit', gone).off('error', gone);
        resolve(answer);
      };
      const gone = (): void => settle('gone');
      const timer = setTimeout(settle, limitMs, 'late');
      child.on('message', settle).on('exit', gone).on('error', gone);
      child.send(request, (error) => {
        if (error) gone();
      });
    });
  }

  end(): void {
    killGroup(this.#child);
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
