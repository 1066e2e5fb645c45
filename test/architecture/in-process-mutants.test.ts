// The quick half of `npm run mutants`: what it says of a mutant, and what it leaves to processes of their own.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { InProcessJudge, type Judgement, type Observation, observe } from '../../scripts/mutants/in-process/judge.ts';
import type { ObservedFile } from '../../scripts/mutants/in-process/messages.ts';

/** Notes and asks for mutants as instrumented code does. */
const SOURCE = `
  const state = globalThis.__stryker__;
  export const isActive = (id) => {
    const { mutantCoverage: coverage, currentTestId: test } = state;
    (test ? (coverage.perTest[test] ??= {}) : coverage.static)[id] = 1;
    if (state.activeMutant !== id) return false;
    if (++state.hitCount > state.hitLimit) throw new Error('enough');
    return true;
  };
  export const LIMIT = isActive('at load') ? 2 : 1;
  export const kept = [];
`;

/** What is said of these mutants, one after the other, over test files of this text. */
async function ask(
  files: Record<string, string>,
  mutants: readonly string[],
  patienceMs = 60_000,
): Promise<{ readonly observation: Observation; readonly said: readonly Judgement[] }> {
  const root = mkdtempSync(path.join(tmpdir(), 'weir-test-'));
  const heads = `
    import assert from 'node:assert/strict';
    import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
    import { isActive, kept, LIMIT } from './source.mjs';
  `;
  writeFileSync(path.join(root, 'source.mjs'), SOURCE);
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(root, name), heads + text);
  const options = { root, source: 'source.mjs', patienceMs };
  const observation = await observe(options, Object.keys(files));
  const judge = new InProcessJudge(options, observation);
  try {
    const said: Judgement[] = [];
    for (const mutant of mutants) said.push(await judge.ask(mutant));
    return { observation, said };
  } finally {
    judge.close();
    rmSync(root, { recursive: true, force: true });
  }
}

const outcomes = async (text: string, mutants: readonly string[]): Promise<string[]> =>
  (await ask({ 'it.test.mjs': text }, mutants)).said.map(({ outcome }) => outcome);

describe('tests that run again and again in one process', () => {
  it('notice one mutant after the other, by the first test that fails', async () => {
    const text = `
      describe('both', () => {
        it('are off', () => assert.ok(!isActive('a') && !isActive('b')));
        it('are unlike', async () => { isActive('c'); });
      });
    `;
    const { said } = await ask({ 'it.test.mjs': text }, ['a', 'c', 'b', 'a']);
    const failed: Judgement = { outcome: 'failed', failure: 'both > are off' };
    assert.deepEqual(said, [failed, { outcome: 'passed', files: ['it.test.mjs'] }, failed, failed]);
  });

  it('say nothing of code that they do not reach, nor of code that runs while it is loaded', async () => {
    const text = "it('has a limit', () => assert.equal(LIMIT, 1)); it('reaches', () => void isActive('a'));";
    assert.deepEqual(await outcomes(text, ['elsewhere', 'at load', 'a']), ['unknown', 'unknown', 'passed']);
  });

  it('count as asked only where all of a file can be repeated', async () => {
    const text = `
      it('is repeatable', () => assert.ok(!isActive('a')));
      it('is the first', () => { isActive('b'); assert.equal(kept.push(1), 1); });
    `;
    assert.deepEqual((await ask({ 'it.test.mjs': text }, ['b', 'a'])).said, [
      { outcome: 'unknown' },
      { outcome: 'failed', failure: 'is repeatable' },
    ]);
    const reaching =
      "it('reaches', () => { isActive('a'); }); it('is the first', () => assert.equal(kept.push(1), 1));";
    assert.deepEqual((await ask({ 'it.test.mjs': reaching }, ['a'])).said, [{ outcome: 'passed', files: [] }]);
  });

  it('run with their hooks, and anew with each mutant', async () => {
    const text = `
      const done = [];
      before(() => done.push('before'));
      after(() => assert.deepEqual(done, ['before', 'each', 'test', 'own', 'behind']));
      beforeEach(() => done.push('each'));
      afterEach(() => void (isActive('b') ? assert.fail() : done.push('own')));
      it('is between', (t) => {
        t.after(() => done.push('behind'));
        done.push('test');
        assert.ok(!isActive('a'));
      });
      it('is left out', { skip: true }, () => assert.fail());
    `;
    assert.deepEqual(await outcomes(text, ['a', 'b', 'a']), ['failed', 'failed', 'failed']);
  });

  it('put back what they have replaced', async () => {
    const text = `
      it('replaces', (t) => {
        t.mock.method(Reflect, 'ownKeys', () => isActive('c'));
        assert.equal(Reflect.ownKeys({}), false);
      });
      it('has it back', () => { isActive('c'); assert.deepEqual(Reflect.ownKeys({}), []); });
    `;
    assert.deepEqual(await outcomes(text, ['c', 'c']), ['failed', 'failed']);
  });

  it('fail by what nobody catches, by waiting in vain, by an end of the process and by a loop without end', async () => {
    const text = `
      it('throws later', () => new Promise((resolve) => {
        setImmediate(() => { if (isActive('a')) throw new Error('later'); resolve(); });
      }));
      it('rejects aside', async () => {
        if (isActive('b')) Promise.reject(new Error('aside'));
        await new Promise(setImmediate);
      });
      it('waits', () => isActive('c') ? new Promise(() => {}) : undefined);
      it('ends', () => { if (isActive('d')) process.exit(0); });
      it('loops', () => { while (isActive('e')); });
    `;
    assert.deepEqual(await outcomes(text, ['a', 'b', 'c', 'd', 'e']), Array(5).fill('failed'));
  });

  it('are cut off when they do not end', async () => {
    const text = "it('comes to an end', async () => { while (isActive('a')) await new Promise(setImmediate);});";
    const { said } = await ask({ 'it.test.mjs': text }, ['a'], 500);
    assert.equal(said[0]!.outcome, 'timed-out');
  });

  it('do not take for noticed what a mutant before has spoilt', async () => {
    const text = `
      it('is clean', () => {
        if (isActive('a')) kept.push('dirt');
        assert.ok(!isActive('b'));
        assert.deepEqual(kept, []);
      });
      it('reaches', () => void isActive('c'));
    `;
    assert.deepEqual(await outcomes(text, ['b', 'a', 'b', 'c']), ['failed', 'unknown', 'failed', 'passed']);
  });

  it('try a property for a moment only, and leave the rest to another process', async () => {
    const text = `
      const { default: fc } = await import(${JSON.stringify(import.meta.resolve('fast-check'))});
      const isShort = fc.property(fc.nat(), () => !isActive('a'));
      it('is always off', () => fc.assert(isShort, { numRuns: 10 }));
      const isLong = fc.asyncProperty(fc.nat(), async () => {
        isActive('b');
        await new Promise(setImmediate);
      });
      it('takes long', () => fc.assert(isLong, { numRuns: 1e6 }));
    `;
    assert.deepEqual((await ask({ 'it.test.mjs': text }, ['a', 'b'])).said, [
      { outcome: 'failed', failure: 'is always off' },
      { outcome: 'passed', files: [] },
    ]);
  });

  it('know what is reached while a file is loaded or run, also in threads', async () => {
    const thread = `
      const { parentPort } = await import('node:worker_threads');
      const { isActive } = await import(process.env.SOURCE);
      parentPort.postMessage(isActive('in a thread'));
    `;
    const text = `
      import { Worker } from 'node:worker_threads';
      process.env.SOURCE = import.meta.resolve('./source.mjs');
      isActive('outside');
      it('waits for a thread', async () => {
        const worker = new Worker(${JSON.stringify(thread)}, { eval: true });
        assert.equal(await new Promise((resolve) => worker.once('message', resolve)), false);
        await worker.terminate();
      });
      it('is called once', () => { if (kept.length === 0) kept.push(isActive('once')); });
    `;
    const { observation } = await ask({ 'it.test.mjs': text }, []);
    assert.deepEqual(observation.atLoad, ['at load']);
    const [{ reached, tests, isWhole }] = observation.files as [ObservedFile];
    assert.deepEqual(reached.toSorted(), ['at load', 'in a thread', 'once', 'outside']);
    assert.deepEqual(
      tests.map(({ id, reached: own }) => ({ id, own })),
      [
        { id: 'waits for a thread', own: ['outside'] },
        { id: 'is called once', own: ['outside'] },
      ],
    );
    assert.ok(isWhole);
  });

  it('leave a file out that cannot be loaded here, and ask the others', async () => {
    const files = {
      'broken.test.mjs': "import './missing.mjs';",
      'it.test.mjs': "it('is off', () => assert.ok(!isActive('a')));",
    };
    assert.deepEqual((await ask(files, ['a'])).said, [{ outcome: 'failed', failure: 'is off' }]);
  });
});
