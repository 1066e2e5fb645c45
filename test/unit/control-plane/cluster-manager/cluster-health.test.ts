// One cluster by itself: what holds of hosts before and between their checks, and what the lists make of their health.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RuntimeValues } from '../../../../src/base/runtime.ts';
import { ActiveCluster, type ClusterPlaces } from '../../../../src/control-plane/cluster-manager/active-cluster.ts';
import type { HostSettings } from '../../../../src/snapshot/index.ts';
import { readHostLists } from '../../../../src/wasm/lb.ts';
import { HealthFlag } from '../../../../src/wasm/shared-memory.ts';
import { clusterNamed, clusterSettings, type JsonObject } from '../../../support/bootstrap.ts';
import { NO_LOCAL_CLUSTER, NO_LOCALITY } from '../../../support/clusters.ts';
import { lbTables } from '../../../support/lb.ts';
import { CHECK } from '../../../support/managed-clusters.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { statsFixture } from '../../../support/stats.ts';

const {
  failedActiveHealthCheck: FAILED,
  pendingActiveHealthCheck: PENDING,
  pendingDynamicRemoval: LEAVES,
} = HealthFlag;
const CHECKED: JsonObject = { health_checks: [CHECK] };

function open(fields: JsonObject = {}, overrides: Partial<ClusterPlaces> = {}) {
  const { owner, store } = statsFixture({ workerCount: 1 });
  const runtime = new RuntimeValues();
  const settings = clusterSettings(clusterNamed('web', fields));
  const [plain] = clusterSettings(clusterNamed('web')).hosts;
  const tables = lbTables(owner);
  const held = () => [
    owner.cells.usedCells,
    owner.recordAllocator.usedRecords,
    owner.heap.usedBytes,
    owner.reclaimer.waitingCount,
  ];
  const clock = new ManualClock();
  const places = { stats: store, memory: owner, tables, runtime, clock, local: NO_LOCAL_CLUSTER, ...overrides };
  const another = (): ActiveCluster => new ActiveCluster(settings, false, places);
  const cluster = another();
  const at = (port: number, changes: Partial<HostSettings> = {}): HostSettings => ({
    ...plain!,
    address: { kind: 'ip', ip: '127.0.0.1', port },
    ...changes,
  });
  return {
    cluster,
    another,
    runtime,
    at,
    held,
    update: (...members: HostSettings[]): void => cluster.setMembers(members)?.(),
    lists: () => readHostLists(owner.shared, cluster.snapshot.hostLists),
    flags: (): number[] => cluster.members().map(({ healthFlags }) => healthFlags),
    /** Of each member, by its place. */
    flag: (flags: number, ...isSet: boolean[]): void => {
      for (const [index, host] of cluster.members().entries()) host.setHealthFlags(flags, isSet[index]!);
      cluster.refreshHealth()();
    },
  };
}

describe('hosts that are checked', () => {
  it('have failed until they pass, and are left out of what counts where the cluster says so', () => {
    const unchecked = ['plain', 'ignoring'].map((kind) => {
      const common_lb_config = { ignore_new_hosts_until_first_hc: kind === 'ignoring' };
      const { update, at, flags } = open({ ...CHECKED, common_lb_config });
      update(at(1));
      return flags();
    });
    assert.deepEqual(unchecked, [[FAILED], [FAILED | PENDING]]);
  });

  it('serve from the start where they are not checked, or requests name them', () => {
    const { update, at, flags } = open();
    update(at(1));
    assert.deepEqual(flags(), [0]);
    const demand = clusterSettings({ name: 'web', type: 'ORIGINAL_DST', lb_policy: 'CLUSTER_PROVIDED', ...CHECKED });
    const { owner, store } = statsFixture({ workerCount: 1 });
    const cluster = new ActiveCluster(demand, false, {
      stats: store,
      memory: owner,
      tables: lbTables(owner),
      runtime: new RuntimeValues(),
      clock: new ManualClock(),
      local: NO_LOCAL_CLUSTER,
    });
    assert.equal(cluster.addMember(at(1)).healthFlags, 0);
    // Until somebody comes again, what was read stays.
    assert.equal(cluster.snapshot, cluster.snapshot);
  });

  it('stay while they pass though nobody finds them, until they fail or are found again', () => {
    const { cluster, update, at, flags, flag } = open(CHECKED);
    const isDisabled = { check: { address: undefined, port: 0, hostname: '', isDisabled: true } };
    update(at(1), at(2), at(3, isDisabled));
    flag(FAILED, false, true, false);
    update();
    // The second has failed, and the third is never checked.
    assert.deepEqual([cluster.size, flags()], [1, [LEAVES]]);
    update(at(1));
    assert.deepEqual([cluster.size, flags()], [1, [0]]);
    update();
    flag(FAILED, true);
    cluster.dropFailed()?.();
    assert.equal(cluster.size, 0);
  });

  it('go at once where the cluster has them go, or is not checked', () => {
    for (const fields of [{ ...CHECKED, ignore_health_on_host_removal: true }, {}]) {
      const { cluster, update, at, flag } = open(fields);
      update(at(1));
      flag(FAILED, false);
      update();
      assert.equal(cluster.size, 0);
    }
  });
});

describe('the lists of a cluster', () => {
  it('are in panic below the share of healthy hosts that the runtime or the cluster says', () => {
    const isPanic = (healthyCount: number, percent?: string): boolean => {
      const { update, at, flag, lists, runtime } = open();
      if (percent !== undefined) runtime.replace(new Map([['upstream.healthy_panic_threshold', percent]]));
      update(at(1), at(2), at(3), at(4));
      flag(FAILED, ...[0, 1, 2, 3].map((index) => index >= healthyCount));
      const source = lists();
      return source.kind === 'shares' && source.shares.some((share) => share.isPanic);
    };
    assert.deepEqual([isPanic(1), isPanic(2), isPanic(4)], [true, false, false]);
    assert.deepEqual([isPanic(1, '0'), isPanic(2, '80'), isPanic(4, '200')], [false, true, false]);
  });

  it('go by zone where there are proxies to go by, and count how', () => {
    const inZone = (port: number, zone: string) => ({ ...NO_LOCALITY, zone, port });
    const kinds = [true, false].map((isKnown) => {
      const { cluster: proxies, update: join, at } = open();
      const placed = [inZone(1, 'a'), inZone(2, 'b')].map(({ port, ...locality }) => at(port, { locality }));
      join(...placed);
      const members = isKnown ? () => proxies.members() : undefined;
      const local = { name: 'proxies', locality: { ...NO_LOCALITY, zone: 'a' }, members };
      const { cluster, update, lists } = open({}, { local });
      update(
        ...[1, 2, 3, 4, 5, 6].map((port) => at(port, { locality: { ...NO_LOCALITY, zone: port > 3 ? 'b' : 'a' } })),
      );
      return [lists().kind, cluster.counted('lb_recalculate_zone_structures')];
    });
    assert.deepEqual(kinds, [
      ['zones', 1],
      ['list', 0],
    ]);
  });
});

describe('a cluster by itself', () => {
  it('gives back all that it was given', () => {
    const { cluster, another, at, held } = open({ outlier_detection: {} });
    const spend = (given: ActiveCluster): void => {
      given.setMembers([at(1), at(2)])?.();
      given.close();
    };
    // The first has the heap grow.
    spend(cluster);
    const before = held();
    for (let times = 0; times < 3; times++) spend(another());
    assert.deepEqual(held(), before);
  });

  it('keeps count of its hosts for an outlier detector where it has one', () => {
    const blocks = [{ outlier_detection: {} }, {}].map((fields) => {
      const { cluster, update, at } = open(fields as JsonObject);
      update(at(1));
      return cluster.snapshot.hosts[0]!.outlierBlock > 0;
    });
    assert.deepEqual(blocks, [true, false]);
  });

  it('has had traffic once a worker has opened a connection, also when counters begin anew', () => {
    const { cluster } = open();
    assert.equal(cluster.hasTraffic(), false);
    cluster.stats.add('upstream_cx_total', 1);
    assert.ok(cluster.hasTraffic());
    cluster.stats.add('upstream_cx_total', -1);
    assert.ok(cluster.hasTraffic());
  });

  it('shows its hosts one by one where it is told to', () => {
    const tracked = [{ track_cluster_stats: { per_endpoint_stats: true } }, {}].map(
      (fields) => open(fields as JsonObject).cluster.tracksHosts,
    );
    assert.deepEqual(tracked, [true, false]);
  });
});
