// The fields behind a chunked body (RFC 9112 section 7.1.2), as codec, filters and router hand them on. Most messages
// have none: then there is no object of this kind, and the body's bytes travel on as they came.
//
// A message with trailers travels as one without them, ending in the empty line that would end it then; whoever
// writes it puts the trailers before that line, if the next hop may have them. They never become header fields.

import { WeirError } from '../../base/errors.ts';
import { isForbiddenTrailer } from '../../base/forbidden-trailers.ts';
import { NEVER_INDEXED_SEPARATOR } from '../../wasm/http2.ts';

interface Field {
  /** As it was received or set. */
  readonly name: string;
  /** In lower case. */
  readonly key: string;
  readonly value: string;
  /** Between them on the line. */
  readonly separator: string;
}

const LINE_END = '\r\n';
const SEPARATOR = ': ';
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const SPACE_AROUND = /^[ \t]+|[ \t]+$/g;

/** Values are latin1 text. */
export class Trailers {
  #fields: Field[] = [];

  /** @param text whole lines that a ChunkScanner has passed, the final empty one included or not. */
  static parse(text: string): Trailers {
    const trailers = new Trailers();
    for (const line of text.split(LINE_END)) {
      const colon = line.indexOf(':');
      if (colon <= 0) continue;
      const name = line.slice(0, colon);
      const value = line.slice(colon + 1).replace(SPACE_AROUND, '');
      const isNeverIndexed = line === `${name}${NEVER_INDEXED_SEPARATOR}${value}`;
      trailers.#add(name, value, isNeverIndexed ? NEVER_INDEXED_SEPARATOR : SEPARATOR);
    }
    return trailers;
  }

  get size(): number {
    return this.#fields.length;
  }

  /** Names in lower case, with their values, in order. */
  entries(): readonly (readonly [name: string, value: string])[] {
    return this.#fields.map(({ key, value }) => [key, value] as const);
  }

  /** Value of a lower-case name, several fields joined by ', '. */
  get(name: string): string | undefined {
    const values = this.#fields.filter(({ key }) => key === name).map(({ value }) => value);
    return values.length === 0 ? undefined : values.join(', ');
  }

  /** @throws WeirError WEIR_HTTP1_TRAILER for what may not be a trailer, or would break its line. */
  append(name: string, value: string): void {
    if (!NAME.test(name) || !VALUE.test(value) || isForbiddenTrailer(name)) {
      throw new WeirError('WEIR_HTTP1_TRAILER', `${JSON.stringify(name)} with this value cannot be a trailer`);
    }
    this.#add(name, value, SEPARATOR);
  }

  /** In place of all fields of the name. @throws as append. */
  set(name: string, value: string): void {
    this.remove(name.toLowerCase());
    this.append(name, value);
  }

  /** Takes out all fields of this lower-case name. */
  remove(name: string): void {
    this.#fields = this.#fields.filter(({ key }) => key !== name);
  }

  /** The lines, without the empty one behind them. */
  text(): string {
    return this.#fields.map(({ name, value, separator }) => `${name}${separator}${value}${LINE_END}`).join('');
  }

  #add(name: string, value: string, separator: string): void {
    this.#fields.push({ name, key: name.toLowerCase(), value, separator });
  }
}

/** The end of a chunked body, bytes[start..end), with the trailers before its final empty line. */
export function insertTrailers(bytes: Buffer, start: number, end: number, trailers: Trailers): Buffer {
  const body = bytes.subarray(start, end - LINE_END.length);
  return Buffer.concat([body, Buffer.from(trailers.text() + LINE_END, 'latin1')]);
}
