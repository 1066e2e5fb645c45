// The package as another project installs it: compiled from the sources as they are, laid out as npm would, and used by
// name. The example is the one of docs/core.md.

import assert from 'node:assert/strict';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import { runProgram } from '../support/child-process.ts';

const project = realpathSync(mkdtempSync(path.join(tmpdir(), 'weir-core-')));
const installed = path.join(project, 'node_modules', 'weir-proxy');
const TSC = path.join(PACKAGE_ROOT, 'node_modules/typescript/bin/tsc');
after(() => rmSync(project, { recursive: true }));

function run(...args: string[]) {
  return runProgram(process.execPath, args, { cwd: project });
}

before(async () => {
  mkdirSync(path.join(installed, 'build'), { recursive: true });
  for (const part of ['package.json', 'build/wasm']) {
    cpSync(path.join(PACKAGE_ROOT, part), path.join(installed, part), { recursive: true });
  }
  symlinkSync(path.join(PACKAGE_ROOT, 'node_modules'), path.join(installed, 'node_modules'));
  const config = path.join(PACKAGE_ROOT, 'tsconfig.build.json');
  await run(TSC, '-p', config, '--outDir', path.join(installed, 'dist'), '--sourceMap', 'false');
  writeFileSync(path.join(project, 'package.json'), '{ "type": "module" }');
});

describe('weir-proxy/core, installed', () => {
  it('runs the example of its reference, which prints what the reference says', async () => {
    const reference = readFileSync(path.join(PACKAGE_ROOT, 'docs/core.md'), 'utf8');
    const example = /```js\n([\s\S]*?)```/.exec(reference)![1]!;
    const output = /```text\n([\s\S]*?)```/.exec(reference)![1]!;
    writeFileSync(path.join(project, 'example.js'), example);
    const { stdout, stderr } = await run('example.js');
    assert.equal(stderr, '');
    assert.equal(stdout, output);
  });

  it('loads nothing of the proxy and no native addon', async () => {
    writeFileSync(
      path.join(project, 'loaded.js'),
      `import { registerHooks } from 'node:module';
       const loaded = [];
       registerHooks({ load: (url, context, next) => { loaded.push(url); return next(url, context); } });
       const { createCore } = await import('weir-proxy/core');
       createCore();
       console.log(loaded.join('\\n'));`,
    );
    const { stdout, stderr } = await run('loaded.js');
    assert.equal(stderr, '');
    const modules = stdout.trim().split('\n');
    assert.ok(modules.length > 20);
    const own = modules.filter((url) => url.includes('/dist/'));
    assert.deepEqual(
      own.filter((url) => !/\/dist\/(?:src\/(?:base|core|wasm)|assembly\/layout)\//.test(url)),
      [],
    );
    assert.ok(!stdout.includes('re2'), stdout);
  });

  it('has types that a strict project compiles against without those of Node', async () => {
    const consumer = [
      "import { createCore, WeirError, type Core, type Histogram, type Host } from 'weir-proxy/core';",
      'const core: Core = createCore({ maxMemoryMiB: 16 });',
      "const hosts: Host[] = [{ key: 'a' }, { key: 'b', weight: 2 }];",
      'const index: number = core.maglev(hosts).lookup(5n, 1);',
      "const histogram: Histogram = core.histogram('latency', { unit: 'us' });",
      'const values: Float64Array = histogram.cumulative.quantiles([0.5]);',
      "const total: bigint = core.counter('requests').value;",
      'export const all: unknown[] = [index, values, total, new WeirError("A", "b").code];',
      '// @ts-expect-error: not a unit',
      "core.histogram('size', { unit: 'parsec' });",
    ].join('\n');
    writeFileSync(path.join(project, 'consumer.ts'), consumer);
    const compilerOptions = {
      noEmit: true,
      strict: true,
      module: 'nodenext',
      target: 'es2023',
      lib: ['es2023'],
      types: [],
    };
    writeFileSync(path.join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['consumer.ts'] }));
    const { code, stdout } = await run(TSC, '-p', 'tsconfig.json');
    assert.equal(stdout, '');
    assert.equal(code, 0);
  });
});
