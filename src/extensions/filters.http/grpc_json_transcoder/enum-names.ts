// Names of enums' values in JSON that differ from those of the definitions in their case alone, or by dashes. Worker thread.

import type Protobuf from 'protobufjs/light.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../../base/json.ts';

const WELL_KNOWN = '.google.protobuf.';

/** The same JSON of a message with the names that its definitions have. What they do not have stays as it is. */
export function withEnumNames(type: Protobuf.Type, json: JsonObject): JsonObject {
  // These have forms of JSON of their own.
  if (type.fullName.startsWith(WELL_KNOWN)) return json;
  const named: Record<string, JsonValue> = {};
  for (const [key, value] of Object.entries(json)) {
    const field = fieldNamed(type, key);
    named[key] = field?.resolvedType ? ofField(field, field.resolvedType, value) : value;
  }
  return named;
}

function ofField(
  field: Protobuf.Field,
  type: NonNullable<Protobuf.Field['resolvedType']>,
  value: JsonValue,
): JsonValue {
  if (field.map && isJsonObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, ofValue(type, one)]));
  }
  return Array.isArray(value) ? value.map((one) => ofValue(type, one as JsonValue)) : ofValue(type, value);
}

function ofValue(type: Protobuf.Type | Protobuf.Enum, value: JsonValue): JsonValue {
  if ('fieldsArray' in type) return isJsonObject(value) ? withEnumNames(type, value) : value;
  if (typeof value !== 'string' || Object.hasOwn(type.values, value)) return value;
  const wanted = plain(value);
  return Object.keys(type.values).find((name) => plain(name) === wanted) ?? value;
}

function fieldNamed(type: Protobuf.Type, name: string): Protobuf.Field | undefined {
  const isNamed = (field: Protobuf.Field): boolean =>
    field.name === name || (field as unknown as { readonly jsonName: string }).jsonName === name;
  return type.fieldsArray.find(isNamed);
}

function plain(name: string): string {
  return name.toUpperCase().replaceAll('-', '_');
}
