// The sizes of young generations in a process that is started as the launcher starts it.

import assert from 'node:assert/strict';
import path from 'node:path';
import { describe, it } from 'node:test';
import { MAIN_FLAG } from '../../../src/process/young-generation.ts';
import { runProgram } from '../../support/child-process.ts';

const MODULE = path.join(import.meta.dirname, '../../../src/process/young-generation.ts');

interface Limits {
  /** What a heap may take, in MB: its old generation, which is the same in all of these, and three times a semi-space. */
  readonly main: number;
  readonly thread: number;
}

const LIMIT = "require('node:v8').getHeapStatistics().heap_size_limit / 2 ** 20";

async function limits(...flags: readonly string[]): Promise<Limits> {
  const worker = `require('node:worker_threads').parentPort.postMessage(${LIMIT})`;
  const program = `
    const { leaveThreadsTheirYoungGeneration } = require(${JSON.stringify(MODULE)});
    leaveThreadsTheirYoungGeneration();
    const { Worker } = require('node:worker_threads');
    new Worker(${JSON.stringify(worker)}, { eval: true }).on('message', (thread) => {
      process.stdout.write(JSON.stringify({ main: ${LIMIT}, thread }));
    });
  `;
  const { stdout } = await runProgram(process.execPath, [
    ...flags,
    '--disable-warning=ExperimentalWarning',
    '-e',
    program,
  ]);
  return JSON.parse(stdout);
}

describe('young generations', () => {
  it('are small on main, and as the engine has them elsewhere', async () => {
    const [ours, engines, fours] = await Promise.all([limits(MAIN_FLAG), limits(), limits('--max-semi-space-size=4')]);
    assert.equal(ours.thread, engines.thread);
    assert.equal(engines.main, engines.thread);
    assert.equal(ours.main - fours.main, 3 * (8 - 4));
    assert.ok(ours.main < ours.thread, `${ours.main} and ${ours.thread} MB`);
  });

  it('are everywhere as somebody else has chosen', async () => {
    const { main, thread } = await limits('--max-semi-space-size=4');
    assert.equal(main, thread);
  });
});
