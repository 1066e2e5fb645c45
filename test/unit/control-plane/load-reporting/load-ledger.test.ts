// What hosts and clusters count, against what is told of it: whatever comes, goes, is reset, or cannot be told.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { TimeSlice } from '../../../../src/base/time-slice.ts';
import type { ClusterLoad } from '../../../../src/control-plane/load-reporting/cluster-load.ts';
import { LoadLedger, type TakenLoad } from '../../../../src/control-plane/load-reporting/load-ledger.ts';
import { CLUSTER_LOAD_STATS, HOST_STATS } from '../../../../src/stats/index.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { statsFixture } from '../../../support/stats.ts';

const { rq_total, rq_success, rq_error, rq_active } = HOST_STATS.index;
const { rq_dropped, rq_drop_overload } = CLUSTER_LOAD_STATS.index;

class TestHost {
  readonly snapshot;
  isRetired = false;

  constructor(port: number, zone: string, priority: number, statBlock: number) {
    const address = { kind: 'ip', ip: '10.0.0.1', port } as const;
    this.snapshot = { address, locality: { region: '', zone, subZone: '' }, priority, statBlock };
  }
}

/** One worker's view of it, and the ledger's. */
class Load {
  readonly fixture = statsFixture({ workerCount: 2 });
  readonly clock = new ManualClock();
  readonly ledger = new LoadLedger(this.fixture.store, this.clock);
  #workers = 0;

  open(name: string, serviceName = ''): TestCluster {
    return new TestCluster(name, serviceName, this);
  }

  /** As a worker does, this one or that. */
  count(cell: number, n = 1): void {
    this.#workers += 1;
    const { stats } = this.fixture.workers[this.#workers % 2]!;
    stats.values[stats.base(cell)]! += n;
  }

  async take(name: string): Promise<TakenLoad | undefined> {
    return await this.ledger.take(name, new TimeSlice());
  }
}

class TestCluster {
  readonly load: ClusterLoad;
  readonly hosts: TestHost[] = [];
  readonly leaving: TestHost[] = [];
  readonly #of: Load;

  constructor(name: string, serviceName: string, of: Load) {
    this.#of = of;
    this.load = of.ledger.open(name, serviceName, () => [...this.hosts]);
  }

  join(port: number, zone = '', priority = 0): TestHost {
    const host = new TestHost(port, zone, priority, this.#of.fixture.store.allocateUnnamed(HOST_STATS));
    this.hosts.push(host);
    return host;
  }

  leave(host: TestHost): void {
    this.hosts.splice(this.hosts.indexOf(host), 1);
    this.leaving.push(host);
    this.load.leave(host);
    host.isRetired = true;
  }

  /** No worker uses it. */
  free(host: TestHost): void {
    this.load.free(host);
    const { store, owner } = this.#of.fixture;
    owner.reclaimer.collect(() => store.retireUnnamed(HOST_STATS, host.snapshot.statBlock))();
    const at = this.leaving.indexOf(host);
    if (at !== -1) this.leaving.splice(at, 1);
  }

  close(): void {
    for (const host of [...this.hosts]) {
      this.leave(host);
      this.free(host);
    }
    const { owner } = this.#of.fixture;
    owner.reclaimer.collect(() => this.load.close())();
  }
}

function totalsOf(taken: readonly (TakenLoad | undefined)[]): { issued: number; successful: number; dropped: number } {
  const totals = { issued: 0, successful: 0, dropped: 0 };
  for (const { sum } of taken.filter((each) => each !== undefined)) {
    totals.dropped += sum.dropped;
    for (const { counts } of sum.localities) {
      totals.issued += counts.issued;
      totals.successful += counts.successful;
    }
  }
  return totals;
}

describe('what is told of load', () => {
  it('begins with what is counted after somebody wants to know', async () => {
    const load = new Load();
    const cluster = load.open('web');
    const host = cluster.join(1);
    load.count(host.snapshot.statBlock + rq_total, 5);
    assert.equal(await load.take('web'), undefined);
    await load.ledger.want(new Set(['web']), false);
    load.count(host.snapshot.statBlock + rq_total, 2);
    load.count(host.snapshot.statBlock + rq_success, 1);
    load.count(host.snapshot.statBlock + rq_active, 1);
    load.clock.turn(1500);
    const taken = (await load.take('web'))!;
    assert.equal(taken.untilMs - taken.sinceMs, 1500);
    const [locality] = [...taken.sum.localities];
    assert.deepEqual(locality!.counts, {
      successful: 1,
      failed: 0,
      issued: 2,
      newConnections: 0,
      failedConnections: 0,
      inProgress: 1,
      activeConnections: 0,
    });
    const next = (await load.take('web'))!;
    assert.deepEqual(
      [...next.sum.localities].map(({ counts }) => [counts.issued, counts.inProgress]),
      [[0, 1]],
    );
  });

  it('has a cluster that comes later from its beginning', async () => {
    const load = new Load();
    await load.ledger.want('all', false);
    const cluster = load.open('late', 'service/late');
    const host = cluster.join(1);
    load.count(host.snapshot.statBlock + rq_total, 3);
    assert.deepEqual(load.ledger.names(), ['late']);
    const taken = (await load.take('late'))!;
    assert.equal(taken.serviceName, 'service/late');
    assert.equal(totalsOf([taken]).issued, 3);
  });

  it('has localities and priorities for themselves, and hosts where they are wanted', async () => {
    const load = new Load();
    const cluster = load.open('web');
    const hosts = [cluster.join(1, 'a'), cluster.join(2, 'a'), cluster.join(3, 'b'), cluster.join(4, 'b', 1)];
    await load.ledger.want(new Set(['web']), true);
    for (const [at, { snapshot }] of hosts.entries()) load.count(snapshot.statBlock + rq_total, at + 1);
    cluster.leave(hosts[0]!);
    cluster.free(hosts[0]!);
    const { sum } = (await load.take('web'))!;
    const shown = [...sum.localities].map(({ locality, priority, counts, hosts: each }) => {
      const issued = [...each.values()].map((host) => [
        host.address.kind === 'ip' ? host.address.port : 0,
        host.counts.issued,
      ]);
      return [locality.zone, priority, counts.issued, ...issued];
    });
    assert.deepEqual(shown, [
      ['a', 0, 3, [1, 1], [2, 2]],
      ['b', 0, 3, [3, 3]],
      ['b', 1, 4, [4, 4]],
    ]);
  });

  it('names drops by the category in which they were dropped', async () => {
    const load = new Load();
    const cluster = load.open('web');
    await load.ledger.want(new Set(['web']), false);
    cluster.load.dropIn('lb');
    load.count(cluster.load.block + rq_dropped, 5);
    load.count(cluster.load.block + rq_drop_overload, 3);
    cluster.load.dropIn('throttle');
    load.count(cluster.load.block + rq_dropped, 2);
    load.count(cluster.load.block + rq_drop_overload, 2);
    const { sum } = (await load.take('web'))!;
    assert.equal(sum.dropped, 7);
    assert.deepEqual(
      [...sum.drops],
      [
        ['lb', 3],
        ['throttle', 2],
      ],
    );
    cluster.load.dropIn('');
    load.count(cluster.load.block + rq_dropped, 1);
    load.count(cluster.load.block + rq_drop_overload, 1);
    const next = (await load.take('web'))!;
    assert.deepEqual([next.sum.dropped, [...next.sum.drops]], [1, []]);
  });

  it('has what a cluster counted that has gone, once', async () => {
    const load = new Load();
    await load.ledger.want('all', false);
    const cluster = load.open('web');
    const host = cluster.join(1);
    load.count(host.snapshot.statBlock + rq_total, 4);
    load.count(cluster.load.block + rq_dropped, 1);
    cluster.close();
    assert.deepEqual(load.ledger.names(), ['web']);
    assert.deepEqual(totalsOf([await load.take('web')]), { issued: 4, successful: 0, dropped: 1 });
    assert.deepEqual(load.ledger.names(), []);
  });

  it('forgets what nobody wants to know any more', async () => {
    const load = new Load();
    const cluster = load.open('web');
    const host = cluster.join(1);
    await load.ledger.want(new Set(['web']), false);
    load.count(host.snapshot.statBlock + rq_total, 4);
    const taken = (await load.take('web'))!;
    await load.ledger.want(new Set(), false);
    load.ledger.giveBack(taken);
    load.count(host.snapshot.statBlock + rq_total, 2);
    await load.ledger.want(new Set(['web']), false);
    assert.equal(totalsOf([await load.take('web')]).issued, 0);
  });

  it('loses nothing and tells nothing twice, whatever happens in between', async () => {
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.record({ kind: fc.constant('count' as const), at: fc.nat(7), n: fc.nat(9) }) },
      fc.record({ kind: fc.constant('drop' as const), at: fc.nat(2), n: fc.nat(9) }),
      fc.record({ kind: fc.constant('join' as const), at: fc.nat(2), n: fc.nat(3) }),
      fc.record({ kind: fc.constant('leave' as const), at: fc.nat(7), n: fc.constant(0) }),
      fc.record({ kind: fc.constant('free' as const), at: fc.nat(7), n: fc.constant(0) }),
      fc.record({ kind: fc.constant('take' as const), at: fc.constant(0), n: fc.constant(0) }),
      fc.record({ kind: fc.constant('fail' as const), at: fc.constant(0), n: fc.constant(0) }),
      fc.record({ kind: fc.constant('reset' as const), at: fc.constant(0), n: fc.constant(0) }),
      fc.record({ kind: fc.constant('replace' as const), at: fc.nat(2), n: fc.constant(0) }),
      fc.record({ kind: fc.constant('close' as const), at: fc.nat(2), n: fc.constant(0) }),
      fc.record({ kind: fc.constant('again' as const), at: fc.constant(0), n: fc.nat(1) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const load = new Load();
        await load.ledger.want('all', false);
        const clusters: TestCluster[] = [load.open('web')];
        const closed: TestCluster[] = [];
        const expected = { issued: 0, successful: 0, dropped: 0 };
        const told: (TakenLoad | undefined)[] = [];
        const hosts = (): [TestCluster, TestHost][] =>
          [...clusters, ...closed].flatMap((each) =>
            [...each.hosts, ...each.leaving].map((host): [TestCluster, TestHost] => [each, host]),
          );
        for (const { kind, at, n } of steps) {
          const cluster = clusters[at % clusters.length];
          const all = hosts();
          const [owner, host] = all[at % Math.max(1, all.length)] ?? [];
          if (kind === 'count' && host !== undefined) {
            load.count(host.snapshot.statBlock + rq_total, n);
            load.count(host.snapshot.statBlock + rq_success, n);
            load.count(host.snapshot.statBlock + rq_error, 1);
            expected.issued += n;
            expected.successful += n;
          } else if (kind === 'drop' && cluster !== undefined) {
            load.count(cluster.load.block + rq_dropped, n);
            expected.dropped += n;
          } else if (kind === 'join') cluster?.join(n, `zone ${n % 2}`, n % 3);
          else if (kind === 'leave' && host !== undefined && owner!.hosts.includes(host)) owner!.leave(host);
          else if (kind === 'free' && host !== undefined && owner!.leaving.includes(host)) owner!.free(host);
          else if (kind === 'take') told.push(await load.take('web'));
          else if (kind === 'fail') {
            const taken = await load.take('web');
            if (taken !== undefined) load.ledger.giveBack(taken);
          } else if (kind === 'reset') load.fixture.store.resetCounters();
          else if (kind === 'replace') clusters.push(load.open('web'));
          else if (kind === 'close' && cluster !== undefined) {
            cluster.close();
            closed.push(...clusters.splice(clusters.indexOf(cluster), 1));
          } else if (kind === 'again') await load.ledger.want(n === 0 ? 'all' : new Set(['web']), n === 0);
        }
        told.push(await load.take('web'));
        assert.deepEqual(totalsOf(told), expected);
        for (const each of clusters) each.close();
        for (const each of [...clusters, ...closed]) for (const host of [...each.leaving]) each.free(host);
        assert.deepEqual(totalsOf([await load.take('web')]), { issued: 0, successful: 0, dropped: 0 });
        assert.deepEqual(load.ledger.names(), []);
      }),
      { numRuns: 300 },
    );
  });
});
