// The second step for sources that are not JSON: goes through a whole message tree, reports unknown fields
// that the binary form carried, decodes every Any once, and gives each extension slot its typed Any, just as
// the JSON reader does while it reads. Afterwards all four forms of a configuration are equal in memory.

import type { Field, Message, Type } from 'protobufjs/light.js';
import { MapKey } from '../source/field-path.ts';
import type { MapNode } from '../source/node.ts';
import { type AnyMessage, packAny, TYPED_STRUCTS, unpackAny } from './any.ts';
import { type ExtensionSlot, mayBeUnknown, TYPED_MAP_NAMES, TYPED_MAPS } from './extension-lookup.ts';
import { type ExtensionName, KEEP_AS_WRITTEN, readByName, readTyped, unknownTypeUrl } from './extension-reader.ts';
import { setEntry } from './json-scalars.ts';
import type { OpenMessage } from './message-builder.ts';
import { messageTypeOf } from './message-plan.ts';
import { INVALID, type Invalid, type ReadContext } from './read-context.ts';
import { structToNode } from './struct.ts';
import { unknownFieldNumbers } from './wire.ts';

const ANY = '.google.protobuf.Any';
const STRUCT = '.google.protobuf.Struct';
const NO_FIELDS: MapNode = { kind: 'map', offset: -1, entries: [] };

/** Settles `message` and all below it, in place. The context's reader must be that of JSON. */
export function settleExtensions(context: ReadContext, type: Type, message: Message): void {
  reportUnknownFields(context, type, message);
  const { slot, below } = planOf(type);
  if (slot === undefined && below.length === 0) return;
  context.enterMessage(type);
  if (slot !== undefined) settleSlot(context, slot, message as OpenMessage);
  for (const { field, name, type: fieldType } of below) {
    if (!Object.hasOwn(message, name)) continue;
    context.push(name);
    settleField(context, field, fieldType, message as OpenMessage);
    context.pop();
  }
  context.leaveMessage();
}

/** What of a message may hold others, worked out once for each type. */
interface SettlePlan {
  readonly slot: SlotFields | undefined;
  /** Beside the slot. */
  readonly below: readonly { readonly field: Field; readonly name: string; readonly type: Type }[];
}

const plans = new WeakMap<Type, SettlePlan>();

function planOf(type: Type): SettlePlan {
  let plan = plans.get(type);
  if (plan === undefined) {
    const slot = slotFields(type);
    const below = type.fieldsArray.flatMap((field) => {
      const fieldType = messageTypeOf(field.resolve());
      const isSlot = slot !== undefined && field.name === 'typed_config';
      return fieldType === undefined || isSlot ? [] : [{ field, name: field.name, type: fieldType }];
    });
    plan = { slot, below };
    plans.set(type, plan);
  }
  return plan;
}

function reportUnknownFields(context: ReadContext, type: Type, message: Message): void {
  if (message.$unknowns === undefined) return;
  for (const fieldNumber of unknownFieldNumbers(message)) context.unknownField(type, String(fieldNumber), -1, []);
}

function settleField(context: ReadContext, field: Field, type: Type, message: OpenMessage): void {
  if (field.map) settleMap(context, field, type, message);
  else if (field.repeated) settleList(context, type, message[field.name] as Message[]);
  else message[field.name] = settleValue(context, type, message[field.name] as Message);
}

function settleList(context: ReadContext, type: Type, list: Message[]): void {
  for (const [index, item] of list.entries()) {
    context.push(index);
    list[index] = settleValue(context, type, item);
    context.pop();
  }
}

function settleMap(context: ReadContext, field: Field, type: Type, message: OpenMessage): void {
  const map = message[field.name] as Record<string, Message>;
  const typedName = TYPED_MAPS[field.name];
  const isTypedMap = TYPED_MAP_NAMES.has(field.name);
  for (const [key, value] of Object.entries(map)) {
    context.push(new MapKey(key));
    const name = { name: key, offset: -1 };
    if (typedName !== undefined && type.fullName === STRUCT) {
      const typed = readByName(context, context.slot(typedName), name, structToNode(value, type));
      if (typed !== KEEP_AS_WRITTEN) delete map[key];
      if (typeof typed !== 'symbol') setEntry(message[typedName] as Record<string, unknown>, key, typed);
    } else {
      setEntry(map, key, settleValue(context, type, value, isTypedMap ? context.slot(field.name) : undefined, name));
    }
    context.pop();
  }
}

function settleValue(
  context: ReadContext,
  type: Type,
  value: Message,
  slot?: ExtensionSlot,
  name?: ExtensionName,
): Message {
  if (type.fullName === ANY) return settleAny(context, type, value as Message & AnyMessage, slot, name);
  // Free-form values hold nothing to settle; going through them would only cost time.
  if (type.fullName !== STRUCT) settleExtensions(context, type, value);
  return value;
}

/** The Any to keep: the same one, or a typed one in place of an opaque one. */
function settleAny(
  context: ReadContext,
  anyType: Type,
  any: Message & AnyMessage,
  slot: ExtensionSlot | undefined,
  name: ExtensionName | undefined,
): Message {
  const isInSlot = slot !== undefined && name !== undefined;
  if (any.type_url === '') return isInSlot ? replaced(any, readByName(context, slot, name, NO_FIELDS)) : any;
  const content = unpackAny(any, context.schema);
  if (content === undefined) return reportOpaque(context, any, slot, name);
  if (TYPED_STRUCTS.has(content.type.fullName)) return settleTypedStruct(context, any, content.message, slot, name);
  if (content.type.fullName === STRUCT && isInSlot) {
    return replaced(any, readByName(context, slot, name, structToNode(content.message, content.type)));
  }
  const around = context.generation;
  context.generation = content.generation;
  if (content.generation === 'v2') context.sawOlderGeneration = true;
  settleExtensions(context, content.type, content.message);
  context.generation = around;
  // The bytes may be older than the message now, so they are made again when they are asked for.
  return packAny(anyType, any.type_url, content);
}

/** An Any that does not unpack: harmless where nobody asks for its content, an error where somebody will. */
function reportOpaque(
  context: ReadContext,
  any: AnyMessage & Message,
  slot: ExtensionSlot | undefined,
  name: ExtensionName | undefined,
): Message {
  const isKnown = context.schema.find(any.type_url) !== undefined;
  if (isKnown) context.fault(`value cannot be decoded as ${any.type_url}`, -1);
  else if (slot !== undefined && name !== undefined && !mayBeUnknown(slot, name.name, any.type_url)) {
    unknownTypeUrl(context, any.type_url, -1, name);
  }
  return any;
}

function settleTypedStruct(
  context: ReadContext,
  any: Message,
  struct: Message,
  slot: ExtensionSlot | undefined,
  name: ExtensionName | undefined,
): Message {
  const { type_url: typeUrl, value } = struct as unknown as { type_url: string; value: Message | null };
  const structType = context.schema.messageType('google.protobuf.Struct');
  const body = value === null ? NO_FIELDS : structToNode(value, structType);
  return replaced(any, readTyped(context, typeUrl, -1, body, slot, name));
}

function replaced(any: Message, read: Message | Invalid | typeof KEEP_AS_WRITTEN): Message {
  return read === INVALID || read === KEEP_AS_WRITTEN ? any : read;
}

interface SlotFields {
  readonly hasConfig: boolean;
  readonly oneofMembers: readonly string[];
}

function slotFields(type: Type): SlotFields | undefined {
  const typedConfig = type.fields.typed_config?.resolve();
  if (typedConfig?.resolvedType?.fullName !== ANY || type.fields.name === undefined) return undefined;
  const hasConfig = type.fields.config?.resolve().resolvedType?.fullName === STRUCT;
  return { hasConfig, oneofMembers: typedConfig.partOf?.oneof ?? [] };
}

/** Gives the slot its typed Any and takes the opaque configuration away. */
function settleSlot(context: ReadContext, fields: SlotFields, message: OpenMessage): void {
  const slot = context.slot('typed_config', message.is_optional === true);
  const name = typeof message.name === 'string' && message.name !== '' ? { name: message.name, offset: -1 } : undefined;
  const { config, typed_config: typedConfig } = message as { config?: Message; typed_config?: Message & AnyMessage };
  if (typedConfig != null) {
    context.push('typed_config');
    const anyType = context.schema.messageType('google.protobuf.Any');
    message.typed_config = settleAny(context, anyType, typedConfig, slot, name);
    context.pop();
    return;
  }
  if (name === undefined) return;
  const isOpaque = fields.hasConfig && config != null;
  if (!isOpaque && fields.oneofMembers.some((member) => Object.hasOwn(message, member))) return;
  const structType = context.schema.messageType('google.protobuf.Struct');
  context.push(isOpaque ? 'config' : 'typed_config');
  const read = readByName(context, slot, name, isOpaque ? structToNode(config, structType) : NO_FIELDS);
  context.pop();
  if (read === KEEP_AS_WRITTEN) return;
  if (isOpaque) delete message.config;
  if (read !== INVALID) message.typed_config = read;
}
