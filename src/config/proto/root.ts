// The reflection roots of the configuration schema: which messages exist and under which names. Main thread.
// Both roots come from one bundle (scripts/build-proto.mjs). The input root reads JSON in snake_case and
// lowerCamelCase; the output root writes snake_case, the spelling of the admin interface. A message of one
// root may be given to the other root's type of the same name.

import { readFileSync } from 'node:fs';
import protobuf from 'protobufjs/light.js';
import { buildOutput } from '../../base/package-root.ts';
import { FieldNames } from './field-names.ts';
import { currentTypeName, type Generation, normalizeTypeName } from './message-names.ts';
import type { FieldOptions } from './options.ts';
import { Validator } from './rules/validator.ts';
import { SchemaParts } from './schema-parts.ts';

export type MessageType = protobuf.Type;

const WELL_KNOWN = [
  'google.protobuf.Any',
  'google.protobuf.Struct',
  'google.protobuf.Value',
  'google.protobuf.ListValue',
];

export interface MessageReference {
  readonly type: protobuf.Type;
  /** The generation whose name was used: some rules and field names differ between the two. */
  readonly generation: Generation;
}

export class ProtoSchema {
  readonly fieldNames: FieldNames = new FieldNames();
  readonly #bundle: protobuf.INamespace;
  readonly #parts: SchemaParts;
  /** By all names that a message answers to. */
  readonly #names = new Map<string, { readonly fullName: string; readonly generation: Generation }>();
  readonly #references = new Map<string, MessageReference>();
  #outputRoot: protobuf.Root | undefined;
  #validator: Validator | undefined;

  constructor(bundle: protobuf.INamespace) {
    this.#bundle = bundle;
    this.#parts = new SchemaParts(bundle);
    for (const { fullName, v2Name } of this.#parts.messages) {
      this.#names.set(fullName, { fullName, generation: 'v3' });
      if (v2Name !== undefined) this.#names.set(normalizeTypeName(v2Name), { fullName, generation: 'v2' });
    }
    // What is looked up by its name in the root.
    for (const name of WELL_KNOWN) this.find(name);
  }

  /** All reflection objects; those that nobody has asked for yet are made. */
  get root(): protobuf.Root {
    this.#parts.makeAll();
    return this.#parts.root;
  }

  /** Every message of the schema, nested ones and well-known types included. */
  types(): protobuf.Type[] {
    this.#parts.makeAll();
    return this.#parts.messages.map(({ fullName }) => this.#parts.message(fullName));
  }

  /**
   * The message of a full name or type URL: `proxy.config.cluster.v3.Cluster`, `envoy.api.v2.Cluster`,
   * `type.googleapis.com/envoy.config.cluster.v3.Cluster`.
   */
  find(nameOrTypeUrl: string): MessageReference | undefined {
    const name = normalizeTypeName(nameOrTypeUrl);
    const known = this.#references.get(name);
    if (known !== undefined) return known;
    const named = this.#names.get(name) ?? this.#names.get(currentTypeName(name));
    if (named === undefined) return undefined;
    const reference = { type: this.#parts.message(named.fullName), generation: named.generation };
    this.#references.set(name, reference);
    return reference;
  }

  /** For names in our own code; @throws when the schema has no such message, which is a bug. */
  messageType(nameOrTypeUrl: string): protobuf.Type {
    const found = this.find(nameOrTypeUrl);
    if (found === undefined) throw new Error(`the schema has no message ${nameOrTypeUrl}`);
    return found.type;
  }

  /** Checks messages against their rules. */
  get validator(): Validator {
    this.#validator ??= new Validator();
    return this.#validator;
  }

  /** The same message in the output root, whose JSON has the fields' own names. Built at first use. */
  outputType(type: protobuf.Type): protobuf.Type {
    this.#outputRoot ??= snakeCaseRoot(this.#bundle);
    return this.#outputRoot.lookupType(type.fullName);
  }
}

function snakeCaseRoot(bundle: protobuf.INamespace): protobuf.Root {
  const root = protobuf.Root.fromJSON(bundle);
  for (const type of typesBelow(root)) type.fieldsArray.forEach(spellAsDeclared);
  return root;
}

function* typesBelow(namespace: protobuf.NamespaceBase): Generator<protobuf.Type> {
  for (const object of namespace.nestedArray) {
    if (object instanceof protobuf.Type) yield object;
    if (object instanceof protobuf.Namespace) yield* typesBelow(object);
  }
}

/** protobufjs offers no setting for JSON names in snake_case; it derives them once, and reads them at each use. */
function spellAsDeclared(field: { readonly name: string; jsonName: string }): void {
  field.jsonName = field.name;
}

/** Canonical full name, without the leading dot of reflection objects. */
export function typeName(type: protobuf.ReflectionObject): string {
  return type.fullName.slice(1);
}

/** How errors call a message: without package and version, `Cluster.RingHashLbConfig`. */
export function describeType(type: protobuf.ReflectionObject): string {
  const name = typeName(type);
  return name.slice(name.search(/(?<=^|\.)[A-Z]/));
}

/** What proto/proxy/annotations.proto lets a field say. */
export function fieldOptions(field: protobuf.FieldBase): FieldOptions {
  return (field.options ?? {}) as FieldOptions;
}

function once<Value>(make: () => Value): () => Value {
  let value: Value | undefined;
  return () => {
    value ??= make();
    return value;
  };
}

/** The schema as built; read at first use and the same from then on. */
export const protoSchema: () => ProtoSchema = once(
  () => new ProtoSchema(JSON.parse(readFileSync(buildOutput('proto/bundle.json'), 'utf8')) as protobuf.INamespace),
);
