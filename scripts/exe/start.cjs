// What the single executable begins with: unpacks the package that is in it into a folder of this user, once, and becomes the
// program that lies there. Threads, WebAssembly, the page and the addon are files to those who load them, in an installed package
// as well as here. Why not from memory: docs/decisions/0039-one-file.md.

'use strict';

const { createHash } = require('node:crypto');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const sea = require('node:sea');
const vm = require('node:vm');
const zlib = require('node:zlib');

const PRIVATE = 0o700;
const RESTARTER = 'weir-hot-restarter';

/** Where there may be room for some megabytes, the best first. */
function places() {
  const cache = process.env.XDG_CACHE_HOME || path.join(os.homedir(), '.cache');
  return [
    path.join(cache, 'weir'),
    path.join(os.tmpdir(), `weir-${os.userInfo().uid}`),
    `/dev/shm/weir-${os.userInfo().uid}`,
  ];
}

/** Nobody else may have made it, or write to it. */
function isOurs(folder) {
  const { uid, mode } = fs.lstatSync(folder);
  return (process.getuid === undefined || uid === process.getuid()) && (mode & 0o022) === 0;
}

/** An archive is a line of JSON, [[path, length], …], and then the files. */
function unpack(archive, folder) {
  const bytes = zlib.gunzipSync(archive);
  const end = bytes.indexOf(0x0a);
  let at = end + 1;
  for (const [name, length] of JSON.parse(bytes.subarray(0, end).toString())) {
    const file = path.join(folder, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, bytes.subarray(at, at + length));
    at += length;
  }
}

/** The folder in one of the places; another process may be making it at the same time. */
function provide(place, name, archive) {
  const folder = path.join(place, name);
  fs.mkdirSync(place, { recursive: true, mode: PRIVATE });
  if (!isOurs(place)) throw new Error(`${place} belongs to somebody else`);
  if (!fs.existsSync(folder)) {
    const partial = fs.mkdtempSync(`${folder}.`);
    unpack(archive, partial);
    try {
      fs.renameSync(partial, folder);
    } catch (error) {
      fs.rmSync(partial, { recursive: true, force: true });
      if (!fs.existsSync(folder)) throw error;
    }
  }
  if (!isOurs(folder)) throw new Error(`${folder} belongs to somebody else`);
  return folder;
}

function packageFolder() {
  const archive = Buffer.from(sea.getRawAsset('package'));
  const name = `exe-${createHash('sha256').update(archive).digest('hex').slice(0, 32)}`;
  const reasons = [];
  for (const place of places()) {
    try {
      return provide(place, name, archive);
    } catch (error) {
      reasons.push(error.message);
    }
  }
  process.stderr.write(`weir: there is no folder to unpack into: ${reasons.join('; ')}\n`);
  process.exit(1);
}

/** The file is two commands: the second by its name, through a link, or as the first argument. */
function entry() {
  const isAsked = process.argv[2] === RESTARTER;
  if (isAsked) process.argv.splice(2, 1);
  return isAsked || path.basename(process.argv0) === RESTARTER ? ['hot-restarter', 'main.js'] : ['main.js'];
}

const folder = packageFolder();
// As the launcher of the package does: compiled code of the last start saves a third of this one.
require('node:module').enableCompileCache?.(
  process.env.NODE_COMPILE_CACHE || path.join(folder, 'build', 'compile-cache'),
);
const main = pathToFileURL(path.join(folder, 'dist', 'src', ...entry()));
// The executable's own import knows nothing but what is in Node.
const load = new vm.Script('(url) => import(url)', {
  importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
}).runInThisContext();
load(main.href).catch((error) => {
  process.stderr.write(`weir: ${error.stack}\n`);
  process.exit(1);
});
