// A CONNECT that ends here: the way to its connection, the bytes of its tunnel, its ends, and the books of all that.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { TcpRequest } from '../../../../src/data-plane/router/tcp-request.ts';
import { contextFor } from '../../../../src/data-plane/upstream/load-balancer/pick-context.ts';
import type { CircuitBreakerThresholds } from '../../../../src/snapshot/index.ts';
import { CLUSTER_STATS } from '../../../../src/stats/index.ts';
import { Framing, Method } from '../../../../src/wasm/http1.ts';
import { ClusterPriority } from '../../../../src/wasm/shared-memory.ts';
import { AttemptBench, type AttemptBenchOptions } from '../../../support/attempt-bench.ts';
import { NO_LIMITS } from '../../../support/clusters.ts';
import { outlierSettings } from '../../../support/outliers.ts';

const { upstream_rq_timeout, upstream_rq_max_duration_reached } = CLUSTER_STATS.index;
const HEAD = 'CONNECT h:1 HTTP/1.1\r\nhost: h:1\r\n\r\n';
const CONNECT_TIMEOUT_MS = 5000;
const TICK_MS = 8;
const SPLITTING = outlierSettings({ split_external_local_origin_errors: true });

class TunnelBench extends AttemptBench {
  readonly request: TcpRequest;

  constructor(options: AttemptBenchOptions = {}, port?: number, priority: ClusterPriority = ClusterPriority.default) {
    super(options);
    this.client.methodId = Method.CONNECT;
    const pick = port === undefined ? null : contextFor({ kind: 'ip', ip: '127.0.0.1', port });
    this.request = new TcpRequest(
      this.context,
      this.client,
      this.cluster,
      { priority, connectHeader: null },
      HEAD,
      pick,
    );
  }

  begun(): this {
    this.request.start();
    return this;
  }

  /** What has been told so far is taken off. */
  opened(): this {
    this.begun().upstream.accept();
    this.client.news();
    return this;
  }

  /** Requests of the host under way, over all workers. */
  get active(): number {
    return this.workers.records.activeRequests(this.snapshot.hosts[0]!.recordAddress);
  }

  get outlierFailures(): number {
    return this.outlierCount('local_total') - this.outlierCount('local_success');
  }

  override assertNothingLeft(): void {
    super.assertNothingLeft();
    assert.equal(this.places('connections'), 0);
    if (this.snapshot.hosts.length > 0) assert.equal(this.active, 0);
    assert.deepEqual([this.request.isSending, this.request.canSend], [false, false]);
    const told = this.client.news();
    // Whatever comes now comes too late.
    assert.equal(this.send(this.request, 'late', true), true);
    this.request.resumeResponse();
    this.request.cancel(true);
    this.request.timeOut(upstream_rq_timeout);
    this.wait(2 * CONNECT_TIMEOUT_MS);
    assert.deepEqual(this.client.news(), []);
    this.client.told.push(...told);
  }
}

function limited(limits: Partial<CircuitBreakerThresholds>): AttemptBenchOptions {
  const some = { ...NO_LIMITS, ...limits };
  return { cluster: { circuitBreakers: { default: some, high: NO_LIMITS } } };
}

describe('a tunnel to an upstream', () => {
  test('is answered when there is a connection', () => {
    const bench = new TunnelBench();
    const { request } = bench;
    const former = Buffer.from('HTTP/1.1 404 X\r\ncontent-length: 1\r\n\r\n');
    bench.context.codec.parseResponse(former, 0, former.length, { maxHeadBytes: 100, maxFields: 9 }, Method.GET);
    assert.deepEqual([request.host, request.attempts, request.head], [null, 1, HEAD]);
    request.start();
    assert.equal(request.host, bench.cluster.hosts[0]);
    assert.deepEqual([request.isSending, request.canSend], [false, false]);
    assert.deepEqual(
      [bench.places('pendingRequests'), bench.places('requests'), bench.places('connections')],
      [1, 1, 1],
    );
    assert.equal(bench.stat('upstream_rq_pending_total'), 1);
    assert.equal(bench.stat('upstream_rq_pending_active'), 1);
    assert.equal(bench.active, 0);
    assert.deepEqual(bench.client.news(), ['host 127.0.0.1:1 #1']);
    bench.upstream.accept();
    assert.deepEqual(bench.client.news(), ['connection', `head  @${bench.nowMs}`]);
    assert.deepEqual(bench.client.heads, [HEAD]);
    assert.deepEqual([request.isSending, request.canSend], [true, true]);
    assert.deepEqual(
      [bench.places('pendingRequests'), bench.places('requests'), bench.places('connections')],
      [0, 1, 1],
    );
    assert.deepEqual(
      (['upstream_rq_total', 'upstream_rq_active', 'upstream_rq_pending_active'] as const).map((name) =>
        bench.stat(name),
      ),
      [1, 1, 0],
    );
    assert.deepEqual(bench.hostCounts(), { active: 1, success: 1, total: 1 });
    assert.equal(bench.active, 1);
    assert.equal(bench.context.codec.response.status, 200);
    assert.equal(bench.context.codec.response.framing, Framing.TUNNEL);
    assert.ok(bench.workers.dynamicStats().includes('cluster.web.external.upstream_rq_200'));
    assert.equal(bench.upstream.received, '');
    bench.wait(2 * CONNECT_TIMEOUT_MS);
    assert.ok(bench.upstream.isOpen);
  });

  test('is counted by its origin', () => {
    const bench = new TunnelBench();
    bench.client.isInternal = true;
    bench.opened();
    assert.ok(bench.workers.dynamicStats().includes('cluster.web.internal.upstream_rq_200'));
  });

  test('holds its places with the priority of its route', () => {
    const bench = new TunnelBench({}, undefined, ClusterPriority.high).opened();
    assert.equal(bench.places('requests', ClusterPriority.high), 1);
    assert.equal(bench.places('requests'), 0);
  });

  test('carries bytes both ways', () => {
    const bench = new TunnelBench().opened();
    assert.equal(bench.send(bench.request, 'abc'), true);
    assert.equal(bench.request.send(Buffer.from('def..'), 0, 3, false), true);
    assert.equal(bench.upstream.received, 'abcdef');
    bench.upstream.send('xyz');
    assert.deepEqual(bench.client.news(), [`body xyz @${bench.nowMs}`]);
  });

  test('has nothing to carry before', () => {
    const bench = new TunnelBench().begun();
    assert.equal(bench.send(bench.request, 'abc'), true);
    bench.upstream.accept();
    assert.equal(bench.upstream.received, '');
  });

  test('waits for an upstream that takes no more', () => {
    const bench = new TunnelBench().opened();
    bench.upstream.isSlow = true;
    assert.equal(bench.send(bench.request, 'abc'), false);
    assert.equal(bench.send(bench.request, ''), true);
    bench.upstream.take();
    assert.deepEqual(bench.client.news(), ['writable']);
  });

  test('waits for a client that takes no more', () => {
    const bench = new TunnelBench().opened();
    bench.client.isFast = false;
    bench.upstream.send('abc');
    assert.ok(!bench.upstream.isRead);
    bench.request.resumeResponse();
    assert.ok(bench.upstream.isRead);
    bench.client.isFast = true;
    bench.upstream.send('abc');
    assert.ok(bench.upstream.isRead);
  });

  test('holds no more than its client can', () => {
    const bench = new TunnelBench();
    bench.client.bufferLimitBytes = 16 * 1024;
    assert.equal(bench.request.bufferLimitBytes, 16 * 1024);
  });

  for (const last of ['', 'x']) {
    test(`passes on the end of its client${last === '' ? '' : ' behind the last byte'}`, () => {
      const bench = new TunnelBench().opened();
      bench.send(bench.request, 'a');
      assert.ok(!bench.upstream.writableEnded);
      bench.send(bench.request, last, true);
      assert.equal(bench.upstream.received, `a${last}`);
      assert.ok(bench.upstream.writableEnded);
      bench.upstream.send('answer');
      assert.deepEqual(bench.client.news(), [`body answer @${bench.nowMs}`]);
    });
  }

  test('ends with its upstream', () => {
    const bench = new TunnelBench().opened();
    bench.upstream.close();
    assert.deepEqual(bench.client.news(), [`body | @${bench.nowMs}`]);
    assert.ok(!bench.upstream.isLive);
    assert.deepEqual(bench.hostCounts(), { success: 1, total: 1 });
    assert.equal(bench.stat('upstream_rq_rx_reset'), 0);
    bench.assertNothingLeft();
  });

  for (const outlierDetection of [SPLITTING, undefined]) {
    test(`fails with its upstream, outliers: ${outlierDetection !== undefined}`, () => {
      const bench = new TunnelBench({ cluster: { outlierDetection } }).opened();
      bench.upstream.reset();
      assert.deepEqual(bench.client.news(), ['failure connection termination']);
      assert.equal(bench.stat('upstream_rq_rx_reset'), 1);
      assert.equal(bench.stat('upstream_rq_tx_reset'), 0);
      assert.deepEqual(bench.hostCounts(), { error: 1, success: 1, total: 1 });
      if (outlierDetection !== undefined) assert.equal(bench.outlierFailures, 1);
      bench.assertNothingLeft();
    });
  }
});

describe('a tunnel that does not come to be', () => {
  test('has no connection', () => {
    const bench = new TunnelBench().begun();
    bench.client.news();
    bench.upstream.refuse();
    assert.deepEqual(bench.client.news(), ['failure remote connection failure']);
    assert.equal(bench.stat('upstream_rq_pending_failure_eject'), 1);
    assert.deepEqual(bench.hostCounts(), { error: 1 });
    bench.assertNothingLeft();
  });

  test('has none in time', () => {
    const bench = new TunnelBench().begun();
    bench.client.news();
    bench.wait(CONNECT_TIMEOUT_MS - TICK_MS);
    assert.ok(bench.upstream.isConnecting);
    bench.wait(2 * TICK_MS);
    assert.deepEqual(bench.client.news(), ['failure connection timeout']);
    assert.ok(!bench.upstream.isLive);
    assert.equal(bench.stat('upstream_rq_pending_failure_eject'), 1);
    bench.assertNothingLeft();
  });

  test('has no host', () => {
    const bench = new TunnelBench({ hosts: 0 }).begun();
    assert.deepEqual(bench.client.news(), ['no host']);
    assert.equal(bench.stat('upstream_cx_none_healthy'), 1);
    bench.assertNothingLeft();
    assert.equal(bench.stat('upstream_rq_timeout'), 0);
    assert.equal(bench.stat('upstream_rq_cancelled'), 0);
  });

  for (const [limit, stat] of [
    ['maxPendingRequests', 'upstream_rq_pending_overflow'],
    ['maxRequests', 'upstream_rq_pending_overflow'],
    ['maxConnections', 'upstream_cx_overflow'],
  ] as const) {
    test(`meets the limit ${limit}`, () => {
      const bench = new TunnelBench(limited({ [limit]: 0 })).begun();
      assert.deepEqual(bench.client.news(), ['host 127.0.0.1:1 #1', 'failure overflow']);
      assert.equal(bench.stat(stat), 1);
      assert.equal(bench.stat('upstream_rq_pending_total'), 0);
      assert.deepEqual(bench.hostCounts(), {});
      assert.deepEqual(bench.sockets, []);
      bench.assertNothingLeft();
    });
  }
});

describe('a tunnel whose client has gone', () => {
  for (const isReset of [true, false]) {
    test(`is broken off, by a reset: ${isReset}`, () => {
      const bench = new TunnelBench().opened();
      bench.request.cancel(isReset);
      assert.ok(!bench.upstream.isLive);
      assert.equal(bench.upstream.wasReset, isReset);
      assert.equal(bench.stat('upstream_rq_tx_reset'), 1);
      assert.equal(bench.stat('upstream_rq_cancelled'), 0);
      bench.assertNothingLeft();
      assert.equal(bench.stat('upstream_rq_tx_reset'), 1);
      assert.deepEqual(bench.client.news(), []);
    });
  }

  test('is not waited for', () => {
    const bench = new TunnelBench().begun();
    bench.client.news();
    bench.request.cancel(false);
    assert.ok(!bench.upstream.isLive);
    assert.equal(bench.stat('upstream_rq_cancelled'), 1);
    assert.equal(bench.stat('upstream_rq_tx_reset'), 0);
    bench.assertNothingLeft();
    assert.deepEqual(bench.client.news(), []);
  });
});

describe('a tunnel whose time is over', () => {
  for (const [stat, name, failures] of [
    [upstream_rq_timeout, 'upstream_rq_timeout', 1],
    [upstream_rq_max_duration_reached, 'upstream_rq_max_duration_reached', 0],
  ] as const) {
    for (const outlierDetection of [SPLITTING, undefined]) {
      test(`by ${name} is reset, outliers: ${outlierDetection !== undefined}`, () => {
        const bench = new TunnelBench({ cluster: { outlierDetection } }).opened();
        bench.request.timeOut(stat);
        assert.ok(bench.upstream.wasReset);
        assert.equal(bench.stat(name), 1);
        assert.deepEqual(bench.hostCounts(), { error: 1, success: 1, timeout: 1, total: 1 });
        if (outlierDetection !== undefined) assert.equal(bench.outlierFailures, failures);
        bench.assertNothingLeft();
        assert.equal(bench.stat(name), 1);
        assert.deepEqual(bench.client.news(), []);
      });
    }
  }

  test('gives up its connection before that stands', () => {
    const bench = new TunnelBench().begun();
    bench.request.timeOut(upstream_rq_timeout);
    assert.ok(!bench.upstream.isLive);
    assert.equal(bench.stat('upstream_rq_timeout'), 1);
    assert.equal(bench.stat('upstream_rq_cancelled'), 1);
    assert.deepEqual(bench.hostCounts(), { error: 1, timeout: 1 });
    bench.assertNothingLeft();
  });
});

describe('a tunnel whose request names its host', () => {
  const originalDst = { header: null, port: 0 };

  test('goes there when it is known', () => {
    const bench = new TunnelBench({ cluster: { originalDst }, hosts: 2 }, 2).begun();
    assert.deepEqual(bench.client.news(), ['host 127.0.0.1:2 #1']);
  });

  test('waits for the host, under the circuit breaker of its priority', () => {
    const bench = new TunnelBench({ cluster: { originalDst } }, 2, ClusterPriority.high).begun();
    assert.equal(bench.places('pendingRequests', ClusterPriority.high), 1);
    assert.deepEqual(bench.client.news(), []);
    bench.publish({ ...bench.snapshot, hosts: bench.workers.cluster(2, {}).hosts });
    assert.deepEqual(bench.client.news(), ['host 127.0.0.1:2 #1']);
    bench.upstream.accept();
    assert.ok(bench.request.isSending);
  });

  for (const end of ['cancel', 'timeOut'] as const) {
    test(`may end by ${end} before it has one`, () => {
      const bench = new TunnelBench({ cluster: { originalDst } }, 2).begun();
      if (end === 'cancel') bench.request.cancel(true);
      else bench.request.timeOut(upstream_rq_timeout);
      assert.equal(bench.stat('upstream_rq_timeout'), end === 'cancel' ? 0 : 1);
      assert.equal(bench.stat('upstream_rq_cancelled'), 1);
      bench.assertNothingLeft();
      assert.equal(bench.stat('upstream_rq_cancelled'), 1);
      bench.publish({ ...bench.snapshot, hosts: bench.workers.cluster(2, {}).hosts });
      assert.deepEqual(bench.client.news(), []);
    });
  }

  test('has none when nobody says which', () => {
    const bench = new TunnelBench({ cluster: { originalDst } }).begun();
    assert.deepEqual(bench.client.news(), ['no host']);
    bench.assertNothingLeft();
  });

  test('has none beyond the limit of those who wait', () => {
    const limits = { ...NO_LIMITS, maxPendingRequests: 0 };
    const bench = new TunnelBench({ cluster: { originalDst, circuitBreakers: { default: limits, high: limits } } }, 2);
    bench.begun();
    assert.deepEqual(bench.client.news(), ['failure overflow']);
    assert.equal(bench.stat('upstream_cx_none_healthy'), 0);
    bench.assertNothingLeft();
  });
});

test('a request for a tunnel may be cancelled before it has begun', () => {
  const bench = new TunnelBench();
  bench.request.cancel(false);
  bench.assertNothingLeft();
});
