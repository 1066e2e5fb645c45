// Main's host lists, picked from as a worker does.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { HostLists } from '../../../src/control-plane/cluster-manager/host-lists/host-lists.ts';
import { readHostLists } from '../../../src/wasm/lb.ts';
import { HealthFlag, HealthMask } from '../../../src/wasm/shared-memory.ts';
import { BALANCING, BalancedCluster, host, lb, type NamedHost } from '../../support/host-lists.ts';
import { openLb } from '../../support/lb.ts';

const UNHEALTHY = HealthFlag.failedActiveHealthCheck;
const DEGRADED = HealthFlag.degradedEdsHealth;

const ill = (name: string, fields = {}): NamedHost => host(name, { healthFlags: UNHEALTHY, ...fields });

describe('host lists', () => {
  test('leave unhealthy hosts out as long as enough others are there', () => {
    const cluster = new BalancedCluster().setHosts(host('a'), ill('ill'), host('b'), host('c'));
    assert.deepEqual(cluster.shares(30), { a: 10, b: 10, c: 10 });
    assert.equal(cluster.panics, 0);
  });

  test('hold all of them in panic, and each such request is counted', () => {
    const cluster = new BalancedCluster().setHosts(host('a'), ill('b'), ill('c'));
    assert.deepEqual(cluster.shares(30), { a: 10, b: 10, c: 10 });
    assert.equal(cluster.panics, 30);
  });

  test('hold nothing when all are unhealthy and panic is off', () => {
    assert.equal(new BalancedCluster({ healthyPanicThreshold: 0 }).setHosts(ill('a')).pick(), 'none');
  });

  test('hold nothing before there are hosts, nor after they have gone', () => {
    const cluster = new BalancedCluster();
    assert.equal(cluster.pick(), 'none');
    assert.equal(cluster.setHosts(host('a')).pick(), 'a');
    assert.equal(cluster.setHosts().pick(), 'none');
  });

  test('spill over to the next priority by shares', () => {
    const cluster = new BalancedCluster().setHosts(host('a'), ill('ill'), host('next', { priority: 1 }));
    const { a = 0, next = 0, ill: none = 0 } = cluster.shares(10_000);
    assert.ok(Math.abs(a - 7000) < 300 && Math.abs(next - 3000) < 300, `${a} and ${next}`);
    assert.equal(none, 0);
  });

  test('give degraded hosts what healthy ones cannot take', () => {
    const cluster = new BalancedCluster().setHosts(host('a'), host('slow', { healthFlags: DEGRADED }));
    const { a = 0, slow = 0 } = cluster.shares(10_000);
    assert.ok(Math.abs(a - 7000) < 300 && Math.abs(slow - 3000) < 300, `${a} and ${slow}`);
  });

  test('weigh health where asked to', () => {
    const cluster = new BalancedCluster({ weightedPriorityHealth: true });
    cluster.setHosts(host('big', { weight: 9 }), ill('ill'), host('next', { priority: 1 }));
    assert.deepEqual(cluster.shares(100), { big: 100 });
  });

  test('follow a change of health', () => {
    const cluster = new BalancedCluster().setHosts(host('a'), host('b'), host('next', { priority: 1 }));
    assert.deepEqual(cluster.shares(20), { a: 10, b: 10 });
    cluster.setHosts(ill('a'), ill('b'), host('next', { priority: 1 }));
    assert.deepEqual(cluster.shares(50), { next: 50 });
  });

  test('let hosts in turn go on where they stood when the lists change', () => {
    const cluster = new BalancedCluster({}, 2).setHosts(host('a'), host('b'), host('c'));
    const before = cluster.picks(4);
    assert.ok('abcabcabc'.includes(before), before);
    cluster.setHosts(host('a'), ill('d'), host('b'), host('c'));
    assert.ok('abcabcabcabc'.includes(before + cluster.picks(4)));
  });

  test('follow weights, whichever hosts are left out', () => {
    const cluster = new BalancedCluster();
    cluster.setHosts(host('a', { weight: 3 }), ill('x', { weight: 50 }), host('b'), host('c', { weight: 2 }));
    assert.deepEqual(cluster.shares(600), { a: 300, b: 100, c: 200 });
  });

  test('never name a host that is not to be used, unless in panic', () => {
    const flags = fc.constantFrom(0, 0, DEGRADED, UNHEALTHY, HealthFlag.edsStatusDraining);
    const hosts = fc.array(
      fc.record({ priority: fc.nat(2), healthFlags: flags, weight: fc.integer({ min: 1, max: 3 }) }),
      {
        maxLength: 9,
      },
    );
    const policy = fc.constantFrom('ROUND_ROBIN' as const, 'LEAST_REQUEST' as const, 'RANDOM' as const);
    const record = lb.owner.recordAllocator.allocateHost(1);
    fc.assert(
      fc.property(hosts, policy, fc.nat(100), (all, lbPolicy, healthyPanicThreshold) => {
        const cluster = new BalancedCluster({ lbPolicy, healthyPanicThreshold });
        const members = all.map((fields, index) => host(`${index}`, { ...fields, recordAddress: record }));
        cluster.setHosts(...members);
        for (let pick = 0; pick < 40; pick += 1) {
          const before = cluster.panics;
          const name = cluster.pick();
          if (name === 'none' || cluster.panics > before) continue;
          assert.equal(members[Number(name)]!.healthFlags & HealthMask.unhealthy, 0);
        }
        cluster.close();
      }),
    );
  });

  test('name the balancer that serves the policy and the weights', () => {
    const record = lb.owner.recordAllocator.allocateHost(1);
    const kindOf = (fields: Partial<typeof BALANCING>, weights: readonly number[]): string => {
      const members = weights.map((weight, index) => host(`${index}`, { weight, recordAddress: record }));
      const source = readHostLists(
        lb.owner.shared,
        new HostLists(lb.tables, { ...BALANCING, ...fields }, members).address,
      );
      assert.equal(source.kind, 'list');
      return source.plan.kind;
    };
    const least = { lbPolicy: 'LEAST_REQUEST' } as const;
    assert.equal(kindOf(least, [1, 1, 1]), 'least-request');
    assert.equal(kindOf(least, [1, 2]), 'schedule');
    assert.equal(kindOf({ ...least, leastRequest: { choiceCount: 2, activeRequestBias: -3 } }, [1, 1]), 'schedule');
    assert.equal(kindOf(least, [1]), 'cycle');
    assert.equal(kindOf({}, [1, 5]), 'schedule');
    assert.equal(kindOf({}, [2, 2]), 'cycle');
    assert.equal(kindOf({ lbPolicy: 'RANDOM' }, [1, 5]), 'random');
  });

  test('give all their memory back, and leave none behind when there is too little', () => {
    const { owner, tables } = openLb({ workerCount: 1, maxBytes: 1024 * 1024 });
    const members = Array.from({ length: 100 }, (_, index) => host(`${index}`, { weight: index + 1 }));
    const before = owner.heap.usedBytes;
    const lists = new HostLists(tables, BALANCING, [...members, ill('x'), host('next', { priority: 1 })]);
    assert.ok(owner.heap.usedBytes > before);
    owner.reclaimer.collect(() => lists.retire())();
    assert.equal(owner.heap.usedBytes, before);
    const many = Array.from({ length: 20_000 }, (_, index) => host(`${index}`, { weight: (index % 9) + 1 }));
    assert.throws(() => new HostLists(tables, BALANCING, [...many, host('next', { priority: 1 })]), {
      code: 'WEIR_SHARED_MEMORY_FULL',
    });
    assert.equal(owner.heap.usedBytes, before);
  });
});
