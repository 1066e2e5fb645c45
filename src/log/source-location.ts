// Where a log call stands in our source. Asked only for messages that are really written: one question costs
// a few microseconds. Places in bundles (dist/) are traced back to src/ through their line tables, read once each.

import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { type CallSiteObject, getCallSites } from 'node:util';
import { PACKAGE_ROOT } from '../base/package-root.ts';
import { LineTable } from './line-table.ts';

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

interface Script {
  readonly file: string;
  readonly lines: LineTable | undefined;
}

export class SourceLocator {
  readonly #root: string;
  readonly #scripts = new Map<string, Script>();

  /** @param root folder that file names are relative to. */
  constructor(root: string = PACKAGE_ROOT) {
    this.#root = root;
  }

  /** The code that called a method of `Logger`; only for the registry's own emit function. */
  callerOfLogger(): SourceLocation {
    const site = getCallSites(FRAMES_OF_LOGGER + 1, AS_COMPILED)[FRAMES_OF_LOGGER];
    return site === undefined ? UNKNOWN : this.locate(site);
  }

  locate(site: Pick<CallSiteObject, 'scriptName' | 'lineNumber' | 'columnNumber' | 'functionName'>): SourceLocation {
    const { functionName, lineNumber, columnNumber } = site;
    const { file, lines } = this.#scriptOf(site.scriptName);
    const { file: source, line } = lines?.find(lineNumber, columnNumber) ?? { file, line: lineNumber };
    return { file: source, line, functionName };
  }

  #scriptOf(scriptName: string): Script {
    let script = this.#scripts.get(scriptName);
    if (script === undefined) {
      const name = scriptName.startsWith('file:') ? fileURLToPath(scriptName) : scriptName;
      const file = path.relative(this.#root, name).replaceAll(path.sep, '/');
      script = { file, lines: LineTable.of(name) };
      this.#scripts.set(scriptName, script);
    }
    return script;
  }
}
