// What the engine says of a function, and where that stands in our source. Main thread.

import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { PACKAGE_ROOT, threadEntry } from '../../base/package-root.ts';
import { LineTable } from '../../log/index.ts';
import type { Frame } from './pprof.ts';

/** As V8 writes it in profiles; lines and columns from 0, -1 when unknown. */
export interface CallFrame {
  readonly functionName: string;
  readonly url: string;
  readonly lineNumber: number;
  readonly columnNumber: number;
}

/** Finds places in the sources; bundles have tables for that, which are read once. */
export class SourcePlaces {
  readonly #tables = ['main.ts', 'worker.ts']
    .map((entry) => LineTable.read(pathToFileURL(threadEntry(entry)).href))
    .filter((table) => table !== undefined);

  frame({ functionName, url, lineNumber, columnNumber }: CallFrame): Frame {
    const name = functionName || '(anonymous)';
    const line = lineNumber + 1;
    if (!url.startsWith('file:')) return { name, file: url, line };
    const script = path.relative(PACKAGE_ROOT, fileURLToPath(url)).replaceAll('\\', '/');
    for (const table of this.#tables) {
      const source = table.find(script, line, columnNumber + 1);
      if (source !== undefined) return { name, ...source };
    }
    return { name, file: script, line };
  }
}
