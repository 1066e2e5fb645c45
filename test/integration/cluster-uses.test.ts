// Clusters that are replaced or removed while requests use them: what becomes of the requests, and when the worker says that
// nothing is used any more.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DataPlaneFixture, loopback, retrySettings } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { assertBalanced, GET, httpBench, OK } from '../support/http-bench.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { arrived, silent } from '../support/silent-upstream.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const UNAVAILABLE = 'HTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n';
/** Drawn as 999 of 1000. */
const BACK_OFF = { retry: retrySettings({ backOff: { baseMs: 1000, maxMs: 1000 } }) };
const LATE = { random: { u32: () => 999 } };

/** Removes the cluster. */
function remove({ dataPlane }: DataPlaneFixture, name: string): { readonly isUnused: boolean } {
  const removal = { isUnused: false };
  dataPlane.updateClusters([], [name], () => {
    removal.isUnused = true;
  });
  return removal;
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
}

test('a request that waits for its retry finds the cluster that has taken the place of its own', async (t) => {
  const [upstream, clock] = [await WireUpstream.answering(UNAVAILABLE), new ManualClock()];
  const next = await WireUpstream.answering(OK);
  const { client, proxy } = await httpBench(t, { upstream, clock, route: BACK_OFF, ...LATE });
  t.after(() => next.close());
  const wire = client().write(GET);
  await eventually(() => proxy.clusterStat('web', 'upstream_rq_retry') === 1, 'a retry waits');
  proxy.cluster('web', [loopback(next.port)], { connectTimeoutMs: 1234 });
  clock.turn(1100);
  assert.equal((await wire.response()).status, 200);
  assert.equal(next.sockets.length, 1);
  const removal = remove(proxy, 'web');
  await eventually(() => removal.isUnused, 'nothing uses the new one');
  assertBalanced(proxy);
});

test('a retry that moves to another cluster has its place there, and leaves none behind', async (t) => {
  const [upstream, next, clock] = [await WireUpstream.answering(UNAVAILABLE), await silent(), new ManualClock()];
  const retry = retrySettings({ backOff: { baseMs: 1000, maxMs: 1000 }, maxRetries: 2 });
  const { client, proxy } = await httpBench(t, { upstream, clock, route: { retry }, ...LATE });
  t.after(() => next.close());
  const former = proxy.recordOf('web');
  const retries = (record: number): number => proxy.breakerCountAt(record, 12);
  const wire = client().write(GET);
  await eventually(() => retries(former) === 1, 'a retry waits');
  // There would be no place for it any more.
  const none = { maxConnections: 1024, maxPendingRequests: 1024, maxRequests: 1024, maxRetries: 0 };
  const circuitBreakers = { default: none, high: none };
  const { recordAddress: successor } = proxy.successor('web', [loopback(next.port)], { circuitBreakers });
  assert.notEqual(successor, former);
  clock.turn(1100);
  const second = await arrived(next.requests, 1);
  assert.deepEqual([retries(former), retries(successor)], [0, 1]);
  // What comes after it is decided by the successor.
  second.socket.write(UNAVAILABLE);
  assert.equal((await wire.response()).status, 503);
  assert.equal(proxy.clusterStat('web', 'upstream_rq_retry_overflow'), 1);
  assert.deepEqual([retries(former), retries(successor)], [0, 0]);
  assertBalanced(proxy);
});

test('a slow try and its retry have their places under different clusters', async (t) => {
  const [upstream, next, clock] = [await silent(), await silent(), new ManualClock()];
  const retry = retrySettings({ perTryTimeoutMs: 100, backOff: { baseMs: 1000, maxMs: 1000 }, maxRetries: 3 });
  const route = { retry, hedgesOnPerTryTimeout: true, initialRequests: 2 };
  const { client, proxy } = await httpBench(t, { upstream, clock, route, ...LATE });
  t.after(() => next.close());
  const former = proxy.recordOf('web');
  const retries = (record: number): number => proxy.breakerCountAt(record, 12);
  const wire = client().write(GET);
  await arrived(upstream.requests, 2);
  assert.equal(retries(former), 1);
  clock.turn(120);
  assert.equal(retries(former), 2);
  const { recordAddress: successor } = proxy.successor('web', [loopback(next.port)], { connectTimeoutMs: 1234 });
  clock.turn(1100);
  const third = await arrived(next.requests, 1);
  assert.deepEqual([retries(former), retries(successor)], [1, 1]);
  third.socket.write(OK);
  assert.equal((await wire.response()).status, 200);
  assert.deepEqual([retries(former), retries(successor)], [0, 0]);
  assertBalanced(proxy);
});

test('a request that waits for its retry uses its cluster, and has no upstream when that has gone', async (t) => {
  const [upstream, clock] = [await WireUpstream.answering(UNAVAILABLE), new ManualClock()];
  const { client, proxy } = await httpBench(t, { upstream, clock, route: BACK_OFF, ...LATE });
  const wire = client().write(GET);
  await eventually(() => proxy.clusterStat('web', 'upstream_rq_retry') === 1, 'a retry waits');
  await eventually(() => proxy.clusterStat('web', 'upstream_cx_active') === 1, 'its connection is idle');
  const removal = remove(proxy, 'web');
  await turns();
  assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 0);
  assert.ok(!removal.isUnused, 'only the request is left');
  clock.turn(1100);
  const { status, body } = await wire.response();
  assert.deepEqual([status, body], [503, 'no healthy upstream']);
  await eventually(() => removal.isUnused, 'the request is over');
  assertBalanced(proxy);
});

test('a tunnel uses its cluster until it ends', async () => {
  const upstream = await WireUpstream.start((socket) => socket.pipe(socket));
  const proxy = new DataPlaneFixture();
  proxy.cluster('raw', [loopback(upstream.port)]);
  const wire = new WireClient(await proxy.tcp('raw'));
  await wire.write('one').until('one');
  const removal = remove(proxy, 'raw');
  await wire.write('two').until('two');
  await turns();
  assert.ok(!removal.isUnused);
  wire.close();
  await eventually(() => removal.isUnused, 'the tunnel has ended');
  await proxy.close();
  await upstream.close();
});
