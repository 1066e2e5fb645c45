// Main's host lists, picked from as a worker does.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { HostLists } from '../../../../../src/control-plane/cluster-manager/host-lists/host-lists.ts';
import { Criteria } from '../../../../../src/data-plane/upstream/load-balancer/pick-context.ts';
import { readHostLists } from '../../../../../src/wasm/lb.ts';
import { HealthFlag, HealthMask } from '../../../../../src/wasm/shared-memory.ts';
import { BALANCING } from '../../../../support/clusters.ts';
import { BalancedCluster, host, lb, type NamedHost, requestHash } from '../../../../support/host-lists.ts';
import { DEFAULT_HASHING, hashOf, openLb } from '../../../../support/lb.ts';

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

  test('hold nothing in panic where traffic is to fail then, and only there', () => {
    const cluster = new BalancedCluster({ failsTrafficOnPanic: true }).setHosts(host('a'), ill('b'), ill('c'));
    assert.deepEqual(cluster.shares(30), { none: 30 });
    assert.equal(cluster.panics, 30);
    cluster.setHosts(host('a'), ill('b'), ill('c'), host('next', { priority: 1 }), host('last', { priority: 1 }));
    const { none = 0, a = 0 } = cluster.shares(1000);
    assert.equal(none, 0);
    assert.ok(a > 0);
    const hashed = new BalancedCluster({ failsTrafficOnPanic: true, lbPolicy: 'RING_HASH' });
    assert.equal(hashed.setHosts(host('a'), ill('a'), ill('a')).pick(requestHash(5n)), 'a');
  });

  test('hold nothing when all are unhealthy and panic is off', () => {
    assert.equal(new BalancedCluster({ healthyPanicThreshold: 0 }).setHosts(ill('a')).pick(), 'none');
  });

  test('hold nothing before there are hosts, nor after they have gone', () => {
    const cluster = new BalancedCluster();
    assert.equal(cluster.pick(), 'none');
    assert.equal(cluster.setHosts(host('a')).pick(), 'a');
    assert.equal(cluster.panics, 0);
    assert.equal(cluster.setHosts().pick(), 'none');
    assert.equal(cluster.panics, 1);
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
    const counting = new BalancedCluster().setHosts(
      host('big', { weight: 9 }),
      ill('ill'),
      host('next', { priority: 1 }),
    );
    assert.ok(counting.shares(1000).next! > 200);
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

  test('never name a host that is not to be used, unless in panic, whichever way they share requests out', () => {
    const PENDING = HealthFlag.pendingActiveHealthCheck | UNHEALTHY;
    const LEFT_OUT = HealthFlag.excludedViaImmediateHealthCheckFail | UNHEALTHY;
    const record = lb.owner.recordAllocator.allocateHost(1);
    const localityOf = (zone: string) => ({ region: '', zone, subZone: '' });
    const anyHost = fc
      .record({
        priority: fc.nat(2),
        healthFlags: fc.constantFrom(0, 0, 0, DEGRADED, UNHEALTHY, HealthFlag.edsStatusDraining, PENDING, LEFT_OUT),
        weight: fc.integer({ min: 1, max: 3 }),
        locality: fc.constantFrom('a', 'b', 'c').map(localityOf),
        localityWeight: fc.nat(2),
        stage: fc.constantFrom('x', 'y'),
      })
      .map(({ stage, ...fields }) => ({
        ...fields,
        subsetValues: [{ key: 'stage', value: JSON.stringify(stage), elements: null }],
      }));
    const proxies = ['a', 'b'].map((zone) => host(zone, { locality: localityOf(zone) }));
    const senders = { locality: localityOf('a'), hosts: proxies, isPanic: false };
    const selectors = [{ keys: ['stage'], fallback: 'cluster', fallbackKeys: [], isSingleHost: false }] as const;
    const flags = { panicModeAny: true, listAsAny: false, takesAlternatives: false, allowsRedundantKeys: false };
    const localities = { weighsLocalities: true, scalesLocalityWeights: true };
    const subsets = { selectors, fallback: 'any-host', defaultSubset: [], ...localities, ...flags } as const;
    const zoneRouting = { enabledPercent: 100, minClusterSize: 0, forcedFrom: null, goesByWeight: false };
    const settings = fc.record({
      lbPolicy: fc.constantFrom('ROUND_ROBIN', 'LEAST_REQUEST', 'RANDOM', 'RING_HASH', 'MAGLEV'),
      healthyPanicThreshold: fc.nat(100),
      subsets: fc.constantFrom(null, subsets),
      weighsLocalities: fc.boolean(),
      goesByZone: fc.boolean(),
      weightedPriorityHealth: fc.boolean(),
      balancePercent: fc.constantFrom(0, 120),
    });
    let named = 0;
    fc.assert(
      fc.property(fc.array(anyHost, { maxLength: 9 }), settings, (all, { goesByZone, balancePercent, ...fields }) => {
        const cluster = new BalancedCluster({
          ...fields,
          zoneRouting: goesByZone && !fields.weighsLocalities ? zoneRouting : null,
          hashing: { ...DEFAULT_HASHING, minimumRingSize: 64, maglevTableSize: 251, balancePercent },
        });
        const members = all.map((each, index) => host(`${index}`, { ...each, recordAddress: record }));
        cluster.setHostsIn({ localZones: senders }, ...members);
        cluster.active.push(...members.map((_, index) => index * 3));
        for (let pick = 0; pick < 40; pick += 1) {
          const before = cluster.panics;
          const asked = pick % 2 === 0 ? null : new Criteria([['stage', '"x"']]);
          const name = cluster.pick(requestHash(hashOf(pick), asked));
          if (name === 'none' || cluster.panics > before) continue;
          assert.equal(members[Number(name)]!.healthFlags & (HealthMask.unhealthy | HealthMask.excluded), 0);
          named += 1;
        }
        cluster.close();
      }),
    );
    assert.ok(named > 100, `${named} picks outside panic`);
  });

  test('keep hashes on their hosts, and those of degraded or unhealthy hosts move alone', () => {
    for (const lbPolicy of ['RING_HASH', 'MAGLEV'] as const) {
      // As many entries for each host, however many hosts there are: one.
      const cluster = new BalancedCluster({ lbPolicy, hashing: { ...DEFAULT_HASHING, minimumRingSize: 4 } });
      const names = ['a', 'b', 'c', 'd', 'e'];
      const chosen = (left: string, healthFlags: number): string[] => {
        cluster.setHosts(...names.map((name) => host(name, name === left ? { healthFlags } : {})));
        return Array.from({ length: 2000 }, (_, n) => cluster.pick(requestHash(hashOf(n))));
      };
      const whole = chosen('', 0);
      assert.equal(new Set(whole).size, 5);
      for (const flags of [UNHEALTHY, DEGRADED]) {
        const without = chosen('c', flags);
        assert.ok(!without.includes('c'));
        const moved = whole.filter((name, n) => name !== 'c' && name !== without[n]).length;
        // A ring moves none but those of the host that has left; Maglev a few others.
        assert.ok(moved <= (lbPolicy === 'RING_HASH' ? 0 : 60), `${lbPolicy}: ${moved} moved`);
      }
      cluster.close();
    }
  });

  test('find the host of a hash where another implementation finds it', () => {
    const loopbackHosts = (first: number): NamedHost[] =>
      [0, 1, 2, 3, 4, 5].map((n) => host(`${n}`, { address: { kind: 'ip', ip: '127.0.0.1', port: first + n } }));
    const maglev = new BalancedCluster({ lbPolicy: 'MAGLEV', hashing: { ...DEFAULT_HASHING, maglevTableSize: 7 } });
    maglev.setHosts(...loopbackHosts(90));
    const chosen = Array.from({ length: 14 }, (_, hash) => maglev.pick(requestHash(BigInt(hash))));
    assert.equal(chosen.join(''), '24015032401503');
    const hashing = { ...DEFAULT_HASHING, minimumRingSize: 12, hashFunction: 'MURMUR_HASH_2' } as const;
    const ring = new BalancedCluster({ lbPolicy: 'RING_HASH', hashing }).setHosts(...loopbackHosts(80));
    const entries: readonly (readonly [hash: bigint, name: string])[] = [
      [1358027074129602068n, '5'],
      [4361834613929391114n, '3'],
      [7224494972555149682n, '4'],
      [10150910876324007731n, '2'],
      [17613279263364193813n, '0'],
    ];
    for (const [hash, name] of entries) assert.equal(ring.pick(requestHash(hash)), name);
    assert.equal(ring.pick(requestHash(1358027074129602069n)), '3');
    assert.equal(ring.pick(requestHash(17613279263364193814n)), '5');
  });

  test('place hosts by the key of their metadata, by their names where asked to, else by their addresses', () => {
    const ip = (last: number) => ({ kind: 'ip', ip: `10.0.0.${last}`, port: 80 }) as const;
    const choices = (usesHostname: boolean, ...hosts: readonly NamedHost[]): string => {
      const cluster = new BalancedCluster({ lbPolicy: 'MAGLEV', hashing: { ...DEFAULT_HASHING, usesHostname } });
      cluster.setHosts(...hosts);
      const names = Array.from({ length: 50 }, (_, n) => cluster.pick(requestHash(hashOf(n)))).join('');
      cluster.close();
      return names;
    };
    const keyed = (first: number): string =>
      choices(
        false,
        host('a', { address: ip(first), hashKey: 'x' }),
        host('b', { address: ip(first + 1), hashKey: 'y' }),
      );
    assert.equal(keyed(1), keyed(7));
    const named = (isUsed: boolean, first: number): string =>
      choices(
        isUsed,
        host('a', { address: ip(first), hostname: 'x' }),
        host('b', { address: ip(first + 1), hostname: 'y' }),
      );
    assert.equal(named(true, 1), named(true, 7));
    assert.equal(named(true, 1), keyed(1));
    assert.notEqual(named(false, 1), named(false, 7));
    assert.notEqual(named(false, 1), named(true, 1));
  });

  test('choose the priority of a hash by the hash itself', () => {
    const cluster = new BalancedCluster({ lbPolicy: 'RING_HASH' });
    cluster.setHosts(host('a'), ill('x'), host('next', { priority: 1 }));
    // Of a hundred, 70 go to the first priority: those that leave 0 to 69.
    for (const base of [0n, 100n, 18446744073709551600n]) {
      for (let rest = 0n; rest < 16n; rest += 1n) {
        const hash = base + rest;
        assert.equal(cluster.pick(requestHash(hash)), hash % 100n < 70n ? 'a' : 'next', `${hash}`);
      }
    }
    assert.equal(cluster.pick(requestHash(69n)), 'a');
    assert.equal(cluster.pick(requestHash(70n)), 'next');
  });

  test('have all hosts on the table in panic, and count it', () => {
    const cluster = new BalancedCluster({ lbPolicy: 'MAGLEV' }).setHosts(host('a'), ill('b'), ill('c'));
    const names = new Set(Array.from({ length: 200 }, (_, n) => cluster.pick(requestHash(hashOf(n)))));
    assert.equal(names.size, 3);
    assert.equal(cluster.panics, 200);
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
    assert.equal(
      kindOf({ ...least, leastRequest: { ...BALANCING.leastRequest, activeRequestBias: -3 } }, [1, 1]),
      'schedule',
    );
    assert.equal(kindOf(least, [1]), 'cycle');
    assert.equal(kindOf({}, [1, 5]), 'schedule');
    assert.equal(kindOf({}, [2, 2]), 'cycle');
    assert.equal(kindOf({ lbPolicy: 'RANDOM' }, [1, 5]), 'random');
  });

  test('compare all hosts where asked to, or as many as are asked for', () => {
    const records = [3, 1, 2].map((active) => {
      const recordAddress = lb.owner.recordAllocator.allocateHost(1);
      lb.owner.shared.records.addActiveRequests(recordAddress, active);
      return recordAddress;
    });
    const members = records.map((recordAddress, index) => host(`${index}`, { recordAddress }));
    const least = (fields: Partial<typeof BALANCING.leastRequest>): Record<string, number> =>
      new BalancedCluster({ lbPolicy: 'LEAST_REQUEST', leastRequest: { ...BALANCING.leastRequest, ...fields } })
        .setHosts(...members)
        .shares(500);
    assert.deepEqual(least({ comparesAll: true }), { 1: 500 });
    assert.ok(least({})[2]! > 0);
    // Of so many draws none misses a host, but once in 10^33 times.
    assert.deepEqual(least({ choiceCount: 1000 }), { 1: 500 });
  });

  test('weigh requests in flight by the bias where one is asked for', () => {
    const [idle, busy] = [0, 3].map((active) => {
      const recordAddress = lb.owner.recordAllocator.allocateHost(1);
      lb.owner.shared.records.addActiveRequests(recordAddress, active);
      return host(active === 0 ? 'idle' : 'busy', { recordAddress });
    });
    const shares = (activeRequestBias: number, comparesAll: boolean): Record<string, number> =>
      new BalancedCluster({
        lbPolicy: 'LEAST_REQUEST',
        leastRequest: { ...BALANCING.leastRequest, activeRequestBias, comparesAll },
      })
        .setHosts(idle!, busy!)
        .shares(340);
    for (const comparesAll of [false, true]) {
      assert.deepEqual(shares(0, comparesAll), { idle: 170, busy: 170 });
      assert.deepEqual(shares(2, comparesAll), { idle: 320, busy: 20 });
      // A negative one would prefer busy hosts.
      for (const bias of [1, -1, -0.001]) assert.deepEqual(shares(bias, comparesAll), { idle: 272, busy: 68 });
    }
  });

  test('are refused for a policy that has no balancer', () => {
    const settings = { ...BALANCING, lbPolicy: 'NO_SUCH_POLICY' as 'RANDOM' };
    assert.throws(() => new HostLists(lb.tables, settings, [host('a'), host('b')]), { code: 'WEIR_LB_POLICY' });
  });

  test('give all their memory back, and leave none behind when there is too little', () => {
    const { owner, tables } = openLb({ workerCount: 1, maxBytes: 1024 * 1024 });
    const members = Array.from({ length: 100 }, (_, index) => host(`${index}`, { weight: index + 1 }));
    const before = owner.heap.usedBytes;
    const lists = new HostLists(tables, BALANCING, [...members, ill('x'), host('next', { priority: 1 })]);
    assert.ok(owner.heap.usedBytes > before);
    owner.reclaimer.collect(() => lists.retire())();
    assert.equal(owner.heap.usedBytes, before);
    for (const fields of [{ lbPolicy: 'RING_HASH' }, { lbPolicy: 'MAGLEV' }, { weighsLocalities: true }] as const) {
      const located = members.map((member) => ({ ...member, localityWeight: 1 }));
      const others = new HostLists(tables, { ...BALANCING, ...fields }, located);
      owner.reclaimer.collect(() => others.retire())();
      assert.equal(owner.heap.usedBytes, before);
    }
    const many = Array.from({ length: 20_000 }, (_, index) => host(`${index}`, { weight: (index % 9) + 1 }));
    assert.throws(() => new HostLists(tables, BALANCING, [...many, host('next', { priority: 1 })]), {
      code: 'WEIR_SHARED_MEMORY_FULL',
    });
    assert.equal(owner.heap.usedBytes, before);
    // The list of the first priority has been built by then.
    const next = many.map((member) => ({ ...member, priority: 1 }));
    assert.throws(() => new HostLists(tables, BALANCING, [...members, ...next]), { code: 'WEIR_SHARED_MEMORY_FULL' });
    assert.equal(owner.heap.usedBytes, before);
  });
});
