// Where a log call stands in our source. Asked only for messages that are really written: one question costs
// a few microseconds. Places in a bundle (dist/) are traced back to src/ through its line table. Opens nothing.

import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { type CallSiteObject, getCallSites } from 'node:util';
import { PACKAGE_ROOT } from '../base/package-root.ts';
import type { LineTable } from './line-table.ts';

export interface SourceLocation {
  /** Relative to the package, with forward slashes; empty when unknown. */
  readonly file: string;
  readonly line: number;
  readonly functionName: string;
}

const UNKNOWN: SourceLocation = { file: '', line: 0, functionName: '' };

/** callerOfLogger, the registry's emit, the logger's level method; the caller is next. */
const FRAMES_OF_LOGGER = 3;
/** Node would decode whole source maps for the answer. */
const AS_COMPILED = { sourceMap: false };

export interface SourceLocatorOptions {
  /** Of this thread's bundle; absent where the sources run as they are. */
  readonly lines?: LineTable | undefined;
  /** Folder that file names are relative to. */
  readonly root?: string;
}

export class SourceLocator {
  readonly #root: string;
  readonly #lines: LineTable | undefined;
  /** By script name as V8 reports it: relative to the package. */
  readonly #files = new Map<string, string>();

  constructor({ lines, root = PACKAGE_ROOT }: SourceLocatorOptions = {}) {
    this.#root = root;
    this.#lines = lines;
  }

  /** The code that called a method of `Logger`; only for the registry's own emit function. Never throws. */
  callerOfLogger(): SourceLocation {
    try {
      const site = getCallSites(FRAMES_OF_LOGGER + 1, AS_COMPILED)[FRAMES_OF_LOGGER];
      return site === undefined ? UNKNOWN : this.locate(site);
    } catch {
      // A message without its place is better than none.
      return UNKNOWN;
    }
  }

  locate(site: Pick<CallSiteObject, 'scriptName' | 'lineNumber' | 'columnNumber' | 'functionName'>): SourceLocation {
    const { functionName, lineNumber, columnNumber } = site;
    const script = this.#fileOf(site.scriptName);
    const { file, line } = this.#lines?.find(script, lineNumber, columnNumber) ?? { file: script, line: lineNumber };
    return { file, line, functionName };
  }

  #fileOf(scriptName: string): string {
    let file = this.#files.get(scriptName);
    if (file === undefined) {
      const name = scriptName.startsWith('file:') ? fileURLToPath(scriptName) : scriptName;
      file = path.relative(this.#root, name).replaceAll(path.sep, '/');
      this.#files.set(scriptName, file);
    }
    return file;
  }
}
