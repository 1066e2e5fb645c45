import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { editDistance, nearestName } from '../../../src/base/nearest-name.ts';

const FIELDS = ['connect_timeout', 'lb_policy', 'name', 'type', 'ring_hash_lb_config', 'RING_HASH'];

test('nearest name forgives a slip of the finger and nothing more', () => {
  const cases: readonly [string, string | undefined][] = [
    ['conect_timeout', 'connect_timeout'],
    ['connect_timoeut', 'connect_timeout'],
    ['lbPolicy', 'lb_policy'],
    ['nmae', 'name'],
    ['tpye', 'type'],
    ['ring_hash_lb', 'ring_hash_lb_config'],
    ['something_else', undefined],
    ['x'.repeat(500), undefined],
    ['', undefined],
  ];
  for (const [written, meant] of cases) assert.equal(nearestName(written, FIELDS), meant, written);
});

test('nearest name completes a beginning only when one candidate goes on from it', () => {
  assert.equal(nearestName('RING', ['RING_HASH', 'RANDOM', 'MAGLEV']), 'RING_HASH');
  assert.equal(nearestName('RING', ['RING_HASH_ONE', 'RING_HASH_TWO']), undefined);
});

test('edit distance is a distance, and a limit only cuts it short', () => {
  const word = fc.string({ maxLength: 12 });
  fc.assert(
    fc.property(word, word, fc.nat(12), (a, b, limit) => {
      const distance = editDistance(a, b);
      assert.equal(distance === 0, a === b);
      assert.equal(distance, editDistance(b, a));
      assert.ok(distance <= Math.max(a.length, b.length));
      assert.equal(editDistance(a, b, limit), Math.min(distance, limit));
    }),
  );
});
