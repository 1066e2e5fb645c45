// Messages that go out in binary.

import { protoSchema } from '../proto/root.ts';
import { encodeDelimited as encode } from '../proto/wire.ts';

/** @param typeName full name. @param message fields by their names of the schema. @returns its bytes behind their length. */
export function encodeDelimited(typeName: string, message: Readonly<Record<string, unknown>>): Uint8Array {
  return encode(protoSchema().messageType(typeName), message);
}
