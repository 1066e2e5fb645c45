// The JSON schema of a bootstrap, for editors: made from the messages of proto/, their rules and comments, and the support
// table. It says which fields there are, in all spellings that are read; which of them this build refuses or ignores; which
// exclude one another; and by `@type` what an extension's settings are. A configuration that loads is valid by it; not
// everything that is valid loads. Cold: only --print-schema asks for it.

import { Enum, type Field, MapField, type OneOf, type Type } from 'protobufjs/light.js';
import { lowerCamelCase } from '../proto/field-names.ts';
import { envoySpelling, type Generation } from '../proto/message-names.ts';
import type { FieldOptions, MessageOptions, OneofOptions } from '../proto/options.ts';
import { describeType, type ProtoSchema, typeName } from '../proto/root.ts';
import type { ExtensionManifests } from '../resources/extension-manifests.ts';
import { fieldRemarks, type SupportTable, supportWith, type Verdict } from '../support/index.ts';
import { supportKey } from '../support/verdict.ts';
import { enumSchema, type JsonSchema, ruleSchemas, scalarSchema, wellKnownSchema } from './value-schema.ts';

const ANY = '.google.protobuf.Any';
const GENERATION: Generation = 'v3';
const TYPE_KEY = '@type';

/** By full name of what they stand before: `proxy.config.cluster.v3.Cluster.lb_policy`. */
export type ProtoComments = Readonly<Record<string, string>>;

/** A use of a message: by the rows of the support table for a role, or without any, and as settings of an extension. */
interface Use {
  readonly type: Type;
  /** Undefined where the table says nothing of what is inside. */
  readonly role: string | undefined;
  readonly isExtension: boolean;
}

export function bootstrapSchema(
  schema: ProtoSchema,
  { extensions, comments }: { readonly extensions: ExtensionManifests; readonly comments: ProtoComments },
): JsonSchema {
  return new SchemaWriter(schema, supportWith(extensions), comments).write(
    schema.messageType('proxy.config.bootstrap.v3.Bootstrap'),
  );
}

class SchemaWriter {
  readonly #schema: ProtoSchema;
  readonly #table: SupportTable;
  readonly #comments: ProtoComments;
  readonly #definitions: Record<string, JsonSchema> = {};
  readonly #waiting: [key: string, use: Use][] = [];

  constructor(schema: ProtoSchema, table: SupportTable, comments: ProtoComments) {
    this.#schema = schema;
    this.#table = table;
    this.#comments = comments;
  }

  write(root: Type): JsonSchema {
    const $ref = this.#refer({ type: root, role: '', isExtension: false });
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      this.#definitions[next[0]] = this.#message(next[1]);
    }
    return {
      $schema: 'http://json-schema.org/draft-07/schema#',
      title: 'weir bootstrap',
      $ref,
      definitions: this.#definitions,
    };
  }

  #refer(use: Use): string {
    const name = use.role === undefined ? `${typeName(use.type)} plain` : supportKey(typeName(use.type), use.role);
    const key = `${name}${use.isExtension ? ' typed' : ''}`.replace(/[^\w.]+/g, '-');
    if (!Object.hasOwn(this.#definitions, key)) {
      this.#definitions[key] = {};
      this.#waiting.push([key, use]);
    }
    return `#/definitions/${key}`;
  }

  #referEnum(type: Enum): string {
    const key = typeName(type);
    this.#definitions[key] ??= enumSchema(type);
    return `#/definitions/${key}`;
  }

  // ---- Messages ----

  #message({ type, role, isExtension }: Use): JsonSchema {
    const properties: Record<string, JsonSchema> = {};
    const keysOf = new Map<Field, string[]>();
    for (const [key, field] of this.#keys(type)) {
      keysOf.set(field, [...(keysOf.get(field) ?? []), key]);
      properties[key] = this.#property(field.resolve(), key, this.#verdictOn(type, role, field));
    }
    const rules = [
      ...type.oneofsArray.flatMap((oneof) => oneofRules(oneof, keysOf)),
      ...[...keysOf].flatMap(([field, keys]) => (ruleSchemas(field).isRequired ? [oneRequired(keys)] : [])),
    ];
    if (isExtension) properties[TYPE_KEY] = { type: 'string' };
    return {
      title: describeType(type),
      ...this.#described(typeName(type)),
      type: ['object', 'null'],
      additionalProperties: false,
      properties,
      ...(rules.length === 0 ? {} : { allOf: rules }),
    };
  }

  /** All keys that the loader takes for a field of the message. */
  *#keys(type: Type): Generator<readonly [key: string, field: Field]> {
    const keys = this.#schema.fieldNames.keys(type, GENERATION);
    yield* keys;
    for (const [key, field] of keys) {
      const declared = key.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);
      if (!keys.has(declared)) yield [declared, field];
    }
  }

  #verdictOn(type: Type, role: string | undefined, field: Field): Verdict | undefined {
    const rows = role === undefined ? undefined : this.#table[supportKey(typeName(type), role)];
    return rows && (Object.hasOwn(rows.fields, field.name) ? rows.fields[field.name] : rows.otherwise);
  }

  #described(name: string): JsonSchema {
    const description = this.#comments[name];
    return description === undefined ? {} : { description };
  }

  // ---- Fields ----

  #property(field: Field, key: string, verdict: Verdict | undefined): JsonSchema {
    const options = (field.options ?? {}) as FieldOptions;
    const rules = ruleSchemas(field);
    const value = { ...this.#value(field, verdict), ...rules.value };
    return {
      ...shaped(field, value, rules.whole, options['(proxy.v2_singular)'] === true),
      ...this.#remarks(field, verdict),
      ...older(field, key),
    };
  }

  #value(field: Field, verdict: Verdict | undefined): JsonSchema {
    const type = field.resolvedType;
    if (type === null) return scalarSchema(field.type)!;
    if (type instanceof Enum) return { $ref: this.#referEnum(type) };
    if (type.fullName === ANY) return this.#extension(verdict);
    const wellKnown = wellKnownSchema(type);
    if (wellKnown !== undefined) return wellKnown;
    const role = verdict?.kind === 'supported' && !verdict.isWhole ? verdict.role : undefined;
    return { $ref: this.#refer({ type, role, isExtension: false }) };
  }

  /** Settings of an extension: which message they are is said by their `@type`. */
  #extension(verdict: Verdict | undefined): JsonSchema {
    const names = verdict?.kind === 'extension' ? verdict.types : [];
    const types = names.map((name) => this.#schema.messageType(name));
    const urls = types.map((type) => `type.googleapis.com/${envoySpelling(typeName(type))}`);
    return {
      type: ['object', 'null'],
      properties: { [TYPE_KEY]: { type: 'string', ...(urls.length === 0 ? {} : { anyOf: [{ enum: urls }, {}] }) } },
      anyOf: [{ required: [TYPE_KEY] }, { maxProperties: 0 }],
      errorMessage: `"${TYPE_KEY}" says which settings these are`,
      ...(types.length === 0 ? {} : { allOf: types.map((type) => this.#ofType(type)) }),
    };
  }

  #ofType(type: Type): JsonSchema {
    return {
      if: { required: [TYPE_KEY], properties: { [TYPE_KEY]: { pattern: typeUrlPattern(type) } } },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON schema
      then: { $ref: this.#refer({ type, role: '', isExtension: true }) },
    };
  }

  #remarks(field: Field, verdict: Verdict | undefined): JsonSchema {
    const comment = this.#comments[`${typeName(field.parent!)}.${field.name}`];
    const { notes, against } = fieldRemarks(verdict);
    const description = [...(comment === undefined ? [] : [comment]), ...notes].join('\n');
    return {
      ...(description === '' ? {} : { description }),
      ...(against === undefined ? {} : { deprecationMessage: against }),
    };
  }
}

/** Lists, maps and single values; where v2 had one message, a list may be that message. */
function shaped(field: Field, value: JsonSchema, whole: JsonSchema, mayBeSingle: boolean): JsonSchema {
  if (field instanceof MapField) return { type: ['object', 'null'], additionalProperties: value, ...whole };
  if (!field.repeated) return value;
  const list = { type: ['array', 'null'], items: value, ...whole };
  return mayBeSingle ? { anyOf: [list, value] } : list;
}

/** Editors offer the field's own name only. */
function older(field: Field, key: string): JsonSchema {
  const only = ((field.options ?? {}) as FieldOptions)['(proxy.only)'];
  if (key === field.name && only !== 'v2') return {};
  if (key === lowerCamelCase(field.name) && only !== 'v2') return { doNotSuggest: true };
  const instead = only === 'v2' ? 'a field of the older interface (v2)' : `the older name of ${field.name}`;
  return { doNotSuggest: true, deprecationMessage: instead };
}

/** At most one member; one at least where that is asked for. */
function oneofRules(oneof: OneOf, keysOf: ReadonlyMap<Field, readonly string[]>): JsonSchema[] {
  const members = oneof.fieldsArray.filter((field) => keysOf.has(field));
  if (oneof.isProto3Optional || members.length === 0) return [];
  const names = members.map(({ name }) => name);
  const pairs = names.flatMap((name, at) => names.slice(at + 1).map((other) => bothSet(name, other)));
  const rules: JsonSchema[] = [];
  if (pairs.length > 0) {
    rules.push({ not: { anyOf: pairs }, errorMessage: `only one of ${names.join(', ')} can be set` });
  }
  const isRequired = ((oneof.options ?? {}) as OneofOptions)['(proxy.required)'] === true;
  if (isRequired) rules.push(oneRequired(members.flatMap((field) => keysOf.get(field)!)));
  return rules;
}

function bothSet(...keys: readonly string[]): JsonSchema {
  const isSet = { not: { type: 'null' } };
  return { required: [...keys], properties: Object.fromEntries(keys.map((key) => [key, isSet])) };
}

function oneRequired(keys: readonly string[]): JsonSchema {
  // Null stands for a message that is not there.
  return {
    anyOf: [...keys.map((key) => ({ required: [key] })), { type: 'null' }],
    errorMessage: `${keys[0]} is missing`,
  };
}

/** Both vendors' spellings, and the name of v2, after any host. */
function typeUrlPattern(type: Type): string {
  const v2 = ((type.options ?? {}) as MessageOptions)['(proxy.v2_name)'];
  const names = [typeName(type), ...(v2 === undefined ? [] : [v2])].map((name) =>
    name.replace(/^(?:proxy|envoy)\./, ''),
  );
  return `(?:^|/)\\.?(?:envoy|proxy)\\.(?:${names.map((name) => name.replaceAll('.', '\\.')).join('|')})$`;
}
