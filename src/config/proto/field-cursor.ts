// Walks the fields of one message in its binary form without making anything of them: for messages of which most is somebody else's
// to read, in their own time. Tens of nanoseconds a field, and no memory.

import { Reader } from 'protobufjs/light.js';

const VARINT = 0;
const FIXED_64 = 1;
const LENGTH_DELIMITED = 2;
const FIXED_32 = 5;
/** Of a number of 32 bits. */
const MOST_SHORT_VARINT_BYTES = 5;
const GREATEST_OF_TAG = 15;
/** Lengths have 31 bits. */
const GREATEST_OF_LENGTH = 7;

export class FieldCursor {
  /** Of the field that it stands on. */
  number = 0;
  #wireType = 0;
  /** Where its value begins and ends. */
  #start = 0;
  #end = 0;
  readonly #bytes: Buffer;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** @returns false behind the last. @throws RangeError or Error where the bytes are no message. */
  next(): boolean {
    const bytes = this.#bytes;
    const begin = this.#end;
    if (begin === bytes.length) return false;
    const tag = this.#shortVarint(begin, GREATEST_OF_TAG);
    this.number = tag >>> 3;
    this.#wireType = tag & 7;
    if (this.number === 0) throw new RangeError(`no field has the number 0, at byte ${begin}`);
    this.#start = this.#end;
    this.#skip();
    if (this.#end > bytes.length) throw new RangeError(`the field at byte ${begin} ends behind the message`);
    return true;
  }

  /** It is text, bytes or a message. */
  get isDelimited(): boolean {
    return this.#wireType === LENGTH_DELIMITED;
  }

  /** A view of its value. */
  get value(): Buffer {
    return this.#bytes.subarray(this.#start, this.#end);
  }

  get text(): string {
    return this.#bytes.toString('utf8', this.#start, this.#end);
  }

  /** Its value is that of these bytes. */
  is(bytes: Buffer): boolean {
    const length = this.#end - this.#start;
    return length === bytes.length && this.#bytes.compare(bytes, 0, length, this.#start, this.#end) === 0;
  }

  /** Sets the end behind the value; of what has its length before it, the start as well. */
  #skip(): void {
    switch (this.#wireType) {
      case VARINT:
        this.#skipVarint();
        return;
      case FIXED_64:
        this.#end += 8;
        return;
      case LENGTH_DELIMITED: {
        const length = this.#shortVarint(this.#start, GREATEST_OF_LENGTH);
        this.#start = this.#end;
        this.#end += length;
        return;
      }
      case FIXED_32:
        this.#end += 4;
        return;
      default: {
        // Groups, which nobody writes any more.
        const reader = Reader.create(this.#bytes);
        reader.pos = this.#start;
        reader.skipType(this.#wireType);
        this.#end = reader.pos;
      }
    }
  }

  /** Of a tag or a length, as protobufjs reads them. Leaves the end behind it. @param greatest that the last of five bytes may be. */
  #shortVarint(at: number, greatest: number): number {
    const bytes = this.#bytes;
    let value = 0;
    for (let index = 0; index < MOST_SHORT_VARINT_BYTES; index += 1) {
      const byte = bytes[at + index];
      if (byte === undefined) throw new RangeError(`a number at byte ${at} ends behind the message`);
      value |= (byte & 127) << (7 * index);
      if (index === MOST_SHORT_VARINT_BYTES - 1 && byte > greatest) break;
      if (byte < 128) {
        this.#end = at + index + 1;
        return value >>> 0;
      }
    }
    throw new RangeError(`a number at byte ${at} is too large for a tag or a length`);
  }

  /** Whoever reads it minds how long it is. */
  #skipVarint(): void {
    const bytes = this.#bytes;
    let at = this.#end;
    while (bytes[at]! > 127) at += 1;
    this.#end = at + 1;
  }
}
