// New hosts, whose shares of the requests grow.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { RandomSequence } from '../../../../../src/base/random.ts';
import { RuntimeValues } from '../../../../../src/base/runtime.ts';
import { ActiveCluster } from '../../../../../src/control-plane/cluster-manager/active-cluster.ts';
import type { BalancingSettings } from '../../../../../src/control-plane/cluster-manager/host-lists/host-lists.ts';
import { startShare } from '../../../../../src/control-plane/cluster-manager/host-lists/slow-start.ts';
import { SlowStartTimer } from '../../../../../src/control-plane/cluster-manager/slow-start-timer.ts';
import { LbKernel, LbTables, openPicker, readHostLists } from '../../../../../src/wasm/lb.ts';
import { HealthFlag } from '../../../../../src/wasm/shared-memory.ts';
import { clusterNamed, clusterSettings, type JsonObject } from '../../../../support/bootstrap.ts';
import { BALANCING, NO_LOCAL_CLUSTER } from '../../../../support/clusters.ts';
import { BalancedCluster, host, lb, type NamedHost } from '../../../../support/host-lists.ts';
import { lbModule } from '../../../../support/lb.ts';
import { ManualClock } from '../../../../support/manual-clock.ts';
import { statsFixture } from '../../../../support/stats.ts';

const WINDOW_MS = 60_000;
const SETTINGS = { windowMs: WINDOW_MS, aggression: { key: '', default: 1 }, minWeightPercent: 10 };

describe('the share of a host that starts', () => {
  test('grows with its age, by the aggression, from the least share to all', () => {
    const cases = [
      { aggression: 1, ageMs: 30_000, share: 0.5 },
      { aggression: 2, ageMs: 15_000, share: 0.5 },
      { aggression: 0.5, ageMs: 30_000, share: 0.25 },
      { aggression: 1, ageMs: 0, share: 0.1 },
      { aggression: 1, ageMs: 5_999, share: 0.1 },
      { aggression: 1, ageMs: WINDOW_MS, share: 1 },
      { aggression: 1, ageMs: Number.POSITIVE_INFINITY, share: 1 },
      { aggression: Number.MIN_VALUE, ageMs: WINDOW_MS, share: 1 },
    ];
    for (const { aggression, ageMs, share } of cases) assert.equal(startShare(SETTINGS, aggression, ageMs), share);
    assert.equal(startShare({ ...SETTINGS, minWeightPercent: 0 }, 1, 0), 1 / WINDOW_MS);
    assert.equal(startShare({ ...SETTINGS, minWeightPercent: 100 }, 1, 0), 1);
  });

  test('never shrinks, and is above 0 and never above 1', () => {
    const settings = fc.record({
      windowMs: fc.integer({ min: 1, max: 1_000_000 }),
      aggression: fc.constant({ key: '', default: 1 }),
      minWeightPercent: fc.double({ min: 0, max: 100, noNaN: true }),
    });
    const ages = fc.tuple(fc.nat(2_000_000), fc.nat(2_000_000));
    fc.assert(
      fc.property(settings, fc.double({ min: 0.1, max: 10, noNaN: true }), ages, (slow, aggression, [a, b]) => {
        const early = startShare(slow, aggression, Math.min(a, b));
        assert.ok(early > 0);
        assert.ok(startShare(slow, aggression, Math.max(a, b)) >= early);
        assert.ok(startShare(slow, aggression, Math.max(a, b)) <= 1);
      }),
    );
  });
});

describe('lists with hosts that start', () => {
  function starting(lbPolicy: 'ROUND_ROBIN' | 'LEAST_REQUEST', shares: readonly number[], weights = [1, 1]) {
    const recordAddress = (): number => lb.owner.recordAllocator.allocateHost(1);
    const hosts = weights.map((weight, index) => host('abc'[index]!, { weight, recordAddress: recordAddress() }));
    const cluster = new BalancedCluster({ lbPolicy }, 7);
    cluster.setHostsStarting((index) => shares[index]!, ...(hosts as NamedHost[]));
    return cluster;
  }

  test('give them their share of their weights', () => {
    for (const lbPolicy of ['ROUND_ROBIN', 'LEAST_REQUEST'] as const) {
      assert.deepEqual(starting(lbPolicy, [1, 0.25]).shares(500), { a: 400, b: 100 });
      assert.deepEqual(starting(lbPolicy, [1, 0.25], [1, 4]).shares(500), { a: 250, b: 250 });
    }
  });

  test('let them grow without being made anew', () => {
    const shares = [1, 0.25];
    const cluster = starting('ROUND_ROBIN', shares);
    cluster.shares(50);
    shares[1] = 0.5;
    assert.equal(cluster.grow(), true);
    // A share counts from the next pick on.
    cluster.shares(10);
    assert.deepEqual(cluster.shares(300), { a: 200, b: 100 });
    shares[1] = 1;
    assert.equal(cluster.grow(), false);
    cluster.shares(10);
    assert.deepEqual(cluster.shares(300), { a: 150, b: 150 });
  });

  test('are as others where nobody starts, or there is nothing to choose', () => {
    const plans = [starting('LEAST_REQUEST', [1, 1]), starting('ROUND_ROBIN', [0.1], [1])].map((cluster) => {
      const source = readHostLists(lb.owner.shared, cluster.address);
      assert.equal(source.kind, 'list');
      return source.plan.kind;
    });
    assert.deepEqual(plans, ['least-request', 'cycle']);
  });

  test('count requests in flight against them with the policy of the least request', () => {
    const busy = host('busy', { recordAddress: lb.owner.recordAllocator.allocateHost(1) });
    const fresh = host('fresh', { recordAddress: lb.owner.recordAllocator.allocateHost(1) });
    lb.owner.shared.records.addActiveRequests(busy.recordAddress, 9);
    const shares = (settings: Partial<BalancingSettings>): Record<string, number> => {
      const cluster = new BalancedCluster(settings, 7);
      cluster.setHostsStarting((index) => (index === 1 ? 0.1 : 1), busy, fresh);
      return cluster.shares(220);
    };
    const biased = (activeRequestBias: number | undefined): Record<string, number> =>
      shares({ lbPolicy: 'LEAST_REQUEST', leastRequest: { ...BALANCING.leastRequest, activeRequestBias } });
    for (const bias of [undefined, 1, -1]) assert.deepEqual(biased(bias), { busy: 110, fresh: 110 });
    // As often as the weights say, or less by the square of what is in flight.
    assert.deepEqual(biased(0), { busy: 200, fresh: 20 });
    assert.deepEqual(biased(2), { busy: 20, fresh: 200 });
    assert.deepEqual(shares({ lbPolicy: 'ROUND_ROBIN' }), { busy: 200, fresh: 20 });
  });
});

describe('a cluster with slow start', () => {
  function open(fields: JsonObject = {}, runtime = new Map<string, string>()) {
    const { owner, store } = statsFixture({ workerCount: 1 });
    const clock = new ManualClock();
    const tables = new LbTables(owner, new LbKernel(owner.shared, lbModule));
    const slow_start_config = { slow_start_window: '60s', aggression: { default_value: 1, runtime_key: 'hurry' } };
    const settings = clusterSettings(clusterNamed('web', { round_robin_lb_config: { slow_start_config }, ...fields }));
    const places = {
      stats: store,
      memory: owner,
      tables,
      runtime: new RuntimeValues(runtime),
      clock,
      local: NO_LOCAL_CLUSTER,
    };
    const cluster = new ActiveCluster(settings, false, places);
    const set = (...ports: readonly number[]): void =>
      cluster.setMembers(
        ports.map((port) => ({ ...settings.hosts[0]!, address: { kind: 'ip', ip: '127.0.0.1', port } })),
      )?.();
    /** Of 1000 picks, how many go to each of the hosts. */
    const shares = (): number[] => {
      const source = readHostLists(owner.shared, cluster.snapshot.hostLists);
      assert.equal(source.kind, 'list');
      const { hosts, plan } = source;
      assert.ok(plan.kind === 'schedule' || plan.kind === 'cycle');
      const picker = openPicker(new LbKernel(owner.shared, lbModule), plan, new RandomSequence(5).u32());
      const counts = cluster.snapshot.hosts.map(() => 0);
      for (let pick = 0; pick < 1000; pick += 1) counts[hosts[picker.pick()]!]! += 1;
      return counts;
    };
    return { cluster, clock, set, shares };
  }

  test('spares hosts that come later, until their window is over', () => {
    const { cluster, clock, set, shares } = open();
    set(1);
    clock.turn(WINDOW_MS);
    set(1, 2);
    assert.equal(cluster.isStarting, true);
    const [, atFirst] = shares();
    assert.ok(Math.abs(atFirst! - 1000 / 11) <= 2, `${atFirst}`);
    clock.turn(WINDOW_MS / 2);
    assert.equal(cluster.growWeights(), true);
    const [, later] = shares();
    assert.ok(Math.abs(later! - 1000 / 3) <= 2, `${later}`);
    clock.turn(WINDOW_MS / 2);
    assert.equal(cluster.growWeights(), false);
    cluster.refreshHealth()();
    assert.equal(cluster.isStarting, false);
    assert.deepEqual(shares(), [500, 500]);
  });

  test('takes the aggression of the runtime, if it is above 0', () => {
    for (const [value, share] of [
      ['2', 1 / 2],
      ['0', 1 / 4],
      ['soon', 1 / 4],
    ] as const) {
      const { clock, set, shares, cluster } = open({}, new Map([['hurry', value]]));
      set(1);
      clock.turn(WINDOW_MS);
      set(1, 2);
      clock.turn(WINDOW_MS / 4);
      cluster.growWeights();
      const [, count] = shares();
      assert.ok(Math.abs(count! - (1000 * share) / (1 + share)) <= 2, `${value}: ${count}`);
    }
  });

  test('spares a host that passes its checks again, and no degraded one', () => {
    const http_health_check = { path: '/' };
    const thresholds = { unhealthy_threshold: 1, healthy_threshold: 1, timeout: '1s', interval: '1s' };
    const { cluster, clock, set } = open({ health_checks: [{ http_health_check, ...thresholds }] });
    set(1, 2);
    const [first, second] = cluster.members();
    for (const member of [first!, second!]) member.setHealthFlags(HealthFlag.failedActiveHealthCheck, false);
    clock.turn(WINDOW_MS);
    cluster.refreshHealth()();
    assert.equal(cluster.isStarting, false);
    // To pass once more changes nothing.
    second!.setHealthFlags(HealthFlag.failedActiveHealthCheck, false);
    cluster.refreshHealth()();
    assert.equal(cluster.isStarting, false);
    second!.setHealthFlags(HealthFlag.failedActiveHealthCheck, true);
    second!.setHealthFlags(HealthFlag.failedActiveHealthCheck, false);
    cluster.refreshHealth()();
    assert.equal(cluster.isStarting, true);
    for (const member of [first!, second!]) member.setHealthFlags(HealthFlag.degradedActiveHealthCheck, true);
    cluster.refreshHealth()();
    assert.equal(cluster.isStarting, false);
  });
});

describe('the steps of a slow start', () => {
  test('are a hundredth of its window, and end with it', () => {
    const clock = new ManualClock();
    const grown: number[] = [];
    let ends = 0;
    const grow = (): boolean => {
      grown.push(clock.monotonicMs());
      return grown.length < 3;
    };
    const timer = new SlowStartTimer(clock, { ...SETTINGS, windowMs: 10_000 }, grow, () => {
      ends += 1;
    });
    const begunMs = clock.monotonicMs();
    timer.start();
    timer.start();
    clock.turn(1000);
    assert.deepEqual(grown, [begunMs + 100, begunMs + 200, begunMs + 300]);
    assert.equal(ends, 1);
    assert.equal(clock.timerCount, 0);
    timer.start();
    timer.stop();
    timer.stop();
    clock.turn(1000);
    assert.equal(grown.length, 3);
  });

  test('are neither very short nor very long', () => {
    for (const [windowMs, stepMs] of [
      [100, 20],
      [3_600_000, 1000],
    ] as const) {
      const clock = new ManualClock();
      let steps = 0;
      const timer = new SlowStartTimer(
        clock,
        { ...SETTINGS, windowMs },
        () => {
          steps += 1;
          return true;
        },
        () => {},
      );
      timer.start();
      clock.turn(stepMs * 5);
      assert.equal(steps, 5);
      timer.stop();
    }
  });
});
