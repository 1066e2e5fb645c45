// The detector of one cluster on main: failures in a row, how many hosts go and for how long, and who hears of it.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import fc from 'fast-check';
import type { ActiveHost } from '../../../../../src/control-plane/cluster-manager/active-host.ts';
import { OutlierEventLog } from '../../../../../src/control-plane/cluster-manager/outlier-detection/event-log.ts';
import { OutlierDetector } from '../../../../../src/control-plane/cluster-manager/outlier-detection/outlier-detector.ts';
import { FailureRow, HealthFlag } from '../../../../../src/wasm/shared-memory.ts';
import type { JsonObject } from '../../../../support/bootstrap.ts';
import { eventually } from '../../../../support/eventually.ts';
import { answer, HealthServer } from '../../../../support/health-server.ts';
import { outlierSettings } from '../../../../support/outliers.ts';
import { INTERVAL_MS, LOGGERS, Watched } from '../../../../support/watched-cluster.ts';

const { failedOutlierCheck: EJECTED } = HealthFlag;
const BASE_MS = 30_000;

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

  it('is as long as it is, whoever comes and goes meanwhile', () => {
    using watched = new Watched({ hosts: 2 });
    const { clock, runtime, hosts } = watched;
    watched.manager.stop();
    const events = new OutlierEventLog(clock, LOGGERS, '');
    const tools = { clock, runtime, stats: watched.stats.store, events, random: { u32: () => 0 } };
    const detector = new OutlierDetector(
      outlierSettings(),
      { name: '', statName: 'other', onHealthChange() {} },
      tools,
    );
    detector.setHosts(hosts.slice(0, 1));
    detector.start();
    detector.failedInRow(hosts[0]!.recordAddress, 'consecutive-5xx');
    clock.turn(INTERVAL_MS);
    detector.setHosts(hosts);
    clock.turn(INTERVAL_MS);
    assert.deepEqual(watched.ejected, [0]);
    clock.turn(BASE_MS - 2 * INTERVAL_MS);
    assert.deepEqual(watched.ejected, []);
    // And it has been the first: the second is twice as long.
    detector.failedInRow(hosts[0]!.recordAddress, 'consecutive-5xx');
    detector.setHosts(hosts.slice(0, 1));
    clock.turn(BASE_MS);
    assert.deepEqual(watched.ejected, [0]);
    clock.turn(BASE_MS);
    assert.deepEqual(watched.ejected, []);
    const late = hosts[1]!.recordAddress;
    detector.failedInRow(late, 'consecutive-5xx');
    assert.deepEqual(watched.ejected, []);
    detector.addHosts(hosts.slice(1));
    detector.failedInRow(late, 'consecutive-5xx');
    assert.deepEqual(watched.ejected, [1]);
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
