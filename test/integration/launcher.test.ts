// The `weir` command: finds the pinned runtime, hands over, passes signals and the exit code on. Run on a copy of the
// package whose main program reports how it was started, and under a Node without execve as well, as old ones are.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, it } from 'node:test';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import { runProgram, startProgram } from '../support/child-process.ts';

const REPORTING_MAIN = `
const [command] = process.argv.slice(2);
process.on('SIGTERM', () => process.exit(42));
process.on('SIGUSR1', () => process.stdout.write('reopened\\n'));
if (command === 'wait') { process.stdout.write('waiting\\n'); setInterval(() => {}, 1000); }
else if (command === 'die') process.kill(process.pid, 'SIGKILL');
else if (command === 'exit') process.exit(7);
else process.stdout.write(JSON.stringify({ args: process.argv.slice(2), flags: process.execArgv, major: Number(process.versions.node.split('.')[0]) }));
`;

const folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'weir-launcher-')));
const installed = path.join(folder, 'lib', 'weir-proxy');
mkdirSync(path.join(installed, 'dist', 'src'), { recursive: true });
for (const part of ['bin', 'scripts/setup', 'package.json']) {
  cpSync(path.join(PACKAGE_ROOT, part), path.join(installed, part), { recursive: true });
}
writeFileSync(path.join(installed, 'dist', 'src', 'main.js'), REPORTING_MAIN);
symlinkSync(path.join(PACKAGE_ROOT, 'node_modules'), path.join(installed, 'node_modules'));
mkdirSync(path.join(folder, 'bin'));
const command = path.join(folder, 'bin', 'weir');
symlinkSync('../lib/weir-proxy/bin/weir.mjs', command);
after(() => rmSync(folder, { recursive: true }));

const WAYS = [
  { name: 'replacing its own process', flags: [] },
  { name: 'as a child process', flags: ['--import', 'data:text/javascript,process.execve=undefined'] },
];

for (const { name, flags } of WAYS) {
  const arguments_ = (...args: string[]): string[] => [...flags, command, ...args];

  describe(`the weir command, ${name}`, () => {
    it('runs main under the pinned runtime with its flags and the arguments given', async () => {
      const result = await runProgram(process.execPath, arguments_('-c', 'a b.yaml'));
      assert.equal(result.stderr, '');
      const report = JSON.parse(result.stdout);
      assert.deepEqual(report.args, ['-c', 'a b.yaml']);
      assert.ok(report.flags.includes('--disable-warning=ExperimentalWarning'));
      assert.ok(report.flags.includes('--enable-source-maps'));
      assert.ok(report.major >= 26);
    });

    it('ends with the exit code or the signal of the program', async () => {
      assert.equal((await runProgram(process.execPath, arguments_('exit'))).code, 7);
      assert.equal((await runProgram(process.execPath, arguments_('die'))).signal, 'SIGKILL');
    });

    it('passes SIGUSR1 and SIGTERM on', async () => {
      const child = startProgram(process.execPath, arguments_('wait'));
      const exited = once(child, 'exit');
      const lines = child.stdout.iterator() as AsyncIterator<string>;
      assert.equal((await lines.next()).value, 'waiting\n');
      child.kill('SIGUSR1');
      assert.equal((await lines.next()).value, 'reopened\n');
      child.kill('SIGTERM');
      assert.deepEqual(await exited, [42, null]);
    });
  });
}

describe('the weir command in a clone that was never built', () => {
  it('says what to run', async () => {
    rmSync(path.join(installed, 'dist'), { recursive: true });
    const result = await runProgram(process.execPath, [command]);
    assert.equal(result.code, 1);
    assert.match(result.stderr, /^weir: .*main\.js is missing; in a clone, run "npm run build" once\n$/);
  });
});
