// How the fields of one message type are read, worked out once per type and generation: a table from every
// accepted key to the reader of its field. Reflection is only consulted here, so that reading thousands of
// equal messages costs one map look-up per field.

import { type Field, MapField, Type } from 'protobufjs/light.js';
import type { Generation } from './message-names.ts';
import type { FieldOptions } from './options.ts';
import type { ValueReader } from './read-context.ts';
import type { ProtoSchema } from './root.ts';

export type FieldShape = 'single' | 'list' | 'map';

export interface FieldPlan {
  readonly field: Field;
  /** The property of the message. */
  readonly name: string;
  readonly shape: FieldShape;
  /** Reads one value; of a list one item, of a map one entry's value. */
  readonly readValue: ValueReader;
  /** The declared oneof, undefined for a field that stands alone. */
  readonly oneof: string | undefined;
  /** Null is a value here, where elsewhere it means absent. */
  readonly acceptsNull: boolean;
  /** How one value is written: what is built of fields as a map, anything else as a scalar. */
  readonly itemKind: 'map' | 'scalar';
  /** Only the older generation has the field. */
  readonly isOlder: boolean;
  /** Nobody is to see what is written there. */
  readonly isSensitive: boolean;
  /** The other fields of the message are about the header that it names. */
  readonly namesHeader: boolean;
}

/** Present in messages that name an extension and hold its configuration. */
export interface SlotPlan {
  readonly typedConfig: FieldPlan;
  /** The opaque form of the older generation. */
  readonly config: FieldPlan | undefined;
}

export interface MessagePlan {
  readonly type: Type;
  readonly fields: ReadonlyMap<string, FieldPlan>;
  /** Proto names of all fields, for suggestions. */
  readonly names: readonly string[];
  readonly slot: SlotPlan | undefined;
  /** The field that names a header. */
  readonly headerName: FieldPlan | undefined;
}

/** Chooses the reader of a value of a field's type; the only difference between the dialects. */
export type ValueReaderFactory = (field: Field) => ValueReader;

/** The plans of one dialect over one schema. */
export class MessagePlans {
  readonly #schema: ProtoSchema;
  readonly #readerOf: ValueReaderFactory;
  readonly #byType: Record<Generation, Map<Type, MessagePlan>> = { v2: new Map(), v3: new Map() };

  constructor(schema: ProtoSchema, readerOf: ValueReaderFactory) {
    this.#schema = schema;
    this.#readerOf = readerOf;
  }

  of(type: Type, generation: Generation): MessagePlan {
    const plans = this.#byType[generation];
    let plan = plans.get(type);
    if (plan === undefined) {
      plan = this.#make(type, generation);
      plans.set(type, plan);
    }
    return plan;
  }

  #make(type: Type, generation: Generation): MessagePlan {
    const plans = new Map<Field, FieldPlan>();
    const fields = new Map<string, FieldPlan>();
    for (const [key, field] of this.#schema.fieldNames.keys(type, generation)) {
      let plan = plans.get(field);
      if (plan === undefined) {
        plan = this.#planOf(field.resolve());
        plans.set(field, plan);
      }
      fields.set(key, plan);
      const declared = snakeCase(key);
      if (!fields.has(declared)) fields.set(declared, plan);
    }
    const names = [...plans.keys()].map((field) => field.name);
    const headerName = [...plans.values()].find(({ namesHeader }) => namesHeader);
    return { type, fields, names, slot: slotPlan(fields), headerName };
  }

  #planOf(field: Field): FieldPlan {
    const options = (field.options ?? {}) as FieldOptions;
    return {
      field,
      name: field.name,
      shape: field.map ? 'map' : field.repeated ? 'list' : 'single',
      readValue: this.#readerOf(field),
      oneof: field.partOf?.isProto3Optional ? undefined : field.partOf?.name,
      acceptsNull: isNullable(field),
      itemKind: messageTypeOf(field) === undefined ? 'scalar' : 'map',
      isOlder: options['(proxy.only)'] === 'v2',
      isSensitive: options['(proxy.sensitive)'] === true,
      namesHeader: options['(proxy.names_header)'] === true,
    };
  }
}

function slotPlan(fields: ReadonlyMap<string, FieldPlan>): SlotPlan | undefined {
  const typedConfig = fields.get('typed_config');
  if (typedConfig?.field.resolvedType?.fullName !== '.google.protobuf.Any' || !fields.has('name')) return undefined;
  const config = fields.get('config');
  const isOpaque = config?.field.resolvedType?.fullName === '.google.protobuf.Struct';
  return { typedConfig, config: isOpaque ? config : undefined };
}

/** Well-known types are declared with lowerCamelCase names; their own spelling is snake_case. */
function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);
}

function isNullable(field: Field): boolean {
  const typeName = field.resolvedType?.fullName;
  return typeName === '.google.protobuf.Value' || typeName === '.google.protobuf.NullValue';
}

/** The type of a map's keys, undefined for other fields. */
export function mapKeyType(field: Field): string | undefined {
  return field instanceof MapField ? field.keyType : undefined;
}

export function messageTypeOf(field: Field): Type | undefined {
  return field.resolvedType instanceof Type ? field.resolvedType : undefined;
}
