// Tests of a path, and its rewrites, ready to run. Made once per snapshot. A path is the target up to its query; the codecs
// let none through with anything but ASCII.

import { utf8Bytes } from '../../base/byte-text.ts';
import { compileSubstitution, type Substitute } from '../../base/regex.ts';
import { type StringTest, wholeByteMatch } from '../../base/string-match.ts';
import type { PathMatch, PathRewrite, RegexSubstitution } from '../../snapshot/index.ts';
import { TextFormatter } from '../format/text-formatter.ts';
import type { FactsSource } from './header-editor.ts';

export function compilePathMatch({ kind, value, caseSensitive }: PathMatch): StringTest {
  if (kind === 'regex') return wholeByteMatch(value);
  // There is no path to look at.
  if (kind === 'connect') return () => true;
  const wanted = caseSensitive ? value : value.toLowerCase();
  const test = plainTest(kind, wanted);
  return caseSensitive ? test : (path) => test(path.toLowerCase());
}

function plainTest(kind: Exclude<PathMatch['kind'], 'regex' | 'connect'>, value: string): StringTest {
  switch (kind) {
    case 'prefix':
      return (path) => path.startsWith(value);
    case 'path':
      return (path) => path === value;
    case 'path-separated-prefix':
      return (path) => path.startsWith(value) && (path.length === value.length || path[value.length] === '/');
  }
}

/** @returns the new path; what is behind it stays. */
export type RewritePath = (path: string) => string;
export type FormatPath = (path: string, source: FactsSource) => string;

/** @param match what the path has matched by. */
export function compilePathRewrite(match: PathMatch, rewrite: PathRewrite): FormatPath {
  if (rewrite.kind !== 'format') return compilePlainRewrite(match, rewrite);
  const format = new TextFormatter(rewrite.segments, { missing: '' });
  return (path, source) => format.render(source.facts) || path;
}

/** Those that need nothing but the path. */
export function compilePlainRewrite(match: PathMatch, rewrite: Exclude<PathRewrite, { kind: 'format' }>): RewritePath {
  if (rewrite.kind === 'regex') return substituteOf(rewrite);
  const value = utf8Bytes(rewrite.value);
  if (match.kind === 'regex') return () => value;
  const matchedLength = match.value.length;
  return (path) => value + path.slice(matchedLength);
}

/** @throws Error for a pattern that does not compile: the configuration has let none of them through. */
export function substituteOf({ pattern, substitution }: RegexSubstitution): Substitute {
  const { substitute, error } = compileSubstitution(pattern, substitution);
  if (substitute === undefined) throw new Error(`${JSON.stringify(pattern)} cannot be replaced: ${error}`);
  return substitute;
}
