import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memberKey } from '../../../../src/base/address.ts';
import { WeirError } from '../../../../src/base/errors.ts';
import { RuntimeValues } from '../../../../src/base/runtime.ts';
import { ActiveCluster, type ClusterPlaces } from '../../../../src/control-plane/cluster-manager/active-cluster.ts';
import type { HostSettings } from '../../../../src/snapshot/index.ts';
import { readHostLists } from '../../../../src/wasm/lb/host-lists.ts';
import { clusterNamed, clusterSettings, type JsonObject, mustLoad, withClusters } from '../../../support/bootstrap.ts';
import { NO_LOCAL_CLUSTER } from '../../../support/clusters.ts';
import { lbTables } from '../../../support/lb.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { listing, type StatsFixture, statsFixture } from '../../../support/stats.ts';

function placesOf(memory: StatsFixture['owner'], stats: StatsFixture['store']): ClusterPlaces {
  return {
    stats,
    memory,
    tables: lbTables(memory),
    runtime: new RuntimeValues(),
    clock: new ManualClock(),
    local: NO_LOCAL_CLUSTER,
  };
}

test('a cluster that finds no memory for its host lists stays as it was', () => {
  const { owner, store } = statsFixture({ workerCount: 1, maxBytes: 2 * 1024 * 1024 });
  const [settings] = mustLoad(withClusters(clusterNamed('web'))).clusters;
  const cluster = new ActiveCluster(settings!, false, placesOf(owner, store));
  const [member] = settings!.hosts;
  const at = (port: number, weight: number): HostSettings => ({
    ...member!,
    address: { kind: 'ip', ip: '127.0.0.1', port },
    weight,
  });
  cluster.setMembers([at(1, 1), at(2, 1)])?.();
  const { snapshot } = cluster;
  const hosts = cluster.hosts();
  const filling: number[] = [];
  assert.throws(() => {
    for (;;) filling.push(owner.heap.allocate(128));
  });

  const held = (): number[] => [owner.cells.usedCells, owner.recordAllocator.usedRecords];
  const before = held();
  assert.throws(() => cluster.setMembers([at(1, 9), at(3, 1)]), { code: 'WEIR_SHARED_MEMORY_FULL' });
  assert.deepEqual(held(), before);
  assert.equal(cluster.snapshot, snapshot);
  assert.deepEqual(cluster.hosts(), hosts);
  assert.equal(hosts[0]!.weight, 1);
  assert.equal(owner.shared.records.weight(hosts[0]!.recordAddress), 1);
  assert.equal(owner.reclaimer.waitingCount, 0);

  for (const address of filling) owner.heap.free(address);
  cluster.setMembers([at(1, 9), at(3, 1)])?.();
  assert.deepEqual(
    cluster.hosts().map(({ weight }) => weight),
    [9, 1],
  );
  assert.equal(cluster.hosts()[0], hosts[0]);
});

test('a cluster that finds no memory for one of its members stays as it was', () => {
  const { owner, store } = statsFixture({ workerCount: 1 });
  const settings = clusterSettings(clusterNamed('web'));
  const cluster = new ActiveCluster(settings, false, placesOf(owner, store));
  const held = (): number[] => [owner.cells.usedCells, owner.recordAllocator.usedRecords, owner.reclaimer.waitingCount];
  const before = held();
  const allocate = owner.recordAllocator.allocateHost.bind(owner.recordAllocator);
  let left = 2;
  owner.recordAllocator.allocateHost = (weight) => {
    left -= 1;
    if (left < 0) throw new WeirError('WEIR_SHARED_MEMORY_FULL', 'nothing left');
    return allocate(weight);
  };
  const members = [1, 2, 3].map(
    (port): HostSettings => ({ ...settings.hosts[0]!, address: { kind: 'ip', ip: '127.0.0.1', port } }),
  );
  assert.throws(() => cluster.setMembers(members), { code: 'WEIR_SHARED_MEMORY_FULL' });
  assert.deepEqual([held(), cluster.hosts()], [before, []]);
});

test('a cluster that finds no memory for its record leaves nothing behind', () => {
  const { owner, store } = statsFixture({ workerCount: 1 });
  const before = owner.cells.usedCells;
  owner.recordAllocator.allocateCluster = () => {
    throw new WeirError('WEIR_SHARED_MEMORY_FULL', 'nothing left');
  };
  const settings = clusterSettings(clusterNamed('web', { lb_policy: 'MAGLEV' }));
  assert.throws(() => new ActiveCluster(settings, false, placesOf(owner, store)), { code: 'WEIR_SHARED_MEMORY_FULL' });
  assert.equal(owner.cells.usedCells, before);
});

test('a cluster says whether its hosts are checked, and what the runtime makes of its limits', () => {
  const { owner, store } = statsFixture({ workerCount: 1 });
  const health_checks = [
    { timeout: '1s', interval: '1s', unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {} },
  ];
  const texts = { 'circuit_breakers.web.default.max_requests': '5', 'circuit_breakers.web.high.max_requests': '6' };
  const runtime = new RuntimeValues(new Map(Object.entries(texts)));
  const open = (fields: JsonObject): ActiveCluster =>
    new ActiveCluster(clusterSettings(clusterNamed('web', fields)), false, { ...placesOf(owner, store), runtime });
  const [checked, unchecked] = [open({ health_checks }), open({})];
  assert.deepEqual([checked.snapshot.isHealthChecked, unchecked.snapshot.isHealthChecked], [true, false]);
  const { default: byDefault, high } = unchecked.circuitBreakers;
  assert.deepEqual([byDefault.maxRequests, high.maxRequests], [5, 6]);
});

test('a cluster is outdated when the runtime overrides something that its lists were made with', () => {
  const { owner, store } = statsFixture({ workerCount: 1 });
  const runtime = new RuntimeValues();
  const bias = { active_request_bias: { default_value: 1.5, runtime_key: 'own.bias' } };
  const keys = [
    'own.bias',
    'upstream.zone_routing.min_cluster_size',
    'upstream.zone_routing.force_local_zone.min_size',
    // What no setting names.
    '',
  ];
  const outdatedBy = (fields: JsonObject, changes: object = {}): boolean[] => {
    runtime.replace(new Map());
    const settings = { ...clusterSettings(clusterNamed('web', fields)), ...changes };
    const cluster = new ActiveCluster(settings, false, { ...placesOf(owner, store), runtime });
    return keys.map((key) => {
      runtime.replace(new Map([[key, '7']]));
      cluster.refreshHealth();
      assert.equal(cluster.isOutdated, false);
      runtime.replace(new Map([[key, '8']]));
      return cluster.isOutdated;
    });
  };
  const leastRequest = { lb_policy: 'LEAST_REQUEST', least_request_lb_config: bias };
  const { zoneRouting } = clusterSettings(clusterNamed('web'));
  assert.deepEqual(outdatedBy({}), [false, true, false, false]);
  assert.deepEqual(outdatedBy({}, { zoneRouting: { ...zoneRouting, forcedFrom: 3 } }), [false, true, true, false]);
  assert.deepEqual(outdatedBy(leastRequest, { zoneRouting: null }), [true, false, false, false]);
});

test('the gauges of a name are those of the cluster that has begun to serve under it', async () => {
  const { owner, store } = statsFixture({ workerCount: 1 });
  const [settings] = mustLoad(withClusters(clusterNamed('web', { lb_policy: 'MAGLEV' }))).clusters;
  const open = (): ActiveCluster => new ActiveCluster(settings!, false, placesOf(owner, store));
  const of = (...weights: number[]): HostSettings[] =>
    weights.map((weight, port) => ({ ...settings!.hosts[0]!, address: { kind: 'ip', ip: '127.0.0.1', port }, weight }));
  const [former, next, empty] = [open(), open(), open()];
  const gauges = (): (number | undefined)[] =>
    ['maglev_lb.min_entries_per_host', 'membership_total'].map((name) => store.value(`cluster.web.${name}`));
  next.setMembers(of(1, 4, 5))?.();
  const own = gauges();
  former.setMembers(of(1, 1))?.();
  assert.deepEqual([gauges()[1], gauges()[0] === own[0]], [2, false]);
  next.show();
  assert.deepEqual(gauges(), own);
  empty.show();
  assert.deepEqual(gauges(), [own[0], 0]);
});

test('members that requests name come and go one by one, and no list has them', () => {
  const { owner, store } = statsFixture({ workerCount: 1 });
  const settings = clusterSettings({ name: 'web', type: 'ORIGINAL_DST', lb_policy: 'CLUSTER_PROVIDED' });
  const cluster = new ActiveCluster(settings, false, placesOf(owner, store));
  const held = (): number[] => [owner.cells.usedCells, owner.recordAllocator.usedRecords, owner.reclaimer.waitingCount];
  const before = held();
  const lists = () => readHostLists(owner.shared, cluster.snapshot.hostLists);
  const listsOfNobody = lists();
  const members = [1, 2].map((port): HostSettings => {
    const [plain] = clusterSettings(clusterNamed('other')).hosts;
    return { ...plain!, address: { kind: 'ip', ip: '127.0.0.1', port } };
  });
  const [first, second] = members.map((member) => cluster.addMember(member));
  const ports = (): unknown[] => cluster.snapshot.hosts.map(({ address }) => address.kind === 'ip' && address.port);
  const counts = (): number[] => [cluster.stats.value('membership_change'), cluster.stats.value('membership_total')];
  assert.deepEqual([ports(), counts(), cluster.size], [[1, 2], [2, 2], 2]);
  assert.equal(cluster.member(memberKey(members[0]!)), first);
  cluster.refreshHealth()();
  assert.deepEqual(lists(), listsOfNobody);
  cluster.removeMembers([first!])();
  assert.deepEqual([ports(), counts(), cluster.size], [[2], [3, 1], 1]);
  assert.equal(cluster.member(memberKey(members[0]!)), undefined);
  cluster.removeMembers([second!])();
  assert.deepEqual(held(), before);
});

for (const { lbPolicy, expected } of [
  {
    lbPolicy: 'RING_HASH',
    expected: [
      'ring_hash_lb.max_hashes_per_host: 820',
      'ring_hash_lb.min_hashes_per_host: 205',
      'ring_hash_lb.size: 1025',
    ],
  },
  { lbPolicy: 'MAGLEV', expected: ['maglev_lb.max_entries_per_host: 52429', 'maglev_lb.min_entries_per_host: 13108'] },
]) {
  test(`a cluster of ${lbPolicy} shows how its table is shared out, and what it was when there are no hosts`, async () => {
    const { owner, store } = statsFixture({ workerCount: 1 });
    const [settings] = mustLoad(withClusters(clusterNamed('web', { lb_policy: lbPolicy }))).clusters;
    const cluster = new ActiveCluster(settings!, false, placesOf(owner, store));
    const [member] = settings!.hosts;
    const gauges = async (): Promise<string[]> =>
      (await listing(store)).filter((line) => line.includes('_lb.')).map((line) => line.replace('cluster.web.', ''));
    const ip = (port: number) => ({ kind: 'ip', ip: '127.0.0.1', port }) as const;
    cluster.setMembers([
      { ...member!, address: ip(1), weight: 1 },
      { ...member!, address: ip(2), weight: 4 },
    ])?.();
    assert.deepEqual((await gauges()).toSorted(), expected);
    cluster.setMembers([])?.();
    assert.deepEqual((await gauges()).toSorted(), expected);
  });
}

test('a cluster without subsets has never counted any', async () => {
  const { owner, store } = statsFixture({ workerCount: 1 });
  const settings = clusterSettings(clusterNamed('web'));
  new ActiveCluster(settings, false, placesOf(owner, store)).setMembers(settings.hosts)?.();
  const used = await listing(store, true);
  assert.ok(used.includes('cluster.web.membership_total: 1'));
  assert.deepEqual(
    used.filter((line) => line.includes('lb_subsets')),
    [],
  );
});

test('a cluster counts its subsets as they come and go', () => {
  const { owner, store } = statsFixture({ workerCount: 1 });
  const lb_subset_config = { subset_selectors: [{ keys: ['v'], single_host_per_subset: true }] };
  const [settings] = mustLoad(withClusters(clusterNamed('web', { lb_subset_config }))).clusters;
  const cluster = new ActiveCluster(settings!, false, placesOf(owner, store));
  const saying = (...values: readonly string[]): HostSettings[] =>
    values.map((value, port) => ({
      ...settings!.hosts[0]!,
      address: { kind: 'ip', ip: '127.0.0.1', port },
      subsetValues: [{ key: 'v', value, elements: null }],
    }));
  const counts = (): number[] => [
    cluster.stats.value('lb_subsets_active'),
    cluster.stats.value('lb_subsets_created'),
    cluster.stats.value('lb_subsets_removed'),
    cluster.stats.value('lb_subsets_single_host_per_subset_duplicate'),
  ];
  cluster.setMembers(saying('1', '2', '1'))?.();
  assert.deepEqual(counts(), [2, 2, 0, 1]);
  cluster.setMembers(saying('2', '3'))?.();
  assert.deepEqual(counts(), [2, 3, 1, 0]);
  cluster.setMembers([])?.();
  assert.deepEqual(counts(), [0, 3, 3, 0]);
});

test('the list of members is the same one as long as they are', () => {
  const { owner, store } = statsFixture({ workerCount: 1 });
  const settings = clusterSettings(clusterNamed('web'));
  const cluster = new ActiveCluster(settings, false, placesOf(owner, store));
  const [member] = settings.hosts;
  const at = (port: number, weight = 1): HostSettings => ({
    ...member!,
    address: { kind: 'ip', ip: '127.0.0.1', port },
    weight,
  });
  cluster.setMembers([at(1), at(2)])?.();
  const [first, ...changes] = [
    () => cluster.members(),
    () => cluster.setMembers([at(1), at(2, 5)])?.(),
    () => cluster.setMembers([at(2, 5)])?.(),
    () => cluster.addMember(at(3)),
    () => cluster.removeMembers([cluster.members()[1]!])(),
  ];
  first!();
  for (const change of changes) {
    const before = cluster.members();
    cluster.members()[0]!.setHealthFlags(1, true);
    cluster.refreshHealth()();
    assert.equal(cluster.members(), before);
    change();
    assert.notEqual(cluster.members(), before);
  }
  assert.deepEqual(
    cluster.members().map(({ address }) => (address as { port: number }).port),
    [2],
  );
});
