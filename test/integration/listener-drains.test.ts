// Connections of a listener that is replaced or removed: which responses end them, when they are cut, and how long they have when
// the process ends.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { RandomSequence } from '../../src/base/random.ts';
import type { DrainProgress } from '../../src/snapshot/index.ts';
import { clusterNamed, httpFilter, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { DataPlaneFixture, directRoute } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { startWeir } from '../support/weir-process.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
const DURATION_MS = 60_000;
const CONNECTIONS = 300;
/** The listener that a fixture opens first. */
const FIRST_ID = 1;

/** Connections that have had one response each, when their listener is stopped. */
async function drained(t: TestContext, progress: DrainProgress, count: number) {
  const clock = new ManualClock();
  const proxy = new DataPlaneFixture({ clock, random: new RandomSequence(7) });
  t.after(() => proxy.close());
  const port = await proxy.http([directRoute('/', 200, '')]);
  const clients = Array.from({ length: count }, () => new WireClient(port).write(GET));
  t.after(() => {
    for (const client of clients) client.close();
  });
  for (const client of clients) assert.equal((await client.response()).status, 200);
  const gone = Promise.withResolvers<void>();
  void proxy.dataPlane.stopListener(FIRST_ID, { drain: progress, onGone: gone.resolve });
  return { clock, proxy, clients, gone: gone.promise };
}

/** Of those that ask now. */
async function closedOf(clients: readonly WireClient[]): Promise<number> {
  for (const client of clients) client.write(GET);
  const heads = await Promise.all(clients.map(async (client) => (await client.response()).head));
  return heads.filter((head) => /^connection: close\r$/im.test(head)).length;
}

test('the share of responses that end their connections is that of the drain time that has passed', async (t) => {
  const gradual: DrainProgress = { strategy: 'gradual', elapsedMs: 0, durationMs: DURATION_MS };
  for (const share of [0, 0.25, 0.75]) {
    const { clock, proxy, clients } = await drained(t, gradual, CONNECTIONS);
    clock.turn(share * DURATION_MS);
    const closed = await closedOf(clients);
    // Four standard deviations; none where the share is 0.
    const tolerance = 4 * Math.sqrt(CONNECTIONS * share * (1 - share));
    assert.ok(Math.abs(closed - share * CONNECTIONS) <= tolerance, `${closed} of ${CONNECTIONS} at ${share}`);
    assert.equal(proxy.httpStat('downstream_cx_drain_close'), closed);
  }
});

test('an immediate drain ends every connection with its next response', async (t) => {
  const { clients } = await drained(t, { strategy: 'immediate', elapsedMs: 0, durationMs: DURATION_MS }, 10);
  assert.equal(await closedOf(clients), 10);
});

test('connections without another request are cut when the drain time is over, and not before', async (t) => {
  const { clock, proxy, clients, gone } = await drained(
    t,
    { strategy: 'gradual', elapsedMs: 0, durationMs: DURATION_MS },
    3,
  );
  clock.turn(DURATION_MS - 100);
  assert.equal(proxy.dataPlane.connectionCount, 3);
  clock.turn(200);
  for (const client of clients) assert.equal(await client.rest(), '');
  await eventually(() => proxy.dataPlane.connectionCount === 0, 'no connection is left');
  clock.turn(200);
  await gone;
});

test('the time that a shutdown may take is an option', async (t) => {
  const upstream = await WireUpstream.start(() => {});
  t.after(() => upstream.close());
  const routes = [{ match: { prefix: '/' }, route: { cluster: 'web', timeout: '0s' } }];
  const manager = httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } });
  const endpoints = [{ lb_endpoints: [{ endpoint: { address: socketAddress('127.0.0.1', upstream.port) } }] }];
  const configYaml = JSON.stringify({
    admin: { address: socketAddress('127.0.0.1', 0) },
    static_resources: {
      listeners: [listenerWith([manager], { address: socketAddress('127.0.0.1', 0) })],
      clusters: [clusterNamed('web', { load_assignment: { cluster_name: 'web', endpoints } })],
    },
  });
  const weir = await startWeir({ configYaml, args: ['--shutdown-grace-s', '3'] });
  t.after(() => weir.stop('SIGKILL'));
  const client = new WireClient((await weir.listeners()).get('main')!.port).write(GET);
  await weir.untilStat('cluster.web.upstream_rq_active', 1);
  const { code, stderr } = await weir.stop();
  assert.equal(code, 0);
  await client.rest();
  // The default would have had ten lines' time for it.
  const lines = stderr.split('\n').filter((line) => line.includes('1 connection is left')).length;
  assert.ok(lines >= 1 && lines <= 3, `${lines} lines`);
});
