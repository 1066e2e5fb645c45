// Messages that are sent rather than read, in pieces: what is long is encoded bit by bit, and joined at the end by the lengths
// of the pieces. Main thread.

import type protobuf from 'protobufjs/light.js';
import { protoSchema } from './root.ts';
import { encodeMessage, headOf } from './wire-parts.ts';

export class MessageEncoder {
  readonly #type: protobuf.Type;

  /** @param typeName full name; @throws when the schema has no such message, which is a bug. */
  constructor(typeName: string) {
    this.#type = protoSchema().messageType(typeName);
  }

  /** @param message fields by their names in the schema; those that are absent are not written. */
  encode(message: object): Uint8Array {
    return encodeMessage(this.#type, message);
  }

  /** A field of this message with another message in it, or one more of a list of them. @param content of that message. */
  field(name: string, content: readonly Uint8Array[]): readonly Uint8Array[] {
    const length = content.reduce((sum, { byteLength }) => sum + byteLength, 0);
    return [headOf(this.#type, name, length), ...content];
  }

  /** @returns fields by their names, defaults included. @throws for what is no such message. */
  decode(bytes: Uint8Array): Readonly<Record<string, unknown>> {
    return this.#type.decode(bytes) as unknown as Readonly<Record<string, unknown>>;
  }
}

/** A 64-bit number of nanoseconds since 1970, which is beyond what a number holds. */
export function nanoseconds(ms: number): { readonly low: number; readonly high: number; readonly unsigned: true } {
  const nanos = BigInt(Math.round(ms * 1000)) * 1000n;
  return { low: Number(nanos & 0xffff_ffffn) | 0, high: Number(nanos >> 32n) | 0, unsigned: true };
}
