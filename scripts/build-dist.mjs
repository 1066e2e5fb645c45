// Compiles src/ to dist/, in two ways side by side:
//
//   the program   one bundle for each kind of thread, packages included: a start opens a few files, not hundreds; and one of
//                 the library `weir-proxy`, whose threads are those of the program, and of each other command
//   the core      `weir-proxy/core`, file by file and with types, by tsc
//
// Beside each file of a bundle lies its source map, which Node reads when it prints a stack trace; beside its first file
// the line table of all, which the log reads (scripts/bundle/line-table.mjs). Why: docs/decisions/0012-the-program-is-bundled.md.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { build } from 'esbuild';
import { filesThatLog } from './bundle/files-that-log.mjs';
import { declareLibrary } from './bundle/library-types.mjs';
import { licenceText } from './bundle/licences.mjs';
import { lineTable } from './bundle/line-table.mjs';
import { PACKAGE_ROOT as root } from './setup/runtime.mjs';

const MAIN = 'src/main.ts';

/** One build for each kind of thread: chunks that several of them shared would be more files for each. */
const THREADS = [
  MAIN,
  'src/worker.ts',
  'src/response-reader.ts',
  'src/demo/upstream-worker.ts',
  'src/library/index.ts',
  'src/hot-restarter/main.ts',
  'src/bench-cli/main.ts',
];

/**
 * A native addon, parts of fastify that only schemas, injected requests and its own log would load, and what reads definitions
 * of gRPC services from text.
 */
const EXTERNAL = [
  're2',
  '@grpc/proto-loader',
  '@fastify/ajv-compiler',
  '@fastify/fast-json-stringify-compiler',
  'light-my-request',
  'pino',
];

/** Packages in CommonJS ask for Node's own modules by this name. */
const REQUIRE =
  "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);";

/**
 * A source that needs a package seldom loads it where it does, by `createRequire(import.meta.url)('name')`. To esbuild
 * that is a call like any other; as `require('name')` it bundles the package, which still runs at the first call only.
 */
const LOADED_AT_NEED = {
  name: 'loaded at need',
  setup: (plugin) =>
    plugin.onLoad({ filter: /[\\/]src[\\/](?:cli|extensions)[\\/].*\.ts$/ }, ({ path: file }) => {
      const text = readFileSync(file, 'utf8');
      return { loader: 'ts', contents: text.replaceAll("createRequire(import.meta.url)('", "require('") };
    }),
};

/** As an ES module, node:util has all its lazy parts loaded at once: 8 ms of each thread's start. */
const UTIL_IN_PARTS = {
  name: 'util in parts',
  setup(plugin) {
    plugin.onResolve({ filter: /^(node:)?util$/ }, () => ({ path: 'util', namespace: 'in-parts' }));
    plugin.onLoad({ filter: /./, namespace: 'in-parts' }, () => ({
      contents: "module.exports = process.getBuiltinModule('node:util');",
    }));
  },
};

/** Modules of Node that a start without TLS can do without; to load all of them takes some 15 ms. */
const SELDOM_NEEDED = ['crypto', 'dgram', 'http2', 'https', 'tls', 'zlib'];

/** What is imported of them is asked for where it is used, and the module is loaded with the first of it. For main: workers use them all the time. */
const BUILTINS_AT_NEED = {
  name: 'builtins at need',
  setup(plugin) {
    plugin.onResolve({ filter: new RegExp(`^(node:)?(${SELDOM_NEEDED.join('|')})$`) }, ({ path: name }) => ({
      path: name.replace('node:', ''),
      namespace: 'builtin-at-need',
    }));
    plugin.onLoad({ filter: /./, namespace: 'builtin-at-need' }, ({ path: name }) => ({
      contents: `for (const name of ${JSON.stringify(Object.getOwnPropertyNames(process.getBuiltinModule(name)))})
        Object.defineProperty(exports, name, { enumerable: true, get: () => process.getBuiltinModule('${name}')[name] });`,
    }));
  },
};

/**
 * yargs measures texts for its help, which weir writes itself; what string-width makes ahead of the first text (a segmenter,
 * a pattern of all emoji) takes 25 ms of each start that has an argument.
 */
const WIDTHS_AT_NEED = {
  name: 'widths at need',
  setup(plugin) {
    plugin.onResolve({ filter: /^string-width$/ }, async ({ pluginData, path: name, ...asked }) => {
      if (pluginData === 'found') return undefined;
      const { kind, importer, resolveDir } = asked;
      const { path: found } = await plugin.resolve(name, { kind, importer, resolveDir, pluginData: 'found' });
      return { path: path.relative(root, found), namespace: 'at-need' };
    });
    plugin.onLoad({ filter: /./, namespace: 'at-need' }, ({ path: found }) => ({
      resolveDir: path.join(root, path.dirname(found)),
      contents: `export default (...given) => require('./${path.basename(found)}').default(...given);`,
    }));
  },
};

/** What a bundle would look for beside itself when it runs. In a clone it is there. */
const LEFT_OUT = /createRequire\w*\(import\.meta\.url\)\("([^./"][^"]*)"\)/g;

function checkBundled(file, text) {
  for (const [, name] of text.matchAll(LEFT_OUT)) {
    if (!EXTERNAL.includes(name)) throw new Error(`${file} loads ${name}, which is not in it: see LOADED_AT_NEED`);
  }
}

const logging = filesThatLog(root);

/**
 * Node keeps a script with a single character beyond Latin-1 as two bytes a character. esbuild escapes them in strings; those in
 * comments, which nobody reads here, are replaced. What stands in for them is as long, so that places in the script stay.
 */
function inOneByteCharacters(text) {
  const ascii = (comment) => comment.replace(/\P{ASCII}/gu, ({ length }) => '?'.repeat(length));
  return text.replace(/^\s*(?:\/\/|\/?\*).*$/gm, ascii);
}

async function bundle(entry) {
  const { dir, name } = path.parse(entry);
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: [entry],
    outdir: 'dist',
    outbase: '.',
    chunkNames: `${dir}/${name}-[name]-[hash]`,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    external: EXTERNAL,
    plugins: [LOADED_AT_NEED, UTIL_IN_PARTS, WIDTHS_AT_NEED, ...(entry === MAIN ? [BUILTINS_AT_NEED] : [])],
    banner: { js: REQUIRE },
    sourcemap: 'linked',
    sourcesContent: false,
    metafile: true,
    write: false,
    logLevel: 'warning',
  });
  const scripts = [];
  for (const { path: file, contents, text } of outputFiles) {
    mkdirSync(path.dirname(file), { recursive: true });
    if (file.endsWith('.js')) checkBundled(file, text);
    writeFileSync(file, file.endsWith('.js') ? inOneByteCharacters(text) : contents);
    if (file.endsWith('.map')) scripts.push({ file: file.slice(0, -'.map'.length), map: JSON.parse(text) });
  }
  writeFileSync(path.join(root, 'dist', dir, `${name}.js.lines`), lineTable(scripts, root, logging));
  return Object.keys(metafile.inputs);
}

async function compile(...args) {
  const tsc = path.join(root, 'node_modules/typescript/bin/tsc');
  const compiler = spawn(process.execPath, [tsc, ...args], { cwd: root, stdio: 'inherit' });
  const [status] = await once(compiler, 'exit');
  if (status !== 0) throw new Error(`tsc ended with status ${status}`);
}

// Emptied first: what was compiled from a file that is gone must not stay behind.
rmSync(path.join(root, 'dist'), { recursive: true, force: true });
const [, , ...inputs] = await Promise.all([
  compile('-p', 'tsconfig.build.json'),
  declareLibrary(compile, root),
  ...THREADS.map(bundle),
]);
writeFileSync(path.join(root, 'dist', 'LICENCES.txt'), licenceText(inputs.flat(), root));
