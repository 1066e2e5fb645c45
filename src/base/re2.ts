// RE2, a native addon, which must have been built for the very Node that loads it. The package brings it for the Node that weir
// is pinned to; for another one (a proxy within a process of somebody else) the package re2 does, where it is installed.
// Loaded with the first expression: whoever has none needs neither. Either thread.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import type RE2 from 're2';
import { errorMessage, WeirError } from './errors.ts';
import { buildOutput, PACKAGE_ROOT } from './package-root.ts';

export type Re2Class = typeof RE2;

let loaded: Re2Class | undefined;

/** @throws WeirError WEIR_RE2 where there is none for this Node. */
export function re2(): Re2Class {
  loaded ??= ownAddon() ?? packageAddon();
  return loaded;
}

/** Of a platform and a version of Node's interface to addons. */
export function addonName(): string {
  return `re2-${process.platform}-${process.arch}-${process.versions.modules}.node`;
}

function ownAddon(): Re2Class | undefined {
  const file = buildOutput(path.join('addons', addonName()));
  if (!existsSync(file)) return undefined;
  try {
    // Once per thread, however many copies of this module are in it: Node ends the process when one is loaded twice.
    return createRequire(file)(file) as Re2Class;
  } catch {
    // Another C library, as Alpine Linux has. The package may have been built for that.
    return undefined;
  }
}

function packageAddon(): Re2Class {
  try {
    return createRequire(path.join(PACKAGE_ROOT, 'package.json'))('re2') as Re2Class;
  } catch (error) {
    const reason = errorMessage(error).replaceAll('\n', ' ');
    const where = `${process.platform}-${process.arch}, Node ${process.versions.node}`;
    const text = `regular expressions need the package re2, built for ${where} (npm install re2): ${reason}`;
    throw new WeirError('WEIR_RE2', text, { cause: error });
  }
}
