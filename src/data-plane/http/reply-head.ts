// The head of a local reply whose route edits headers: a list of lines until it is written. Other local replies are
// put together as text at once (localReplyHead).

import type { PreparedLines } from '../../wasm/http1.ts';
import type { EditableHead } from '../route/header-editor.ts';
import { type LocalReply, replyFields, statusLine } from './local-reply.ts';

/** A character that would end the line, or the message, before its time. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const UNSAFE = /[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]/;

export class ReplyHead implements EditableHead {
  readonly #statusLine: string;
  #lines: string[];

  constructor(reply: LocalReply) {
    this.#statusLine = statusLine(reply.status);
    this.#lines = linesOf(replyFields(reply));
  }

  hasField(name: string): boolean {
    return this.#lines.some((line) => isNamed(line, name));
  }

  headerByName(name: string): string | undefined {
    const values = this.#lines.filter((line) => isNamed(line, name)).map((line) => line.slice(name.length + 1).trim());
    return values.length === 0 ? undefined : values.join(', ');
  }

  removeField(name: string): void {
    this.#lines = this.#lines.filter((line) => !isNamed(line, name));
  }

  /** A value that cannot stand in a header line is left out: there is no other answer to give instead. */
  append(name: string, value: string): void {
    if (!UNSAFE.test(value)) this.#lines.push(`${name}: ${value}`);
  }

  appendPrepared(lines: PreparedLines): void {
    this.#lines.push(...linesOf(lines.text));
  }

  /** Sets what the connection manager insists on. @param ownLines as for localReplyHead. */
  setOwn(ownLines: string, date: string): void {
    for (const line of linesOf(ownLines)) {
      if (line.startsWith('server:')) this.removeField('server');
      this.#lines.push(line);
    }
    if (!this.hasField('date')) this.append('date', date);
  }

  text(extraLines: string): string {
    return `${this.#statusLine}${this.#lines.map((line) => `${line}\r\n`).join('')}${extraLines}\r\n`;
  }
}

function linesOf(text: string): string[] {
  return text === '' ? [] : text.slice(0, -2).split('\r\n');
}

function isNamed(line: string, name: string): boolean {
  return line[name.length] === ':' && line.slice(0, name.length).toLowerCase() === name;
}
