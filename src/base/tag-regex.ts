// Regular expressions of stats_tags. RE2 runs them, but for those that look ahead or back, as the bootstraps of meshes have them:
// these are ECMAScript's, which goes back and tries again. Only a bootstrap brings them, and they meet each name of a stat once.

import { errorMessage } from './errors.ts';
import { compileRegex } from './regex.ts';

export interface TagRegex {
  /** The first match with its groups; null when the pattern matches nowhere. */
  exec(text: string): RegExpExecArray | null;
}

export type CompiledTagRegex =
  | { readonly regex: TagRegex; readonly error?: undefined }
  | { readonly regex?: undefined; readonly error: string };

const LOOKS_AROUND = /\(\?<?[=!]/;
/** ECMAScript's own syntax has no names of classes. */
const CLASSES: ReadonlyMap<string, string> = new Map([
  ['alnum', 'a-zA-Z0-9'],
  ['alpha', 'a-zA-Z'],
  ['digit', '0-9'],
  ['lower', 'a-z'],
  ['space', '\\s'],
  ['upper', 'A-Z'],
  ['word', '\\w'],
  ['xdigit', '0-9a-fA-F'],
]);

export function compileTagRegex(pattern: string): CompiledTagRegex {
  const compiled = compileRegex(pattern);
  if (compiled.regex !== undefined || !LOOKS_AROUND.test(pattern)) return compiled;
  try {
    return { regex: new RegExp(pattern.replace(/\[:(\w+):\]/g, (found, name: string) => CLASSES.get(name) ?? found)) };
  } catch (error) {
    return { error: errorMessage(error) };
  }
}
