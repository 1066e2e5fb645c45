// A head as text whose fields are changed: a list of lines until it is written. Heads that pass through are edited in the
// codec instead; these are made by the proxy, or sent once more in another form.

import type { PreparedLines } from '../../wasm/http1.ts';
import type { EditableHead } from '../route/header-editor.ts';

/** A character that would end the line, or the message, before its time. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const UNSAFE = /[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]/;

export class TextHead implements EditableHead {
  startLine: string;
  #lines: string[];

  /** @param lines each with its line end. */
  constructor(startLine: string, lines: string) {
    this.startLine = startLine;
    this.#lines = linesOf(lines);
  }

  /** @param text whole, with the empty line at its end. */
  static of(text: string): TextHead {
    const end = text.indexOf('\r\n');
    return new TextHead(text.slice(0, end), text.slice(end + 2, -2));
  }

  hasField(name: string): boolean {
    return this.#lines.some((line) => isNamed(line, name));
  }

  headerByName(name: string): string | undefined {
    const values = this.#lines.filter((line) => isNamed(line, name)).map((line) => line.slice(name.length + 1).trim());
    return values.length === 0 ? undefined : values.join(', ');
  }

  entries(): readonly (readonly [name: string, value: string])[] {
    return this.#lines.map((line) => {
      const name = nameOf(line);
      return [name, line.slice(name.length + 1).trim()] as const;
    });
  }

  removeField(name: string): void {
    this.#lines = this.#lines.filter((line) => !isNamed(line, name));
  }

  /** A value that cannot stand in a header line is left out: there is nothing to say in its place. */
  append(name: string, value: string): void {
    if (!UNSAFE.test(value)) this.#lines.push(`${name}: ${value}`);
  }

  appendPrepared(lines: PreparedLines): void {
    this.#lines.push(...linesOf(lines.text));
  }

  /** Host comes first (RFC 9110 section 7.2). */
  replaceHost(host: string): void {
    this.removeField('host');
    this.#lines.unshift(`host: ${host}`);
  }

  /** @param lines each with its line end. @param replaced the one name of which there is only one field. */
  appendLines(lines: string, replaced: string): void {
    for (const line of linesOf(lines)) {
      if (isNamed(line, replaced)) this.removeField(replaced);
      this.#lines.push(line);
    }
  }

  /** Those of names that are not there yet. @param lines each with its line end. */
  appendMissing(lines: string): void {
    for (const line of linesOf(lines)) if (!this.hasField(nameOf(line))) this.#lines.push(line);
  }

  /** Without the empty line at the end. */
  lines(): string {
    return `${this.startLine}\r\n${this.#lines.map((line) => `${line}\r\n`).join('')}`;
  }

  text(): string {
    return `${this.lines()}\r\n`;
  }
}

function linesOf(text: string): string[] {
  return text === '' ? [] : text.slice(0, -2).split('\r\n');
}

function nameOf(line: string): string {
  return line.slice(0, line.indexOf(':')).toLowerCase();
}

function isNamed(line: string, name: string): boolean {
  return line[name.length] === ':' && line.slice(0, name.length).toLowerCase() === name;
}
