// A text format, ready to be filled in. Made once per snapshot; filling in makes one string.
//
// Everything is byte text: one character per byte, as headers come from the wire and go to it. The configuration has
// turned literals into their UTF-8 bytes beforehand, so the result is written as latin1 wherever it goes.

import type { FormatSegments } from '../../snapshot/index.ts';
import type { FormatFacts } from './facts.ts';
import { compileCommand, type ReadValue } from './values.ts';

export interface TextOptions {
  /** Written for what has no value. */
  readonly missing: string;
  /** What becomes of a value before it is written, for example an escape; numbers need none. */
  readonly transform?: (value: string) => string;
}

export class TextFormatter {
  /** True when no fact is asked for: the text is always the same. */
  readonly isLiteral: boolean;
  /** Literals and readers in turn: literals[0], readers[0], literals[1], … */
  readonly #literals: readonly string[];
  readonly #readers: readonly ReadValue[];
  readonly #missing: string;
  readonly #transform: (value: string) => string;

  constructor(segments: FormatSegments, { missing, transform = asIs }: TextOptions) {
    const literals = [''];
    const readers: ReadValue[] = [];
    for (const segment of segments) {
      if (typeof segment === 'string') {
        literals[literals.length - 1] += segment;
      } else {
        readers.push(compileCommand(segment));
        literals.push('');
      }
    }
    this.#literals = literals;
    this.#readers = readers;
    this.#missing = missing;
    this.#transform = transform;
    this.isLiteral = readers.length === 0;
  }

  render(facts: FormatFacts): string {
    const literals = this.#literals;
    const readers = this.#readers;
    let text = literals[0]!;
    for (let index = 0; index < readers.length; index++) {
      const value = readers[index]!(facts);
      if (value === undefined) text += this.#missing;
      else text += typeof value === 'string' ? this.#transform(value) : value;
      text += literals[index + 1]!;
    }
    return text;
  }
}

function asIs(value: string): string {
  return value;
}
