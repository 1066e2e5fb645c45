// A test of a text, as routes, filters, access logs and health checks share it, and the same ready to run. Compiled once
// per configuration, not per text.

import { lowerCaseBytes, utf8Bytes } from './byte-text.ts';
import { compileRegex, type Regex } from './regex.ts';

/** A regular expression must match the whole text and knows no `ignoresCase`: its flags are in the pattern. */
export type StringMatch =
  | {
      readonly kind: 'exact' | 'prefix' | 'suffix' | 'contains';
      readonly value: string;
      readonly ignoresCase: boolean;
    }
  | { readonly kind: 'regex'; readonly pattern: string };

export type StringTest = (text: string) => boolean;

/** The same for byte text: characters of the configuration stand for their UTF-8 bytes. */
export function compileByteMatch(match: StringMatch): StringTest {
  if (match.kind === 'regex') return wholeByteMatch(match.pattern);
  const { kind, ignoresCase } = match;
  const value = utf8Bytes(match.value);
  if (!ignoresCase) return plainTest(kind, value);
  const test = plainTest(kind, lowerCaseBytes(value));
  return (text) => test(lowerCaseBytes(text));
}

/** @throws Error for a regular expression that does not compile: the configuration has let none of them through. */
export function compileStringMatch(match: StringMatch): StringTest {
  if (match.kind === 'regex') return compiled(match.pattern).matches;
  const { ignoresCase } = match;
  const value = ignoresCase ? match.value.toLowerCase() : match.value;
  const test = plainTest(match.kind, value);
  return ignoresCase ? (text) => test(text.toLowerCase()) : test;
}

function plainTest(kind: 'exact' | 'prefix' | 'suffix' | 'contains', value: string): StringTest {
  switch (kind) {
    case 'exact':
      return (text) => text === value;
    case 'prefix':
      return (text) => text.startsWith(value);
    case 'suffix':
      return (text) => text.endsWith(value);
    case 'contains':
      return (text) => text.includes(value);
  }
}

/** A pattern that must match the whole of a byte text, which it takes for UTF-8. */
export function wholeByteMatch(pattern: string): StringTest {
  return compiled(pattern).matchesBytes;
}

function compiled(pattern: string): Regex {
  const { regex, error } = compileRegex(pattern);
  if (regex === undefined) throw new Error(`${JSON.stringify(pattern)} does not compile: ${error}`);
  return regex;
}
