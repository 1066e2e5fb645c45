// What the connections to a host are counted as, from the attempt to their end: the books of the cluster, of the host and
// of the records that all workers see.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { UpstreamConnectionStats } from '../../../../src/data-plane/upstream/connection-stats.ts';
import type { CLUSTER_STATS, HOST_STATS } from '../../../../src/stats/index.ts';
import { ClusterCount, ClusterPriority } from '../../../../src/wasm/shared-memory.ts';
import { ANSWER, HEAD, UpstreamRequest } from '../../../support/upstream-request.ts';
import { type FakeUpstreamSocket, UpstreamWorkers } from '../../../support/upstream-workers.ts';

type ClusterStat = keyof typeof CLUSTER_STATS.index;
type HostStat = keyof typeof HOST_STATS.index;

/** All that is counted here, with what stays at 0 left out. */
const CLUSTER: readonly ClusterStat[] = [
  'bind_errors',
  'upstream_cx_active',
  'upstream_cx_connect_fail',
  'upstream_cx_connect_timeout',
  'upstream_cx_destroy',
  'upstream_cx_destroy_local',
  'upstream_cx_destroy_local_with_active_rq',
  'upstream_cx_destroy_remote',
  'upstream_cx_destroy_remote_with_active_rq',
  'upstream_cx_destroy_with_active_rq',
  'upstream_cx_rx_bytes_buffered',
  'upstream_cx_total',
  'upstream_cx_tx_bytes_buffered',
  'upstream_cx_tx_bytes_total',
  'upstream_rq_active',
  'upstream_rq_total',
];
const HOST: readonly HostStat[] = ['cx_active', 'cx_connect_fail', 'cx_total', 'rq_active', 'rq_total'];

class Bench {
  readonly sockets: FakeUpstreamSocket[] = [];
  readonly workers = new UpstreamWorkers(1, (socket) => void this.sockets.push(socket));
  readonly snapshot = this.workers.cluster(1, { connectTimeoutMs: 5000, idleTimeoutMs: 0 });
  readonly cluster = this.workers.open(0, this.snapshot);

  get pool() {
    return this.cluster.hosts[0]!.pools.default;
  }

  request(): UpstreamRequest {
    const request = new UpstreamRequest();
    this.pool.newStream(request);
    return request;
  }

  wait(ms: number): void {
    this.workers.clock.turn(ms);
  }

  assertBooks(clusterStats: Partial<Record<ClusterStat, number>>, hostStats: Partial<Record<HostStat, number>>): void {
    const { workers, snapshot } = this;
    const cluster = CLUSTER.map((stat) => [stat, workers.clusterStat(snapshot, stat)] as const);
    const host = HOST.map((stat) => [stat, workers.hostStat(snapshot, 0, stat)] as const);
    const used = (books: readonly (readonly [string, number])[]) =>
      Object.fromEntries(books.filter(([, value]) => value !== 0));
    assert.deepEqual([used(cluster), used(host)], [clusterStats, hostStats]);
    const { recordAddress } = snapshot.hosts[0]!;
    assert.equal(workers.records.activeConnections(recordAddress), clusterStats.upstream_cx_active ?? 0);
    assert.equal(workers.records.activeRequests(recordAddress), clusterStats.upstream_rq_active ?? 0);
    const held = (count: ClusterCount): number =>
      workers.records.clusterCount(snapshot.recordAddress, ClusterPriority.default, count);
    assert.equal(held(ClusterCount.connections), clusterStats.upstream_cx_active ?? 0);
    assert.equal(held(ClusterCount.requests), clusterStats.upstream_rq_active ?? 0);
  }

  assertTimes(connectMs: readonly number[], lengthMs: readonly number[], requests: readonly number[]): void {
    const samples = (stat: ClusterStat): readonly number[] => this.workers.clusterSamples(this.snapshot, stat);
    assert.deepEqual(samples('upstream_cx_connect_ms'), connectMs);
    assert.deepEqual(samples('upstream_cx_length_ms'), lengthMs);
    assert.deepEqual(samples('upstream_rq_per_cx'), requests);
  }
}

/** A connection on which one request is under way. */
function busy(): Bench & { socket: FakeUpstreamSocket; first: UpstreamRequest } {
  const bench = new Bench();
  const first = bench.request();
  bench.wait(30);
  const [socket] = bench.sockets;
  socket!.accept();
  return Object.assign(bench, { socket: socket!, first });
}

const SENT = { upstream_cx_tx_bytes_total: HEAD.length, upstream_rq_total: 1 };
const CUT = { ...SENT, upstream_cx_total: 1, upstream_cx_destroy: 1, upstream_cx_destroy_with_active_rq: 1 };

describe('a connection', () => {
  test('counts as active from the attempt on, and its requests one by one', () => {
    const bench = new Bench();
    bench.request();
    bench.assertBooks({ upstream_cx_total: 1, upstream_cx_active: 1 }, { cx_total: 1, cx_active: 1 });
    bench.wait(30);
    bench.sockets[0]!.accept();
    const open = { upstream_cx_total: 1, upstream_cx_active: 1 };
    bench.assertBooks(
      { ...open, ...SENT, upstream_rq_active: 1 },
      { cx_total: 1, cx_active: 1, rq_total: 1, rq_active: 1 },
    );
    bench.sockets[0]!.send(ANSWER);
    bench.assertBooks({ ...open, ...SENT }, { cx_total: 1, cx_active: 1, rq_total: 1 });
    bench.request();
    const sent = { upstream_cx_tx_bytes_total: 2 * HEAD.length, upstream_rq_total: 2 };
    bench.assertBooks(
      { ...open, ...sent, upstream_rq_active: 1 },
      { cx_total: 1, cx_active: 1, rq_total: 2, rq_active: 1 },
    );
    bench.assertTimes([30], [], []);
  });

  test('says whether it has carried a request before', () => {
    const bench = busy();
    assert.equal(bench.first.stream!.isReused, false);
    bench.socket.send(ANSWER);
    assert.equal(bench.request().stream!.isReused, true);
  });

  test('counts what waits to be sent, and what has come and waits for its rest, for as long as it lasts', () => {
    const bench = new Bench();
    bench.request();
    const [socket] = bench.sockets;
    socket!.isSlow = true;
    socket!.accept();
    socket!.send('HTTP/1.1 200');
    const open = { ...SENT, upstream_cx_total: 1, upstream_cx_active: 1, upstream_rq_active: 1 };
    const buffered = { upstream_cx_tx_bytes_buffered: HEAD.length, upstream_cx_rx_bytes_buffered: 12 };
    const host = { cx_total: 1, rq_total: 1 };
    bench.assertBooks({ ...open, ...buffered }, { ...host, cx_active: 1, rq_active: 1 });
    socket!.reset();
    const ended = { upstream_cx_destroy_remote: 1, upstream_cx_destroy_remote_with_active_rq: 1 };
    bench.assertBooks({ ...CUT, ...ended }, host);
  });

  test('that the upstream ends between requests counts as ended by it', () => {
    const bench = busy();
    bench.socket.send(ANSWER);
    bench.wait(12);
    bench.socket.close();
    const ended = { upstream_cx_total: 1, upstream_cx_destroy: 1, upstream_cx_destroy_remote: 1 };
    bench.assertBooks({ ...SENT, ...ended }, { cx_total: 1, rq_total: 1 });
    bench.assertTimes([30], [42], [1]);
  });

  test('that this side ends between requests counts as ended here', () => {
    const bench = busy();
    bench.socket.send(ANSWER);
    bench.pool.drain();
    const ended = { upstream_cx_total: 1, upstream_cx_destroy: 1, upstream_cx_destroy_local: 1 };
    bench.assertBooks({ ...SENT, ...ended }, { cx_total: 1, rq_total: 1 });
    bench.assertTimes([30], [30], [1]);
  });

  test('that the upstream ends under a request counts as cut by it', () => {
    const bench = busy();
    bench.socket.reset();
    assert.equal(bench.first.outcome, 'connection termination');
    const ended = { upstream_cx_destroy_remote: 1, upstream_cx_destroy_remote_with_active_rq: 1 };
    bench.assertBooks({ ...CUT, ...ended }, { cx_total: 1, rq_total: 1 });
  });

  test('that this side ends under a request counts as cut here', () => {
    const bench = busy();
    bench.first.stream!.abort(true);
    const ended = { upstream_cx_destroy_local: 1, upstream_cx_destroy_local_with_active_rq: 1 };
    bench.assertBooks({ ...CUT, ...ended }, { cx_total: 1, rq_total: 1 });
  });
});

describe('an attempt to connect', () => {
  const failed = { upstream_cx_total: 1, upstream_cx_connect_fail: 1, upstream_cx_destroy: 1 };
  const host = { cx_total: 1, cx_connect_fail: 1 };

  test('that is refused counts as a connection that failed', () => {
    const bench = new Bench();
    const request = bench.request();
    bench.wait(30);
    bench.sockets[0]!.refuse();
    assert.equal(request.outcome, 'remote connection failure');
    bench.assertBooks({ ...failed, upstream_cx_destroy_remote: 1 }, host);
    bench.assertTimes([], [30], []);
  });

  test('from a source address that cannot be used counts as one of bind, too', () => {
    const bench = new Bench();
    const request = bench.request();
    bench.sockets[0]!.refuse(Object.assign(new Error('bind'), { code: 'EADDRNOTAVAIL', syscall: 'bind' }));
    assert.equal(request.outcome, 'local connection failure');
    bench.assertBooks({ ...failed, bind_errors: 1, upstream_cx_destroy_remote: 1 }, host);
  });

  test('that takes too long counts as a timeout, too', () => {
    const bench = new Bench();
    const request = bench.request();
    bench.wait(5008);
    assert.equal(request.outcome, 'connection timeout');
    bench.assertBooks({ ...failed, upstream_cx_connect_timeout: 1, upstream_cx_destroy_local: 1 }, host);
  });
});

describe('flow control of a connection', () => {
  type Turn = 'backed_up' | 'drained' | 'paused_reading' | 'resumed_reading';

  function flow() {
    const { workers, snapshot, cluster } = new Bench();
    const [host] = cluster.hosts;
    const stats = new UpstreamConnectionStats(workers.contexts[0]!, host!, cluster.breaker, 0);
    const counts = (...turns: readonly Turn[]): number[] =>
      turns.map((turn) => workers.clusterStat(snapshot, `upstream_flow_control_${turn}_total`));
    const unsent = (): number => workers.clusterStat(snapshot, 'upstream_cx_tx_bytes_buffered');
    return { stats, counts, unsent };
  }

  test('counts once that the peer takes nothing, until it has taken all', () => {
    const { stats, counts, unsent } = flow();
    const seen = (): number[] => [...counts('backed_up', 'drained'), unsent()];
    stats.drained();
    assert.deepEqual(seen(), [0, 0, 0]);
    stats.backedUp(10);
    stats.backedUp(25);
    assert.deepEqual(seen(), [1, 0, 25]);
    stats.drained();
    stats.drained();
    assert.deepEqual(seen(), [1, 1, 0]);
    stats.backedUp(5);
    assert.deepEqual(seen(), [2, 1, 5]);
    stats.closed(true);
    assert.deepEqual(seen(), [2, 1, 0]);
  });

  test('counts once that nothing is read, until reading goes on', () => {
    const { stats, counts } = flow();
    const seen = (): number[] => counts('paused_reading', 'resumed_reading');
    stats.resumedReading();
    assert.deepEqual(seen(), [0, 0]);
    for (const round of [1, 2]) {
      stats.pausedReading();
      stats.pausedReading();
      assert.deepEqual(seen(), [round, round - 1]);
      stats.resumedReading();
      stats.resumedReading();
      assert.deepEqual(seen(), [round, round]);
    }
  });
});
