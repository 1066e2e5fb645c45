// What tells whether a resource that comes again is to be read again. Synchronous.

import { hash } from 'node:crypto';
import type { ResourceType } from './resource-type.ts';

/**
 * A digest rather than the bytes: those of a server are parts of its response, all of which would be kept.
 * @param form of the bytes: the same ones may be read otherwise in another.
 * @returns undefined for a type whose resources have to be read each time.
 */
export function fingerprintOf({ scope }: ResourceType<unknown>, form: string, bytes: Uint8Array): string | undefined {
  if (scope === undefined) return undefined;
  // Whoever writes the bytes may know what they are compared with.
  return `${form} ${scope} ${hash('sha256', bytes, 'base64')}`;
}
