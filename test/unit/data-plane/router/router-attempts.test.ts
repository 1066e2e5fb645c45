// Requests that the router makes several of: tries, companions and copies, by what routes and clusters say of them.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RequestMirror } from '../../../../src/data-plane/router/request-mirror.ts';
import { RequestTries } from '../../../../src/data-plane/router/request-tries.ts';
import { UpstreamAttempt } from '../../../../src/data-plane/router/upstream-attempt.ts';
import type { MirrorPolicy } from '../../../../src/snapshot/index.ts';
import { forwarding, type RouterBench } from '../../../support/router-bench.ts';
import { retrySettings } from '../../../support/routes.ts';

const TICK_MS = 8;

function mirrorTo(cluster: string, overrides: Partial<MirrorPolicy> = {}): MirrorPolicy {
  return {
    cluster,
    clusterHeader: '',
    fraction: { key: '', default: { numerator: 100, denominator: 100 } },
    appendsHostSuffix: true,
    hostRewrite: '',
    headEdits: [],
    ...overrides,
  };
}

describe('a request that may be tried several times', () => {
  const kindOf = (bench: RouterBench, ...lines: readonly string[]) => bench.routed('GET /', ...lines)!.constructor;

  test('is one with a policy, a time for its tries, or companions', () => {
    assert.equal(kindOf(forwarding()), UpstreamAttempt);
    const retry = retrySettings();
    assert.equal(kindOf(forwarding({ retry })), RequestTries);
    const none = { conditions: [] } as const;
    assert.equal(kindOf(forwarding({ retry: retrySettings(none) })), UpstreamAttempt);
    assert.equal(kindOf(forwarding({ retry: retrySettings({ ...none, perTryTimeoutMs: 5 }) })), RequestTries);
    assert.equal(kindOf(forwarding({ retry: retrySettings({ ...none, perTryIdleTimeoutMs: 5 }) })), RequestTries);
    assert.equal(kindOf(forwarding({ initialRequests: 2 })), RequestTries);
    assert.equal(kindOf(forwarding({}, { cluster: { maxStreamDurationMs: 5 } })), RequestTries);
  });

  test('may say so itself from inside', () => {
    for (const comesFromInside of [true, false]) {
      const bench = forwarding();
      bench.stream.comesFromInside = comesFromInside;
      assert.equal(kindOf(bench, 'x-proxy-retry-on: 5xx'), comesFromInside ? RequestTries : UpstreamAttempt);
    }
    const inside = forwarding({}, { cluster: { maxStreamDurationMs: 5 } });
    inside.stream.comesFromInside = true;
    assert.equal(kindOf(inside, 'x-proxy-upstream-stream-duration-ms: 70'), UpstreamAttempt);
    const outside = forwarding({}, { cluster: { maxStreamDurationMs: 5 } });
    assert.equal(kindOf(outside, 'x-proxy-upstream-stream-duration-ms: 70'), RequestTries);
  });

  test('goes by the policy of its cluster rather than that of its route', () => {
    const ofCluster = { retry: retrySettings({ conditions: ['retriable-4xx'], perTryTimeoutMs: 30 }) };
    const bench = forwarding({ retry: retrySettings({ conditions: ['5xx'] }) }, { cluster: ofCluster });
    const request = bench.routed()!;
    assert.equal(bench.stream.perTryTimeoutMs, 30);
    bench.start(request);
    bench.upstream.accept();
    bench.upstream.send('HTTP/1.1 409 X\r\ncontent-length: 0\r\n\r\n');
    assert.equal(bench.stat('upstream_rq_retry'), 1);
  });

  test('does not have companions where it awaits a tunnel', () => {
    const bench = forwarding({ initialRequests: 2 }, { hosts: 2 });
    bench.stream.awaitsTunnel = true;
    assert.equal(kindOf(bench), UpstreamAttempt);
  });

  test('goes out to different hosts at once, whatever the balancer draws', () => {
    for (let round = 0; round < 8; round++) {
      const bench = forwarding({ initialRequests: 3 }, { hosts: 5, cluster: { lbPolicy: 'RANDOM' } });
      // Each time from another place of the sequence.
      for (let draw = 0; draw < round; draw++) bench.cluster.chooseHost(null);
      bench.start(bench.routed()!);
      assert.equal(new Set(bench.sockets.map(({ address }) => (address as { port: number }).port)).size, 3);
    }
  });

  test('is tried again at other hosts where its policy wants that, whatever the balancer draws', () => {
    const retry = retrySettings({ hostPredicates: [{ kind: 'previous-hosts' }], maxFurtherDraws: 20 });
    for (let round = 0; round < 8; round++) {
      const bench = forwarding({ retry }, { hosts: 3, cluster: { lbPolicy: 'RANDOM' } });
      for (let draw = 0; draw < round; draw++) bench.cluster.chooseHost(null);
      bench.start(bench.routed()!);
      bench.upstream.refuse();
      bench.wait(2 * TICK_MS);
      const [first, second] = bench.sockets.map(({ address }) => address);
      assert.notDeepEqual(first, second);
    }
  });

  test('leaves the priorities that were tried where its policy wants that', () => {
    for (const previousPrioritiesFrequency of [0, 1]) {
      const retry = retrySettings({ previousPrioritiesFrequency });
      const bench = forwarding({ retry }, { hosts: 2, priorities: [0, 1] });
      bench.start(bench.routed()!);
      bench.upstream.refuse();
      bench.stream.news();
      bench.wait(2 * TICK_MS);
      assert.deepEqual(bench.stream.news(), [`host 127.0.0.1:${1 + previousPrioritiesFrequency} #2`]);
    }
  });

  test('has the times, hosts, body and words of its route', () => {
    const policy = { perTryTimeoutMs: 100, hostPredicates: [{ kind: 'previous-hosts' }], maxFurtherDraws: 9 } as const;
    const action = { timeoutMs: 5000, tellsTimeoutRetry: true, replayLimitBytes: 2, retry: retrySettings(policy) };
    const bench = forwarding(action, { hosts: 2 });
    const request = bench.routed('POST /')!;
    bench.stream.requestCompleteMs = bench.nowMs;
    bench.start(request, 'ab');
    bench.upstream.accept();
    bench.wait(100 + 3 * TICK_MS);
    assert.equal(bench.stat('upstream_rq_per_try_timeout'), 1);
    bench.upstream.accept();
    assert.notEqual(bench.sockets[0]!.address, bench.upstream.address);
    assert.match(bench.upstream.received, /x-proxy-is-timeout-retry: true\r\n\r\nab$/);
    assert.match(bench.upstream.received, /x-proxy-expected-rq-timeout-ms: 100\r\n/);
  });

  test('keeps no more of its body than its route allows', () => {
    const bench = forwarding({ replayLimitBytes: 2, retry: retrySettings() });
    bench.start(bench.routed('POST /')!, 'abc');
    assert.equal(bench.stat('retry_or_shadow_abandoned'), 1);
    const lax = forwarding({ retry: retrySettings() });
    lax.stream.bufferLimitBytes = 2;
    lax.start(lax.routed('POST /')!, 'abc');
    assert.equal(lax.stat('retry_or_shadow_abandoned'), 1);
  });

  test('goes on beside its retry where it may be slow', () => {
    const retry = retrySettings({ perTryTimeoutMs: 100 });
    const bench = forwarding({ hedgesOnPerTryTimeout: true, retry });
    bench.start(bench.routed()!);
    bench.upstream.accept();
    bench.wait(100 + 3 * TICK_MS);
    assert.equal(bench.sockets.filter(({ isLive }) => isLive).length, 2);
  });

  test('ends a try that progresses no more, or lasts too long', () => {
    for (const [options, stat] of [
      [{ retry: retrySettings({ perTryIdleTimeoutMs: 100 }) }, 'upstream_rq_per_try_idle_timeout'],
      [{ maxStreamDurationMs: 100 }, 'upstream_rq_max_duration_reached'],
    ] as const) {
      const bench = forwarding({}, { cluster: options });
      bench.start(bench.routed()!);
      bench.upstream.accept();
      bench.wait(100 + TICK_MS);
      assert.equal(bench.stat(stat), 1);
    }
  });
});

describe('a request of which there are copies', () => {
  const isMirrored = (bench: RouterBench, ...lines: readonly string[]) =>
    bench.routed('GET /', ...lines) instanceof RequestMirror;

  test('is one whose mirror names a cluster that is there', () => {
    assert.ok(isMirrored(forwarding({ mirrors: [mirrorTo('web')] })));
    assert.ok(!isMirrored(forwarding({ mirrors: [mirrorTo('gone')] })));
    const byHeader = [mirrorTo('', { clusterHeader: 'x-copy' })];
    assert.ok(isMirrored(forwarding({ mirrors: byHeader }), 'x-copy: web'));
    assert.ok(!isMirrored(forwarding({ mirrors: byHeader })));
  });

  test('goes by the mirrors of its cluster rather than those of its route', () => {
    const none = [mirrorTo('gone')];
    assert.ok(!isMirrored(forwarding({ mirrors: [mirrorTo('web')] }, { cluster: { mirrors: none } })));
    assert.ok(isMirrored(forwarding({ mirrors: none }, { cluster: { mirrors: [mirrorTo('web')] } })));
  });

  test('opens no tunnel', () => {
    const bench = forwarding({ mirrors: [mirrorTo('web')] });
    bench.stream.awaitsTunnel = true;
    assert.ok(!isMirrored(bench));
  });

  test('has copies with the body and the time of its route', () => {
    const action = { mirrors: [mirrorTo('web')], timeoutMs: 500, replayLimitBytes: 3 };
    const bench = forwarding(action);
    bench.start(bench.routed('POST /')!, 'abc');
    for (const socket of bench.sockets) socket.accept();
    assert.equal(bench.sockets.length, 2);
    assert.match(bench.upstream.received, /host: h-shadow\r\n[\s\S]*\r\n\r\nabc$/);
    bench.wait(500 + TICK_MS);
    assert.ok(bench.sockets[0]!.isOpen && !bench.upstream.isLive);
    const long = forwarding(action);
    long.start(long.routed('POST /')!, 'abcd');
    assert.equal(long.sockets.length, 1);
  });

  test('has copies for the host that its header names, where the cluster goes by that', () => {
    const originalDst = { header: 'x-proxy-original-dst-host', port: 0 };
    const bench = forwarding({ mirrors: [mirrorTo('web')] }, { cluster: { originalDst }, hosts: 2 });
    bench.stream.connectionEnds.originalDestination = { ip: '127.0.0.1', port: 1 };
    bench.start(bench.routed('GET /', 'x-proxy-original-dst-host: 127.0.0.1:2')!);
    assert.equal(bench.sockets.length, 2);
    bench.start(bench.routed()!);
    // Nobody has connected for the copy.
    assert.equal(bench.stat('upstream_cx_none_healthy'), 1);
  });
});
