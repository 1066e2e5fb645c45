// One of several tries: the times that bound it, and what it passes on between its attempt and the request.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { DownstreamConnection } from '../../../../src/data-plane/network/downstream-connection.ts';
import { Verdict } from '../../../../src/data-plane/router/attempt-client.ts';
import { Method } from '../../../../src/wasm/http1.ts';
import { HEAD, OK } from '../../../support/attempt-bench.ts';
import { type BenchOptions, LIMIT_MS, RESET, TICK_MS, TriesBench, UNAVAILABLE } from '../../../support/tries-bench.ts';

describe('the time of a try', () => {
  const timed = (more: BenchOptions = {}): TriesBench =>
    new TriesBench({ ...more, retry: { perTryTimeoutMs: LIMIT_MS, ...more.retry } });

  test('begins with its connection, and ends it', () => {
    const bench = timed();
    bench.start(bench.request);
    bench.wait(3 * LIMIT_MS);
    bench.upstream.accept();
    bench.client.news();
    bench.wait(LIMIT_MS - 1);
    assert.equal(bench.stat('upstream_rq_per_try_timeout'), 0);
    bench.wait(TICK_MS + 1);
    assert.equal(bench.stat('upstream_rq_per_try_timeout'), 1);
    assert.ok(!bench.sockets[0]!.isLive);
    assert.deepEqual(bench.hostCounts(), { error: 1, timeout: 1, total: 1 });
    assert.equal(bench.retried(), HEAD);
    assert.deepEqual(bench.client.news(), ['host 127.0.0.1:1 #2', 'connection']);
    bench.wait(LIMIT_MS + TICK_MS);
    assert.deepEqual(bench.client.news(), ['limit upstream_per_try_timeout']);
    assert.equal(bench.flags, 'URX');
    bench.assertNothingLeft();
  });

  test('begins when the request has come in full', () => {
    const bench = timed();
    bench.client.isRequestComplete = false;
    bench.start(bench.request, 'a', false);
    bench.upstream.accept();
    bench.send(bench.request, 'b');
    bench.wait(3 * LIMIT_MS);
    assert.ok(bench.upstream.isOpen);
    bench.client.isRequestComplete = true;
    bench.send(bench.request, 'c', true);
    bench.wait(LIMIT_MS + TICK_MS);
    assert.ok(!bench.sockets[0]!.isLive);
  });

  test('does not begin where the head of the answer came first', () => {
    const bench = timed();
    bench.client.isRequestComplete = false;
    bench.start(bench.request, 'a', false);
    bench.upstream.accept();
    bench.upstream.send('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\no');
    bench.client.isRequestComplete = true;
    bench.send(bench.request, 'b', true);
    bench.wait(3 * LIMIT_MS);
    assert.ok(bench.upstream.isOpen);
    assert.equal(bench.stat('upstream_rq_per_try_timeout'), 0);
  });

  test('begins with the connection of a request that has come in full before', () => {
    const bench = timed();
    bench.start(bench.request, 'a', false);
    bench.send(bench.request, 'b', true);
    bench.wait(3 * LIMIT_MS);
    assert.ok(bench.upstream.isConnecting);
    assert.equal(bench.stat('upstream_rq_per_try_timeout'), 0);
    bench.upstream.accept();
    bench.wait(LIMIT_MS + TICK_MS);
    assert.equal(bench.stat('upstream_rq_per_try_timeout'), 1);
  });

  test('goes on when the request is sent once more because its connection was closed', () => {
    const bench = timed({ plan: { terms: null } }).begun();
    bench.answered(OK);
    const request = bench.further({ perTryTimeoutMs: LIMIT_MS }, { terms: null });
    bench.start(request);
    bench.wait(LIMIT_MS / 2);
    bench.upstream.reset();
    bench.upstream.accept();
    bench.client.news();
    bench.wait(LIMIT_MS / 2 + TICK_MS);
    assert.deepEqual(bench.client.news(), ['limit upstream_per_try_timeout']);
    bench.wait(3 * LIMIT_MS);
    assert.deepEqual(bench.client.news(), []);
  });

  test('ends with the head of an answer that came on a second connection', () => {
    const bench = timed({ plan: { terms: null } }).begun();
    bench.answered(OK);
    bench.start(bench.further({ perTryTimeoutMs: LIMIT_MS }, { terms: null }));
    bench.wait(LIMIT_MS / 2);
    bench.upstream.reset();
    bench.answered('HTTP/1.1 200 X\r\ncontent-length: 3\r\n\r\n');
    bench.wait(3 * LIMIT_MS);
    assert.deepEqual(bench.client.news(), []);
    assert.ok(bench.upstream.isOpen);
  });

  test('ends with the head of the answer', () => {
    const bench = timed().begun();
    bench.wait(LIMIT_MS - TICK_MS);
    bench.answered('HTTP/1.1 200 X\r\ncontent-length: 3\r\n\r\n');
    bench.wait(3 * LIMIT_MS);
    bench.upstream.send('abc');
    assert.deepEqual(bench.client.news(), [`body abc| @${bench.nowMs}`]);
    bench.wait(3 * LIMIT_MS);
    assert.equal(bench.stat('upstream_rq_per_try_timeout'), 0);
  });

  test('is not that of the next try', () => {
    const bench = timed().begun();
    bench.wait(LIMIT_MS - TICK_MS);
    bench.answered(UNAVAILABLE);
    bench.retried();
    bench.wait(LIMIT_MS - 2 * TICK_MS);
    assert.equal(bench.stat('upstream_rq_per_try_timeout'), 0);
    assert.equal(bench.stat('upstream_rq_retry_limit_exceeded'), 0);
    assert.equal(bench.answered(OK).length, 2);
  });

  test('is over before there is an answer where nothing is tried again', () => {
    const bench = timed({ plan: { terms: null } }).begun();
    bench.wait(LIMIT_MS + TICK_MS);
    assert.deepEqual(bench.client.news(), ['limit upstream_per_try_timeout']);
    assert.equal(bench.flags, '');
    assert.ok(!bench.upstream.isLive);
  });

  test('is none where nobody has set it', () => {
    const bench = new TriesBench().begun();
    bench.wait(1_000_000);
    assert.equal(bench.stat('upstream_rq_per_try_timeout'), 0);
    assert.ok(bench.upstream.isOpen);
  });
});

describe('the time without progress of a try', () => {
  const timed = (more: BenchOptions = {}): TriesBench =>
    new TriesBench({ ...more, retry: { perTryIdleTimeoutMs: LIMIT_MS, ...more.retry } });
  const [head, part] = ['HTTP/1.1 200 X\r\ncontent-length: 4\r\n\r\n', 'a'];

  test('ends it before the answer, and there is another', () => {
    const bench = timed().begun();
    bench.wait(LIMIT_MS - 1);
    assert.equal(bench.stat('upstream_rq_per_try_idle_timeout'), 0);
    bench.wait(TICK_MS + 1);
    assert.equal(bench.stat('upstream_rq_per_try_idle_timeout'), 1);
    assert.equal(bench.retried(), HEAD);
    bench.client.news();
    bench.wait(LIMIT_MS + TICK_MS);
    assert.deepEqual(bench.client.news(), ['limit upstream_per_try_idle_timeout']);
  });

  test('begins anew with each part of the answer, and ends with it', () => {
    const bench = timed().begun();
    bench.wait(LIMIT_MS - TICK_MS);
    bench.answered(head);
    for (let count = 0; count < 4; count++) {
      bench.wait(LIMIT_MS - TICK_MS);
      bench.upstream.send(part);
    }
    assert.equal(bench.client.news().length, 4);
    bench.wait(2 * LIMIT_MS);
    assert.deepEqual(bench.client.news(), []);
    assert.equal(bench.stat('upstream_rq_per_try_idle_timeout'), 0);
  });

  test('ends with an answer that has no body', () => {
    const bench = timed().begun();
    bench.answered('HTTP/1.1 200 X\r\ncontent-length: 0\r\n\r\n');
    bench.wait(2 * LIMIT_MS);
    assert.equal(bench.stat('upstream_rq_per_try_idle_timeout'), 0);
    assert.deepEqual(bench.client.news(), []);
  });

  for (const hedges of [true, false])
    test(`breaks an answer off that does not go on, hedging: ${hedges}`, async () => {
      const bench = timed({ plan: { hedges } }).begun();
      bench.answered(head + part);
      bench.wait(LIMIT_MS + TICK_MS);
      assert.deepEqual(bench.client.news(), ['limit upstream_per_try_idle_timeout']);
      assert.ok(!bench.upstream.isLive);
      assert.equal(bench.stat('upstream_rq_per_try_idle_timeout'), 1);
      await bench.settle();
      assert.deepEqual(bench.client.news(), []);
      bench.wait(2 * LIMIT_MS);
      assert.equal(bench.stat('upstream_rq_per_try_idle_timeout'), 1);
      bench.assertNothingLeft();
    });

  test('breaks an answer off that does not go on behind a part of its body', () => {
    const bench = timed().begun();
    bench.answered(head);
    bench.upstream.send(part);
    bench.client.news();
    bench.wait(LIMIT_MS + TICK_MS);
    assert.deepEqual(bench.client.news(), ['limit upstream_per_try_idle_timeout']);
  });

  test('begins when the request has come in full', () => {
    const bench = timed();
    bench.client.isRequestComplete = false;
    bench.start(bench.request, 'a', false);
    bench.upstream.isSlow = true;
    bench.upstream.accept();
    bench.upstream.take();
    bench.wait(3 * LIMIT_MS);
    assert.ok(bench.upstream.isOpen);
    bench.client.isRequestComplete = true;
    bench.send(bench.request, 'b', true);
    bench.wait(LIMIT_MS + TICK_MS);
    assert.equal(bench.stat('upstream_rq_per_try_idle_timeout'), 1);
  });

  test('begins anew when the upstream takes the rest of the request', () => {
    const bench = timed();
    bench.start(bench.request, 'a', false);
    bench.upstream.isSlow = true;
    bench.upstream.accept();
    bench.send(bench.request, 'b', true);
    bench.wait(LIMIT_MS - TICK_MS);
    bench.client.news();
    bench.upstream.take();
    assert.deepEqual(bench.client.news(), ['writable']);
    bench.wait(LIMIT_MS - TICK_MS);
    assert.equal(bench.stat('upstream_rq_per_try_idle_timeout'), 0);
    bench.wait(3 * TICK_MS);
    assert.equal(bench.stat('upstream_rq_per_try_idle_timeout'), 1);
  });

  test('is not begun anew by what does not move it', () => {
    const bench = timed().begun();
    bench.wait(LIMIT_MS - TICK_MS);
    bench.send(bench.request, '', true);
    bench.wait(2 * TICK_MS);
    assert.equal(bench.stat('upstream_rq_per_try_idle_timeout'), 1);
  });

  test('ends with an answer that breaks off', () => {
    const bench = timed().begun();
    bench.answered(head);
    bench.upstream.reset();
    assert.deepEqual(bench.client.news(), [RESET]);
    bench.wait(2 * LIMIT_MS);
    assert.deepEqual(bench.client.news(), []);
    assert.equal(bench.stat('upstream_rq_per_try_idle_timeout'), 0);
  });

  test('ends with an answer that is followed', () => {
    const bench = timed().begun();
    bench.client.verdict = Verdict.followed;
    assert.deepEqual(bench.answered(head), ['judge 200']);
    bench.wait(2 * LIMIT_MS);
    bench.request.cancel(false);
    assert.deepEqual(bench.client.news(), []);
    assert.equal(bench.stat('upstream_rq_per_try_idle_timeout'), 0);
    assert.ok(!bench.request.isSending);
  });
});

describe('the time for all of a try', () => {
  const timed = (more: BenchOptions = {}): TriesBench =>
    new TriesBench({ ...more, plan: { maxTryDurationMs: LIMIT_MS, ...more.plan } });
  const half = 'HTTP/1.1 200 X\r\ncontent-length: 4\r\n\r\nab';
  const count = (bench: TriesBench): number => bench.stat('upstream_rq_max_duration_reached');

  for (const hedges of [true, false]) {
    test(`begins with its connection and ends it, hedging: ${hedges}`, () => {
      const bench = timed({ plan: { hedges } });
      bench.start(bench.request, '', false);
      bench.wait(3 * LIMIT_MS);
      bench.upstream.accept();
      bench.wait(LIMIT_MS - 1);
      assert.equal(count(bench), 0);
      bench.wait(TICK_MS + 1);
      assert.equal(count(bench), 1);
      assert.ok(!bench.sockets[0]!.isLive);
      assert.equal(bench.retried(), HEAD);
      bench.client.news();
      bench.wait(LIMIT_MS + TICK_MS);
      assert.deepEqual(bench.client.news(), ['limit upstream_max_stream_duration_reached']);
      assert.equal(bench.flags, 'URX');
      bench.assertNothingLeft();
    });

    test(`breaks its answer off, hedging: ${hedges}`, async () => {
      const bench = timed({ plan: { hedges } }).begun();
      bench.answered(half);
      bench.wait(LIMIT_MS + TICK_MS);
      assert.deepEqual(bench.client.news(), ['limit upstream_max_stream_duration_reached']);
      assert.equal(count(bench), 1);
      assert.ok(!bench.upstream.isLive);
      await bench.settle();
      bench.wait(2 * LIMIT_MS);
      assert.deepEqual(bench.client.news(), []);
      bench.assertNothingLeft();
    });
  }

  test('ends with its answer, whole or broken off', () => {
    for (const ending of ['head', 'body', 'reset', 'followed', 'idle', 'cancel'] as const) {
      const bench = timed({ retry: { perTryIdleTimeoutMs: ending === 'idle' ? LIMIT_MS / 2 : 0 } }).begun();
      if (ending === 'followed') bench.client.verdict = Verdict.followed;
      bench.answered(ending === 'head' ? OK : half);
      if (ending === 'body') bench.upstream.send('cd');
      else if (ending === 'reset') bench.upstream.reset();
      else if (ending === 'cancel') bench.request.cancel(false);
      else if (ending === 'idle') bench.wait(LIMIT_MS / 2 + TICK_MS);
      bench.client.news();
      bench.wait(2 * LIMIT_MS);
      assert.deepEqual(bench.client.news(), [], ending);
      assert.equal(count(bench), 0, ending);
    }
  });

  test('is not that of the next try', () => {
    const bench = timed().begun();
    bench.wait(LIMIT_MS - 2 * TICK_MS);
    bench.answered(UNAVAILABLE);
    bench.retried();
    bench.wait(LIMIT_MS - 3 * TICK_MS);
    assert.equal(count(bench), 0);
    assert.equal(bench.stat('upstream_rq_retry_limit_exceeded'), 0);
    bench.wait(4 * TICK_MS);
    assert.equal(count(bench), 1);
  });

  test('begins anew when the request is sent once more because its connection was closed', () => {
    const bench = timed({ plan: { terms: null } }).begun();
    bench.answered(OK);
    bench.start(bench.further({}, { terms: null, maxTryDurationMs: LIMIT_MS }));
    bench.wait(LIMIT_MS / 2);
    bench.upstream.reset();
    bench.upstream.accept();
    bench.client.news();
    bench.wait(LIMIT_MS - 2 * TICK_MS);
    assert.deepEqual(bench.client.news(), []);
    bench.wait(3 * TICK_MS);
    assert.deepEqual(bench.client.news(), ['limit upstream_max_stream_duration_reached']);
    bench.wait(3 * LIMIT_MS);
    assert.deepEqual(bench.client.news(), []);
  });
});

describe('a try', () => {
  test('has its answer read on when the client can take more', () => {
    const bench = new TriesBench().begun();
    bench.client.isFast = false;
    bench.answered('HTTP/1.1 200 X\r\ncontent-length: 9\r\n\r\nab');
    assert.ok(!bench.upstream.isRead);
    bench.request.resumeResponse();
    assert.ok(bench.upstream.isRead);
    bench.upstream.send('c');
    assert.ok(!bench.upstream.isRead);
    new TriesBench().request.resumeResponse();
  });

  test('goes by the method and the tunnel of its request', () => {
    const sentAgain = (methodId: number, awaitsTunnel: boolean): number => {
      const bench = new TriesBench({ plan: { terms: null } }).begun();
      bench.answered(OK);
      Object.assign(bench.client, { methodId, awaitsTunnel });
      bench.start(bench.further({}, { terms: null }), '', false);
      bench.upstream.reset();
      return bench.stat('upstream_rq_retry');
    };
    assert.equal(sentAgain(Method.GET, true), 1);
    assert.equal(sentAgain(Method.GET, false), 0);
    assert.equal(sentAgain(Method.POST, true), 0);
  });

  test('opens a tunnel where its request wants one', () => {
    for (const awaitsUpgrade of [true, false]) {
      const bench = new TriesBench({ plan: { terms: null } });
      bench.client.awaitsUpgrade = awaitsUpgrade;
      bench.start(bench.request, '', false);
      const news = bench.answered('HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n');
      assert.equal(news[0], awaitsUpgrade ? 'judge 101' : 'failure protocol error (upgrade_not_requested)');
    }
  });

  test('is counted by the origin of its request, and hands on trailers', () => {
    for (const isInternal of [true, false]) {
      const bench = new TriesBench({ cluster: { enableTrailers: true } });
      bench.client.isInternal = isInternal;
      bench.begun();
      bench.answered('HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n0\r\na: 1\r\n\r\n');
      const origin = isInternal ? 'internal' : 'external';
      assert.ok(bench.workers.dynamicStats().includes(`cluster.web.${origin}.upstream_rq_200`));
      assert.deepEqual(bench.client.responseTrailers?.entries(), [['a', '1']]);
    }
  });

  test('is measured by the times of its request', () => {
    const bench = new TriesBench({
      cluster: { tracksTimeoutBudgets: true },
      retry: { perTryTimeoutMs: 200 },
    });
    bench.client.timeoutMs = 400;
    bench.client.requestCompleteMs = bench.nowMs - 60;
    bench.begun();
    bench.wait(40);
    bench.answered(OK);
    assert.deepEqual(bench.workers.clusterSamples(bench.snapshot, 'upstream_rq_time'), [100]);
    assert.deepEqual(bench.budgets('upstream_rq_timeout_budget_percent_used'), [25]);
    assert.deepEqual(bench.budgets('upstream_rq_timeout_budget_per_try_percent_used'), [20]);
  });

  test('holds no more of its answer than its client can', () => {
    const bench = new TriesBench();
    bench.client.bufferLimitBytes = 16 * 1024;
    bench.begun();
    assert.ok(bench.upstream.owner.readBuffer().length < 32 * 1024);
  });

  test('uses the connections of its client, where those are its own', () => {
    const bench = new TriesBench({ cluster: { poolsPerClient: true } });
    const watched: unknown[] = [];
    const downstream = { isClosed: false, watch: (watcher: unknown) => void watched.push(watcher) };
    bench.client.downstream = downstream as unknown as DownstreamConnection;
    bench.begun();
    assert.equal(watched.length, 1);
  });
});
