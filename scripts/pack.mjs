// `npm run pack`: the package as it is published, build/package/weir-proxy-<version>.tgz, or in the folder given. Its manifest names
// what it runs with; that of the clone names what it is built with as well, and is private, so that npm publishes nothing but what is made here.
// Why: docs/decisions/0039-one-file.md.

import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { PACKAGE_ROOT as root } from './setup/runtime.mjs';

const output = process.argv[2] ?? path.join(root, 'build', 'package');

/** Loaded as they are; all others are in the bundles. */
const LOADED = ['@assemblyscript/loader', 'tinybench'];

const {
  private: _private,
  scripts: _scripts,
  devDependencies: _dev,
  optionalDependencies: _optional,
  ...manifest
} = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
const { dependencies } = manifest;
const published = {
  ...manifest,
  dependencies: Object.fromEntries(LOADED.map((name) => [name, dependencies[name]])),
  // Where the addon in the package is not for the Node that loads it.
  peerDependencies: { re2: dependencies.re2 },
  peerDependenciesMeta: { re2: { optional: true } },
};

const stage = mkdtempSync(path.join(tmpdir(), 'weir-pack-'));
try {
  for (const part of [...manifest.files, 'README.md', 'LICENSE']) {
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
