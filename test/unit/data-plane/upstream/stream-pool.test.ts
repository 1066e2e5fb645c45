// Who gets a connection, and when, where the limits of a cluster are met: the pool's own queue, and the line of pools
// under one circuit breaker. pool-model.test.ts has the rest: that nothing goes wrong whatever happens.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Http1ClientConnection } from '../../../../src/data-plane/http/codec/http1/client-connection.ts';
import { TICK_MS } from '../../../../src/data-plane/network/timer-wheel.ts';
import type { Cluster } from '../../../../src/data-plane/upstream/cluster.ts';
import type { PoolClient } from '../../../../src/data-plane/upstream/pool/connection-pool.ts';
import type { CircuitBreakerThresholds, ClusterSnapshot } from '../../../../src/snapshot/index.ts';
import { ClusterPriority } from '../../../../src/wasm/shared-memory.ts';
import { NO_LIMITS } from '../../../support/clusters.ts';
import { streamPool } from '../../../support/upstream-request.ts';
import { type FakeUpstreamSocket, UpstreamWorkers } from '../../../support/upstream-workers.ts';

/** In this time every worker has looked at the limits once. */
const LOOK_MS = 24;

class Client implements PoolClient {
  connection: Http1ClientConnection | null = null;
  failure = '';

  onStream(connection: Http1ClientConnection): void {
    this.connection = connection;
  }

  onPoolFailure(failure: string, detail: string): void {
    this.failure = failure + detail;
  }
}

/** A cluster in some workers; hosts are numbered from 0. */
class Bench {
  readonly workers: UpstreamWorkers;
  readonly snapshot: ClusterSnapshot;
  readonly clusters: readonly Cluster[];
  /** Connections by host, in the order in which they were opened. */
  readonly sockets: FakeUpstreamSocket[][];

  constructor(limits: Partial<CircuitBreakerThresholds>, { workers = 1, hosts = 1 } = {}) {
    const circuitBreakers = { default: { ...NO_LIMITS, ...limits }, high: NO_LIMITS };
    this.sockets = Array.from({ length: hosts }, () => []);
    this.workers = new UpstreamWorkers(workers, (socket) => {
      this.sockets[(socket.address as { readonly port: number }).port - 1]!.push(socket);
    });
    this.snapshot = this.workers.cluster(hosts, { circuitBreakers });
    this.clusters = this.workers.contexts.map((_, worker) => this.workers.open(worker, this.snapshot));
  }

  /** Connections so far, by host. */
  get opened(): number[] {
    return this.sockets.map(({ length }) => length);
  }

  /** So many requests at once to a host. */
  request(host: number, count = 1, worker = 0): Client[] {
    const { default: pool } = this.clusters[worker]!.hosts[host]!.pools;
    return Array.from({ length: count }, () => {
      const client = new Client();
      pool.newStream(client);
      return client;
    });
  }

  /** Takes places for connections, as proxied TCP does. @returns what gives one of them back. */
  occupy(places: number, worker = 0): () => void {
    const { breaker } = this.clusters[worker]!;
    for (let place = 0; place < places; place++) assert.ok(breaker.tryAcquireConnection());
    return () => breaker.releaseConnection();
  }

  /** Whatever this worker does by itself at once. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 5; turn++) await null;
  }
}

describe('a limit of connections per host', () => {
  test('holds over all workers, and gives its places to whoever waits', async () => {
    const bench = new Bench({ maxConnectionsPerHost: 2 }, { workers: 2 });
    bench.request(0, 2, 0);
    bench.request(0, 1, 1);
    // A pool without any connection goes beyond it.
    assert.deepEqual(bench.opened, [3]);
    bench.request(0, 2, 1);
    assert.deepEqual(bench.opened, [3]);
    for (const socket of bench.sockets[0]!) socket.accept();
    for (const socket of bench.sockets[0]!.slice(0, 2)) socket.reset();
    await bench.settle();
    bench.workers.clock.turn(LOOK_MS);
    assert.deepEqual(bench.opened, [4]);
  });

  test('counts the connections of the other priority, whose own limit may be another', () => {
    const bench = new Bench({ maxConnectionsPerHost: 1 });
    const host = bench.clusters[0]!.hosts[0]!;
    const high = host.poolFor(ClusterPriority.high, null);
    for (let n = 0; n < 3; n++) high.newStream(new Client());
    assert.deepEqual(bench.opened, [3]);
    bench.request(0, 4);
    assert.deepEqual(bench.opened, [4]);
  });

  test('takes no place of the cluster for a connection that it refuses, nor the other way round', () => {
    const bench = new Bench({ maxConnections: 2, maxConnectionsPerHost: 1 }, { hosts: 2 });
    const { breaker, hosts } = bench.clusters[0]!;
    const [first, second] = hosts;
    assert.ok(first!.tryAcquireConnection(breaker));
    assert.equal(first!.tryAcquireConnection(breaker), false);
    assert.ok(breaker.tryAcquireConnection());
    assert.equal(second!.tryAcquireConnection(breaker), false);
    breaker.releaseConnection();
    assert.ok(second!.tryAcquireConnection(breaker));
    assert.deepEqual([first!.isFull(breaker), second!.isFull(breaker)], [true, true]);
  });
});

describe('a queue of requests', () => {
  test('is refused as a whole when a connection becomes ready while the limit of requests is met', async () => {
    const bench = new Bench({ maxConnections: 1, maxRequests: 1 }, { hosts: 2 });
    const [running] = bench.request(0);
    bench.sockets[0]![0]!.accept();
    assert.ok(running!.connection !== null);
    const waiting = bench.request(1, 5);
    bench.sockets[1]![0]!.accept();
    assert.deepEqual(
      waiting.map(({ failure }) => failure),
      new Array(5).fill('overflow'),
    );
    assert.equal(bench.workers.clusterStat(bench.snapshot, 'upstream_rq_pending_overflow'), 5);
    assert.equal(streamPool(bench.clusters[0]!.hosts[1]!).readyCount, 1);
  });

  test('is served in its order by the connections that become ready', () => {
    const bench = new Bench({});
    const clients = bench.request(0, 3);
    for (const [index, socket] of bench.sockets[0]!.entries()) {
      socket.accept();
      const served = clients.map(({ connection }) => connection !== null);
      assert.deepEqual(served, [true, index > 0, index > 1]);
    }
  });

  test('is led by those that have had a stream before, in their order', () => {
    const bench = new Bench({});
    const { default: pool } = bench.clusters[0]!.hosts[0]!.pools;
    const again = Array.from({ length: 5 }, () => new Client());
    const before = bench.request(0, 2);
    for (const client of again.slice(0, 3)) pool.newStream(client, true);
    assert.ok(pool.cancel(again[1]!));
    const behind = bench.request(0, 2);
    assert.ok(pool.cancel(before[0]!));
    bench.sockets[0]![0]!.accept();
    for (const client of again.slice(3)) pool.newStream(client, true);
    const order = [again[0], again[2], again[3], again[4], before[1], ...behind];
    for (const [index, socket] of bench.sockets[0]!.entries()) {
      if (index > 0) socket.accept();
      const served = order.map((client) => client!.connection !== null);
      assert.deepEqual(
        served,
        order.map((_, place) => place <= index),
      );
    }
  });
});

describe('a place for a connection that is given back', () => {
  test('goes at once to the pool that has waited longest, in turn', async () => {
    const bench = new Bench({ maxConnections: 6 }, { hosts: 3 });
    const release = bench.occupy(3);
    for (const host of [0, 1, 2]) bench.request(host);
    bench.request(1, 2);
    bench.request(0, 2);
    bench.request(2, 1);
    assert.deepEqual(bench.opened, [1, 1, 1]);
    for (const expected of [
      [1, 2, 1],
      [2, 2, 1],
      [2, 2, 2],
    ]) {
      release();
      await bench.settle();
      assert.deepEqual(bench.opened, expected);
    }
  });

  test('is one for each pool before any gets a second', async () => {
    const bench = new Bench({ maxConnections: 5 }, { hosts: 2 });
    const release = bench.occupy(3);
    for (const host of [0, 1]) bench.request(host);
    bench.request(0, 4);
    bench.request(1, 4);
    release();
    release();
    await bench.settle();
    assert.deepEqual(bench.opened, [2, 2]);
  });

  test('goes to who waits, not to who comes then', async () => {
    const bench = new Bench({ maxConnections: 3 }, { hosts: 2 });
    const release = bench.occupy(1);
    for (const host of [0, 1]) bench.request(host);
    bench.request(0);
    release();
    bench.request(1);
    assert.deepEqual(bench.opened, [2, 1]);
    await bench.settle();
    assert.deepEqual(bench.opened, [2, 1]);
  });

  test('by another worker is found within a moment, also when that worker has crashed', async () => {
    const bench = new Bench({ maxConnections: 3 }, { workers: 2 });
    const release = bench.occupy(2, 1);
    bench.request(0, 3);
    await bench.settle();
    assert.deepEqual(bench.opened, [1]);
    release();
    bench.workers.clock.turn(LOOK_MS);
    assert.deepEqual(bench.opened, [2]);
    bench.workers.crash(1);
    bench.workers.clock.turn(LOOK_MS);
    assert.deepEqual(bench.opened, [3]);
  });

  test('stays free when nobody wants it any more', async () => {
    const bench = new Bench({ maxConnections: 2 });
    const release = bench.occupy(1);
    bench.request(0);
    const [waiting] = bench.request(0);
    assert.ok(bench.clusters[0]!.hosts[0]!.pools.default.cancel(waiting!));
    release();
    await bench.settle();
    bench.workers.clock.turn(LOOK_MS);
    assert.deepEqual(bench.opened, [1]);
  });
});

describe('a pool that lacks connections', () => {
  test('opens three at once, and more as these come up', async () => {
    const bench = new Bench({ maxConnections: 11 });
    const release = bench.occupy(10);
    bench.request(0, 11);
    assert.deepEqual(bench.opened, [1]);
    for (let place = 0; place < 10; place++) release();
    await bench.settle();
    assert.deepEqual(bench.opened, [4]);
    bench.sockets[0]![1]!.accept();
    assert.deepEqual(bench.opened, [7]);
  });

  test('opens three at once, and more after a moment when none comes up', async () => {
    const bench = new Bench({ maxConnections: 11 });
    const release = bench.occupy(10);
    bench.request(0, 11);
    for (let place = 0; place < 10; place++) release();
    await bench.settle();
    const steps = new Set<number>();
    for (let look = 0; look < 10; look++) {
      const [before] = bench.opened;
      bench.workers.clock.turn(TICK_MS);
      steps.add(bench.opened[0]! - before!);
    }
    assert.deepEqual(bench.opened, [11]);
    assert.deepEqual([...steps].toSorted(), [0, 1, 3]);
  });

  test('opens three at once when its last connection ends', () => {
    const bench = new Bench({ maxConnections: 11 });
    const release = bench.occupy(10);
    bench.request(0, 11);
    bench.sockets[0]![0]!.accept();
    for (let place = 0; place < 10; place++) release();
    bench.sockets[0]![0]!.reset();
    assert.deepEqual(bench.opened, [4]);
  });

  test('opens one beyond the limit when its last connection ends, and no more', async () => {
    const bench = new Bench({ maxConnections: 1 });
    bench.request(0, 5);
    bench.sockets[0]![0]!.accept();
    bench.clusters[0]!.breaker.acquireConnection();
    bench.sockets[0]![0]!.reset();
    await bench.settle();
    bench.workers.clock.turn(LOOK_MS);
    assert.deepEqual(bench.opened, [2]);
  });

  test('counts each request that meets the limit, not each look', async () => {
    const bench = new Bench({ maxConnections: 1 });
    const overflows = (): number => bench.workers.clusterStat(bench.snapshot, 'upstream_cx_overflow');
    bench.request(0, 3);
    assert.equal(overflows(), 2);
    bench.workers.clock.turn(10 * LOOK_MS);
    assert.equal(overflows(), 2);
  });

  test('counts nothing when it is served while another has to wait on', async () => {
    const bench = new Bench({ maxConnections: 4 }, { hosts: 2 });
    const release = bench.occupy(2);
    for (const host of [0, 1]) bench.request(host);
    bench.request(0, 2);
    const before = bench.workers.clusterStat(bench.snapshot, 'upstream_cx_overflow');
    release();
    release();
    bench.request(1);
    assert.deepEqual(bench.opened, [2, 2]);
    assert.equal(bench.workers.clusterStat(bench.snapshot, 'upstream_cx_overflow'), before);
  });

  test('counts nothing when there are places for more than it may open at once', () => {
    const bench = new Bench({ maxConnections: 20 });
    const release = bench.occupy(19);
    bench.request(0, 11);
    const before = bench.workers.clusterStat(bench.snapshot, 'upstream_cx_overflow');
    for (let place = 0; place < 19; place++) release();
    bench.request(0);
    assert.deepEqual(bench.opened, [4]);
    assert.equal(bench.workers.clusterStat(bench.snapshot, 'upstream_cx_overflow'), before);
  });

  test('looks for a place every other tick, not at each', () => {
    const bench = new Bench({});
    let looks = 0;
    const waiting = {
      lacksConnection: true,
      isHostFull: false,
      tryOpenConnection(): boolean {
        looks += 1;
        return false;
      },
    };
    assert.equal(bench.clusters[0]!.breaker.openConnections(waiting, 1), false);
    looks = 0;
    bench.workers.clock.turn(20 * TICK_MS);
    assert.ok(looks === 9 || looks === 10, `${looks} looks`);
  });

  test('costs nobody else anything when it fails by a bug', async () => {
    const bench = new Bench({ maxConnections: 2 });
    const { breaker } = bench.clusters[0]!;
    const release = bench.occupy(2);
    const broken = {
      lacksConnection: true,
      isHostFull: false,
      tryOpenConnection(): boolean {
        if (!breaker.tryAcquireConnection()) return false;
        this.lacksConnection = false;
        throw new Error('deliberate');
      },
    };
    assert.equal(breaker.openConnections(broken, 1), false);
    release();
    await bench.settle();
    assert.equal(broken.lacksConnection, false);
    release();
    bench.request(0);
    assert.deepEqual(bench.opened, [1]);
  });

  test('that waits for its host holds no other host back', () => {
    const bench = new Bench({ maxConnections: 5, maxConnectionsPerHost: 2 }, { hosts: 2 });
    for (const host of [0, 0, 0, 1, 1]) bench.request(host);
    assert.deepEqual(bench.opened, [2, 2]);
    assert.equal(bench.workers.clusterStat(bench.snapshot, 'upstream_cx_overflow'), 1);
  });

  test('leaves no timer behind once it has them', async () => {
    const bench = new Bench({ maxConnections: 2 });
    const { wheel } = bench.workers.contexts[0]!;
    const release = bench.occupy(1);
    bench.request(0, 2);
    release();
    await bench.settle();
    for (const socket of bench.sockets[0]!) socket.accept();
    for (const cluster of bench.clusters) cluster.close();
    bench.workers.clock.turn(LOOK_MS);
    assert.equal(wheel.size, 0);
  });
});
