// Tokens of the protobuf text format: identifiers, numbers, strings, punctuation. Comments run from # to the
// end of the line. Strings are kept as bytes (one character per byte), since a bytes field may hold any.

import { utf8Bytes } from '../../base/byte-text.ts';
import { SyntaxFault } from './syntax-error.ts';

export type TokenKind = 'word' | 'number' | 'string' | 'punctuation' | 'end';

export interface Token {
  readonly kind: TokenKind;
  /** A string's bytes as latin1, the source characters of everything else. */
  readonly text: string;
  readonly offset: number;
}

const SPACE = /[ \t\r\n\v\f]*/y;
const WORD = /[A-Za-z_][A-Za-z0-9_]*/y;
/** Hexadecimal, decimal or octal integers and floats, with the f suffix of floats. */
const NUMBER = /0[xX][0-9a-fA-F]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fF]?/y;
const PUNCTUATION = '{}<>[]:,;-/.%';
const ESCAPE = /\\(?:([abfnrtv?\\'"])|([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))/y;

const SIMPLE_ESCAPES: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};

const MAX_CODE_POINT = 0x10ffff;

export class TokenReader {
  readonly #text: string;
  #at = 0;
  #next: Token;

  constructor(text: string) {
    this.#text = text;
    this.#next = this.#read();
  }

  /** The token that comes next, without taking it. */
  peek(): Token {
    return this.#next;
  }

  take(): Token {
    const token = this.#next;
    this.#next = this.#read();
    return token;
  }

  isNext(punctuation: string): boolean {
    return this.#next.kind === 'punctuation' && this.#next.text === punctuation;
  }

  /** Takes the punctuation when it comes next. */
  skip(punctuation: string): boolean {
    if (!this.isNext(punctuation)) return false;
    this.take();
    return true;
  }

  expect(punctuation: string): void {
    if (!this.skip(punctuation)) throw this.unexpected(`"${punctuation}"`);
  }

  unexpected(wanted: string): SyntaxFault {
    const { kind, text, offset } = this.#next;
    const found = kind === 'end' ? 'the end of the text' : kind === 'string' ? 'a string' : JSON.stringify(text);
    return new SyntaxFault(`not valid text proto: expected ${wanted}, got ${found}`, offset);
  }

  #read(): Token {
    this.#skipSpaceAndComments();
    const offset = this.#at;
    const first = this.#text[offset];
    if (first === undefined) return { kind: 'end', text: '', offset };
    if (first === '"' || first === "'") return { kind: 'string', text: this.#string(first), offset };
    const word = this.#match(WORD);
    if (word !== '') return { kind: 'word', text: word, offset };
    const number = this.#match(NUMBER);
    if (number !== '') return { kind: 'number', text: this.#whole(number), offset };
    if (!PUNCTUATION.includes(first)) {
      throw new SyntaxFault(`not valid text proto: stray character ${JSON.stringify(first)}`, offset);
    }
    this.#at += 1;
    return { kind: 'punctuation', text: first, offset };
  }

  #skipSpaceAndComments(): void {
    this.#match(SPACE);
    while (this.#text[this.#at] === '#') {
      const newline = this.#text.indexOf('\n', this.#at);
      this.#at = newline === -1 ? this.#text.length : newline;
      this.#match(SPACE);
    }
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0] ?? '';
    this.#at += found.length;
    return found;
  }

  /** `12ab` is neither a number nor a name. */
  #whole(number: string): string {
    if (/[A-Za-z0-9_]/.test(this.#text[this.#at] ?? '')) {
      throw new SyntaxFault('not valid text proto: malformed number', this.#at - number.length);
    }
    return number;
  }

  #string(quoteMark: string): string {
    this.#at += 1;
    let bytes = '';
    let start = this.#at;
    for (;;) {
      const character = this.#text[this.#at];
      if (character === undefined || character === '\n') {
        throw new SyntaxFault('not valid text proto: string without an end', start - 1);
      }
      if (character !== quoteMark && character !== '\\') {
        this.#at += 1;
        continue;
      }
      bytes += utf8Bytes(this.#text.slice(start, this.#at));
      if (character === quoteMark) break;
      bytes += this.#escape();
      start = this.#at;
    }
    this.#at += 1;
    return bytes;
  }

  #escape(): string {
    ESCAPE.lastIndex = this.#at;
    const match = ESCAPE.exec(this.#text);
    if (match === null) throw new SyntaxFault('not valid text proto: bad escape in a string', this.#at);
    const offset = this.#at;
    this.#at = ESCAPE.lastIndex;
    const [, simple, octal, hexadecimal, short, long] = match;
    if (simple !== undefined) return SIMPLE_ESCAPES[simple] ?? simple;
    if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8) & 0xff);
    if (hexadecimal !== undefined) return String.fromCharCode(Number.parseInt(hexadecimal, 16));
    const codePoint = Number.parseInt(short ?? long!, 16);
    const isSurrogate = codePoint >= 0xd800 && codePoint <= 0xdfff;
    if (codePoint > MAX_CODE_POINT || isSurrogate) {
      throw new SyntaxFault('not valid text proto: escape is no Unicode character', offset);
    }
    return utf8Bytes(String.fromCodePoint(codePoint));
  }
}
