// Struct and Value messages as the plain JSON they stand for.

import type { JsonObject, JsonValue } from '../../base/json.ts';
import type { Struct, Value } from './messages.ts';

export function structToJson(struct: Struct): JsonObject {
  // Built from entries, so that a key called __proto__ is a key like any other.
  return Object.fromEntries(Object.entries(struct.fields).map(([key, value]) => [key, valueToJson(value)]));
}

export function valueToJson(value: Value): JsonValue {
  switch (value.kind) {
    case 'boolValue':
      return value.boolValue;
    case 'numberValue':
      return value.numberValue;
    case 'stringValue':
      return value.stringValue;
    case 'structValue':
      return structToJson(value.structValue!);
    case 'listValue':
      return value.listValue!.values.map(valueToJson);
    default:
      return null;
  }
}
