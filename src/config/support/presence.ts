// Whether a field of a decoded message is set to anything but its default. Proto3 keeps no presence for
// plain scalars, so a value equal to the default counts as not set, except inside a oneof.

import type { Field } from 'protobufjs';

export type DecodedMessage = Readonly<Record<string, unknown>>;

/** A test for one field, chosen once per message type. */
export function presenceTest(field: Field): (message: DecodedMessage) => boolean {
  const { name } = field;
  if (field.map) return (message) => hasKeys(message[name]);
  if (field.repeated) return (message) => (message[name] as readonly unknown[]).length > 0;
  if (field.partOf !== null) return (message) => Object.hasOwn(message, name) && message[name] !== null;
  if (field.type === 'bytes') return (message) => (message[name] as Uint8Array).length > 0;
  if (field.long) return (message) => Number(message[name]) !== 0;
  const { defaultValue } = field;
  return (message) => message[name] !== defaultValue;
}

function hasKeys(map: unknown): boolean {
  for (const _ in map as object) return true;
  return false;
}
