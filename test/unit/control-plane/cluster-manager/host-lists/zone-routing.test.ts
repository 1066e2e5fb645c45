// Requests that prefer the locality of this proxy, as far as its hosts can take what the proxies there send.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { BalancingSettings } from '../../../../../src/control-plane/cluster-manager/host-lists/host-lists.ts';
import {
  isRouted,
  type LocalZones,
  routeByZone,
} from '../../../../../src/control-plane/cluster-manager/host-lists/zone-routing.ts';
import type { Locality, ZoneRoutingSettings } from '../../../../../src/snapshot/index.ts';
import { HealthFlag } from '../../../../../src/wasm/shared-memory.ts';
import { BalancedCluster, host, type NamedHost } from '../../../../support/host-lists.ts';

const ILL = HealthFlag.failedActiveHealthCheck;
const DEGRADED = HealthFlag.degradedEdsHealth;
const ROUTING: ZoneRoutingSettings = {
  enabledPercent: 100,
  minClusterSize: 6,
  forcedFrom: null,
  goesByWeight: false,
};

function zone(name: string): Locality {
  return { region: 'r', zone: name, subZone: '' };
}

/** So many hosts in each zone, named by it. */
function fleet(counts: Readonly<Record<string, number>>, fields: Partial<NamedHost> = {}): NamedHost[] {
  return Object.entries(counts).flatMap(([name, count]) =>
    Array.from({ length: count }, () => host(name, { locality: zone(name), ...fields })),
  );
}

/** The proxy is in zone a. */
function proxies(counts: Readonly<Record<string, number>>, isPanic = false): LocalZones {
  return { locality: zone('a'), hosts: fleet(counts), isPanic };
}

function open(
  hosts: readonly NamedHost[],
  localZones: LocalZones,
  routing: Partial<ZoneRoutingSettings> = {},
  settings: Partial<BalancingSettings> = {},
): BalancedCluster {
  const cluster = new BalancedCluster({ zoneRouting: { ...ROUTING, ...routing }, ...settings });
  return cluster.setHostsIn({ localZones }, ...hosts);
}

function route(hosts: readonly NamedHost[], zones: LocalZones, settings: Partial<ZoneRoutingSettings> = {}) {
  return routeByZone(hosts, [...hosts.keys()], zones, { ...ROUTING, ...settings });
}

describe('zones', () => {
  test('share requests out as the reference does', () => {
    const cases = [
      // As much can be taken as is sent.
      { hosts: { a: 2, b: 2, c: 2 }, from: { a: 1, b: 1, c: 1 }, isDirect: true, localShare: 10_000, upTo: [0, 0, 0] },
      { hosts: { a: 4, b: 2 }, from: { a: 1, b: 1 }, isDirect: true, localShare: 13_332, upTo: [0, 0] },
      // Half of what is sent comes from a, a third can be taken there.
      {
        hosts: { a: 2, b: 2, c: 2 },
        from: { a: 2, b: 1, c: 1 },
        isDirect: false,
        localShare: 6666,
        upTo: [0, 833, 1666],
      },
      {
        hosts: { a: 1, b: 4, c: 5 },
        from: { a: 3, b: 1, c: 1 },
        isDirect: false,
        localShare: 1666,
        upTo: [0, 2000, 5000],
      },
      // Nobody takes anything in a.
      { hosts: { b: 3, c: 3 }, from: { a: 1, b: 1 }, isDirect: false, localShare: 0, upTo: [0, 5000] },
    ];
    for (const { hosts, from, ...expected } of cases) {
      const routes = route(fleet(hosts), proxies(from));
      assert.ok(typeof routes === 'object' && routes !== null);
      const { localities, ...numbers } = routes;
      assert.deepEqual(numbers, expected);
      assert.equal(localities[0]!.locality.zone, Object.keys(hosts)[0]);
    }
  });

  test('have that of the proxy first, whichever comes first', () => {
    const zones = { ...proxies({ c: 1, b: 2, a: 1 }), locality: zone('b') };
    const routes = route(fleet({ c: 2, a: 2, b: 2 }), zones);
    assert.ok(isRouted(routes));
    assert.deepEqual(
      routes.localities.map(({ locality }) => locality.zone),
      ['b', 'a', 'c'],
    );
    assert.deepEqual([routes.localShare, routes.upTo], [6666, [0, 833, 1666]]);
  });

  test('share nothing out where hosts are refused to, or never asked for', () => {
    for (const refusal of [null, undefined, 'lb_local_cluster_not_ok'] as const) assert.equal(isRouted(refusal), false);
  });

  test('without available hosts or proxies take nothing, or send nothing', () => {
    const ill = (name: string): NamedHost[] => fleet({ [name]: 1 }, { healthFlags: ILL });
    const numbers = (hosts: readonly NamedHost[], senders: readonly NamedHost[], routing = {}): object => {
      const zones = { locality: zone('a'), hosts: senders, isPanic: false };
      const routes = route(hosts, zones, { minClusterSize: 0, ...routing });
      assert.ok(typeof routes === 'object' && routes !== null);
      const { localities: _, ...rest } = routes;
      return rest;
    };
    const others = fleet({ b: 1, c: 1 });
    const full = { isDirect: false, localShare: 0, upTo: [0, 0, 0] };
    assert.deepEqual(numbers([...ill('a'), ...others], [...ill('a'), ...others]), full);
    assert.deepEqual(numbers([...ill('a'), ...others], [...ill('a'), ...others], { forcedFrom: 0 }), full);
    assert.deepEqual(numbers(fleet({ a: 1, b: 1, c: 1 }), [...ill('a'), ...ill('b')]), {
      isDirect: true,
      localShare: 0,
      upTo: [0, 3333, 6666],
    });
  });

  test('count weights where asked to', () => {
    const hosts = [...fleet({ a: 2 }, { weight: 4 }), ...fleet({ b: 4 })];
    const from = proxies({ a: 2, b: 1 });
    const counted = route(hosts, from);
    assert.ok(typeof counted === 'object' && counted?.isDirect === false);
    const weighed = route(hosts, from, { goesByWeight: true });
    assert.ok(typeof weighed === 'object' && weighed?.isDirect === true);
  });

  test('need hosts and proxies in two of them, the own among those, and hosts enough', () => {
    assert.equal(route(fleet({ a: 9 }), proxies({ a: 1, b: 1 })), null);
    assert.equal(route([...fleet({ a: 9 }), ...fleet({ b: 1 }, { healthFlags: ILL })], proxies({ a: 1, b: 1 })), null);
    assert.equal(route(fleet({ a: 3, b: 3 }), proxies({ a: 2 })), null);
    assert.equal(route(fleet({ a: 3, b: 3 }), proxies({ b: 2, c: 2 })), 'lb_local_cluster_not_ok');
    assert.equal(route(fleet({ a: 3, b: 2 }), proxies({ a: 2, b: 2 })), 'lb_zone_cluster_too_small');
    assert.equal(typeof route(fleet({ a: 3, b: 2 }), proxies({ a: 2, b: 2 }), { minClusterSize: 5 }), 'object');
  });

  test('send all requests to the own one where so many hosts are enough', () => {
    const from = proxies({ a: 9, b: 1 });
    for (const [forcedFrom, isDirect] of [
      [2, true],
      [3, false],
    ] as const) {
      const routes = route(fleet({ a: 2, b: 4 }), from, { forcedFrom });
      assert.ok(typeof routes === 'object' && routes?.isDirect === isDirect);
    }
    const alone = route(fleet({ a: 2, b: 4 }), proxies({ a: 9 }), { forcedFrom: 1 });
    assert.ok(typeof alone === 'object' && alone?.isDirect === true);
  });

  test('never give others more than they have room for, nor the own one more than all', () => {
    const counts = fc.record({ a: fc.nat(5), b: fc.nat(5), c: fc.nat(5) });
    fc.assert(
      fc.property(counts, counts, (hosts, from) => {
        const routes = route(fleet(hosts), proxies(from), { minClusterSize: 0 });
        if (typeof routes !== 'object' || routes === null) return;
        const total = hosts.a + hosts.b + hosts.c;
        let former = 0;
        for (const [at, { locality }] of routes.localities.entries()) {
          const room: number = routes.upTo[at]! - former;
          former = routes.upTo[at]!;
          const name = locality.zone as keyof typeof hosts;
          assert.ok(room >= 0 && room <= (10_000 * hosts[name]) / total);
        }
        if (!routes.isDirect) assert.ok(routes.localShare < 10_000 || former === 0);
      }),
    );
  });
});

describe('picks by zone', () => {
  test('stay where they are when the hosts there can take all', () => {
    const cluster = open(fleet({ a: 2, b: 4 }), proxies({ a: 1, b: 4 }));
    assert.deepEqual(cluster.shares(200), { a: 200 });
    assert.deepEqual(cluster.counts, { lb_zone_routing_all_directly: 200 });
    assert.deepEqual(cluster.zoneEvents, ['lb_recalculate_zone_structures']);
  });

  test('go elsewhere with what the hosts there cannot take', () => {
    const cluster = open(fleet({ a: 2, b: 2, c: 2 }), proxies({ a: 2, b: 1, c: 1 }));
    const { a = 0, b = 0, c = 0 } = cluster.shares(10_000);
    assert.ok(Math.abs(a - 6666) < 250 && Math.abs(b - 1667) < 250 && Math.abs(c - 1667) < 250, `${a} ${b} ${c}`);
    assert.deepEqual(cluster.counts, { lb_zone_routing_sampled: a, lb_zone_routing_cross_zone: b + c });
  });

  test('go anywhere when nobody has room', () => {
    // A host more in a than proxies there, but none of them healthy; b takes just what b sends.
    const hosts = [...fleet({ b: 3, c: 3 })];
    const cluster = open(hosts, proxies({ a: 0, b: 3, c: 3 }), {}, {});
    assert.deepEqual(cluster.zoneEvents, ['lb_recalculate_zone_structures', 'lb_local_cluster_not_ok']);
    // Rounding leaves nothing: three localities of a third each, and no host in the own one.
    const full = open(fleet({ b: 3, c: 3 }), {
      locality: zone('a'),
      hosts: [...fleet({ b: 3, c: 3 }), ...fleet({ a: 1 }, { healthFlags: ILL })],
      isPanic: false,
    });
    const { b = 0, c = 0 } = full.shares(1000);
    assert.ok(b > 400 && c > 400);
    assert.deepEqual(full.counts, { lb_zone_routing_cross_zone: 1000, lb_zone_no_capacity_left: 1000 });
  });

  test('do not go by zone beyond the enabled share, or when the local cluster is in panic', () => {
    const hosts = fleet({ a: 2, b: 4 });
    const half = open(hosts, proxies({ a: 1, b: 4 }));
    half.zoneRouting.value = { numerator: 50, denominator: 100 };
    const { a = 0, b = 0 } = half.shares(6000);
    assert.ok(Math.abs(a - 4000) < 250 && Math.abs(b - 2000) < 250, `${a} and ${b}`);
    const panicking = open(hosts, proxies({ a: 1, b: 4 }, true));
    assert.deepEqual(panicking.shares(600), { a: 200, b: 400 });
    assert.deepEqual(panicking.counts, { lb_local_cluster_not_ok: 600 });
    const failing = open(hosts, proxies({ a: 1, b: 4 }, true), {}, { failsTrafficOnPanic: true });
    assert.deepEqual(failing.shares(10), { none: 10 });
  });

  test('take in degraded hosts by zone as well, but neither other priorities nor panic', () => {
    const slow = fleet({ a: 1, b: 1 }, { healthFlags: DEGRADED, name: 'slow' });
    const cluster = open([...fleet({ a: 1, b: 1 }), ...slow], proxies({ a: 1, b: 1 }), { minClusterSize: 2 });
    const { a = 0, b = 0, slow: degraded = 0 } = cluster.shares(2000);
    assert.equal(b, 0);
    assert.ok(Math.abs(a - 1400) < 120 && Math.abs(degraded - 600) < 120, `${a} and ${degraded}`);
    // For both at once.
    assert.deepEqual(cluster.zoneEvents, ['lb_recalculate_zone_structures']);
    const spare = open(
      [...fleet({ a: 1, b: 1 }, { healthFlags: ILL }), ...fleet({ c: 3, d: 3 }, { priority: 1 })],
      proxies({ a: 1, c: 1 }),
    );
    assert.deepEqual(spare.counts, {});
    spare.shares(10);
    assert.deepEqual(spare.counts, {});
    const panic = open([...fleet({ a: 1, b: 1 }), ...fleet({ a: 3 }, { healthFlags: ILL })], proxies({ a: 1, b: 1 }));
    assert.equal(panic.shares(100).b! > 0, true);
    assert.deepEqual(panic.counts, { lb_healthy_panic: 100 });
  });

  test('are none where localities are weighed, hashes decide, or nobody says who sends', () => {
    const hosts = fleet({ a: 2, b: 4 });
    const from = proxies({ a: 1, b: 4 });
    for (const settings of [{ zoneRouting: null, weighsLocalities: true }, { lbPolicy: 'MAGLEV' as const }]) {
      const cluster = open(hosts, from, {}, settings);
      cluster.shares(10);
      assert.deepEqual([cluster.counts, cluster.zoneEvents], [{}, []]);
    }
    const alone = new BalancedCluster({ zoneRouting: ROUTING }).setHosts(...hosts);
    assert.deepEqual(alone.shares(6), { a: 2, b: 4 });
  });
});
