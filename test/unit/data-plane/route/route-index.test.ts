// The index of many routes against a walk through their list.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { RegexSet } from '../../../../src/base/regex-set.ts';
import { RuntimeValues } from '../../../../src/base/runtime.ts';
import { ProxyHeaders } from '../../../../src/data-plane/http/proxy-headers.ts';
import { PrefixTrie } from '../../../../src/data-plane/route/prefix-trie.ts';
import { Route } from '../../../../src/data-plane/route/route.ts';
import { RouteIndex } from '../../../../src/data-plane/route/route-index.ts';
import { RouteTable } from '../../../../src/data-plane/route/route-table.ts';
import type { HeaderMatch, PathMatch, RouteSnapshot } from '../../../../src/snapshot/index.ts';
import { requestHead, routeRequest } from '../../../support/heads.ts';
import { directRoute, routeTable } from '../../../support/routes.ts';

const NAMES = new ProxyHeaders();
const RUNTIME = new RuntimeValues();
const ON: HeaderMatch = {
  name: 'x-on',
  test: { kind: 'present', isPresent: true },
  isInverted: false,
  treatMissingAsEmpty: false,
};

/** A set that lacks the memory to tell. */
const OVERWHELMED = { matches: () => null };

/** Short texts of few letters, so that they meet. */
const text = fc.string({ unit: fc.constantFrom('a', 'A', 'b', '/'), maxLength: 5 }).map((rest) => `/${rest}`);
const regex = fc.constantFrom('/a.*', '/[ab]/.*', '(?i)/a+', '/', '.*/b', '/a|/b', '/[^/]+/a');
const anyMatch: fc.Arbitrary<PathMatch> = fc.oneof(
  fc.record({
    kind: fc.constantFrom('prefix' as const, 'path' as const, 'path-separated-prefix' as const),
    value: text,
    caseSensitive: fc.boolean(),
  }),
  fc.record({ kind: fc.constant('regex' as const), value: regex, caseSensitive: fc.constant(true) }),
  fc.constant({ kind: 'connect' as const, value: '', caseSensitive: true }),
);

function routeOf(match: PathMatch, isConditional: boolean, rank: number): RouteSnapshot {
  const conditions = isConditional ? { headers: [ON], queryParameters: [], fraction: null } : null;
  return { ...directRoute('', 200, ''), name: String(rank), match, conditions };
}

const anyRoutes = fc
  .array(fc.tuple(anyMatch, fc.boolean()), { minLength: 1, maxLength: 30 })
  .map((pairs) => pairs.map(([match, isConditional], rank) => routeOf(match, isConditional, rank)));

describe('an index of routes', () => {
  test('finds what a walk through them finds', () => {
    fc.assert(
      fc.property(anyRoutes, text, fc.boolean(), fc.boolean(), (snapshots, path, isOn, isConnect) => {
        const routes = snapshots.map((snapshot) => new Route(snapshot, { name: 'v' }, NAMES, RUNTIME));
        const line = isConnect ? 'CONNECT h:1' : `GET ${path}`;
        const request = routeRequest(requestHead(line, ...(isOn ? ['x-on: 1'] : [])));
        const expected = routes.find((route) => route.matches(request))?.name;
        assert.equal(new RouteIndex(routes).find(request)?.name, expected);
        assert.equal(new RouteIndex(routes, () => OVERWHELMED).find(request)?.name, expected);
        // Whichever way the virtual host has chosen.
        assert.equal(new RouteTable(routeTable(snapshots), NAMES, RUNTIME).find(request)?.name, expected);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('a trie of prefixes', () => {
  test('shows those that a text begins with, the shortest first, each with its length', () => {
    fc.assert(
      fc.property(fc.array(text, { maxLength: 20 }), text, (prefixes, path) => {
        const trie = new PrefixTrie<string>();
        for (const prefix of prefixes) trie.add(prefix, prefix);
        const seen: string[] = [];
        trie.walk(path, (values, length) => {
          for (const value of values) assert.equal(value.length, length);
          seen.push(...values);
        });
        const expected = prefixes.filter((prefix) => path.startsWith(prefix)).sort((a, b) => a.length - b.length);
        assert.deepEqual(seen, expected);
      }),
      { numRuns: 500 },
    );
  });
});

describe('a set of regular expressions', () => {
  const patterns = Array.from({ length: 300 }, (_, index) => `/[a-z]+/item-${index}/.*`);

  test('is divided where one automaton would be too big, and finds the same', () => {
    const small = new RegexSet(patterns, 64 * 1024);
    assert.ok(small.size > 1);
    assert.equal(new RegexSet(patterns).size, 1);
    for (const index of [0, 149, 150, 299]) {
      assert.deepEqual(small.matches(`/abc/item-${index}/x`), [index]);
    }
    assert.deepEqual(small.matches('/abc/item-300/x'), []);
  });

  test('takes bytes for UTF-8, as single ones do', () => {
    const set = new RegexSet(['/.', '/..']);
    assert.deepEqual(set.matches(Buffer.from('/ü').toString('latin1')), [0]);
  });

  test('is not made of what is no expression', () => {
    assert.throws(() => new RegexSet(['/a', '(']));
  });
});
