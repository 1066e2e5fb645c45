// Protobuf's own merge, for --config-yaml over --config-path: single fields of the upper message replace,
// messages merge field by field, lists are appended, map entries replace by key, a oneof member ousts its
// siblings. An Any is replaced whole, since its fields are not fields of a configuration.

import type { Field, Message, Type } from 'protobufjs/light.js';
import { fieldPath } from '../source/field-path.ts';
import { setEntry } from './json-scalars.ts';
import type { OpenMessage } from './message-builder.ts';
import { messageTypeOf } from './message-plan.ts';

const ANY = '.google.protobuf.Any';

/**
 * Merges `upper` into `lower`, which is changed and afterwards shares what it took over.
 * @returns for each list that got items from both, its path and how many were there before: with it a
 * position can be found for every item (source/config-document.ts).
 */
export function mergeMessages(type: Type, lower: Message, upper: Message): Map<string, number> {
  const appended = new Map<string, number>();
  mergeInto(type, lower as OpenMessage, upper as OpenMessage, '', appended);
  return appended;
}

function mergeInto(
  type: Type,
  lower: OpenMessage,
  upper: OpenMessage,
  path: string,
  appended: Map<string, number>,
): void {
  for (const field of type.fieldsArray) {
    if (!Object.hasOwn(upper, field.name)) continue;
    const value = upper[field.name];
    if (value === null || value === undefined) continue;
    if (field.map) mergeMap(lower, field, value as Record<string, unknown>);
    else if (field.repeated) append(lower, field, value as unknown[], fieldPath(path, field.name), appended);
    else mergeSingle(lower, field, value, fieldPath(path, field.name), appended);
  }
}

function mergeMap(lower: OpenMessage, field: Field, entries: Record<string, unknown>): void {
  const map = lower[field.name] as Record<string, unknown>;
  for (const [key, value] of Object.entries(entries)) setEntry(map, key, value);
}

function append(lower: OpenMessage, field: Field, items: unknown[], path: string, appended: Map<string, number>): void {
  if (items.length === 0) return;
  const list = lower[field.name] as unknown[];
  appended.set(path, list.length);
  lower[field.name] = [...list, ...items];
}

function mergeSingle(
  lower: OpenMessage,
  field: Field,
  value: unknown,
  path: string,
  appended: Map<string, number>,
): void {
  const type = messageTypeOf(field.resolve());
  const present = Object.hasOwn(lower, field.name) ? lower[field.name] : null;
  clearSiblings(lower, field);
  const isMerged = type !== undefined && type.fullName !== ANY && present !== null && present !== undefined;
  if (isMerged) mergeInto(type, present as OpenMessage, value as OpenMessage, path, appended);
  else lower[field.name] = value;
}

function clearSiblings(message: OpenMessage, field: Field): void {
  for (const sibling of field.partOf?.oneof ?? []) if (sibling !== field.name) delete message[sibling];
}
