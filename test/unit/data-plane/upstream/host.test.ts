// One member of a cluster: its connections when its health fails, when it is renewed and when it leaves.

import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { DownstreamConnection } from '../../../../src/data-plane/network/downstream-connection.ts';
import type { Cluster } from '../../../../src/data-plane/upstream/cluster.ts';
import type { Host } from '../../../../src/data-plane/upstream/host.ts';
import { RetiredHosts } from '../../../../src/data-plane/upstream/retired-hosts.ts';
import type { ClusterSnapshot } from '../../../../src/snapshot/index.ts';
import { OUTLIER_HOST_STATS } from '../../../../src/stats/index.ts';
import { ClusterPriority, HealthFlag } from '../../../../src/wasm/shared-memory.ts';
import { outlierSettings } from '../../../support/outliers.ts';
import { ANSWER, UpstreamRequest } from '../../../support/upstream-request.ts';
import { type FakeUpstreamSocket, UpstreamWorkers } from '../../../support/upstream-workers.ts';

const PRIORITIES = [ClusterPriority.default, ClusterPriority.high];

class Bench {
  readonly sockets: FakeUpstreamSocket[] = [];
  readonly workers = new UpstreamWorkers(1, (socket) => void this.sockets.push(socket));
  readonly snapshot: ClusterSnapshot;
  readonly cluster: Cluster;
  readonly host: Host;

  /** @param flags of the host's health when the worker hears of it first. */
  constructor(settings: Partial<ClusterSnapshot['settings']> = {}, flags = 0) {
    this.snapshot = this.workers.cluster(1, settings);
    this.setHealth(flags, true);
    this.cluster = this.workers.open(0, this.snapshot);
    this.host = this.cluster.hosts[0]!;
  }

  setHealth(flag: number, isSet: boolean): void {
    this.workers.records.setHealthFlag(this.snapshot.hosts[0]!.recordAddress, flag, isSet);
  }

  /** Main publishes the host as it is by now. */
  publish(): void {
    this.cluster.updateHosts(structuredClone(this.snapshot), new RetiredHosts(() => {}));
  }

  /** @returns called so often when the host is unused. */
  retire(): { readonly count: number } {
    const told = { count: 0 };
    const retired = new RetiredHosts(() => told.count++);
    this.cluster.updateHosts({ ...this.snapshot, hosts: [] }, retired);
    retired.seal();
    return told;
  }

  waiting(priority: ClusterPriority = ClusterPriority.default): UpstreamRequest {
    const request = new UpstreamRequest();
    this.host.poolFor(priority, null).newStream(request);
    return request;
  }

  busy(priority?: ClusterPriority): FakeUpstreamSocket {
    this.waiting(priority);
    const socket = this.sockets.at(-1)!;
    socket.accept();
    return socket;
  }

  idle(priority?: ClusterPriority): FakeUpstreamSocket {
    const socket = this.busy(priority);
    socket.send(ANSWER);
    return socket;
  }

  /** A proxied TCP connection. @returns how often it was told that the host has failed. */
  raw(): { failed: number; onHostFailed(): void } {
    const connection = {
      failed: 0,
      onHostFailed(): void {
        this.failed++;
      },
    };
    this.host.addRawConnection(connection);
    return connection;
  }

  async settle(): Promise<void> {
    for (let turn = 0; turn < 5; turn++) await null;
  }
}

describe('a host whose health fails', () => {
  for (const flag of ['failedActiveHealthCheck', 'failedOutlierCheck'] as const) {
    test(`by ${flag} gets new connections for new requests`, () => {
      const bench = new Bench();
      const idle = PRIORITIES.map((priority) => [bench.busy(priority), bench.idle(priority)] as const);
      bench.setHealth(HealthFlag[flag], true);
      bench.publish();
      for (const [busy, unused] of idle) {
        assert.ok(!unused.isLive);
        assert.ok(busy.isOpen);
        busy.send(ANSWER);
        assert.ok(!busy.isLive);
      }
    });
  }

  test('by what the configuration says keeps its connections', () => {
    const bench = new Bench({ closeConnectionsOnHostHealthFailure: true });
    const [idle, raw] = [bench.idle(), bench.raw()];
    bench.setHealth(HealthFlag.failedEdsHealth, true);
    bench.publish();
    assert.ok(idle.isOpen);
    assert.equal(raw.failed, 0);
  });

  test('ends its connections once, not with every update', () => {
    const bench = new Bench({ closeConnectionsOnHostHealthFailure: true });
    const raw = bench.raw();
    bench.setHealth(HealthFlag.failedActiveHealthCheck, true);
    bench.publish();
    const idle = bench.idle();
    bench.publish();
    assert.ok(idle.isOpen);
    assert.equal(raw.failed, 1);
    bench.setHealth(HealthFlag.failedActiveHealthCheck, false);
    bench.publish();
    assert.ok(idle.isOpen);
    bench.setHealth(HealthFlag.failedActiveHealthCheck, true);
    bench.publish();
    assert.ok(!idle.isLive);
    assert.equal(raw.failed, 2);
  });

  test('is no news when it had failed before the worker heard of it', () => {
    const bench = new Bench({}, HealthFlag.failedActiveHealthCheck);
    const idle = bench.idle();
    bench.publish();
    assert.ok(idle.isOpen);
  });

  for (const isWanted of [true, false]) {
    test(`has proxied TCP connections ${isWanted ? 'told of it' : 'go on'} as its cluster says`, () => {
      const bench = new Bench({ closeConnectionsOnHostHealthFailure: isWanted });
      const [first, gone, last] = [bench.raw(), bench.raw(), bench.raw()];
      bench.host.removeRawConnection(gone);
      bench.setHealth(HealthFlag.failedActiveHealthCheck, true);
      bench.publish();
      assert.deepEqual([first.failed, gone.failed, last.failed], isWanted ? [1, 0, 1] : [0, 0, 0]);
    });
  }
});

describe('a host that asks to be left out', () => {
  test('is reported once until main has published what became of it', () => {
    const bench = new Bench();
    const report = ['web', bench.snapshot.hosts[0]!.recordAddress] as const;
    for (let answer = 0; answer < 3; answer++) bench.host.reportFailure();
    assert.deepEqual(bench.workers.reported, [report]);
    bench.publish();
    for (let answer = 0; answer < 3; answer++) bench.host.reportFailure();
    assert.deepEqual(bench.workers.reported, [report, report]);
  });

  test('is not reported while it is left out', () => {
    const bench = new Bench();
    bench.setHealth(HealthFlag.excludedViaImmediateHealthCheckFail, true);
    bench.host.reportFailure();
    assert.deepEqual(bench.workers.reported, []);
    bench.setHealth(HealthFlag.excludedViaImmediateHealthCheckFail, false);
    bench.host.reportFailure();
    assert.equal(bench.workers.reported.length, 1);
  });
});

describe('a host that has left its cluster', () => {
  test('is unused at once when nothing is there', async () => {
    const told = new Bench().retire();
    assert.equal(told.count, 0);
    await null;
    await null;
    assert.equal(told.count, 1);
  });

  test('is told of once where its last connections end with it', async () => {
    const bench = new Bench();
    const idle = PRIORITIES.map((priority) => bench.idle(priority));
    const told = bench.retire();
    await bench.settle();
    assert.ok(idle.every(({ isLive }) => !isLive));
    assert.equal(told.count, 1);
  });

  for (const priority of PRIORITIES) {
    test(`ends idle connections, and is unused after the last request, of priority ${priority}`, async () => {
      const bench = new Bench();
      const [busy, idle] = [bench.busy(priority), bench.idle(priority)];
      const told = bench.retire();
      await bench.settle();
      assert.ok(!idle.isLive);
      assert.equal(told.count, 0);
      busy.send(ANSWER);
      await bench.settle();
      assert.ok(!busy.isLive);
      assert.equal(told.count, 1);
    });

    test(`serves who waits, and is unused then, of priority ${priority}`, async () => {
      const bench = new Bench();
      const request = bench.waiting(priority);
      const told = bench.retire();
      await bench.settle();
      assert.equal(told.count, 0);
      const [socket] = bench.sockets;
      socket!.accept();
      socket!.send(ANSWER);
      assert.equal(request.outcome, 'answered');
      await bench.settle();
      assert.equal(told.count, 1);
    });
  }

  for (const [how, end] of Object.entries({
    refused: (socket: FakeUpstreamSocket) => socket.refuse(),
    'too slow': (_socket: FakeUpstreamSocket, bench: Bench) => bench.workers.clock.turn(6000),
  })) {
    test(`is unused when its last connection is ${how}`, async () => {
      const bench = new Bench();
      const request = bench.waiting();
      const told = bench.retire();
      end(bench.sockets[0]!, bench);
      await bench.settle();
      assert.match(request.outcome, /connection failure|connection timeout/);
      assert.equal(told.count, 1);
    });
  }

  test('is unused when the last one who waits has given up', async () => {
    const bench = new Bench();
    const request = bench.waiting();
    const told = bench.retire();
    assert.ok(bench.host.pools.default.cancel(request));
    await bench.settle();
    assert.equal(told.count, 0);
    bench.sockets[0]!.accept();
    await bench.settle();
    assert.equal(told.count, 1);
  });

  test('is used as long as a proxied TCP connection lasts', async () => {
    const bench = new Bench();
    const [first, last] = [bench.raw(), bench.raw()];
    const told = bench.retire();
    bench.host.removeRawConnection(first);
    await bench.settle();
    assert.equal(told.count, 0);
    bench.host.removeRawConnection(last);
    // Whoever has ended it may have a last word to count.
    assert.equal(told.count, 0);
    await bench.settle();
    assert.equal(told.count, 1);
  });

  test('is used by a request that is sent once more at the end of another', async () => {
    const bench = new Bench();
    const busy = bench.busy();
    const told = bench.retire();
    busy.reset();
    bench.waiting();
    await bench.settle();
    assert.equal(told.count, 0);
  });
});

test('a host closes the connections of every priority', () => {
  const bench = new Bench();
  const sockets = PRIORITIES.flatMap((priority) => [bench.busy(priority), bench.idle(priority)]);
  bench.host.close();
  assert.ok(sockets.every(({ isLive }) => !isLive));
});

test('requests of one priority never use connections of another', () => {
  const bench = new Bench();
  bench.idle();
  bench.waiting(ClusterPriority.high);
  assert.equal(bench.sockets.length, 2);
  bench.sockets[1]!.accept();
  bench.sockets[1]!.send(ANSWER);
  for (const priority of PRIORITIES) bench.waiting(priority);
  assert.equal(bench.sockets.length, 2);
});

test('a host is watched for outliers where its cluster wants that', () => {
  assert.equal(new Bench().host.outlier, null);
  const { host, snapshot, workers } = new Bench({ outlierDetection: outlierSettings() });
  for (const status of [200, 503]) host.outlier!.answered(status);
  const { stats } = workers.contexts[0]!;
  const base = stats.base(snapshot.hosts[0]!.outlierBlock);
  assert.equal(stats.values[base + OUTLIER_HOST_STATS.index.external_total], 2);
  assert.equal(stats.values[base + OUTLIER_HOST_STATS.index.external_success], 1);
});

test('a host is unhealthy by flags that say so, and not when it is degraded', () => {
  for (const [flag, isUnhealthy] of [
    ['failedActiveHealthCheck', true],
    ['failedOutlierCheck', true],
    ['degradedActiveHealthCheck', false],
  ] as const) {
    const bench = new Bench();
    assert.deepEqual([bench.host.isHealthy, bench.host.isUnhealthy], [true, false]);
    bench.setHealth(HealthFlag[flag], true);
    assert.deepEqual([bench.host.isHealthy, bench.host.isUnhealthy], [false, isUnhealthy]);
  }
});

test('main learns that a host was wanted', () => {
  const { host, workers } = new Bench();
  assert.equal(workers.records.takeWanted(host.record), false);
  host.noteWanted();
  assert.equal(workers.records.takeWanted(host.record), true);
});

test('a client has the connections of all where its cluster does not say otherwise', () => {
  const { host } = new Bench();
  const client = new DownstreamConnection({} as Socket, 0, 1024);
  for (const priority of PRIORITIES) assert.equal(host.poolFor(priority, client), host.pools.for(priority));
});

test('a host takes over what is new of it, and stays the same', () => {
  const { cluster, host, snapshot } = new Bench();
  const address = { kind: 'ip', ip: '127.0.0.9', port: 9 } as const;
  const connectOrder = [address, { kind: 'ip', ip: '::9', port: 9 }] as const;
  const fields = { hostname: 'h', canary: true, priority: 1, metadata: { lb: { version: 1 } } };
  const member = { ...snapshot.hosts[0]!, ...fields, address, connectOrder };
  cluster.updateHosts({ ...snapshot, hosts: [member] }, new RetiredHosts(() => {}));
  assert.equal(cluster.hosts[0], host);
  assert.partialDeepStrictEqual(host, { ...fields, address, connectOrder, label: '127.0.0.9:9' });
  cluster.updateHosts(snapshot, new RetiredHosts(() => {}));
  assert.equal(host.connectOrder, null);
});
