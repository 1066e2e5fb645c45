// Retry policies and mirrors that a cluster has of its own: they take the place of those of the routes that lead there.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loopback, retrySettings } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { assertBalanced, GET, httpBench, OK } from '../support/http-bench.ts';
import { WireUpstream } from '../support/wire.ts';

const UNAVAILABLE = 'HTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n';
const MIRROR = {
  cluster: 'shadow',
  clusterHeader: '',
  fraction: { key: '', default: { numerator: 100, denominator: 100 } },
  appendsHostSuffix: true,
  hostRewrite: '',
  headEdits: [],
};

test('a cluster has its requests tried again, whatever their route says', async (t) => {
  const upstream = await WireUpstream.answering(UNAVAILABLE);
  const cluster = { retry: retrySettings({ maxRetries: 2 }) };
  const route = { retry: retrySettings({ maxRetries: 0 }) };
  const { client, proxy } = await httpBench(t, { upstream, cluster, route });
  assert.equal((await client().write(GET).response()).status, 503);
  assert.equal(upstream.heads.length, 3);
  assert.equal(proxy.clusterStat('web', 'upstream_rq_retry'), 2);
  assertBalanced(proxy);
});

test('a cluster may bound each try of routes without a policy', async (t) => {
  const upstream = await WireUpstream.start((socket) => socket.on('end', () => socket.end()));
  const cluster = { retry: retrySettings({ maxRetries: 0, perTryTimeoutMs: 20 }) };
  const { client, proxy } = await httpBench(t, { upstream, cluster });
  assert.equal((await client().write(GET).response()).status, 504);
  assert.equal(proxy.clusterStat('web', 'upstream_rq_per_try_timeout'), 1);
});

test('a cluster has its requests copied, and not where their route would', async (t) => {
  const [upstream, shadow, other] = await Promise.all([
    WireUpstream.answering(OK),
    WireUpstream.answering(OK),
    WireUpstream.answering(OK),
  ]);
  const route = { mirrors: [{ ...MIRROR, cluster: 'other' }] };
  const { client, proxy } = await httpBench(t, { upstream, cluster: { mirrors: [MIRROR] }, route });
  t.after(() => Promise.all([shadow.close(), other.close()]));
  proxy.cluster('shadow', [loopback(shadow.port)]);
  proxy.cluster('other', [loopback(other.port)]);
  assert.equal((await client().write(GET).response()).status, 200);
  await eventually(() => proxy.clusterStat('shadow', 'upstream_rq_completed') === 1, 'the copy is done');
  assert.deepEqual([shadow.heads.length, other.heads.length], [1, 0]);
});
