// Checked clusters on the main thread: who is checked when, what becomes of them, what is published. Real servers, and a
// clock that the test turns.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { RuntimeValues } from '../../../../../src/base/runtime.ts';
import {
  MAX_CHECK_INTERVAL,
  MIN_CHECK_INTERVAL,
  runtimeKey,
  VERIFY_CLUSTER,
} from '../../../../../src/base/runtime-values.ts';
import type { ActiveHost } from '../../../../../src/control-plane/cluster-manager/active-host.ts';
import { ClusterManager } from '../../../../../src/control-plane/cluster-manager/cluster-manager.ts';
import { DnsResolvers } from '../../../../../src/control-plane/dns/resolvers.ts';
import { Loggers } from '../../../../../src/log/index.ts';
import type { ClusterSnapshot } from '../../../../../src/snapshot/index.ts';
import { HealthFlag } from '../../../../../src/wasm/shared-memory.ts';
import { clusterNamed, type JsonObject, mustLoad, socketAddress, withClusters } from '../../../../support/bootstrap.ts';
import { NO_LOCALITY } from '../../../../support/clusters.ts';
import { DnsServer } from '../../../../support/dns-server.ts';
import { eventually } from '../../../../support/eventually.ts';
import { NO_FAULTS } from '../../../../support/faults.ts';
import { answer, HealthServer } from '../../../../support/health-server.ts';
import { lbTables } from '../../../../support/lb.ts';
import { ManualClock } from '../../../../support/manual-clock.ts';
import { statsFixture } from '../../../../support/stats.ts';
import { NO_DISCOVERY } from '../../../../support/subscriptions.ts';

const {
  failedActiveHealthCheck: FAILED,
  pendingDynamicRemoval: LEAVING,
  activeHealthCheckTimeout: TIMED_OUT,
} = HealthFlag;
const INTERVAL_MS = 60_000;
const TIMEOUT_MS = 1000;

const HTTP_CHECK: JsonObject = {
  timeout: '1s',
  interval: '60s',
  unhealthy_threshold: 2,
  healthy_threshold: 2,
  http_health_check: { path: '/up' },
};

function member(port: number, fields: JsonObject = {}): JsonObject {
  return { endpoint: { address: socketAddress('127.0.0.1', port), ...fields } };
}

function checkedCluster(members: readonly JsonObject[], check: JsonObject = {}, fields: JsonObject = {}): JsonObject {
  return clusterNamed('web', {
    load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints: members }] },
    health_checks: [{ ...HTTP_CHECK, ...check }],
    ...fields,
  });
}

class Fixture implements Disposable {
  readonly clock = new ManualClock();
  readonly runtime = new RuntimeValues();
  readonly stats = statsFixture({ workerCount: 1 });
  readonly published: ClusterSnapshot[] = [];
  /** What every throw of the dice says. */
  chance = 0;
  readonly manager: ClusterManager;

  constructor(cluster: JsonObject) {
    const { store, owner } = this.stats;
    this.manager = new ClusterManager({
      ...NO_DISCOVERY,
      faults: NO_FAULTS,
      stats: store,
      memory: owner,
      tables: lbTables(owner),
      clock: this.clock,
      random: { u32: () => this.chance },
      loggers: new Loggers({ levels: { default: 'off' }, threadId: 0, sink: { write() {} } }),
      workers: {
        publishCluster: () => {},
        removeCluster: () => {},
        refuseHost: () => {},
        secureCluster: () => {},
        publishHosts: (_update, applied) => {
          this.published.push(this.manager.snapshots()[0]!);
          applied();
        },
      },
      resolvers: new DnsResolvers(this.clock, NO_FAULTS),
      runtime: this.runtime,
      outlierEventLogPath: '',
      headerPrefix: 'x-proxy',
      localCluster: '',
      locality: NO_LOCALITY,
    });
    this.manager.addStatic(mustLoad(withClusters(cluster)).clusters[0]!);
  }

  [Symbol.dispose](): void {
    this.manager.stop();
  }

  get hosts(): readonly ActiveHost[] {
    return [...this.manager.clusters()][0]!.hosts();
  }

  get flags(): number[] {
    return this.hosts.map(({ healthFlags }) => healthFlags);
  }

  stat(name: string): number {
    return this.stats.store.value(`cluster.web.${name}`) ?? 0;
  }

  /** Turns the clock by less than a check or a lookup may take, and lets both end in between. */
  async turnUntil(condition: () => boolean, what: string): Promise<void> {
    const hasEnded = (prefix: string): boolean => {
      const [attempts, successes, failures] = ['attempt', 'success', 'failure'].map((name) => this.stat(prefix + name));
      return attempts === successes! + failures!;
    };
    for (let steps = 0; !condition(); steps++) {
      if (steps > 1000) throw new Error(`never: ${what}`);
      this.clock.turn(TIMEOUT_MS / 2);
      await new Promise((resolve) => setImmediate(resolve));
      // A check of a host that has gone meanwhile does not end.
      await eventually(
        () => condition() || (hasEnded('health_check.') && hasEnded('update_')),
        'checks and lookups end',
      );
    }
  }

  /** So many checks have ended since the start. */
  async ended(count: number): Promise<void> {
    const { stat } = { stat: (name: string) => this.stat(`health_check.${name}`) };
    await eventually(() => stat('success') + stat('failure') === count, `${count} checks`);
  }

  /** Has every host checked again. */
  async nextRound(): Promise<void> {
    const before = this.stat('health_check.success') + this.stat('health_check.failure');
    this.clock.turn(INTERVAL_MS);
    await this.ended(before + this.hosts.length);
  }
}

describe('a cluster with health checks', () => {
  it('is warm when every host has been checked, and serves from those that passed', async () => {
    await using good = await HealthServer.start(answer(200));
    await using bad = await HealthServer.start(() => {});
    using fixture = new Fixture(checkedCluster([member(good.port), member(bad.port)]));
    assert.deepEqual(fixture.flags, [FAILED, FAILED]);
    let isWarm = false;
    const started = fixture.manager.start().then(() => {
      isWarm = true;
    });
    await fixture.ended(1);
    assert.equal(isWarm, false);
    assert.equal(fixture.stat('warming_state'), 1);
    assert.equal(fixture.stats.store.value('cluster_manager.warming_clusters'), 1);
    assert.equal(fixture.published.length, 0);
    await eventually(() => bad.received.length === 1, 'the other check');
    fixture.clock.turn(TIMEOUT_MS);
    await started;
    assert.deepEqual(fixture.flags, [0, FAILED | TIMED_OUT]);
    assert.equal(fixture.stat('warming_state'), 0);
    assert.equal(fixture.published.length, 1);
    const [snapshot] = fixture.manager.snapshots();
    assert.equal(fixture.published.at(-1)?.hostLists, snapshot!.hostLists);
    assert.deepEqual(
      ['attempt', 'success', 'failure', 'network_failure', 'healthy'].map((name) =>
        fixture.stat(`health_check.${name}`),
      ),
      [2, 1, 1, 1, 1],
    );
    assert.deepEqual([fixture.stat('membership_healthy'), fixture.stat('membership_total')], [1, 2]);
    assert.deepEqual(
      fixture.hosts.map(({ lastCheck }) => [lastCheck?.hasPassed, lastCheck?.detail]),
      [
        [true, 'HTTP 200'],
        [false, 'no answer within 1000 ms'],
      ],
    );
    assert.equal(fixture.hosts[0]!.lastCheck!.endedMs, fixture.clock.wallMs() - TIMEOUT_MS);
  });

  it('does not hold up a start that is not to wait for it', async () => {
    await using silent = await HealthServer.start(() => {});
    using fixture = new Fixture(checkedCluster([member(silent.port)], {}, { wait_for_warm_on_init: false }));
    await fixture.manager.start();
    assert.deepEqual(fixture.flags, [FAILED]);
  });

  it('is warm at once without members to check', async () => {
    const disabled = member(1, { health_check_config: { disable_active_health_check: true } });
    using fixture = new Fixture(checkedCluster([disabled]));
    await fixture.manager.start();
    assert.deepEqual(fixture.flags, [0]);
    assert.equal(fixture.stat('health_check.attempt'), 0);
  });

  it('keeps beside the last check the one that brought the host into its state', async () => {
    await using server = await HealthServer.start(answer(503));
    using fixture = new Fixture(checkedCluster([member(server.port)]));
    await fixture.manager.start();
    const [host] = fixture.hosts;
    const shown = (): unknown[] =>
      [host!.decidingCheck!, host!.lastCheck!].map(({ kind, hasPassed, detail }) => [kind, hasPassed, detail]);
    assert.deepEqual(shown(), [
      ['http', false, 'HTTP 503'],
      ['http', false, 'HTTP 503'],
    ]);
    const firstMs = host!.decidingCheck!.endedMs;
    server.behaviour = answer(500);
    await fixture.nextRound();
    assert.deepEqual(shown(), [
      ['http', false, 'HTTP 503'],
      ['http', false, 'HTTP 500'],
    ]);
    assert.ok(host!.lastCheck!.endedMs > firstMs && host!.decidingCheck!.endedMs === firstMs);
    server.behaviour = answer(200);
    for (let round = 0; round < 3; round += 1) await fixture.nextRound();
    assert.deepEqual(shown(), [
      ['http', true, 'HTTP 200'],
      ['http', true, 'HTTP 200'],
    ]);
  });

  it('publishes the first change at once, and those that follow within the window together', async () => {
    await using first = await HealthServer.start(answer(200));
    await using second = await HealthServer.start(answer(200));
    using fixture = new Fixture(checkedCluster([member(first.port), member(second.port)]));
    await fixture.manager.start();
    assert.equal(fixture.published.length, 1);
    const updates = (name: string): number => fixture.stats.store.value(`cluster_manager.${name}`) ?? 0;
    const before = updates('cluster_updated');
    first.behaviour = answer(500);
    second.behaviour = answer(500);
    await fixture.nextRound();
    assert.deepEqual(fixture.flags, [FAILED, FAILED]);
    assert.equal(fixture.published.length, 2);
    assert.equal(updates('update_out_of_merge_window'), 1);
    assert.equal(updates('cluster_updated'), before + 1);
    fixture.clock.turn(1000);
    assert.equal(fixture.published.length, 3);
    assert.equal(updates('cluster_updated_via_merge'), 1);
    assert.equal(fixture.stat('membership_healthy'), 0);
  });

  it('publishes every change at once without a window', async () => {
    await using first = await HealthServer.start(answer(200));
    await using second = await HealthServer.start(answer(200));
    const lb = { common_lb_config: { update_merge_window: '0s' } };
    using fixture = new Fixture(checkedCluster([member(first.port), member(second.port)], {}, lb));
    await fixture.manager.start();
    first.behaviour = answer(500);
    second.behaviour = answer(500);
    await fixture.nextRound();
    assert.equal(fixture.published.length, 3);
  });

  it('asks each endpoint where and as whom it wants to be asked', async () => {
    await using served = await HealthServer.start(answer(200));
    await using byPort = await HealthServer.start(answer(200));
    await using byAddress = await HealthServer.start(answer(200));
    const members = [
      member(served.port),
      member(1, { health_check_config: { port_value: byPort.port, hostname: 'port.test' } }),
      member(2, { health_check_config: { address: socketAddress('127.0.0.1', byAddress.port) } }),
    ];
    const check = { http_health_check: { path: '/up', host: 'host.test' } };
    using fixture = new Fixture(checkedCluster(members, check));
    await fixture.manager.start();
    const hostOf = ({ received }: HealthServer): string => /host: (.*)\r/.exec(received[0]!)![1]!;
    assert.deepEqual([served, byPort, byAddress].map(hostOf), ['host.test', 'port.test', 'host.test']);
    assert.deepEqual(fixture.flags, [0, 0, 0]);
  });

  it('asks all of them at another port of its own, and calls itself by its name', async () => {
    await using other = await HealthServer.start(answer(200));
    using fixture = new Fixture(checkedCluster([member(1)], { alt_port: other.port }));
    await fixture.manager.start();
    assert.match(other.received[0]!, /^GET \/up HTTP\/1\.1\r\nhost: web\r\n/);
  });

  it('waits before the first check as long as its jitter says', async () => {
    await using server = await HealthServer.start(answer(200));
    for (const waitMs of [0, 7000]) {
      using fixture = new Fixture(checkedCluster([member(server.port)], { initial_jitter: '10s' }));
      fixture.chance = waitMs;
      const started = fixture.manager.start();
      if (waitMs > 0) fixture.clock.turn(waitMs - 1);
      assert.equal(fixture.stat('health_check.attempt'), waitMs > 0 ? 0 : 1);
      if (waitMs > 0) fixture.clock.turn(1);
      await started;
      assert.equal(fixture.stat('health_check.success'), 1);
    }
  });

  it('waits for the next check as long as the runtime lets it', async () => {
    await using server = await HealthServer.start(answer(200));
    const bounds = [
      { key: MIN_CHECK_INTERVAL, value: '90000', waitMs: 90_000 },
      { key: MAX_CHECK_INTERVAL, value: '5000', waitMs: 5000 },
    ];
    for (const { key, value, waitMs } of bounds) {
      using fixture = new Fixture(checkedCluster([member(server.port)]));
      fixture.runtime.replace(new Map([[runtimeKey(key), value]]));
      await fixture.manager.start();
      fixture.clock.turn(waitMs - 1);
      assert.equal(fixture.stat('health_check.attempt'), 1);
      fixture.clock.turn(1);
      assert.equal(fixture.stat('health_check.attempt'), 2);
    }
  });

  it('looks at the name of the service in as many checks as the runtime says', async () => {
    await using server = await HealthServer.start(answer(200));
    const check = { http_health_check: { path: '/up', service_name_matcher: { prefix: 'web' } } };
    using fixture = new Fixture(checkedCluster([member(server.port)], check));
    fixture.runtime.replace(new Map([[runtimeKey(VERIFY_CLUSTER), '50']]));
    fixture.chance = 50;
    await fixture.manager.start();
    assert.deepEqual([fixture.flags, fixture.stat('health_check.verify_cluster')], [[0], 0]);
    fixture.chance = 49;
    await fixture.nextRound();
    assert.deepEqual([fixture.flags, fixture.stat('health_check.verify_cluster')], [[FAILED], 1]);
  });

  it('counts wrong answers, failed connections and what hosts ask of clients apart', async () => {
    await using server = await HealthServer.start(answer(200));
    await using other = await HealthServer.start(answer(200));
    using fixture = new Fixture(checkedCluster([member(server.port), member(other.port)]));
    await fixture.manager.start();
    const counts = (): number[] =>
      ['success', 'failure', 'passive_failure', 'network_failure'].map((name) => fixture.stat(`health_check.${name}`));
    assert.deepEqual(counts(), [2, 0, 0, 0]);
    server.behaviour = answer(500);
    await fixture.nextRound();
    assert.deepEqual(counts(), [3, 1, 0, 0]);
    server.behaviour = (socket) => socket.resetAndDestroy();
    await fixture.nextRound();
    assert.deepEqual(counts(), [4, 2, 0, 1]);
    fixture.manager.hostFailed('web', fixture.hosts[1]!.snapshot.recordAddress);
    assert.deepEqual(counts(), [4, 3, 1, 1]);
    assert.deepEqual(fixture.flags, [FAILED, FAILED | HealthFlag.excludedViaImmediateHealthCheckFail]);
    const { kind, hasPassed, detail } = fixture.hosts[1]!.decidingCheck!;
    assert.deepEqual([kind, hasPassed, detail], ['request', false, 'asked to be left out']);
    assert.equal(fixture.stat('health_check.healthy'), 0);
    // It is asked when it would have been asked anyway, and healthy again after as many checks as any.
    await fixture.nextRound();
    await fixture.nextRound();
    assert.deepEqual([fixture.flags[1], fixture.stat('health_check.healthy')], [0, 1]);
  });

  it('counts its degraded hosts while they are', async () => {
    await using server = await HealthServer.start(answer(200, 'x-envoy-degraded: 1\r\n'));
    using fixture = new Fixture(checkedCluster([member(server.port)]));
    await fixture.manager.start();
    const gauges = (): number[] => ['healthy', 'degraded'].map((name) => fixture.stat(`health_check.${name}`));
    assert.deepEqual(gauges(), [1, 1]);
    server.behaviour = answer(200);
    await fixture.nextRound();
    assert.deepEqual(gauges(), [1, 0]);
  });

  it('leaves new hosts out of account until their first check, when told to', async () => {
    await using server = await HealthServer.start(() => {});
    const lb = { common_lb_config: { ignore_new_hosts_until_first_hc: true } };
    using fixture = new Fixture(checkedCluster([member(server.port)], {}, lb));
    assert.deepEqual(fixture.flags, [FAILED | HealthFlag.pendingActiveHealthCheck]);
    assert.equal(fixture.stat('membership_excluded'), 1);
    const started = fixture.manager.start();
    await eventually(() => server.received.length === 1, 'a check');
    fixture.clock.turn(TIMEOUT_MS);
    await started;
    assert.deepEqual(fixture.flags, [FAILED | TIMED_OUT]);
    assert.equal(fixture.stat('membership_excluded'), 0);
  });

  it('checks less often while there is no traffic, and as often as it is told to with some', async () => {
    await using server = await HealthServer.start(answer(200));
    const check = { interval: '1s', no_traffic_interval: '100s', no_traffic_healthy_interval: '10s' };
    using fixture = new Fixture(checkedCluster([member(server.port)], check));
    await fixture.manager.start();
    fixture.clock.turn(9999);
    assert.equal(fixture.stat('health_check.attempt'), 1);
    [...fixture.manager.clusters()][0]!.stats.add('upstream_cx_total');
    fixture.clock.turn(1);
    await fixture.ended(2);
    fixture.clock.turn(1000);
    await fixture.ended(3);
  });

  it('stops with its manager, in the middle of a check, and leaves no timer', async () => {
    await using silent = await HealthServer.start(() => {});
    const fixture = new Fixture(checkedCluster([member(silent.port)]));
    void fixture.manager.start();
    await eventually(() => silent.received.length === 1, 'a check');
    for (let stops = 0; stops < 2; stops++) fixture.manager.stop();
    assert.equal(fixture.clock.timerCount, 0);
    await eventually(() => silent.openConnections === 0, 'the end of its connection');
  });

  it('writes what becomes of its hosts into files, and goes on in new ones', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-events-'));
    const file = path.join(folder, 'events');
    await using server = await HealthServer.start(answer(200));
    const sink = {
      name: 'envoy.health_check.event_sinks.file',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.health_check.event_sinks.file.v3.HealthCheckEventFileSink',
        event_log_path: file,
      },
    };
    using fixture = new Fixture(checkedCluster([member(server.port)], { event_log_path: file, event_logger: [sink] }));
    await fixture.manager.start();
    server.behaviour = answer(503);
    await fixture.nextRound();
    const lines = (): string[] => {
      try {
        return readFileSync(file, 'utf8').split('\n').slice(0, -1);
      } catch {
        return [];
      }
    };
    await eventually(() => lines().length === 2, 'two lines');
    const events = lines().map((line) => JSON.parse(line));
    const { timestamp, ...added } = events[0];
    assert.equal(timestamp, new Date(fixture.clock.wallMs() - INTERVAL_MS).toISOString());
    assert.deepEqual(added, {
      health_checker_type: 'HTTP',
      host: {
        socket_address: {
          protocol: 'TCP',
          address: '127.0.0.1',
          port_value: server.port,
          resolver_name: '',
          ipv4_compat: false,
        },
      },
      cluster_name: 'web',
      add_healthy_event: { first_check: true },
      metadata: { filter_metadata: {}, typed_filter_metadata: {} },
      locality: { region: '', zone: '', sub_zone: '' },
    });
    assert.deepEqual(events[1].eject_unhealthy_event, { failure_type: 'ACTIVE' });
    rmSync(file);
    fixture.manager.reopenEventLogs();
    server.behaviour = answer(200);
    await fixture.nextRound();
    await fixture.nextRound();
    await eventually(() => lines().length === 1, 'a line in a new file');
    rmSync(folder, { recursive: true });
  });
});

describe('checked members that DNS finds', () => {
  function dnsCluster(dns: DnsServer, port: number, fields: JsonObject = {}): JsonObject {
    const endpoint = { endpoint: { address: socketAddress('web.test', port) } };
    return {
      name: 'web',
      type: 'STRICT_DNS',
      dns_lookup_family: 'V4_ONLY',
      dns_resolution_config: { resolvers: [socketAddress('127.0.0.1', dns.port)] },
      load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints: [endpoint] }] },
      health_checks: [{ ...HTTP_CHECK, http_health_check: { path: '/up' } }],
      ...fields,
    };
  }

  const ips = (fixture: Fixture): string[] =>
    fixture.hosts.map(({ address }) => (address.kind === 'ip' ? address.ip : ''));

  it('stay while they pass their checks, and go when they fail', async () => {
    await using dns = await DnsServer.start();
    await using server = await HealthServer.start(answer(200));
    dns.set('web.test', ['127.0.0.1']);
    using fixture = new Fixture(dnsCluster(dns, server.port));
    await fixture.manager.start();
    assert.deepEqual(fixture.flags, [0]);
    // Nobody listens at the other address.
    dns.set('web.test', ['127.0.0.9']);
    await fixture.turnUntil(() => fixture.hosts.length === 2, 'a second host');
    assert.deepEqual(ips(fixture), ['127.0.0.9', '127.0.0.1']);
    assert.deepEqual(fixture.flags[1], LEAVING);
    // Found again, it is a member as before.
    dns.set('web.test', ['127.0.0.1', '127.0.0.9']);
    await fixture.turnUntil(() => fixture.flags.every((flags) => (flags & LEAVING) === 0), 'its return');
    dns.set('web.test', ['127.0.0.9']);
    await fixture.turnUntil(() => fixture.flags.some((flags) => (flags & LEAVING) !== 0), 'its leave');
    server.behaviour = answer(500);
    await fixture.turnUntil(() => fixture.hosts.length === 1, 'its end');
    assert.deepEqual(ips(fixture), ['127.0.0.9']);
    assert.equal(fixture.stat('membership_total'), 1);
    assert.equal(fixture.stat('health_check.healthy'), 0);
  });

  it('go at once when their health does not count', async () => {
    await using dns = await DnsServer.start();
    await using server = await HealthServer.start(answer(200));
    dns.set('web.test', ['127.0.0.1']);
    using fixture = new Fixture(dnsCluster(dns, server.port, { ignore_health_on_host_removal: true }));
    await fixture.manager.start();
    dns.set('web.test', []);
    await fixture.turnUntil(() => fixture.hosts.length === 0, 'its end');
    assert.equal(fixture.stat('health_check.healthy'), 0);
  });

  it('are asked at the address of the moment when the member is a logical one', async () => {
    await using dns = await DnsServer.start();
    await using server = await HealthServer.start(answer(200));
    dns.set('web.test', ['127.0.0.9']);
    using fixture = new Fixture(dnsCluster(dns, server.port, { type: 'LOGICAL_DNS' }));
    await fixture.manager.start();
    assert.deepEqual(fixture.flags, [FAILED]);
    dns.set('web.test', ['127.0.0.1']);
    await fixture.turnUntil(() => ips(fixture)[0] === '127.0.0.1', 'the other address');
    await fixture.turnUntil(() => fixture.flags[0] === 0, 'two checks that pass');
    assert.equal(fixture.stat('membership_change'), 1);
  });
});
