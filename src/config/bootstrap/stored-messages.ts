// The messages of a bootstrap in their binary form, which is a tenth of what they take as objects: what remains of them
// after the load, for whoever wants to see the configuration.

import type { Message, Type } from 'protobufjs/light.js';
import type { Bootstrap } from '../proto/generated/messages.ts';
import { encodeMessage, headOf } from '../proto/wire-parts.ts';

export interface StoredMessages {
  /** All of it. */
  readonly bootstrap: Uint8Array;
  /** Parts of it, in the order of the file. */
  readonly clusters: readonly Uint8Array[];
  readonly listeners: readonly Uint8Array[];
  readonly secrets: readonly Uint8Array[];
}

type ResourceField = 'listeners' | 'clusters' | 'secrets';

/** By their numbers. */
const RESOURCE_FIELDS: readonly ResourceField[] = ['listeners', 'clusters', 'secrets'];

/** @throws RangeError as encodeMessage. */
export function storeMessages(bootstrapType: Type, message: Bootstrap): StoredMessages {
  const { static_resources: resources } = message;
  const resourcesType = bootstrapType.fields.static_resources!.resolve().resolvedType as Type;
  // Each for itself: all at once would take several times the room of the message.
  const values = RESOURCE_FIELDS.flatMap((field) => {
    const type = resourcesType.fields[field]!.resolve().resolvedType as Type;
    const items = (resources?.[field] ?? []) as unknown as Message[];
    return items.map((item) => ({ field, bytes: encodeMessage(type, item) }));
  });
  const parts = values.flatMap(({ field, bytes }) => [headOf(resourcesType, field, bytes.length), bytes]);
  const { node, static_resources: _resources, ...rest } = withoutPrototype(bootstrapType, message);
  const first = [encodeMessage(bootstrapType, node ? { node } : {})];
  if (resources) first.push(headOf(bootstrapType, 'static_resources', lengthOf(parts)));
  const bootstrap = Buffer.concat([...first, ...parts, encodeMessage(bootstrapType, rest)]);
  let at = lengthOf(first);
  const stored = { listeners: [], clusters: [], secrets: [] } as Record<ResourceField, Uint8Array[]>;
  for (const { field, bytes } of values) {
    at += headOf(resourcesType, field, bytes.length).length;
    stored[field].push(bootstrap.subarray(at, at + bytes.length));
    at += bytes.length;
  }
  return { bootstrap, ...stored };
}

/** Own fields alone: those of the prototype are defaults. */
function withoutPrototype(type: Type, message: object): Record<string, unknown> {
  const entries = Object.entries(message).filter(([name]) => Object.hasOwn(type.fields, name) || name === '$unknowns');
  return Object.fromEntries(entries);
}

function lengthOf(parts: readonly Uint8Array[]): number {
  return parts.reduce((total, { length }) => total + length, 0);
}
