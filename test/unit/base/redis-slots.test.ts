import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { REDIS_SLOTS, type RedisRole, roleMetadata, roleOf, slotOf } from '../../../src/base/redis-slots.ts';

/** As CLUSTER KEYSLOT of redis-server says. */
const KNOWN: Readonly<Record<string, number>> = {
  '': 0,
  '123456789': 12_739,
  foo: 12_182,
  bar: 5_061,
  '{user1000}.following': 3_443,
  '{user1000}.followers': 3_443,
  'foo{}{bar}': 8_363,
  'foo{{bar}}zap': 4_015,
  'foo{bar}{zap}': 5_061,
};

for (const [key, slot] of Object.entries(KNOWN)) {
  test(`the slot of ${JSON.stringify(key)} is ${slot}`, () => assert.equal(slotOf(Buffer.from(key)), slot));
}

test('every key has a slot', () => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      const slot = slotOf(Buffer.from(bytes));
      assert.ok(slot >= 0 && slot < REDIS_SLOTS);
    }),
  );
});

test('what a server has is read from metadata as it was written', () => {
  const slot = fc.integer({ min: 0, max: REDIS_SLOTS - 1 });
  const range = fc.tuple(slot, slot).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);
  const role = fc.oneof(
    fc.record({ kind: fc.constant('primary' as const), slots: fc.array(range) }),
    fc.record({ kind: fc.constant('replica' as const), of: fc.string() }),
  );
  fc.assert(
    fc.property(role, (said: RedisRole) => {
      assert.deepEqual(roleOf(JSON.parse(JSON.stringify(roleMetadata(said)))), { ...said });
    }),
  );
  for (const other of [undefined, {}, { 'envoy.lb': { canary: true } }, { 'envoy.clusters.redis': { slots: 'all' } }]) {
    assert.equal(roleOf(other), null);
  }
});
