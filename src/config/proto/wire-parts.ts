// Parts of messages in their binary form, without decoding what is around them.

import { type Type, util } from 'protobufjs/light.js';
import { FieldCursor } from './field-cursor.ts';
import { messageTypeOf } from './message-plan.ts';
import type { ProtoSchema } from './root.ts';

const ANY = '.google.protobuf.Any';
const LENGTH_DELIMITED = 2;
/** Free-form JSON may be nested as deep as sources may, with two messages for each level. */
const MOST_LEVELS = 2_048;

/** @throws RangeError for a message that is nested deeper than any source may be. */
export function encodeMessage(type: Type, message: object): Uint8Array {
  const usual = util.recursionLimit;
  util.recursionLimit = MOST_LEVELS;
  try {
    return type.encode(message as { [key: string]: unknown }).finish();
  } finally {
    util.recursionLimit = usual;
  }
}

/** What stands before a value of `length` bytes. */
export function headOf(type: Type, field: string, length: number): Uint8Array {
  const head: number[] = [];
  for (let rest of [((type.fields[field]!.id << 3) | LENGTH_DELIMITED) >>> 0, length]) {
    for (; rest > 127; rest = Math.floor(rest / 128)) head.push((rest & 127) | 128);
    head.push(rest);
  }
  return Uint8Array.from(head);
}

/**
 * The bytes that a path of fields leads to, in their order, each a view of `bytes`; at a list it branches. An Any is entered where
 * the name of the message that it should hold follows in the path.
 */
export function* partsOf(
  schema: ProtoSchema,
  type: Type,
  bytes: Uint8Array,
  path: readonly string[],
): Generator<Uint8Array, void, undefined> {
  const [name, ...rest] = path;
  if (name === undefined) {
    yield bytes;
    return;
  }
  if (type.fullName === ANY) {
    const content = contentOf(schema, bytes, name);
    if (content !== undefined) yield* partsOf(schema, schema.messageType(name), content, rest);
    return;
  }
  const field = type.fields[name]!.resolve();
  const next = messageTypeOf(field) ?? type;
  for (const part of valuesOf(bytes, field.id)) yield* partsOf(schema, next, part, rest);
}

/** A text field of a message; empty when it is not set. @throws as FieldCursor.next. */
export function textOf(type: Type, bytes: Uint8Array, field: string): string {
  return textAt(bytes, type.fields[field]!.id);
}

/** The same by the number of the field. @throws as well. */
export function textAt(bytes: Uint8Array, fieldNumber: number): string {
  const cursor = new FieldCursor(bytes);
  let text = '';
  while (cursor.next()) if (cursor.number === fieldNumber && cursor.isDelimited) text = cursor.text;
  return text;
}

function contentOf(schema: ProtoSchema, any: Uint8Array, name: string): Uint8Array | undefined {
  const anyType = schema.messageType(ANY);
  const found = schema.find(textOf(anyType, any, 'type_url'));
  if (found?.type !== schema.messageType(name)) return undefined;
  let content: Uint8Array = any.subarray(0, 0);
  for (const part of valuesOf(any, anyType.fields.value!.id)) content = part;
  return content;
}

/** Values of a field that is text, bytes or a message, each a view of `bytes`. @throws as FieldCursor.next. */
export function* valuesOf(bytes: Uint8Array, fieldNumber: number): Generator<Buffer, void, undefined> {
  const cursor = new FieldCursor(bytes);
  while (cursor.next()) if (cursor.number === fieldNumber && cursor.isDelimited) yield cursor.value;
}
