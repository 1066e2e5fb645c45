// Requests that have used up priorities: where main's host lists lead them instead.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { BalancingSettings } from '../../../../../src/control-plane/cluster-manager/host-lists/host-lists.ts';
import { HealthFlag } from '../../../../../src/wasm/shared-memory.ts';
import { BalancedCluster, host, type NamedHost, requestHash } from '../../../../support/host-lists.ts';
import { hashOf } from '../../../../support/lb.ts';

const UNHEALTHY = HealthFlag.failedActiveHealthCheck;
const DEGRADED = HealthFlag.degradedEdsHealth;

const ill = (name: string, fields = {}): NamedHost => host(name, { healthFlags: UNHEALTHY, ...fields });

/** How often each name comes in so many picks of requests that have used up these priorities. */
function sharesWithout(cluster: BalancedCluster, spent: readonly number[], count = 10_000): Record<string, number> {
  const counts: Record<string, number> = {};
  for (let pick = 0; pick < count; pick += 1) {
    const name = cluster.pick(null, { draw: 0, spentPriorities: new Set(spent) });
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

describe('spent priorities', () => {
  test('get nothing while others have hosts, also others that get nothing otherwise', () => {
    const cluster = new BalancedCluster();
    cluster.setHosts(host('a'), host('b', { priority: 1 }), host('c', { priority: 2 }));
    assert.deepEqual(cluster.shares(50), { a: 50 });
    assert.deepEqual(sharesWithout(cluster, [0], 50), { b: 50 });
    assert.deepEqual(sharesWithout(cluster, [1], 50), { a: 50 });
    assert.deepEqual(sharesWithout(cluster, [0, 1], 50), { c: 50 });
  });

  test('are forgotten when no priority is left', () => {
    const cluster = new BalancedCluster().setHosts(host('a'), host('b', { priority: 1 }));
    const spentPriorities = new Set([0, 1]);
    assert.equal(cluster.pick(null, { draw: 0, spentPriorities }), 'a');
    assert.equal(spentPriorities.size, 0);
  });

  test('change nothing where no host is available at all', () => {
    const cluster = new BalancedCluster().setHosts(ill('a'), ill('b', { priority: 1 }));
    const { a = 0, b = 0 } = sharesWithout(cluster, [0]);
    assert.ok(Math.abs(a - 5000) < 300 && Math.abs(b - 5000) < 300, `${a} and ${b}`);
    assert.equal(cluster.panics, 10_000);
    const calm = new BalancedCluster({ healthyPanicThreshold: 0 }).setHosts(ill('a'), ill('b', { priority: 1 }));
    assert.deepEqual(sharesWithout(calm, [0], 10), { none: 10 });
  });

  test('leave the others to share by what they can take, the healthy hosts of all priorities first', () => {
    const cluster = new BalancedCluster();
    // Priority 1 can take 70 of 100 with its healthy host and 70 with the degraded one; priority 2 can take 46.
    cluster.setHosts(
      host('a'),
      host('b', { priority: 1 }),
      host('slow', { priority: 1, healthFlags: DEGRADED }),
      host('c', { priority: 2 }),
      ill('x', { priority: 2 }),
      ill('y', { priority: 2 }),
    );
    const { a = 0, b = 0, c = 0, slow = 0 } = sharesWithout(cluster, [0]);
    assert.equal(a + slow, 0);
    assert.ok(Math.abs(b - 7000) < 300 && Math.abs(c - 3000) < 300, `${b} and ${c}`);
    // Of the 140 that it could take then, the degraded host gets what is left of 100.
    const rest = sharesWithout(cluster, [0, 2]);
    assert.ok(Math.abs(rest.b! - 7000) < 300 && Math.abs(rest.slow! - 3000) < 300, JSON.stringify(rest));
    // Alone it gets everything, and what rounding leaves.
    assert.deepEqual(sharesWithout(cluster, [0, 1], 200), { c: 200 });
  });

  test('have the hosts of a table for other hashes, too', () => {
    for (const lbPolicy of ['RING_HASH', 'MAGLEV'] as const) {
      const cluster = new BalancedCluster({ lbPolicy });
      cluster.setHosts(host('a'), host('b', { priority: 1 }), host('c', { priority: 1 }));
      for (let n = 0; n < 50; n += 1) {
        const hash = requestHash(hashOf(n));
        assert.equal(cluster.pick(hash), 'a');
        const other = cluster.pick(hash, { draw: 0, spentPriorities: new Set([0]) });
        assert.notEqual(other, 'a');
        assert.equal(cluster.pick(hash, { draw: 0, spentPriorities: new Set([0]) }), other);
      }
      cluster.close();
    }
  });

  test('hold in subsets and localities', () => {
    const locality = { region: 'r', zone: 'z', subZone: '' };
    const cluster = new BalancedCluster({ weighsLocalities: true });
    cluster.setHosts(
      host('a', { locality, localityWeight: 1 }),
      host('b', { locality, localityWeight: 1, priority: 1 }),
    );
    assert.deepEqual(sharesWithout(cluster, [0], 20), { b: 20 });
  });

  test('never get a request while another priority has an available host', () => {
    const flags = fc.constantFrom(0, 0, DEGRADED, UNHEALTHY);
    const hosts = fc.array(fc.record({ priority: fc.nat(3), healthFlags: flags }), { minLength: 1, maxLength: 10 });
    const policy = fc.constantFrom<BalancingSettings['lbPolicy']>('ROUND_ROBIN', 'RANDOM');
    fc.assert(
      fc.property(hosts, policy, fc.uniqueArray(fc.nat(3), { minLength: 1 }), (all, lbPolicy, spent) => {
        const cluster = new BalancedCluster({ lbPolicy });
        const members = all.map((fields, index) => host(`${index}`, fields));
        cluster.setHosts(...members);
        const isLeft = members.some(
          ({ priority, healthFlags }) => !spent.includes(priority) && (healthFlags & UNHEALTHY) === 0,
        );
        for (let pick = 0; isLeft && pick < 30; pick += 1) {
          const name = cluster.pick(null, { draw: 0, spentPriorities: new Set(spent) });
          assert.ok(!spent.includes(members[Number(name)]!.priority), name);
        }
        cluster.close();
      }),
    );
  });
});

describe('a further draw', () => {
  test('leads a hash to other hosts of its table, always the same', () => {
    for (const lbPolicy of ['RING_HASH', 'MAGLEV'] as const) {
      const cluster = new BalancedCluster({ lbPolicy }).setHosts(...['a', 'b', 'c', 'd'].map((name) => host(name)));
      const spentPriorities = new Set<number>();
      for (let n = 0; n < 20; n += 1) {
        const hash = requestHash(hashOf(n));
        const walk = (): string[] =>
          Array.from({ length: 30 }, (_, draw) => cluster.pick(hash, { draw, spentPriorities }));
        const names = walk();
        assert.equal(names[0], cluster.pick(hash));
        assert.ok(new Set(names).size > 2, names.join(' '));
        assert.deepEqual(walk(), names);
      }
      cluster.close();
    }
  });
});
