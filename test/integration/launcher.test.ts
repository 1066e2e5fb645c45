// The command `weir`: finds the runtime and what it needs, and becomes the program. Run on a copy of the package whose
// program reports how it was started.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { NO_RUNTIME_MESSAGE, RUNTIME_MAJOR, runtimeFolder, runtimeVersion } from '../../scripts/setup/runtime.mjs';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import { addonName } from '../../src/base/re2.ts';
import { MAIN_FLAG } from '../../src/process/young-generation.ts';
import { type ExitResult, type Program, runProgram, startProgram } from '../support/child-process.ts';

const REPORTING_PROGRAM = `
const [command] = process.argv.slice(2);
process.on('SIGTERM', () => process.exit(42));
if (command === 'wait') { process.stdout.write('waiting\\n'); setInterval(() => {}, 1000); }
else if (command === 'die') process.kill(process.pid, 'SIGKILL');
else if (command === 'exit') process.exit(7);
else {
  const { argv, execArgv, execPath, pid, env, versions } = process;
  process.stdout.write(JSON.stringify({
    program: argv[1], args: argv.slice(2), flags: execArgv, execPath, pid, cache: env.NODE_COMPILE_CACHE, node: versions.node,
  }));
}
`;

/** A package as npm installs it, with the commands that it links. */
class Installation {
  readonly folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'weir-launcher-')));
  readonly package = path.join(this.folder, 'node_modules', 'weir-proxy');
  readonly modules = path.join(this.folder, 'node_modules');
  readonly cache = path.join(this.folder, 'compile-cache');

  constructor(t: TestContext) {
    t.after(() => rmSync(this.folder, { recursive: true }));
    for (const part of ['bin', 'scripts/setup', 'package.json']) {
      cpSync(path.join(PACKAGE_ROOT, part), path.join(this.package, part), { recursive: true });
    }
    for (const program of ['src', 'src/bench-cli']) {
      mkdirSync(path.join(this.package, 'dist', program), { recursive: true });
      writeFileSync(path.join(this.package, 'dist', program, 'main.js'), REPORTING_PROGRAM);
    }
    mkdirSync(path.join(this.modules, '.bin'));
    for (const [name, file] of Object.entries<string>(packageFile().bin)) {
      symlinkSync(path.join('../weir-proxy', file), path.join(this.modules, '.bin', name));
    }
  }

  /** Beside the package, where npm puts what several packages may share. */
  addRuntime(): this {
    const target = runtimeFolder()!;
    symlinkSync(target, path.join(this.modules, path.basename(target)));
    return this;
  }

  /** One that loads, but that no runtime is known to have loaded. */
  addRe2(): this {
    const re2 = path.join(this.modules, 're2');
    mkdirSync(path.join(re2, 'build/Release'), { recursive: true });
    writeFileSync(path.join(re2, 'package.json'), '{ "name": "re2", "version": "1.0.0" }');
    writeFileSync(path.join(re2, 'index.js'), 'module.exports = class { test() { return true; } };');
    return this;
  }

  get stamps(): string[] {
    return readdirSync(path.join(this.modules, 're2/build/Release'));
  }

  start(args: readonly string[], { name = 'weir', PATH = process.env.PATH! } = {}): Program {
    return startProgram(path.join(this.modules, '.bin', name), args, { env: { PATH, NODE_COMPILE_CACHE: this.cache } });
  }

  async run(args: readonly string[], { name = 'weir', PATH = process.env.PATH! } = {}): Promise<ExitResult> {
    return runProgram(path.join(this.modules, '.bin', name), args, { env: { PATH, NODE_COMPILE_CACHE: this.cache } });
  }
}

function packageFile() {
  return JSON.parse(readFileSync(path.join(PACKAGE_ROOT, 'package.json'), 'utf8'));
}

function complete(t: TestContext): Installation {
  return new Installation(t).addRuntime().addRe2();
}

describe('the weir command', () => {
  it('becomes the program, under the pinned runtime with its flags, with the arguments given', async (t) => {
    const installation = complete(t);
    const child = installation.start(['-c', 'a b.yaml', '', '*']);
    const [text] = (await once(child.stdout, 'data')) as [string];
    const report = JSON.parse(text);
    assert.equal(report.program, path.join(installation.package, 'dist/src/main.js'));
    assert.deepEqual(report.args, ['-c', 'a b.yaml', '', '*']);
    assert.equal(report.pid, child.pid);
    assert.equal(realpathSync(report.execPath), realpathSync(path.join(runtimeFolder()!, 'bin/node')));
    assert.ok(report.flags.includes('--disable-warning=ExperimentalWarning'));
    assert.ok(report.flags.includes('--enable-source-maps'));
    assert.ok(report.flags.includes(MAIN_FLAG));
    assert.equal(report.flags.includes('--disable-sigusr1'), process.platform === 'linux');
    assert.equal(report.cache, installation.cache);
  });

  it('keeps compiled code in the build folder where that can be written', async (t) => {
    const installation = complete(t);
    const build = path.join(installation.package, 'build');
    mkdirSync(build);
    const command = ['-u', 'NODE_COMPILE_CACHE', path.join(installation.modules, '.bin/weir')];
    const { stdout } = await runProgram('env', command);
    assert.equal(JSON.parse(stdout).cache, path.join(build, 'compile-cache'));
    rmSync(build, { recursive: true });
    assert.equal(JSON.parse((await runProgram('env', command)).stdout).cache, undefined);
  });

  it('ends with the exit code or the signal of the program', async (t) => {
    const installation = complete(t);
    assert.equal((await installation.run(['exit'])).code, 7);
    assert.equal((await installation.run(['die'])).signal, 'SIGKILL');
    const child = installation.start(['wait']);
    const exited = once(child, 'exit');
    await once(child.stdout, 'data');
    child.kill('SIGTERM');
    assert.deepEqual(await exited, [42, null]);
  });

  it('is weir-bench by its other name, which needs no addon', async (t) => {
    const installation = new Installation(t).addRuntime();
    const { stdout } = await installation.run(['all'], { name: 'weir-bench' });
    const report = JSON.parse(stdout);
    assert.equal(report.program, path.join(installation.package, 'dist/src/bench-cli/main.js'));
    assert.deepEqual(report.args, ['all']);
  });

  it('runs from where it lies, by any path to it', async (t) => {
    const installation = complete(t);
    const bin = path.join(installation.package, 'bin');
    for (const [cwd, command] of [
      [bin, './weir'],
      [installation.package, 'bin/weir'],
      ['/', path.join(bin, 'weir')],
    ] as const) {
      const { stdout, stderr } = await runProgram(command, [], { cwd, env: { CDPATH: '/' } });
      assert.equal(stderr, '');
      assert.equal(JSON.parse(stdout).program, path.join(installation.package, 'dist/src/main.js'));
    }
  });

  it('has the addon put in place once for each runtime', async (t) => {
    const installation = complete(t);
    const index = path.join(installation.modules, 're2/index.js');
    assert.equal((await installation.run([])).code, 0);
    assert.deepEqual(installation.stamps, [`.loads-in-${runtimeVersion()}`]);
    // Nobody asks again.
    writeFileSync(index, 'throw new Error("asked");');
    assert.equal((await installation.run([])).code, 0);
  });

  it('needs no other addon where the package brings that of this platform', async (t) => {
    const installation = new Installation(t).addRuntime();
    const addons = path.join(installation.package, 'build/addons');
    mkdirSync(addons, { recursive: true });
    writeFileSync(path.join(addons, addonName()), '');
    assert.equal((await installation.run([])).code, 0);
    writeFileSync(path.join(addons, addonName().replace('147', '146')), '');
    rmSync(path.join(addons, addonName()));
    assert.equal((await installation.run([])).stderr, 'weir: re2 is not installed\n');
  });

  it('ends with 1 and the reason when the addon cannot be put in place', async (t) => {
    const installation = new Installation(t).addRuntime();
    const { code, stdout, stderr } = await installation.run([]);
    assert.deepEqual([code, stdout], [1, '']);
    assert.equal(stderr, 'weir: re2 is not installed\n');
  });

  it('takes a Node of PATH that is new enough where none is pinned', async (t) => {
    const installation = new Installation(t).addRe2();
    const folder = path.join(installation.folder, 'path');
    mkdirSync(folder);
    symlinkSync(process.execPath, path.join(folder, 'node'));
    const { stdout, stderr } = await installation.run([], { PATH: `${folder}:/usr/bin:/bin` });
    assert.equal(stderr, '');
    assert.equal(JSON.parse(stdout).node, process.versions.node);
    assert.deepEqual(installation.stamps, [`.loads-in-${process.versions.node}`]);
    const again = await installation.run([], { PATH: `${folder}:/usr/bin:/bin` });
    assert.equal(again.code, 0);
  });

  it('says what is missing where no Node is new enough', async (t) => {
    const installation = new Installation(t).addRe2();
    const folder = path.join(installation.folder, 'path');
    mkdirSync(folder);
    writeFileSync(path.join(folder, 'node'), `#!/bin/sh\necho v${RUNTIME_MAJOR - 1}.9.0\n`);
    chmodSync(path.join(folder, 'node'), 0o755);
    const { code, stderr } = await installation.run([], { PATH: `${folder}:/usr/bin:/bin` });
    assert.equal(code, 1);
    assert.equal(stderr, `weir: ${NO_RUNTIME_MESSAGE}\n`);
  });

  it('says what to run in a clone that was never built', async (t) => {
    const installation = complete(t);
    rmSync(path.join(installation.package, 'dist'), { recursive: true });
    const { code, stderr } = await installation.run([]);
    assert.equal(code, 1);
    assert.match(stderr, /^weir: .*main\.js is missing; in a clone, run "npm run build" once\n$/);
  });

  it('is a file of the package for each of its names', () => {
    for (const file of Object.values<string>(packageFile().bin)) assert.ok(existsSync(path.join(PACKAGE_ROOT, file)));
  });
});
