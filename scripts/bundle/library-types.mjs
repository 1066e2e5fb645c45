// The declarations of `weir-proxy`: of what tsc makes for all files that the library is built from, those that its front door
// reaches, a handful; and its doors: for ES modules, and for CommonJS, which loads the same ones.

import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { documentedBootstrapTypes } from './field-documentation.ts';

const DOOR = 'src/library/index';
/** Types without values: what tsc would make of them is what they are. */
const BOOTSTRAP_TYPES = 'src/library/generated/bootstrap.d.ts';

/**
 * Through Node's own loader: a test runner that has one of its own may not know ES modules in there, or would load all of this for
 * each of its tests. Such a runner may show its modules another `process`, but not the context that all begin with.
 */
const COMMONJS = `'use strict';
require('./node-check.cjs');
const { createRequire } = require('node:vm').runInThisContext("process.getBuiltinModule('node:module')");
module.exports = createRequire(__filename)('./index.js');
`;

/** Before the library is looked at: an older Node would end in one of its imports, with what only its authors understand. */
const NODE_CHECK = `const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 15)) {
  throw new Error('weir-proxy runs under Node 22.15 or newer; this is ' + process.versions.node);
}
`;

/** Relative paths of the declarations that one imports. */
function importsOf(text) {
  return [...text.matchAll(/(?:from|import\()\s*['"](\.[^'"]+)['"]/g)].map(([, specifier]) => specifier);
}

/** Names that a declaration exports, by whether they are values. */
function exportsOf(text) {
  const lists = [...text.matchAll(/export (type )?\{([^}]*)\}/g)];
  const names = ([, , list]) =>
    list
      .split(',')
      .map((name) => name.trim().split(' as ').at(-1))
      .filter((name) => name !== '');
  return {
    values: lists.filter(([, isType]) => !isType).flatMap(names),
    types: lists.filter(([, isType]) => isType).flatMap(names),
  };
}

/** Modules are linked before the first one runs; only what is asked for by a call can wait for the check. */
function esm(text) {
  const { values } = exportsOf(text);
  return `import library from './index.cjs';\nexport const { ${values.join(', ')} } = library;\n`;
}

/** For TypeScript that compiles to CommonJS. */
function commonJsTypes(text) {
  const { values, types } = exportsOf(text);
  const ofClasses = values.filter((name) => /^[A-Z]/.test(name));
  return [
    `import type * as Library from './index.js' with { 'resolution-mode': 'import' };`,
    ...values.map((name) => `export declare const ${name}: typeof Library.${name};`),
    ...[...ofClasses, ...types].map((name) => `export type ${name} = Library.${name};`),
    '',
  ].join('\n');
}

/** @param compile runs tsc with arguments. */
export async function declareLibrary(compile, root) {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-types-'));
  try {
    const config = path.join(root, 'tsconfig.library.json');
    await compile('-p', config, '--outDir', folder);
    const reached = new Set([`${DOOR}.d.ts`]);
    for (const file of reached) {
      const text = readFileSync(path.join(folder, file), 'utf8');
      for (const specifier of importsOf(text)) {
        reached.add(path.join(path.dirname(file), specifier.replace(/\.(?:js|ts)$/, '.d.ts')));
      }
    }
    for (const file of reached) cpSync(path.join(folder, file), path.join(root, 'dist', file));
    writeFileSync(path.join(root, 'dist', BOOTSTRAP_TYPES), documentedBootstrapTypes());
    const door = path.join(root, 'dist', DOOR);
    mkdirSync(path.dirname(door), { recursive: true });
    writeFileSync(`${door}.cjs`, COMMONJS);
    writeFileSync(path.join(path.dirname(door), 'node-check.cjs'), NODE_CHECK);
    const declarations = readFileSync(`${door}.d.ts`, 'utf8');
    writeFileSync(path.join(path.dirname(door), 'door.js'), esm(declarations));
    writeFileSync(`${door}.d.cts`, commonJsTypes(declarations));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
