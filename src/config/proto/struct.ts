// google.protobuf.Struct as a value tree: the way by which an opaque configuration that came in binary or
// text form is read like one that came in JSON. Nodes made here have no place in any source.

import type { Message, Type } from 'protobufjs/light.js';
import type { JsonObject, JsonValue } from '../../base/json.ts';
import { type MapNode, scalarNode, type ValueNode } from '../source/node.ts';
import type { Struct, Value } from './generated/messages.ts';
import { VALUE_FIELD } from './json-well-known.ts';

const NOWHERE = -1;

type Fields = Readonly<Record<string, unknown>>;

/** `struct` is a message of google.protobuf.Struct. */
export function structToNode(struct: Message, structType: Type): MapNode {
  return new StructConverter(structType).map(struct);
}

class StructConverter {
  /** Names of Value's fields by number; the schema may spell them either way. */
  readonly #name: (fieldNumber: number) => string;

  constructor(structType: Type) {
    const valueType = structType.root.lookupType('google.protobuf.Value');
    this.#name = (fieldNumber) => valueType.fieldsById[fieldNumber]!.name;
  }

  map(struct: Message): MapNode {
    const fields = (struct as unknown as { fields: Record<string, Message> }).fields;
    const entries = Object.entries(fields).map(([key, value]) => ({ key, offset: NOWHERE, value: this.#value(value) }));
    return { kind: 'map', offset: NOWHERE, entries };
  }

  #value(message: Message): ValueNode {
    const fields = message as unknown as Fields;
    const has = (fieldNumber: number) => Object.hasOwn(fields, this.#name(fieldNumber));
    const get = (fieldNumber: number) => fields[this.#name(fieldNumber)];
    if (has(VALUE_FIELD.string)) return scalarNode(NOWHERE, 'string', get(VALUE_FIELD.string) as string);
    if (has(VALUE_FIELD.number)) return scalarNode(NOWHERE, 'number', String(get(VALUE_FIELD.number)));
    if (has(VALUE_FIELD.bool)) return scalarNode(NOWHERE, 'bool', String(get(VALUE_FIELD.bool)));
    if (has(VALUE_FIELD.struct)) return this.map(get(VALUE_FIELD.struct) as Message);
    if (has(VALUE_FIELD.list)) {
      const { values } = get(VALUE_FIELD.list) as { values: Message[] };
      return { kind: 'list', offset: NOWHERE, items: values.map((item) => this.#value(item)) };
    }
    return scalarNode(NOWHERE, 'null', 'null');
  }
}

/** To be encoded. */
export function jsonToStruct(json: JsonObject): Struct {
  return { fields: Object.fromEntries(Object.entries(json).map(([key, value]) => [key, jsonToValue(value)])) };
}

function jsonToValue(json: JsonValue): Value {
  return valueMembers(json) as Value;
}

/** Only the member that is set: others would be written, too. */
function valueMembers(json: JsonValue): Partial<Value> {
  if (json === null) return { nullValue: 0 };
  if (typeof json === 'boolean') return { boolValue: json };
  if (typeof json === 'number') return { numberValue: json };
  if (typeof json === 'string') return { stringValue: json };
  if (Array.isArray(json)) return { listValue: { values: json.map(jsonToValue) } };
  return { structValue: jsonToStruct(json as JsonObject) };
}
