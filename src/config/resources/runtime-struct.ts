// A Struct of runtime values → text under dotted keys, the form in which an operator sees them.

import type { JsonObject, JsonValue } from '../../base/json.ts';
import type { Struct } from './messages.ts';
import { structToJson } from './struct.ts';

export interface FlatValues {
  /** By their keys as written. */
  readonly values: ReadonlyMap<string, string>;
  /** Keys of what can be no value: nulls and lists. */
  readonly faulty: readonly string[];
}

export function flatRuntimeValues(struct: Struct): FlatValues {
  const values = new Map<string, string>();
  const faulty: string[] = [];
  flatten(structToJson(struct), '', values, faulty);
  return { values, faulty };
}

export function invalidEntryText(key: string): string {
  return `Invalid runtime entry value for ${key}`;
}

/** Objects in objects are parts of a key, but for those that say a fraction. */
function flatten(object: JsonObject, prefix: string, into: Map<string, string>, faulty: string[]): void {
  for (const [name, value] of Object.entries(object)) {
    const key = prefix + name;
    if (value === null || Array.isArray(value)) faulty.push(key);
    else if (!isObject(value)) into.set(key, String(value));
    else if (isFraction(value)) into.set(key, JSON.stringify(value));
    else flatten(value, `${key}.`, into, faulty);
  }
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null;
}

function isFraction(value: JsonObject): boolean {
  return Object.keys(value).length === 0 || 'numerator' in value || 'denominator' in value;
}
