// A parsed head, read where it lies: framing decision, header look-up, and the edits that the rewritten head
// will show. One object per direction and codec, refilled by each parse. Strings are made only when asked for.

import * as layout from '../../../assembly/layout/http1.ts';
import type { CodecMemory } from './memory.ts';
import { nameBit, type PreparedLines, type PreparedRegion } from './prepared-lines.ts';

const CR = 13;
const COLON = 0x3a;
const LF = 10;
/** Up to here a loop of our own writes text faster than the call of Node's. */
const LOOP_LIMIT = 40;

/** Known ids as two words of bits. */
export interface IdSet {
  readonly low: number;
  readonly high: number;
}

export function idSet(ids: readonly number[]): IdSet {
  let low = 0;
  let high = 0;
  for (const id of ids) {
    if (id < 32) low |= 1 << id;
    else high |= 1 << (id & 31);
  }
  return { low, high };
}

const UPPER_A = 0x41;
const UPPER_Z = 0x5a;
/** What a small letter has beside a capital one. */
const LOWER = 0x20;

/**
 * Valid from a successful parse until the next parse of the same direction, whatever connection that one is
 * for: take out what must live longer before returning to the event loop.
 * Header values are latin1 text: one character per byte, no control characters but HTAB, never a line end.
 */
export abstract class MessageHead {
  protected readonly memory: CodecMemory;
  protected readonly record: number;
  readonly #fields: number;
  readonly #lines: number;
  readonly #prepared: PreparedRegion;
  /** A bit for each name of an added line, while there are any: most look-ups end at it. */
  #addedNames = 0;

  constructor(memory: CodecMemory, prepared: PreparedRegion, record: number, fields: number, lines: number) {
    this.memory = memory;
    this.record = record;
    this.#prepared = prepared;
    this.#fields = fields;
    this.#lines = lines;
  }

  /** Bytes of the head, its final empty line included: the body starts there. */
  get headLength(): number {
    return this.word(layout.RECORD_HEAD_LENGTH);
  }

  /** One of Framing. */
  get framing(): number {
    return this.word(layout.RECORD_FRAMING);
  }

  /** The Content-Length as sent, exact up to 15 digits; -1 without one. The body's length is this only with Framing.LENGTH. */
  get contentLength(): number {
    return this.memory.f64[(this.record + layout.RECORD_CONTENT_LENGTH) >> 3]!;
  }

  /** HeadFlag bits. */
  get flags(): number {
    return this.word(layout.RECORD_FLAGS);
  }

  /** 1 for HTTP/1.1, 0 for HTTP/1.0. */
  get minorVersion(): number {
    return this.word(layout.RECORD_MINOR_VERSION);
  }

  /** Another message may follow on this connection: the version's default, Connection and the framing together. */
  get isPersistent(): boolean {
    return (this.flags & layout.FLAG_PERSISTENT) !== 0;
  }

  get fieldCount(): number {
    return this.word(layout.RECORD_FIELD_COUNT);
  }

  /** True when a header of this id was received; a bit test. */
  has(id: number): boolean {
    const mask = this.word(id < 32 ? layout.RECORD_KNOWN_LOW : layout.RECORD_KNOWN_HIGH);
    return ((mask >>> (id & 31)) & 1) !== 0;
  }

  /** True when a header of any of these ids was received: two bit tests for the whole set. */
  hasAny(ids: IdSet): boolean {
    return (
      (this.word(layout.RECORD_KNOWN_LOW) & ids.low) !== 0 || (this.word(layout.RECORD_KNOWN_HIGH) & ids.high) !== 0
    );
  }

  /** Index of the first field with this known id, -1 when there is none. */
  indexOf(id: number): number {
    return this.has(id) ? this.memory.u16[((this.record + layout.RECORD_FIRST_FIELD) >> 1) + id]! : -1;
  }

  /** Index of the next field with the same known id as field `index`, -1 behind the last. */
  nextIndexOf(index: number): number {
    const next = this.field(index, layout.FIELD_NEXT_SAME);
    return next === layout.NO_FIELD ? -1 : next;
  }

  /** Value of a known header, several fields joined by ', ' (wrong for Set-Cookie: walk those by index). */
  header(id: number): string | undefined {
    let index = this.indexOf(id);
    if (index < 0) return undefined;
    let value = this.valueAt(index);
    for (index = this.nextIndexOf(index); index >= 0; index = this.nextIndexOf(index)) {
      value += `, ${this.valueAt(index)}`;
    }
    return value;
  }

  /**
   * Value of any header of the head as things stand, received or added, by its lower-case name; several fields joined.
   * Compares names: not for the hot path.
   */
  headerByName(name: string, separator = ', '): string | undefined {
    const values = this.valuesByName(name);
    return values.length === 0 ? undefined : values.join(separator);
  }

  /** The same, field by field, in order. */
  valuesByName(name: string): string[] {
    const values: string[] = [];
    for (let index = this.findByName(name, 0); index >= 0; index = this.findByName(name, index + 1)) {
      if (!this.isDropped(index)) values.push(this.valueAt(index));
    }
    if (!this.#isAdded(name)) return values;
    for (const line of splitLines(this.#addedText())) {
      if (isNamed(line, name)) values.push(line.slice(name.length + 1).trim());
    }
    return values;
  }

  /** Index of the first field at or after `from` whose lower-case name this is, -1 when there is none. */
  findByName(name: string, from: number): number {
    const count = this.fieldCount;
    for (let index = from; index < count; index += 1) {
      if (this.field(index, layout.FIELD_NAME_LENGTH) === name.length && this.#isNamed(index, name)) return index;
    }
    return -1;
  }

  /** The lengths are equal. */
  #isNamed(index: number, name: string): boolean {
    return this.#namesAt(this.word(layout.RECORD_BASE) + this.field(index, layout.FIELD_NAME_OFFSET), name);
  }

  /** Byte by byte, since a text of the name would cost more. */
  #namesAt(start: number, name: string): boolean {
    const { bytes } = this.memory;
    for (let at = 0; at < name.length; at += 1) {
      const byte = bytes[start + at]!;
      if ((byte >= UPPER_A && byte <= UPPER_Z ? byte | LOWER : byte) !== name.charCodeAt(at)) return false;
    }
    return true;
  }

  /** Known id of a field, 0 for any other name. */
  idAt(index: number): number {
    return this.field(index, layout.FIELD_KNOWN_ID);
  }

  /** A field's name as received; compare in lower case. */
  nameAt(index: number): string {
    return this.slice(this.field(index, layout.FIELD_NAME_OFFSET), this.field(index, layout.FIELD_NAME_LENGTH));
  }

  /** A field's value without the white space around it. */
  valueAt(index: number): string {
    return this.slice(this.field(index, layout.FIELD_VALUE_OFFSET), this.field(index, layout.FIELD_VALUE_LENGTH));
  }

  /**
   * True when the field's value is this text, or goes on behind it with this character. Bytes are compared from the end: values
   * that mean different things often begin alike.
   */
  valueBegins(index: number, text: string, next: string): boolean {
    const rest = this.field(index, layout.FIELD_VALUE_LENGTH) - text.length;
    if (rest < 0) return false;
    const { bytes } = this.memory;
    const start = this.word(layout.RECORD_BASE) + this.field(index, layout.FIELD_VALUE_OFFSET);
    for (let at = text.length - 1; at >= 0; at -= 1) if (bytes[start + at] !== text.charCodeAt(at)) return false;
    return rest === 0 || bytes[start + text.length] === next.charCodeAt(0);
  }

  /** True when the field will not be in the rewritten head. Parse marks the hop-by-hop fields. */
  isDropped(index: number): boolean {
    return (this.field(index, layout.FIELD_FLAGS) & layout.FIELD_DROPPED) !== 0;
  }

  /** True when the field's name holds an underscore (HeadFlag.UNDERSCORE says whether any does). */
  hasUnderscore(index: number): boolean {
    return (this.field(index, layout.FIELD_FLAGS) & layout.FIELD_UNDERSCORE) !== 0;
  }

  /** Leaves the field out of the rewritten head. */
  drop(index: number): void {
    this.setField(index, layout.FIELD_FLAGS, this.field(index, layout.FIELD_FLAGS) | layout.FIELD_DROPPED);
  }

  /** Leaves out every field of a known id; nothing happens when there is none. */
  dropKnown(id: number): void {
    for (let index = this.indexOf(id); index >= 0; index = this.nextIndexOf(index)) this.drop(index);
  }

  /** Leaves out every field of this lower-case name. */
  dropByName(name: string): void {
    for (let index = this.findByName(name, 0); index >= 0; index = this.findByName(name, index + 1)) this.drop(index);
  }

  /** True when the head has a field of this lower-case name as things stand, received or added. Not for the hot path. */
  hasField(name: string): boolean {
    for (let index = this.findByName(name, 0); index >= 0; index = this.findByName(name, index + 1)) {
      if (!this.isDropped(index)) return true;
    }
    return this.#isAdded(name);
  }

  /** The same, of a known id and its name: received fields are found without a comparison. */
  hasKnownField(id: number, name: string): boolean {
    for (let index = this.indexOf(id); index >= 0; index = this.nextIndexOf(index)) {
      if (!this.isDropped(index)) return true;
    }
    return this.#isAdded(name);
  }

  /** All fields of the head as things stand, received or added, in order, with their names in lower case. Not for the hot path. */
  entries(): readonly (readonly [name: string, value: string])[] {
    const entries: (readonly [name: string, value: string])[] = [];
    for (let index = 0; index < this.fieldCount; index += 1) {
      if (!this.isDropped(index)) entries.push([this.nameAt(index).toLowerCase(), this.valueAt(index)]);
    }
    for (const line of splitLines(this.#addedText())) {
      const colon = line.indexOf(':');
      entries.push([line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]);
    }
    return entries;
  }

  /** Leaves this lower-case name out of the rewritten head, received or added so far. Not for the hot path. */
  removeField(name: string): void {
    this.dropByName(name);
    if (!this.#isAdded(name)) return;
    const lines = splitLines(this.#addedText());
    const rest = lines.filter((line) => !isNamed(line, name));
    this.setWord(layout.RECORD_PIECE_COUNT, 0);
    this.setWord(layout.RECORD_ADDED_BYTES, 0);
    this.setWord(layout.RECORD_ADDED_LINES, 0);
    for (const line of rest) this.appendLine(line);
  }

  /** Takes a mark back, for example from Upgrade when the upgrade is allowed. */
  keep(index: number): void {
    this.setField(index, layout.FIELD_FLAGS, this.field(index, layout.FIELD_FLAGS) & ~layout.FIELD_DROPPED);
  }

  /** The same for every field of a known id. */
  keepKnown(id: number): void {
    for (let index = this.indexOf(id); index >= 0; index = this.nextIndexOf(index)) this.keep(index);
  }

  /**
   * Adds one header line at the end. Both are latin1 text. A control character in either, or a character above
   * U+00FF that would become one, makes the write fail with rewritten_head_invalid; it never reaches the wire.
   * Too many bytes make it fail with rewritten_head_too_large.
   */
  append(name: string, value: string): void {
    const at = this.#reserve(name.length + value.length + 4, nameBit(name.charCodeAt(0), name.length));
    if (at === 0) return;
    const { bytes } = this.memory;
    writeText(bytes, name, at);
    let end = at + name.length;
    bytes[end] = 0x3a;
    bytes[end + 1] = 0x20;
    writeText(bytes, value, end + 2);
    end += 2 + value.length;
    bytes[end] = CR;
    bytes[end + 1] = LF;
    this.setWord(layout.RECORD_ADDED_LINES, this.word(layout.RECORD_ADDED_LINES) + 1);
  }

  /** Adds one whole line, `name: value` without its line end; cheaper than append() when the text exists already. */
  appendLine(line: string): void {
    const at = this.#reserve(line.length + 2, nameBit(line.charCodeAt(0), line.indexOf(':')));
    if (at === 0) return;
    const { bytes } = this.memory;
    writeText(bytes, line, at);
    bytes[at + line.length] = CR;
    bytes[at + line.length + 1] = LF;
    this.setWord(layout.RECORD_ADDED_LINES, this.word(layout.RECORD_ADDED_LINES) + 1);
  }

  /** Adds one whole line that exists as bytes, without its line end; they are copied. */
  appendLineBytes(line: Uint8Array): void {
    let nameLength = 0;
    while (nameLength < line.length && line[nameLength] !== COLON) nameLength += 1;
    const at = this.#reserve(line.length + 2, nameBit(line[0]!, nameLength));
    if (at === 0) return;
    const { bytes } = this.memory;
    bytes.set(line, at);
    bytes[at + line.length] = CR;
    bytes[at + line.length + 1] = LF;
    this.setWord(layout.RECORD_ADDED_LINES, this.word(layout.RECORD_ADDED_LINES) + 1);
  }

  /** Adds prepared lines at the end, before those of append() unless they are to be behind. */
  appendPrepared(lines: PreparedLines, isBehindOthers = false): void {
    const count = this.word(layout.RECORD_PIECE_COUNT);
    const added = this.word(layout.RECORD_ADDED_BYTES);
    const isText = (isBehindOthers && added !== 0) || count >= layout.PIECE_CAPACITY;
    const address = isText ? 0 : this.#prepared.place(lines);
    if (address === 0) {
      this.#appendText(lines);
      return;
    }
    this.#addedNames = count + added === 0 ? lines.nameBits : this.#addedNames | lines.nameBits;
    const piece = (this.record + layout.RECORD_PIECES + count * layout.PIECE_BYTES) >> 2;
    this.memory.u32[piece] = address;
    this.memory.u32[piece + 1] = lines.text.length;
    this.setWord(layout.RECORD_PIECE_COUNT, count + 1);
  }

  /** True while the edits hold addresses of the prepared region. */
  get hasPieces(): boolean {
    return this.word(layout.RECORD_PIECE_COUNT) !== 0;
  }

  /** A line of this lower-case name has been added. */
  #isAdded(name: string): boolean {
    if ((this.#addedNames & nameBit(name.charCodeAt(0), name.length)) === 0) return false;
    const freeBytes = this.word(layout.RECORD_ADDED_BYTES);
    if (freeBytes > layout.LINES_BYTES) return false;
    const count = this.word(layout.RECORD_PIECE_COUNT);
    for (let number = 0; number < count; number += 1) {
      const piece = (this.record + layout.RECORD_PIECES + number * layout.PIECE_BYTES) >> 2;
      if (this.#isAmong(name, this.memory.u32[piece]!, this.memory.u32[piece + 1]!)) return true;
    }
    return this.#isAmong(name, this.#lines, freeBytes);
  }

  /** @param length of whole lines at the address. */
  #isAmong(name: string, address: number, length: number): boolean {
    const { bytes } = this.memory;
    const end = address + length;
    for (let at = address; at + name.length < end; at += 1) {
      if (bytes[at + name.length] === COLON && this.#namesAt(at, name)) return true;
      while (at < end && bytes[at] !== LF) at += 1;
    }
    return false;
  }

  /** All lines added so far, in the order in which they will be written; none when they have grown too large. */
  #addedText(): string {
    const freeBytes = this.word(layout.RECORD_ADDED_BYTES);
    if (freeBytes > layout.LINES_BYTES) return '';
    const count = this.word(layout.RECORD_PIECE_COUNT);
    let text = '';
    for (let number = 0; number < count; number += 1) {
      const piece = (this.record + layout.RECORD_PIECES + number * layout.PIECE_BYTES) >> 2;
      text += this.memory.text(this.memory.u32[piece]!, this.memory.u32[piece + 1]!);
    }
    return text + this.memory.text(this.#lines, freeBytes);
  }

  #appendText(lines: PreparedLines): void {
    const at = this.#reserve(lines.text.length, lines.nameBits);
    if (at === 0) return;
    writeText(this.memory.bytes, lines.text, at);
    this.setWord(layout.RECORD_ADDED_LINES, this.word(layout.RECORD_ADDED_LINES) + lines.lineCount);
  }

  /** Address for `size` more bytes of added lines, or 0 after noting that they do not fit. */
  #reserve(size: number, nameBits: number): number {
    const used = this.word(layout.RECORD_ADDED_BYTES);
    this.#addedNames = used === 0 && !this.hasPieces ? nameBits : this.#addedNames | nameBits;
    if (used + size > layout.LINES_BYTES) {
      this.setWord(layout.RECORD_ADDED_BYTES, layout.LINES_BYTES + 1);
      return 0;
    }
    this.setWord(layout.RECORD_ADDED_BYTES, used + size);
    return this.#lines + used;
  }

  protected slice(offset: number, length: number): string {
    return this.memory.text(this.word(layout.RECORD_BASE) + offset, length);
  }

  protected word(offset: number): number {
    return this.memory.u32[(this.record + offset) >> 2]!;
  }

  protected setWord(offset: number, value: number): void {
    this.memory.u32[(this.record + offset) >> 2] = value;
  }

  /** Callers pass indices below fieldCount. */
  protected field(index: number, offset: number): number {
    return this.memory.u16[(this.#fields + index * layout.FIELD_BYTES + offset) >> 1]!;
  }

  /** The same. */
  protected setField(index: number, offset: number, value: number): void {
    this.memory.u16[(this.#fields + index * layout.FIELD_BYTES + offset) >> 1] = value;
  }
}

/** Lines that all end in CRLF, without their ends. */
function splitLines(text: string): string[] {
  return text === '' ? [] : text.slice(0, -2).split('\r\n');
}

function isNamed(line: string, name: string): boolean {
  return line[name.length] === ':' && line.slice(0, name.length).toLowerCase() === name;
}

/** Writes latin1 text: of a character above U+00FF the low byte, as Node's `write` does. */
function writeText(bytes: Buffer, text: string, at: number): void {
  const { length } = text;
  if (length > LOOP_LIMIT) {
    bytes.write(text, at, 'latin1');
    return;
  }
  for (let index = 0; index < length; index += 1) bytes[at + index] = text.charCodeAt(index);
}
