import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cycleThrough } from '../../../src/base/cycle.ts';

const references = (lists: Readonly<Record<string, readonly string[]>>) => new Map(Object.entries(lists));

describe('a way back to where it began', () => {
  it('is told with all names on it', () => {
    assert.deepEqual(cycleThrough('a', references({ a: ['x', 'b'], b: ['c'], c: ['a'] })), ['a', 'b', 'c', 'a']);
    assert.deepEqual(cycleThrough('a', references({ a: ['a'] })), ['a', 'a']);
  });

  it('is none where names lead elsewhere, be it round and round', () => {
    assert.equal(cycleThrough('a', references({})), undefined);
    assert.equal(cycleThrough('a', references({ a: ['b', 'c'], b: ['c'] })), undefined);
    assert.equal(cycleThrough('a', references({ a: ['b'], b: ['c'], c: ['b'] })), undefined);
  });
});
