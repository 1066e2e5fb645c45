// Set-ups of one clone that begin at the same time, in real processes.

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { collectOutput, runProgram, startProgram } from '../support/child-process.ts';
import { untilEqual } from '../support/eventually.ts';

const LOCK = path.join(import.meta.dirname, '../../scripts/setup/lock.mjs');

let folder: string;
before(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'weir-set-up-'));
});
after(() => rmSync(folder, { recursive: true, force: true }));

/** Says when its work begins and ends, in a file that all of them write. */
function setUp(file: string, log: string, end = ''): [command: string, args: readonly string[]] {
  const program = `
    import { appendFileSync } from 'node:fs';
    import { oneAtATime } from ${JSON.stringify(LOCK)};
    const say = (text) => appendFileSync(${JSON.stringify(log)}, text + process.pid + ' ');
    oneAtATime(${JSON.stringify(file)}, () => {
      say('begins ');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
      ${end}
      say('ends ');
    }, (pid) => process.stdout.write(String(pid)));
  `;
  return [process.execPath, ['--input-type=module', '-e', program]];
}

describe('set-ups of a clone', () => {
  it('work one after the other', async () => {
    const [file, log] = [path.join(folder, 'one'), path.join(folder, 'one.log')];
    await Promise.all(Array.from({ length: 6 }, () => runProgram(...setUp(file, log))));
    const said = readFileSync(log, 'utf8').trim();
    assert.match(said, /^(?:begins (\d+) ends \1 ?){6}$/);
    assert.deepEqual(readdirSync(folder), ['one.log']);
  });

  it('do not wait for one that has died, and all of them leave nothing behind', async () => {
    const [file, log] = [path.join(folder, 'dead'), path.join(folder, 'dead.log')];
    await runProgram(...setUp(file, path.join(folder, 'died.log'), "process.kill(process.pid, 'SIGKILL');"));
    assert.match(readFileSync(file, 'utf8'), /^\d+$/);
    await Promise.all(Array.from({ length: 4 }, () => runProgram(...setUp(file, log))));
    assert.match(readFileSync(log, 'utf8').trim(), /^(?:begins (\d+) ends \1 ?){4}$/);
    assert.deepEqual(
      readdirSync(folder).filter((name) => !name.endsWith('.log')),
      [],
    );
  });

  it('do not wait for themselves: numbers of processes come again in a container', async () => {
    const [file, log] = [path.join(folder, 'self'), path.join(folder, 'self.log')];
    const [command, args] = setUp(file, log);
    const before = `require('node:fs').writeFileSync(${JSON.stringify(file)}, String(process.pid));`;
    await runProgram(command, [
      '--import',
      `data:text/javascript,import{createRequire}from'node:module';const require=createRequire('/');${encodeURIComponent(before)}`,
      ...args,
    ]);
    assert.match(readFileSync(log, 'utf8').trim(), /^begins (\d+) ends \1$/);
  });

  it('say once whom they wait for, and go on when a set-up has failed', async () => {
    const [file, log] = [path.join(folder, 'failed'), path.join(folder, 'failed.log')];
    writeFileSync(file, String(process.pid));
    const waiting = startProgram(...setUp(file, log));
    const { output, exited } = collectOutput(waiting);
    await untilEqual(String(process.pid), () => output.stdout, 'whom it waits for');
    rmSync(file);
    await exited;
    assert.equal(output.stdout, String(process.pid));
    await runProgram(...setUp(file, log, 'process.exit(0);'));
    await runProgram(...setUp(file, log));
    assert.match(readFileSync(log, 'utf8').trim(), /^begins (\d+) ends \1 begins \d+ begins (\d+) ends \2$/);
  });
});
