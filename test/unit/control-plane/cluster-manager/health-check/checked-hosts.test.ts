// Hosts of a health checker that come, stay and go, without the cluster around.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RuntimeValues } from '../../../../../src/base/runtime.ts';
import { ActiveHost } from '../../../../../src/control-plane/cluster-manager/active-host.ts';
import { HealthEventLogs } from '../../../../../src/control-plane/cluster-manager/health-check/event-log.ts';
import { HandshakeTurns } from '../../../../../src/control-plane/cluster-manager/health-check/handshake-turns.ts';
import { HealthChecker } from '../../../../../src/control-plane/cluster-manager/health-check/health-checker.ts';
import { Loggers } from '../../../../../src/log/index.ts';
import { compileHttp1, Http1Codec } from '../../../../../src/wasm/http1.ts';
import { HealthFlag } from '../../../../../src/wasm/shared-memory.ts';
import { clusterNamed, clusterSettings, type JsonObject } from '../../../../support/bootstrap.ts';
import { NO_LOCAL_CLUSTER } from '../../../../support/clusters.ts';
import { eventually } from '../../../../support/eventually.ts';
import { NO_FAULTS } from '../../../../support/faults.ts';
import { answer, HealthServer } from '../../../../support/health-server.ts';
import { lbTables } from '../../../../support/lb.ts';
import { ManualClock } from '../../../../support/manual-clock.ts';
import { listing, statsFixture } from '../../../../support/stats.ts';

const INTERVAL_MS = 60_000;
const HTTP: JsonObject = { http_health_check: { path: '/up' } };
const codec = new Http1Codec(compileHttp1());

class Fixture implements Disposable {
  readonly clock = new ManualClock();
  readonly stats = statsFixture({ workerCount: 1 });
  /** What the cluster has been told, by the ports of hosts. */
  readonly passed: number[] = [];
  readonly changed: number[] = [];
  readonly checker: HealthChecker;

  constructor(kind = HTTP) {
    const check = { timeout: '1s', interval: '60s', unhealthy_threshold: 2, healthy_threshold: 2, ...kind };
    const loggers = new Loggers({ levels: { default: 'off' }, threadId: 0, sink: { write() {} } });
    const cluster = {
      name: 'web',
      statName: 'web',
      origin: { sourceAddress: undefined, systemCalls: undefined },
      hasTraffic: () => true,
      onPassed: (host: ActiveHost) => void this.passed.push(portOf(host)),
      onHealthChange: (host: ActiveHost) => void this.changed.push(portOf(host)),
    };
    this.checker = new HealthChecker(
      clusterSettings(clusterNamed('web', { health_checks: [check] })).healthCheck!,
      cluster,
      {
        faults: NO_FAULTS,
        clock: this.clock,
        random: { u32: () => 0 },
        runtime: new RuntimeValues(),
        stats: this.stats.store,
        events: new HealthEventLogs(this.clock, loggers),
        handshakes: new HandshakeTurns(this.clock),
        codec: () => codec,
        headerPrefix: 'x-proxy',
      },
    );
  }

  [Symbol.dispose](): void {
    this.checker.stop();
  }

  host(port: number, isDisabled = false): ActiveHost {
    const { store, owner } = this.stats;
    const places = {
      stats: store,
      memory: owner,
      tables: lbTables(owner),
      runtime: new RuntimeValues(),
      clock: this.clock,
      local: NO_LOCAL_CLUSTER,
    };
    const [settings] = clusterSettings(clusterNamed('web')).hosts;
    const address = { kind: 'ip', ip: '127.0.0.1', port } as const;
    const check = { address: undefined, port: 0, hostname: '', isDisabled };
    return new ActiveHost({ ...settings!, address, check }, places, HealthFlag.failedActiveHealthCheck, false);
  }

  stat(name: string): number {
    return this.stats.store.value(`cluster.web.health_check.${name}`)!;
  }

  untilEnded(count: number): Promise<void> {
    return eventually(() => this.stat('success') + this.stat('failure') === count, `the end of ${count} checks`);
  }
}

function portOf({ address }: ActiveHost): number {
  return address.kind === 'ip' ? address.port : 0;
}

describe('checked hosts', () => {
  it('that stay go on as they are when others come', async () => {
    await using server = await HealthServer.start(answer(200));
    await using other = await HealthServer.start(answer(200));
    using fixture = new Fixture();
    const { checker, clock } = fixture;
    const [host, late] = [fixture.host(server.port), fixture.host(other.port)];
    checker.setHosts([host]);
    assert.ok((await listing(fixture.stats.store, true)).includes('cluster.web.health_check.healthy: 0'));
    checker.start();
    await fixture.untilEnded(1);
    checker.setHosts([host, late]);
    await fixture.untilEnded(2);
    assert.deepEqual([server.received.length, other.received.length, clock.timerCount], [1, 1, 2]);
    clock.turn(INTERVAL_MS);
    await fixture.untilEnded(4);
    assert.deepEqual([server.received.length, other.received.length], [2, 2]);
    assert.deepEqual([fixture.stat('attempt'), fixture.stat('healthy')], [4, 2]);
  });

  it('that are added are checked beside the others, unless they want none', async () => {
    await using server = await HealthServer.start(answer(200));
    await using other = await HealthServer.start(answer(200));
    using fixture = new Fixture();
    const { checker, clock } = fixture;
    checker.setHosts([fixture.host(server.port)]);
    checker.start();
    await fixture.untilEnded(1);
    checker.addHosts([fixture.host(other.port), fixture.host(1, true)]);
    await fixture.untilEnded(2);
    clock.turn(INTERVAL_MS);
    await fixture.untilEnded(4);
    assert.deepEqual([server.received.length, other.received.length, fixture.stat('attempt')], [2, 2, 4]);
    checker.setHosts([]);
    assert.equal(clock.timerCount, 0);
  });

  it('that go are not asked any more, and are not waited for', async () => {
    await using silent = await HealthServer.start(() => {});
    using fixture = new Fixture();
    const { checker, clock } = fixture;
    checker.setHosts([fixture.host(silent.port)]);
    checker.start();
    let rounds = 0;
    checker.awaitFirstRound(() => {
      rounds += 1;
    });
    await eventually(() => silent.received.length === 1, 'the check');
    assert.equal(rounds, 0);
    checker.setHosts([]);
    assert.deepEqual([rounds, clock.timerCount], [1, 0]);
    await eventually(() => silent.openConnections === 0, 'the end of its connection');
  });

  it('are waited for only where they have not been checked', async () => {
    await using server = await HealthServer.start(answer(200));
    using fixture = new Fixture();
    fixture.checker.setHosts([fixture.host(server.port)]);
    fixture.checker.start();
    await fixture.untilEnded(1);
    let rounds = 0;
    fixture.checker.awaitFirstRound(() => {
      rounds += 1;
    });
    assert.equal(rounds, 1);
  });

  it('are told of when they pass, and when they are no longer what they were', async () => {
    await using server = await HealthServer.start(answer(200));
    using fixture = new Fixture();
    const { checker, clock, passed, changed } = fixture;
    const { port } = server;
    checker.setHosts([fixture.host(port)]);
    checker.start();
    await fixture.untilEnded(1);
    assert.deepEqual([passed, changed], [[port], [port]]);
    clock.turn(INTERVAL_MS);
    await fixture.untilEnded(2);
    assert.deepEqual([passed, changed], [[port, port], [port]]);
    server.behaviour = answer(503);
    for (let ended = 3; ended < 5; ended++) {
      clock.turn(INTERVAL_MS);
      await fixture.untilEnded(ended);
    }
    assert.deepEqual(
      [passed, changed],
      [
        [port, port],
        [port, port],
      ],
    );
  });

  it('are not asked after the end, though they come', async () => {
    await using server = await HealthServer.start(answer(200));
    using fixture = new Fixture();
    fixture.checker.start();
    fixture.checker.stop();
    fixture.checker.setHosts([fixture.host(server.port)]);
    assert.deepEqual([fixture.stat('attempt'), fixture.clock.timerCount], [0, 0]);
  });

  it('are asked nothing by TCP where a connection is enough', async () => {
    await using server = await HealthServer.start(answer(200));
    using fixture = new Fixture({ tcp_health_check: {} });
    fixture.checker.setHosts([fixture.host(server.port)]);
    fixture.checker.start();
    await fixture.untilEnded(1);
    await eventually(() => server.connections === 1 && server.openConnections === 0, 'the end of the connection');
    assert.deepEqual([server.received, fixture.stat('success')], [[], 1]);
  });
});
