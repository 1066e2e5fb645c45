// google.protobuf.Any: a message inside a message, named by a type URL. Configuration nests every extension
// in one. An Any made here carries its message along, so that nobody decodes what was just read, and its
// bytes are made only when somebody asks for them (a config dump, a hash of the resource).

import type { Message, Type } from 'protobufjs/light.js';
import type { Generation } from './message-names.ts';
import { type ProtoSchema, protoSchema } from './root.ts';
import { decodeMessage } from './wire.ts';

export interface AnyMessage {
  readonly type_url: string;
  readonly value: Uint8Array;
}

/** What an Any holds. Shared by all who unpack it: read it, never change it. */
export interface UnpackedAny {
  readonly type: Type;
  readonly message: Message;
  /** The generation whose name the type URL (or the extension's name) used. */
  readonly generation: Generation;
}

/** Messages by the Any that holds them. An Any is never changed after it was made, so this cannot go stale. */
const contents = new WeakMap<object, UnpackedAny>();

export const TYPED_STRUCTS: ReadonlySet<string> = new Set(['.udpa.type.v1.TypedStruct', '.xds.type.v3.TypedStruct']);

/** An Any that holds `content`. */
export function packAny(anyType: Type, typeUrl: string, content: UnpackedAny): Message & AnyMessage {
  const any = new anyType.ctor() as Message & { type_url: string; value: Uint8Array };
  any.type_url = typeUrl;
  let bytes: Uint8Array | undefined;
  Object.defineProperty(any, 'value', {
    enumerable: true,
    configurable: true,
    get: (): Uint8Array => {
      bytes ??= content.type.encode(content.message).finish();
      return bytes;
    },
  });
  contents.set(any, content);
  return any;
}

/**
 * The message in an Any; undefined when it is empty, of a type that weir does not know, or not decodable.
 * Everything that the loader has read unpacks without decoding.
 */
export function unpackAny(any: AnyMessage, schema: ProtoSchema = protoSchema()): UnpackedAny | undefined {
  const known = contents.get(any);
  if (known !== undefined) return known;
  const found = schema.find(any.type_url);
  if (found === undefined) return undefined;
  const message = tryDecode(found.type, any.value);
  if (message === undefined) return undefined;
  const content = { ...found, message };
  contents.set(any, content);
  return content;
}

function tryDecode(type: Type, bytes: Uint8Array): Message | undefined {
  try {
    return decodeMessage(type, bytes);
  } catch {
    return undefined;
  }
}
