// The example of docs/library.md, as a project that has installed the package would run it.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { PACKAGE_ROOT } from '../../../src/base/package-root.ts';
import { runProgram } from '../../support/child-process.ts';

const project = realpathSync(mkdtempSync(path.join(tmpdir(), 'weir-library-')));
after(() => rmSync(project, { recursive: true }));

const REFERENCE = readFileSync(path.join(PACKAGE_ROOT, 'docs/library.md'), 'utf8');
const EXAMPLE = /```js\n([\s\S]*?)```/.exec(REFERENCE)![1]!;
const OUTPUT = /```text\n([\s\S]*?)```/.exec(REFERENCE)![1]!;

before(() => {
  mkdirSync(path.join(project, 'node_modules'));
  symlinkSync(PACKAGE_ROOT, path.join(project, 'node_modules/weir-proxy'));
});

async function run(name: string, text: string) {
  writeFileSync(path.join(project, name), text);
  return await runProgram(process.execPath, [name], { cwd: project });
}

describe('the example of the reference', () => {
  it('prints what the reference says, and the process ends by itself', async () => {
    const { code, stdout, stderr } = await run('example.mjs', EXAMPLE);
    assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: OUTPUT, stderr: '' });
  });

  it('does so in CommonJS', async () => {
    const lines = EXAMPLE.replaceAll(/^import (.*) from (.*);$/gm, 'const $1 = require($2);');
    assert.ok(lines.includes("const { createProxy } = require('weir-proxy');"));
    const { code, stdout, stderr } = await run('example.cjs', `(async () => {\n${lines}\n})();\n`);
    assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: OUTPUT, stderr: '' });
  });

  it('says which Node it needs where that is older', async () => {
    const older =
      'data:text/javascript,Object.defineProperty(process,"versions",{value:{...process.versions,node:"20.19.0"}})';
    writeFileSync(path.join(project, 'older.mjs'), EXAMPLE);
    writeFileSync(path.join(project, 'older.cjs'), "require('weir-proxy');");
    for (const name of ['older.mjs', 'older.cjs']) {
      const { code, stderr } = await runProgram(process.execPath, ['--import', older, name], { cwd: project });
      assert.equal(code, 1);
      assert.match(stderr, /Error: weir-proxy runs under Node 22\.15 or newer; this is 20\.19\.0/);
    }
  });

  it('is a test without mocks under node:test', async () => {
    const body = EXAMPLE.replaceAll(/^import .*$/gm, '').replace(
      /console\.log\((.*)\);/,
      'assert.deepEqual([$1], [200, "you asked for /a"]);',
    );
    const imports = [...EXAMPLE.matchAll(/^import .*$/gm)].join('\n');
    const text = `${imports}\nimport assert from 'node:assert';\nimport { test } from 'node:test';\ntest('goes through', async () => {${body}});\n`;
    writeFileSync(path.join(project, 'proxy.test.mjs'), text);
    // It is a run of its own, and no part of this one.
    const command = ['-u', 'NODE_TEST_CONTEXT', process.execPath, '--test', '--test-reporter=tap', 'proxy.test.mjs'];
    const { code, stdout } = await runProgram('env', command, { cwd: project });
    assert.match(stdout, /^# pass 1$/m);
    assert.equal(code, 0);
  });
});
