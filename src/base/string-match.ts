// A test of a text, as routes, filters, access logs and health checks share it, and the same ready to run. Compiled once
// per configuration, not per text.

import { compileRegex } from './regex.ts';

/** A regular expression must match the whole text and knows no `ignoresCase`: its flags are in the pattern. */
export type StringMatch =
  | {
      readonly kind: 'exact' | 'prefix' | 'suffix' | 'contains';
      readonly value: string;
      readonly ignoresCase: boolean;
    }
  | { readonly kind: 'regex'; readonly pattern: string };

export type StringTest = (text: string) => boolean;

/** @throws Error for a regular expression that does not compile: the configuration has let none of them through. */
export function compileStringMatch(match: StringMatch): StringTest {
  if (match.kind === 'regex') return wholeMatch(match.pattern);
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

/** The same for a pattern alone, which must match the whole text. */
export function wholeMatch(pattern: string): StringTest {
  const { regex, error } = compileRegex(pattern);
  if (regex === undefined) throw new Error(`${JSON.stringify(pattern)} does not compile: ${error}`);
  return regex.matches;
}
