// The name of a subset of a cluster's hosts: what their metadata says, key by key. Configuration and workers put it
// together alike, so that a request's criteria find the hosts that match.

import type { JsonValue } from './json.ts';

/** A key of the metadata and its value as JSON, with the members of objects in ascending order. */
export type MetadataPair = readonly [key: string, value: string];

/** @param pairs ascending by key, each key once. */
export function subsetKey(pairs: readonly MetadataPair[]): string {
  return pairs.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join();
}

/** A value as JSON with the members of objects in ascending order: equal values have equal texts. */
export function comparable(value: JsonValue): string {
  return JSON.stringify(value, (_key, part: unknown) => {
    if (typeof part !== 'object' || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

/** @param keys ascending. */
export function keySetName(keys: readonly string[]): string {
  return JSON.stringify(keys);
}
