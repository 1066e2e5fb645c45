// The modules of src/ and of the memory layouts, with what each imports of the others.

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { LAYOUT_UNIT, type Unit } from './rules.ts';
import { readSourceText } from './source-text.ts';

export interface ModuleImport {
  /** Path of the imported module, relative to the root. */
  readonly target: string;
  readonly typesOnly: boolean;
  readonly line: number;
}

export interface SourceModule {
  /** Relative to the root, with forward slashes: `src/stats/scope.ts`. */
  readonly path: string;
  readonly unit: Unit;
  readonly imports: readonly ModuleImport[];
  readonly code: string;
}

const SOURCE_FOLDERS = ['src', LAYOUT_UNIT];

/** Reads every module below `root`, by path. */
export function readModules(root: string): Map<string, SourceModule> {
  const modules = new Map<string, SourceModule>();
  for (const folder of SOURCE_FOLDERS) {
    for (const file of typescriptFiles(root, folder)) {
      modules.set(file, parseModule(file, readFileSync(path.join(root, file), 'utf8')));
    }
  }
  return modules;
}

function typescriptFiles(root: string, folder: string): string[] {
  return readdirSync(path.join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && !entry.name.endsWith('.d.ts'))
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)).split(path.sep).join('/'))
    .sort();
}

export function parseModule(file: string, text: string): SourceModule {
  const source = readSourceText(text);
  const imports = source.imports
    .filter(({ specifier }) => specifier.startsWith('.'))
    .map(({ specifier, ...rest }) => ({ target: path.posix.join(path.posix.dirname(file), specifier), ...rest }));
  return { path: file, unit: unitOf(file), imports, code: source.code };
}

/** Of an extension the main thread loads this much with the configuration. */
const EXTENSION_CONTROL = /\/(?:control-registry|(?:[a-z-]+-)?config)\.ts$/;
/** What the main thread runs of extensions. */
const EXTENSION_MAIN = /\/extensions\/(?:stat_sinks\/|stat-sink-registry\.ts$)/;

/** `src/stats/scope.ts` belongs to `stats`, `src/main.ts` to `main.ts`; extensions have a part in each plane. */
export function unitOf(file: string): Unit {
  if (file.startsWith(`${LAYOUT_UNIT}/`)) return LAYOUT_UNIT;
  const unit = file.split('/')[1] ?? file;
  if (unit !== 'extensions') return unit;
  if (EXTENSION_CONTROL.test(file)) return 'extensions/control';
  return EXTENSION_MAIN.test(file) ? 'extensions/main' : 'extensions/data';
}
