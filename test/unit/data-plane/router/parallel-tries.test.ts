// Tries of one request that go on beside each other: a slow one and its retry, and those that go out together.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { compileRetryPolicy } from '../../../../src/data-plane/route/retry-policy.ts';
import { TriedHosts } from '../../../../src/data-plane/router/tried-hosts.ts';
import { CLUSTER_STATS } from '../../../../src/stats/index.ts';
import { HEAD, OK } from '../../../support/attempt-bench.ts';
import { NO_LIMITS } from '../../../support/clusters.ts';
import { retrySettings } from '../../../support/routes.ts';
import {
  type BenchOptions,
  LastOfThree,
  LIMIT_MS,
  limited,
  RESET,
  TICK_MS,
  TriesBench,
  UNAVAILABLE,
} from '../../../support/tries-bench.ts';

const { upstream_rq_timeout } = CLUSTER_STATS.index;

describe('a slow try that goes on beside its retry', () => {
  /** Its first try has become slow, and the retry has gone out to another connection. */
  function hedged(more: BenchOptions = {}) {
    const bench = new TriesBench({
      hosts: 2,
      ...more,
      retry: { perTryTimeoutMs: LIMIT_MS, ...more.retry },
      plan: { hedges: true, tellsTimeoutRetry: true, ...more.plan },
    }).begun();
    bench.wait(LIMIT_MS + TICK_MS);
    assert.equal(bench.sockets.length, 1);
    assert.equal(bench.places('retries'), 1);
    const sent = bench.retried();
    assert.equal(sent, HEAD.replace(/\r\n$/, 'x-proxy-is-timeout-retry: true\r\n\r\n'));
    assert.deepEqual(bench.client.news(), ['host 127.0.0.1:2 #2', 'connection']);
    const [first, second] = bench.sockets;
    return { bench, first: first!, second: second! };
  }

  test('answers, which ends the retry', async () => {
    const { bench, first, second } = hedged();
    assert.equal(bench.stat('upstream_rq_per_try_timeout'), 0);
    assert.equal(bench.request.host, bench.cluster.hosts[1]);
    first.send(OK);
    assert.deepEqual(bench.client.news(), [
      'host 127.0.0.1:1 #2',
      'connection',
      'judge 200',
      `head ok| @${bench.nowMs}`,
    ]);
    assert.equal(bench.client.heads.at(-1), HEAD);
    assert.equal(bench.request.host, bench.cluster.hosts[0]);
    assert.ok(!second.isLive);
    assert.equal(bench.stat('upstream_rq_tx_reset'), 1);
    await bench.settle();
    assert.deepEqual(bench.client.news(), []);
    assert.equal(bench.stat('upstream_rq_retry_success'), 0);
    bench.assertNothingLeft();
  });

  test('is ended by the answer of the retry', () => {
    const { bench, first, second } = hedged();
    second.send(OK);
    assert.deepEqual(bench.client.news(), ['judge 200', `head ok| @${bench.nowMs}`]);
    assert.ok(!first.isLive);
    assert.equal(bench.stat('upstream_rq_retry_success'), 1);
    bench.assertNothingLeft();
  });

  test('may answer while the retry has no connection yet', () => {
    const bench = new TriesBench({ retry: { perTryTimeoutMs: LIMIT_MS }, plan: { hedges: true } }).begun();
    bench.wait(LIMIT_MS + TICK_MS);
    bench.answered(OK);
    bench.assertNothingLeft();
    bench.wait(10 * TICK_MS);
    assert.equal(bench.sockets.length, 1);
    assert.deepEqual(bench.client.news(), []);
  });

  test('is not heard when it answers badly, as long as the retry may do better', () => {
    const { bench, first, second } = hedged();
    first.send(UNAVAILABLE);
    assert.deepEqual(bench.client.news(), []);
    assert.ok(first.isOpen);
    second.send(OK);
    assert.deepEqual(bench.client.news(), ['judge 200', `head ok| @${bench.nowMs}`]);
    bench.assertNothingLeft();
  });

  test('is heard when the retry has answered badly before', () => {
    const { bench, first, second } = hedged();
    second.send(UNAVAILABLE);
    assert.deepEqual(bench.client.news(), []);
    assert.equal(bench.places('retries'), 0);
    first.send(UNAVAILABLE);
    assert.deepEqual(bench.client.news().slice(0, 3), ['host 127.0.0.1:1 #2', 'connection', 'judge 503']);
    assert.equal(bench.flags, '');
    bench.assertNothingLeft();
  });

  test('may fail, as long as the retry goes on', () => {
    const { bench, first, second } = hedged();
    first.reset();
    assert.deepEqual(bench.client.news(), []);
    assert.equal(bench.flags, '');
    second.reset();
    assert.deepEqual(bench.client.news(), [`${RESET}, retried`]);
    assert.equal(bench.flags, 'URX');
    bench.assertNothingLeft();
  });

  test('has no second retry of its own', () => {
    const { bench, first, second } = hedged({ retry: { maxRetries: 5 } });
    first.reset();
    bench.wait(2 * TICK_MS);
    assert.equal(bench.sockets.length, 2);
    second.send(UNAVAILABLE);
    assert.equal(bench.retried().length > 0, true);
    assert.equal(bench.stat('upstream_rq_retry'), 2);
  });

  for (const failure of ['answer', 'reset'] as const) {
    test(`does not keep the retry from being tried again after a bad ${failure}`, () => {
      const { bench, first, second } = hedged({ hosts: 3, retry: { maxRetries: 5 } });
      if (failure === 'answer') second.send(UNAVAILABLE);
      else second.reset();
      assert.equal(bench.stat('upstream_rq_retry'), 2);
      bench.wait(2 * TICK_MS);
      assert.deepEqual(bench.client.news(), ['host 127.0.0.1:3 #3']);
      assert.ok(first.isOpen);
      bench.request.cancel(false);
      bench.assertNothingLeft();
    });
  }

  test('is that of the request again when it answers before the retry has a connection', () => {
    const bench = new TriesBench({ hosts: 2, retry: { perTryTimeoutMs: LIMIT_MS }, plan: { hedges: true } }).begun();
    bench.wait(LIMIT_MS + 2 * TICK_MS);
    assert.deepEqual(bench.client.news(), ['host 127.0.0.1:2 #2']);
    bench.sockets[0]!.send(OK);
    assert.deepEqual(bench.client.news().slice(0, 2), ['host 127.0.0.1:1 #2', 'connection']);
    bench.assertNothingLeft();
  });

  test('is that of the request again when it answers beside a retry to the same host', () => {
    const bench = new TriesBench({ retry: { perTryTimeoutMs: LIMIT_MS }, plan: { hedges: true } }).begun();
    bench.wait(LIMIT_MS + TICK_MS);
    bench.retried();
    bench.client.news();
    bench.sockets[0]!.send(OK);
    assert.deepEqual(bench.client.news().slice(0, 2), ['host 127.0.0.1:1 #2', 'connection']);
  });

  test('lets the retry be slow, too', () => {
    const { bench, first, second } = hedged({ hosts: 3, retry: { maxRetries: 2 } });
    bench.wait(LIMIT_MS + TICK_MS);
    bench.retried();
    assert.equal(bench.sockets.length, 3);
    assert.equal(bench.places('retries'), 2);
    bench.wait(10 * LIMIT_MS);
    assert.equal(bench.sockets.length, 3);
    assert.ok(first.isOpen && second.isOpen && bench.upstream.isOpen);
    assert.deepEqual(bench.client.news(), ['host 127.0.0.1:3 #3', 'connection']);
    second.send(OK);
    assert.ok(!first.isLive && !bench.upstream.isLive);
    assert.deepEqual(bench.client.news().slice(0, 3), ['host 127.0.0.1:2 #3', 'connection', 'judge 200']);
    bench.assertNothingLeft();
  });

  test('has one retry, whatever it is slow in', () => {
    const bench = new TriesBench({
      hosts: 3,
      retry: { perTryTimeoutMs: LIMIT_MS, perTryIdleTimeoutMs: 2 * LIMIT_MS, maxRetries: 5 },
      plan: { hedges: true },
    }).begun();
    bench.wait(LIMIT_MS + TICK_MS);
    bench.retried();
    assert.equal(bench.stat('upstream_rq_retry'), 1);
    bench.wait(LIMIT_MS - 2 * TICK_MS);
    assert.equal(bench.stat('upstream_rq_retry'), 1);
    assert.equal(bench.answered(OK).length, 2);
    bench.assertNothingLeft();
  });

  test('goes on alone where there is no retry for it', () => {
    for (const more of [{ retry: { maxRetries: 0 } }, { plan: { terms: null } }] as const) {
      const bench = new TriesBench({
        retry: { perTryTimeoutMs: LIMIT_MS, ...('retry' in more ? more.retry : {}) },
        plan: { hedges: true, ...('plan' in more ? more.plan : {}) },
      }).begun();
      bench.wait(3 * LIMIT_MS);
      assert.deepEqual(bench.client.news(), []);
      assert.equal(bench.answered(OK).length, 2);
      assert.equal(bench.sockets.length, 1);
      bench.assertNothingLeft();
    }
  });

  test('goes on alone where the cluster has gone', () => {
    const bench = new TriesBench({ retry: { perTryTimeoutMs: LIMIT_MS }, plan: { hedges: true } }).begun();
    bench.wait(LIMIT_MS + TICK_MS);
    bench.clusters.update([], ['web'], () => {});
    bench.wait(2 * TICK_MS);
    assert.deepEqual(bench.client.news(), []);
    assert.equal(bench.places('retries'), 0);
    assert.equal(bench.answered(OK).length, 2);
  });

  test('goes on alone where the retry finds no host', () => {
    const bench = new TriesBench({ retry: { perTryTimeoutMs: LIMIT_MS }, plan: { hedges: true } }).begun();
    bench.wait(LIMIT_MS + TICK_MS);
    bench.publish(bench.workers.balanced({ ...bench.snapshot, hosts: [] }));
    bench.wait(2 * TICK_MS);
    assert.deepEqual(bench.client.news(), []);
    assert.equal(bench.places('retries'), 0);
    assert.equal(bench.answered(OK).length, 2);
    bench.assertNothingLeft();
  });

  test('has no other place when it fails while the retry waits', () => {
    const bench = new TriesBench({ retry: { perTryTimeoutMs: LIMIT_MS }, plan: { hedges: true } }).begun();
    bench.wait(LIMIT_MS + TICK_MS);
    bench.upstream.reset();
    assert.deepEqual(bench.client.news(), []);
    assert.equal(bench.places('retries'), 1);
    assert.match(bench.retried(), /^GET/);
    assert.equal(bench.answered(OK).length, 2);
    bench.assertNothingLeft();
  });

  for (const end of ['cancel', 'timeOut'] as const) {
    test(`ends with the request: ${end}`, async () => {
      const { bench, first, second } = hedged();
      if (end === 'cancel') bench.request.cancel(true);
      else bench.request.timeOut(upstream_rq_timeout);
      assert.ok(!first.isLive && !second.isLive);
      assert.equal(bench.stat('upstream_rq_timeout'), end === 'cancel' ? 0 : 2);
      await bench.settle();
      assert.deepEqual(bench.client.news(), []);
      bench.assertNothingLeft();
    });
  }
});

describe('a request that goes out together with companions', () => {
  /** Each goes to a host of its own. */
  function together(more: BenchOptions = {}): TriesBench {
    const otherHosts = new TriedHosts(
      compileRetryPolicy(retrySettings({ hostPredicates: [{ kind: 'previous-hosts' }], maxFurtherDraws: 8 })),
    );
    return new TriesBench({ hosts: 3, ...more, plan: { companions: 1, otherHosts, ...more.plan } });
  }

  /** Both have a connection. */
  function running(more: BenchOptions = {}) {
    const bench = together(more);
    bench.start(bench.request, 'body');
    for (const socket of bench.sockets) socket.accept();
    bench.client.news();
    const [first, second] = bench.sockets;
    return { bench, first: first!, second: second! };
  }

  test('is sent as often, each time to another host', () => {
    const bench = together({ plan: { companions: 2 } });
    bench.start(bench.request, 'body');
    assert.deepEqual(bench.client.news(), ['host 127.0.0.1:1 #1', 'host 127.0.0.1:2 #2', 'host 127.0.0.1:3 #3']);
    assert.equal(bench.places('retries'), 2);
    for (const socket of bench.sockets) socket.accept();
    assert.deepEqual(
      bench.sockets.map(({ received }) => received),
      Array(3).fill(`${HEAD}body`),
    );
    assert.equal(bench.stat('upstream_rq_retry'), 0);
    bench.client.news();
    bench.sockets[1]!.send(OK);
    assert.deepEqual(bench.client.news(), [
      'host 127.0.0.1:2 #3',
      'connection',
      'judge 200',
      `head ok| @${bench.nowMs}`,
    ]);
    assert.deepEqual(
      bench.sockets.map(({ isLive }) => isLive),
      [false, true, false],
    );
    assert.equal(bench.stat('upstream_rq_retry_success'), 0);
    bench.assertNothingLeft();
  });

  test('chooses further hosts for its retries', () => {
    const { bench, first, second } = running({
      plan: { companions: 1 },
      retry: { hostPredicates: [{ kind: 'previous-hosts' }], maxFurtherDraws: 8 },
    });
    first.reset();
    second.reset();
    bench.wait(2 * TICK_MS);
    assert.deepEqual(bench.client.news(), ['host 127.0.0.1:3 #3']);
    bench.upstream.accept();
    assert.equal(bench.upstream.received, `${HEAD}body`);
  });

  test('asks of the hosts of its companions what its plan says', () => {
    const otherHosts = new LastOfThree(compileRetryPolicy(retrySettings()));
    const bench = new TriesBench({ hosts: 3, plan: { companions: 1, otherHosts } });
    bench.start(bench.request);
    assert.deepEqual(bench.client.news(), ['host 127.0.0.1:1 #1', 'host 127.0.0.1:3 #2']);
  });

  test('is sent again when it has come in full', () => {
    const bench = together();
    bench.start(bench.request, 'ab', false);
    bench.upstream.accept();
    bench.send(bench.request, 'cd');
    assert.equal(bench.sockets.length, 1);
    bench.send(bench.request, 'ef', true);
    assert.equal(bench.sockets.length, 2);
    bench.upstream.accept();
    assert.equal(bench.upstream.received, `${HEAD}abcdef`);
    bench.answered(OK);
    bench.assertNothingLeft();
  });

  test('is sent again to the cluster that has taken the place of its own', () => {
    const bench = together();
    bench.start(bench.request, 'ab', false);
    bench.client.news();
    bench.publish({ ...bench.snapshot, settings: { ...bench.snapshot.settings, connectTimeoutMs: 1234 } });
    bench.send(bench.request, 'cd', true);
    assert.equal(bench.client.news()[0], 'cluster web');
    assert.equal(bench.sockets.length, 2);
    bench.request.cancel(false);
    bench.assertNothingLeft();
  });

  test('has a body that is kept also where nothing is tried again', () => {
    const bench = together({ plan: { terms: null } });
    bench.start(bench.request, 'ab', false);
    bench.send(bench.request, 'cd', true);
    bench.upstream.accept();
    assert.equal(bench.upstream.received, `${HEAD}abcd`);
  });

  test('goes out once where its body is too long to be kept', () => {
    const bench = together({ plan: { replayLimitBytes: 3 } });
    bench.start(bench.request, 'ab', false);
    bench.send(bench.request, 'cd');
    bench.send(bench.request, '', true);
    assert.equal(bench.sockets.length, 1);
    assert.equal(bench.stat('retry_or_shadow_abandoned'), 1);
  });

  test('goes out once where the answer has come before its end', () => {
    const bench = together();
    bench.start(bench.request, 'ab', false);
    bench.answered('HTTP/1.1 200 X\r\ncontent-length: 9\r\n\r\n');
    bench.send(bench.request, 'cd', true);
    assert.equal(bench.sockets.length, 1);
    assert.equal(bench.places('retries'), 0);
  });

  test('goes out once where the first has failed, or the cluster has gone, before its end', () => {
    const failed = together();
    failed.start(failed.request, 'ab', false);
    failed.upstream.refuse();
    failed.client.news();
    failed.send(failed.request, 'cd', true);
    assert.equal(failed.sockets.length, 1);
    assert.equal(failed.places('retries'), 1);
    const gone = together();
    gone.start(gone.request, 'ab', false);
    gone.clusters.update([], ['web'], () => {});
    gone.send(gone.request, 'cd', true);
    assert.equal(gone.sockets.length, 1);
    assert.equal(gone.places('retries'), 0);
  });

  test('goes out as often as there are places', () => {
    const bench = together({ ...limited(1), plan: { companions: 5 } });
    bench.start(bench.request);
    assert.equal(bench.sockets.length, 2);
    assert.equal(bench.places('retries'), 1);
    assert.equal(bench.stat('upstream_rq_retry_overflow'), 1);
  });

  test('is not sent again where the first has its answer at once', () => {
    const limits = { ...NO_LIMITS, maxPendingRequests: 0 };
    const bench = together({
      cluster: { circuitBreakers: { default: limits, high: limits } },
      plan: { companions: 2 },
    });
    bench.start(bench.request);
    assert.deepEqual(bench.client.news(), ['host 127.0.0.1:1 #1', 'failure overflow']);
    bench.assertNothingLeft();
  });

  test('does not hear a bad answer as long as another may be better', () => {
    const { bench, first, second } = running();
    first.send(UNAVAILABLE);
    assert.deepEqual(bench.client.news(), []);
    assert.equal(bench.stat('upstream_rq_retry'), 0);
    second.send(UNAVAILABLE);
    assert.deepEqual(bench.client.news(), []);
    assert.equal(bench.stat('upstream_rq_retry'), 1);
    bench.wait(2 * TICK_MS);
    if (bench.upstream.isConnecting) bench.upstream.accept();
    assert.equal(bench.client.news()[0]!.slice(-2), '#3');
  });

  test('hears any answer where nothing is tried again', () => {
    const { bench, first, second } = running({ plan: { terms: null } });
    second.send(UNAVAILABLE);
    assert.deepEqual(bench.client.news(), ['judge 503', `head | @${bench.nowMs}`]);
    assert.ok(!first.isLive);
    bench.assertNothingLeft();
  });

  test('fails with the last of them, and is tried again then', () => {
    const { bench, first, second } = running();
    second.reset();
    assert.equal(bench.stat('upstream_rq_retry'), 0);
    assert.deepEqual(bench.client.news(), []);
    first.reset();
    assert.equal(bench.stat('upstream_rq_retry'), 1);
    assert.deepEqual(bench.client.news(), []);
    bench.wait(2 * TICK_MS);
    bench.client.news();
    bench.upstream.refuse();
    assert.deepEqual(bench.client.news(), ['failure remote connection failure, retried']);
    assert.equal(bench.flags, 'URX');
    bench.assertNothingLeft();
  });

  test('was not tried again when all have failed at once', () => {
    const { bench, first, second } = running({ plan: { terms: null } });
    second.reset();
    assert.deepEqual(bench.client.news(), []);
    first.reset();
    assert.deepEqual(bench.client.news(), [RESET]);
    bench.assertNothingLeft();
  });

  test('has one retry when all are slow', () => {
    const { bench } = running({ retry: { perTryTimeoutMs: LIMIT_MS, maxRetries: 5 }, plan: { hedges: true } });
    bench.wait(LIMIT_MS + TICK_MS);
    assert.equal(bench.stat('upstream_rq_retry'), 1);
    assert.equal(bench.places('retries'), 2);
    bench.request.cancel(false);
    bench.assertNothingLeft();
  });
});
