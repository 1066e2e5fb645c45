// Metadata message → what formats read of it. Typed metadata is for extensions that know its types; formats do not.

import type { Metadata } from '../../snapshot/index.ts';
import type { Metadata as MetadataMessage } from './messages.ts';
import { structToJson } from './struct.ts';

/** @returns nothing for none, to be spread into settings. */
export function convertMetadata(message: MetadataMessage | null): { readonly metadata?: Metadata } {
  const namespaces = Object.entries(message?.filter_metadata ?? {});
  if (namespaces.length === 0) return {};
  return { metadata: Object.fromEntries(namespaces.map(([name, struct]) => [name, structToJson(struct)])) };
}
