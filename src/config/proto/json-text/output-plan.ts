// How the fields of each message become JSON, worked out once for each message type.

import { Enum, type Field, type Type } from 'protobufjs/light.js';
import { mapKeyType, messageTypeOf } from '../message-plan.ts';
import { fieldOptions } from '../root.ts';

/** What a value is in JSON. The simple kinds come first; the others hold messages. */
export const OutputKind = {
  string: 0,
  bytes: 1,
  bool: 2,
  enum: 3,
  /** Of 32 bits, as JSON's number. */
  integer: 4,
  /** Of 64 bits, as a string. */
  long: 5,
  float: 6,
  double: 7,
  wrapper: 8,
  duration: 9,
  timestamp: 10,
  fieldMask: 11,
  message: 12,
  any: 13,
  struct: 14,
  value: 15,
  list: 16,
} as const;

export type OutputKind = (typeof OutputKind)[keyof typeof OutputKind];

/** Of the reader, by the name of a scalar type. */
export type ScalarName =
  | 'double'
  | 'float'
  | 'int32'
  | 'uint32'
  | 'sint32'
  | 'fixed32'
  | 'sfixed32'
  | 'int64'
  | 'uint64'
  | 'sint64'
  | 'fixed64'
  | 'sfixed64'
  | 'bool'
  | 'string'
  | 'bytes';

export interface OutputField {
  readonly name: string;
  /** The name as a key of JSON with what stands before the value. */
  readonly key: string;
  readonly isRepeated: boolean;
  /** How the keys of a map are read; undefined for all other fields. */
  readonly mapKey: ScalarName | undefined;
  readonly kind: OutputKind;
  /** How a simple value is read; of a wrapper what is in it. */
  readonly scalar: ScalarName;
  readonly enumNames: Readonly<Record<number, string>>;
  /** Of a message. */
  readonly type: Type | undefined;
  readonly isSensitive: boolean;
  readonly namesHeader: boolean;
}

/** Fields by their numbers. */
export type OutputPlan = readonly (OutputField | undefined)[];

const WELL_KNOWN: Readonly<Record<string, OutputKind>> = {
  '.google.protobuf.Duration': OutputKind.duration,
  '.google.protobuf.Timestamp': OutputKind.timestamp,
  '.google.protobuf.FieldMask': OutputKind.fieldMask,
  '.google.protobuf.Any': OutputKind.any,
  '.google.protobuf.Struct': OutputKind.struct,
  '.google.protobuf.Value': OutputKind.value,
  '.google.protobuf.ListValue': OutputKind.list,
};

const WRAPPER = /^\.google\.protobuf\.(?:Double|Float|U?Int(?:32|64)|Bool|String|Bytes)Value$/;

const SCALAR_KINDS: Readonly<Record<string, OutputKind>> = {
  string: OutputKind.string,
  bytes: OutputKind.bytes,
  bool: OutputKind.bool,
  float: OutputKind.float,
  double: OutputKind.double,
};

const plans = new WeakMap<Type, OutputPlan>();

export function outputPlan(type: Type): OutputPlan {
  let plan = plans.get(type);
  if (plan === undefined) {
    const fields: OutputField[] = [];
    for (const field of type.fieldsArray) fields[field.id] = outputField(field.resolve());
    plan = fields;
    plans.set(type, plan);
  }
  return plan;
}

/** How a value of the type is written where it stands alone, as in an Any. */
export function messageKind(type: Type): OutputKind {
  return WRAPPER.test(type.fullName) ? OutputKind.wrapper : (WELL_KNOWN[type.fullName] ?? OutputKind.message);
}

/** What a wrapper wraps. */
export function wrappedScalar(type: Type): ScalarName {
  return type.fields.value!.type as ScalarName;
}

export function scalarKind(scalar: ScalarName): OutputKind {
  return SCALAR_KINDS[scalar] ?? (scalar.endsWith('64') ? OutputKind.long : OutputKind.integer);
}

function outputField(field: Field): OutputField {
  const options = fieldOptions(field);
  const type = messageTypeOf(field);
  const kind = type === undefined ? simpleKind(field) : messageKind(type);
  return {
    name: field.name,
    key: `${JSON.stringify(field.name)}: `,
    isRepeated: field.repeated,
    mapKey: mapKeyType(field) as ScalarName | undefined,
    kind,
    scalar: scalarOf(field, type, kind),
    enumNames: field.resolvedType instanceof Enum ? field.resolvedType.valuesById : {},
    type,
    isSensitive: options['(proxy.sensitive)'] === true,
    namesHeader: options['(proxy.names_header)'] === true,
  };
}

function simpleKind(field: Field): OutputKind {
  return field.resolvedType instanceof Enum ? OutputKind.enum : scalarKind(field.type as ScalarName);
}

function scalarOf(field: Field, type: Type | undefined, kind: OutputKind): ScalarName {
  if (kind === OutputKind.wrapper) return wrappedScalar(type!);
  return kind === OutputKind.enum ? 'int32' : (field.type as ScalarName);
}
