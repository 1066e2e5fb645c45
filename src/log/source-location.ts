// Where a log call stands in our source. Asked only for messages that are really written: one question costs
// a few microseconds. Compiled files (dist/) are traced back to src/ through their source maps, read once each.

import { existsSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { type CallSiteObject, getCallSites } from 'node:util';
import { PACKAGE_ROOT } from '../base/package-root.ts';

export interface SourceLocation {
  /** Relative to the package, with forward slashes; empty when unknown. */
  readonly file: string;
  readonly line: number;
  readonly functionName: string;
}

const UNKNOWN: SourceLocation = { file: '', line: 0, functionName: '' };

/** callerOfLogger, the registry's emit, the logger's level method; the caller is next. */
const FRAMES_OF_LOGGER = 3;

/** A compiled file's way back to its source. */
interface ScriptOrigin {
  readonly file: string;
  readonly map: SourceMap | undefined;
}

export class SourceLocator {
  readonly #root: string;
  readonly #origins = new Map<string, ScriptOrigin>();

  /** @param root folder that file names are relative to. */
  constructor(root: string = PACKAGE_ROOT) {
    this.#root = root;
  }

  /** The code that called a method of `Logger`; only for the registry's own emit function. */
  callerOfLogger(): SourceLocation {
    const site = getCallSites(FRAMES_OF_LOGGER + 1)[FRAMES_OF_LOGGER];
    return site === undefined ? UNKNOWN : this.locate(site);
  }

  locate(site: Pick<CallSiteObject, 'scriptName' | 'lineNumber' | 'columnNumber' | 'functionName'>): SourceLocation {
    const { functionName } = site;
    const { file, map } = this.#originOf(site.scriptName);
    if (map === undefined) return { file, line: site.lineNumber, functionName };
    const origin = map.findOrigin(site.lineNumber, site.columnNumber);
    if (!('fileName' in origin)) return { file, line: site.lineNumber, functionName };
    return { file, line: origin.lineNumber, functionName };
  }

  #originOf(scriptName: string): ScriptOrigin {
    let origin = this.#origins.get(scriptName);
    if (origin === undefined) {
      origin = this.#findOrigin(scriptName);
      this.#origins.set(scriptName, origin);
    }
    return origin;
  }

  #findOrigin(scriptName: string): ScriptOrigin {
    const script = scriptName.startsWith('file:') ? fileURLToPath(scriptName) : scriptName;
    const map = readSourceMap(`${script}.map`);
    const source = map?.payload.sources[0];
    const file = source === undefined ? script : path.resolve(path.dirname(script), source);
    return { file: path.relative(this.#root, file).replaceAll(path.sep, '/'), map };
  }
}

/** A missing or broken map only costs the exact line, so it is no error. */
function readSourceMap(file: string): SourceMap | undefined {
  if (!existsSync(file)) return undefined;
  try {
    return new SourceMap(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return undefined;
  }
}
