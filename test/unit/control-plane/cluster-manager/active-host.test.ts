// One host of a cluster by itself: what it is given, and what makes it another.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RuntimeValues } from '../../../../src/base/runtime.ts';
import { ActiveHost } from '../../../../src/control-plane/cluster-manager/active-host.ts';
import type { HostSettings } from '../../../../src/snapshot/index.ts';
import { HOST_STATS, OUTLIER_HOST_STATS } from '../../../../src/stats/index.ts';
import { FailureRow, HealthFlag } from '../../../../src/wasm/shared-memory.ts';
import { clusterNamed, clusterSettings } from '../../../support/bootstrap.ts';
import { NO_LOCAL_CLUSTER } from '../../../support/clusters.ts';
import { lbTables } from '../../../support/lb.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { statsFixture } from '../../../support/stats.ts';

const SETTINGS: HostSettings = clusterSettings(clusterNamed('web')).hosts[0]!;
const CHECK = { address: undefined, port: 0, hostname: '', isDisabled: false };

class Fixture {
  readonly stats = statsFixture({ workerCount: 1 });
  readonly news = new Set<ActiveHost>();
  readonly places = {
    stats: this.stats.store,
    memory: this.stats.owner,
    tables: lbTables(this.stats.owner),
    runtime: new RuntimeValues(),
    clock: new ManualClock(),
    local: NO_LOCAL_CLUSTER,
  };

  host(fields: Partial<HostSettings> = {}, unchecked = 0, isWatched = false): ActiveHost {
    return new ActiveHost({ ...SETTINGS, ...fields }, this.places, unchecked, isWatched, this.news);
  }

  get held(): object {
    const { cells, recordAllocator } = this.stats.owner;
    return { cells: cells.usedCells, records: recordAllocator.usedRecords };
  }
}

describe('a host', () => {
  for (const [what, table] of [
    ['stats', HOST_STATS],
    ['stats of its outlier detector', OUTLIER_HOST_STATS],
  ] as const) {
    it(`that finds no memory for its ${what} leaves nothing behind`, () => {
      const fixture = new Fixture();
      const { store, owner } = fixture.stats;
      const before = fixture.held;
      const allocate = store.allocateUnnamed.bind(store);
      store.allocateUnnamed = (asked) => {
        if (asked === table) throw new Error('nothing left');
        return allocate(asked);
      };
      // No worker has seen it.
      owner.reclaimer.collect(() => assert.throws(() => fixture.host({}, 0, true), /nothing left/))();
      assert.deepEqual(fixture.held, before);
    });
  }

  it('gives back all that it was given, and was given no more than it needs', () => {
    const fixture = new Fixture();
    const { owner } = fixture.stats;
    const before = fixture.held;
    const [plain, watched] = [fixture.host(), fixture.host({}, 0, true)];
    assert.equal(plain.snapshot.outlierBlock, 0);
    assert.notEqual(watched.snapshot.outlierBlock, 0);
    owner.reclaimer.collect(() => {
      plain.retire();
      watched.retire();
    })();
    assert.deepEqual(fixture.held, before);
  });

  it('begins with the flags of what has not been checked, unless it is never checked', () => {
    const fixture = new Fixture();
    const { failedActiveHealthCheck: unchecked } = HealthFlag;
    const flags = [false, true].map(
      (isDisabled) => fixture.host({ check: { ...CHECK, isDisabled } }, unchecked).healthFlags,
    );
    assert.deepEqual([...flags, fixture.host({}, unchecked).healthFlags], [unchecked, 0, unchecked]);
  });

  it('is noted when its flags change, and not when it comes without any, or has gone', () => {
    const fixture = new Fixture();
    const host = fixture.host();
    const { records } = fixture.stats.owner.shared;
    assert.deepEqual([...fixture.news], []);
    for (const isSet of [true, false]) {
      for (const news of [[host], []]) {
        host.setHealthFlags(HealthFlag.degradedActiveHealthCheck, isSet);
        assert.deepEqual([...fixture.news], news);
        assert.equal(records.healthFlags(host.recordAddress), host.healthFlags);
        fixture.news.clear();
      }
    }
    host.setHealthFlags(HealthFlag.degradedActiveHealthCheck, true);
    fixture.stats.owner.reclaimer.collect(() => host.retire())();
    assert.deepEqual([...fixture.news], []);
  });

  const checks = [undefined, CHECK, { ...CHECK, port: 1 }, { ...CHECK, isDisabled: true }];
  it('is another one with other checks', () => {
    const fixture = new Fixture();
    const withCheck = (check: HostSettings['check']): Partial<HostSettings> => (check ? { check } : {});
    for (const own of checks) {
      const host = fixture.host(withCheck(own));
      for (const other of checks) {
        assert.equal(host.isSame({ ...SETTINGS, ...withCheck(other) }), own === other, JSON.stringify([own, other]));
      }
    }
  });

  it('is another one in any other region, zone or sub-zone', () => {
    const locality = { region: 'r', zone: 'z', subZone: 's' };
    const host = new Fixture().host({ locality });
    assert.ok(host.isSame({ ...SETTINGS, locality: { ...locality } }));
    for (const part of ['region', 'zone', 'subZone'] as const) {
      assert.equal(host.isSame({ ...SETTINGS, locality: { ...locality, [part]: 'x' } }), false, part);
    }
  });

  it('has changed when data within its settings are others, however deep, and when there are more or fewer', () => {
    const host = new Fixture().host();
    const value = (elements: string[] | null) => [{ key: 'k', value: 'v', elements }];
    const metadata = { namespace: { key: { stringValue: 'a' } } };
    const steps: Partial<HostSettings>[] = [
      { subsetValues: value(null) },
      { subsetValues: value(['a']) },
      { subsetValues: value(['a', 'b']) },
      { subsetValues: value(['a']) },
      { subsetValues: value(null) },
      { metadata } as Partial<HostSettings>,
      {},
    ];
    for (const [index, fields] of steps.entries()) {
      const settings = { ...SETTINGS, ...fields };
      assert.deepEqual([host.update(settings), host.update(structuredClone(settings))], [true, false], `${index}`);
    }
  });

  it('is started again when it passes its checks after it had failed them, and by nothing else', () => {
    const fixture = new Fixture();
    const { clock } = fixture.places;
    const {
      failedActiveHealthCheck: failed,
      failedOutlierCheck: ejected,
      degradedActiveHealthCheck: other,
    } = HealthFlag;
    const host = fixture.host();
    const cameMs = host.startedMs;
    assert.equal(cameMs, clock.monotonicMs());
    const steps: [flags: number, isSet: boolean][] = [
      [failed, false],
      [failed, true],
      [failed, true],
      [ejected, true],
      [ejected, false],
      [other, false],
    ];
    for (const [flags, isSet] of steps) {
      clock.turn(10);
      host.setHealthFlags(flags, isSet);
      assert.equal(host.startedMs, cameMs);
    }
    host.setHealthFlags(failed | other, false);
    assert.equal(host.startedMs, clock.monotonicMs());
  });

  it('counts its connections and uses over all workers', () => {
    const fixture = new Fixture();
    const { owner, workers } = fixture.stats;
    const host = fixture.host();
    const [worker] = workers;
    const base = worker!.stats.base(host.snapshot.statBlock);
    worker!.stats.values[base + HOST_STATS.index.cx_total]! += 2;
    worker!.stats.values[base + HOST_STATS.index.rq_total]! += 5;
    assert.deepEqual([host.uses, host.activeConnections], [7, 0]);
    owner.shared.records.addActiveConnections(host.recordAddress, 3);
    assert.equal(host.activeConnections, 3);
    assert.equal(host.takeWanted(), false);
    worker!.memory.records.noteWanted(host.recordAddress);
    assert.deepEqual([host.takeWanted(), host.takeWanted()], [true, false]);
  });

  it('has its times recorded where it was told, and nowhere once it has left', () => {
    const fixture = new Fixture();
    const { records } = fixture.stats.owner.shared;
    const host = fixture.host();
    host.lendTimes(77);
    assert.equal(records.hostTimes(host.recordAddress), 77);
    assert.equal(host.isRetired, false);
    host.retire();
    assert.deepEqual([records.hostTimes(host.recordAddress), host.isRetired], [0, true]);
    // Its record may be another's by now.
    host.lendTimes(78);
    assert.equal(records.hostTimes(host.recordAddress), 0);
  });

  describe('is checked', () => {
    const ip = (port: number) => ({ kind: 'ip', ip: '10.0.0.9', port }) as const;
    const pipe = { kind: 'pipe', path: '/a', mode: 0 } as const;
    const cases: {
      readonly name: string;
      readonly check?: Partial<NonNullable<HostSettings['check']>>;
      readonly address?: HostSettings['address'];
      readonly clusterPort?: number;
      readonly kind?: 'tcp';
      readonly expected: object;
    }[] = [
      { name: 'where it serves', expected: { address: ip(80), authority: 'cluster' } },
      { name: 'at the port of the cluster', clusterPort: 81, expected: { address: ip(81), authority: 'cluster' } },
      {
        name: 'at a port and by a name of its own',
        clusterPort: 81,
        check: { port: 82, hostname: 'own' },
        expected: { address: ip(82), authority: 'own' },
      },
      {
        name: 'at an address of its own before any port',
        clusterPort: 81,
        check: { address: { ...ip(83), ip: '10.0.0.1' }, port: 82 },
        expected: { address: { ...ip(83), ip: '10.0.0.1' }, authority: 'cluster' },
      },
      {
        name: 'at its path, which has no ports',
        address: pipe,
        clusterPort: 81,
        expected: { address: pipe, authority: 'cluster' },
      },
      { name: 'without a name by TCP', kind: 'tcp', expected: { address: ip(80), authority: '' } },
    ];
    for (const { name, check, address = ip(80), clusterPort = 0, kind, expected } of cases) {
      it(name, () => {
        const probe = kind === 'tcp' ? { tcp_health_check: {} } : { http_health_check: { path: '/', host: 'cluster' } };
        const health_checks = [
          {
            timeout: '1s',
            interval: '1s',
            unhealthy_threshold: 1,
            healthy_threshold: 1,
            alt_port: clusterPort,
            ...probe,
          },
        ];
        const { healthCheck } = clusterSettings(clusterNamed('web', { health_checks }));
        const own = check && { check: { ...CHECK, ...check } };
        assert.deepEqual(new Fixture().host({ address, ...own }).target(healthCheck!), expected);
      });
    }
  });

  it('knows its last check, and the one that decided on its state, which may be its first', () => {
    const host = new Fixture().host();
    const noted = () => [host.lastCheck?.detail, host.decidingCheck?.detail];
    assert.deepEqual(noted(), [undefined, undefined]);
    const steps: [detail: string, isDeciding: boolean, deciding: string][] = [
      ['first', false, 'first'],
      ['second', false, 'first'],
      ['third', true, 'third'],
      ['fourth', false, 'third'],
    ];
    for (const [detail, isDeciding, deciding] of steps) {
      host.noteCheck({ kind: 'tcp', endedMs: 0, hasPassed: true, detail }, isDeciding);
      assert.deepEqual(noted(), [detail, deciding]);
    }
  });

  it('may go when its checks or its configuration say that it fails, and is ejected by its detector alone', () => {
    const host = new Fixture().host();
    const { failedActiveHealthCheck, failedEdsHealth, failedOutlierCheck, degradedActiveHealthCheck } = HealthFlag;
    for (const [flags, isRemovable, isEjected] of [
      [0, false, false],
      [failedActiveHealthCheck, true, false],
      [failedEdsHealth, true, false],
      [failedOutlierCheck, false, true],
      [degradedActiveHealthCheck, false, false],
    ] as const) {
      host.setHealthFlags(flags, true);
      assert.deepEqual([host.isRemovable, host.isEjected], [isRemovable, isEjected], `${flags}`);
      host.setHealthFlags(flags, false);
    }
  });

  it('adds up what its detector asks for by who has failed, and ends rows of failures', () => {
    const fixture = new Fixture();
    const [worker] = fixture.stats.workers;
    const host = fixture.host({}, 0, true);
    const base = worker!.stats.base(host.snapshot.outlierBlock);
    for (const [name, count] of Object.entries({
      external_total: 5,
      external_success: 3,
      local_total: 7,
      local_success: 2,
    })) {
      worker!.stats.values[base + OUTLIER_HOST_STATS.index[name as 'local_total']]! += count;
    }
    assert.deepEqual(
      [host.outlierVolume('external'), host.outlierVolume('local')],
      [
        { total: 5, success: 3 },
        { total: 7, success: 2 },
      ],
    );
    const { records } = worker!.memory;
    const fail = (row: FailureRow): number => records.addFailure(host.recordAddress, row);
    assert.deepEqual([fail(FailureRow.localFailures), fail(FailureRow.localFailures)], [1, 2]);
    host.endFailures(FailureRow.localFailures);
    assert.equal(fail(FailureRow.localFailures), 1);
  });

  it('shows what its settings say', () => {
    const subsetValues = [{ key: 'k', value: 'v', elements: null }];
    assert.deepEqual(new Fixture().host({ subsetValues }).subsetValues, subsetValues);
    const fields = { hashKey: 'k', hostname: 'h', localityWeight: 3, priority: 2, canary: true, weight: 7 };
    const host = new Fixture().host(fields);
    const { hashKey, hostname, localityWeight, priority, canary, weight } = host;
    assert.deepEqual({ hashKey, hostname, localityWeight, priority, canary, weight }, fields);
  });
});
