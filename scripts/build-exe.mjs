// `npm run build:exe`: the program as one file, build/exe/weir or in the folder given, with the Node that runs this in it. For the
// platform of this machine. scripts/exe/start.cjs is what it begins with.

import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { PACKAGE_ROOT as root } from './setup/runtime.mjs';

const folder = process.argv[2] ?? path.join(root, 'build', 'exe');
const output = path.join(folder, 'weir');

/** Of the package, what the program runs with: not the core and the library, nor declarations. */
const PARTS = [
  /^package\.json$/,
  /^LICENSE$/,
  /^dist\/LICENCES\.txt$/,
  /^build\/(?:addons|page|proto|wasm)\//,
  /^build\/version\.json$/,
];
const PROGRAM = /^dist\/src\/(?:main|worker|response-reader|demo\/|hot-restarter\/)[^/]*$/;

function* filesBelow(name) {
  for (const entry of readdirSync(path.join(root, name), { withFileTypes: true })) {
    const child = path.posix.join(name, entry.name);
    if (entry.isDirectory()) yield* filesBelow(child);
    else yield child;
  }
}

function archive() {
  const all = ['package.json', 'LICENSE', ...filesBelow('build'), ...filesBelow('dist')];
  const names = all.filter((name) => PROGRAM.test(name) || PARTS.some((part) => part.test(name))).sort();
  const files = names.map((name) => readFileSync(path.join(root, name)));
  const index = JSON.stringify(names.map((name, at) => [name, files[at].length]));
  return gzipSync(Buffer.concat([Buffer.from(`${index}\n`), ...files]));
}

rmSync(output, { force: true });
mkdirSync(folder, { recursive: true });
const asset = path.join(folder, 'package.gz');
const settings = path.join(folder, 'sea.json');
writeFileSync(asset, archive());
const config = {
  main: path.join(root, 'scripts/exe/start.cjs'),
  output,
  disableExperimentalSEAWarning: true,
  // As scripts/setup/launch.sh has them.
  execArgv: ['--disable-warning=ExperimentalWarning', '--enable-source-maps', '--disable-sigusr1'],
  execArgvExtension: 'none',
  assets: { package: asset },
};
writeFileSync(settings, JSON.stringify(config));
const built = spawnSync(process.execPath, ['--build-sea', settings], { encoding: 'utf8' });
if (built.status !== 0) {
  process.stderr.write(`${built.stdout}${built.stderr}`);
  process.exit(1);
}
for (const file of [asset, settings]) rmSync(file);
process.stdout.write(`${path.relative(root, output)}: ${Math.round(statSync(output).size / 1e6)} MB\n`);
