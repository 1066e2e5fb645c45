// What tells responses apart beside what they vary by: method, scheme, host, path and query of their requests.

import { compileByteMatch } from '../../../base/string-match.ts';
import type { QueryParameterMatch } from '../../../snapshot/index.ts';
import type { RequestHead } from '../../../wasm/http1.ts';
import type { CacheKeySettings } from './settings.ts';

type TestParameter = (name: string, value: string) => boolean;

export type MakeKey = (head: RequestHead) => string;

export function compileKey({ hasScheme, hasHost, included, excluded }: CacheKeySettings): MakeKey {
  const isIncluded = compileTests(included);
  const isExcluded = compileTests(excluded);
  const all = included.length === 0 && excluded.length === 0;
  const keeps: TestParameter = (name, value) =>
    (included.length === 0 || isIncluded(name, value)) && !isExcluded(name, value);
  return (head) => {
    const scheme = hasScheme ? (head.headerByName('x-forwarded-proto') ?? 'http') : '';
    const host = hasHost ? head.authority().toLowerCase() : '';
    const path = head.path();
    // No part can hold a line's end.
    return `${scheme}\n${host}\n${all ? path : withParameters(path, keeps)}`;
  };
}

/** With those parameters alone that count, in their order. */
function withParameters(path: string, keeps: TestParameter): string {
  const mark = path.indexOf('?');
  if (mark < 0) return path;
  const kept = path
    .slice(mark + 1)
    .split('&')
    .filter((each) => {
      const equals = each.indexOf('=');
      return equals < 0 ? keeps(each, '') : keeps(each.slice(0, equals), each.slice(equals + 1));
    });
  return kept.length === 0 ? path.slice(0, mark) : `${path.slice(0, mark)}?${kept.join('&')}`;
}

function compileTests(matches: readonly QueryParameterMatch[]): TestParameter {
  const tests = matches.map(({ name: wanted, test }): TestParameter => {
    if (test.kind === 'present') return (name) => (name === wanted) === test.isPresent;
    const passes = compileByteMatch(test);
    return (name, value) => name === wanted && passes(value);
  });
  return (name, value) => tests.some((test) => test(name, value));
}
