// The detector of one cluster on main, over real shared memory: two workers have counted what the tests say, and a clock that
// they turn runs the intervals.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import fc from 'fast-check';
import { RuntimeValues } from '../../../../../src/base/runtime.ts';
import type { ActiveHost } from '../../../../../src/control-plane/cluster-manager/active-host.ts';
import { ClusterManager } from '../../../../../src/control-plane/cluster-manager/cluster-manager.ts';
import { OutlierEventLog } from '../../../../../src/control-plane/cluster-manager/outlier-detection/event-log.ts';
import { OutlierDetector } from '../../../../../src/control-plane/cluster-manager/outlier-detection/outlier-detector.ts';
import { DnsResolvers } from '../../../../../src/control-plane/dns/resolvers.ts';
import { Loggers } from '../../../../../src/log/index.ts';
import type { ClusterSnapshot, ConsecutiveKind } from '../../../../../src/snapshot/index.ts';
import { OUTLIER_HOST_STATS, type OUTLIER_STATS } from '../../../../../src/stats/index.ts';
import { FailureRow, HealthFlag } from '../../../../../src/wasm/shared-memory.ts';
import { clusterNamed, type JsonObject, mustLoad, socketAddress, withClusters } from '../../../../support/bootstrap.ts';
import { eventually } from '../../../../support/eventually.ts';
import { answer, HealthServer } from '../../../../support/health-server.ts';
import { lbTables } from '../../../../support/lb.ts';
import { ManualClock } from '../../../../support/manual-clock.ts';
import { outlierSettings } from '../../../../support/outliers.ts';
import { type StatsFixture, statsFixture } from '../../../../support/stats.ts';

const { failedOutlierCheck: EJECTED } = HealthFlag;
const INTERVAL_MS = 10_000;
const BASE_MS = 30_000;
const LOGGERS = new Loggers({ levels: { default: 'off' }, threadId: 0, sink: { write() {} } });

interface Options {
  readonly hosts?: number;
  readonly detection?: JsonObject;
  readonly fields?: JsonObject;
  readonly runtime?: Record<string, string>;
  readonly random?: () => number;
  readonly eventLog?: string;
  readonly port?: number;
}

class Watched implements Disposable {
  readonly clock = new ManualClock();
  readonly runtime: RuntimeValues;
  readonly stats: StatsFixture = statsFixture({ workerCount: 2 });
  readonly published: ClusterSnapshot[] = [];
  readonly manager: ClusterManager;

  constructor({ hosts = 10, detection = {}, fields = {}, runtime = {}, random, eventLog = '', port }: Options = {}) {
    const { store, owner } = this.stats;
    this.runtime = new RuntimeValues(new Map(Object.entries(runtime)));
    this.manager = new ClusterManager({
      stats: store,
      memory: owner,
      tables: lbTables(owner),
      clock: this.clock,
      random: { u32: random ?? (() => 0) },
      loggers: LOGGERS,
      workers: {
        publishCluster: () => {},
        removeCluster: () => {},
        publishHosts: (_update, applied) => {
          this.published.push(this.manager.snapshots()[0]!);
          applied();
        },
      },
      resolvers: new DnsResolvers(this.clock),
      runtime: this.runtime,
      localCluster: '',
      locality: { region: '', zone: '', subZone: '' },
      outlierEventLogPath: eventLog,
      headerPrefix: 'x-proxy',
    });
    const members = Array.from({ length: hosts }, (_, index) => ({
      endpoint: { address: socketAddress('127.0.0.1', port ?? index + 1) },
    }));
    const cluster = clusterNamed('web', {
      load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints: members }] },
      outlier_detection: { max_ejection_percent: 100, ...detection },
      ...fields,
    });
    this.manager.addStatic(mustLoad(withClusters(cluster)).clusters[0]!);
    void this.manager.start();
  }

  [Symbol.dispose](): void {
    this.manager.stop();
  }

  get hosts(): readonly ActiveHost[] {
    return this.cluster.hosts();
  }

  get cluster() {
    return [...this.manager.clusters()][0]!;
  }

  /** Indexes of those out of service. */
  get ejected(): number[] {
    return this.hosts.flatMap(({ healthFlags }, index) => ((healthFlags & EJECTED) === 0 ? [] : [index]));
  }

  stat(name: keyof (typeof OUTLIER_STATS)['index']): number {
    return this.stats.store.value(`cluster.web.outlier_detection.${name}`) ?? 0;
  }

  /** A worker tells of a row. */
  row(index: number, kind: ConsecutiveKind = 'consecutive-5xx'): void {
    this.manager.hostFailedInRow('web', this.hosts[index]!.recordAddress, kind);
  }

  /** The workers have had requests between them, of which some went well. */
  requests(index: number, total: number, success: number, origin: 'external' | 'local' = 'external'): void {
    const { outlierBlock } = this.hosts[index]!.snapshot;
    for (const [worker, { stats }] of this.stats.workers.entries()) {
      const half = (count: number): number => (worker === 0 ? Math.floor(count / 2) : Math.ceil(count / 2));
      const base = stats.base(outlierBlock);
      stats.values[base + OUTLIER_HOST_STATS.index[`${origin}_total`]]! += half(total);
      stats.values[base + OUTLIER_HOST_STATS.index[`${origin}_success`]]! += half(success);
    }
  }

  /** Each host has had so many of a hundred requests go well. */
  rates(...rates: number[]): void {
    for (const [index, rate] of rates.entries()) this.requests(index, 100, rate);
  }

  interval(count = 1): void {
    for (let index = 0; index < count; index += 1) this.clock.turn(INTERVAL_MS);
  }
}

describe('failures in a row', () => {
  it('put the host out of service, and the workers are told', () => {
    using watched = new Watched();
    watched.row(3);
    assert.deepEqual(watched.ejected, [3]);
    assert.equal(watched.published.length, 1);
    assert.equal(watched.stats.store.value('cluster.web.membership_healthy'), 9);
    assert.deepEqual(
      [
        watched.stat('ejections_active'),
        watched.stat('ejections_total'),
        watched.stat('ejections_enforced_total'),
        watched.stat('ejections_detected_consecutive_5xx'),
        watched.stat('ejections_enforced_consecutive_5xx'),
        watched.stat('ejections_consecutive_5xx'),
      ],
      [1, 1, 1, 1, 1, 1],
    );
  });

  const kinds = [
    ['consecutive-5xx', 'serverErrors', 'enforcing_consecutive_5xx'],
    ['consecutive-gateway-failure', 'gatewayFailures', 'enforcing_consecutive_gateway_failure'],
    ['consecutive-local-origin-failure', 'localFailures', 'enforcing_consecutive_local_origin_failure'],
  ] as const;
  for (const [kind, row, field] of kinds) {
    const stat = kind.replaceAll('-', '_') as 'consecutive_5xx';
    it(`of kind ${kind} have consequences as often as is asked for, and begin anew`, () => {
      let draw = 0;
      using watched = new Watched({ detection: { [field]: 30 }, random: () => draw });
      const records = watched.stats.workers[0]!.memory.records;
      const { recordAddress } = watched.hosts[0]!;
      for (const [now, ejections] of [
        [30, 0],
        [29, 1],
      ] as const) {
        draw = now;
        for (let count = 0; count < 5; count += 1) records.addFailure(recordAddress, FailureRow[row]);
        watched.row(0, kind);
        assert.equal(records.addFailure(recordAddress, FailureRow[row]), 1);
        assert.equal(watched.stat('ejections_enforced_total'), ejections);
        assert.equal(watched.stat(`ejections_enforced_${stat}`), ejections);
      }
      assert.equal(watched.stat(`ejections_detected_${stat}`), 2);
      assert.equal(watched.stat('ejections_total'), 2);
      assert.equal(watched.stat('ejections_consecutive_5xx'), kind === 'consecutive-5xx' ? 2 : 0);
      assert.equal(watched.published.length, 1);
    });
  }

  it('of gateways have no consequences unless they are asked for', () => {
    using watched = new Watched();
    watched.row(0, 'consecutive-gateway-failure');
    assert.deepEqual(watched.ejected, []);
    assert.equal(watched.stat('ejections_detected_consecutive_gateway_failure'), 1);
  });

  it('say nothing new of a host that is out of service, nor of one that has gone', () => {
    using watched = new Watched();
    watched.row(0);
    watched.row(0);
    watched.manager.hostFailedInRow('web', 4, 'consecutive-5xx');
    watched.manager.hostFailedInRow('gone', watched.hosts[1]!.recordAddress, 'consecutive-5xx');
    assert.equal(watched.stat('ejections_detected_consecutive_5xx'), 1);
    assert.deepEqual(watched.ejected, [0]);
  });
});

describe('how many hosts go at most', () => {
  const cases: readonly (readonly [string, JsonObject, number, number])[] = [
    ['a share of them', { max_ejection_percent: 30 }, 10, 3],
    ['a share that no further host fits into', { max_ejection_percent: 39 }, 10, 3],
    ['one, whatever the share', { max_ejection_percent: 10 }, 3, 1],
    ['one by default', {}, 3, 1],
    ['none, when one must not always go', { max_ejection_percent: 10, always_eject_one_host: false }, 3, 0],
    ['none of a share of none', { max_ejection_percent: 0 }, 3, 0],
    ['one of a share of none, when one may always go', { max_ejection_percent: 0, always_eject_one_host: true }, 3, 1],
    ['all', { max_ejection_percent: 100 }, 4, 4],
  ];
  for (const [name, detection, hosts, expected] of cases) {
    it(`is ${name}`, () => {
      const withDefault = 'max_ejection_percent' in detection ? detection : { ...detection, max_ejection_percent: 10 };
      using watched = new Watched({ hosts, detection: withDefault });
      for (let index = 0; index < hosts; index += 1) watched.row(index);
      assert.equal(watched.ejected.length, expected);
      assert.equal(watched.stat('ejections_active'), expected);
      assert.equal(watched.stat('ejections_overflow'), hosts - expected);
      assert.equal(watched.stat('ejections_total'), expected);
    });
  }

  it('is never passed, whatever happens', () => {
    const event = fc.oneof(
      fc.record({ row: fc.nat(19) }),
      fc.record({ rates: fc.array(fc.nat(100), { minLength: 20, maxLength: 20 }) }),
      fc.record({ intervals: fc.integer({ min: 1, max: 4 }) }),
    );
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.nat(100),
        fc.boolean(),
        fc.array(event, { maxLength: 30 }),
        (hosts, percent, always, events) => {
          using watched = new Watched({
            hosts,
            detection: {
              max_ejection_percent: percent,
              always_eject_one_host: always,
              enforcing_failure_percentage: 100,
              success_rate_stdev_factor: 500,
            },
          });
          const most = Math.max(always ? 1 : 0, Math.floor((hosts * percent) / 100));
          for (const each of events) {
            if ('row' in each) watched.row(each.row % hosts);
            else if ('rates' in each) watched.rates(...each.rates.slice(0, hosts));
            else watched.interval(each.intervals);
            assert.ok(watched.ejected.length <= most, `${watched.ejected.length} of ${hosts}, at most ${most}`);
            assert.equal(watched.stat('ejections_active'), watched.ejected.length);
          }
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe('an ejection', () => {
  /** Intervals that pass until the host is back. */
  function lasts(watched: Watched, index: number): number {
    let intervals = 0;
    while (watched.ejected.includes(index)) {
      watched.interval();
      intervals += 1;
      assert.ok(intervals < 1000);
    }
    return intervals;
  }

  it('ends in the first interval behind its time, and everybody is told', () => {
    using watched = new Watched();
    watched.row(2);
    watched.interval(2);
    assert.deepEqual(watched.ejected, [2]);
    watched.interval();
    assert.deepEqual(watched.ejected, []);
    assert.equal(watched.stat('ejections_active'), 0);
    assert.equal(watched.published.length, 2);
    assert.equal(watched.stats.store.value('cluster.web.membership_healthy'), 10);
  });

  it('is kept with its detector, its times and its number, also behind its end', () => {
    using watched = new Watched();
    const { clock } = watched;
    assert.equal(watched.hosts[2]!.lastEjection, undefined);
    const beganMs = clock.wallMs();
    watched.row(2, 'consecutive-5xx');
    const first = { kind: 'consecutive-5xx', successRate: undefined, count: 1, beganMs };
    assert.deepEqual(watched.hosts[2]!.lastEjection, { ...first, endedMs: undefined });
    watched.interval(3);
    assert.deepEqual(watched.hosts[2]!.lastEjection, { ...first, endedMs: clock.wallMs() });
    watched.row(2, 'consecutive-5xx');
    const again = { ...first, count: 2, beganMs: clock.wallMs(), endedMs: undefined };
    assert.deepEqual(watched.hosts[2]!.lastEjection, again);
  });

  it('leaves no row of failures behind', () => {
    using watched = new Watched();
    watched.row(0);
    const { records } = watched.stats.workers[0]!.memory;
    const { recordAddress } = watched.hosts[0]!;
    for (const row of Object.values(FailureRow)) records.addFailure(recordAddress, row);
    watched.interval(3);
    for (const row of Object.values(FailureRow)) assert.equal(records.addFailure(recordAddress, row), 1);
  });

  it('lasts longer each time up to a limit, and shorter again for each interval in service', () => {
    using watched = new Watched({ detection: { base_ejection_time: '30s', max_ejection_time: '75s' } });
    const durations: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      watched.row(0);
      durations.push(lasts(watched, 0));
    }
    assert.deepEqual(durations, [3, 6, 8, 8, 8]);
    // The step that grows no more is the fourth; each interval from the second on takes one back.
    watched.interval(3);
    watched.row(0);
    assert.equal(lasts(watched, 0), 6);
    watched.interval(20);
    watched.row(0);
    assert.equal(lasts(watched, 0), 3);
  });

  it('lasts a random while longer', () => {
    using watched = new Watched({ detection: { max_ejection_time_jitter: '25s' }, random: () => 25_000 + 25_001 * 3 });
    watched.row(0);
    assert.equal(lasts(watched, 0), 6);
  });

  it('is forgotten with its host', () => {
    using watched = new Watched({ hosts: 2 });
    const { clock, runtime, hosts } = watched;
    const stats = watched.stats.store;
    const events = new OutlierEventLog(clock, LOGGERS, '');
    const cluster = { name: 'other', statName: 'other', onHealthChange() {} };
    const tools = { clock, runtime, stats, events, random: { u32: () => 0 } };
    const detector = new OutlierDetector(outlierSettings(), cluster, tools);
    const active = (): number => stats.value('cluster.other.outlier_detection.ejections_active')!;
    detector.setHosts(hosts);
    detector.failedInRow(hosts[0]!.recordAddress, 'consecutive-5xx');
    assert.equal(active(), 1);
    detector.setHosts(hosts.slice(1));
    assert.equal(active(), 0);
    detector.failedInRow(hosts[0]!.recordAddress, 'consecutive-5xx');
    assert.equal(active(), 0);
    detector.failedInRow(hosts[1]!.recordAddress, 'consecutive-5xx');
    assert.equal(active(), 1);
    detector.setHosts(hosts.slice(1));
    assert.equal(active(), 1);
    // A host in service leaves nothing behind.
    hosts[0]!.setHealthFlags(EJECTED, false);
    detector.setHosts(hosts);
    detector.setHosts(hosts.slice(1));
    assert.equal(active(), 1);
    // The other one goes on as it was, and comes back when its time is over.
    watched.manager.stop();
    detector.start();
    clock.turn(BASE_MS);
    assert.equal(active(), 0);
    detector.stop();
  });

  it('is not ended by a check that a host has passed which is still unhealthy, or which nobody watches', () => {
    using watched = new Watched({ hosts: 2 });
    const { clock, runtime, hosts } = watched;
    const stats = watched.stats.store;
    const events = new OutlierEventLog(clock, LOGGERS, '');
    const changed: ActiveHost[] = [];
    const cluster = { name: 'other', statName: 'other', onHealthChange: (host: ActiveHost) => void changed.push(host) };
    const tools = { clock, runtime, stats, events, random: { u32: () => 0 } };
    const detector = new OutlierDetector(outlierSettings(), cluster, tools);
    const [first, second] = hosts;
    detector.setHosts([first!]);
    detector.failedInRow(first!.recordAddress, 'consecutive-5xx');
    second!.setHealthFlags(EJECTED, true);
    detector.checkPassed(second!);
    first!.setHealthFlags(HealthFlag.failedActiveHealthCheck, true);
    detector.checkPassed(first!);
    assert.deepEqual(changed, [first]);
    assert.deepEqual(watched.ejected, [0, 1]);
    first!.setHealthFlags(HealthFlag.failedActiveHealthCheck, false);
    detector.checkPassed(first!);
    assert.deepEqual(changed, [first, first]);
    assert.deepEqual(watched.ejected, [1]);
    detector.checkPassed(first!);
    assert.deepEqual(changed, [first, first]);
  });
});

describe('a detector', () => {
  it('has one timer between its start and its stop, however often it is told', () => {
    using watched = new Watched({ hosts: 1 });
    const { clock, runtime } = watched;
    const events = new OutlierEventLog(clock, LOGGERS, '');
    const tools = { clock, runtime, stats: watched.stats.store, events, random: { u32: () => 0 } };
    const before = clock.timerCount;
    const detector = new OutlierDetector(
      outlierSettings(),
      { name: '', statName: 'other', onHealthChange() {} },
      tools,
    );
    detector.stop();
    for (const count of [1, 1]) {
      detector.start();
      assert.equal(clock.timerCount - before, count);
    }
    clock.turn(INTERVAL_MS);
    assert.equal(clock.timerCount - before, 1);
    for (let stops = 0; stops < 2; stops += 1) detector.stop();
    assert.equal(clock.timerCount, before);
    detector.start();
    assert.equal(clock.timerCount - before, 1);
    detector.stop();
  });

  const comparisons = [
    ['external', 'success_rate', 'failure_percentage'],
    ['local', 'local_origin_success_rate', 'local_origin_failure_percentage'],
  ] as const;
  for (const [origin, successRate, failurePercentage] of comparisons) {
    it(`counts what it finds of ${origin} failures, by how it has found it`, () => {
      const enforced = {
        enforcing_failure_percentage: 100,
        enforcing_failure_percentage_local_origin: 100,
        failure_percentage_threshold: 90,
      };
      using watched = new Watched({ hosts: 5, detection: enforced });
      const counts = (): number[] =>
        [successRate, failurePercentage].flatMap((name) => [
          watched.stat(`ejections_detected_${name}`),
          watched.stat(`ejections_enforced_${name}`),
        ]);
      const rates = (...list: number[]): void => {
        for (const [index, rate] of list.entries()) watched.requests(index, 100, rate, origin);
      };
      rates(100, 100, 100, 100, 50);
      watched.interval();
      assert.deepEqual(counts(), [1, 1, 0, 0]);
      watched.interval(3);
      assert.deepEqual(watched.ejected, []);
      // Hosts that are all as bad are no outliers among themselves.
      rates(10, 10, 10, 10, 10);
      watched.interval();
      assert.deepEqual(counts(), [1, 1, 5, 5]);
      assert.equal(watched.stat('ejections_success_rate'), 1);
    });
  }
});

describe('the success rate', () => {
  it('puts hosts out of service that are far below the others', () => {
    using watched = new Watched({ hosts: 5 });
    // Average 90, standard deviation 20: the threshold is 90 - 1.9 * 20 = 52.
    watched.rates(100, 100, 100, 100, 50);
    watched.interval();
    assert.deepEqual(watched.ejected, [4]);
    assert.deepEqual(
      watched.hosts.map(({ successRate }) => successRate),
      [100, 100, 100, 100, 50],
    );
    assert.deepEqual(
      [watched.cluster.outlier!.successRateAverage, watched.cluster.outlier!.successRateEjectionThreshold],
      [90, 52],
    );
    assert.deepEqual(
      [watched.stat('ejections_detected_success_rate'), watched.stat('ejections_enforced_success_rate')],
      [1, 1],
    );
    assert.deepEqual(
      [watched.hosts[4]!.lastEjection!.kind, watched.hosts[4]!.lastEjection!.successRate],
      ['success-rate', 50],
    );
    watched.interval();
    assert.deepEqual(
      watched.hosts.map(({ successRate }) => successRate),
      [-1, -1, -1, -1, -1],
    );
    assert.equal(watched.cluster.outlier!.successRateAverage, -1);
    assert.equal(watched.cluster.outlier!.localOriginSuccessRateAverage, -1);
  });

  it('is that of one interval, not of all time', () => {
    using watched = new Watched({ hosts: 5 });
    watched.rates(100, 100, 100, 100, 90);
    watched.interval();
    assert.deepEqual(watched.ejected, [4]);
    watched.interval(3);
    watched.rates(99, 99, 99, 99, 99);
    watched.interval();
    assert.deepEqual(watched.ejected, []);
    assert.equal(watched.cluster.outlier!.successRateAverage, 99);
  });

  it('compares nobody without enough hosts that have had enough requests', () => {
    using watched = new Watched({ hosts: 6 });
    for (let index = 0; index < 4; index += 1) watched.requests(index, 100, 100);
    watched.requests(4, 99, 0);
    watched.interval();
    assert.deepEqual(watched.ejected, []);
    assert.equal(watched.cluster.outlier!.successRateAverage, -1);
    // Enough of them for the percentage of failures, so the rate is shown.
    assert.deepEqual(
      watched.hosts.map(({ successRate }) => successRate),
      [100, 100, 100, 100, 0, -1],
    );
  });

  it('is shown of no host where they are too few to be compared', () => {
    using watched = new Watched({ hosts: 4 });
    watched.rates(100, 100, 100, 50);
    watched.interval();
    assert.deepEqual(
      watched.hosts.map(({ successRate }) => successRate),
      [-1, -1, -1, -1],
    );
  });

  it('is none of a host without requests, nor of all together, whatever is enough', () => {
    const detection = {
      success_rate_minimum_hosts: 0,
      success_rate_request_volume: 0,
      failure_percentage_minimum_hosts: 0,
      failure_percentage_request_volume: 0,
      enforcing_failure_percentage: 100,
    };
    using watched = new Watched({ hosts: 3, detection });
    watched.interval();
    assert.deepEqual(watched.ejected, []);
    assert.equal(watched.cluster.outlier!.successRateAverage, -1);
    watched.requests(0, 1, 1);
    watched.interval();
    assert.equal(watched.cluster.outlier!.successRateAverage, 100);
    assert.deepEqual(
      watched.hosts.map(({ successRate }) => successRate),
      [100, -1, -1],
    );
  });

  it('leaves hosts out that are out of service', () => {
    using watched = new Watched({ hosts: 6 });
    watched.row(5);
    watched.rates(100, 100, 100, 100, 90, 0);
    watched.interval();
    assert.equal(watched.cluster.outlier!.successRateAverage, 98);
    assert.deepEqual(
      watched.hosts.map(({ successRate }) => successRate),
      [100, 100, 100, 100, 90, -1],
    );
    assert.deepEqual(watched.ejected, [4, 5]);
  });

  it('of connections is a comparison of its own', () => {
    using watched = new Watched({ hosts: 5, detection: { split_external_local_origin_errors: true } });
    for (const [index, rate] of [100, 100, 100, 100, 50].entries()) watched.requests(index, 100, rate, 'local');
    watched.interval();
    assert.deepEqual(watched.ejected, [4]);
    assert.deepEqual(
      watched.hosts.map(({ successRate, localOriginSuccessRate }) => [successRate, localOriginSuccessRate]),
      [100, 100, 100, 100, 50].map((rate) => [-1, rate]),
    );
    assert.equal(watched.stat('ejections_enforced_local_origin_success_rate'), 1);
    assert.equal(watched.stat('ejections_detected_success_rate'), 0);
    assert.deepEqual(
      [
        watched.cluster.outlier!.localOriginSuccessRateAverage,
        watched.cluster.outlier!.localOriginSuccessRateEjectionThreshold,
      ],
      [90, 52],
    );
  });
});

describe('the percentage of failures', () => {
  it('puts hosts out of service from its threshold on', () => {
    using watched = new Watched({
      hosts: 5,
      detection: { enforcing_failure_percentage: 100, enforcing_success_rate: 0, failure_percentage_threshold: 40 },
    });
    watched.rates(100, 61, 60, 0, 100);
    watched.interval();
    assert.deepEqual(watched.ejected, [2, 3]);
    assert.equal(watched.stat('ejections_detected_failure_percentage'), 2);
    assert.equal(watched.stat('ejections_enforced_failure_percentage'), 2);
  });

  it('only counts by default', () => {
    using watched = new Watched({ hosts: 5, detection: { enforcing_success_rate: 0 } });
    watched.rates(100, 100, 100, 100, 0);
    watched.interval();
    assert.deepEqual(watched.ejected, []);
    assert.equal(watched.stat('ejections_detected_failure_percentage'), 1);
    assert.equal(watched.stat('ejections_detected_success_rate'), 1);
  });

  it('of connections is judged apart, with fewer hosts and requests when asked to', () => {
    using watched = new Watched({
      hosts: 2,
      detection: {
        enforcing_failure_percentage_local_origin: 100,
        failure_percentage_minimum_hosts: 1,
        failure_percentage_request_volume: 3,
      },
    });
    watched.requests(0, 3, 0, 'local');
    watched.requests(1, 2, 0, 'local');
    watched.interval();
    assert.deepEqual(watched.ejected, [0]);
    assert.equal(watched.stat('ejections_enforced_local_origin_failure_percentage'), 1);
  });

  it('does not eject a host a second time that its success rate has ejected', () => {
    using watched = new Watched({ hosts: 5, detection: { enforcing_failure_percentage: 100 } });
    watched.rates(100, 100, 100, 100, 0);
    watched.interval();
    assert.deepEqual(watched.ejected, [4]);
    assert.equal(watched.stat('ejections_active'), 1);
    assert.equal(watched.stat('ejections_enforced_total'), 1);
    watched.interval(3);
    assert.equal(watched.stat('ejections_active'), 0);
  });
});

describe('the runtime', () => {
  it('overrides each number of a detector', () => {
    using watched = new Watched({
      hosts: 5,
      runtime: {
        'outlier_detection.interval_ms': '1000',
        'outlier_detection.base_ejection_time_ms': '2000',
        'outlier_detection.max_ejection_percent': '40',
        'outlier_detection.enforcing_consecutive_gateway_failure': '100',
        'outlier_detection.enforcing_consecutive_5xx': '{"numerator":0,"denominator":"MILLION"}',
      },
    });
    for (let index = 0; index < 5; index += 1) watched.row(index, 'consecutive-gateway-failure');
    assert.deepEqual(watched.ejected, [0, 1]);
    assert.equal(watched.stat('ejections_overflow'), 3);
    watched.clock.turn(1000);
    assert.deepEqual(watched.ejected, [0, 1]);
    watched.clock.turn(1000);
    assert.deepEqual(watched.ejected, []);
    watched.row(0);
    assert.deepEqual(watched.ejected, []);
  });

  it('may change while the detector runs', () => {
    using watched = new Watched({ hosts: 5 });
    watched.runtime.replace(new Map([['outlier_detection.success_rate_minimum_hosts', '6']]));
    watched.rates(100, 100, 100, 100, 50);
    watched.interval();
    assert.deepEqual(watched.ejected, []);
    watched.runtime.replace(new Map());
    watched.rates(100, 100, 100, 100, 50);
    watched.interval();
    assert.deepEqual(watched.ejected, [4]);
  });
});

describe('a passed health check', () => {
  const check = {
    timeout: '1s',
    interval: '5s',
    no_traffic_interval: '5s',
    unhealthy_threshold: 1,
    healthy_threshold: 1,
    http_health_check: { path: '/' },
  };

  async function checked(t: TestContext, detection: JsonObject): Promise<Watched> {
    const server = await HealthServer.start(answer(200));
    const watched = new Watched({ hosts: 1, port: server.port, detection, fields: { health_checks: [check] } });
    t.after(async () => {
      watched[Symbol.dispose]();
      await server[Symbol.asyncDispose]();
    });
    await passed(watched, 1);
    return watched;
  }

  async function passed(watched: Watched, count: number): Promise<void> {
    const { store } = watched.stats;
    await eventually(() => store.value('cluster.web.health_check.success') === count, `${count} checks`);
  }

  it('ends an ejection', async (t) => {
    const watched = await checked(t, {});
    watched.row(0);
    assert.deepEqual(watched.ejected, [0]);
    watched.clock.turn(5000);
    await passed(watched, 2);
    assert.deepEqual(watched.ejected, []);
    assert.equal(watched.stat('ejections_active'), 0);
  });

  it('ends none where that is not wanted', async (t) => {
    const watched = await checked(t, { successful_active_health_check_uneject_host: false });
    watched.row(0);
    watched.clock.turn(5000);
    await passed(watched, 2);
    assert.deepEqual(watched.ejected, [0]);
  });
});

describe('the file of events', () => {
  it('has a line for each ejection and each end', async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-outliers-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const file = path.join(folder, 'events.json');
    let draw = 0;
    using watched = new Watched({ eventLog: file, detection: { enforcing_consecutive_5xx: 50 }, random: () => draw });
    watched.row(7);
    watched.interval(BASE_MS / INTERVAL_MS);
    draw = 99;
    watched.clock.turn(5000);
    watched.row(7);
    const lines = (): string[] => readFileSync(file, 'utf8').split('\n').slice(0, -1);
    await eventually(() => lines().length === 3, 'three lines');
    const events = lines().map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.deepEqual(
      events.map(({ action, enforced, num_ejections, secs_since_last_action, upstream_url }) => [
        action,
        enforced,
        num_ejections,
        secs_since_last_action,
        upstream_url,
      ]),
      [
        ['EJECT', true, 1, undefined, '127.0.0.1:8'],
        ['UNEJECT', false, 1, '30', '127.0.0.1:8'],
        ['EJECT', false, 1, '5', '127.0.0.1:8'],
      ],
    );
  });

  it('says by which average and threshold a host was judged, those of its requests or those of connections', async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-outliers-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const file = path.join(folder, 'events.json');
    using watched = new Watched({ hosts: 6, eventLog: file });
    const lines = (): string[] => readFileSync(file, 'utf8').split('\n').slice(0, -1);
    watched.rates(100, 100, 100, 100, 50);
    for (const index of [1, 2, 3, 5]) watched.requests(index, 100, 90, 'local');
    watched.requests(0, 100, 50, 'local');
    watched.interval();
    await eventually(() => lines().length === 2, 'two lines');
    assert.deepEqual(
      lines().map((line) => JSON.parse(line).eject_success_rate_event),
      [
        { host_success_rate: 50, cluster_average_success_rate: 90, cluster_success_rate_ejection_threshold: 52 },
        { host_success_rate: 50, cluster_average_success_rate: 82, cluster_success_rate_ejection_threshold: 51 },
      ],
    );
    // Goes on in a new file when the old one is moved away.
    rmSync(file);
    watched.manager.reopenEventLogs();
    watched.row(1);
    await eventually(() => lines().length === 1, 'a line in a new file');
  });
});
