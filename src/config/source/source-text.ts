// The characters of one configuration source with its name, and the way from an offset to line and column.
// Main thread.

import { isUtf8 } from 'node:buffer';

export interface LineAndColumn {
  /** 1-based. */
  readonly line: number;
  /** 1-based, in UTF-16 units as editors count them. */
  readonly column: number;
}

/** Where characters stand in a source, whether or not its text is at hand. */
export interface SourcePlaces {
  /** As the operator gave it: a path, or `--config-yaml`. */
  readonly name: string;
  /** Of the text, in UTF-16 units. */
  readonly length: number;
  /** Offsets at which lines begin; the first is 0. */
  readonly lineStarts: ArrayLike<number> & Iterable<number>;
  lineAndColumn(offset: number): LineAndColumn;
}

/** The offsets at which lines begin, of a text that is somewhere else. */
export class SourceLines implements SourcePlaces {
  readonly name: string;
  readonly length: number;
  readonly lineStarts: SourcePlaces['lineStarts'];

  constructor(name: string, length: number, lineStarts: SourcePlaces['lineStarts']) {
    this.name = name;
    this.length = length;
    this.lineStarts = lineStarts;
  }

  lineAndColumn(offset: number): LineAndColumn {
    return placeIn(this, offset);
  }
}

function placeIn({ length, lineStarts: starts }: SourcePlaces, offset: number): LineAndColumn {
  const at = Math.min(Math.max(offset, 0), length);
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle]! <= at) low = middle;
    else high = middle - 1;
  }
  return { line: low + 1, column: at - starts[low]! + 1 };
}

/** Text plus a line index that is only built when the first fault needs it. */
export class SourceText implements SourcePlaces {
  /** As the operator gave it: a path, or `--config-yaml`. */
  readonly name: string;
  readonly text: string;
  #lineStarts: number[] | undefined;

  constructor(name: string, text: string) {
    this.name = name;
    this.text = text;
  }

  /** Line and column of a character; offsets past the end give the end. */
  lineAndColumn(offset: number): LineAndColumn {
    return placeIn(this, offset);
  }

  get length(): number {
    return this.text.length;
  }

  get lineStarts(): readonly number[] {
    if (this.#lineStarts === undefined) {
      const starts = [0];
      for (let at = this.text.indexOf('\n'); at !== -1; at = this.text.indexOf('\n', at + 1)) starts.push(at + 1);
      this.#lineStarts = starts;
    }
    return this.#lineStarts;
  }
}

export type DecodedText = { readonly text: string } | { readonly line: number; readonly problem: string };

/** Bytes as text. A byte order mark is dropped; anything but UTF-8 is refused with the line it stands on. */
export function decodeUtf8(bytes: Uint8Array): DecodedText {
  if (!isUtf8(bytes)) return { line: firstInvalidLine(bytes), problem: 'not valid UTF-8 text' };
  const text = new TextDecoder('utf-8').decode(bytes);
  const nul = text.indexOf('\0');
  if (nul === -1) return { text };
  return { line: new SourceText('', text).lineAndColumn(nul).line, problem: 'contains a NUL character' };
}

/** Lines can be checked one by one, because a newline byte never lies inside a longer sequence. */
function firstInvalidLine(bytes: Uint8Array): number {
  let start = 0;
  for (let line = 1; ; line += 1) {
    const newline = bytes.indexOf(0x0a, start);
    const end = newline === -1 ? bytes.length : newline;
    if (newline === -1 || !isUtf8(bytes.subarray(start, end))) return line;
    start = end + 1;
  }
}
