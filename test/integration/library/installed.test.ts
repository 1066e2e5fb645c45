// The package as `npm run pack` makes it, unpacked where npm would: what is in it, and that it serves from there.

import assert from 'node:assert/strict';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { PACKAGE_ROOT } from '../../../src/base/package-root.ts';
import { runProgram } from '../../support/child-process.ts';
import { bootstrapOf, clusterAt, httpListener } from '../../support/embedded.ts';

const project = realpathSync(mkdtempSync(path.join(tmpdir(), 'weir-installed-')));
const installed = path.join(project, 'node_modules/weir-proxy');
const EXAMPLE = /```js\n([\s\S]*?)```/.exec(readFileSync(path.join(PACKAGE_ROOT, 'docs/library.md'), 'utf8'))![1]!;
after(() => rmSync(project, { recursive: true }));

before(async () => {
  const packed = await runProgram(process.execPath, [path.join(PACKAGE_ROOT, 'scripts/pack.mjs'), project]);
  assert.equal(packed.code, 0, packed.stderr);
  await runProgram('tar', ['-xzf', packed.stdout.trim(), '-C', project]);
  mkdirSync(path.dirname(installed));
  renameSync(path.join(project, 'package'), installed);
  const manifest = JSON.parse(readFileSync(path.join(installed, 'package.json'), 'utf8'));
  for (const name of Object.keys(manifest.dependencies)) {
    const link = path.join(project, 'node_modules', name);
    mkdirSync(path.dirname(link), { recursive: true });
    symlinkSync(path.join(PACKAGE_ROOT, 'node_modules', name), link);
  }
});

async function run(name: string, text: string) {
  writeFileSync(path.join(project, name), text);
  return await runProgram(process.execPath, [name], { cwd: project });
}

/** Packages and programs of test runners to try it under: `npm install vitest jest` in a folder, whose path this is. */
const RUNNERS = process.env.WEIR_TEST_RUNNERS;

function runner(name: string, file: string): { readonly command: string; readonly skip: string | false } {
  const command = path.join(RUNNERS ?? '', 'node_modules', name, file);
  const skip =
    RUNNERS !== undefined && existsSync(command) ? false : `set WEIR_TEST_RUNNERS to a folder with ${name} installed`;
  return { command, skip };
}

/** One test around the example of the reference. */
function testOf(imports: string): string {
  const body = EXAMPLE.replaceAll(/^import .*$/gm, '').replace('console.log', 'seen');
  return `${imports}
const seen = (status, text) => { if (status !== 200 || text !== 'you asked for /a') throw new Error(text); };
test('goes through a real proxy', async () => {${body}}, 60_000);
`;
}

describe('the installed package', () => {
  it('is what npm publishes: the clone is private', () => {
    const ofClone = JSON.parse(readFileSync(path.join(PACKAGE_ROOT, 'package.json'), 'utf8'));
    assert.equal(ofClone.private, true);
  });

  it('is what `npm pack` makes of the clone, but for what only a clone needs', async () => {
    const args = ['pack', '--dry-run', '--json', '--loglevel=error'];
    const { code, stdout, stderr } = await runProgram('npm', args, { cwd: PACKAGE_ROOT });
    assert.equal(code, 0, stderr);
    const [packed] = JSON.parse(stdout) as [{ files: { path: string }[] }];
    const ofClone = packed.files.map((file) => file.path).sort();
    const here = readdirSync(installed, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => path.relative(installed, path.join(entry.parentPath, entry.name)))
      .sort();
    assert.deepEqual(ofClone, here);

    const of = (folder: string) => JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
    const { private: _private, workspaces, scripts: _scripts, devDependencies: _dev, ...brought } = of(PACKAGE_ROOT);
    assert.deepEqual(brought, of(installed));
    assert.deepEqual(workspaces, ['runtime']);
  });

  it('asks for nothing that is in its bundles, nor for what builds them', () => {
    const manifest = JSON.parse(readFileSync(path.join(installed, 'package.json'), 'utf8'));
    assert.deepEqual(Object.keys(manifest.dependencies), ['@assemblyscript/loader']);
    assert.deepEqual(
      [
        manifest.private,
        manifest.devDependencies,
        manifest.optionalDependencies,
        manifest.workspaces,
        manifest.scripts,
      ],
      [undefined, undefined, undefined, undefined, undefined],
    );
    assert.equal(manifest.peerDependenciesMeta.re2.optional, true);
    // Nobody else brings their licences.
    const licences = readFileSync(path.join(installed, 'dist/LICENCES.txt'), 'utf8');
    for (const name of ['fastify', 'protobufjs', 'uplot', 're2', 'js-yaml', '@grpc/grpc-js']) {
      assert.match(licences, new RegExp(`^${name} [\\d.]+ \\(`, 'm'));
    }
  });

  it('has commands that find all that they need', async () => {
    const distribution = ['distribution', '--hosts', '3', '--keys', '1000', '--table-size', '31'];
    for (const [name, args, said] of [
      ['weir', ['--help'], /USAGE/],
      ['weir-bench', distribution, /\n +3 {2}maglev 31 /],
    ] as const) {
      const command = path.join(project, 'node_modules/.bin', name);
      mkdirSync(path.dirname(command), { recursive: true });
      symlinkSync('../weir-proxy/bin/weir', command);
      const { code, stdout, stderr } = await runProgram(command, args, {
        env: { PATH: `${path.dirname(process.execPath)}:${process.env.PATH}` },
      });
      assert.deepEqual([code, stderr], [0, ''], name);
      assert.match(stdout, said, name);
    }
  });

  it('says which Node it needs before it looks at what only that one has', async () => {
    const old = path.join(project, 'old');
    cpSync(path.join(installed, 'package.json'), path.join(old, 'node_modules/weir-proxy/package.json'));
    const doors = 'dist/src/library';
    for (const file of ['door.js', 'index.cjs', 'node-check.cjs'])
      cpSync(path.join(installed, doors, file), path.join(old, 'node_modules/weir-proxy', doors, file));
    const library = path.join(old, 'node_modules/weir-proxy', doors, 'index.js');
    writeFileSync(library, "import { whatOnlyNewOnesHave } from 'node:tls';");
    const versions = "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.19.1' } });";
    for (const load of ["import('weir-proxy')", "Promise.try(() => require('weir-proxy'))"]) {
      const text = `${versions} ${load}.catch(({ message }) => console.log(message));`;
      const { stdout } = await runProgram(process.execPath, ['--input-type=commonjs', '-e', text], { cwd: old });
      assert.equal(stdout, 'weir-proxy runs under Node 22.15 or newer; this is 20.19.1\n', load);
    }
  });

  it('runs the example of its reference', async () => {
    const { code, stdout, stderr } = await run('example.mjs', EXAMPLE);
    assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: '200 you asked for /a\n', stderr: '' });
  });

  it('brings what regular expressions need', async () => {
    const listener = JSON.stringify(httpListener('http', 'web')).replace(
      '{"prefix":"/"}',
      '{"safe_regex":{"regex":"/a+"}}',
    );
    const config = JSON.stringify(bootstrapOf([JSON.parse(listener)], [clusterAt('web', 1)]));
    const text = `import { createProxy } from 'weir-proxy';
      const proxy = await createProxy(${config});
      const ask = async (path) => (await fetch(proxy.listeners.get('http').url + path)).status;
      console.log(await ask('/aa'), await ask('/b'));
      await proxy.close();`;
    const { stdout, stderr } = await run('expressions.mjs', text);
    assert.deepEqual([stdout, stderr], ['503 404\n', '']);
  });

  const vitest = runner('vitest', 'vitest.mjs');
  it('is the proxy of a test under vitest', { skip: vitest.skip }, async () => {
    const imports = `import { createServer } from 'node:http';\nimport { createProxy } from 'weir-proxy';\nimport { test } from 'vitest';`;
    writeFileSync(path.join(project, 'proxy.vitest.test.mjs'), testOf(imports));
    symlinkSync(path.join(RUNNERS!, 'node_modules/vitest'), path.join(project, 'node_modules/vitest'));
    const args = [vitest.command, 'run', '--root', project, 'proxy.vitest.test.mjs'];
    const { code, stdout, stderr } = await runProgram(process.execPath, args, { cwd: project, env: { CI: '1' } });
    assert.equal(code, 0, stdout + stderr);
    assert.match(stdout, /1 passed/);
  });

  const jest = runner('jest', 'bin/jest.js');
  it('is the proxy of a test under jest, which knows CommonJS alone', { skip: jest.skip }, async () => {
    const imports = `const { createServer } = require('node:http');\nconst { createProxy } = require('weir-proxy');`;
    writeFileSync(path.join(project, 'proxy.jest.test.cjs'), testOf(imports));
    const config = JSON.stringify({ testMatch: ['**/*.jest.test.cjs'], transform: {}, rootDir: project });
    const args = [jest.command, '--config', config, '--detectOpenHandles'];
    const { code, stdout, stderr } = await runProgram(process.execPath, args, { cwd: project, env: { CI: '1' } });
    assert.equal(code, 0, stdout + stderr);
    assert.match(stderr, /Tests: +1 passed/);
    assert.doesNotMatch(stderr, /open handle/);
  });
});
