// A resource that was good when it came, read again from its binary form, for somebody who reads it otherwise.

import { protoSchema } from '../proto/root.ts';
import { decodeMessage } from '../proto/wire.ts';
import type { ResourceType } from './resource-type.ts';

/**
 * @param bytes of its message. @param at path of the message, as errors have it.
 * @returns no resource where there are errors: it may not be any more.
 */
export function rereadResource<Resource>(
  type: ResourceType<Resource>,
  bytes: Uint8Array,
  at: string,
): { readonly resource: Resource | undefined; readonly errors: readonly string[] } {
  const messageType = protoSchema().messageType(type.typeName);
  const errors: string[] = [];
  const faults = {
    error: (place: string, text: string) => void errors.push(`${place}: ${text}`),
    warning: () => {},
  };
  const content = { type: messageType, message: decodeMessage(messageType, bytes), generation: 'v3' } as const;
  const { resource } = type.read(content, at, faults);
  return { resource: errors.length === 0 ? resource : undefined, errors };
}

/** The same of one whose errors nobody is told. */
export function readStoredResource<Resource>(type: ResourceType<Resource>, bytes: Uint8Array): Resource | undefined {
  return rereadResource(type, bytes, '').resource;
}
