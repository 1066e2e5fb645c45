import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RuntimeValues } from '../../../../src/base/runtime.ts';
import { ActiveCluster, type ClusterPlaces } from '../../../../src/control-plane/cluster-manager/active-cluster.ts';
import type { HostSettings } from '../../../../src/snapshot/index.ts';
import { clusterNamed, mustLoad, withClusters } from '../../../support/bootstrap.ts';
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

  assert.throws(() => cluster.setMembers([at(1, 9), at(3, 1)]), { code: 'WEIR_SHARED_MEMORY_FULL' });
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
