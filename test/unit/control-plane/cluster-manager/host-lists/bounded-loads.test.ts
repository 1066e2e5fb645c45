// Tables of hashes whose hosts take no more than a bound.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { BalancedCluster, host, type NamedHost, requestHash } from '../../../../support/host-lists.ts';
import { DEFAULT_HASHING, hashOf } from '../../../../support/lb.ts';

const POLICIES = ['RING_HASH', 'MAGLEV'] as const;

function bounded(lbPolicy: (typeof POLICIES)[number], balancePercent: number): BalancedCluster {
  return new BalancedCluster({ lbPolicy, hashing: { ...DEFAULT_HASHING, maglevTableSize: 251, balancePercent } });
}

const named = (...names: readonly string[]): NamedHost[] => names.map((name) => host(name));

describe('bounded loads', () => {
  test('leave hashes where they are while nobody has too much', () => {
    for (const lbPolicy of POLICIES) {
      const free = bounded(lbPolicy, 0).setHosts(...named('a', 'b', 'c'));
      const cluster = bounded(lbPolicy, 150).setHosts(...named('a', 'b', 'c'));
      cluster.active.push(2, 2, 2);
      for (let n = 0; n < 300; n += 1) {
        assert.equal(cluster.pick(requestHash(hashOf(n))), free.pick(requestHash(hashOf(n))));
      }
      free.close();
      cluster.close();
    }
  });

  test('let a host have its part of all requests and the one that comes, rounded up', () => {
    for (const lbPolicy of POLICIES) {
      const cluster = bounded(lbPolicy, 120).setHosts(...named('a', 'b', 'c', 'd'));
      const request = Array.from({ length: 200 }, (_, n) => requestHash(hashOf(n))).find(
        (hash) => cluster.pick(hash) === 'a',
      )!;
      // 20 in flight: 21 requests make room for 26 over 4 hosts, so that each may have 7.
      cluster.active.splice(0, 4, 7, 5, 4, 4);
      assert.equal(cluster.pick(request), 'a');
      cluster.active.splice(0, 4, 8, 4, 4, 4);
      const other = cluster.pick(request);
      assert.notEqual(other, 'a');
      // Always the same, as long as it is within the bound itself.
      for (let n = 0; n < 10; n += 1) assert.equal(cluster.pick(request), other);
      cluster.close();
    }
  });

  test('spread the hashes of a host that has too much over the others, also those that have nearly as much', () => {
    const cluster = bounded('MAGLEV', 100).setHosts(...named('a', 'b', 'c', 'd'));
    const hashes = Array.from({ length: 2000 }, (_, n) => requestHash(hashOf(n)));
    const ofA = hashes.filter((hash) => cluster.pick(hash) === 'a');
    // 36 with the one that comes: 9 for each, which is what b has.
    cluster.active.push(20, 9, 2, 4);
    const counts = new Map<string, number>();
    for (const hash of ofA) {
      const name = cluster.pick(hash);
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    assert.deepEqual([...counts.keys()].toSorted(), ['b', 'c', 'd']);
    for (const count of counts.values()) assert.ok(Math.abs(count - ofA.length / 3) < 60, `${count} of ${ofA.length}`);
  });

  // The walk takes the first numbers of the Mersenne Twister that the lower half of the hash seeds: 3499211612, 581869302,
  // 3890346734 of 5489, and 1791095845, 4282876139, 3093770124 of 1. Divided by a quarter, a third and half of 2^32 they
  // are 3, 0, 1 and 1, 2, 1: which of the hosts that are left comes next, with the first of them in its place.
  test('go through the hosts in the order that the hash draws', () => {
    for (const [seed, order] of [
      [5489n, 'dbac'],
      [1n, 'bdac'],
    ] as const) {
      for (const lbPolicy of POLICIES) {
        const cluster = bounded(lbPolicy, 100).setHosts(...named('a', 'b', 'c', 'd'));
        for (let high = 0n; high < 40n; high += 1n) {
          const request = requestHash((high << 57n) | seed);
          cluster.active.splice(0, 4, 0, 0, 0, 0);
          const first = cluster.pick(request);
          const walked = [first];
          // One after the other takes more than its quarter.
          for (let taken = 1; taken < 4; taken += 1) {
            cluster.active['abcd'.indexOf(walked.at(-1)!)] = 1000;
            walked.push(cluster.pick(request));
          }
          assert.equal(walked.join(''), first + order.replace(first, ''), `${lbPolicy} ${high}`);
        }
        cluster.close();
      }
    }
  });

  test('go by weights', () => {
    const cluster = bounded('MAGLEV', 100);
    cluster.setHosts(host('big', { weight: 3 }), host('small'));
    const request = Array.from({ length: 200 }, (_, n) => requestHash(hashOf(n))).find(
      (hash) => cluster.pick(hash) === 'big',
    )!;
    // 16 with the one that comes: 12 of them for the big host.
    cluster.active.push(12, 3);
    assert.equal(cluster.pick(request), 'big');
    cluster.active.splice(0, 2, 13, 2);
    assert.equal(cluster.pick(request), 'small');
  });

  test('take the host that has the least too much when all have', () => {
    const free = bounded('RING_HASH', 0).setHosts(...named('a', 'b', 'c'));
    const cluster = bounded('RING_HASH', 100).setHosts(...named('a', 'b', 'c'));
    // The counts of a moment need not agree: the cluster's knows nothing of what the hosts have.
    cluster.active.push(90, 90, 90);
    cluster.activeInAll = 0;
    // Equal loads: nobody is better than where the hash leads.
    for (let n = 0; n < 50; n += 1) {
      assert.equal(cluster.pick(requestHash(hashOf(n))), free.pick(requestHash(hashOf(n))));
    }
    cluster.active.splice(0, 3, 90, 40, 90);
    for (let n = 0; n < 50; n += 1) assert.equal(cluster.pick(requestHash(hashOf(n))), 'b');
  });

  test('never load a host beyond its bound, however requests come and go', () => {
    const weights = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 8 });
    // A hash arrives, or the request at a place ends.
    const steps = fc.array(fc.record({ hash: fc.nat(40), ends: fc.option(fc.nat(1000)) }), { maxLength: 80 });
    const percent = fc.integer({ min: 100, max: 300 });
    fc.assert(
      fc.property(fc.constantFrom(...POLICIES), weights, percent, steps, (lbPolicy, all, factor, arrivals) => {
        const cluster = bounded(lbPolicy, factor);
        cluster.setHosts(...all.map((weight, index) => host(`${index}`, { weight })));
        const sum = all.reduce((total, weight) => total + weight, 0);
        const running: number[] = [];
        for (const index of all.keys()) cluster.active[index] = 0;
        for (const { hash, ends } of arrivals) {
          const slots = Math.floor(((running.length + 1) * factor + 99) / 100);
          const index = Number(cluster.pick(requestHash(hashOf(hash))));
          const bound = Math.max(1, Math.ceil(slots * (all[index]! / sum)));
          assert.ok(cluster.active[index]! <= bound, `${cluster.active[index]} of ${bound}`);
          cluster.active[index]! += 1;
          running.push(index);
          if (ends === null) continue;
          const [over] = running.splice(ends % running.length, 1);
          cluster.active[over!]! -= 1;
        }
        cluster.close();
      }),
    );
  });

  test('leave retries where they go while nobody has too much', () => {
    for (const lbPolicy of POLICIES) {
      const free = bounded(lbPolicy, 0).setHosts(...named('a', 'b', 'c'));
      const cluster = bounded(lbPolicy, 150).setHosts(...named('a', 'b', 'c'));
      const drawn = new Set<string>();
      for (let draw = 0; draw < 20; draw += 1) {
        const draws = { draw, spentPriorities: new Set<number>() };
        drawn.add(cluster.pick(requestHash(hashOf(1)), draws));
        assert.equal(cluster.pick(requestHash(hashOf(1)), draws), free.pick(requestHash(hashOf(1)), draws));
      }
      assert.equal(drawn.size, 3);
    }
  });

  test('hold for retries, too, and in priorities and weighed localities', () => {
    const locality = { region: '', zone: 'z', subZone: '' };
    const cluster = new BalancedCluster({
      lbPolicy: 'RING_HASH',
      weighsLocalities: true,
      hashing: { ...DEFAULT_HASHING, balancePercent: 100 },
    });
    cluster.setHosts(
      host('a', { locality, localityWeight: 1 }),
      host('b', { locality, localityWeight: 1 }),
      host('c', { locality, localityWeight: 1, priority: 1 }),
    );
    cluster.active.push(50, 0, 0);
    for (let n = 0; n < 40; n += 1) {
      const hash = requestHash(hashOf(n));
      for (let draw = 0; draw < 3; draw += 1) {
        assert.equal(cluster.pick(hash, { draw, spentPriorities: new Set() }), 'b');
        assert.equal(cluster.pick(hash, { draw, spentPriorities: new Set([0]) }), 'c');
      }
    }
  });
});
