// A request that may be tried several times: what becomes of each try, of the body that is kept for the next one, and of
// the places under the circuit breaker. retry-decisions.test.ts has for what there are retries, parallel-tries.test.ts
// what goes on beside them.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Trailers } from '../../../../src/data-plane/http/trailers.ts';
import { compileRetryPolicy } from '../../../../src/data-plane/route/retry-policy.ts';
import { CLUSTER_STATS } from '../../../../src/stats/index.ts';
import { Framing } from '../../../../src/wasm/http1.ts';
import { ClusterCount, ClusterPriority } from '../../../../src/wasm/shared-memory.ts';
import { HEAD, OK } from '../../../support/attempt-bench.ts';
import { retrySettings } from '../../../support/routes.ts';
import {
  LastOfThree,
  LIMIT_MS,
  limited,
  RESET,
  TICK_MS,
  TriesBench,
  UNAVAILABLE,
} from '../../../support/tries-bench.ts';

const { upstream_rq_timeout } = CLUSTER_STATS.index;
const CHUNKED = 'POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n';

describe('a request that may be tried again', () => {
  test('is answered by its first try', () => {
    const bench = new TriesBench();
    const { request } = bench;
    assert.deepEqual([request.isSending, request.canSend, request.attempts, request.host], [false, false, 0, null]);
    bench.start(request, 'body');
    assert.ok(!request.isSending);
    bench.upstream.accept();
    assert.deepEqual([request.isSending, request.canSend, request.attempts], [true, true, 1]);
    assert.equal(request.host, bench.cluster.hosts[0]);
    assert.equal(bench.upstream.received, `${HEAD}body`);
    assert.deepEqual(bench.client.news(), ['host 127.0.0.1:1 #1', 'connection']);
    bench.upstream.send(OK);
    assert.deepEqual(bench.client.news(), ['judge 200', `head ok| @${bench.nowMs}`]);
    assert.ok(!request.isSending);
    bench.wait(2 * TICK_MS);
    assert.equal(bench.upstream.received, `${HEAD}body`);
    assert.equal(bench.stat('upstream_rq_retry_success'), 0);
    assert.equal(bench.flags, '');
    bench.assertNothingLeft();
  });

  test('is tried again after an answer that its policy wants to hide', () => {
    const bench = new TriesBench().begun('body');
    const { request } = bench;
    assert.deepEqual(bench.answered(UNAVAILABLE), []);
    assert.deepEqual([request.isSending, request.canSend, request.attempts], [false, false, 1]);
    assert.equal(bench.places('retries'), 1);
    assert.equal(bench.retried(), `${HEAD}body`);
    assert.deepEqual(bench.client.news(), ['host 127.0.0.1:1 #2', 'connection']);
    assert.deepEqual([request.isSending, request.attempts], [true, 2]);
    assert.equal(bench.places('retries'), 1);
    assert.deepEqual(bench.answered(OK), ['judge 200', `head ok| @${bench.nowMs}`]);
    assert.equal(bench.stat('upstream_rq_retry'), 1);
    assert.equal(bench.stat('upstream_rq_retry_success'), 1);
    assert.equal(bench.sockets.length, 1);
    assert.equal(bench.flags, '');
    bench.assertNothingLeft();
  });

  test('is tried as often as its terms allow, and gets the last answer', () => {
    const bench = new TriesBench({ retry: { maxRetries: 2 } }).begun();
    for (let retry = 1; retry <= 2; retry++) {
      assert.deepEqual(bench.answered(UNAVAILABLE), []);
      assert.equal(bench.retried(), HEAD);
    }
    assert.deepEqual(bench.answered(UNAVAILABLE), ['judge 503', `head | @${bench.nowMs}`]);
    assert.equal(bench.flags, 'URX');
    assert.equal(bench.request.attempts, 3);
    bench.assertNothingLeft();
  });

  test('is not tried again without a place', () => {
    const bench = new TriesBench(limited(0)).begun();
    assert.deepEqual(bench.answered(UNAVAILABLE), ['judge 503', `head | @${bench.nowMs}`]);
    assert.equal(bench.flags, 'UO');
    bench.assertNothingLeft();
  });

  test('has its place with the priority of its route', () => {
    const bench = new TriesBench({ ...limited(0), plan: { priority: ClusterPriority.high } }).begun();
    assert.deepEqual(bench.answered(UNAVAILABLE), []);
    assert.equal(bench.places('retries', ClusterPriority.high), 1);
    bench.retried();
    assert.equal(bench.places('requests', ClusterPriority.high), 1);
    bench.answered(OK);
    bench.assertNothingLeft();
  });

  test('is tried again after it has failed, and told of the last failure', () => {
    const bench = new TriesBench().begun();
    bench.upstream.reset();
    assert.deepEqual(bench.client.news(), []);
    assert.equal(bench.retried(), HEAD);
    bench.client.news();
    bench.upstream.reset();
    assert.deepEqual(bench.client.news(), [`${RESET}, retried`]);
    assert.equal(bench.flags, 'URX');
    assert.ok(!bench.request.isSending);
    bench.assertNothingLeft();
  });

  test('has failed when its policy does not mind that', () => {
    const bench = new TriesBench({ retry: { conditions: ['retriable-4xx'] } }).begun();
    bench.upstream.reset();
    assert.deepEqual(bench.client.news(), [RESET]);
    assert.equal(bench.flags, '');
    bench.assertNothingLeft();
  });

  test('is told apart by whether it may have been sent', () => {
    const retry = { conditions: ['reset-before-request'] } as const;
    const sent = new TriesBench({ retry }).begun();
    sent.upstream.reset();
    assert.deepEqual(sent.client.news(), [RESET]);
    const unsent = new TriesBench({ retry });
    unsent.start(unsent.request);
    unsent.upstream.refuse();
    assert.equal(unsent.retried(), HEAD);
  });

  test('is not tried again without terms', () => {
    const bench = new TriesBench({ plan: { terms: null } }).begun();
    assert.deepEqual(bench.answered(UNAVAILABLE), ['judge 503', `head | @${bench.nowMs}`]);
    const failing = new TriesBench({ plan: { terms: null } }).begun();
    failing.upstream.reset();
    assert.deepEqual(failing.client.news(), [RESET]);
    for (const each of [bench, failing]) {
      assert.equal(each.flags, '');
      assert.equal(each.stat('upstream_rq_retry'), 0);
      assert.equal(each.stat('upstream_rq_retry_limit_exceeded'), 0);
    }
  });

  test('is not tried again once its answer has begun', () => {
    const bench = new TriesBench().begun();
    bench.answered('HTTP/1.1 200 X\r\ncontent-length: 9\r\n\r\nab');
    bench.upstream.reset();
    assert.deepEqual(bench.client.news(), [RESET]);
    assert.equal(bench.places('retries'), 0);
  });

  test('says that it was tried before when the answer of a retry breaks off', () => {
    const bench = new TriesBench().begun();
    bench.answered(UNAVAILABLE);
    bench.retried();
    bench.answered('HTTP/1.1 200 X\r\ncontent-length: 9\r\n\r\nab');
    bench.upstream.reset();
    assert.deepEqual(bench.client.news(), [`${RESET}, retried`]);
    bench.assertNothingLeft();
  });

  test('goes to hosts that were not tried', () => {
    const bench = new TriesBench({
      hosts: 3,
      retry: { maxRetries: 2, hostPredicates: [{ kind: 'previous-hosts' }], maxFurtherDraws: 5 },
    }).begun();
    const hosts = new Set([bench.request.host]);
    for (let retry = 1; retry <= 2; retry++) {
      bench.upstream.reset();
      bench.retried();
      hosts.add(bench.request.host);
    }
    assert.equal(hosts.size, 3);
  });

  test('asks of the host of a retry what its plan says', () => {
    const triedHosts = new LastOfThree(compileRetryPolicy(retrySettings()));
    const bench = new TriesBench({ hosts: 3, plan: { triedHosts } }).begun();
    bench.upstream.reset();
    bench.wait(2 * TICK_MS);
    assert.deepEqual(bench.client.news(), ['host 127.0.0.1:3 #2']);
  });

  test('stays with its cluster as long as it is not tried again', () => {
    const bench = new TriesBench();
    const { cluster } = bench;
    bench.start(bench.request, 'a', false);
    bench.upstream.accept();
    bench.client.news();
    bench.publish({ ...bench.snapshot, settings: { ...bench.snapshot.settings, connectTimeoutMs: 1234 } });
    bench.send(bench.request, 'b', true);
    assert.deepEqual(bench.client.news(), []);
    assert.equal(bench.request.cluster, cluster);
  });

  test('has no answer where there is no host any more', () => {
    const bench = new TriesBench().begun();
    bench.answered(UNAVAILABLE);
    bench.publish(bench.workers.balanced({ ...bench.snapshot, hosts: [] }));
    bench.wait(2 * TICK_MS);
    assert.deepEqual(bench.client.news(), ['no host']);
    assert.ok(!bench.request.isSending);
    bench.assertNothingLeft();
  });

  test('has no answer where its cluster has gone meanwhile', () => {
    const bench = new TriesBench().begun();
    bench.answered(UNAVAILABLE);
    bench.clusters.update([], ['web'], () => {});
    bench.wait(2 * TICK_MS);
    assert.deepEqual(bench.client.news(), ['no host']);
    assert.equal(bench.places('retries'), 0);
  });

  test('goes to the cluster that has taken the place of its own', () => {
    const bench = new TriesBench().begun();
    const { cluster } = bench;
    bench.answered(UNAVAILABLE);
    const settings = { ...bench.snapshot.settings, connectTimeoutMs: 1234 };
    bench.publish({ ...bench.snapshot, settings });
    assert.equal(bench.request.cluster, cluster);
    assert.equal(bench.retried(), HEAD);
    assert.equal(bench.request.cluster, bench.cluster);
    assert.notEqual(bench.cluster, cluster);
    assert.deepEqual(bench.client.news(), ['cluster web', 'host 127.0.0.1:1 #2', 'connection']);
    assert.deepEqual(bench.answered(OK).length, 2);
    bench.assertNothingLeft();
  });

  test('takes its place along to the cluster that it goes to', () => {
    const bench = new TriesBench().begun();
    bench.answered(UNAVAILABLE);
    const other = bench.workers.balanced(bench.workers.cluster(1, { connectTimeoutMs: 1234 }));
    const places = () =>
      bench.workers.records.clusterCount(other.recordAddress, ClusterPriority.default, ClusterCount.retries);
    bench.publish(other);
    assert.deepEqual([bench.places('retries'), places()], [1, 0]);
    bench.wait(2 * TICK_MS);
    assert.deepEqual([bench.places('retries'), places()], [0, 1]);
    bench.answered(OK);
    assert.equal(places(), 0);
    bench.assertNothingLeft();
  });

  test('says what is left of its time, and whether the try before it ran out of it', () => {
    const head = 'GET / HTTP/1.1\r\nhost: h\r\nx-proxy-expected-rq-timeout-ms: 1000\r\n\r\n';
    const plan = { timeoutMs: 1000, expectedMs: 1000, tellsTimeoutRetry: true };
    const bench = new TriesBench({ head, plan, retry: { maxRetries: 2, perTryTimeoutMs: LIMIT_MS } }).begun();
    assert.equal(bench.upstream.received, head);
    bench.wait(LIMIT_MS + TICK_MS);
    const said = (text: string): string[] => [/ms: (\d+)/.exec(text)![1]!, /is-timeout-retry: (\w+)/.exec(text)![1]!];
    const [left, isTimeout] = said(bench.retried());
    assert.ok(Number(left) < 1000 - LIMIT_MS && Number(left) > 1000 - LIMIT_MS - 5 * TICK_MS);
    assert.equal(isTimeout, 'true');
    bench.answered(UNAVAILABLE);
    assert.equal(said(bench.retried())[1], 'false');
    const failing = new TriesBench({ head, plan, retry: { maxRetries: 2, perTryTimeoutMs: LIMIT_MS } }).begun();
    failing.wait(LIMIT_MS + TICK_MS);
    failing.retried();
    failing.upstream.reset();
    assert.equal(said(failing.retried())[1], 'false');
  });

  test('waits as long as the upstream wants', () => {
    const rateLimitedBackOff = { headers: [{ name: 'retry-after', format: 'seconds' }], maxMs: 60_000 } as const;
    const bench = new TriesBench({ retry: { rateLimitedBackOff } }).begun();
    bench.answered(UNAVAILABLE.replace('content', 'retry-after: 2\r\ncontent'));
    bench.wait(1990);
    assert.equal(bench.upstream.received, HEAD);
    assert.equal(bench.retried(), HEAD);
  });
});

describe('the body that is kept', () => {
  test('is sent again as far as it has come, and the rest behind it', () => {
    const bench = new TriesBench();
    bench.client.isRequestComplete = false;
    bench.start(bench.request, 'ab', false);
    bench.upstream.accept();
    assert.deepEqual(bench.client.news(), ['host 127.0.0.1:1 #1', 'connection', 'writable']);
    assert.equal(bench.send(bench.request, 'cd'), true);
    bench.upstream.reset();
    assert.equal(bench.send(bench.request, 'ef'), false);
    bench.client.news();
    assert.equal(bench.retried(), `${HEAD}abcdef`);
    assert.deepEqual(bench.client.news(), ['host 127.0.0.1:1 #2', 'connection', 'writable']);
    assert.equal(bench.send(bench.request, 'gh', true), true);
    assert.equal(bench.upstream.received, `${HEAD}abcdefgh`);
    assert.equal(bench.answered(OK).length, 2);
    assert.ok(bench.upstream.isOpen);
    bench.assertNothingLeft();
  });

  test('is whole when its end has come while a retry waits', () => {
    const bench = new TriesBench();
    bench.start(bench.request, 'ab', false);
    bench.upstream.accept();
    bench.upstream.reset();
    bench.send(bench.request, 'cd', true);
    bench.client.news();
    assert.equal(bench.retried(), `${HEAD}abcd`);
    assert.deepEqual(bench.client.news(), ['host 127.0.0.1:1 #2', 'connection']);
    bench.answered(OK);
    assert.ok(bench.upstream.isOpen);
  });

  for (const enableTrailers of [true, false]) {
    for (const isLater of [true, false]) {
      test(`has its trailers${enableTrailers ? '' : ' taken off'}, ${isLater ? 'later' : 'at once'}`, () => {
        const bench = new TriesBench({ head: CHUNKED, cluster: { enableTrailers } });
        const end = enableTrailers ? '0\r\na: 1\r\n\r\n' : '0\r\n\r\n';
        bench.client.requestFraming = Framing.CHUNKED;
        bench.client.requestTrailers = Trailers.parse('a: 1');
        if (isLater) bench.start(bench.request, '1\r\n0\r\n\r\n', false);
        else bench.start(bench.request, '1\r\nx\r\n0\r\n\r\n');
        bench.upstream.accept();
        if (isLater) bench.send(bench.request, '0\r\n\r\n', true);
        const body = isLater ? `1\r\n0\r\n\r\n${end}` : `1\r\nx\r\n${end}`;
        assert.equal(bench.upstream.received, CHUNKED + body);
        bench.answered(UNAVAILABLE);
        assert.equal(bench.retried(), CHUNKED + body);
      });
    }
  }

  test('is no longer than its limit: then there are no retries', () => {
    const bench = new TriesBench({ plan: { replayLimitBytes: 3 } });
    bench.start(bench.request, 'abc', false);
    bench.upstream.accept();
    assert.equal(bench.stat('retry_or_shadow_abandoned'), 0);
    bench.send(bench.request, 'd');
    assert.equal(bench.stat('retry_or_shadow_abandoned'), 1);
    bench.send(bench.request, 'e', true);
    assert.equal(bench.stat('retry_or_shadow_abandoned'), 1);
    assert.equal(bench.upstream.received, `${HEAD}abcde`);
    assert.deepEqual(bench.answered(UNAVAILABLE), ['judge 503', `head | @${bench.nowMs}`]);
    assert.equal(bench.flags, '');
    bench.assertNothingLeft();
  });

  test('that becomes too long while a retry waits ends the request', () => {
    const bench = new TriesBench({ plan: { replayLimitBytes: 3 } });
    bench.start(bench.request, 'abc', false);
    bench.upstream.accept();
    bench.upstream.reset();
    bench.client.news();
    assert.equal(bench.send(bench.request, ''), false);
    assert.deepEqual(bench.client.news(), []);
    assert.equal(bench.send(bench.request, 'd'), false);
    assert.deepEqual(bench.client.news(), ['abandoned']);
    assert.equal(bench.stat('retry_or_shadow_abandoned'), 1);
    bench.assertNothingLeft();
    assert.equal(bench.send(bench.request, 'e'), false);
    bench.wait(2 * TICK_MS);
    assert.deepEqual(bench.client.news(), []);
    assert.equal(bench.sockets.length, 1);
  });

  test('is not kept behind the answer', () => {
    const bench = new TriesBench({ plan: { replayLimitBytes: 3 } });
    bench.start(bench.request, 'abc', false);
    bench.upstream.accept();
    bench.answered('HTTP/1.1 200 X\r\ncontent-length: 9\r\n\r\n');
    assert.ok(bench.send(bench.request, 'def'));
    assert.equal(bench.stat('retry_or_shadow_abandoned'), 0);
    assert.equal(bench.upstream.received, `${HEAD}abcdef`);
  });

  test('is not kept where nothing is tried again', () => {
    const bench = new TriesBench({ plan: { replayLimitBytes: 0, terms: null } }).begun('abc');
    assert.equal(bench.stat('retry_or_shadow_abandoned'), 0);
  });
});

describe('a request whose client has gone, or whose time is over', () => {
  for (const end of ['cancel', 'timeOut'] as const) {
    const ended = (bench: TriesBench): void => {
      if (end === 'cancel') bench.request.cancel(false);
      else bench.request.timeOut(upstream_rq_timeout);
    };

    test(`has its try ended: ${end}`, async () => {
      const bench = new TriesBench().begun();
      ended(bench);
      assert.ok(!bench.upstream.isLive);
      assert.equal(bench.stat('upstream_rq_timeout'), end === 'cancel' ? 0 : 1);
      assert.ok(!bench.request.isSending);
      await bench.settle();
      assert.deepEqual(bench.client.news(), []);
      bench.assertNothingLeft();
    });

    test(`is not tried again after its wait: ${end}`, () => {
      const bench = new TriesBench().begun();
      bench.answered(UNAVAILABLE);
      ended(bench);
      bench.assertNothingLeft();
      bench.wait(10 * TICK_MS);
      assert.equal(bench.upstream.received, HEAD);
      assert.deepEqual(bench.client.news(), []);
      bench.assertNothingLeft();
    });

    test(`has its retry ended: ${end}`, async () => {
      const bench = new TriesBench().begun();
      bench.answered(UNAVAILABLE);
      bench.retried();
      ended(bench);
      assert.ok(!bench.upstream.isLive);
      await bench.settle();
      bench.assertNothingLeft();
    });

    test(`has its answer broken off: ${end}`, async () => {
      const bench = new TriesBench({ retry: { perTryIdleTimeoutMs: LIMIT_MS } }).begun();
      bench.answered('HTTP/1.1 200 X\r\ncontent-length: 9\r\n\r\n');
      ended(bench);
      assert.ok(!bench.upstream.isLive);
      assert.equal(bench.stat('upstream_rq_timeout'), end === 'cancel' ? 0 : 1);
      bench.wait(2 * LIMIT_MS);
      await bench.settle();
      assert.deepEqual(bench.client.news(), []);
      assert.equal(bench.stat('upstream_rq_per_try_idle_timeout'), 0);
      bench.assertNothingLeft();
    });
  }

  test('may have its body told of an end still', () => {
    const bench = new TriesBench({ plan: { replayLimitBytes: 1 } });
    bench.start(bench.request, 'a', false);
    bench.upstream.accept();
    bench.request.cancel(false);
    assert.equal(bench.send(bench.request, 'b', true), false);
    assert.equal(bench.stat('retry_or_shadow_abandoned'), 0);
  });
});
