// The members of one cluster over its updates: what changes of them is shown and counted, what stays is left alone.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { serialize } from 'node:v8';
import { RuntimeValues } from '../../../../src/base/runtime.ts';
import { ActiveCluster } from '../../../../src/control-plane/cluster-manager/active-cluster.ts';
import type { HostSettings, HostsUpdate } from '../../../../src/snapshot/index.ts';
import { HealthFlag } from '../../../../src/wasm/shared-memory.ts';
import { clusterNamed, clusterSettings, type JsonObject } from '../../../support/bootstrap.ts';
import { hostSettings, NO_LOCAL_CLUSTER } from '../../../support/clusters.ts';
import { lbTables } from '../../../support/lb.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { listing, type StatsFixture, statsFixture } from '../../../support/stats.ts';

interface Opened extends StatsFixture {
  readonly cluster: ActiveCluster;
  /** The member of the configuration, at another port and otherwise as asked for. */
  readonly at: (port: number, fields?: Partial<HostSettings>) => HostSettings;
  readonly value: (stat: string) => number | undefined;
  /** Takes over the members and gives back what that frees. @returns whether anything has changed. */
  readonly update: (...members: HostSettings[]) => boolean;
}

function open(fields: JsonObject = {}, addedViaApi = false): Opened {
  const fixture = statsFixture({ workerCount: 2 });
  const { owner, store } = fixture;
  const settings = clusterSettings(clusterNamed('web', fields));
  const cluster = new ActiveCluster(settings, addedViaApi, {
    stats: store,
    memory: owner,
    tables: lbTables(owner),
    runtime: new RuntimeValues(),
    clock: new ManualClock(),
    local: NO_LOCAL_CLUSTER,
  });
  return {
    ...fixture,
    cluster,
    at: (port, changes = {}) => ({
      ...settings.hosts[0]!,
      address: { kind: 'ip', ip: '127.0.0.1', port },
      ...changes,
    }),
    value: (stat) => store.value(`cluster.web.${stat}`),
    update: (...members) => {
      const free = cluster.setMembers(members);
      free?.();
      return free !== undefined;
    },
  };
}

function portsOf(cluster: ActiveCluster): number[] {
  return cluster.hosts().map(({ address }) => (address.kind === 'ip' ? address.port : 0));
}

describe('an update of members', () => {
  it('that says what is known already changes nothing', () => {
    const { cluster, at, update, value } = open();
    assert.equal(update(at(1), at(2)), true);
    const { snapshot } = cluster;
    assert.equal(update(at(1), at(2)), false);
    assert.equal(cluster.snapshot, snapshot);
    assert.equal(value('membership_change'), 1);
  });

  it('is a change of membership where members come or go, not where they change', () => {
    const { at, update, value } = open();
    const steps: readonly (readonly [HostSettings[], number])[] = [
      [[at(1), at(2)], 1],
      [[at(1, { weight: 7 }), at(2)], 1],
      [[at(1, { weight: 7, health: 'degraded' }), at(2)], 1],
      [[at(2)], 2],
      [[at(2), at(3)], 3],
      [[at(4)], 4],
      [[], 5],
    ];
    for (const [members, changes] of steps) {
      assert.equal(update(...members), true);
      assert.equal(value('membership_change'), changes);
      assert.equal(value('membership_total'), members.length);
    }
  });

  it('tells of weight, health, priority and everything else that has changed of a member', () => {
    const { cluster, owner, at, update } = open();
    update(at(1));
    const [host] = cluster.hosts();
    const changes: Partial<HostSettings>[] = [
      { weight: 5 },
      { health: 'unhealthy' },
      { priority: 1 },
      { canary: true },
      { hostname: 'a' },
    ];
    let fields: Partial<HostSettings> = {};
    for (const change of changes) {
      fields = { ...fields, ...change };
      assert.equal(update(at(1, fields)), true, Object.keys(change).join());
      const [now] = cluster.hosts();
      assert.equal(now, host, 'it is the same host');
      assert.deepEqual({ ...cluster.snapshot.hosts[0], ...change }, cluster.snapshot.hosts[0]);
    }
    const { weight, healthFlags, priority, canary, hostname } = host!;
    assert.deepEqual(
      { weight, healthFlags, priority, canary, hostname },
      { weight: 5, healthFlags: HealthFlag.failedEdsHealth, priority: 1, canary: true, hostname: 'a' },
    );
    assert.equal(owner.shared.records.weight(host!.recordAddress), 5);
  });

  it('takes the flags of a former health away', () => {
    const { cluster, at, update } = open();
    const flagsOf = (health: HostSettings['health']): number => {
      update(at(1, { health }));
      return cluster.hosts()[0]!.healthFlags;
    };
    assert.equal(flagsOf('draining'), HealthFlag.failedEdsHealth | HealthFlag.edsStatusDraining);
    assert.equal(flagsOf('unhealthy'), HealthFlag.failedEdsHealth);
    assert.equal(flagsOf('degraded'), HealthFlag.degradedEdsHealth);
    assert.equal(flagsOf('healthy'), 0);
  });

  it('makes another host of an address that moves to another locality', () => {
    const { cluster, at, update, value } = open();
    const locality = { region: 'eu', zone: 'a', subZone: '1' };
    for (const moved of [
      { ...locality, region: 'us' },
      { ...locality, zone: 'b' },
      { ...locality, subZone: '2' },
    ]) {
      update(at(1, { locality }));
      const before = cluster.hosts()[0]!;
      const changes = value('membership_change')!;
      update(at(1, { locality: moved }));
      assert.notEqual(cluster.hosts()[0], before);
      assert.deepEqual(cluster.hosts()[0]!.locality, moved);
      assert.equal(value('membership_change'), changes + 1);
    }
  });

  it('gives everything back that the members before it had', () => {
    const { cluster, owner, at, update } = open();
    update(at(1), at(2), at(3));
    update();
    owner.reclaimer.reclaim(owner.reclaimer.mark());
    const used = owner.cells.usedCells;
    const addresses = new Set<number>();
    for (let n = 0; n < 50; n++) {
      update(at(1, { weight: n + 1 }), at(2), at(3));
      addresses.add(cluster.snapshot.hostLists);
      for (const { recordAddress } of cluster.snapshot.hosts) addresses.add(recordAddress);
      update();
      addresses.add(cluster.snapshot.hostLists);
    }
    assert.equal(owner.cells.usedCells, used);
    assert.equal(owner.reclaimer.waitingCount, 0);
    assert.ok(addresses.size <= 12, `${addresses.size} places were used`);
  });
});

describe('the view of a cluster', () => {
  it('counts members by their health, and knows the heaviest', () => {
    const { at, update, value } = open();
    update(
      at(1, { weight: 3 }),
      at(2, { weight: 9 }),
      at(3, { health: 'degraded' }),
      at(4, { health: 'degraded' }),
      at(5, { health: 'degraded', weight: 4 }),
      at(6, { health: 'unhealthy' }),
      at(7, { health: 'draining' }),
    );
    const counts = ['total', 'healthy', 'degraded', 'excluded'].map((name) => value(`membership_${name}`));
    assert.deepEqual([...counts, value('max_host_weight')], [7, 2, 3, 1, 9]);
    update();
    assert.deepEqual(
      ['total', 'healthy', 'degraded', 'excluded'].map((name) => value(`membership_${name}`)),
      [0, 0, 0, 0],
    );
    assert.equal(value('max_host_weight'), 0);
  });

  it('counts nobody as degraded who is out of service', () => {
    const { cluster, at, update, value } = open();
    update(at(1, { health: 'degraded' }), at(2, { health: 'degraded' }));
    cluster.hosts()[0]!.setHealthFlags(HealthFlag.failedActiveHealthCheck, true);
    cluster.refreshHealth();
    assert.deepEqual([value('membership_healthy'), value('membership_degraded')], [0, 1]);
  });

  it('lists members by priority, those of one priority in the order of the update', () => {
    const { cluster, at, update } = open();
    update(at(1, { priority: 1 }), at(2), at(3, { priority: 2 }), at(4), at(5, { priority: 1 }));
    assert.deepEqual(portsOf(cluster), [2, 4, 1, 5, 3]);
  });

  it('knows its names, its limits and where it comes from', () => {
    const breakers = { thresholds: [{ max_connections: 7 }] };
    const { cluster } = open({ circuit_breakers: breakers, alt_stat_name: 'other' });
    assert.equal(cluster.name, 'web');
    assert.equal(cluster.observabilityName, 'other');
    assert.equal(cluster.circuitBreakers.default.maxConnections, 7);
    assert.equal(cluster.addedViaApi, false);
    assert.equal(open({}, true).cluster.addedViaApi, true);
    assert.equal(cluster.edsServiceName, '');
  });

  it('reads what has been counted for it, and how long requests took', async () => {
    const { cluster, store } = open();
    cluster.stats.add('upstream_cx_total', 3);
    assert.deepEqual([cluster.counted('upstream_cx_total'), cluster.counted('nothing')], [3, 0]);
    cluster.stats.record('upstream_rq_time', 7);
    await store.mergeHistograms();
    assert.equal(cluster.requestTimes.count('cumulative'), 1);
  });

  it('says how busy it is', () => {
    const { cluster, at, update } = open({ circuit_breakers: { thresholds: [{ max_requests: 7 }] } });
    update(at(1), at(2), at(3, { health: 'unhealthy' }));
    const counts = {
      upstream_cx_overflow: 1,
      upstream_rq_pending_overflow: 2,
      upstream_rq_retry_overflow: 4,
      upstream_rq_active: 5,
      upstream_cx_active: 6,
    } as const;
    for (const [name, count] of Object.entries(counts)) cluster.stats.add(name as keyof typeof counts, count);
    assert.deepEqual(cluster.use(), {
      overflows: 7,
      members: 3,
      membersHealthy: 2,
      membersDegraded: 0,
      activeRequests: 5,
      activeConnections: 6,
    });
    const breakers = cluster.breakers();
    assert.ok(breakers.some(({ limit }) => limit === 7));
    assert.ok(breakers.every(({ used }) => used === 0));
  });

  it('shows what remains below those limits that ask for it', async () => {
    const remaining = async (...thresholds: JsonObject[]): Promise<string[]> => {
      const { store, cluster } = open({ circuit_breakers: { thresholds } });
      cluster.show();
      const lines = (await listing(store)).filter((line) => line.includes('.remaining_'));
      return [...new Set(lines.map((line) => line.split('.')[3]!))];
    };
    assert.deepEqual(await remaining({}), []);
    assert.deepEqual(await remaining({ track_remaining: true }, { priority: 'HIGH' }), ['default']);
    assert.deepEqual(await remaining({}, { priority: 'HIGH', track_remaining: true }), ['high']);
  });

  it('does not show what remains below its limits', async () => {
    const { store } = open();
    assert.deepEqual(
      (await listing(store)).filter((line) => line.includes('remaining')),
      [],
    );
  });

  it('adds up what all workers have counted for a host', () => {
    const { cluster, workers, at, update } = open();
    update(at(1), at(2));
    const { statBlock } = cluster.snapshot.hosts[1]!;
    for (const { stats } of workers) stats.values[stats.base(statBlock)]! += 3;
    const [idle, busy] = cluster
      .hosts()
      .map(({ stats }) => Object.values(stats).reduce((sum, count) => sum + count, 0));
    assert.deepEqual([idle, busy], [0, 6]);
    assert.deepEqual([cluster.hosts()[0]!.successRate, cluster.hosts()[0]!.localOriginSuccessRate], [-1, -1]);
  });

  it('tells in which order its members are where that has changed', () => {
    const { cluster, at, update } = open();
    const told = (...members: HostSettings[]): (number | undefined)[] | null => {
      update(...members);
      const { order } = cluster.takeUpdate();
      const ports = new Map(cluster.hosts().map(({ recordAddress, address }) => [recordAddress, address]));
      return order?.map((record) => (ports.get(record) as { port: number }).port) ?? null;
    };
    assert.deepEqual(told(at(1), at(2), at(3)), [1, 2, 3]);
    assert.equal(told(at(1), at(2, { weight: 2 }), at(3)), null);
    assert.deepEqual(told(at(1), at(4), at(3)), [1, 4, 3]);
    assert.deepEqual(told(at(1), at(4)), [1, 4]);
    assert.deepEqual(told(at(4), at(1, { weight: 2 })), [4, 1]);
  });

  it('gives back the lists that changes of health have made needless', () => {
    const { cluster, owner, at, update } = open();
    update(at(1), at(2));
    const { usedBytes } = owner.heap;
    for (let times = 0; times < 10; times++) cluster.refreshHealth()();
    assert.equal(owner.heap.usedBytes, usedBytes);
  });

  it('says of one that has changed among ten thousand nothing of the others', () => {
    const { cluster, at, update } = open();
    const MANY = 10_000;
    const members = Array.from({ length: MANY }, (_, index) => at(index + 1));
    update(...members);
    const whole = cluster.takeUpdate();
    assert.deepEqual([whole.order?.length, whole.hosts.length], [MANY, MANY]);
    const { recordAddress } = cluster.hosts()[7]!;
    const bytes = (told: HostsUpdate): number => serialize({ type: 'hosts', generation: 1, update: told }).byteLength;
    cluster.hosts()[7]!.setHealthFlags(HealthFlag.failedActiveHealthCheck, true);
    cluster.refreshHealth();
    const ill = cluster.takeUpdate();
    const { hostLists } = cluster.snapshot;
    assert.deepEqual(ill, {
      cluster: 'web',
      hostLists,
      order: null,
      hosts: [],
      health: [recordAddress],
      amendment: null,
    });
    assert.ok(bytes(ill) < 1000);
    update(...members.with(7, at(8, { weight: 9 })));
    const heavy = cluster.takeUpdate();
    assert.deepEqual([heavy.order, heavy.hosts.map(({ weight }) => weight), heavy.health], [null, [9], []]);
    assert.ok(bytes(heavy) < 1000, `${bytes(heavy)} bytes`);
    assert.deepEqual(cluster.takeUpdate().hosts, []);
    // Back before anybody was told: a worker may have asked meanwhile to leave it out.
    for (const isSet of [false, true]) cluster.hosts()[7]!.setHealthFlags(HealthFlag.failedActiveHealthCheck, isSet);
    assert.deepEqual(cluster.takeUpdate().health, [recordAddress]);
  });
});

describe('members on demand', () => {
  const ON_DEMAND = { type: 'ORIGINAL_DST', lb_policy: 'CLUSTER_PROVIDED' };

  function demanded(fields: JsonObject = {}) {
    const fixture = statsFixture({ workerCount: 1 });
    const { owner, store } = fixture;
    const cluster = new ActiveCluster(clusterSettings({ name: 'web', ...ON_DEMAND, ...fields }), false, {
      stats: store,
      memory: owner,
      tables: lbTables(owner),
      runtime: new RuntimeValues(),
      clock: new ManualClock(),
      local: NO_LOCAL_CLUSTER,
    });
    const value = (stat: string) => store.value(`cluster.web.${stat}`);
    return { cluster, value, records: owner.shared.records };
  }

  const memberAt = (port: number): HostSettings => hostSettings({ kind: 'ip', ip: '127.0.0.1', port });

  it('are told of one by one, counted, and listed for who asks', () => {
    const { cluster, value } = demanded();
    const { snapshot } = cluster;
    assert.equal(cluster.snapshot, snapshot);
    const [first, second] = [cluster.addMember(memberAt(1)), cluster.addMember(memberAt(2))];
    const told = cluster.amendment([first, second], []);
    assert.deepEqual(
      [told.order, told.hosts, told.health, told.amendment],
      [null, [], [], { joined: [first.snapshot, second.snapshot], gone: [] }],
    );
    assert.deepEqual(
      ['membership_total', 'membership_healthy', 'membership_change', 'max_host_weight'].map(value),
      [2, 2, 2, 1],
    );
    assert.deepEqual(cluster.snapshot.hosts, [first.snapshot, second.snapshot]);
    cluster.removeMembers([first])();
    assert.deepEqual(cluster.amendment([], [first]).amendment, { joined: [], gone: [first.recordAddress] });
    assert.deepEqual(cluster.snapshot.hosts, [second.snapshot]);
    assert.deepEqual(['membership_total', 'membership_healthy', 'membership_change'].map(value), [1, 1, 3]);
    // Their updates tell of health alone.
    second.setHealthFlags(HealthFlag.failedOutlierCheck, true);
    cluster.refreshHealth()();
    const ill = cluster.takeUpdate();
    assert.deepEqual([ill.order, ill.hosts, ill.health, ill.amendment], [null, [], [second.recordAddress], null]);
    assert.equal(value('membership_healthy'), 0);
  });

  it('serve before their first check, and are noted when they were wanted in vain', () => {
    const health_checks = [
      { timeout: '1s', interval: '1s', unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {} },
    ];
    const { cluster, records } = demanded({ health_checks });
    const host = cluster.addMember(memberAt(1));
    assert.equal(host.healthFlags, 0);
    assert.equal(host.takeWanted(), false);
    records.noteWanted(host.recordAddress);
    records.noteWanted(host.recordAddress);
    assert.deepEqual([host.takeWanted(), host.takeWanted()], [true, false]);
  });
});
