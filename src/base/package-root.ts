// Where the package lies on disk, from src/ as well as from dist/: build outputs are found relative to it.

import { existsSync } from 'node:fs';
import path from 'node:path';

function findPackageRoot(): string {
  let folder = import.meta.dirname;
  while (!existsSync(path.join(folder, 'package.json'))) folder = path.dirname(folder);
  return folder;
}

/** Absolute path of the folder that holds package.json. */
export const PACKAGE_ROOT: string = findPackageRoot();

/** Absolute path of a build output, for example `buildOutput('wasm/stats.wasm')`. */
export function buildOutput(relativePath: string): string {
  return path.join(PACKAGE_ROOT, 'build', relativePath);
}

/**
 * The file that a thread starts with.
 * @param source  path below src/, for example `worker.ts`; where weir runs from dist/, what was compiled from it.
 */
export function threadEntry(source: string): string {
  if (import.meta.filename.endsWith('.ts')) return path.join(PACKAGE_ROOT, 'src', source);
  return path.join(PACKAGE_ROOT, 'dist/src', source.replace(/\.ts$/, '.js'));
}
