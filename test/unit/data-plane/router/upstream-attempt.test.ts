// One attempt, from the choice of its host to the end of its answer: what goes out, what comes back, what is counted.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Trailers } from '../../../../src/data-plane/http/trailers.ts';
import { AttemptEdits } from '../../../../src/data-plane/route/attempt-edits.ts';
import { Verdict } from '../../../../src/data-plane/router/attempt-client.ts';
import { Framing, Method } from '../../../../src/wasm/http1.ts';
import { ClusterPriority } from '../../../../src/wasm/shared-memory.ts';
import { AttemptBench, attemptOf, HEAD, OK, sending } from '../../../support/attempt-bench.ts';
import { outlierSettings } from '../../../support/outliers.ts';

const CHUNKED = 'POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n';
const NOT_FOUND = 'HTTP/1.1 404 X\r\ncontent-length: 0\r\n\r\n';

describe('an attempt', () => {
  test('is sent when there is a connection, and its answer goes to the client', () => {
    const bench = new AttemptBench();
    const attempt = attemptOf(bench);
    assert.deepEqual([attempt.host, attempt.attempts, attempt.isSending, attempt.canSend], [null, 1, false, false]);
    bench.start(attempt, 'body');
    assert.equal(attempt.host, bench.cluster.hosts[0]);
    assert.deepEqual([attempt.isSending, attempt.canSend], [false, false]);
    assert.deepEqual(bench.client.news(), ['host 127.0.0.1:1 #1']);
    bench.upstream.accept();
    assert.equal(bench.upstream.received, `${HEAD}body`);
    assert.deepEqual(bench.client.heads, [HEAD]);
    assert.deepEqual([attempt.isSending, attempt.canSend], [true, true]);
    assert.deepEqual(bench.client.news(), ['connection']);
    bench.wait(30);
    bench.upstream.send(OK);
    assert.deepEqual(bench.client.news(), ['judge 200', `head ok| @${bench.nowMs}`]);
    assert.ok(!attempt.isSending);
    assert.deepEqual(bench.hostCounts(), { success: 1, total: 1 });
    assert.equal(bench.stat('upstream_rq_completed'), 1);
    assert.deepEqual(bench.workers.clusterSamples(bench.snapshot, 'upstream_rq_time'), [30]);
    bench.assertNothingLeft();
  });

  test('tells of its answer piece by piece', () => {
    const bench = new AttemptBench();
    sending(bench);
    bench.upstream.send('HTTP/1.1 500 X\r\ncontent-length: 6\r\n\r\nab');
    bench.wait(10);
    bench.upstream.send('cd');
    bench.upstream.send('ef');
    const { nowMs } = bench;
    assert.deepEqual(bench.client.news(), [
      'judge 500',
      `head ab @${nowMs - 10}`,
      `body cd @${nowMs}`,
      `body ef| @${nowMs}`,
    ]);
    assert.deepEqual(bench.hostCounts(), { error: 1, total: 1 });
    assert.deepEqual(bench.workers.clusterSamples(bench.snapshot, 'upstream_rq_time'), [10]);
    bench.assertNothingLeft();
  });

  test('hands on the trailers of its answer', () => {
    const bench = new AttemptBench({ cluster: { enableTrailers: true } });
    sending(bench);
    bench.upstream.send('HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n0\r\na: 1\r\n\r\n');
    assert.deepEqual(bench.client.responseTrailers?.entries(), [['a', '1']]);
  });

  test('has no time before the request has come in full', () => {
    const bench = new AttemptBench();
    bench.client.isRequestComplete = false;
    sending(bench);
    bench.upstream.send(OK);
    assert.deepEqual(bench.workers.clusterSamples(bench.snapshot, 'upstream_rq_time'), []);
  });

  test('counts on from those before it', () => {
    const bench = new AttemptBench();
    const edits = new AttemptEdits(false, 'x-count');
    const head = HEAD.replace('host: h\r\n', 'host: h\r\nx-count: 1\r\n');
    const attempt = attemptOf(bench, { before: 2, edits, head });
    bench.start(attempt);
    bench.upstream.accept();
    assert.equal(attempt.attempts, 3);
    assert.deepEqual(bench.client.news(), ['host 127.0.0.1:1 #3', 'connection']);
    assert.equal(bench.upstream.received, head.replace('x-count: 1', 'x-count: 3'));
    assert.equal(attempt.head, head);
  });

  for (const [method, host] of [
    [Method.GET, 'named'],
    [Method.CONNECT, 'h'],
  ] as const) {
    test(`of method ${method} asks for the host ${host} where the route wants the name of the upstream`, () => {
      const bench = new AttemptBench({ hostFields: { hostname: 'named' } });
      bench.client.methodId = method;
      sending(bench, { edits: new AttemptEdits(true, '') });
      assert.equal(bench.upstream.received, HEAD.replace('host: h', `host: ${host}`));
    });
  }

  test('has the form that its cluster asks for, of which its client knows nothing', () => {
    const bench = new AttemptBench({ cluster: { requestForm: { hasFullUrl: false, hasProperCase: true } } });
    sending(bench);
    assert.equal(bench.upstream.received, HEAD.replace('host', 'Host'));
    assert.deepEqual(bench.client.heads, [HEAD]);
  });

  test('is measured as it was on the wire, where its cluster wants that', () => {
    const bench = new AttemptBench({ cluster: { tracksMessageSizes: true } });
    const attempt = sending(bench, { body: 'abc', isEnd: false });
    bench.send(attempt, 'de');
    bench.send(attempt, 'f', true);
    const head = 'HTTP/1.1 200 X\r\na: 1\r\ncontent-length: 9\r\n\r\n';
    bench.upstream.send(`${head}ab`);
    attempt.onResponseBody(Buffer.from('..cdefg..'), 2, 7, false, false, bench.nowMs);
    attempt.onResponseBody(Buffer.from('hi'), 0, 2, true, false, bench.nowMs);
    assert.deepEqual(bench.sizes('upstream_rq_headers_size'), [HEAD.length]);
    assert.deepEqual(bench.sizes('upstream_rq_headers_count'), [1]);
    assert.deepEqual(bench.sizes('upstream_rq_body_size'), [6]);
    assert.deepEqual(bench.sizes('upstream_rs_headers_size'), [head.length]);
    assert.deepEqual(bench.sizes('upstream_rs_headers_count'), [2]);
    assert.deepEqual(bench.sizes('upstream_rs_body_size'), [9]);
  });

  test('is not measured elsewhere', () => {
    const bench = new AttemptBench();
    const attempt = sending(bench, { isEnd: false });
    bench.send(attempt, 'x', true);
    bench.upstream.send('HTTP/1.1 200 X\r\ncontent-length: 2\r\n\r\n');
    bench.upstream.send('ab');
    assert.equal(bench.client.news().length, 3);
  });

  test('goes to a host that its selection accepts, by the connections of its priority', () => {
    const bench = new AttemptBench({ hosts: 2 });
    const selection = {
      draw: 0,
      maxDraws: 5,
      spentPriorities: new Set<number>(),
      accepts: ({ label }: { label: string }) => label.endsWith(':2'),
    };
    for (let round = 0; round < 3; round++) {
      bench.start(attemptOf(bench, { selection, priority: ClusterPriority.high }));
      assert.deepEqual(bench.client.news(), ['host 127.0.0.1:2 #1']);
    }
    assert.equal(bench.places('pendingRequests', ClusterPriority.high), 3);
    assert.equal(bench.places('pendingRequests'), 0);
  });
});

describe('the body of a request', () => {
  test('is kept before there is a connection', () => {
    const bench = new AttemptBench();
    const attempt = attemptOf(bench);
    bench.start(attempt, 'first ', false);
    assert.equal(bench.send(attempt, 'second '), false);
    assert.equal(bench.send(attempt, 'third', true), false);
    bench.upstream.accept();
    assert.equal(bench.upstream.received, `${HEAD}first second third`);
    assert.deepEqual(bench.client.news(), ['host 127.0.0.1:1 #1', 'connection']);
    bench.upstream.send(OK);
    assert.ok(bench.upstream.isOpen);
  });

  test('goes on when there is one', () => {
    const bench = new AttemptBench();
    const attempt = attemptOf(bench);
    bench.start(attempt, 'first ', false);
    bench.upstream.accept();
    assert.deepEqual(bench.client.news(), ['host 127.0.0.1:1 #1', 'connection', 'writable']);
    assert.equal(bench.send(attempt, 'second'), true);
    assert.equal(bench.upstream.received, `${HEAD}first second`);
    bench.upstream.send(OK);
    // The request has not ended: nothing else can be sent on its connection.
    assert.ok(!bench.upstream.isLive);
  });

  test('waits for an upstream that takes no more', () => {
    const bench = new AttemptBench();
    const attempt = sending(bench, { isEnd: false });
    bench.upstream.isSlow = true;
    assert.equal(bench.send(attempt, 'a'), false);
    assert.deepEqual([attempt.canSend, attempt.isSending], [false, true]);
    assert.deepEqual(bench.client.news(), []);
    bench.upstream.take();
    assert.ok(attempt.canSend);
    assert.deepEqual(bench.client.news(), ['writable']);
    bench.upstream.take();
    assert.deepEqual(bench.client.news(), []);
    assert.equal(bench.send(attempt, 'b', true), true);
    bench.upstream.take();
    assert.deepEqual(bench.client.news(), []);
  });

  test('waits for one that takes no more from the start', () => {
    const bench = new AttemptBench();
    const attempt = attemptOf(bench);
    bench.start(attempt, 'a', false);
    bench.upstream.isSlow = true;
    bench.upstream.accept();
    assert.deepEqual(bench.client.news(), ['host 127.0.0.1:1 #1', 'connection']);
    assert.ok(!attempt.canSend);
    bench.upstream.take();
    assert.deepEqual(bench.client.news(), ['writable']);
  });

  test('goes nowhere behind the end of the attempt', () => {
    const bench = new AttemptBench();
    const attempt = sending(bench, { isEnd: false });
    bench.upstream.send(OK);
    assert.equal(bench.send(attempt, 'more'), true);
    assert.equal(bench.upstream.received, HEAD);
  });

  for (const when of ['at once', 'later', 'early'] as const) {
    for (const enableTrailers of [true, false]) {
      test(`ends ${when} with${enableTrailers ? '' : 'out'} its trailers`, () => {
        const bench = new AttemptBench({ cluster: { enableTrailers } });
        const end = enableTrailers ? '0\r\na: 1\r\n\r\n' : '0\r\n\r\n';
        const attempt = attemptOf(bench, { head: CHUNKED });
        bench.client.requestFraming = Framing.CHUNKED;
        bench.client.requestTrailers = when === 'at once' ? Trailers.parse('a: 1') : null;
        bench.start(attempt, when === 'at once' ? '1\r\nx\r\n0\r\n\r\n' : '1\r\nx\r\n', when === 'at once');
        if (when === 'later') bench.upstream.accept();
        if (when !== 'at once') {
          bench.client.requestTrailers = Trailers.parse('a: 1');
          bench.send(attempt, '0\r\n\r\n', true);
        }
        if (when !== 'later') bench.upstream.accept();
        assert.equal(bench.upstream.received, `${CHUNKED}1\r\nx\r\n${end}`);
      });

      test(`gets chunks where it came without framing, and ends ${when} with${enableTrailers ? '' : 'out'} trailers`, () => {
        const bench = new AttemptBench({ cluster: { enableTrailers } });
        const end = enableTrailers ? '0\r\na: 1\r\n\r\n' : '0\r\n\r\n';
        const attempt = attemptOf(bench, { head: 'POST / HTTP/1.1\r\nhost: h\r\n\r\n' });
        bench.client.requestFraming = Framing.UNTIL_CLOSE;
        bench.client.requestTrailers = when === 'at once' ? Trailers.parse('a: 1') : null;
        bench.start(attempt, 'body', when === 'at once');
        if (when === 'later') bench.upstream.accept();
        if (when !== 'at once') {
          bench.client.requestTrailers = Trailers.parse('a: 1');
          bench.send(attempt, '', true);
        }
        if (when !== 'later') bench.upstream.accept();
        assert.equal(bench.upstream.received, `${CHUNKED}4\r\nbody\r\n${end}`);
      });
    }
  }

  test('takes the form that its cluster wants also in the fields that its framing needs', () => {
    const bench = new AttemptBench({ cluster: { requestForm: { hasFullUrl: false, hasProperCase: true } } });
    bench.client.requestFraming = Framing.UNTIL_CLOSE;
    bench.start(attemptOf(bench, { head: 'POST / HTTP/1.1\r\nhost: h\r\n\r\n' }), 'x');
    bench.upstream.accept();
    const head = 'POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n';
    assert.equal(bench.upstream.received, `${head}1\r\nx\r\n0\r\n\r\n`);
  });

  test('has no trailers before its end', () => {
    const bench = new AttemptBench({ cluster: { enableTrailers: true } });
    bench.client.requestTrailers = Trailers.parse('a: 1');
    const attempt = sending(bench, { head: CHUNKED, body: '5\r\n0\r\n\r\n', isEnd: false });
    bench.send(attempt, '\r\n');
    assert.equal(bench.upstream.received, `${CHUNKED}5\r\n0\r\n\r\n\r\n`);
  });
});

describe('an answer whose client is slow', () => {
  for (const part of ['head', 'body'] as const) {
    test(`is not read on behind its ${part}`, () => {
      const bench = new AttemptBench();
      const attempt = sending(bench);
      if (part === 'body') bench.upstream.send('HTTP/1.1 200 X\r\ncontent-length: 9\r\n\r\n');
      bench.client.isFast = false;
      bench.upstream.send(part === 'body' ? 'abc' : 'HTTP/1.1 200 X\r\ncontent-length: 9\r\n\r\nabc');
      assert.ok(!bench.upstream.isRead);
      attempt.resumeResponse();
      assert.ok(bench.upstream.isRead);
    });
  }

  test('cannot be read on before there is a connection', () => {
    const bench = new AttemptBench();
    const attempt = attemptOf(bench);
    bench.start(attempt);
    attempt.resumeResponse();
    assert.ok(bench.upstream.isConnecting);
  });
});

describe('an answer that nobody gets', () => {
  for (const [verdict, counts] of [
    [Verdict.retried, { error: 1, total: 1 }],
    [Verdict.dropped, { error: 1, total: 1 }],
    [Verdict.followed, { total: 1 }],
  ] as const) {
    for (const isWhole of [true, false]) {
      test(`by verdict ${verdict}, ${isWhole ? 'whole' : 'half'}, is counted, and its connection is ${isWhole ? '' : 'not '}used again`, async () => {
        const bench = new AttemptBench({ cluster: { outlierDetection: outlierSettings() } });
        const attempt = sending(bench);
        const lax = new AttemptBench();
        sending(lax);
        for (const { client } of [bench, lax]) client.verdict = verdict;
        lax.upstream.send(NOT_FOUND);
        assert.deepEqual(lax.hostCounts(), counts);
        bench.upstream.send(`HTTP/1.1 404 X\r\ncontent-length: ${isWhole ? 0 : 5}\r\n\r\n`);
        assert.deepEqual(bench.client.news(), ['judge 404']);
        assert.deepEqual(bench.hostCounts(), counts);
        assert.equal(bench.upstream.isOpen, isWhole);
        assert.equal(bench.stat('upstream_rq_tx_reset'), isWhole ? 0 : 1);
        assert.ok(!attempt.isSending);
        assert.equal(bench.outlierCount('external_total'), 1);
        assert.equal(bench.stat('upstream_rq_completed'), 0);
        const isRetried = verdict === Verdict.retried;
        assert.equal(bench.workers.dynamicStats().includes('cluster.web.retry.upstream_rq_404'), isRetried);
        assert.ok(!bench.workers.dynamicStats().includes('cluster.web.upstream_rq_404'));
        await bench.settle();
        bench.assertNothingLeft();
      });
    }
  }
});

test('a tunnel that nobody gets is closed, not broken off', () => {
  const bench = new AttemptBench();
  bench.client.awaitsUpgrade = true;
  sending(bench, { isEnd: false });
  bench.client.verdict = Verdict.retried;
  bench.upstream.send('HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n');
  assert.ok(!bench.upstream.isLive && !bench.upstream.wasReset);
});

describe('an answer that asks to leave its host out', () => {
  const ASKING = NOT_FOUND.replace('content', 'x-envoy-immediate-health-check-fail: 1\r\ncontent');
  for (const [isHealthChecked, answer, count] of [
    [true, ASKING, 1],
    [true, NOT_FOUND, 0],
    [false, ASKING, 0],
  ] as const) {
    test(`is ${count === 1 ? '' : 'not '}told to main`, () => {
      const bench = new AttemptBench({ isHealthChecked });
      sending(bench);
      bench.upstream.send(answer);
      assert.equal(bench.workers.reported.length, count);
    });
  }
});
