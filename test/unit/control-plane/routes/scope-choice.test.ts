// Which scopes there are when some have come and some are gone, by a model of every response that there may be.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { ScopeChoice } from '../../../../src/control-plane/routes/scope-choice.ts';
import type { ScopeSettings } from '../../../../src/snapshot/index.ts';

function scope(name: string, key: string, tableName = 'table'): ScopeSettings {
  return { name, key: [key], routes: { tableName }, isOnDemand: false };
}

function formerOf(scopes: readonly ScopeSettings[]) {
  const byName = new Map(scopes.map((each) => [each.name, each]));
  return {
    names: () => byName.keys(),
    settingsOf: (name: string) => byName.get(name),
    has: (settings: ScopeSettings) => JSON.stringify(byName.get(settings.name)) === JSON.stringify(settings),
  };
}

function choose(former: readonly ScopeSettings[], come: readonly ScopeSettings[], gone: readonly string[] = []) {
  const choice = new ScopeChoice(formerOf(former));
  const chosen = choice.choose(come, new Set(gone));
  return { chosen: chosen.map(({ name, key }) => `${name}=${key}`).toSorted(), refused: [...choice.refusals] };
}

describe('the choice of scopes', () => {
  it('lets two exchange their keys in one response', () => {
    const { chosen, refused } = choose([scope('a', '1'), scope('b', '2')], [scope('a', '2'), scope('b', '1')]);
    assert.deepEqual([chosen, refused], [['a=2', 'b=1'], []]);
  });

  it('takes the first of two with one key, and keeps what the other was before', () => {
    const { chosen, refused } = choose([scope('b', '2')], [scope('a', '1'), scope('b', '1')]);
    assert.deepEqual([chosen, refused], [['a=1', 'b=2'], [['b', 'has the key of scope "a"']]]);
  });

  it('does not let one that comes have the key of one that stays', () => {
    const { chosen, refused } = choose([scope('z', '1')], [scope('a', '1')]);
    assert.deepEqual([chosen, refused], [['z=1'], [['a', 'has the key of scope "z"']]]);
  });

  it('has names and keys of their own, keeps what nothing was said of, and refuses none without need', () => {
    const scopes = fc.uniqueArray(
      fc.record({ name: fc.constantFrom('a', 'b', 'c', 'd', 'e'), key: fc.constantFrom('1', '2', '3', '4') }),
      { selector: ({ name }) => name, maxLength: 5 },
    );
    const valid = scopes.map((all) => all.filter(({ key }, at) => all.findIndex((each) => each.key === key) === at));
    const gone = fc.subarray(['a', 'b', 'c', 'd', 'e']);
    fc.assert(
      fc.property(valid, scopes, gone, (before, after, away) => {
        const former = before.map(({ name, key }) => scope(name, key));
        const come = after.map(({ name, key }) => scope(name, key, 'other'));
        const leaving = away.filter((name) => come.every((each) => each.name !== name));
        const choice = new ScopeChoice(formerOf(former));
        const chosen = choice.choose(come, new Set(leaving));
        assert.equal(new Set(chosen.map(({ name }) => name)).size, chosen.length);
        assert.equal(new Set(chosen.map(({ key }) => key[0])).size, chosen.length);
        const has = (settings: ScopeSettings): boolean => chosen.includes(settings);
        for (const each of former) {
          const isTold = come.some(({ name }) => name === each.name);
          assert.equal(has(each) && leaving.includes(each.name), false);
          if (!isTold && !leaving.includes(each.name)) assert.ok(has(each), 'what stays');
        }
        for (const each of come) {
          assert.equal(has(each), !choice.refusals.has(each.name));
          const rival = chosen.find((other) => other !== each && other.key[0] === each.key[0]);
          if (choice.refusals.has(each.name)) assert.ok(rival !== undefined, 'refused without need');
        }
      }),
    );
  });
});
