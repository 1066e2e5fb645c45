// Finds the Node runtime that weir is pinned to. It is an ordinary npm package, so it may lie in the package's own
// node_modules or in one above it. Plain JavaScript for Node 18: the launcher and set-up run it under any Node.

import * as fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const PACKAGE_ROOT = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));
export const RUNTIME_MAJOR = 26;

const require = createRequire(path.join(PACKAGE_ROOT, 'package.json'));

/** Folder of an installed package, or undefined. */
export function packageFolder(name) {
  try {
    return path.dirname(require.resolve(`${name}/package.json`));
  } catch {
    return undefined;
  }
}

/** The pinned runtime's package folder (bin/node, include/node); undefined where none is published for this platform. */
export function runtimeFolder() {
  const names = [`node-${process.platform}-${process.arch}`, `node-bin-${process.platform}-${process.arch}`];
  return names.map(packageFolder).find((folder) => folder && fs.existsSync(path.join(folder, 'bin', 'node')));
}

/** Path of the Node that runs weir: the pinned one, else the current one if it is new enough, else undefined. */
export function runtimePath() {
  const folder = runtimeFolder();
  if (folder) return path.join(folder, 'bin', 'node');
  return Number(process.versions.node.split('.')[0]) >= RUNTIME_MAJOR ? process.execPath : undefined;
}

/** Version of that Node. */
export function runtimeVersion() {
  const folder = runtimeFolder();
  return folder
    ? JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8')).version
    : process.versions.node;
}

export const NO_RUNTIME_MESSAGE = `weir runs under Node ${RUNTIME_MAJOR} or newer: put one on PATH, or install the package that it is pinned to (npm install node-${process.platform}-${process.arch}@${RUNTIME_MAJOR}, where there is one)`;
