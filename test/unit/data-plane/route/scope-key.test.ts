// The keys by which requests find their scopes.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { RouteRequest } from '../../../../src/data-plane/route/route-request.ts';
import { ScopeKeyBuilder, scopeKeyText } from '../../../../src/data-plane/route/scope-key.ts';
import { type RoutedTables, ScopeSets } from '../../../../src/data-plane/route/scope-sets.ts';
import type { ScopeKeyPart, TakenElement } from '../../../../src/snapshot/index.ts';

function requestWith(headers: Readonly<Record<string, readonly string[]>>): RouteRequest {
  const head = { valuesByName: (name: string) => headers[name] ?? [] };
  return { head, isFiltered: true } as unknown as RouteRequest;
}

function part(take: TakenElement, elementSeparator = '', header = 'x-scope'): ScopeKeyPart {
  return { header, elementSeparator, take };
}

const keyOf = (value: string, ...parts: readonly ScopeKeyPart[]): string | undefined =>
  new ScopeKeyBuilder(parts).keyOf(requestWith({ 'x-scope': [value, 'second'], 'x-other': ['o'] }));

describe('the key of a request', () => {
  const cases: readonly (readonly [what: string, value: string, part: ScopeKeyPart, key: string | undefined])[] = [
    ['the whole value', 'a,b', part({ kind: 'index', index: 0 }), 'a,b'],
    ['an element by its place', 'a,b,c', part({ kind: 'index', index: 1 }, ','), 'b'],
    ['an empty element', 'a,,c', part({ kind: 'index', index: 1 }, ','), ''],
    ['no element behind the last', 'a,b', part({ kind: 'index', index: 2 }, ','), undefined],
    ['what follows a key', 'a=1;b=2', part({ kind: 'key', key: 'b', separator: '=' }, ';'), '2'],
    ['the first of two keys', 'a=1;a=2', part({ kind: 'key', key: 'a', separator: '=' }, ';'), '1'],
    ['up to the end, separators included', 'a=1=2', part({ kind: 'key', key: 'a', separator: '=' }, ';'), '1=2'],
    ['nothing, of a key alone', 'a;b=1', part({ kind: 'key', key: 'a', separator: '=' }, ';'), ''],
    ['no key that begins alike', 'ab=1', part({ kind: 'key', key: 'a', separator: '=' }, ';'), undefined],
    ['a key with spaces as they are', 'x=1; a=1', part({ kind: 'key', key: 'a', separator: '=' }, ';'), undefined],
    ['separators of several characters', 'a->1||b->2', part({ kind: 'key', key: 'b', separator: '->' }, '||'), '2'],
    ['no header', 'a', part({ kind: 'index', index: 0 }, '', 'x-absent'), undefined],
  ];
  for (const [what, value, fragment, key] of cases) {
    it(`is ${what}`, () => assert.equal(keyOf(value, fragment), key));
  }

  it('has all parts or is none', () => {
    const [first, other] = [part({ kind: 'index', index: 0 }), part({ kind: 'index', index: 0 }, '', 'x-other')];
    assert.equal(keyOf('a', first, other), scopeKeyText(['a', 'o']));
    assert.equal(keyOf('a', first, part({ kind: 'index', index: 1 }, '', 'x-other')), undefined);
  });

  it('finds the scope of exactly these parts, whatever stands in them', () => {
    const text = fc.string({ maxLength: 3 }).map((each) => each.replaceAll('\0', ''));
    const parts = [part({ kind: 'index', index: 0 }), part({ kind: 'index', index: 0 }, '', 'x-other')];
    fc.assert(
      fc.property(fc.array(fc.tuple(text, fc.string({ maxLength: 3 }))), text, text, (keys, one, other) => {
        const tables: RoutedTables = { slot: (id) => ({ current: id }) as never };
        const sets = new ScopeSets(tables);
        const scopes = sets.scopes(1, new ScopeKeyBuilder(parts), { current: -1 } as never);
        // Those with other numbers of parts are never met.
        sets.update({ id: 1, put: [{ key: [`${one}\0${other}`], routeTableId: 999 }], removed: [] });
        sets.update({ id: 1, put: keys.map((key, id) => ({ key, routeTableId: id })), removed: [] });
        const request = requestWith({ 'x-scope': [one], 'x-other': [other] });
        const expected = keys.findLastIndex(([a, b]) => a === one && b === other);
        assert.equal(scopes.routesOf(request) as unknown, expected);
        sets.update({ id: 1, put: [], removed: [[one, other]] });
        assert.equal(scopes.routesOf(request) as unknown, -1);
      }),
    );
  });
});
