// Members that come and go on the main thread: what is kept, what is published, what is given back.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WeirError } from '../../../../src/base/errors.ts';
import { RuntimeValues } from '../../../../src/base/runtime.ts';
import { ClusterManager } from '../../../../src/control-plane/cluster-manager/cluster-manager.ts';
import { DnsResolvers } from '../../../../src/control-plane/dns/resolvers.ts';
import { UpdateConfirmations } from '../../../../src/control-plane/workers/update-confirmations.ts';
import { Loggers } from '../../../../src/log/index.ts';
import type { ClusterSettings, ClusterSnapshot } from '../../../../src/snapshot/index.ts';
import { readHostLists } from '../../../../src/wasm/lb.ts';
import { clusterNamed, type JsonObject, mustLoad, socketAddress, withClusters } from '../../../support/bootstrap.ts';
import { DnsServer } from '../../../support/dns-server.ts';
import { NO_FAULTS } from '../../../support/faults.ts';
import { lbTables } from '../../../support/lb.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { listing, statsFixture } from '../../../support/stats.ts';
import { NO_DISCOVERY } from '../../../support/subscriptions.ts';

interface Published {
  readonly snapshot: ClusterSnapshot;
  readonly applied: () => void;
}

const REFRESH_MS = 5000;

function dnsCluster(server: DnsServer, fields: JsonObject = {}): ClusterSettings {
  const endpoint = { endpoint: { address: socketAddress('web.test', 80) } };
  const cluster = clusterNamed('web', {
    type: 'STRICT_DNS',
    dns_lookup_family: 'V4_ONLY',
    dns_resolution_config: {
      resolvers: [socketAddress('127.0.0.1', server.port)],
      dns_resolver_options: { no_default_search_domain: true },
    },
    load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints: [endpoint] }] },
    ...fields,
  });
  return mustLoad(withClusters(cluster)).clusters[0]!;
}

class Fixture {
  readonly clock = new ManualClock();
  readonly runtime = new RuntimeValues();
  readonly stats = statsFixture({ workerCount: 2 });
  readonly published: Published[] = [];
  readonly removed: { readonly name: string; readonly applied: () => void }[] = [];
  readonly manager: ClusterManager;
  onPublished: (() => void) | undefined;

  constructor(...clusters: ClusterSettings[]) {
    this.manager = new ClusterManager({
      ...NO_DISCOVERY,
      faults: NO_FAULTS,
      stats: this.stats.store,
      memory: this.stats.owner,
      tables: lbTables(this.stats.owner),
      clock: this.clock,
      random: { u32: () => 0 },
      loggers: new Loggers({ levels: { default: 'off' }, threadId: 0, sink: { write() {} } }),
      workers: {
        publishCluster: (snapshot, applied) => {
          this.published.push({ snapshot, applied });
          this.onPublished?.();
        },
        removeCluster: (name, applied) => this.removed.push({ name, applied }),
        refuseHost: () => {},
        secureCluster: (_name, _changed, applied) => applied(),
        publishHosts: ({ cluster }, applied) => {
          const snapshot = this.manager.snapshots().find(({ settings }) => settings.name === cluster)!;
          this.published.push({ snapshot, applied });
          this.onPublished?.();
        },
      },
      resolvers: new DnsResolvers(this.clock, NO_FAULTS),
      runtime: this.runtime,
      outlierEventLogPath: '',
      headerPrefix: 'x-proxy',
      localCluster: 'proxies',
      locality: { region: '', zone: 'a', subZone: '' },
    });
    for (const cluster of clusters) this.manager.addStatic(cluster);
  }

  value(name: string): number | undefined {
    return this.stats.store.value(name);
  }

  /** Looks up again and waits for the update that it leads to. */
  async nextUpdate(): Promise<Published> {
    const published = new Promise<void>((resolve) => {
      this.onPublished = resolve;
    });
    this.clock.turn(REFRESH_MS);
    await published;
    return this.published.at(-1)!;
  }
}

function ipsOf({ hosts }: ClusterSnapshot): string[] {
  return hosts.map(({ address }) => (address.kind === 'ip' ? address.ip : address.path));
}

describe('the cluster manager', () => {
  it('starts with static members, their configured health, and no wait', async () => {
    const endpoint = (port: number, fields: JsonObject = {}): JsonObject => ({
      endpoint: { address: socketAddress('10.0.0.1', port) },
      ...fields,
    });
    const members = [
      endpoint(1, { load_balancing_weight: 7 }),
      endpoint(2, { health_status: 'UNHEALTHY' }),
      endpoint(3, { health_status: 'DEGRADED' }),
      endpoint(4, { health_status: 'DRAINING' }),
    ];
    const load_assignment = { cluster_name: 'web', endpoints: [{ lb_endpoints: members }] };
    const fixture = new Fixture(mustLoad(withClusters(clusterNamed('web', { load_assignment }))).clusters[0]!);
    const { manager } = fixture;
    assert.equal(manager.snapshots()[0]!.hosts.length, 4);
    await manager.start();
    assert.deepEqual(fixture.published, []);
    assert.deepEqual(
      ['total', 'healthy', 'degraded', 'excluded'].map((name) => fixture.value(`cluster.web.membership_${name}`)),
      [4, 1, 1, 1],
    );
    assert.equal(fixture.value('cluster.web.max_host_weight'), 7);
    assert.equal(fixture.value('cluster.web.membership_change'), 1);
    assert.equal(fixture.value('cluster_manager.warming_clusters'), 0);
    const flags = [...manager.clusters()][0]!.hosts().map((host) => host.healthFlags);
    assert.deepEqual(flags, [0, 0x4, 0x10, 0x204]);
  });

  it('waits for the first answer of a name, unless it is told not to', async () => {
    await using server = await DnsServer.start();
    server.set('web.test', ['10.0.0.1']);
    const waiting = new Fixture(dnsCluster(server));
    const started = waiting.manager.start();
    assert.equal(waiting.value('cluster_manager.warming_clusters'), 1);
    assert.deepEqual(waiting.published, []);
    await started;
    assert.equal(waiting.value('cluster_manager.warming_clusters'), 0);
    assert.deepEqual(ipsOf(waiting.manager.snapshots()[0]!), ['10.0.0.1']);
    waiting.manager.stop();
    const impatient = new Fixture(dnsCluster(server, { wait_for_warm_on_init: false }));
    await impatient.manager.start();
    assert.deepEqual(ipsOf(impatient.manager.snapshots()[0]!), []);
    impatient.manager.stop();
  });

  it('waits for clusters that discovery brings before it is over, for as long as they are wanted', async () => {
    await using server = await DnsServer.start();
    const silent = dnsCluster(server);
    const discovered = Promise.withResolvers<void>();
    const fixture = new Fixture();
    const { manager } = fixture;
    let isWarm = false;
    const started = manager.start(discovered.promise).then(() => {
      isWarm = true;
    });
    await new Promise(setImmediate);
    assert.equal(isWarm, false);
    server.tamper(() => []);
    manager.put(silent, '1');
    manager.put({ ...silent, name: 'gone' }, '1');
    discovered.resolve();
    await new Promise(setImmediate);
    assert.deepEqual([isWarm, fixture.value('cluster_manager.warming_clusters')], [false, 2]);
    manager.remove('web');
    await new Promise(setImmediate);
    assert.equal(isWarm, false);
    manager.remove('gone');
    await started;
    assert.equal(fixture.value('cluster_manager.warming_clusters'), 0);
    manager.stop();
  });

  it('counts clusters that are not warm for as long as they are there', async () => {
    await using server = await DnsServer.start();
    server.tamper(() => []);
    const cold = dnsCluster(server, { wait_for_warm_on_init: false });
    const fixture = new Fixture(cold, { ...cold, name: 'other' });
    const { manager } = fixture;
    await manager.start();
    assert.equal(fixture.value('cluster_manager.warming_clusters'), 2);
    manager.remove('other', false);
    assert.equal(fixture.value('cluster_manager.warming_clusters'), 1);
    manager.put(mustLoad(withClusters(clusterNamed('web'))).clusters[0]!, '', undefined, false);
    assert.equal(fixture.value('cluster_manager.warming_clusters'), 0);
    manager.stop();
  });

  it('keeps the places of members that stay, and counts each change once', async () => {
    await using server = await DnsServer.start();
    server.set('web.test', ['10.0.0.1', '10.0.0.2']);
    const fixture = new Fixture(dnsCluster(server));
    await fixture.manager.start();
    const [first] = fixture.published;
    server.set('web.test', ['10.0.0.2', '10.0.0.3']);
    const { snapshot } = await fixture.nextUpdate();
    assert.deepEqual(ipsOf(snapshot), ['10.0.0.2', '10.0.0.3']);
    assert.deepEqual(snapshot.hosts[0], first!.snapshot.hosts[1]);
    assert.notEqual(snapshot.hosts[1]!.recordAddress, first!.snapshot.hosts[0]!.recordAddress);
    assert.equal(fixture.value('cluster.web.membership_change'), 2);
    assert.equal(fixture.value('cluster.web.membership_total'), 2);
    assert.equal(fixture.value('cluster_manager.cluster_updated'), 2);
    fixture.manager.stop();
  });

  it('records the time that each change of members takes', async () => {
    await using server = await DnsServer.start();
    server.set('web.test', ['10.0.0.1']);
    const fixture = new Fixture(dnsCluster(server));
    const recorded = async (): Promise<number | undefined> => {
      const { store } = fixture.stats;
      await store.mergeHistograms();
      for await (const batch of store.histograms()) {
        const found = batch.find(({ name }) => name === 'cluster.web.update_duration');
        if (found !== undefined) return found.count('cumulative');
      }
      return undefined;
    };
    assert.equal(await recorded(), 0);
    await fixture.manager.start();
    assert.equal(await recorded(), 1);
    server.set('web.test', ['10.0.0.2']);
    await fixture.nextUpdate();
    assert.equal(await recorded(), 2);
    fixture.manager.stop();
  });

  it('publishes the lists of hosts that have started once more when they have', async () => {
    const endpoint = (port: number): JsonObject => ({ endpoint: { address: socketAddress('10.0.0.1', port) } });
    const cluster = clusterNamed('web', {
      load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints: [endpoint(1), endpoint(2)] }] },
      round_robin_lb_config: { slow_start_config: { slow_start_window: '5s' } },
    });
    const fixture = new Fixture(mustLoad(withClusters(cluster)).clusters[0]!);
    const { clock, manager } = fixture;
    const publications = (): number => fixture.published.length;
    const planOf = ({ hostLists }: ClusterSnapshot): string => {
      const source = readHostLists(fixture.stats.owner.shared, hostLists);
      assert.equal(source.kind, 'list');
      return source.plan.kind;
    };
    assert.equal(planOf(manager.snapshots()[0]!), 'schedule');
    clock.turn(1000);
    assert.equal(publications(), 0);
    await manager.start();
    clock.turn(3950);
    assert.equal(publications(), 0);
    clock.turn(100);
    assert.equal(publications(), 1);
    assert.equal(planOf(fixture.published[0]!.snapshot), 'cycle');
    assert.equal(clock.timerCount, 0);
    const stopped = new Fixture(mustLoad(withClusters(cluster)).clusters[0]!);
    await stopped.manager.start();
    stopped.manager.stop();
    assert.equal(stopped.clock.timerCount, 0);
  });

  it('routes by zone as the local cluster says, whatever comes first, and follows it', async () => {
    await using server = await DnsServer.start();
    server.set('web.test', ['10.0.0.1']);
    const inZone = (zone: string, ...ports: number[]): JsonObject => ({
      locality: { zone },
      lb_endpoints: ports.map((port) => ({ endpoint: { address: socketAddress('10.0.0.1', port) } })),
    });
    const zoned = (name: string, endpoints: JsonObject[]): ClusterSettings =>
      mustLoad(withClusters(clusterNamed(name, { load_assignment: { cluster_name: name, endpoints } }))).clusters[0]!;
    const hosts = [inZone('a', 1, 2, 3), inZone('b', 4, 5, 6)];
    const local = zoned('proxies', [inZone('a', 1), inZone('b', 2)]);
    const kindOf = (fixture: Fixture, name: string): string => {
      const snapshot = fixture.manager.snapshots().find(({ settings }) => settings.name === name)!;
      return readHostLists(fixture.stats.owner.shared, snapshot.hostLists).kind;
    };
    for (const clusters of [
      [zoned('web', hosts), local],
      [local, zoned('web', hosts)],
    ]) {
      const fixture = new Fixture(...clusters);
      assert.equal(kindOf(fixture, 'web'), 'zones');
      assert.equal(fixture.value('cluster.web.lb_recalculate_zone_structures'), 1);
      assert.equal(fixture.value('cluster.proxies.lb_zone_cluster_too_small'), 1);
    }
    assert.equal(kindOf(new Fixture(zoned('web', hosts)), 'web'), 'list');
    // The local cluster is found at run time: one proxy, which is not in this one's zone.
    const late = { ...dnsCluster(server), name: 'proxies', statName: 'proxies' };
    const fixture = new Fixture(zoned('web', hosts), late);
    await fixture.manager.start();
    const before = fixture.value('cluster.web.lb_recalculate_zone_structures')!;
    assert.ok(before > 0);
    assert.equal(kindOf(fixture, 'web'), 'list');
    const published = fixture.published.length;
    server.set('web.test', ['10.0.0.1', '10.0.0.2']);
    await fixture.nextUpdate();
    assert.deepEqual(
      fixture.published.slice(published).map(({ snapshot }) => snapshot.settings.name),
      ['proxies', 'web'],
    );
    assert.equal(fixture.value('cluster.web.lb_recalculate_zone_structures'), before + 1);
    fixture.manager.stop();
  });

  it('does not grow over a thousand updates, once workers have confirmed them', async () => {
    await using server = await DnsServer.start();
    server.set('web.test', ['10.0.0.1']);
    const fixture = new Fixture(dnsCluster(server));
    await fixture.manager.start();
    const { owner } = fixture.stats;
    const places = (): object => ({
      cells: owner.cells.usedCells,
      chunks: owner.cells.chunkCount,
      bytes: owner.memory.buffer.byteLength,
      waiting: owner.reclaimer.waitingCount,
    });
    let before: object = {};
    for (let update = 1; update <= 1000; update++) {
      server.set('web.test', [`10.0.${update >> 7}.${1 + (update & 127)}`, `10.1.${update % 3}.1`]);
      const { applied } = await fixture.nextUpdate();
      applied();
      // The first updates take what later ones use again.
      if (update === 4) before = places();
    }
    assert.deepEqual(places(), before);
    assert.equal(fixture.value('cluster.web.membership_total'), 2);
    fixture.manager.stop();
  });

  it('gives nothing back that a worker may still use, and later updates do not wait for it', async () => {
    await using server = await DnsServer.start();
    server.set('web.test', ['10.0.0.1']);
    const fixture = new Fixture(dnsCluster(server));
    await fixture.manager.start();
    fixture.published[0]!.applied();
    const gone = fixture.published[0]!.snapshot.hosts[0]!;
    server.set('web.test', ['10.0.0.2']);
    const slow = await fixture.nextUpdate();
    const used = new Set<number>();
    for (let update = 0; update < 200; update++) {
      server.set('web.test', [`10.0.1.${update}`]);
      const { snapshot, applied } = await fixture.nextUpdate();
      used.add(snapshot.hosts[0]!.recordAddress);
      applied();
    }
    assert.ok(!used.has(gone.recordAddress));
    assert.ok(used.size <= 3, `${used.size} records`);
    slow.applied();
    assert.equal(fixture.stats.owner.reclaimer.waitingCount, 0);
    fixture.manager.stop();
  });
});

describe('a change of the runtime', () => {
  it('makes lists anew at once where it matters to them, and nowhere else', async () => {
    const members = ['HEALTHY', 'UNHEALTHY', 'UNHEALTHY'].map((health_status, index) => ({
      endpoint: { address: socketAddress('10.0.0.1', index + 1) },
      health_status,
    }));
    const load_assignment = { cluster_name: 'web', endpoints: [{ lb_endpoints: members }] };
    const fixture = new Fixture(mustLoad(withClusters(clusterNamed('web', { load_assignment }))).clusters[0]!);
    const inPanic = (): boolean => {
      const source = readHostLists(fixture.stats.owner.shared, fixture.manager.snapshots()[0]!.hostLists);
      return source.kind === 'shares' && source.shares.some(({ isPanic }) => isPanic);
    };
    const set = (values: Readonly<Record<string, string>>): void => {
      fixture.runtime.replace(new Map(Object.entries(values)));
      fixture.manager.runtimeChanged();
    };
    await fixture.manager.start();
    assert.ok(inPanic());
    set({ 'upstream.healthy_panic_threshold': '10' });
    assert.ok(!inPanic());
    assert.equal(fixture.published.length, 1);
    set({ 'upstream.healthy_panic_threshold': '10', other: '7' });
    assert.equal(fixture.published.length, 1);
    set({});
    assert.ok(inPanic());
    assert.equal(fixture.published.length, 2);
    fixture.manager.stop();
  });
});

describe('clusters that come and go', () => {
  const at = (port: number, fields: JsonObject = {}): ClusterSettings => {
    const members = [{ endpoint: { address: socketAddress('10.0.0.1', port) } }];
    const load_assignment = { cluster_name: 'new', endpoints: [{ lb_endpoints: members }] };
    return mustLoad(withClusters(clusterNamed('new', { load_assignment, ...fields }))).clusters[0]!;
  };
  const states = ({ manager }: Fixture): (readonly string[])[] =>
    manager
      .dump()
      .map(({ name, version, state, error }) =>
        error === '' ? [name, version, state] : [name, version, state, error],
      );
  const held = ({ stats: { owner } }: Fixture): object => ({
    cells: owner.cells.usedCells,
    records: owner.recordAllocator.usedRecords,
    bytes: owner.heap.usedBytes,
    waiting: owner.reclaimer.waitingCount,
  });

  it('are published when they are there, and given back when no worker uses them', async () => {
    const fixture = new Fixture();
    await fixture.manager.start();
    assert.ok(fixture.manager.put(at(1), 'one'));
    fixture.published.pop()!.applied();
    fixture.manager.remove('new');
    fixture.removed.pop()!.applied();
    const before = held(fixture);
    fixture.clock.turn(1000);
    fixture.manager.put(at(1), 'one');
    assert.deepEqual(states(fixture), [['new', 'one', 'active']]);
    assert.equal(fixture.manager.dump()[0]!.updatedMs, fixture.clock.wallMs());
    assert.equal(fixture.manager.versionInfo(), 'one');
    assert.equal(fixture.published.at(-1)!.snapshot.addedViaApi, true);
    assert.equal(fixture.value('cluster_manager.active_clusters'), 1);
    assert.equal(fixture.value('cluster.new.membership_total'), 1);
    assert.ok(fixture.manager.put(at(1, { connect_timeout: '7s' }), 'two'));
    assert.deepEqual(states(fixture), [
      ['new', 'two', 'active'],
      ['new', 'one', 'draining'],
    ]);
    fixture.published.at(-1)!.applied();
    assert.deepEqual(states(fixture), [['new', 'two', 'active']]);
    assert.ok((await listing(fixture.stats.store)).includes('cluster.new.circuit_breakers.default.rq_open: 0'));
    assert.ok(fixture.manager.remove('new'));
    assert.deepEqual(states(fixture), [['new', 'two', 'draining']]);
    assert.equal(fixture.value('cluster.new.membership_total'), 1);
    assert.equal(fixture.manager.remove('new'), false);
    fixture.removed.at(-1)!.applied();
    assert.deepEqual(states(fixture), []);
    assert.equal(fixture.value('cluster.new.membership_total'), undefined);
    assert.deepEqual(held(fixture), before);
    const counts = ['added', 'modified', 'removed'].map((what) => fixture.value(`cluster_manager.cluster_${what}`));
    assert.deepEqual(counts, [2, 1, 2]);
    fixture.manager.stop();
  });

  it('change nothing where they are as they were, and members alone where those are others', async () => {
    const fixture = new Fixture();
    await fixture.manager.start();
    fixture.manager.put(at(1), 'one');
    const { recordAddress } = fixture.published[0]!.snapshot;
    fixture.manager.put(at(1), 'two');
    assert.equal(fixture.published.length, 1);
    fixture.manager.put(at(2), 'three');
    assert.equal(fixture.published.length, 2);
    assert.equal(fixture.published[1]!.snapshot.recordAddress, recordAddress);
    assert.deepEqual(states(fixture), [['new', 'three', 'active']]);
    fixture.manager.stop();
  });

  it('leave those of the bootstrap alone', async () => {
    const fixture = new Fixture(at(1));
    await fixture.manager.start();
    assert.equal(fixture.manager.put(at(2), 'one'), false);
    assert.equal(fixture.manager.remove('new'), false);
    const message = new Uint8Array(0);
    fixture.manager.refuse({ name: 'new', message, error: 'is bad' }, 'one');
    assert.deepEqual([states(fixture), [...fixture.manager.discoveredNames()]], [[['new', '', 'active']], []]);
    fixture.manager.refuse({ name: 'other', message, error: 'is bad' }, 'one');
    assert.deepEqual([...fixture.manager.discoveredNames()], ['other']);
    fixture.manager.remove('other');
    assert.deepEqual([...fixture.manager.discoveredNames()], []);
    assert.equal(fixture.manager.versionInfo(), 'static');
    fixture.manager.stop();
  });

  it('let their predecessor serve until they are warm, and go without a trace if they never are', async () => {
    await using server = await DnsServer.start();
    const fixture = new Fixture();
    await fixture.manager.start();
    fixture.manager.put(at(1), 'one');
    const before = held(fixture);
    const named = { ...dnsCluster(server), name: 'new', statName: 'new', observabilityName: 'new' };
    fixture.manager.put(named, 'two');
    assert.deepEqual(states(fixture), [
      ['new', 'one', 'active'],
      ['new', 'two', 'warming'],
    ]);
    assert.equal(fixture.value('cluster_manager.warming_clusters'), 1);
    assert.equal(fixture.published.length, 1);
    fixture.manager.put(at(1), 'three');
    assert.deepEqual(states(fixture), [['new', 'three', 'active']]);
    assert.equal(fixture.value('cluster_manager.warming_clusters'), 0);
    assert.deepEqual(held(fixture), before);
    server.set('web.test', ['10.0.0.9']);
    const published = new Promise<void>((resolve) => {
      fixture.onPublished = resolve;
    });
    fixture.manager.put(named, 'four');
    await published;
    assert.deepEqual(ipsOf(fixture.published.at(-1)!.snapshot), ['10.0.0.9']);
    assert.deepEqual(states(fixture), [['new', 'four', 'active'], ['new', 'one', 'draining'].with(1, 'three')]);
    fixture.manager.stop();
  });

  it('that find no memory leave everything as it was, and say so', async () => {
    const fixture = new Fixture();
    await fixture.manager.start();
    fixture.manager.put(at(1), 'one');
    const { owner } = fixture.stats;
    const before = held(fixture);
    const allocate = owner.recordAllocator.allocateHost.bind(owner.recordAllocator);
    owner.recordAllocator.allocateHost = () => {
      throw new WeirError('WEIR_SHARED_MEMORY_FULL', 'nothing left');
    };
    assert.throws(() => fixture.manager.put(at(2), 'two'), { code: 'WEIR_SHARED_MEMORY_FULL' });
    assert.throws(() => fixture.manager.put(at(1, { connect_timeout: '7s' }), 'three'), /nothing left/);
    assert.deepEqual(states(fixture), [
      ['new', 'one', 'active'],
      ['new', 'three', 'failed', 'nothing left'],
    ]);
    assert.deepEqual(held(fixture), before);
    owner.recordAllocator.allocateHost = allocate;
    fixture.manager.put(at(2), 'four');
    assert.deepEqual(states(fixture), [['new', 'four', 'active']]);
    fixture.manager.stop();
  });
});

describe('confirmations of updates', () => {
  it('come when every worker has confirmed, in any order of updates', () => {
    const confirmed: string[] = [];
    const confirmations = new UpdateConfirmations(NO_FAULTS);
    const first = confirmations.begin([0, 1], () => confirmed.push('first'));
    const second = confirmations.begin([0, 1], () => confirmed.push('second'));
    confirmations.confirm(second, 0);
    confirmations.confirm(second, 0);
    confirmations.confirm(first, 1);
    assert.deepEqual(confirmed, []);
    confirmations.confirm(second, 1);
    assert.deepEqual(confirmed, ['second']);
    confirmations.drop(0);
    assert.deepEqual(confirmed, ['second', 'first']);
    assert.equal(confirmations.size, 0);
  });

  it('come at once without workers', () => {
    let count = 0;
    const confirmations = new UpdateConfirmations(NO_FAULTS);
    confirmations.begin([], () => count++);
    assert.equal(count, 1);
  });
});
