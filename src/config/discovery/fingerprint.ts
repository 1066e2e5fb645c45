// What tells whether a resource that comes again is to be read again. Synchronous.

import { hash } from 'node:crypto';
import type { RawResource } from './exchange-responses.ts';
import type { ResourceType } from './resource-type.ts';

/** SHA-256: whoever writes the bytes may know what they are compared with. */
export function digestOf(bytes: Uint8Array): string {
  return hash('sha256', bytes, 'base64');
}

/**
 * A digest rather than the bytes: those of a server are parts of its response, all of which would be kept.
 * @param form of the bytes: the same ones may be read otherwise in another.
 * @returns undefined for a type whose resources have to be read each time.
 */
export function fingerprintOf({ scope }: ResourceType<unknown>, form: string, bytes: Uint8Array): string | undefined {
  return scope === undefined ? undefined : `${form} ${scope} ${digestOf(bytes)}`;
}

/** The same of a resource whose digest may be known. */
export function rawFingerprintOf({ scope }: ResourceType<unknown>, resource: RawResource): string | undefined {
  const { bytes, typeUrl } = resource;
  if (scope === undefined || bytes === undefined) return undefined;
  resource.digest ??= digestOf(bytes);
  return `${typeUrl} ${scope} ${resource.digest}`;
}
