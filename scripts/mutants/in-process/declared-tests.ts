// Stands in for node:test where test files run many times in one process: `it`, `before` and the like note what a file
// declares, and a run goes through it. Loaded before the name `node:test` leads here. A file that uses more of node:test fails here and is asked in a process of its own.

import { type MockTracker, mock } from 'node:test';

const Mocks = mock.constructor as new () => MockTracker;

export type Body = (context: TestContext) => unknown;
type SuiteBody = () => void;
type Phase = 'before' | 'after' | 'beforeEach' | 'afterEach';

interface Options {
  readonly skip?: boolean | string;
  readonly todo?: boolean | string;
}

interface DeclaredTest {
  readonly kind: 'test';
  /** Names of its suites and its own; numbered where a file has the same ones twice. */
  readonly id: string;
  readonly body: Body;
}

interface Suite {
  readonly kind: 'suite';
  readonly name: string;
  readonly parent: Suite | null;
  readonly hooks: Readonly<Record<Phase, Body[]>>;
  readonly children: (Suite | DeclaredTest)[];
}

/** What a body is given, as far as the tests of this repository use it. */
export class TestContext {
  readonly name: string;
  /** What it replaces is put back in the end. */
  readonly mock = new Mocks();
  readonly #cleanups: Body[] = [];

  constructor(name: string) {
    this.name = name;
  }

  after(body: Body): void {
    this.#cleanups.push(body);
  }

  skip(_why?: string): void {}

  diagnostic(_text: string): void {}

  async end(): Promise<void> {
    try {
      for (const cleanup of this.#cleanups) await cleanup(this);
    } finally {
      this.mock.reset();
    }
  }
}

// Test files know nothing but the name `node:test`, so where their tests go cannot be handed to them.
let open: Suite | null = null;
let ids = new Set<string>();

function newSuite(name: string, parent: Suite | null): Suite {
  return { kind: 'suite', name, parent, hooks: { before: [], after: [], beforeEach: [], afterEach: [] }, children: [] };
}

function openSuite(): Suite {
  if (open === null) throw new Error('a test is declared while others run');
  return open;
}

function idOf(parent: Suite, name: string): string {
  const names = [name];
  for (let suite: Suite | null = parent; suite?.parent; suite = suite.parent) names.unshift(suite.name);
  const wanted = names.join(' > ');
  let id = wanted;
  for (let n = 2; ids.has(id); n++) id = `${wanted} (${n})`;
  ids.add(id);
  return id;
}

function splitArguments<Given>(args: readonly unknown[]): { options: Options; body: Given | undefined } {
  const body = args.find((arg) => typeof arg === 'function') as Given | undefined;
  const options = (args.find((arg) => typeof arg === 'object' && arg !== null) ?? {}) as Options;
  return { options, body };
}

export function test(name: string, ...args: readonly unknown[]): void {
  const { options, body } = splitArguments<Body>(args);
  const parent = openSuite();
  const id = idOf(parent, name);
  if (body === undefined || options.skip || options.todo) return;
  if (body.length > 1) throw new Error('tests that end with a callback are not supported');
  parent.children.push({ kind: 'test', id, body });
}

export function describe(name: string, ...args: readonly unknown[]): void {
  const { options, body } = splitArguments<SuiteBody>(args);
  const parent = openSuite();
  if (body === undefined || options.skip || options.todo) return;
  const suite = newSuite(name, parent);
  parent.children.push(suite);
  open = suite;
  const returned: unknown = body();
  open = parent;
  if (returned instanceof Promise) throw new Error('suites that are declared later are not supported');
}

const nothing = (): void => {};
test.skip = nothing;
test.todo = nothing;
describe.skip = nothing;
describe.todo = nothing;

const hook =
  (phase: Phase) =>
  (body: Body): void =>
    void openSuite().hooks[phase].push(body);

export const before = hook('before');
export const after = hook('after');
export const beforeEach = hook('beforeEach');
export const afterEach = hook('afterEach');
export { describe as suite, test as it };
export default test;

/** Who is told of a run. */
export interface RunWatcher {
  isWanted(testId: string): boolean;
  started(testId: string): void;
  /** @returns whether to go on; what has been begun is cleaned up in any case. */
  ended(testId: string, error: unknown): boolean;
}

/** What a file has declared. */
export class DeclaredTests {
  readonly #root: Suite;

  private constructor(root: Suite) {
    this.#root = root;
  }

  static async of(load: () => Promise<unknown>): Promise<DeclaredTests> {
    const root = newSuite('', null);
    open = root;
    ids = new Set();
    try {
      await load();
    } finally {
      open = null;
    }
    return new DeclaredTests(root);
  }

  /** Runs what is wanted of it, one after the other. Rejects when a hook around several tests fails. */
  async run(watcher: RunWatcher): Promise<void> {
    await runSuite(this.#root, watcher);
  }
}

/** The outermost suite runs its hooks in any case: what its file has opened while it was loaded is closed there. */
async function runSuite(suite: Suite, watcher: RunWatcher): Promise<boolean> {
  const isWanted = (child: Suite | DeclaredTest): boolean =>
    child.kind === 'test' ? watcher.isWanted(child.id) : child.children.some(isWanted);
  const wanted = suite.children.filter(isWanted);
  if (wanted.length === 0 && suite.parent !== null) return true;
  const context = new TestContext(suite.name);
  try {
    for (const body of suite.hooks.before) await body(context);
    for (const child of wanted) {
      const goOn = child.kind === 'test' ? await runTest(child, suite, watcher) : await runSuite(child, watcher);
      if (!goOn) return false;
    }
    return true;
  } finally {
    for (const body of suite.hooks.after) await body(context);
    await context.end();
  }
}

async function runTest({ id, body }: DeclaredTest, suite: Suite, watcher: RunWatcher): Promise<boolean> {
  const failure = new Failure();
  watcher.started(id);
  const context = new TestContext(id);
  const suites: Suite[] = [];
  for (let outer: Suite | null = suite; outer !== null; outer = outer.parent) suites.unshift(outer);
  await failure.of(async () => {
    for (const { hooks } of suites) for (const each of hooks.beforeEach) await each(context);
    await body(context);
  });
  for (const { hooks } of suites.toReversed()) {
    for (const each of hooks.afterEach) await failure.of(() => each(context));
  }
  await failure.of(() => context.end());
  return watcher.ended(id, failure.error);
}

/** The first error of a test and of what cleans up behind it. */
class Failure {
  error: unknown;

  async of(act: () => unknown): Promise<void> {
    const outside = new Promise<never>((_, reject) => {
      failRunning = reject;
    });
    try {
      await Promise.race([act(), outside]);
    } catch (error) {
      this.error ??= error ?? new Error('failed');
    } finally {
      failRunning = null;
    }
  }
}

let failRunning: ((error: unknown) => void) | null = null;

/** For an error that nobody has caught, or a test that waits for nothing. @returns whether a test was running. */
export function failRunningTest(error: unknown): boolean {
  const fail = failRunning;
  fail?.(error);
  return fail !== null;
}
