// Which server of a Redis cluster gets a command, by slots and read policies.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type RedisRole, roleMetadata, slotOf } from '../../../../src/base/redis-slots.ts';
import type { FilterHost } from '../../../../src/data-plane/index.ts';
import type { ReadPolicy } from '../../../../src/extensions/filters.network/redis_proxy/settings.ts';
import { slotsOf } from '../../../../src/extensions/filters.network/redis_proxy/slots.ts';

function host(label: string, role: RedisRole | null, isHealthy = true): FilterHost {
  const metadata = role === null ? undefined : roleMetadata(role);
  return { label, credentials: null, metadata, isHealthy };
}

const replica = (label: string, of: string, isHealthy = true) => host(label, { kind: 'replica', of }, isHealthy);
const KEY = Buffer.from('foo');
const OWN = slotOf(KEY);

/** Labels of those that a command may go to. */
function chosen(members: readonly FilterHost[], policy: ReadPolicy): string {
  const found = new Set<string>();
  for (let draw = 0; draw < 60; draw += 1) {
    found.add(slotsOf(members)!.hostFor(KEY, policy, () => draw)?.label ?? 'none');
  }
  return [...found].sort().join();
}

const others = [
  host('other', {
    kind: 'primary',
    slots: [
      [0, OWN - 1],
      [OWN + 1, 16_383],
    ],
  }),
  replica('far', 'other'),
];
const shard = (isPrimaryWell: boolean, ...replicas: boolean[]): FilterHost[] => [
  ...others,
  host('own', { kind: 'primary', slots: [[OWN, OWN]] }, isPrimaryWell),
  ...replicas.map((isWell, at) => replica(`copy${at}`, 'own', isWell)),
];

for (const [policy, well, ill, copyIll, alone] of [
  ['primary', 'own', 'own', 'own', 'own'],
  ['prefer-primary', 'own', 'copy0,copy1', 'own', 'own'],
  ['replica', 'copy0,copy1', 'copy0,copy1', 'copy1', 'none'],
  ['prefer-replica', 'copy0,copy1', 'copy0,copy1', 'copy1', 'own'],
  ['any', 'copy0,copy1,own', 'copy0,copy1', 'copy1,own', 'own'],
] as const) {
  test(`reads go by ${policy}`, () => {
    assert.equal(chosen(shard(true, true, true), policy), well);
    assert.equal(chosen(shard(false, true, true), policy), ill);
    assert.equal(chosen(shard(true, false, true), policy), copyIll);
    assert.equal(chosen(shard(true), policy), alone);
  });
}

test('where none of the servers is well, one of them is asked all the same', () => {
  assert.equal(chosen(shard(false, false), 'any'), 'copy0,own');
  assert.equal(chosen(shard(false, false), 'prefer-replica'), 'copy0,own');
  assert.equal(chosen(shard(true, false), 'prefer-replica'), 'own');
});

test('a slot that nobody has goes nowhere', () => assert.equal(chosen(others, 'primary'), 'none'));

test('members of other clusters have no slots', () => {
  assert.equal(slotsOf([]), null);
  assert.equal(slotsOf([host('a', null)]), null);
});
