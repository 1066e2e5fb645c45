// Which line of our source a place in a bundle comes from: the reader of the table that scripts/bundle/line-table.mjs
// writes beside the first file of each bundle, where its layout stands too. Either thread; read when the thread starts,
// a few hundred KiB, because a log line must not depend on a free descriptor; looked into when the first line is written.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Script, line and column in it, file, line in the source. */
const ROW_LENGTH = 5;
const ROW_NUMBER_BYTES = 4;
const LINE_FEED = 0x0a;

export interface SourceLine {
  /** Relative to the package, with forward slashes. */
  readonly file: string;
  readonly line: number;
}

interface Names {
  readonly scripts: readonly string[];
  readonly files: readonly string[];
  readonly logging: readonly string[];
}

export class LineTable {
  readonly #bytes: Uint8Array;
  readonly #rows: Int32Array;
  readonly #namesEnd: number;
  #names: Names | undefined;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#namesEnd = bytes.indexOf(LINE_FEED);
    this.#rows = numbersFrom(bytes, this.#namesEnd + 1);
  }

  /**
   * The table of a bundle; undefined when it has none, as a source that runs as it is.
   * @param entry  `import.meta.url` of the bundle's first file.
   */
  static read(entry: string): LineTable | undefined {
    try {
      return new LineTable(readFileSync(`${fileURLToPath(entry)}.lines`));
    } catch {
      // Log lines then name places in the bundle, which is better than no log.
      return undefined;
    }
  }

  /** Sources of the whole program that write log lines. */
  get filesThatLog(): readonly string[] {
    return this.#readNames().logging;
  }

  /**
   * @param script  relative to the package, with forward slashes.
   * @param line, column  from 1, as V8 reports them.
   */
  find(script: string, line: number, column: number): SourceLine | undefined {
    const { scripts, files } = this.#readNames();
    const number = scripts.indexOf(script);
    if (number === -1) return undefined;
    let low = 0;
    let high = this.#rows.length / ROW_LENGTH;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#isAfter(middle, number, line, column)) high = middle;
      else low = middle + 1;
    }
    const row = (low - 1) * ROW_LENGTH;
    if (low === 0 || this.#rows[row] !== number) return undefined;
    return { file: files[this.#rows[row + 3]!]!, line: this.#rows[row + 4]! };
  }

  #isAfter(row: number, script: number, line: number, column: number): boolean {
    const at = row * ROW_LENGTH;
    const rowScript = this.#rows[at]!;
    if (rowScript !== script) return rowScript > script;
    const rowLine = this.#rows[at + 1]!;
    return rowLine > line || (rowLine === line && this.#rows[at + 2]! > column);
  }

  #readNames(): Names {
    this.#names ??= JSON.parse(Buffer.from(this.#bytes.subarray(0, this.#namesEnd)).toString()) as Names;
    return this.#names;
  }
}

/** The rest of `bytes` from `start` on as 32-bit numbers: a view where they lie well, else a copy. */
function numbersFrom({ buffer, byteOffset, byteLength }: Uint8Array, start: number): Int32Array {
  const from = byteOffset + start;
  const count = (byteLength - start) / ROW_NUMBER_BYTES;
  if (from % ROW_NUMBER_BYTES === 0) return new Int32Array(buffer, from, count);
  return new Int32Array(buffer.slice(from, byteOffset + byteLength));
}
