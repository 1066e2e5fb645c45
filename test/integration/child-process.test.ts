// What becomes of the programs that tests start, seen from outside: each case is a test run of its own that starts a
// program without end.

import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { repositoryFiles } from '../../scripts/repository/files.ts';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import { runProgram } from '../support/child-process.ts';
import { untilEqual } from '../support/eventually.ts';

const OWNER = 'test/support/child-process.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'weir-child-process-'));
after(() => rmSync(folder, { recursive: true }));

/** Runs a test file in which a shell starts another program, notes its id, and waits for it. */
async function runTestFile(name: string, ending: string): Promise<{ code: number | null; pids: number[] }> {
  const file = path.join(folder, `${name}.test.ts`);
  const pidFile = path.join(folder, `${name}.pids`);
  const script = `sleep 1000 & echo $$ $! >'${pidFile}'; echo; wait`;
  writeFileSync(
    file,
    `import { once } from 'node:events';
     import { it } from 'node:test';
     import { startProgram } from ${JSON.stringify(pathToFileURL(path.join(PACKAGE_ROOT, OWNER)).href)};
     it('starts a program', async () => {
       const program = startProgram('sh', ['-c', ${JSON.stringify(script)}]);
       await once(program.stdout, 'data');
       ${ending}
     });`,
  );
  // A test run within a test run is refused, unless it cannot know.
  const { code } = await runProgram('env', ['-u', 'NODE_TEST_CONTEXT', process.execPath, '--test', file]);
  return { code, pids: readFileSync(pidFile, 'utf8').trim().split(' ').map(Number) };
}

function isRunning(pid: number): boolean {
  return existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
}

describe('a program that a test has started', () => {
  const endings = [
    { name: 'the test passes', ending: '', expected: 0 },
    { name: 'the test fails', ending: "throw new Error('failed');", expected: 1 },
    { name: 'the test process is killed', ending: "process.kill(process.pid, 'SIGKILL');", expected: 1 },
  ];
  for (const { name, ending, expected } of endings) {
    it(`is gone with what it has started when ${name}`, async () => {
      const { code, pids } = await runTestFile(name.replaceAll(' ', '-'), ending);
      assert.equal(code, expected);
      assert.equal(pids.length, 2);
      for (const pid of pids) await untilEqual(false, () => isRunning(pid), `process ${pid}`);
    });
  }

  it('was started by the one module that sees to that', () => {
    const starters = repositoryFiles(PACKAGE_ROOT)
      .filter(({ path: file, text }) => file.startsWith('test/') && /\bfrom 'node:child_process';\n/.test(text))
      .map(({ path: file }) => file);
    assert.deepEqual(starters, [OWNER]);
  });
});
