// The order of hosts by what they are hashed by, kept while their members are the same.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { HashKeys } from '../../../../../src/control-plane/cluster-manager/host-lists/hash-keys.ts';
import { orderByKey } from '../../../../../src/wasm/lb.ts';
import { host } from '../../../../support/host-lists.ts';

const keysOf = (keys: HashKeys, indexes: readonly number[]) => keys.keyed(indexes).map(({ key }) => key);

describe('the keys of the hosts of a cluster', () => {
  test('are those of hosts, else their hostnames where that is wanted, else their addresses', () => {
    const hosts = [
      host('a', { hashKey: 'own', hostname: 'one' }),
      host('b', { hostname: 'two' }),
      host('c', { address: { kind: 'ip', ip: '10.0.0.1', port: 80 } }),
    ];
    assert.deepEqual(keysOf(new HashKeys(true).of(hosts), [0, 1, 2]), ['own', 'two', '10.0.0.1:80']);
    assert.deepEqual(keysOf(new HashKeys(false).of(hosts), [2, 1]), ['10.0.0.1:80', 'b']);
  });

  test('put any of the hosts in the order that a table is built in', () => {
    const key = fc.string({ unit: 'binary', maxLength: 3 });
    fc.assert(
      fc.property(
        fc.uniqueArray(key, { minLength: 1, maxLength: 20 }),
        fc.infiniteStream(fc.boolean()),
        (names, taken) => {
          const hosts = names.map((name) => host('', { hashKey: `k${name}` }));
          const indexes = [...hosts.keys()].filter(() => taken.next().value);
          const keys = new HashKeys(false).of(hosts);
          assert.deepEqual(keys.order(indexes), orderByKey(keys.keyed(indexes)));
          assert.deepEqual(keys.order(indexes.toReversed()), orderByKey(keys.keyed(indexes.toReversed())));
        },
      ),
    );
  });

  test('keep the order of the cluster where they are equal', () => {
    const keys = new HashKeys(false).of([host('same'), host('same'), host('less')]);
    assert.deepEqual([...keys.order([0, 1, 2])], [2, 0, 1]);
  });

  test('are those of other hosts when members have changed', () => {
    const keys = new HashKeys(false);
    keys.of([host('b'), host('a')]);
    keys.of([host('c'), host('d'), host('a')]);
    assert.deepEqual(keysOf(keys, [0, 1, 2]), ['c', 'd', 'a']);
    assert.deepEqual([...keys.order([0, 1, 2])], [2, 0, 1]);
  });

  test('are not sorted again for the same hosts', () => {
    const hosts = [host('b'), host('a')];
    const keys = new HashKeys(false).of(hosts);
    const [first] = keys.keyed([0]);
    assert.equal(keys.of(hosts).keyed([0])[0], first);
  });
});
