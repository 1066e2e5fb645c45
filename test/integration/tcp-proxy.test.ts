// The TCP proxy by bytes on the wire, in both ways of reading sockets.

import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { Random } from '../../src/base/random.ts';
import type { TcpProxySettings } from '../../src/snapshot/index.ts';
import { HealthFlag } from '../../src/wasm/shared-memory.ts';
import { type ClusterOverrides, DataPlaneFixture, loopback, tcpProxy } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { peerEnd, unusedPort, WireClient, WireUpstream } from '../support/wire.ts';

/** Goes through the kernel's buffers in one read. */
const PIECE_BYTES = 32 * 1024;

interface Options {
  readonly readMode?: 'lean' | 'events';
  readonly clock?: ManualClock;
  readonly random?: Random;
  readonly cluster?: ClusterOverrides;
  readonly settings?: Partial<TcpProxySettings>;
  readonly ports?: readonly number[];
}

async function proxyTo(t: TestContext, upstream: WireUpstream | null, options: Options = {}) {
  const { readMode = 'lean', clock, random } = options;
  const proxy = new DataPlaneFixture({
    readMode,
    ...(clock === undefined ? {} : { clock }),
    ...(random === undefined ? {} : { random }),
  });
  const ports = options.ports ?? (upstream === null ? [] : [upstream.port]);
  proxy.cluster('raw', ports.map(loopback), options.cluster);
  const port = await proxy.tcp('raw', options.settings);
  t.after(async () => {
    const closed = proxy.close();
    clock?.turn(1000);
    await closed;
    await upstream?.close();
  });
  return { proxy, port };
}

function assertBalanced(proxy: DataPlaneFixture): void {
  const cluster = (stat: Parameters<typeof proxy.clusterStat>[1]): number => proxy.clusterStat('raw', stat);
  assert.equal(cluster('upstream_cx_total') - cluster('upstream_cx_destroy'), cluster('upstream_cx_active'));
  assert.equal(proxy.breakerCount('raw', 0), cluster('upstream_cx_active'));
  const { listenerStat, dataPlane } = proxy;
  assert.equal(
    listenerStat('downstream_cx_total') - listenerStat('downstream_cx_destroy'),
    listenerStat('downstream_cx_active'),
  );
  assert.equal(listenerStat('downstream_cx_active'), dataPlane.connectionCount);
  assert.equal(proxy.tcpStat('upstream_flush_active'), 0);
}

for (const readMode of ['lean', 'events'] as const) {
  describe(`reading by ${readMode}`, () => {
    test('10 MB go through unharmed both ways at once, with a slow reader on either side', async (t) => {
      const down = randomBytes(10_000_000);
      const up = randomBytes(10_000_000);
      const hash = createHash('sha256');
      const received = Promise.withResolvers<string>();
      const upstream = await WireUpstream.start((socket) => {
        socket.write(down);
        socket.on('data', (chunk: Buffer) => {
          hash.update(chunk);
          socket.pause();
          setImmediate(() => socket.resume());
        });
        socket.on('end', () => {
          received.resolve(hash.digest('hex'));
          socket.end();
        });
      });
      const { proxy, port } = await proxyTo(t, upstream, { readMode });
      const wire = new WireClient(port);
      const slowly = setInterval(() => (wire.socket.isPaused() ? wire.socket.resume() : wire.socket.pause()), 1);
      wire.socket.end(up);
      const bytes = await wire.bytes(down.length);
      clearInterval(slowly);
      wire.socket.resume();
      assert.ok(bytes.equals(down));
      assert.equal(await received.promise, createHash('sha256').update(up).digest('hex'));
      assert.equal(await wire.rest(), '');
      await eventually(() => proxy.dataPlane.connectionCount === 0, 'the connection is closed');
      assert.equal(proxy.tcpStat('downstream_cx_rx_bytes_total'), up.length);
      assert.equal(proxy.tcpStat('downstream_cx_tx_bytes_total'), down.length);
      assert.equal(proxy.clusterStat('raw', 'upstream_cx_rx_bytes_total'), down.length);
      assert.equal(proxy.clusterStat('raw', 'upstream_cx_tx_bytes_total'), up.length);
      assert.equal(proxy.dataPlane.readSlabBytes, 0);
      assertBalanced(proxy);
    });

    test('a client is held back as long as its upstream does not read', async (t) => {
      const upstream = await WireUpstream.start((socket) => socket.pause());
      const { proxy, port } = await proxyTo(t, upstream, { readMode });
      // More than all the kernel's buffers on the way hold.
      const wire = new WireClient(port).write(Buffer.alloc(64_000_000));
      const isHeldBack = (): boolean => proxy.tcpStat('downstream_flow_control_paused_reading_total') > 0;
      await eventually(isHeldBack, 'the client is held back');
      wire.close();
    });

    test('each side may end its half first; the other half goes on', async (t) => {
      const upstream = await WireUpstream.start((socket, index) => {
        if (index === 0) socket.on('end', () => socket.end('late answer'));
        else socket.end('greeting');
        socket.on('data', (chunk: Buffer) => socket.emit('text', chunk.toString()));
      });
      const { proxy, port } = await proxyTo(t, upstream, { readMode });
      const asking = new WireClient(port);
      asking.socket.end('question');
      assert.equal(await asking.rest(), 'late answer');
      const listening = new WireClient(port);
      assert.equal(await listening.rest(), 'greeting');
      const [text] = await Promise.all([once(upstream.sockets[1]!, 'text'), listening.socket.end('thanks')]);
      assert.equal(text[0], 'thanks');
      await eventually(() => proxy.dataPlane.connectionCount === 0, 'both are closed');
      assertBalanced(proxy);
    });

    test('what a client has sent before it ended still arrives when the upstream had ended first', async (t) => {
      const upstream = await WireUpstream.start((socket) => socket.end('greeting').pause());
      const { proxy, port } = await proxyTo(t, upstream, { readMode });
      const wire = new WireClient(port);
      assert.equal(await wire.rest(), 'greeting');
      // Piece by piece, so that the last one waits here while the client's end is the next to be read.
      let sent = 0;
      while (proxy.tcpStat('downstream_flow_control_paused_reading_total') === 0) {
        wire.write(Buffer.alloc(PIECE_BYTES, 'x'));
        sent += PIECE_BYTES;
        await eventually(() => proxy.tcpStat('downstream_cx_rx_bytes_total') === sent, 'a piece');
      }
      wire.socket.end();
      if (readMode === 'events') {
        await eventually(() => proxy.tcpStat('upstream_flush_active') === 1, 'the flush');
        assert.equal(proxy.tcpStat('upstream_flush_total'), 1);
      }
      let arrived = 0;
      upstream.sockets[0]!.on('data', (chunk: Buffer) => {
        arrived += chunk.length;
      });
      assert.equal(await peerEnd(upstream.sockets[0]!), 'end');
      assert.equal(arrived, sent);
      await eventually(() => proxy.dataPlane.connectionCount === 0, 'the connection is closed');
      const count = (what: 'backed_up' | 'drained'): number =>
        proxy.clusterStat('raw', `upstream_flow_control_${what}_total`);
      assert.equal(count('drained'), count('backed_up'));
      await eventually(() => proxy.clusterStat('raw', 'upstream_cx_active') === 0, 'the upstream is closed');
      assertBalanced(proxy);
    });
  });
}

describe('the TCP proxy', () => {
  test('holds early bytes until its upstream is there, which is no flow control', async (t) => {
    const upstream = await WireUpstream.start((socket) => socket.pipe(socket));
    const { proxy, port } = await proxyTo(t, upstream);
    const wire = new WireClient(port).write('at once');
    assert.equal((await wire.bytes(7)).toString(), 'at once');
    wire.write('later');
    assert.equal((await wire.bytes(5)).toString(), 'later');
    assert.equal(proxy.tcpStat('downstream_flow_control_paused_reading_total'), 0);
    assert.equal(proxy.tcpStat('downstream_flow_control_resumed_reading_total'), 0);
    wire.close();
  });

  test('closes the client when there is no cluster, no host, or nobody who accepts', async (t) => {
    const dead = await unusedPort();
    const { proxy, port } = await proxyTo(t, null, { ports: [dead], settings: { maxConnectAttempts: 2 } });
    assert.equal(await new WireClient(port).rest(), '');
    assert.equal(proxy.clusterStat('raw', 'upstream_cx_connect_fail'), 2);
    assert.equal(proxy.clusterStat('raw', 'upstream_cx_connect_attempts_exceeded'), 1);
    proxy.cluster('raw', []);
    assert.equal(await new WireClient(port).rest(), '');
    assert.equal(proxy.clusterStat('raw', 'upstream_cx_none_healthy'), 1);
    proxy.dataPlane.updateClusters([], ['raw']);
    assert.equal(await new WireClient(port).rest(), '');
    assert.equal(proxy.tcpStat('downstream_cx_no_route'), 1);
    assert.equal(proxy.tcpStat('downstream_cx_total'), 3);
    await eventually(() => proxy.listenerStat('downstream_cx_active') === 0, 'all are closed');
    assertBalanced(proxy);
  });

  test('tries another host when the first does not accept', async (t) => {
    const upstream = await WireUpstream.start((socket) => socket.pipe(socket));
    const { proxy, port } = await proxyTo(t, upstream, {
      ports: [await unusedPort(), upstream.port],
      settings: { maxConnectAttempts: 2 },
    });
    const wire = new WireClient(port).write('hello');
    assert.equal((await wire.bytes(5)).toString(), 'hello');
    assert.equal(proxy.clusterStat('raw', 'upstream_cx_connect_fail'), 1);
    wire.close();
    await eventually(() => proxy.dataPlane.connectionCount === 0, 'the connection is closed');
    assertBalanced(proxy);
  });

  test('respects the connection limit of its cluster', async (t) => {
    const upstream = await WireUpstream.start((socket) => socket.pipe(socket));
    const one = { maxConnections: 1, maxPendingRequests: 1, maxRequests: 1, maxRetries: 1 };
    const { proxy, port } = await proxyTo(t, upstream, { cluster: { circuitBreakers: { default: one, high: one } } });
    const first = new WireClient(port).write('x');
    await first.bytes(1);
    assert.equal(await new WireClient(port).rest(), '');
    assert.equal(proxy.clusterStat('raw', 'upstream_cx_overflow'), 1);
    first.close();
    await eventually(() => proxy.dataPlane.connectionCount === 0, 'the first is closed');
    const third = new WireClient(port).write('y');
    await third.bytes(1);
    third.close();
    await eventually(() => proxy.dataPlane.connectionCount === 0, 'the third is closed');
    assertBalanced(proxy);
  });

  test('an idle connection closes after the idle timeout, one in use does not', async (t) => {
    const clock = new ManualClock();
    const upstream = await WireUpstream.start((socket) => socket.pipe(socket));
    const { proxy, port } = await proxyTo(t, upstream, { clock, settings: { idleTimeoutMs: 10_000 } });
    const wire = new WireClient(port);
    for (let i = 0; i < 3; i++) {
      wire.write('x');
      await wire.bytes(1);
      clock.turn(6000);
    }
    assert.equal(proxy.tcpStat('idle_timeout'), 0);
    clock.turn(5000);
    assert.equal(await wire.rest(), '');
    assert.equal(proxy.tcpStat('idle_timeout'), 1);
    assertBalanced(proxy);
  });

  test('a connection closes at its maximum duration, even in use', async (t) => {
    const clock = new ManualClock();
    const upstream = await WireUpstream.start((socket) => socket.pipe(socket));
    const settings = { idleTimeoutMs: 0, maxConnectionDurationMs: 10_000, maxConnectionDurationJitterPercent: 50 };
    // Of the 5 seconds of jitter, 2.
    const { proxy, port } = await proxyTo(t, upstream, { clock, settings, random: { u32: () => 12_000 } });
    const wire = new WireClient(port);
    for (let i = 0; i < 2; i++) {
      wire.write('x');
      await wire.bytes(1);
      clock.turn(5500);
    }
    assert.equal(proxy.tcpStat('max_downstream_connection_duration'), 0);
    clock.turn(1100);
    assert.equal(await wire.rest(), '');
    assert.equal(proxy.tcpStat('max_downstream_connection_duration'), 1);
    assert.equal(proxy.tcpStat('idle_timeout'), 0);
    assertBalanced(proxy);
  });

  test('waits between attempts to connect, at random below a bound that doubles', async (t) => {
    const clock = new ManualClock();
    const dead = await unusedPort();
    const settings = { maxConnectAttempts: 3, connectBackoff: { baseMs: 1000, maxMs: 1500 } };
    const random = { u32: () => 1_000_000_400 };
    const { proxy, port } = await proxyTo(t, null, { clock, ports: [dead], settings, random });
    const wire = new WireClient(port);
    const failures = (): number => proxy.clusterStat('raw', 'upstream_cx_connect_fail');
    const waits: number[] = [];
    for (let attempt = 1; attempt < 3; attempt++) {
      await eventually(() => failures() === attempt, `failure ${attempt}`);
      assert.equal(proxy.clusterStat('raw', 'upstream_cx_active'), 0);
      let waitedMs = 0;
      for (; proxy.clusterStat('raw', 'upstream_cx_total') === attempt; waitedMs += 100) clock.turn(100);
      waits.push(waitedMs);
    }
    // What is left of the random number below 1000 and below 1500.
    assert.deepEqual(waits, [400, 1400]);
    assert.equal(await wire.rest(), '');
    assert.equal(failures(), 3);
    assertBalanced(proxy);
  });

  test('a client that leaves between two attempts takes the next one with it', async (t) => {
    const clock = new ManualClock();
    const settings = { maxConnectAttempts: 2, connectBackoff: { baseMs: 1000, maxMs: 1000 } };
    const { proxy, port } = await proxyTo(t, null, { clock, ports: [await unusedPort()], settings });
    const wire = new WireClient(port);
    await eventually(() => proxy.clusterStat('raw', 'upstream_cx_connect_fail') === 1, 'the first failure');
    wire.socket.resetAndDestroy();
    await eventually(() => proxy.dataPlane.connectionCount === 0, 'the connection is closed');
    clock.turn(5000);
    assert.equal(proxy.clusterStat('raw', 'upstream_cx_total'), 1);
    assertBalanced(proxy);
  });

  test('divides its connections among clusters by weight', async (t) => {
    const named = (name: string): Promise<WireUpstream> => WireUpstream.start((socket) => socket.end(name));
    const upstreams = await Promise.all(['one', 'two', 'three'].map(named));
    const draws = [0, 1, 2, 6, 7, 9, 10, 17];
    const settings = {
      clusters: [
        { cluster: 'one', weight: 2, criteria: null },
        { cluster: 'two', weight: 5, criteria: null },
        { cluster: 'three', weight: 3, criteria: null },
      ],
    };
    const { proxy, port } = await proxyTo(t, null, { settings, random: { u32: () => draws[0]! } });
    t.after(() => Promise.all(upstreams.map((upstream) => upstream.close())));
    for (const [index, name] of ['one', 'two', 'three'].entries())
      proxy.cluster(name, [loopback(upstreams[index]!.port)]);
    const chosen: string[] = [];
    while (draws.length > 0) {
      const wire = new WireClient(port);
      chosen.push(await wire.rest());
      wire.close();
      draws.shift();
    }
    assert.deepEqual(chosen, ['one', 'one', 'two', 'two', 'three', 'three', 'one', 'three']);
    assert.equal(proxy.clusterStat('two', 'upstream_cx_total'), 2);
    assert.equal(proxy.clusterStat('raw', 'upstream_cx_total'), 0);
  });

  test('draws a cluster anew when an attempt to connect has failed', async (t) => {
    const upstream = await WireUpstream.start((socket) => socket.end('here'));
    const clusters = [
      { cluster: 'raw', weight: 1, criteria: null },
      { cluster: 'other', weight: 1, criteria: null },
    ];
    let fixture: DataPlaneFixture | undefined;
    const { proxy, port } = await proxyTo(t, null, {
      ports: [await unusedPort()],
      settings: { clusters, maxConnectAttempts: 2 },
      random: { u32: () => fixture?.clusterStat('raw', 'upstream_cx_total') ?? 0 },
    });
    fixture = proxy;
    t.after(() => upstream.close());
    proxy.cluster('other', [loopback(upstream.port)]);
    const wire = new WireClient(port);
    assert.equal(await wire.rest(), 'here');
    wire.close();
    assert.equal(proxy.clusterStat('raw', 'upstream_cx_connect_fail'), 1);
    assert.equal(proxy.clusterStat('other', 'upstream_cx_total'), 1);
  });

  test('counts when an upstream is slow to take what the client sends', async (t) => {
    const upstream = await WireUpstream.start((socket) => socket.pause());
    const { proxy, port } = await proxyTo(t, upstream);
    const wire = new WireClient(port).write(randomBytes(20_000_000));
    const count = (what: 'backed_up' | 'drained'): number =>
      proxy.clusterStat('raw', `upstream_flow_control_${what}_total`);
    await eventually(() => count('backed_up') === 1, 'the upstream does not take more');
    assert.equal(count('drained'), 0);
    upstream.sockets[0]!.resume();
    await eventually(() => count('drained') > 0, 'the upstream takes it');
    wire.close();
  });

  test('when the process ends, a connection goes on while bytes move, and ends when they do not', async (t) => {
    const clock = new ManualClock();
    const upstream = await WireUpstream.start((socket) => socket.pipe(socket));
    const { proxy, port } = await proxyTo(t, upstream, { clock, settings: { idleTimeoutMs: 0 } });
    const [busy, silent] = [new WireClient(port), new WireClient(port)];
    for (const wire of [busy, silent]) await wire.write('x').bytes(1);
    const done = proxy.dataPlane.shutdown(60_000);
    await eventually(() => clock.timerCount > 0, 'the stop waits');
    for (let i = 0; i < 5; i++) {
      clock.turn(200);
      await busy.write('y').bytes(1);
    }
    assert.equal(await silent.rest(), '');
    assert.equal(proxy.dataPlane.connectionCount, 1);
    clock.turn(300);
    assert.equal(await busy.rest(), '');
    clock.turn(100);
    await done;
    assert.equal(proxy.tcpStat('idle_timeout'), 0);
    assertBalanced(proxy);
  });

  test('when the process ends, what a slow client has not taken yet still arrives', async (t) => {
    const clock = new ManualClock();
    const bytes = randomBytes(5_000_000);
    const upstream = await WireUpstream.start((socket) => socket.write(bytes));
    const { proxy, port } = await proxyTo(t, upstream, { clock });
    const wire = new WireClient(port);
    wire.socket.pause();
    const paused = (): number => proxy.clusterStat('raw', 'upstream_flow_control_paused_reading_total');
    await eventually(() => paused() > 0, 'the client does not take more');
    const done = proxy.dataPlane.shutdown(60_000);
    await eventually(() => clock.timerCount > 0, 'the stop waits');
    clock.turn(5000);
    assert.equal(proxy.dataPlane.connectionCount, 1);
    wire.socket.resume();
    assert.ok((await wire.bytes(bytes.length)).equals(bytes));
    const resumed = (): number => proxy.clusterStat('raw', 'upstream_flow_control_resumed_reading_total');
    await eventually(() => resumed() === paused(), 'reading goes on');
    clock.turn(1000);
    assert.equal(await wire.rest(), '');
    clock.turn(100);
    await done;
  });

  describe('when its host has failed, what a slow client has not taken yet', () => {
    const IDLE_TIMEOUT_MS = 10_000;

    /** Floods a client that does not read, and then has the health check of the host fail. */
    async function failedHost(t: TestContext) {
      const clock = new ManualClock();
      const upstream = await WireUpstream.start((socket) => socket.write(Buffer.alloc(20_000_000, 'x')));
      const cluster = { closeConnectionsOnHostHealthFailure: true };
      const options = { clock, cluster, settings: { idleTimeoutMs: IDLE_TIMEOUT_MS } };
      const { proxy, port } = await proxyTo(t, upstream, options);
      const wire = new WireClient(port);
      wire.socket.pause();
      const stat = (name: Parameters<typeof proxy.clusterStat>[1]): number => proxy.clusterStat('raw', name);
      await eventually(() => stat('upstream_flow_control_paused_reading_total') > 0, 'the client does not take more');
      const snapshot = proxy.cluster('raw', [loopback(upstream.port)], cluster);
      proxy.context.records.setHealthFlag(snapshot.hosts[0]!.recordAddress, HealthFlag.failedActiveHealthCheck, true);
      proxy.cluster('raw', [loopback(upstream.port)], cluster);
      assert.equal(stat('upstream_cx_active'), 0);
      return { proxy, clock, wire, received: stat('upstream_cx_rx_bytes_total') };
    }

    test('still arrives', async (t) => {
      const { proxy, wire, received } = await failedHost(t);
      assert.equal(proxy.dataPlane.connectionCount, 1);
      wire.socket.resume();
      assert.equal((await wire.rest()).length, received);
      assert.equal(wire.error, null);
      wire.socket.end();
      await eventually(() => proxy.dataPlane.connectionCount === 0, 'the connection is closed');
      assert.equal(proxy.tcpStat('idle_timeout'), 0);
      assertBalanced(proxy);
    });

    test('arrives also if the client goes on talking', async (t) => {
      const { proxy, clock, wire, received } = await failedHost(t);
      // A read at a time, so that much is on its way while the client talks.
      const takeLittle = (): void => {
        wire.write('x').socket.pause();
        setImmediate(() => wire.socket.resume());
      };
      wire.socket.on('data', takeLittle).resume();
      assert.equal((await wire.rest()).length, received);
      assert.equal(wire.error, null);
      await eventually(() => {
        clock.turn(1);
        return proxy.dataPlane.connectionCount === 0;
      }, 'the connection is closed');
      assert.equal(proxy.tcpStat('idle_timeout'), 0);
    });

    test('is given up after the idle timeout', async (t) => {
      const { proxy, clock } = await failedHost(t);
      // What was on its way to the client counts as progress, whenever its system tells of it.
      await eventually(() => {
        clock.turn(IDLE_TIMEOUT_MS);
        return proxy.dataPlane.connectionCount === 0;
      }, 'the connection is closed');
      assert.equal(proxy.tcpStat('idle_timeout'), 1);
      assertBalanced(proxy);
    });
  });

  test('listens on and connects to unix sockets', async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const upstream = await WireUpstream.start((socket) => socket.pipe(socket));
    const { proxy } = await proxyTo(t, upstream);
    const address = { kind: 'pipe', path: path.join(folder, 'in.sock'), mode: 0o600 } as const;
    assert.equal(await proxy.listen(tcpProxy('raw', { idleTimeoutMs: 0 }), address), 0);
    assert.equal(statSync(address.path).mode & 0o777, 0o600);
    proxy.cluster('second', [address]);
    const port = await proxy.listen(tcpProxy('second'));
    for (const socket of [connect(address.path), connect(port, '127.0.0.1')]) {
      socket.end('through');
      const [chunk] = await once(socket, 'data');
      assert.equal(String(chunk), 'through');
      await once(socket, 'close');
    }
  });
});
