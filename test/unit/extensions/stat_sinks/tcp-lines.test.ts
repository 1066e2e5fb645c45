// Lines over TCP to the hosts of a cluster, which come, go, hang and are full.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import type { ActiveCluster, ClusterHost } from '../../../../src/control-plane/index.ts';
import { TcpLines } from '../../../../src/extensions/stat_sinks/lines/tcp-lines.ts';
import { CLUSTER_STATS } from '../../../../src/stats/index.ts';
import { eventually } from '../../../support/eventually.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { TcpReceiver } from '../../../support/metric-receivers.ts';
import { type SinkSurroundings, sinkSurroundings } from '../../../support/stat-sinks.ts';
import { statsFixture } from '../../../support/stats.ts';

interface Fixture extends SinkSurroundings {
  readonly clock: ManualClock;
  readonly lines: TcpLines;
  readonly clusterStats: ActiveCluster['stats'];
  /** Where the host of the cluster is; 0 for no host. */
  port: number;
}

function fixture(port: number): Fixture {
  const clock = new ManualClock();
  const clusterStats = statsFixture().store.scope('cluster.metrics.').allocate(CLUSTER_STATS);
  const cluster = { stats: clusterStats, settings: { connectTimeoutMs: 5000 } } as unknown as ActiveCluster;
  const hostOf = (): ClusterHost | undefined => {
    if (made.port === 0) return undefined;
    const address = { kind: 'ip', ip: '127.0.0.1', port: made.port } as const;
    return { cluster, address, connect: () => connect({ host: address.ip, port: address.port }) };
  };
  const surroundings = sinkSurroundings({ clock, hostOf });
  const made = { ...surroundings, clock, clusterStats, port, lines: new TcpLines('metrics', surroundings.context) };
  return made;
}

function flush({ lines }: Fixture, ...texts: readonly string[]): void {
  lines.begin();
  for (const text of texts) lines.send(text);
  lines.end();
}

const LONG = 'x'.repeat(64 * 1024);

describe('lines over TCP', () => {
  it('come over one connection, which the cluster counts', async () => {
    await using receiver = await TcpReceiver.open();
    const given = fixture(receiver.port);
    const { clusterStats, count, lines } = given;
    flush(given, 'a:1|c', 'b:2|g');
    await receiver.until((got) => got.length === 2);
    flush(given, 'c:3|ms');
    await receiver.until((got) => got.length === 3);
    assert.equal(receiver.text, 'a:1|c\nb:2|g\nc:3|ms\n');
    assert.equal(receiver.sockets.size, 1);
    assert.equal(clusterStats.value('upstream_cx_total'), 1);
    assert.equal(clusterStats.value('upstream_cx_active'), 1);
    await eventually(() => clusterStats.value('upstream_cx_tx_bytes_total') === receiver.text.length, 'bytes');
    assert.equal(count('metrics_sent'), 3);
    await lines.close();
    assert.equal(clusterStats.value('upstream_cx_active'), 0);
    assert.equal(clusterStats.value('upstream_cx_destroy_local'), 1);
  });

  it('wait for a host that refuses, and go to it when it is back after a pause', async () => {
    const gone = await TcpReceiver.open();
    const { port } = gone;
    await gone[Symbol.asyncDispose]();
    const given = fixture(port);
    const { clock, clusterStats, count } = given;
    flush(given, 'a:1|c');
    await eventually(() => clusterStats.value('upstream_cx_connect_fail') === 1, 'a refusal');
    assert.equal(count('send_failures'), 1);
    await using receiver = await TcpReceiver.open({ port });
    flush(given, 'b:1|c');
    assert.equal(clusterStats.value('upstream_cx_total'), 1, 'not before the pause is over');
    clock.turn(30_000);
    flush(given, 'c:1|c');
    await receiver.until((got) => got.length === 3);
    assert.deepEqual(receiver.lines, ['a:1|c', 'b:1|c', 'c:1|c']);
    assert.equal(count('metrics_dropped'), 0);
    await given.lines.close();
  });

  it('find another connection when theirs is reset', async () => {
    await using receiver = await TcpReceiver.open();
    const given = fixture(receiver.port);
    flush(given, 'a:1|c');
    await receiver.until((got) => got.length === 1);
    for (const socket of receiver.sockets) socket.resetAndDestroy();
    await eventually(() => given.clusterStats.value('upstream_cx_destroy_remote') === 1, 'the end');
    given.clock.turn(30_000);
    flush(given, 'b:1|c');
    await receiver.until((got) => got.includes('b:1|c'));
    assert.equal(given.clusterStats.value('upstream_cx_total'), 2);
    await given.lines.close();
  });

  it('are dropped and counted beyond 16 MiB without a host', async () => {
    const given = fixture(0);
    for (let line = 0; line < 300; line++) flush(given, LONG);
    const dropped = given.count('metrics_dropped');
    assert.equal(dropped, 300 - Math.floor((16 * 1024 * 1024) / (LONG.length + 1)));
    assert.equal(given.context.stats.value('statsd.cx_overflow'), dropped, 'each flush had one line');
    assert.ok(given.count('queued_bytes') <= 16 * 1024 * 1024);
    await given.lines.close();
    assert.equal(given.count('metrics_dropped'), 300, 'what waits at the end is lost, and counted');
  });

  it('are dropped beyond 16 MiB at a host that takes nothing, which is given up for another', async () => {
    await using deaf = await TcpReceiver.open({ isDeaf: true });
    const given = fixture(deaf.port);
    const { clock, count, clusterStats } = given;
    flush(given, 'a:1|c');
    await eventually(() => deaf.sockets.size === 1, 'a connection');
    await eventually(() => {
      flush(given, LONG);
      return count('metrics_dropped') > 0;
    }, 'a full queue');
    assert.ok(count('queued_bytes') <= 16 * 1024 * 1024);
    await using receiver = await TcpReceiver.open();
    given.port = receiver.port;
    clock.turn(10_000);
    flush(given, 'b:1|c');
    assert.equal(clusterStats.value('upstream_cx_destroy'), 0, 'it may still take some');
    clock.turn(6_000);
    flush(given, 'c:1|c');
    await eventually(() => clusterStats.value('upstream_cx_destroy_local') === 1, 'the end');
    clock.turn(30_000);
    flush(given, 'd:1|c');
    await receiver.until((got) => got.includes('d:1|c'));
    await given.lines.close();
  });

  it('give a connection up that is not there in time', async () => {
    const clock = new ManualClock();
    // Nobody answers there: the network is for documents.
    const cluster = fixture(0);
    const silent = { kind: 'ip', ip: '192.0.2.1', port: 9 } as const;
    const stats = cluster.clusterStats;
    const host = {
      cluster: { stats, settings: { connectTimeoutMs: 5000 } } as unknown as ActiveCluster,
      address: silent,
    };
    const server = await TcpReceiver.open();
    const { context, count } = sinkSurroundings({
      clock,
      // A connection whose answer is never looked at.
      hostOf: () => ({ ...host, connect: () => connect({ host: '127.0.0.1', port: server.port, lookup: () => {} }) }),
    });
    const lines = new TcpLines('metrics', context);
    lines.begin();
    clock.turn(5000);
    await eventually(() => count('send_failures') === 1, 'a failure');
    assert.equal(stats.value('upstream_cx_connect_timeout'), 1);
    await lines.close();
    await server[Symbol.asyncDispose]();
  });
});
