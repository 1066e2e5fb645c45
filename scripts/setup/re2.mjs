// Puts a re2 addon in place that the pinned runtime can load: from the cache, a download, or the compiler.
// re2 talks to V8 directly, so its binary must be built for the very Node that loads it, with that Node's headers;
// npm would build it for whichever Node runs npm. Plain JavaScript for Node 18, without dependencies.

import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { packageFolder, runtimeFolder, runtimeVersion } from './runtime.mjs';

const PROBE = "new (require('.'))('a+').test('a') || process.exit(1)";
const BUILD_TOOLS = { 'g++': ['--version'], make: ['--version'], python3: ['--version'] };

function capture(command, args, options = {}) {
  return spawnSync(command, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 64 << 20,
    ...options,
  });
}

function re2Loads(node, re2) {
  return capture(node, ['-e', PROBE], { cwd: re2 }).status === 0;
}

/** Runs re2's own installer under the pinned runtime: it downloads a prebuilt file or calls the compiler. */
function install(node, re2, version) {
  const installer = createRequire(path.join(re2, 'package.json')).resolve(
    'install-artifact-from-github/bin/install-from-cache.js',
  );
  const headers = runtimeFolder();
  const tools = path.join(path.dirname(re2), '.bin');
  return capture(
    node,
    [
      installer,
      ...['--artifact', 'build/Release/re2.node'],
      ...['--host-var', 'RE2_DOWNLOAD_MIRROR'],
      ...['--force-build-var', 'RE2_DOWNLOAD_FORCE_BUILD'],
    ],
    {
      cwd: re2,
      env: {
        ...process.env,
        npm_package_json: path.join(re2, 'package.json'),
        // npm hands its own script's settings down; the installer must see those of re2.
        npm_package_version: version,
        PATH: [path.dirname(fs.realpathSync(node)), tools, process.env.PATH].join(path.delimiter),
        ...(headers ? { npm_config_nodedir: headers } : {}),
      },
    },
  );
}

function store(artifact, cached) {
  try {
    fs.mkdirSync(path.dirname(cached), { recursive: true });
    // Through a name of our own: another set-up may read the cache at the same time.
    const partial = `${cached}.${process.pid}`;
    fs.copyFileSync(artifact, partial);
    fs.renameSync(partial, cached);
  } catch {
    // A read-only home costs only the next clone's build time.
  }
}

function whyNot(built) {
  const missing = Object.keys(BUILD_TOOLS).filter((tool) => capture(tool, BUILD_TOOLS[tool]).error);
  if (missing.length > 0) return `missing tools: ${missing.join(', ')}`;
  return `${built.stdout}${built.stderr}`.slice(-4000);
}

/** A file beside the addon that says which runtime has loaded it; launch.sh looks for it. */
function stampFile(re2) {
  return path.join(re2, 'build', 'Release', `.loads-in-${runtimeVersion()}`);
}

/**
 * @param node  path of the runtime that will load re2
 * @param say   prints one progress line
 * @returns undefined when re2 loads, else the reason why it does not
 */
export function provideRe2(node, say) {
  const re2 = packageFolder('re2');
  if (!re2) return 're2 is not installed';
  try {
    const fault = re2Loads(node, re2) ? undefined : obtain(node, re2, say);
    if (!fault) fs.writeFileSync(stampFile(re2), '');
    return fault;
  } catch (error) {
    return `re2 could not be put in place: ${error.message}`;
  }
}

function obtain(node, re2, say) {
  const version = JSON.parse(fs.readFileSync(path.join(re2, 'package.json'), 'utf8')).version;
  const abi = capture(node, ['-p', 'process.versions.modules']).stdout.trim();
  const cacheFolder = path.join(process.env.XDG_CACHE_HOME || path.join(os.homedir(), '.cache'), 'weir');
  const cached = path.join(cacheFolder, `re2-${version}-${process.platform}-${process.arch}-${abi}.node`);
  const artifact = path.join(re2, 'build', 'Release', 're2.node');

  fs.mkdirSync(path.dirname(artifact), { recursive: true });
  fs.rmSync(artifact, { force: true });
  if (fs.existsSync(cached)) {
    fs.copyFileSync(cached, artifact);
    if (re2Loads(node, re2)) return undefined;
    fs.rmSync(artifact, { force: true });
  }
  say('building re2, about two minutes the first time (cached afterwards)');
  const built = install(node, re2, version);
  if (!re2Loads(node, re2)) return `re2 could be neither downloaded nor built; ${whyNot(built)}`;
  // Debug symbols are most of the file: 24 MB become 2 MB. The object files beside it are of no further use.
  capture('strip', [artifact]);
  fs.rmSync(path.join(path.dirname(artifact), 'obj.target'), { recursive: true, force: true });
  store(artifact, cached);
  return undefined;
}
