// Encoders of messages, each made alone when the first message of its type is written. By themselves, types of protobufjs
// generate a decoder, a verifier and two converters along with it, which is 20 ms of a start. Main thread.

import protobuf from 'protobufjs/light.js';

type Encode = (message: object, writer?: protobuf.Writer, depth?: number) => protobuf.Writer;

/** Of a message type that was just made, and of all that are declared inside it. */
export function encodeAtNeed(made: protobuf.ReflectionObject): void {
  if (made instanceof protobuf.Type) made.encode = encodeFirst as protobuf.Type['encode'];
  if (made instanceof protobuf.Namespace) made.nestedArray.forEach(encodeAtNeed);
}

function encodeFirst(this: protobuf.Type, ...given: Parameters<Encode>): protobuf.Writer {
  const types = this.fieldsArray.map((field) => field.resolve().resolvedType);
  const encode = protobuf.encoder(this)({ Writer: protobuf.Writer, types, util: protobuf.util }) as Encode;
  this.encode = encode as protobuf.Type['encode'];
  return encode.call(this, ...given);
}
