// The places that pools have under a circuit breaker: who holds one, who gets one, and who has to go for it. That the count
// is right whatever happens is shown by pool-model.test.ts.

import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { DownstreamConnection } from '../../../../../src/data-plane/network/downstream-connection.ts';
import type { StreamPool } from '../../../../../src/data-plane/upstream/pool/stream-pool.ts';
import type { CircuitBreakerThresholds, ClusterSnapshot } from '../../../../../src/snapshot/index.ts';
import { ClusterCount, ClusterPriority } from '../../../../../src/wasm/shared-memory.ts';
import { NO_LIMITS } from '../../../../support/clusters.ts';
import { ANSWER, streamPool, UpstreamRequest } from '../../../../support/upstream-request.ts';
import { type FakeUpstreamSocket, UpstreamWorkers } from '../../../../support/upstream-workers.ts';

const { default: byDefault, high } = ClusterPriority;

/** Hosts of one cluster whose requests of the default priority may have this many pools. */
class Bench {
  readonly sockets: FakeUpstreamSocket[] = [];
  readonly workers: UpstreamWorkers;
  readonly snapshot: ClusterSnapshot;
  readonly clusters;

  constructor(
    limits: Partial<CircuitBreakerThresholds>,
    settings: Partial<ClusterSnapshot['settings']> = {},
    workers = 1,
    highLimits: Partial<CircuitBreakerThresholds> = {},
  ) {
    this.workers = new UpstreamWorkers(workers, (socket) => void this.sockets.push(socket));
    const circuitBreakers = { default: { ...NO_LIMITS, ...limits }, high: { ...NO_LIMITS, ...highLimits } };
    this.snapshot = this.workers.cluster(3, { circuitBreakers, ...settings });
    this.clusters = this.workers.contexts.map((_, worker) => this.workers.open(worker, this.snapshot));
  }

  get places(): number {
    return this.workers.records.clusterCount(this.snapshot.recordAddress, byDefault, ClusterCount.connectionPools);
  }

  /** Of each connection, in the order in which they were opened. */
  get areLive(): boolean[] {
    return this.sockets.map(({ isLive }) => isLive);
  }

  /** Of the first worker and the default priority. */
  pool(host: number): StreamPool {
    return streamPool(this.clusters[0]!.hosts[host]!);
  }

  request(host: number, options: { worker?: number; priority?: ClusterPriority; client?: DownstreamConnection } = {}) {
    const { worker = 0, priority = byDefault, client = null } = options;
    const request = new UpstreamRequest();
    this.clusters[worker]!.hosts[host]!.poolFor(priority, client).newStream(request);
    return request;
  }

  answer(socket: number): void {
    const { isConnecting } = this.sockets[socket]!;
    if (isConnecting) this.sockets[socket]!.accept();
    this.sockets[socket]!.send(ANSWER);
  }
}

function client(): DownstreamConnection {
  return new DownstreamConnection({} as Socket, 0, 1024);
}

describe('a place of a pool', () => {
  test('is held from the first connection to the last', () => {
    const bench = new Bench({ maxConnectionPools: 1 });
    bench.request(0);
    bench.request(0);
    assert.equal(bench.sockets.length, 2);
    assert.equal(bench.places, 1);
    for (const socket of bench.sockets) socket.accept();
    for (const socket of bench.sockets) socket.send(ANSWER);
    assert.equal(bench.places, 1);
    bench.sockets[0]!.close();
    assert.equal(bench.places, 1);
    bench.sockets[1]!.close();
    assert.equal(bench.places, 0);
  });

  test('is given back when nothing can be connected to', () => {
    const bench = new Bench({ maxConnectionPools: 1 });
    const request = bench.request(0);
    bench.sockets[0]!.refuse();
    assert.equal(request.outcome, 'remote connection failure');
    assert.equal(bench.places, 0);
    bench.request(1);
    bench.workers.clock.turn(6000);
    assert.equal(bench.places, 0);
  });

  test('is given back when the request may not even wait', () => {
    const bench = new Bench({ maxConnectionPools: 1, maxPendingRequests: 0 });
    assert.equal(bench.request(0).outcome, 'overflow');
    assert.equal(bench.places, 0);
  });

  test('is none for a host beyond the limit while the others are busy', () => {
    const bench = new Bench({ maxConnectionPools: 2 });
    bench.request(0);
    bench.request(1);
    bench.sockets[1]!.accept();
    assert.equal(bench.request(2).outcome, 'no pool');
    assert.equal(bench.clusters[0]!.closeUnusedPool(byDefault), false);
    assert.equal(bench.workers.clusterStat(bench.snapshot, 'upstream_cx_pool_overflow'), 1);
    assert.equal(bench.workers.clusterStat(bench.snapshot, 'upstream_rq_pending_overflow'), 0);
    assert.equal(bench.sockets.length, 2);
    assert.equal(bench.request(2, { priority: high }).outcome, '');
  });

  test('is that of a pool which carries nothing, and closes', () => {
    const bench = new Bench({ maxConnectionPools: 2 });
    bench.request(0);
    bench.request(1);
    bench.answer(1);
    const request = bench.request(2);
    assert.equal(request.outcome, '');
    assert.deepEqual(bench.areLive, [true, false, true]);
    assert.equal(bench.places, 2);
    assert.equal(bench.workers.clusterStat(bench.snapshot, 'upstream_cx_pool_overflow'), 0);
  });

  test('is not that of a pool of the other priority', () => {
    const bench = new Bench({ maxConnectionPools: 1 });
    bench.request(0, { priority: high });
    bench.answer(0);
    bench.request(1);
    assert.equal(bench.request(2).outcome, 'no pool');
    assert.equal(bench.sockets[0]!.isLive, true);
  });

  test('is that of a pool of its own priority, whichever hosts have one', () => {
    const bench = new Bench({}, {}, 1, { maxConnectionPools: 1 });
    bench.request(0);
    bench.answer(0);
    bench.request(1, { priority: high });
    bench.answer(1);
    assert.equal(bench.request(2, { priority: high }).outcome, '');
    assert.deepEqual(bench.areLive, [true, false, true]);
  });

  test('is not that of a pool one of whose connections is busy: the idle one stays as well', () => {
    const bench = new Bench({ maxConnectionPools: 1 });
    bench.request(0);
    bench.request(0);
    bench.answer(0);
    bench.sockets[1]!.accept();
    assert.equal(bench.request(1).outcome, 'no pool');
    assert.deepEqual(bench.areLive, [true, true]);
  });

  test('is not that of a pool with a request that is just about to be served', () => {
    const bench = new Bench({ maxConnectionPools: 1, maxConnections: 1, maxRequests: 0 });
    const elsewhere = new UpstreamRequest();
    const [, other] = bench.clusters[0]!.hosts;
    bench.pool(0).newStream({
      onStream: () => assert.fail('there is a place for no request'),
      onPoolFailure: () => other!.pools.default.newStream(elsewhere),
    });
    const next = bench.request(0);
    bench.sockets[0]!.accept();
    assert.deepEqual([elsewhere.outcome, next.outcome], ['no pool', 'overflow']);
    assert.deepEqual(bench.areLive, [true]);
  });

  test('is one of each client where each has connections of its own', () => {
    const bench = new Bench({ maxConnectionPools: 2 }, { poolsPerClient: true });
    bench.request(0, { client: client() });
    bench.request(0, { client: client() });
    assert.equal(bench.request(0, { client: client() }).outcome, 'no pool');
    bench.answer(0);
    assert.equal(bench.request(0, { client: client() }).outcome, '');
    assert.equal(bench.sockets[0]!.isLive, false);
  });

  test('is that of a client at another host where those at the first are busy', () => {
    const bench = new Bench({ maxConnectionPools: 2 }, { poolsPerClient: true });
    bench.request(0, { client: client() });
    bench.request(1, { client: client() });
    bench.answer(1);
    assert.equal(bench.request(2, { client: client() }).outcome, '');
    assert.deepEqual(bench.areLive, [true, false, true]);
  });

  test('is shared with other workers, whose pools stay', () => {
    const bench = new Bench({ maxConnectionPools: 1 }, {}, 2);
    bench.request(0, { worker: 1 });
    bench.answer(0);
    assert.equal(bench.request(0).outcome, 'no pool');
    assert.equal(bench.sockets[0]!.isLive, true);
  });

  test('is not taken from anybody for requests to come', () => {
    const bench = new Bench({ maxConnectionPools: 1 });
    bench.request(0);
    bench.answer(0);
    const pool = bench.pool(1);
    assert.equal(pool.openForNext(2), false);
    assert.equal(bench.sockets.length, 1);
    bench.sockets[0]!.close();
    assert.equal(pool.openForNext(2), true);
    assert.equal(bench.places, 1);
  });

  test('is given back where requests to come may have no connection', () => {
    const bench = new Bench({ maxConnectionPools: 1, maxConnections: 0 });
    assert.equal(bench.pool(0).openForNext(2), false);
    assert.equal(bench.places, 0);
  });
});
