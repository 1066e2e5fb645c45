// A test of what metadata say, as routes and filters share it, and the same ready to run.

import { type JsonObject, type JsonValue, jsonAt } from './json.ts';
import { compileStringMatch, type StringMatch } from './string-match.ts';

/** A value in metadata; a missing one is undefined. */
export type ValueMatch =
  | { readonly kind: 'null' }
  | { readonly kind: 'range'; readonly start: number; readonly end: number }
  | { readonly kind: 'number'; readonly value: number }
  | { readonly kind: 'string'; readonly match: StringMatch }
  | { readonly kind: 'boolean'; readonly value: boolean }
  | { readonly kind: 'present'; readonly isPresent: boolean }
  /** A list with a member like this. */
  | { readonly kind: 'list'; readonly oneOf: ValueMatch }
  | { readonly kind: 'any-of'; readonly matches: readonly ValueMatch[] };

/** A value at the end of a way into one namespace. */
export interface MetadataMatch {
  readonly namespace: string;
  readonly path: readonly string[];
  readonly value: ValueMatch;
  /** The test must fail. */
  readonly isInverted: boolean;
}

/** Of metadata by namespace; undefined for none at all. */
export type MetadataTest = (metadata: Readonly<Record<string, JsonObject>> | undefined) => boolean;
type ValueTest = (value: JsonValue | undefined) => boolean;

/** @throws Error for a regular expression that does not compile: the configuration has let none of them through. */
export function compileMetadataMatch({ namespace, path, value, isInverted }: MetadataMatch): MetadataTest {
  const test = compileValue(value);
  return (metadata) => test(jsonAt(metadata?.[namespace], path)) !== isInverted;
}

function compileValue(match: ValueMatch): ValueTest {
  switch (match.kind) {
    case 'null':
      return (value) => value === null;
    case 'range':
      return (value) => typeof value === 'number' && value >= match.start && value < match.end;
    case 'number':
      return (value) => value === match.value;
    case 'string': {
      const test = compileStringMatch(match.match);
      return (value) => typeof value === 'string' && test(value);
    }
    case 'boolean':
      return (value) => value === match.value;
    case 'present':
      // A plain one: neither an object nor a list.
      return (value) => (value !== undefined && (value === null || typeof value !== 'object')) === match.isPresent;
    case 'list': {
      const test = compileValue(match.oneOf);
      return (value) => Array.isArray(value) && value.some(test);
    }
    case 'any-of': {
      const tests = match.matches.map(compileValue);
      return (value) => tests.some((test) => test(value));
    }
  }
}
