// Messages of protocol buffers as workers write and read them, who have no schema: by the numbers of their fields. The library
// is loaded when the first service is asked.

import { isUtf8 } from 'node:buffer';
import { createRequire } from 'node:module';
import type Protobuf from 'protobufjs/minimal.js';
import type { JsonObject, JsonValue } from '../../../base/json.ts';

type Minimal = Pick<typeof Protobuf, 'Reader' | 'Writer'>;

let loaded: Minimal | null = null;

function minimal(): Minimal {
  loaded ??= createRequire(import.meta.url)('protobufjs/minimal.js') as Minimal;
  return loaded;
}

const BYTES = 2;
const FIXED64 = 1;

/** Writes the fields of one message. Empty texts and zeros are not written, as proto3 has it. */
export class MessageWriter {
  readonly #writer: Protobuf.Writer;

  constructor(writer: Protobuf.Writer = minimal().Writer.create()) {
    this.#writer = writer;
  }

  message(field: number, write: (message: MessageWriter) => void): void {
    this.#writer.uint32((field << 3) | BYTES).fork();
    write(this);
    this.#writer.ldelim();
  }

  text(field: number, text: string): void {
    if (text !== '') this.#writer.uint32((field << 3) | BYTES).string(text);
  }

  bytes(field: number, bytes: Buffer): void {
    if (bytes.length > 0) this.#writer.uint32((field << 3) | BYTES).bytes(bytes);
  }

  /** Byte text, one character per byte, as `asUtf8` has it. */
  byteText(field: number, text: string): void {
    this.bytes(field, asUtf8(Buffer.from(text, 'latin1')));
  }

  /** Up to 2^53. */
  integer(field: number, value: number): void {
    if (value !== 0) this.#writer.uint32(field << 3).int64(value);
  }

  fixed64(field: number, value: bigint): void {
    if (value === 0n) return;
    const low = Number(BigInt.asUintN(32, value)) | 0;
    const high = Number(BigInt.asUintN(32, value >> 32n)) | 0;
    this.#writer.uint32((field << 3) | FIXED64).fixed64({ low, high, unsigned: true } as never);
  }

  double(field: number, value: number): void {
    if (value !== 0) this.#writer.uint32((field << 3) | FIXED64).double(value);
  }

  /** `key` is text, `write` writes its value as field 2. */
  entry(field: number, key: string, write: (entry: MessageWriter) => void): void {
    this.message(field, (entry) => {
      entry.text(1, key);
      write(entry);
    });
  }

  /** As google.protobuf.Struct. */
  struct(field: number, values: JsonObject): void {
    this.message(field, (struct) => struct.#fieldsOf(values));
  }

  finish(): Buffer {
    return Buffer.from(this.#writer.finish());
  }

  #fieldsOf(values: JsonObject): void {
    for (const [key, value] of Object.entries(values)) this.entry(1, key, (entry) => entry.#value(2, value));
  }

  #value(field: number, value: JsonValue): void {
    this.message(field, (message) => {
      const writer = message.#writer;
      if (value === null) writer.uint32(1 << 3).int32(0);
      else if (typeof value === 'number') writer.uint32((2 << 3) | 1).double(value);
      else if (typeof value === 'string') writer.uint32((3 << 3) | BYTES).string(value);
      else if (typeof value === 'boolean') writer.uint32(4 << 3).bool(value);
      else if (Array.isArray(value)) {
        message.message(6, (list) => {
          for (const item of value as readonly JsonValue[]) list.#value(1, item);
        });
      } else message.struct(5, value as JsonObject);
    });
  }
}

/** A text in a message is UTF-8; what is none shows as exclamation marks. */
export function asUtf8(bytes: Buffer): Buffer {
  return isUtf8(bytes) ? bytes : Buffer.from(bytes.toString().replaceAll('\ufffd', '!'));
}

/** What is read of one field. */
export interface FieldReader {
  text(): string;
  bytes(): Buffer;
  /** A number up to 2^53, or a boolean as 0 or 1. */
  integer(): number;
  message(read: ReadField): void;
  struct(): JsonObject;
}

/** @returns true when the field has been read; others are skipped. */
export type ReadField = (field: number, reader: FieldReader) => boolean;

/** Structs may hold structs, but nobody means that many. */
const MAX_DEPTH = 64;

/** @throws RangeError, or Error, for bytes that are no message. */
export function readMessage(bytes: Buffer, read: ReadField): void {
  new WireReader(minimal().Reader.create(bytes)).fields(bytes.length, read);
}

class WireReader implements FieldReader {
  readonly #reader: Protobuf.Reader;
  #depth = 0;

  constructor(reader: Protobuf.Reader) {
    this.#reader = reader;
  }

  fields(end: number, read: ReadField): void {
    const reader = this.#reader;
    while (reader.pos < end) {
      const tag = reader.uint32();
      if (tag >>> 3 === 0) throw new RangeError('a field has no number');
      if (!read(tag >>> 3, this)) reader.skipType(tag & 7);
    }
    if (reader.pos !== end) throw new RangeError('a field is longer than its message');
  }

  text(): string {
    return this.#reader.string();
  }

  bytes(): Buffer {
    return Buffer.from(this.#reader.bytes());
  }

  integer(): number {
    return Number(this.#reader.int64());
  }

  message(read: ReadField): void {
    const length = this.#reader.uint32();
    const end = this.#reader.pos + length;
    if (end > this.#reader.len) throw new RangeError('a message is longer than what holds it');
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw new RangeError(`more than ${MAX_DEPTH} messages in each other`);
    this.fields(end, read);
    this.#depth -= 1;
  }

  struct(): JsonObject {
    const entries: [string, JsonValue][] = [];
    this.message((field) => {
      if (field !== 1) return false;
      let key = '';
      let value: JsonValue = null;
      this.message((part) => {
        if (part === 1) key = this.text();
        else if (part === 2) value = this.#value();
        else return false;
        return true;
      });
      entries.push([key, value]);
      return true;
    });
    return Object.fromEntries(entries);
  }

  #value(): JsonValue {
    let value: JsonValue = null;
    this.message((field) => {
      if (field === 1) this.#reader.int32();
      else if (field === 2) value = this.#reader.double();
      else if (field === 3) value = this.text();
      else if (field === 4) value = this.#reader.bool();
      else if (field === 5) value = this.struct();
      else if (field === 6) value = this.#list();
      else return false;
      return true;
    });
    return value;
  }

  #list(): JsonValue {
    const items: JsonValue[] = [];
    this.message((field) => {
      if (field !== 1) return false;
      items.push(this.#value());
      return true;
    });
    return items;
  }
}
