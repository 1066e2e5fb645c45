// What `npm run mutants` is made of: which tests it asks about a module, how it runs them, and what it reports.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import type { MutantResult } from '@stryker-mutator/api/core';
import {
  concernedTests,
  type ImportGraph,
  nearestTests,
  readImportGraph,
  repeatableTests,
} from '../../scripts/mutants/concerned-tests.ts';
import { EQUIVALENT_MUTANTS } from '../../scripts/mutants/equivalents.ts';
import { forgetSurvivors } from '../../scripts/mutants/former-results.ts';
import { renderReport, renderSum, reportOf } from '../../scripts/mutants/report.ts';
import { strykerPlugins } from '../../scripts/mutants/stryker-plugins.ts';
import { runTestProcess, type TestProcessResult } from '../../scripts/mutants/test-process.ts';
import { repositoryFiles } from '../../scripts/repository/files.ts';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import { eventually } from '../support/eventually.ts';

describe('the tests that concern a module', () => {
  const graph: ImportGraph = new Map([
    ['test/integration/a.test.ts', ['src/stats/index.ts']],
    ['test/integration/program.test.ts', ['test/support/weir-process.ts']],
    ['test/integration/store-files.test.ts', ['test/support/weir-process.ts']],
    ['test/unit/config/far.test.ts', ['src/stats/index.ts']],
    ['test/unit/config/near.test.ts', ['src/stats/store.ts']],
    ['test/unit/stats/other.test.ts', ['src/stats/index.ts']],
    ['test/unit/stats/store.test.ts', ['src/stats/index.ts']],
    ['test/unit/stats/unconcerned.test.ts', ['src/base/clock.ts']],
    ['test/support/weir-process.ts', ['src/main.ts']],
    ['src/main.ts', ['src/stats/index.ts']],
    ['src/stats/index.ts', ['src/stats/store.ts']],
    ['src/stats/store.ts', []],
    ['src/base/clock.ts', []],
  ]);
  const tests = [...graph.keys()].filter((file) => file.endsWith('.test.ts'));

  it('begin with those of its name and folder and end with those that start the program', () => {
    assert.deepEqual(concernedTests(graph, 'src/stats/store.ts', tests), [
      'test/unit/stats/store.test.ts',
      'test/unit/stats/other.test.ts',
      'test/integration/store-files.test.ts',
      'test/unit/config/near.test.ts',
      'test/integration/a.test.ts',
      'test/unit/config/far.test.ts',
      'test/integration/program.test.ts',
    ]);
  });

  it('begin with one of the very name, wherever it stands', () => {
    const named = 'test/integration/store.test.ts';
    const withNamed = new Map([...graph, [named, ['test/support/weir-process.ts']]]);
    assert.equal(concernedTests(withNamed, 'src/stats/store.ts', [...tests, named])[1], named);
  });

  it('are not unit tests alone where others look at the module as well', () => {
    const units = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => `test/unit/stats/${n}.test.ts`);
    const others = [1, 2, 3].map((n) => `test/integration/${n}.test.ts`);
    assert.deepEqual(nearestTests(units, 8), units);
    assert.deepEqual(nearestTests([...units, ...others], 8), [...units.slice(0, 6), ...others.slice(0, 2)]);
    assert.deepEqual(nearestTests([...others, ...units], 4), [...others, units[0]]);
  });

  it('are asked in one process where they start no program, or are unit tests', () => {
    const starting = 'test/unit/stats/starting.test.ts';
    const withStarting = new Map([...graph, [starting, ['test/support/weir-process.ts']]]);
    const files = ['test/integration/a.test.ts', 'test/integration/program.test.ts', starting];
    assert.deepEqual(repeatableTests(withStarting, files), ['test/integration/a.test.ts', starting]);
  });

  it('are found in the tree: by what they load when they run, over the programs and threads that they start', () => {
    const files = ['test/integration/server.test.ts', 'test/unit/stats/flush.test.ts'];
    const real = readImportGraph(PACKAGE_ROOT, files);
    assert.deepEqual(concernedTests(real, 'src/stats/flush.ts', files), [files[1], files[0]]);
    assert.deepEqual(concernedTests(real, 'src/data-plane/data-plane.ts', files), [files[0]]);
    assert.deepEqual(concernedTests(real, 'src/stats/gone.ts', files), []);
  });

  it('stand in a folder of the same name, so that they are the nearest', () => {
    const folders = repositoryFiles(PACKAGE_ROOT)
      .filter(({ path: file }) => file.startsWith('test/unit/') && file.endsWith('.test.ts'))
      .map(({ path: file }) => path.posix.dirname(file));
    assert.ok(folders.length > 0);
    const others = folders.filter((folder) => !existsSync(path.join(PACKAGE_ROOT, folder.replace('test/unit', 'src'))));
    assert.deepEqual(others, []);
  });
});

describe('a run of one test file', () => {
  const SOURCE = `
    const { mutantCoverage } = globalThis.__stryker__;
    const active = process.env.__STRYKER_ACTIVE_MUTANT__;
    export const reach = (id) => { if (mutantCoverage) mutantCoverage.static[id] = 1; };
    export const isActive = (id) => active === id;
  `;

  /** A tree of these files; `source.mjs` notes mutants as instrumented code does. */
  async function runIn(files: Record<string, string>, mutantId?: string, limitMs = 60_000): Promise<TestProcessResult> {
    const root = mkdtempSync(path.join(tmpdir(), 'weir-test-'));
    try {
      for (const [name, text] of Object.entries({ 'source.mjs': SOURCE, ...files })) {
        writeFileSync(path.join(root, name), text);
      }
      const mutant = mutantId === undefined ? {} : { mutantId };
      return await runTestProcess({ root, testFile: 'it.test.mjs', limitMs, ...mutant });
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  }

  it('notes the mutants that it reaches, also in threads and programs that are killed', async () => {
    const started = "import { reach } from './source.mjs'; setInterval(() => {}, 1000);";
    const result = await runIn({
      'thread.mjs': `${started} reach('2'); import('node:worker_threads').then((m) => m.parentPort.postMessage('up'));`,
      'program.mjs': `${started} reach('3'); process.stdout.write('up');`,
      'it.test.mjs': `
        import { once } from 'node:events';
        import { test } from 'node:test';
        import { Worker } from 'node:worker_threads';
        import { reach } from './source.mjs';
        const { spawn } = await import('node:child_process');
        test('all of them', async () => {
          reach('1');
          reach('1');
          const thread = new Worker(new URL('./thread.mjs', import.meta.url));
          await once(thread, 'message');
          await thread.terminate();
          const program = spawn(process.execPath, ['program.mjs']);
          await once(program.stdout, 'data');
          program.kill('SIGKILL');
          await once(program, 'exit');
        });
      `,
    });
    assert.ok(result.outcome === 'passed');
    assert.deepEqual(result.reached.toSorted(), ['1', '2', '3']);
  });

  it('fails with the first test that notices the mutant, and does not wait for the others', async () => {
    const files = {
      'it.test.mjs': `
        import { test } from 'node:test';
        import { isActive } from './source.mjs';
        test('still to be done', { todo: true }, () => { throw new Error('not yet'); });
        test('first', () => { if (isActive('7')) throw new Error('noticed'); });
        test('second', async () => { if (isActive('7')) await new Promise((resolve) => setTimeout(resolve, 3_600_000)); });
      `,
    };
    assert.equal((await runIn(files, '6')).outcome, 'passed');
    const failed = await runIn(files, '7');
    assert.ok(failed.outcome === 'failed');
    assert.equal(failed.failure, 'first');
  });

  it('fails when the file cannot even be loaded', async () => {
    const failed = await runIn({ 'it.test.mjs': "import './missing.mjs';" }, '1');
    assert.ok(failed.outcome === 'failed');
  });

  it('is cut off when it does not end', async () => {
    const endless = "import { test } from 'node:test'; test('endless', () => { for (;;); });";
    assert.equal((await runIn({ 'it.test.mjs': endless }, '1', 500)).outcome, 'timed-out');
  });

  it('ends a loop that a mutant has made endless', async () => {
    const failed = await runIn(
      {
        'it.test.mjs': `
          import { test } from 'node:test';
          const counts = globalThis.__stryker__;
          test('loop', () => { for (;;) if (++counts.hitCount > counts.hitLimit) throw new Error('enough'); });
        `,
      },
      '1',
    );
    assert.ok(failed.outcome === 'failed');
  });

  it('leaves neither a program nor a file behind', async (t) => {
    const connections: Socket[] = [];
    const server = createServer((socket) => void connections.push(socket.resume()));
    t.after(() => {
      for (const socket of connections) socket.destroy();
      server.close();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const failed = await runIn(
      {
        'program.mjs': `
          import { connect } from 'node:net';
          process.on('SIGTERM', () => {});
          connect(${port}, '127.0.0.1', () => process.stdout.write('up')).on('error', () => {});
        `,
        'it.test.mjs': `
          import { once } from 'node:events';
          import { mkdtempSync } from 'node:fs';
          import { tmpdir } from 'node:os';
          import { test } from 'node:test';
          const { spawn } = await import('node:child_process');
          test(mkdtempSync(tmpdir() + '/left-'), async () => {
            const program = spawn(process.execPath, ['program.mjs']);
            await once(program.stdout, 'data');
            throw new Error('fails');
          });
        `,
      },
      '1',
    );
    assert.ok(failed.outcome === 'failed');
    assert.match(failed.failure, /left-/);
    assert.equal(existsSync(failed.failure), false);
    await eventually(() => connections[0]?.closed === true, 'the program has ended');
  });
});

describe('the report', () => {
  const FILE = 'src/stats/example.ts';
  const TEXT = [
    'export function limit(n: number): number {',
    '  if (n > 3) {',
    '    return 3;',
    '  }',
    '  return n;',
    '}',
  ].join('\n');

  function mutant(
    status: MutantResult['status'],
    place: readonly [number, number, number, number],
    to: string,
  ): MutantResult {
    const [startLine, startColumn, endLine, endColumn] = place;
    const location = { start: { line: startLine, column: startColumn }, end: { line: endLine, column: endColumn } };
    return { id: `${startLine}:${to}`, fileName: FILE, mutatorName: 'Any', replacement: to, status, location };
  }
  const results = [
    mutant('Killed', [2, 7, 2, 12], 'false'),
    mutant('NoCoverage', [2, 14, 4, 4], '{}'),
    mutant('Survived', [2, 7, 2, 12], 'n >= 3'),
    mutant('Timeout', [3, 5, 3, 14], ';'),
    mutant('Ignored', [3, 5, 3, 14], ';'),
  ];

  it('names what no test notices by place, line and change', () => {
    const report = reportOf(FILE, TEXT, results, []);
    assert.equal(
      renderReport(report),
      [
        `${FILE}:2:7`,
        '    if (n > 3) {',
        '    n > 3 → n >= 3',
        `${FILE}:2:14 (no test comes here)`,
        '    if (n > 3) {',
        '    { return 3; } → {}',
        '',
      ].join('\n'),
    );
    assert.equal(
      renderSum([report]),
      '1 files: 2 mutants noticed, 1 of them by a test that did not end; 0 equivalent; 2 survive; 1 left out\n',
    );
  });

  const entry = { file: FILE, line: 'if (n > 3) {', changes: ['n > 3 → n >= 3'], why: 'the limit is 3 either way' };

  it('counts those apart that are known to be equivalent', () => {
    const report = reportOf(FILE, TEXT, results, [entry]);
    assert.deepEqual(
      report.survivors.map(({ change }) => change),
      ['{ return 3; } → {}'],
    );
    assert.deepEqual(
      report.equivalents.map(({ change }) => change),
      ['n > 3 → n >= 3'],
    );
  });

  it('explains nothing in another file, line or change, and says which explanations are needless', () => {
    for (const other of [
      { ...entry, file: 'src/stats/other.ts' },
      { ...entry, line: 'if (n > 4) {' },
      { ...entry, changes: ['n > 3 → true'] },
    ]) {
      const report = reportOf(FILE, TEXT, results, [other]);
      assert.equal(report.survivors.length, 2);
      assert.equal(report.needless.length, other.file === FILE ? 1 : 0);
    }
  });

  it('cuts long code in the middle', () => {
    const [survivor] = reportOf(FILE, TEXT, [mutant('Survived', [2, 7, 2, 12], 'n'.repeat(100))], []).survivors;
    assert.equal(survivor!.change, `n > 3 → ${'n'.repeat(35)}…${'n'.repeat(34)}`);
  });

  it('is kept for the next run without its survivors, which are asked about again', () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-test-'));
    const file = path.join(folder, 'kept.json');
    try {
      forgetSurvivors(file, FILE, [entry]);
      const testFiles = { 'test/a.test.ts': { source: 'text', tests: [] } };
      writeFileSync(file, JSON.stringify({ files: { [FILE]: { source: TEXT, mutants: results } }, testFiles }));
      forgetSurvivors(file, FILE, [entry]);
      const kept = JSON.parse(readFileSync(file, 'utf8'));
      const remaining = kept.files[FILE].mutants.map(({ status }: MutantResult) => status);
      assert.deepEqual(remaining, ['Killed', 'Survived', 'Timeout', 'Ignored']);
      assert.deepEqual(kept.testFiles, { 'test/a.test.ts': { tests: [] } });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('finds every explained line in its file', () => {
    for (const { file, line } of EQUIVALENT_MUTANTS) {
      const lines = readFileSync(path.join(PACKAGE_ROOT, file), 'utf8').split('\n');
      assert.ok(
        lines.some((text) => text.trim() === line),
        `${file} has no line ${line}`,
      );
    }
  });
});

describe('mutants of texts', () => {
  const text = { type: 'StringLiteral' };
  const method = (name: string) => ({
    type: 'MemberExpression',
    object: { type: 'Identifier', name: 'it' },
    property: { type: 'Identifier', name },
  });
  const isLeftOut = (parent: object, node: object = text): boolean => {
    const ignorer = strykerPlugins.find(({ kind }) => kind === 'Ignore') as unknown as {
      readonly value: { shouldIgnore(place: object): string | undefined };
    };
    return ignorer.value.shouldIgnore({ node, parent }) !== undefined;
  };
  const thrown = (name: string, ...args: object[]) => ({
    type: 'NewExpression',
    callee: { type: 'Identifier', name },
    arguments: args,
  });

  it('are left out where they only reword a log line or an error', () => {
    assert.ok(isLeftOut({ type: 'CallExpression', callee: method('warning') }));
    assert.ok(isLeftOut({ type: 'CallExpression', callee: method('debug') }, { type: 'TemplateLiteral' }));
    const ofFaults = { type: 'MemberExpression', property: { type: 'Identifier', name: 'faults' } };
    const run = (object: object) => ({
      type: 'CallExpression',
      callee: { ...method('run'), object },
      arguments: [text],
    });
    assert.ok(isLeftOut(run(ofFaults)));
    assert.equal(isLeftOut(run({ type: 'Identifier', name: 'queries' })), false);
    assert.ok(isLeftOut(thrown('Error', text)));
    assert.ok(isLeftOut(thrown('WeirError', { type: 'StringLiteral' }, text)));
  });

  it('are left out where they put a text into an empty list', () => {
    assert.ok(isLeftOut({ type: 'VariableDeclarator' }, { type: 'ArrayExpression', elements: [] }));
    assert.equal(isLeftOut({ type: 'VariableDeclarator' }, { type: 'ArrayExpression', elements: [text] }), false);
  });

  it('count where they are a code, a name or a value', () => {
    assert.equal(isLeftOut(thrown('WeirError', text)), false);
    assert.equal(isLeftOut(thrown('Map', text)), false);
    assert.equal(isLeftOut({ type: 'CallExpression', callee: method('counter') }), false);
    assert.equal(isLeftOut({ type: 'CallExpression', callee: method('info') }, { type: 'BooleanLiteral' }), false);
    assert.equal(isLeftOut({ type: 'ReturnStatement' }), false);
  });
});
