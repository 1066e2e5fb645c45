// An attempt that comes to nothing: for want of a connection or a host, by its upstream, its client or its time; and what is
// sent once more.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CLUSTER_STATS } from '../../../../src/stats/index.ts';
import { Method } from '../../../../src/wasm/http1.ts';
import { ClusterPriority } from '../../../../src/wasm/shared-memory.ts';
import { AttemptBench, attemptOf, HEAD, OK, sending } from '../../../support/attempt-bench.ts';
import { NO_LIMITS } from '../../../support/clusters.ts';
import { outlierSettings } from '../../../support/outliers.ts';

const { upstream_rq_timeout, upstream_rq_max_duration_reached } = CLUSTER_STATS.index;
const RESET = 'failure connection termination';
const CONNECT_TIMEOUT_MS = 5000;

describe('a request on a connection that its upstream has closed', () => {
  interface Second {
    readonly method?: number;
    readonly body?: string;
    readonly isEnd?: boolean;
    readonly awaitsTunnel?: boolean;
    /** Of the answer. */
    readonly bytes?: string;
    readonly more?: string;
  }

  /** The second request of a connection, which then ends. */
  function second({ method = Method.GET, body = '', isEnd = true, awaitsTunnel = false, bytes, more }: Second) {
    const bench = new AttemptBench();
    sending(bench);
    bench.upstream.send(OK);
    bench.client.methodId = method;
    bench.client.awaitsTunnel = awaitsTunnel;
    bench.client.news();
    const attempt = attemptOf(bench);
    bench.start(attempt, body, isEnd);
    if (more !== undefined) bench.send(attempt, more, true);
    if (bytes !== undefined) bench.upstream.send(bytes);
    bench.client.news();
    bench.upstream.reset();
    return { bench, attempt };
  }

  for (const [name, method] of Object.entries(Method)) {
    const isIdempotent = ['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'].includes(name);
    test(`is ${isIdempotent ? '' : 'not '}sent once more with ${name}`, () => {
      const { bench } = second({ method });
      assert.equal(bench.stat('upstream_rq_retry'), isIdempotent ? 1 : 0);
      assert.equal(bench.sockets.length, isIdempotent ? 2 : 1);
      assert.deepEqual(bench.client.news(), [isIdempotent ? 'host 127.0.0.1:1 #2' : RESET]);
    });
  }

  test('is answered as if nothing had been', () => {
    const { bench, attempt } = second({});
    assert.equal(attempt.attempts, 2);
    bench.upstream.accept();
    assert.equal(bench.upstream.received, HEAD);
    bench.client.news();
    bench.upstream.send(OK);
    assert.deepEqual(bench.client.news(), ['judge 200', `head ok| @${bench.nowMs}`]);
    assert.equal(bench.stat('upstream_rq_retry_success'), 1);
    assert.equal(bench.stat('upstream_rq_rx_reset'), 0);
    assert.deepEqual(bench.hostCounts(), { success: 2, total: 3 });
    bench.assertNothingLeft();
  });

  test('is sent once more, not twice', () => {
    const { bench } = second({});
    bench.upstream.accept();
    bench.client.news();
    bench.upstream.reset();
    assert.deepEqual(bench.client.news(), [`${RESET}, retried`]);
    assert.equal(bench.stat('upstream_rq_retry'), 1);
    assert.equal(bench.sockets.length, 2);
    bench.assertNothingLeft();
  });

  test('has failed when there is no other connection', () => {
    const { bench } = second({});
    bench.client.news();
    bench.upstream.refuse();
    assert.match(bench.client.news()[0]!, /^failure remote connection failure.*, retried$/);
  });

  for (const [what, options, isRetried] of [
    ['whose body has gone out', { body: 'x' }, false],
    ['whose body has gone out later', { isEnd: false, more: 'x' }, false],
    ['that has not come in full', { isEnd: false }, false],
    ['that came in full later', { isEnd: false, more: '' }, true],
    ['that awaits a tunnel', { isEnd: false, awaitsTunnel: true }, true],
    ['whose answer has begun', { bytes: 'HTTP/1.1 2' }, false],
  ] as const) {
    test(`is ${isRetried ? '' : 'not '}sent once more: ${what}`, () => {
      const { bench } = second(options);
      assert.equal(bench.stat('upstream_rq_retry'), isRetried ? 1 : 0);
      assert.equal(bench.stat('upstream_rq_rx_reset'), isRetried ? 0 : 1);
      assert.deepEqual(bench.client.news(), [isRetried ? 'host 127.0.0.1:1 #2' : RESET]);
    });
  }

  test('is not sent once more when it was the first one', () => {
    const bench = new AttemptBench({
      cluster: { outlierDetection: outlierSettings({ split_external_local_origin_errors: true }) },
    });
    const attempt = sending(bench);
    bench.upstream.reset();
    assert.deepEqual(bench.client.news(), [RESET]);
    assert.ok(!attempt.isSending);
    assert.equal(bench.send(attempt, 'x'), true);
    attempt.cancel(true);
    assert.equal(bench.stat('upstream_rq_rx_reset'), 1);
    assert.equal(bench.stat('upstream_rq_tx_reset'), 0);
    assert.deepEqual(bench.hostCounts(), { error: 1, total: 1 });
    assert.deepEqual([bench.outlierCount('local_total'), bench.outlierCount('local_success')], [2, 1]);
    bench.assertNothingLeft();
  });

  test('is not sent once more after nonsense', () => {
    const { bench } = second({ bytes: 'nonsense\r\n\r\n' });
    assert.equal(bench.stat('upstream_rq_retry'), 0);
  });

  test('has failed by this side when its upstream talks nonsense', () => {
    const bench = new AttemptBench();
    sending(bench);
    bench.upstream.send('nonsense\r\n\r\n');
    assert.match(bench.client.news()[0]!, /^failure protocol error/);
    assert.equal(bench.stat('upstream_rq_tx_reset'), 1);
    assert.equal(bench.stat('upstream_rq_rx_reset'), 0);
  });
});

describe('an attempt without a connection', () => {
  test('has failed', () => {
    const bench = new AttemptBench({
      cluster: { outlierDetection: outlierSettings({ split_external_local_origin_errors: true }) },
    });
    const attempt = attemptOf(bench);
    bench.start(attempt);
    bench.client.news();
    bench.upstream.refuse();
    assert.deepEqual(bench.client.news(), ['failure remote connection failure']);
    assert.deepEqual(bench.hostCounts(), { error: 1 });
    assert.deepEqual([bench.outlierCount('local_total'), bench.outlierCount('local_success')], [1, 0]);
    assert.equal(bench.send(attempt, 'x'), true);
    bench.assertNothingLeft();
  });

  test('has failed by its limit of time', () => {
    const bench = new AttemptBench();
    bench.start(attemptOf(bench));
    bench.client.news();
    bench.wait(CONNECT_TIMEOUT_MS + 8);
    assert.deepEqual(bench.client.news(), ['failure connection timeout']);
  });

  test('has no fault of its host when a limit of the cluster is met', () => {
    const limits = { ...NO_LIMITS, maxPendingRequests: 0 };
    const bench = new AttemptBench({ cluster: { circuitBreakers: { default: limits, high: limits } } });
    bench.start(attemptOf(bench));
    assert.deepEqual(bench.client.news(), ['host 127.0.0.1:1 #1', 'failure overflow']);
    assert.deepEqual(bench.hostCounts(), {});
  });

  test('has no host where the cluster has no place for a pool of it, which is no fault of its host either', () => {
    const limits = { ...NO_LIMITS, maxConnectionPools: 0 };
    const bench = new AttemptBench({ cluster: { circuitBreakers: { default: limits, high: limits } } });
    const attempt = attemptOf(bench);
    bench.start(attempt);
    assert.deepEqual(bench.client.news(), ['host 127.0.0.1:1 #1', 'no host']);
    assert.deepEqual(bench.hostCounts(), {});
    assert.equal(bench.send(attempt, 'x'), true);
    bench.assertNothingLeft();
  });

  test('has no host where there is none', () => {
    const bench = new AttemptBench({ hosts: 0 });
    const attempt = attemptOf(bench);
    bench.start(attempt);
    assert.deepEqual(bench.client.news(), ['no host']);
    assert.equal(bench.stat('upstream_cx_none_healthy'), 1);
    attempt.cancel(false);
    attempt.timeOut(upstream_rq_timeout);
    assert.equal(bench.stat('upstream_rq_timeout'), 0);
    assert.equal(attempt.host, null);
  });
});

describe('an attempt that is cancelled', () => {
  test('gives up its wait for a connection', () => {
    const bench = new AttemptBench();
    const attempt = attemptOf(bench);
    bench.start(attempt);
    assert.equal(bench.places('pendingRequests'), 1);
    attempt.cancel(false);
    assert.equal(bench.places('pendingRequests'), 0);
    assert.equal(bench.stat('upstream_rq_tx_reset'), 0);
    bench.client.news();
    bench.upstream.accept();
    assert.equal(bench.upstream.received, '');
    assert.deepEqual(bench.client.news(), []);
    assert.equal(bench.send(attempt, 'x'), true);
    bench.assertNothingLeft();
  });

  test('takes its connection with it, and hears no more', async () => {
    const bench = new AttemptBench();
    const attempt = sending(bench);
    attempt.cancel(false);
    assert.ok(!bench.upstream.isLive);
    assert.equal(bench.stat('upstream_rq_tx_reset'), 1);
    attempt.cancel(false);
    await bench.settle();
    assert.equal(bench.stat('upstream_rq_tx_reset'), 1);
    assert.deepEqual(bench.client.news(), []);
    bench.assertNothingLeft();
  });

  test('may have begun nothing yet', () => {
    const bench = new AttemptBench();
    attemptOf(bench).cancel(false);
    bench.assertNothingLeft();
  });

  for (const end of ['reset', 'end', 'timeout'] as const) {
    test(`${end === 'end' ? 'ends its tunnel' : `breaks its tunnel off with a reset for a ${end}`}`, () => {
      const bench = new AttemptBench();
      bench.client.awaitsUpgrade = true;
      const attempt = sending(bench, { isEnd: false });
      bench.upstream.send('HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n');
      if (end === 'timeout') attempt.timeOut(upstream_rq_timeout);
      else attempt.cancel(end === 'reset');
      assert.equal(bench.upstream.wasReset, end !== 'end');
      assert.ok(!bench.upstream.isLive);
    });
  }

  test('leaves the connection alone that it has given back', () => {
    const bench = new AttemptBench();
    const attempt = sending(bench);
    bench.upstream.send(OK);
    attempt.cancel(true);
    attempt.timeOut(upstream_rq_timeout);
    attempt.resumeResponse();
    assert.ok(bench.upstream.isOpen);
    assert.equal(bench.stat('upstream_rq_tx_reset'), 0);
    assert.equal(bench.stat('upstream_rq_timeout'), 0);
    assert.deepEqual(bench.hostCounts(), { success: 1, total: 1 });
  });

  test('does not open a tunnel that nobody awaits', () => {
    const bench = new AttemptBench();
    sending(bench);
    bench.upstream.send('HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n');
    assert.match(bench.client.news()[0]!, /^failure protocol error/);
  });
});

describe('an attempt whose time is over', () => {
  for (const [stat, name, isFault] of [
    [upstream_rq_timeout, 'upstream_rq_timeout', true],
    [upstream_rq_max_duration_reached, 'upstream_rq_max_duration_reached', false],
  ] as const) {
    for (const isSent of [true, false]) {
      test(`by ${name} is a fault of its host: ${isFault}, ${isSent ? 'sent' : 'waiting'}`, async () => {
        const splitting = outlierSettings({ split_external_local_origin_errors: true });
        const bench = new AttemptBench({ cluster: { outlierDetection: splitting } });
        const attempt = attemptOf(bench);
        bench.start(attempt);
        if (isSent) bench.upstream.accept();
        attempt.timeOut(stat);
        assert.equal(bench.stat(name), 1);
        assert.equal(bench.upstream.isLive, !isSent);
        assert.deepEqual(bench.hostCounts(), isSent ? { error: 1, timeout: 1, total: 1 } : { error: 1, timeout: 1 });
        const [total, success] = [bench.outlierCount('local_total'), bench.outlierCount('local_success')];
        assert.equal(total - success, isFault ? 1 : 0);
        await bench.settle();
        bench.assertNothingLeft();
      });
    }
  }

  test('ends where nobody looks for outliers, too', () => {
    const bench = new AttemptBench();
    sending(bench).timeOut(upstream_rq_timeout);
    assert.deepEqual(bench.hostCounts(), { error: 1, timeout: 1, total: 1 });
    assert.ok(!bench.upstream.isLive);
  });
});

describe('an attempt whose request names its host', () => {
  const originalDst = { header: null, port: 0 };

  test('goes there when it is known', () => {
    const bench = new AttemptBench({ cluster: { originalDst }, hosts: 2 });
    const attempt = attemptOf(bench, { port: 2 });
    bench.start(attempt);
    assert.deepEqual(bench.client.news(), ['host 127.0.0.1:2 #1']);
    bench.upstream.accept();
    assert.equal(bench.upstream.received, HEAD);
  });

  test('waits for the host, under the circuit breaker of its priority', () => {
    const bench = new AttemptBench({ cluster: { originalDst } });
    const attempt = attemptOf(bench, { port: 2, priority: ClusterPriority.high });
    bench.start(attempt, 'a', false);
    assert.equal(bench.send(attempt, 'b', true), false);
    assert.equal(bench.places('pendingRequests', ClusterPriority.high), 1);
    const { hosts } = bench.workers.cluster(2, {});
    bench.publish({ ...bench.snapshot, hosts });
    assert.deepEqual(bench.client.news(), ['host 127.0.0.1:2 #1']);
    bench.upstream.accept();
    assert.equal(bench.upstream.received, `${HEAD}ab`);
  });

  for (const end of ['cancel', 'timeOut'] as const) {
    test(`may end by ${end} before it has one`, () => {
      const bench = new AttemptBench({ cluster: { originalDst } });
      const attempt = attemptOf(bench, { port: 2 });
      bench.start(attempt);
      assert.equal(bench.places('pendingRequests'), 1);
      if (end === 'cancel') attempt.cancel(true);
      else attempt.timeOut(upstream_rq_timeout);
      assert.equal(bench.stat('upstream_rq_timeout'), end === 'cancel' ? 0 : 1);
      bench.assertNothingLeft();
      bench.publish({ ...bench.snapshot, hosts: bench.workers.cluster(2, {}).hosts });
      assert.deepEqual(bench.client.news(), []);
    });
  }

  test('has none when nobody says which', () => {
    const bench = new AttemptBench({ cluster: { originalDst } });
    bench.start(attemptOf(bench));
    assert.deepEqual(bench.client.news(), ['no host']);
    assert.equal(bench.stat('upstream_cx_none_healthy'), 1);
  });

  test('has none beyond the limit of those who wait', () => {
    const limits = { ...NO_LIMITS, maxPendingRequests: 0 };
    const bench = new AttemptBench({ cluster: { originalDst, circuitBreakers: { default: limits, high: limits } } });
    const attempt = attemptOf(bench, { port: 2 });
    bench.start(attempt);
    assert.deepEqual(bench.client.news(), ['failure overflow']);
    assert.equal(bench.stat('upstream_cx_none_healthy'), 0);
    assert.equal(bench.send(attempt, 'x'), true);
  });

  test('is sent once more to it, which is chosen anew', () => {
    const bench = new AttemptBench({ cluster: { originalDst }, hosts: 2 });
    sending(bench, { port: 2 });
    bench.upstream.send(OK);
    bench.client.news();
    const attempt = attemptOf(bench, { port: 2 });
    bench.start(attempt);
    const former = bench.sockets[0]!;
    bench.publish({ ...bench.snapshot, hosts: bench.snapshot.hosts.slice(0, 1) });
    bench.client.news();
    former.reset();
    assert.equal(attempt.host, null);
    assert.deepEqual(bench.client.news(), []);
    assert.equal(bench.places('pendingRequests'), 1);
    bench.publish(bench.snapshot);
    assert.deepEqual(bench.client.news(), ['host 127.0.0.1:2 #2']);
    bench.upstream.accept();
    assert.equal(bench.upstream.received, HEAD);
  });
});
