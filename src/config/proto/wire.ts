// The binary form, with what the schema does not know kept aside: it has to be reported, and it is written
// out again when the message is encoded.

import { type Message, Reader, type Type } from 'protobufjs/light.js';

/** @throws when the bytes are no message of `type`. */
export function decodeMessage(type: Type, bytes: Uint8Array): Message {
  const reader = Reader.create(bytes);
  reader.discardUnknown = false;
  return type.decode(reader);
}

/** The distinct numbers of the fields of `message` (not of those below it) that the schema does not have. */
export function unknownFieldNumbers(message: Message): Set<number> {
  const numbers = new Set<number>();
  // Each chunk is one field with its tag.
  for (const chunk of message.$unknowns ?? []) numbers.add(Reader.create(chunk).uint32() >>> 3);
  return numbers;
}

/** The binary form behind its length, as streams of messages have it. @param message fields by their names of the schema. */
export function encodeDelimited(type: Type, message: Readonly<Record<string, unknown>>): Uint8Array {
  return type.encodeDelimited(type.create(message)).finish();
}
