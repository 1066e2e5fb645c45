// `npm run pack`: the package as it is published, build/package/weir-proxy-<version>.tgz, or in the folder given. It is what
// `npm pack` makes of a clone that is built, without what only a clone needs; the manifest of the clone is private, so that npm
// publishes nothing but what is made here. Why: docs/decisions/0039-one-file.md and 0057-npm-pack-in-a-clone.md.

import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { PACKAGE_ROOT as root } from './setup/runtime.mjs';

const output = process.argv[2] ?? path.join(root, 'build', 'package');

const {
  private: _private,
  workspaces: _workspaces,
  scripts: _scripts,
  devDependencies: _dev,
  ...published
} = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));

const stage = mkdtempSync(path.join(tmpdir(), 'weir-pack-'));
try {
  for (const part of [...published.files, 'README.md', 'LICENSE']) {
    cpSync(path.join(root, part), path.join(stage, part), { recursive: true });
  }
  writeFileSync(path.join(stage, 'package.json'), `${JSON.stringify(published, null, 2)}\n`);
  mkdirSync(output, { recursive: true });
  const args = ['pack', '--loglevel=error', '--ignore-scripts', '--pack-destination', output];
  const packed = spawnSync('npm', args, { cwd: stage, encoding: 'utf8' });
  if (packed.status !== 0) {
    process.stderr.write(`${packed.stdout}${packed.stderr}${packed.error ?? ''}\n`);
    process.exit(1);
  }
  process.stdout.write(`${path.join(output, packed.stdout.trim().split('\n').at(-1))}\n`);
} finally {
  rmSync(stage, { recursive: true });
}
