// JSON text to value tree, strictly by RFC 8259. Written here rather than taken from JSON.parse because a
// fault needs the offset of its value, numbers must keep their exact digits, and a key given twice is an
// error where JSON.parse silently keeps the last.

import { type MapEntry, quote, scalarNode, type ValueNode } from './node.ts';
import { MAX_DEPTH, SyntaxFault, tooDeep } from './syntax-error.ts';

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
/** String characters up to the next quote or escape; control characters end it as well. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids exactly these inside strings
const STRING_RUN = /[^"\\\u0000-\u001f]*/y;
const WORD = /[A-Za-z]+/y;

const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

/** The tree of `text`; undefined when it is empty. Throws SyntaxFault. */
export function parseJson(text: string): ValueNode | undefined {
  return new JsonTreeBuilder(text).build();
}

/** Among so few, looking through them is quicker than a map. */
const FEW_KEYS = 8;

function offsetOf(key: string, entries: readonly MapEntry[]): number | undefined {
  for (const entry of entries) if (entry.key === key) return entry.offset;
  return undefined;
}

class JsonTreeBuilder {
  readonly #text: string;
  #at = 0;
  #depth = 0;
  /** The same few keys come again and again: each is kept once. */
  readonly #keys = new Map<string, string>();

  constructor(text: string) {
    this.#text = text;
  }

  build(): ValueNode | undefined {
    this.#skipSpace();
    if (this.#at === this.#text.length) return undefined;
    const root = this.#value();
    this.#skipSpace();
    if (this.#at < this.#text.length) throw this.#unexpected('the end of the text');
    return root;
  }

  #value(): ValueNode {
    const start = this.#at;
    switch (this.#text[start]) {
      case '{':
        return { kind: 'map', offset: start, entries: this.#members() };
      case '[':
        return { kind: 'list', offset: start, items: this.#items() };
      case '"':
        return scalarNode(start, 'string', this.#string());
      default:
        return this.#numberOrWord(start);
    }
  }

  #members(): MapEntry[] {
    const entries: MapEntry[] = [];
    let places: Map<string, number> | undefined;
    for (let hasNext = this.#enter('}'); hasNext; hasNext = this.#next('}')) {
      const offset = this.#at;
      if (this.#text[offset] !== '"') throw this.#unexpected('a key in double quotes');
      const key = this.#key();
      if (entries.length === FEW_KEYS) places = new Map(entries.map((entry) => [entry.key, entry.offset]));
      const first = places === undefined ? offsetOf(key, entries) : places.get(key);
      if (first !== undefined) {
        throw new SyntaxFault(`duplicate key ${quote(key)}, first given in line ${this.#line(first)}`, offset);
      }
      places?.set(key, offset);
      this.#skipSpace();
      this.#expect(':');
      this.#skipSpace();
      entries.push({ key, offset, value: this.#value() });
    }
    return entries;
  }

  #items(): ValueNode[] {
    const items: ValueNode[] = [];
    for (let hasNext = this.#enter(']'); hasNext; hasNext = this.#next(']')) items.push(this.#value());
    return items;
  }

  /** Passes the opening bracket. @returns whether there is anything before `close`; passes that if not. */
  #enter(close: string): boolean {
    if (this.#depth === MAX_DEPTH) throw tooDeep(this.#at);
    this.#depth += 1;
    this.#at += 1;
    this.#skipSpace();
    return this.#text[this.#at] !== close || this.#leave();
  }

  /** Passes the comma or `close`. @returns whether it was a comma. */
  #next(close: string): boolean {
    this.#skipSpace();
    if (this.#text[this.#at] === close) return this.#leave();
    if (this.#text[this.#at] !== ',') throw this.#unexpected(`"," or "${close}"`);
    this.#at += 1;
    this.#skipSpace();
    return true;
  }

  #leave(): false {
    this.#depth -= 1;
    this.#at += 1;
    return false;
  }

  #key(): string {
    const read = this.#string();
    const kept = this.#keys.get(read);
    if (kept === undefined) this.#keys.set(read, read);
    return kept ?? read;
  }

  #string(): string {
    this.#at += 1;
    let value = '';
    for (;;) {
      STRING_RUN.lastIndex = this.#at;
      STRING_RUN.exec(this.#text);
      value += this.#text.slice(this.#at, STRING_RUN.lastIndex);
      this.#at = STRING_RUN.lastIndex;
      const next = this.#text[this.#at];
      if (next === '"') break;
      if (next !== '\\') throw this.#unexpected('the end of a string');
      value += this.#escape();
    }
    this.#at += 1;
    return value;
  }

  #escape(): string {
    const letter = this.#text[this.#at + 1] ?? '';
    if (letter === 'u') {
      const digits = this.#text.slice(this.#at + 2, this.#at + 6);
      if (!/^[0-9a-fA-F]{4}$/.test(digits)) throw new SyntaxFault('not valid JSON: bad \\u escape', this.#at);
      this.#at += 6;
      return String.fromCharCode(Number.parseInt(digits, 16));
    }
    const plain = ESCAPES[letter];
    if (plain === undefined) throw new SyntaxFault('not valid JSON: bad escape in a string', this.#at);
    this.#at += 2;
    return plain;
  }

  #numberOrWord(start: number): ValueNode {
    const number = this.#match(NUMBER);
    if (number !== '') return scalarNode(start, 'number', number);
    const word = this.#match(WORD);
    if (word === 'null') return scalarNode(start, 'null', word);
    if (word === 'true' || word === 'false') return scalarNode(start, 'bool', word);
    this.#at = start;
    throw this.#unexpected('a value');
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0] ?? '';
    this.#at += found.length;
    return found;
  }

  #expect(character: string): void {
    if (this.#text[this.#at] !== character) throw this.#unexpected(`"${character}"`);
    this.#at += 1;
  }

  #skipSpace(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.#at += 1;
    }
  }

  #line(offset: number): number {
    return this.#text.slice(0, offset).split('\n').length;
  }

  #unexpected(wanted: string): SyntaxFault {
    const found = this.#at < this.#text.length ? quote(this.#text[this.#at]!) : 'the end of the text';
    return new SyntaxFault(`not valid JSON: expected ${wanted}, got ${found}`, this.#at);
  }
}
