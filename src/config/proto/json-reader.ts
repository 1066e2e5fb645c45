// Value tree to message in the JSON mapping of protobuf, the dialect of YAML and JSON sources. Unlike the
// library's own reader it goes on after a fault, knows paths and positions, accepts the names of both
// generations, and turns opaque extension configurations into typed ones on the way.

import type { Field, Message, Type } from 'protobufjs/light.js';
import { MapKey } from '../source/field-path.ts';
import { entryOf, type MapEntry, type MapNode, type ValueNode } from '../source/node.ts';
import { TYPED_MAP_NAMES, TYPED_MAPS } from './extension-lookup.ts';
import { type ExtensionName, KEEP_AS_WRITTEN, readAny, readByName } from './extension-reader.ts';
import { expected, scalarReader } from './json-scalars.ts';
import { wellKnownReader } from './json-well-known.ts';
import { isNull, MessageBuilder } from './message-builder.ts';
import { type FieldPlan, type MessagePlan, MessagePlans } from './message-plan.ts';
import type { Invalid, MessageReader, ReadContext, ValueReader } from './read-context.ts';
import type { ProtoSchema } from './root.ts';

const ANY = '.google.protobuf.Any';

export class JsonReader {
  readonly #plans: MessagePlans;
  readonly #wellKnown = new Map<Type, ValueReader | undefined>();

  constructor(schema: ProtoSchema) {
    this.#plans = new MessagePlans(schema, (field) => this.#readerOf(field));
  }

  /** Reads `node` as a message of `type`; faults go to the context. */
  readonly read: MessageReader = (context, type, node) => {
    const wellKnown = this.#wellKnownReader(type);
    return wellKnown === undefined
      ? this.#readFields(context, type, node)
      : (wellKnown(context, node) as Message | Invalid);
  };

  #readerOf(field: Field): ValueReader {
    const scalar = scalarReader(field);
    if (scalar !== undefined) return scalar;
    const type = field.resolvedType as Type;
    const wellKnown = this.#wellKnownReader(type);
    return wellKnown ?? ((context, node) => this.#readFields(context, type, node));
  }

  #wellKnownReader(type: Type): ValueReader | undefined {
    if (!this.#wellKnown.has(type)) {
      const reader: ValueReader | undefined =
        type.fullName === ANY ? (context, node) => readAny(context, node) : wellKnownReader(type);
      this.#wellKnown.set(type, reader);
    }
    return this.#wellKnown.get(type);
  }

  #readFields(context: ReadContext, type: Type, node: ValueNode): Message | Invalid {
    if (node.kind !== 'map') return expected(context, 'a map', node);
    const plan = this.#plans.of(type, context.generation);
    const builder = new MessageBuilder(context, plan);
    context.enterMessage(type);
    for (const entry of node.entries) {
      const field = builder.planOf(entry);
      if (field === undefined) continue;
      builder.read(field, node, () => this.#readEntry(context, plan, builder, field, entry, node));
    }
    if (plan.slot !== undefined) this.#fillEmptySlot(context, plan, builder, node);
    context.leaveMessage();
    return builder.message;
  }

  #readEntry(
    context: ReadContext,
    plan: MessagePlan,
    builder: MessageBuilder,
    field: FieldPlan,
    entry: MapEntry,
    around: MapNode,
  ): void {
    const { value } = entry;
    if (isNull(value) && !field.acceptsNull) return;
    if (entry.key !== field.name && isGivenAlready(around, field, entry, plan)) {
      context.fault(`given twice, as ${field.name} and as ${entry.key}`, entry.offset);
    } else if (builder.claimOneof(field, entry.offset)) {
      if (field.shape === 'list') readList(context, builder, field, value);
      else if (field.shape === 'map') this.#readMap(context, plan, builder, field, value);
      else if (plan.slot !== undefined && isSlotField(plan, field))
        this.#readSlot(context, plan, builder, field, entry, around);
      else if (isAny(field) && isOptional(around))
        builder.set(field, readAny(context, value, context.slot(field.name, true)));
      else builder.set(field, field.readValue(context, value));
    }
  }

  #readMap(context: ReadContext, plan: MessagePlan, builder: MessageBuilder, field: FieldPlan, node: ValueNode): void {
    if (node.kind !== 'map') {
      expected(context, 'a map', node);
      return;
    }
    const typedName = TYPED_MAPS[field.name];
    const typedMap = typedName === undefined ? undefined : plan.fields.get(typedName);
    const isExtensionMap = typedMap !== undefined || TYPED_MAP_NAMES.has(field.name);
    for (const entry of node.entries) {
      if (isExtensionMap) readExtensionEntry(context, builder, field, typedMap, entry);
      else builder.addMapEntry(field, entry.key, entry.offset, entry.value);
    }
  }

  #readSlot(
    context: ReadContext,
    plan: MessagePlan,
    builder: MessageBuilder,
    field: FieldPlan,
    entry: MapEntry,
    around: MapNode,
  ): void {
    const slot = context.slot('typed_config', isOptional(around));
    const name = extensionName(around);
    const typedConfig = plan.slot!.typedConfig;
    if (field === typedConfig) {
      builder.set(field, readAny(context, entry.value, slot, name));
      return;
    }
    const read = name === undefined ? KEEP_AS_WRITTEN : readByName(context, slot, name, entry.value);
    if (read === KEEP_AS_WRITTEN) builder.set(field, field.readValue(context, entry.value));
    else builder.set(typedConfig, read);
  }

  /** A slot with nothing but a name gets the extension's empty configuration. */
  #fillEmptySlot(context: ReadContext, plan: MessagePlan, builder: MessageBuilder, node: MapNode): void {
    const { typedConfig, config } = plan.slot!;
    const isSet = typedConfig.oneof !== undefined && builder.hasOneof(typedConfig.oneof);
    if (isSet || Object.hasOwn(builder.message, typedConfig.name) || mentions(node, typedConfig, config)) return;
    const name = extensionName(node);
    if (name === undefined) return;
    const empty: MapNode = { kind: 'map', offset: node.offset, entries: [] };
    context.push(typedConfig.name);
    const read = readByName(context, context.slot('typed_config', isOptional(node)), name, empty);
    context.pop();
    if (read !== KEEP_AS_WRITTEN) builder.set(typedConfig, read);
  }
}

function isSlotField(plan: MessagePlan, field: FieldPlan): boolean {
  return field === plan.slot!.typedConfig || field === plan.slot!.config;
}

/** Not of a list or a map. */
function isAny({ field }: FieldPlan): boolean {
  return field.resolvedType?.fullName === ANY;
}

function mentions(node: MapNode, typedConfig: FieldPlan, config: FieldPlan | undefined): boolean {
  return [typedConfig, config].some((field) => {
    const entry = field && entryOf(node, field.name);
    return entry !== undefined && !isNull(entry.value);
  });
}

/** The same field under an earlier key; only possible when keys of several spellings are mixed. */
function isGivenAlready(around: MapNode, field: FieldPlan, entry: MapEntry, plan: MessagePlan): boolean {
  const first = around.entries.find((other) => plan.fields.get(other.key) === field && !isNull(other.value));
  return first !== entry;
}

/** What stands in place of a list is a list of one, as in protobuf's own readers: generators of configurations rely on it. */
function readList(context: ReadContext, builder: MessageBuilder, field: FieldPlan, node: ValueNode): void {
  if (node.kind === 'list') builder.addItems(field, node.items);
  else if (node.kind === field.itemKind) builder.addItems(field, [node]);
  else expected(context, 'a list', node);
}

/** One entry of a map from extension names to configurations, opaque when there is a typed map to move it to. */
function readExtensionEntry(
  context: ReadContext,
  builder: MessageBuilder,
  field: FieldPlan,
  typedMap: FieldPlan | undefined,
  entry: MapEntry,
): void {
  const name = { name: entry.key, offset: entry.offset };
  const slot = context.slot(typedMap?.name ?? field.name);
  context.push(new MapKey(entry.key));
  if (isNull(entry.value)) {
    expected(context, 'a value', entry.value);
  } else if (typedMap === undefined) {
    builder.setMapEntry(field, entry.key, readAny(context, entry.value, slot, name));
  } else {
    const typed = readByName(context, slot, name, entry.value);
    if (typed === KEEP_AS_WRITTEN) builder.setMapEntry(field, entry.key, field.readValue(context, entry.value));
    else builder.setMapEntry(typedMap, entry.key, typed);
  }
  context.pop();
}

function isOptional(slot: MapNode): boolean {
  const said = (entryOf(slot, 'is_optional') ?? entryOf(slot, 'isOptional'))?.value;
  return said?.kind === 'scalar' && said.text === 'true';
}

function extensionName(slot: MapNode): ExtensionName | undefined {
  const name = entryOf(slot, 'name')?.value;
  if (name?.kind !== 'scalar' || name.form !== 'string' || name.text === '') return undefined;
  return { name: name.text, offset: name.offset };
}
