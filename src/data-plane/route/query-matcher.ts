// Tests of query parameters, ready to run. Made once per snapshot. Names and values are compared as they stand in the
// target, as in the reference: nothing is decoded.

import { utf8Bytes } from '../../base/byte-text.ts';
import { compileStringMatch } from '../../base/string-match.ts';
import type { QueryParameterMatch } from '../../snapshot/index.ts';
import type { RequestTest } from './header-matcher.ts';

export function compileQueryParameterMatch({ name, test }: QueryParameterMatch): RequestTest {
  if (test.kind === 'present') return ({ query }) => (firstValue(query, name) !== undefined) === test.isPresent;
  const passes = compileStringMatch(test);
  return ({ query }) => {
    const value = firstValue(query, name);
    return value !== undefined && passes(value);
  };
}

/** Value of the first parameter of this name; empty when it has no '='. */
export function firstValue(query: string | undefined, name: string): string | undefined {
  if (query === undefined) return undefined;
  for (let start = 0; start <= query.length; ) {
    const ampersand = query.indexOf('&', start);
    const end = ampersand === -1 ? query.length : ampersand;
    const nameEnd = start + name.length;
    if (nameEnd <= end && query.startsWith(name, start)) {
      if (nameEnd === end) return '';
      if (query[nameEnd] === '=') return query.slice(nameEnd + 1, end);
    }
    start = end + 1;
  }
  return undefined;
}

/** The same with what is encoded in names and values decoded: byte text. */
export function decodedQueryValue(query: string | undefined, name: string): string | undefined {
  if (query === undefined) return undefined;
  if (!query.includes('%')) return firstValue(query, utf8Bytes(name));
  const wanted = utf8Bytes(name);
  for (const parameter of query.split('&')) {
    const equals = parameter.indexOf('=');
    const nameEnd = equals === -1 ? parameter.length : equals;
    if (decoded(parameter.slice(0, nameEnd)) === wanted) return decoded(parameter.slice(nameEnd + 1));
  }
  return undefined;
}

/** What is no encoding stays as it is. */
function decoded(text: string): string {
  return text.replace(/%([\da-fA-F]{2})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
}
