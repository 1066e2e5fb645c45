// Which line of our source a place in a bundle comes from: the reader of the tables that scripts/bundle/line-table.mjs
// writes beside each bundle, where their layout stands too. Either thread; a few hundred KiB for each bundle that logs.

import { existsSync, readFileSync } from 'node:fs';

/** Line and column in the bundle, file, line in the source. */
const ROW_LENGTH = 4;
const LINE_FEED = 0x0a;

export interface SourceLine {
  /** Relative to the package, with forward slashes. */
  readonly file: string;
  readonly line: number;
}

export class LineTable {
  readonly #files: readonly string[];
  readonly #rows: Int32Array;

  constructor(bytes: Uint8Array) {
    const end = bytes.indexOf(LINE_FEED);
    this.#files = JSON.parse(Buffer.from(bytes.subarray(0, end)).toString()) as string[];
    // A copy, because the rows begin wherever the names end.
    const { buffer, byteOffset, byteLength } = bytes;
    this.#rows = new Int32Array(buffer.slice(byteOffset + end + 1, byteOffset + byteLength));
  }

  /** The table of a script; undefined when it has none, as a source that runs as it is. */
  static of(script: string): LineTable | undefined {
    const file = `${script}.lines`;
    return existsSync(file) ? new LineTable(readFileSync(file)) : undefined;
  }

  /** @param line, column from 1, as V8 reports them. */
  find(line: number, column: number): SourceLine | undefined {
    let low = 0;
    let high = this.#rows.length / ROW_LENGTH;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#isAfter(middle, line, column)) high = middle;
      else low = middle + 1;
    }
    if (low === 0) return undefined;
    const row = (low - 1) * ROW_LENGTH;
    return { file: this.#files[this.#rows[row + 2]!]!, line: this.#rows[row + 3]! };
  }

  #isAfter(row: number, line: number, column: number): boolean {
    const rowLine = this.#rows[row * ROW_LENGTH]!;
    return rowLine > line || (rowLine === line && this.#rows[row * ROW_LENGTH + 1]! > column);
  }
}
