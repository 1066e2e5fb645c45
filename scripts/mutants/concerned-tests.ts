// Which test files concern a module: those that load it, the nearest first. Tests of the same name come first, then
// those of its folder in test/unit/, then those that reach it over few imports; tests that start the whole program are slow and come last.

import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { readSourceText } from '../architecture/source-text.ts';

/** What a module loads without naming it in an import: a program or a thread that it starts. */
const STARTS: Readonly<Record<string, readonly string[]>> = {
  'test/support/weir-process.ts': ['src/main.ts'],
  'src/control-plane/workers/worker-thread.ts': ['src/worker.ts'],
};
const PROGRAM = 'src/main.ts';

/** Modules by path, relative to the root, with those that each loads when it runs. */
export type ImportGraph = ReadonlyMap<string, readonly string[]>;

/** Follows imports from the test files; what only types are imported from is left out. */
export function readImportGraph(root: string, testFiles: readonly string[]): ImportGraph {
  const graph = new Map<string, readonly string[]>();
  const waiting = [...testFiles];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (graph.has(file)) continue;
    const loaded = loadedBy(root, file);
    graph.set(file, loaded);
    waiting.push(...loaded);
  }
  return graph;
}

function loadedBy(root: string, file: string): string[] {
  const { imports } = readSourceText(readFileSync(path.join(root, file), 'utf8'));
  const imported = imports
    .filter(({ specifier, typesOnly }) => specifier.startsWith('.') && !typesOnly)
    .map(({ specifier }) => path.posix.join(path.posix.dirname(file), specifier));
  return [...imported, ...(STARTS[file] ?? [])].filter(
    (target) => target.endsWith('.ts') && existsSync(path.join(root, target)),
  );
}

/** Imports from each test file to `source` by the shortest way; test files that do not reach it are left out. */
function distances(graph: ImportGraph, source: string, testFiles: readonly string[]): Map<string, number> {
  const importers = new Map<string, string[]>();
  for (const [file, targets] of graph) {
    for (const target of targets) importers.set(target, [...(importers.get(target) ?? []), file]);
  }
  const found = new Map([[source, 0]]);
  for (const [file, distance] of found) {
    for (const importer of importers.get(file) ?? []) if (!found.has(importer)) found.set(importer, distance + 1);
  }
  return new Map(testFiles.flatMap((file) => (found.has(file) ? [[file, found.get(file)!]] : [])));
}

/** The test files that load `source`, by how near they are to it. */
export function concernedTests(graph: ImportGraph, source: string, testFiles: readonly string[]): string[] {
  const distance = distances(graph, source, testFiles);
  const startsProgram = distances(graph, PROGRAM, testFiles);
  const rank = (file: string): readonly number[] => [
    path.posix.basename(file, '.test.ts') === path.posix.basename(source, '.ts') ? 0 : 1,
    -namesInCommon(file, source),
    startsProgram.has(file) ? 1 : 0,
    distance.get(file)!,
  ];
  return [...distance.keys()].sort((a, b) => compareRanks(rank(a), rank(b)) || (a < b ? -1 : 1));
}

/** The nearest of `tests`; of every four of them at least one is no unit test, if there is one: it sees more at once. */
export function nearestTests(tests: readonly string[], most: number): string[] {
  const nearest = tests.slice(0, most);
  const others = tests.filter((file) => !isUnitTest(file)).slice(0, Math.floor(most / 4));
  const missing = others.filter((file) => !nearest.includes(file));
  const chosen = new Set([...nearest.slice(0, most - missing.length), ...missing]);
  return tests.filter((file) => chosen.has(file));
}

const isUnitTest = (file: string): boolean => file.startsWith('test/unit/');

/** Those that can be asked again and again in one process: unit tests, and others that start no whole program. */
export function repeatableTests(graph: ImportGraph, testFiles: readonly string[]): string[] {
  const startsProgram = distances(graph, PROGRAM, testFiles);
  return testFiles.filter((file) => isUnitTest(file) || !startsProgram.has(file));
}

/**
 * Folders of src/ that a unit test repeats, and one more for the name of the file: `test/unit/stats/flush.test.ts` has
 * two in common with `src/stats/flush.ts`. A test elsewhere has one when it is named after a folder or file.
 */
function namesInCommon(testFile: string, source: string): number {
  const names = source.replace(/^src\/|\.ts$/g, '').split('/');
  const ownName = path.posix.basename(testFile, '.test.ts');
  const isNamedAfter = names.some((name) => ownName === name || ownName.startsWith(`${name}-`)) ? 1 : 0;
  if (!isUnitTest(testFile)) return isNamedAfter;
  const folders = testFile.split('/').slice(2, -1);
  const shared = folders.findIndex((folder, index) => folder !== names[index]);
  return (shared === -1 ? folders.length : shared) + isNamedAfter;
}

function compareRanks(a: readonly number[], b: readonly number[]): number {
  const differing = a.findIndex((value, index) => value !== b[index]);
  return differing === -1 ? 0 : a[differing]! - b[differing]!;
}
