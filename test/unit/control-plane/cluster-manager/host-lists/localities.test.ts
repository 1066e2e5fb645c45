// Localities that get requests by their weights and their health.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  effectiveWeights,
  hostsByLocality,
} from '../../../../../src/control-plane/cluster-manager/host-lists/localities.ts';
import { HealthFlag, HealthMask } from '../../../../../src/wasm/shared-memory.ts';
import { BalancedCluster, host, lb, type NamedHost, requestHash } from '../../../../support/host-lists.ts';
import { hashOf } from '../../../../support/lb.ts';

const ILL = HealthFlag.failedActiveHealthCheck;
const DEGRADED = HealthFlag.degradedEdsHealth;
const PENDING = HealthFlag.pendingActiveHealthCheck | ILL;

function inZone(zone: string, localityWeight: number, flags: readonly number[], fields = {}): NamedHost[] {
  const locality = { region: 'r', zone, subZone: '' };
  return flags.map((healthFlags) => host(zone, { locality, localityWeight, healthFlags, ...fields }));
}

function weightsOf(hosts: readonly NamedHost[], usable: 'healthy' | 'degraded' = 'healthy'): number[] {
  const indexes = hosts.map((_, index) => index);
  return [...effectiveWeights(hostsByLocality(hosts, indexes), usable, 140)];
}

describe('the weight of a locality', () => {
  test('is the configured one while 72 of 100 hosts are healthy, and less by what health lacks', () => {
    assert.deepEqual(weightsOf([...inZone('a', 10, [0, 0, 0, ILL]), ...inZone('b', 20, [0, ILL])]), [10, 14]);
    assert.deepEqual(weightsOf([...inZone('a', 10, [ILL]), ...inZone('b', 20, [0])]), [0, 20]);
  });

  test('gives the documented shares of the requests: weight 1 beside 2, of which all hosts are healthy', () => {
    for (const [healthy, percent] of [
      [100, 33],
      [72, 33],
      [69, 33],
      [50, 26],
      [25, 15],
      [0, 0],
    ] as const) {
      const flags = Array.from({ length: 100 }, (_, n) => (n < healthy ? 0 : ILL));
      const [x, y] = weightsOf([...inZone('x', 1, flags), ...inZone('y', 2, [0, 0])]) as [number, number];
      // Of 69 healthy hosts the documents say 32, where 0.966 of 2.966 is 32.57.
      assert.equal(Math.round((100 * x) / (x + y)), percent, `${healthy} healthy hosts`);
    }
  });

  test('goes by degraded hosts for what they get', () => {
    assert.deepEqual(
      weightsOf([...inZone('a', 10, [0, 0, 0, DEGRADED]), ...inZone('b', 20, [0])], 'degraded'),
      [3.5, 0],
    );
  });

  test('leaves out hosts that are not yet checked', () => {
    assert.deepEqual(weightsOf(inZone('a', 10, [0, PENDING, PENDING, PENDING])), [10]);
    assert.deepEqual(weightsOf(inZone('a', 10, [PENDING, PENDING])), [0]);
  });

  test('is 0 where none is configured, and the last of several', () => {
    assert.deepEqual(weightsOf([...inZone('a', 0, [0]), ...inZone('b', 1, [0]), ...inZone('b', 5, [0])]), [0, 5]);
  });

  test('is listed by region, zone and sub-zone in ascending order', () => {
    const places = ['b/a/', 'a/b/c', 'a/b/', 'a/bb/', 'a//z', 'B//'].map((text) => {
      const [region = '', zone = '', subZone = ''] = text.split('/');
      return host(text, { locality: { region, zone, subZone } });
    });
    const sorted = hostsByLocality(places, [0, 1, 2, 3, 4, 5]);
    assert.deepEqual(
      sorted.map(({ locality: { region, zone, subZone } }) => `${region}/${zone}/${subZone}`),
      ['B//', 'a//z', 'a/b/', 'a/b/c', 'a/bb/', 'b/a/'],
    );
  });
});

describe('a cluster that weighs localities', () => {
  const weighing = { weighsLocalities: true } as const;

  test('gives each its share, whatever the number of its hosts', () => {
    const cluster = new BalancedCluster(weighing).setHosts(...inZone('a', 1, [0, 0, 0, 0, 0]), ...inZone('b', 3, [0]));
    assert.deepEqual(cluster.shares(400), { a: 100, b: 300 });
  });

  test('moves traffic away from a locality as its hosts fail', () => {
    const cluster = new BalancedCluster(weighing);
    cluster.setHosts(...inZone('a', 1, [0, ILL, 0, ILL]), ...inZone('b', 1, [0, 0, 0, 0]));
    // 1.4 times half of the hosts: 7 to 10.
    const { a = 0, b = 0 } = cluster.shares(1700);
    assert.ok(Math.abs(a - 700) <= 2 && Math.abs(b - 1000) <= 2, `${a} and ${b}`);
  });

  test('picks within a locality by the policy of the cluster', () => {
    const locality = { region: '', zone: 'z', subZone: '' };
    const cluster = new BalancedCluster(weighing).setHosts(
      host('x', { locality, localityWeight: 1, weight: 3 }),
      host('y', { locality, localityWeight: 1 }),
    );
    assert.deepEqual(cluster.shares(400), { x: 300, y: 100 });
  });

  test('takes its hosts alike when no locality has a weight, and in panic', () => {
    const cluster = new BalancedCluster(weighing).setHosts(...inZone('a', 0, [0, 0, 0]), ...inZone('b', 0, [0]));
    assert.deepEqual(cluster.shares(400), { a: 300, b: 100 });
    cluster.setHosts(...inZone('a', 1, [0, ILL, ILL]), ...inZone('b', 9, [ILL]));
    assert.deepEqual(cluster.shares(400), { a: 300, b: 100 });
    assert.equal(cluster.panics, 400);
  });

  test('weighs within each priority, and spills over', () => {
    const cluster = new BalancedCluster(weighing).setHosts(
      ...inZone('a', 1, [0, ILL]),
      ...inZone('b', 1, [ILL, 0]),
      ...inZone('c', 1, [0], { priority: 1 }),
      ...inZone('d', 2, [0], { priority: 1 }),
    );
    const { a = 0, b = 0, c = 0, d = 0 } = cluster.shares(10_000);
    assert.ok(Math.abs(a - 3500) < 200 && Math.abs(b - 3500) < 200, `${a} ${b}`);
    assert.ok(Math.abs(c - 1000) < 150 && Math.abs(d - 2000) < 200, `${c} ${d}`);
  });

  test('shares tables of hashes by weights as they are configured, leaving out localities without one', () => {
    for (const lbPolicy of ['RING_HASH', 'MAGLEV'] as const) {
      const cluster = new BalancedCluster({ ...weighing, lbPolicy });
      const named = (zone: string, weight: number, count: number): NamedHost[] =>
        inZone(
          zone,
          weight,
          Array.from({ length: count }, () => 0),
        ).map((each, n) => ({ ...each, hashKey: `${zone}${n}` }));
      cluster.setHosts(...named('a', 1, 4), ...named('b', 3, 2), ...named('none', 0, 3));
      const counts: Record<string, number> = {};
      for (let n = 0; n < 8000; n += 1) {
        const name = cluster.pick(requestHash(hashOf(n)));
        counts[name] = (counts[name] ?? 0) + 1;
      }
      const { a = 0, b = 0, none = 0 } = counts;
      assert.equal(none, 0);
      assert.ok(Math.abs(a - 2000) < 500 && Math.abs(b - 6000) < 500, `${lbPolicy}: ${a} and ${b}`);
      cluster.setHosts(...named('a', 0, 2));
      assert.equal(cluster.pick(requestHash(1n)), 'none');
      cluster.close();
    }
  });

  test('never picks a host that is not to be used, unless in panic, and gives its memory back', () => {
    const zone = fc.constantFrom('a', 'b', 'c');
    const flags = fc.constantFrom(0, 0, ILL, DEGRADED);
    const member = fc.record({ zone, healthFlags: flags, localityWeight: fc.nat(2), priority: fc.nat(1) });
    const before = lb.owner.heap.usedBytes;
    fc.assert(
      fc.property(fc.array(member, { maxLength: 10 }), fc.nat(100), (members, healthyPanicThreshold) => {
        const cluster = new BalancedCluster({ ...weighing, healthyPanicThreshold });
        const hosts = members.map(({ zone: name, ...fields }, n) =>
          host(`${n}`, { ...fields, locality: { region: '', zone: name, subZone: '' } }),
        );
        cluster.setHosts(...hosts);
        for (let pick = 0; pick < 30; pick += 1) {
          const panics = cluster.panics;
          const name = cluster.pick();
          if (name === 'none' || cluster.panics > panics) continue;
          assert.equal(hosts[Number(name)]!.healthFlags & HealthMask.unhealthy, 0);
        }
        cluster.close();
      }),
    );
    assert.equal(lb.owner.heap.usedBytes, before);
  });
});
