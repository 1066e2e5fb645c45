// A resource that was good when it came, read again from its binary form, for somebody who reads it otherwise.

import { protoSchema } from '../proto/root.ts';
import { decodeMessage } from '../proto/wire.ts';
import type { ResourceType } from './resource-type.ts';

/** @returns undefined where it may not be any more. */
export function readStoredResource<Resource>(type: ResourceType<Resource>, bytes: Uint8Array): Resource | undefined {
  const messageType = protoSchema().messageType(type.typeName);
  let hasErrors = false;
  const faults = {
    error: () => {
      hasErrors = true;
    },
    warning: () => {},
  };
  const content = { type: messageType, message: decodeMessage(messageType, bytes), generation: 'v3' } as const;
  const { resource } = type.read(content, '', faults);
  return hasErrors ? undefined : resource;
}
