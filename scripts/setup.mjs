// Brings a fresh clone to a runnable state; silent and quick when there is nothing to do.
// Plain JavaScript for Node 18 and newer without dependencies: it runs before anything is installed.
//
//   packages (npm ci)  →  the pinned Node runtime  →  re2 for that runtime  →  build outputs
//
// Install scripts stay off (.npmrc): the only native addon, re2, is built here with the headers that
// ship with the pinned runtime, because an addon must be built for the very Node that loads it.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import path from 'node:path';
import { oneAtATime } from './setup/lock.mjs';
import { provideRe2 } from './setup/re2.mjs';
import { NO_RUNTIME_MESSAGE, PACKAGE_ROOT as root, runtimePath } from './setup/runtime.mjs';

const modules = path.join(root, 'node_modules');
const outputs = path.join(root, 'build');

/** Prints one progress line; set-up is silent unless it works. */
function say(text) {
  process.stderr.write(`weir set-up: ${text}\n`);
}

function fail(text) {
  say(text);
  process.exit(1);
}

function run(command, args, options = {}) {
  return spawnSync(command, args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], ...options });
}

function lockHash() {
  const lock = fs.readFileSync(path.join(root, 'package-lock.json'));
  return createHash('sha256').update(lock).update(`${process.platform}-${process.arch}`).digest('hex');
}

/** Named after the lockfile that the packages were installed from: going back to an older one is noticed as well. */
function stampFile(hash) {
  return path.join(modules, `.weir-setup-${hash}`);
}

function installPackages() {
  say('installing packages');
  const npm = run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
    shell: process.platform === 'win32',
  });
  if (npm.error?.code === 'ENOENT') fail('npm was not found on PATH');
  if (npm.status !== 0) fail(`npm ci failed:\n${npm.stdout}${npm.stderr}`);
}

function linkRuntime() {
  const link = path.join(modules, '.bin', 'node');
  if (fs.existsSync(link)) return;
  const target = runtimePath() ?? fail(NO_RUNTIME_MESSAGE);
  fs.mkdirSync(path.dirname(link), { recursive: true });
  fs.symlinkSync(target, link);
}

function newestChange(entry) {
  const stat = fs.statSync(entry, { throwIfNoEntry: false });
  if (!stat) return 0;
  if (!stat.isDirectory()) return stat.mtimeMs;
  let newest = stat.mtimeMs;
  for (const child of fs.readdirSync(entry)) newest = Math.max(newest, newestChange(path.join(entry, child)));
  return newest;
}

/** `--define admin_html=disabled` leaves the page of the admin interface out, and `=enabled` takes it in again. */
function adminHtml() {
  const given = process.argv.find((word) => word.startsWith('admin_html='));
  const note = path.join(outputs, '.admin-html');
  const before = fs.existsSync(note) ? fs.readFileSync(note, 'utf8') : 'admin_html=enabled';
  if (given !== undefined && given !== before) {
    fs.mkdirSync(path.dirname(note), { recursive: true });
    fs.writeFileSync(note, given);
    fs.rmSync(path.join(outputs, 'page'), { recursive: true, force: true });
  }
  return ['--define', given ?? before];
}

/** Build steps: done again when a source is newer than the step's stamp, or what they make is gone. */
const BUILD_STEPS = [
  {
    name: 'addons',
    sources: ['node_modules/re2/build/Release/re2.node', 'scripts/build-addons.mjs'],
    makes: 'build/addons',
    command: ['scripts/build-addons.mjs'],
  },
  {
    name: 'proto',
    sources: ['proto', 'scripts/build-proto.mjs'],
    makes: 'build/proto',
    command: ['scripts/build-proto.mjs'],
  },
  {
    name: 'wasm',
    sources: ['assembly', 'asconfig.json', 'scripts/build-wasm.mjs'],
    makes: 'build/wasm',
    command: ['scripts/build-wasm.mjs'],
  },
  {
    name: 'page',
    sources: ['src/page', 'scripts/build-page.mjs'],
    makes: 'build/page',
    command: ['scripts/build-page.mjs', ...adminHtml()],
  },
  {
    name: 'dist',
    sources: [
      'src',
      'assembly/layout',
      'tsconfig.json',
      'tsconfig.build.json',
      'tsconfig.library.json',
      'build/proto/comments.json',
      'scripts/bootstrap-types.mjs',
      'scripts/build-dist.mjs',
      'scripts/bundle',
    ],
    makes: 'dist',
    command: ['scripts/build-dist.mjs'],
  },
];

/** Notes the source revision for --version and /server_info: a running proxy has no git. */
function noteRevision() {
  const revision = run('git', ['rev-parse', 'HEAD']);
  const changes = run('git', ['status', '--porcelain']);
  const facts =
    revision.status === 0
      ? { revision: revision.stdout.trim(), treeStatus: changes.stdout === '' ? 'Clean' : 'Modified' }
      : {};
  fs.writeFileSync(path.join(outputs, 'version.json'), `${JSON.stringify(facts)}\n`);
}

function stampOf(step) {
  return path.join(outputs, `.${step.name}`);
}

function isBuilt(step) {
  const built = fs.statSync(stampOf(step), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const changed = Math.max(
    newestChange(path.join(root, 'package-lock.json')),
    ...step.sources.map((source) => newestChange(path.join(root, source))),
  );
  return built > changed && fs.existsSync(path.join(root, step.makes));
}

function build(step) {
  const started = Date.now();
  const result = run(node, step.command, { maxBuffer: 64 << 20 });
  if (result.status !== 0) fail(`building ${step.name} failed:\n${result.stdout}${result.stderr}`);
  fs.writeFileSync(stampOf(step), '');
  fs.utimesSync(stampOf(step), started / 1000, started / 1000);
  if (step.name === 'dist') noteRevision();
}

const node = path.join(modules, '.bin', 'node');
const stamp = stampFile(lockHash());

function setUp() {
  if (!fs.existsSync(stamp)) {
    installPackages();
    linkRuntime();
    const fault = provideRe2(node, say);
    if (fault) fail(fault);
    fs.writeFileSync(stamp, '');
  }
  // What one makes may be a source of the next.
  for (const step of BUILD_STEPS) if (!isBuilt(step)) build(step);
}

if (!fs.existsSync(stamp) || !BUILD_STEPS.every(isBuilt)) {
  fs.mkdirSync(outputs, { recursive: true });
  const file = path.join(outputs, '.set-up');
  oneAtATime(file, setUp, (pid) => say(`waiting for that of process ${pid} (if there is none, delete ${file})`));
}
