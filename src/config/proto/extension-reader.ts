// Configuration of extensions. A slot is a message with `name` and `typed_config` (and in the older
// generation an opaque `config` Struct), or a map from extension names to configurations. Whatever an
// operator wrote, the slot ends up with a typed Any:
//
//   typed_config: { "@type": …, fields }      the type URL decides; the name is free
//   typed_config: TypedStruct or Struct       the inner type URL, or the name, decides
//   config: { fields }                        the name decides
//   nothing                                   the name decides, the message is empty

import type { Message, Type } from 'protobufjs/light.js';
import { nearestName } from '../../base/nearest-name.ts';
import { entryOf, type MapEntry, type MapNode, quote, type ValueNode } from '../source/node.ts';
import { packAny, TYPED_STRUCTS } from './any.ts';
import { type ExtensionSlot, extensionNamesFor, lookUpExtension, mayBeUnknown } from './extension-lookup.ts';
import { expected } from './json-scalars.ts';
import { isWellKnown } from './json-well-known.ts';
import { describeLacking, findLacking } from './lacking-extensions.ts';
import { isNull } from './message-builder.ts';
import type { Generation } from './message-names.ts';
import { INVALID, type Invalid, type ReadContext, suggest } from './read-context.ts';

/** The name of an extension and where it was written. */
export interface ExtensionName {
  readonly name: string;
  readonly offset: number;
}

const TYPE_KEY = '@type';
const STRUCT = '.google.protobuf.Struct';

/** Outcome when the name asks for no message at all, or nothing is known of the slot. */
export const KEEP_AS_WRITTEN: unique symbol = Symbol('keep as written');
type KeepAsWritten = typeof KEEP_AS_WRITTEN;

function anyType(context: ReadContext): Type {
  return context.schema.messageType('google.protobuf.Any');
}

/**
 * Reads a JSON Any. With `slot` and `name` given, an Any without a type of its own is read as the named
 * extension.
 */
export function readAny(
  context: ReadContext,
  node: ValueNode,
  slot?: ExtensionSlot,
  name?: ExtensionName,
): Message | Invalid {
  if (node.kind !== 'map') return expected(context, 'a map with "@type"', node);
  const typeEntry = entryOf(node, TYPE_KEY);
  if (typeEntry === undefined) return readUntyped(context, node, slot, name);
  const typeUrl = typeEntry.value;
  if (typeUrl.kind !== 'scalar' || typeUrl.form !== 'string') return expected(context, 'a type URL', typeUrl);
  const found = context.schema.find(typeUrl.text);
  if (found === undefined) return readUnknown(context, typeUrl.text, typeUrl.offset, slot, name);
  if (TYPED_STRUCTS.has(found.type.fullName)) return readTypedStruct(context, node, slot, name);
  if (found.type.fullName === STRUCT && slot !== undefined && name !== undefined) {
    const value = entryOf(node, 'value')?.value ?? { ...node, entries: [] };
    const read = readByName(context, slot, name, value);
    if (read !== KEEP_AS_WRITTEN) return read;
  }
  const body = isWellKnown(found.type) ? bodyUnderValue(context, node, typeEntry) : withoutEntry(node, typeEntry);
  if (body === INVALID) return INVALID;
  return readAs(context, found.type, found.generation, typeUrl.text, body);
}

function readUnknown(
  context: ReadContext,
  typeUrl: string,
  offset: number,
  slot: ExtensionSlot | undefined,
  name: ExtensionName | undefined,
): Message | Invalid {
  const isWelcome = slot !== undefined && mayBeUnknown(slot, name?.name, typeUrl);
  return isWelcome ? anyType(context).create({ type_url: typeUrl }) : unknownTypeUrl(context, typeUrl, offset, name);
}

function readUntyped(
  context: ReadContext,
  node: MapNode,
  slot?: ExtensionSlot,
  name?: ExtensionName,
): Message | Invalid {
  if (node.entries.length > 0) {
    return context.fault('expected "@type" with the type URL of this configuration', node.offset);
  }
  if (slot !== undefined && name !== undefined) {
    const read = readByName(context, slot, name, node);
    if (read !== KEEP_AS_WRITTEN) return read;
  }
  return anyType(context).create();
}

function withoutEntry(node: MapNode, dropped: MapEntry): MapNode {
  return { ...node, entries: node.entries.filter((entry) => entry !== dropped) };
}

/** Well-known types have a JSON form that need not be a map, so an Any keeps it under `value`. */
function bodyUnderValue(context: ReadContext, node: MapNode, typeEntry: MapEntry): ValueNode | Invalid {
  const other = node.entries.find((entry) => entry !== typeEntry && entry.key !== 'value');
  if (other !== undefined)
    return context.fault(`expected only "value" beside "@type", got ${quote(other.key)}`, other.offset);
  return entryOf(node, 'value')?.value ?? context.fault('expected "value" beside "@type"', node.offset);
}

function readAs(
  context: ReadContext,
  type: Type,
  generation: Generation,
  typeUrl: string,
  body: ValueNode,
): Message | Invalid {
  const around = context.generation;
  context.generation = generation;
  if (generation === 'v2') context.sawOlderGeneration = true;
  const message = context.readMessage(context, type, body);
  context.generation = around;
  return message === INVALID ? INVALID : packAny(anyType(context), typeUrl, { type, message, generation });
}

/** `{ "@type": …TypedStruct, type_url: …, value: { fields } }`: typed after all, one level further in. */
function readTypedStruct(
  context: ReadContext,
  node: MapNode,
  slot: ExtensionSlot | undefined,
  name: ExtensionName | undefined,
): Message | Invalid {
  const typeUrl = (entryOf(node, 'type_url') ?? entryOf(node, 'typeUrl'))?.value;
  if (typeUrl?.kind !== 'scalar' || typeUrl.form !== 'string' || typeUrl.text === '') {
    return context.fault('expected type_url in a TypedStruct', node.offset);
  }
  const other = node.entries.find(({ key }) => ![TYPE_KEY, 'type_url', 'typeUrl', 'value'].includes(key));
  if (other !== undefined) {
    const type = context.schema.find('xds.type.v3.TypedStruct')!.type;
    context.unknownField(type, other.key, other.offset, ['type_url', 'value']);
  }
  return readTyped(
    context,
    typeUrl.text,
    typeUrl.offset,
    entryOf(node, 'value')?.value ?? { ...node, entries: [] },
    slot,
    name,
  );
}

/** Reads `value` as the message that a TypedStruct's type URL names. */
export function readTyped(
  context: ReadContext,
  typeUrl: string,
  offset: number,
  value: ValueNode,
  slot: ExtensionSlot | undefined,
  name: ExtensionName | undefined,
): Message | Invalid {
  const found = context.schema.find(typeUrl);
  if (found === undefined) return readUnknown(context, typeUrl, offset, slot, name);
  const body: ValueNode = isNull(value) ? { kind: 'map', offset, entries: [] } : value;
  return readAs(context, found.type, found.generation, typeUrl, body);
}

/** Reads an opaque configuration as the message that the extension's name stands for. */
export function readByName(
  context: ReadContext,
  slot: ExtensionSlot,
  { name, offset }: ExtensionName,
  body: ValueNode,
): Message | Invalid | KeepAsWritten {
  // A name alone says nothing about the generation, but a free-form body was only ever written in the older.
  const generation = slot.field === 'typed_config' && body.kind === 'map' && body.entries.length === 0 ? 'v3' : 'v2';
  const found = lookUpExtension(context.schema, slot, name, generation);
  if (found === 'open') return KEEP_AS_WRITTEN;
  if (found === 'unknown') return unknownName(context, slot, name, offset);
  return readAs(context, found.type, found.generation, found.typeUrl, body);
}

function unknownName(context: ReadContext, slot: ExtensionSlot, name: string, offset: number): Invalid {
  const near = suggest(nearestName(name, extensionNamesFor(slot, name)));
  const message = `Didn't find a registered implementation for name: '${name}'${near}`;
  // Of a slot the name is at fault; in a map the name is the last part of the path already.
  return slot.field === 'typed_config' ? context.faultBeside('name', message, offset) : context.fault(message, offset);
}

export function unknownTypeUrl(
  context: ReadContext,
  typeUrl: string,
  offset: number,
  name: ExtensionName | undefined,
): Invalid {
  const lacking = findLacking(typeUrl);
  if (lacking !== undefined) return context.fault(describeLacking(lacking, typeUrl, name?.name), offset);
  if (name === undefined) return context.fault(`unknown type URL ${quote(typeUrl)}`, offset);
  const message = `Didn't find a registered implementation for name: '${name.name}' with type URL: '${typeUrl}'`;
  return context.fault(message, offset);
}
