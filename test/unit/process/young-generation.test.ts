// The sizes of young generations in a process that is started as the launcher starts it.

import assert from 'node:assert/strict';
import path from 'node:path';
import { describe, it } from 'node:test';
import { MAIN_FLAG } from '../../../src/process/young-generation.ts';
import { runProgram } from '../../support/child-process.ts';

const MODULE = path.join(import.meta.dirname, '../../../src/process/young-generation.ts');

/** Fills it until it has grown as far as it may; then how large it is. */
const SIZE = `
  const { getHeapSpaceStatistics } = require('node:v8');
  let kept = [];
  for (let made = 0; made < 3e6; made += 1) {
    kept.push({ made, of: [made] });
    if (kept.length > 60_000) kept = [];
  }
  const size = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space').space_size / 1e6;
`;

async function sizes(...flags: readonly string[]): Promise<{ readonly main: number; readonly thread: number }> {
  const worker = `${SIZE} require('node:worker_threads').parentPort.postMessage(size);`;
  const program = `
    const { leaveThreadsTheirYoungGeneration } = require(${JSON.stringify(MODULE)});
    leaveThreadsTheirYoungGeneration();
    ${SIZE}
    const { Worker } = require('node:worker_threads');
    new Worker(${JSON.stringify(worker)}, { eval: true }).on('message', (thread) => {
      process.stdout.write(JSON.stringify({ main: size, thread }));
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
    const { main, thread } = await sizes(MAIN_FLAG);
    // It is mostly a quarter; now and then the engine has pages beside it.
    assert.ok(main < 0.6 * thread, `${main} and ${thread} MB`);
  });

  it('are everywhere as somebody else has chosen', async () => {
    const { main, thread } = await sizes('--max-semi-space-size=4');
    assert.ok(main < 10 && thread < 10, `${main} and ${thread} MB`);
  });
});
