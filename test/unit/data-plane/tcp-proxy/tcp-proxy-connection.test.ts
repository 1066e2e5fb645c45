// A proxied TCP connection in each of its states: real clients, and upstreams that do what the test says when it says so.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { DownstreamConnection } from '../../../../src/data-plane/network/downstream-connection.ts';
import { PausedPeers } from '../../../../src/data-plane/network/paused-peers.ts';
import { QUIET_MS } from '../../../../src/data-plane/network/terminal-filter.ts';
import { RetiredHosts } from '../../../../src/data-plane/upstream/retired-hosts.ts';
import { packClusters } from '../../../../src/snapshot/index.ts';
import { HealthFlag } from '../../../../src/wasm/shared-memory.ts';
import { NO_LIMITS } from '../../../support/clusters.ts';
import { DEFAULT_HASHING } from '../../../support/lb.ts';
import {
  CONNECT_TIMEOUT_MS,
  IDLE_TIMEOUT_MS,
  TcpProxyBench,
  type TcpProxyBenchOptions,
} from '../../../support/tcp-proxy-bench.ts';
import { peerEnd, type WireClient } from '../../../support/wire.ts';

const PIECE = 'x'.repeat(32 * 1024);
/** Timers fire up to one tick late. */
const TICK_MS = 8;
const SOURCE_IP = { kind: 'source-ip' } as const;

/** With one client, whose upstream has accepted. */
async function opened(
  t: TestContext,
  options: TcpProxyBenchOptions = {},
): Promise<{ bench: TcpProxyBench; wire: WireClient }> {
  const bench = new TcpProxyBench(t, options);
  const wire = await bench.client();
  bench.upstream.accept();
  return { bench, wire };
}

/** Has the proxy hold bytes that its upstream does not take. @returns all that the client has sent. */
async function heldBack({ bench, wire }: { bench: TcpProxyBench; wire: WireClient }): Promise<string> {
  bench.upstream.isSlow = true;
  wire.write(PIECE);
  await bench.until(() => bench.upstream.received !== '', 'the bytes');
  return bench.upstream.received;
}

describe('a client whose upstream is not there yet', () => {
  test('has what it sends kept for it, which is no flow control', async (t) => {
    const bench = new TcpProxyBench(t, {});
    const wire = (await bench.client()).write('early');
    await bench.until(() => bench.stat('downstream_cx_rx_bytes_total') === 5, 'the bytes');
    assert.equal(bench.stat('downstream_cx_rx_bytes_buffered'), 5);
    wire.write(' and late');
    await bench.settle();
    assert.equal(bench.upstream.received, '');
    bench.upstream.accept();
    assert.equal(bench.upstream.received, 'early');
    assert.equal(bench.stat('downstream_cx_rx_bytes_buffered'), 0);
    await bench.until(() => bench.upstream.received === 'early and late', 'the rest');
    assert.equal(bench.stat('downstream_flow_control_paused_reading_total'), 0);
    assert.equal(bench.stat('downstream_flow_control_resumed_reading_total'), 0);
  });

  test('is held back when the upstream takes nothing at first', async (t) => {
    const bench = new TcpProxyBench(t, {});
    const wire = (await bench.client()).write('early');
    await bench.until(() => bench.stat('downstream_cx_rx_bytes_total') === 5, 'the bytes');
    bench.upstream.isSlow = true;
    bench.upstream.accept();
    wire.write('late');
    await bench.settle();
    assert.equal(bench.upstream.received, 'early');
    assert.equal(bench.stat('downstream_flow_control_paused_reading_total'), 1);
    bench.upstream.take();
    await bench.until(() => bench.upstream.received === 'earlylate', 'the rest');
    assert.equal(bench.stat('downstream_flow_control_resumed_reading_total'), 1);
  });

  test('may end before, and its end comes behind its bytes', async (t) => {
    const bench = new TcpProxyBench(t, {});
    const wire = await bench.client();
    wire.socket.end();
    await bench.settle();
    assert.ok(bench.upstream.isLive);
    bench.upstream.accept();
    assert.ok(bench.upstream.writableEnded);
    bench.upstream.send('answer');
    bench.upstream.close();
    assert.equal(await wire.rest(), 'answer');
    bench.upstream.finish();
    await bench.untilClosed();
  });

  test('takes the attempt with it when it is gone', async (t) => {
    const bench = new TcpProxyBench(t, { settings: { maxConnectAttempts: 3 } });
    const wire = await bench.client();
    wire.socket.resetAndDestroy();
    await bench.untilClosed();
    assert.ok(!bench.upstream.isLive);
    assert.equal(bench.sockets.length, 1);
  });

  test('is ended at once when the process ends', async (t) => {
    const bench = new TcpProxyBench(t, {});
    const wire = await bench.client();
    bench.proxy.drain();
    assert.ok(bench.upstream.isLive);
    bench.proxy.finish();
    assert.ok(!bench.upstream.isLive);
    assert.equal(await peerEnd(wire.socket), 'end');
    await bench.untilClosed();
  });
});

describe('an attempt to connect', () => {
  test('that fails is followed by as many more as are allowed', async (t) => {
    const bench = new TcpProxyBench(t, { settings: { maxConnectAttempts: 3 }, hosts: 3 });
    const wire = await bench.client();
    for (let attempt = 1; attempt <= 3; attempt++) {
      assert.equal(bench.sockets.length, attempt);
      bench.upstream.refuse();
    }
    assert.equal(await wire.rest(), '');
    assert.equal(bench.sockets.length, 3);
    assert.equal(bench.clusterStat('upstream_cx_connect_attempts_exceeded'), 1);
    await bench.untilClosed();
  });

  test('that takes too long fails, too, whatever the idle timeout', async (t) => {
    const bench = new TcpProxyBench(t, { settings: { maxConnectAttempts: 2, idleTimeoutMs: 1000 } });
    const wire = await bench.client();
    const [first] = bench.sockets;
    bench.wait(CONNECT_TIMEOUT_MS - TICK_MS);
    assert.ok(first!.isLive);
    // Just then, and not a tick later.
    bench.wait(TICK_MS);
    assert.ok(!first!.isLive);
    assert.equal(bench.sockets.length, 2);
    bench.wait(CONNECT_TIMEOUT_MS - 4 * TICK_MS);
    assert.ok(bench.upstream.isLive);
    bench.wait(5 * TICK_MS);
    assert.equal(await wire.rest(), '');
    assert.equal(bench.clusterStat('upstream_cx_connect_timeout'), 2);
    assert.equal(bench.stat('idle_timeout'), 0);
    await bench.untilClosed();
  });

  test('ends with the time that the connection may last, just then', async (t) => {
    const bench = new TcpProxyBench(t, { settings: { maxConnectionDurationMs: 1000 } });
    const wire = await bench.client();
    bench.wait(1000);
    assert.ok(!bench.upstream.isLive);
    assert.equal(await wire.rest(), '');
    assert.equal(bench.stat('max_downstream_connection_duration'), 1);
    await bench.untilClosed();
  });

  test('after a wait goes to the host that is there then', async (t) => {
    const settings = { maxConnectAttempts: 2, connectBackoff: { baseMs: 1000, maxMs: 1000 } };
    const bench = new TcpProxyBench(t, { settings });
    await bench.client();
    bench.upstream.refuse();
    // By chance the wait is 0, which is the next tick.
    assert.equal(bench.sockets.length, 1);
    bench.wait(2 * TICK_MS);
    assert.equal(bench.sockets.length, 2);
    bench.upstream.accept();
    bench.wait(CONNECT_TIMEOUT_MS + TICK_MS);
    assert.ok(bench.upstream.isOpen);
  });

  test('after a wait is made when that is over', async (t) => {
    const settings = { maxConnectAttempts: 2, connectBackoff: { baseMs: 1000, maxMs: 1000 } };
    const bench = new TcpProxyBench(t, { settings });
    Object.assign(bench.context, { random: { u32: () => 800 } });
    await bench.client();
    bench.upstream.refuse();
    bench.wait(800 - TICK_MS);
    assert.equal(bench.sockets.length, 1);
    bench.wait(TICK_MS);
    assert.equal(bench.sockets.length, 2);
  });

  test('that fails with a reason is no bug where nobody logs it', async (t) => {
    const bench = new TcpProxyBench(t, {});
    await bench.client();
    bench.upstream.refuse(Object.assign(new Error('refused'), { code: 'ECONNREFUSED', errno: -111 }));
    await bench.untilClosed();
  });

  test('after a wait has the end that its client has said meanwhile', async (t) => {
    const settings = { maxConnectAttempts: 2, connectBackoff: { baseMs: 1000, maxMs: 1000 } };
    const bench = new TcpProxyBench(t, { settings });
    const wire = await bench.client();
    bench.upstream.refuse();
    wire.socket.end();
    await bench.settle();
    assert.equal(bench.closed, 0);
    bench.wait(2 * TICK_MS);
    bench.upstream.accept();
    assert.ok(bench.upstream.writableEnded);
    bench.upstream.close();
    await wire.rest();
    bench.upstream.finish();
    await bench.untilClosed();
  });

  test('is not made beyond the limit of connections', async (t) => {
    const limits = { ...NO_LIMITS, maxConnections: 0 };
    const bench = new TcpProxyBench(t, { cluster: { circuitBreakers: { default: limits, high: NO_LIMITS } } });
    assert.equal(await (await bench.client()).rest(), '');
    assert.equal(bench.clusterStat('upstream_cx_overflow'), 1);
    assert.deepEqual(bench.sockets, []);
    await bench.untilClosed();
  });

  test('is not made where there is no host, or no cluster', async (t) => {
    const bench = new TcpProxyBench(t, { hosts: 0 });
    assert.equal(await (await bench.client()).rest(), '');
    assert.equal(bench.clusterStat('upstream_cx_none_healthy'), 1);
    assert.equal(bench.stat('downstream_cx_no_route'), 0);
    bench.clusters.update([], ['web'], () => {});
    assert.equal(await (await bench.client()).rest(), '');
    assert.equal(bench.stat('downstream_cx_no_route'), 1);
    assert.equal(bench.closed, 2);
    assert.equal(bench.stat('downstream_cx_total'), 2);
  });

  const header = { kind: 'header', name: 'x', rewrite: null, isTerminal: false } as const;
  const address = { kind: 'source-ip', isTerminal: false } as const;
  for (const [lbPolicy, hashesSourceIp, policies, isHashed] of [
    ['RING_HASH', true, [], true],
    ['RING_HASH', false, [], false],
    ['ROUND_ROBIN', true, [], false],
    // What the cluster says comes first.
    ['RING_HASH', false, [header, address], true],
    ['RING_HASH', true, [header], false],
  ] as const) {
    const own = policies.length === 0 ? '' : `, whose cluster hashes by ${policies.map(({ kind }) => kind).join()}`;
    const settings = `with ${lbPolicy}${hashesSourceIp ? ', by the source address' : ''}${own}`;
    test(`goes by ${isHashed ? 'the address of the client' : 'no hash'} ${settings}`, async (t) => {
      const cluster = { lbPolicy, hashing: { ...DEFAULT_HASHING, policies } };
      const hashInputs = hashesSourceIp ? [SOURCE_IP] : [];
      const bench = new TcpProxyBench(t, { hosts: 5, cluster, settings: { hashInputs } });
      const choose = t.mock.method(bench.cluster, 'chooseHost');
      for (let client = 0; client < 4; client++) await bench.client();
      const hashes = choose.mock.calls.map((call) => call.arguments[0]);
      assert.ok(hashes.every((hash) => (hash?.hasHash ?? false) === isHashed));
      const ports = new Set(bench.sockets.map(({ address }) => (address as { readonly port: number }).port));
      if (isHashed) assert.equal(ports.size, 1);
      if (lbPolicy === 'ROUND_ROBIN') assert.equal(ports.size, 4);
    });
  }
});

describe('the hash of a connection', () => {
  const settings = {
    hashInputs: [SOURCE_IP],
    clusters: [{ cluster: 'web', weight: 1, criteria: [['stage', '"prod"']] }],
  } as const;

  async function hashesFrom(t: TestContext, addresses: readonly string[]) {
    const bench = new TcpProxyBench(t, { cluster: { lbPolicy: 'RING_HASH' }, settings });
    const choose = t.mock.method(bench.cluster, 'chooseHost');
    for (const address of addresses) {
      t.mock.getter(DownstreamConnection.prototype, 'remoteAddress', () => address);
      await bench.client();
    }
    const asked = choose.mock.calls.map(({ arguments: [asks] }) => asks!);
    assert.ok(asked.every(({ criteria }) => criteria!.name === '"stage":"prod"'));
    return asked;
  }

  test('is that of its address, beside what its route asks', async (t) => {
    const asked = await hashesFrom(t, ['10.0.0.1', '10.0.0.2', '10.0.0.1']);
    const [first, second, again] = asked.map(({ hashHi, hashLo }) => [hashHi, hashLo]);
    assert.ok(asked.every(({ hasHash }) => hasHash));
    assert.notDeepEqual(first, second);
    assert.deepEqual(first, again);
  });

  test('takes in what filters have said of it, in the order of the inputs, and none where they have said nothing', async (t) => {
    const [tenant, zone] = ['tenant', 'zone'].map((key) => ({ kind: 'filter-state', key }) as const);
    const said: Record<string, string> = { tenant: 'a', zone: 'a' };
    t.mock.method(DownstreamConnection.prototype, 'state', (key: string) => said[key]);
    const hashOf = async (...hashInputs: (typeof SOURCE_IP | { kind: 'filter-state'; key: string })[]) => {
      const bench = new TcpProxyBench(t, { cluster: { lbPolicy: 'RING_HASH' }, settings: { hashInputs } });
      const choose = t.mock.method(bench.cluster, 'chooseHost');
      await bench.client();
      const asks = choose.mock.calls[0]!.arguments[0];
      return asks?.hasHash ? `${asks.hashHi} ${asks.hashLo}` : 'none';
    };
    const ofTenant = await hashOf(tenant!);
    assert.equal(await hashOf(zone!), ofTenant);
    said.zone = 'b';
    assert.notEqual(await hashOf(zone!), ofTenant);
    assert.notEqual(await hashOf(tenant!, zone!), await hashOf(zone!, tenant!));
    assert.notEqual(await hashOf(tenant!, SOURCE_IP), await hashOf(SOURCE_IP));
    said.tenant = '';
    assert.equal(await hashOf(tenant!, SOURCE_IP), await hashOf(SOURCE_IP));
    assert.equal(await hashOf({ kind: 'filter-state', key: 'never said' }), 'none');
  });

  test('is none over a pipe, which has no address', async (t) => {
    const [asked] = await hashesFrom(t, ['']);
    assert.equal(asked!.hasHash, false);
  });
});

describe('a connection to where its client meant to go', () => {
  const destination = { ip: '127.0.0.1', port: 1 };
  const originalDst = { header: null, port: 0 };

  test('waits for its host, without the time that an attempt may take', async (t) => {
    const bench = new TcpProxyBench(t, { cluster: { originalDst }, destination });
    const { hosts } = bench.snapshot;
    bench.cluster.updateHosts({ hosts: [], hostLists: 0 }, new RetiredHosts(() => {}));
    const wire = await bench.client();
    assert.equal(bench.sockets.length, 0);
    assert.equal(bench.closed, 0);
    bench.cluster.updateHosts({ hosts, hostLists: 0 }, new RetiredHosts(() => {}));
    bench.upstream.accept();
    bench.upstream.send('hello');
    assert.equal(await wire.until('hello'), 'hello');
  });

  test('is refused where too many wait, which is not for lack of a host', async (t) => {
    const none = { ...NO_LIMITS, maxPendingRequests: 0 };
    const circuitBreakers = { default: none, high: NO_LIMITS };
    const bench = new TcpProxyBench(t, { cluster: { originalDst, circuitBreakers }, destination, hosts: 0 });
    assert.equal(await (await bench.client()).rest(), '');
    assert.equal(bench.clusterStat('upstream_cx_none_healthy'), 0);
    await bench.untilClosed();
  });
});

describe('a cluster that says what it hashes by', () => {
  const policies = {
    ip: { kind: 'source-ip', isTerminal: false },
    header: { kind: 'header', name: 'x', rewrite: null, isTerminal: false },
  } as const;

  for (const [names, hashesSourceIp, isHashed] of [
    [['header', 'ip'], false, true],
    [['header'], true, false],
  ] as const) {
    test(`decides over the proxy: by ${names.join(' and ')}`, async (t) => {
      const hashing = { ...DEFAULT_HASHING, policies: names.map((name) => policies[name]) };
      const hashInputs = hashesSourceIp ? [SOURCE_IP] : [];
      const bench = new TcpProxyBench(t, { cluster: { lbPolicy: 'RING_HASH', hashing }, settings: { hashInputs } });
      const choose = t.mock.method(bench.cluster, 'chooseHost');
      await bench.client();
      assert.equal(choose.mock.calls[0]!.arguments[0]?.hasHash ?? false, isHashed);
    });
  }
});

describe('an open connection', () => {
  test('carries bytes and ends in both directions, each for itself', async (t) => {
    const { bench, wire } = await opened(t);
    wire.write('question');
    await bench.until(() => bench.upstream.received === 'question', 'the question');
    bench.upstream.send('answer');
    assert.equal(await wire.until('answer'), 'answer');
    wire.socket.end(', last');
    await bench.until(() => bench.upstream.writableEnded, 'the end');
    assert.equal(bench.upstream.received, 'question, last');
    bench.upstream.send('late');
    assert.equal(await wire.until('late'), 'late');
    assert.equal(bench.closed, 0);
    bench.upstream.close();
    await wire.rest();
    assert.equal(wire.error, null);
    bench.upstream.finish();
    await bench.untilClosed();
    assert.equal(bench.stat('downstream_cx_rx_bytes_total'), 'question, last'.length);
    assert.equal(bench.stat('downstream_cx_tx_bytes_total'), 'answerlate'.length);
  });

  test('carries on when the upstream ends first', async (t) => {
    const { bench, wire } = await opened(t);
    bench.upstream.send('greeting');
    bench.upstream.close();
    assert.equal(await wire.rest(), 'greeting');
    wire.write('thanks');
    await bench.until(() => bench.upstream.received === 'thanks', 'what the client says to it');
    wire.socket.end();
    await bench.until(() => bench.upstream.writableEnded || !bench.upstream.isLive, 'the end');
    await bench.until(() => bench.closed === 1, 'the end of the connection');
    assert.ok(!bench.upstream.wasReset);
  });

  test('that its client resets is broken off, whatever waits for the upstream', async (t) => {
    const { bench, wire } = await opened(t);
    bench.upstream.isSlow = true;
    wire.write('waits');
    await bench.until(() => bench.upstream.received === 'waits', 'the bytes');
    wire.socket.resetAndDestroy();
    // Who is not read from is known to have gone by what is sent to it.
    await bench.until(() => {
      bench.upstream.send('x');
      return bench.closed === 1;
    }, 'the end of the connection');
    assert.ok(bench.upstream.wasReset);
    assert.equal(bench.stat('upstream_flush_total'), 0);
    await bench.untilClosed();
  });

  test('holds a client back as long as its upstream takes nothing, and counts that once', async (t) => {
    const paused = t.mock.method(PausedPeers.prototype, 'pause');
    const { bench, wire } = await opened(t);
    const sent = await heldBack({ bench, wire });
    const count = (what: 'backed_up' | 'drained'): number => bench.clusterStat(`upstream_flow_control_${what}_total`);
    assert.deepEqual([count('backed_up'), count('drained')], [1, 0]);
    wire.write('more');
    await bench.settle();
    assert.ok(!bench.upstream.received.includes('more'));
    const [peer] = paused.mock.calls[0]!.arguments;
    assert.ok(peer.isPaused);
    bench.upstream.take();
    // Who is read from needs no watch.
    assert.ok(!peer.isPaused);
    assert.deepEqual([count('backed_up'), count('drained')], [1, 1]);
    await bench.until(() => bench.upstream.received.endsWith('more'), 'the rest');
    assert.ok(bench.upstream.received.length > sent.length);
    bench.upstream.owner.onDrain();
    assert.equal(bench.stat('downstream_flow_control_paused_reading_total'), 1);
    assert.equal(bench.stat('downstream_flow_control_resumed_reading_total'), 1);
  });

  test('does not go on with a client that it has not stopped', async (t) => {
    const { bench } = await opened(t);
    bench.upstream.owner.onDrain();
    assert.equal(bench.stat('downstream_flow_control_resumed_reading_total'), 0);
  });

  test('whose upstream has gone takes nothing more, and gives the client the rest', async (t) => {
    const { bench, wire } = await opened(t);
    wire.socket.pause();
    let sent = 0;
    while (bench.upstream.isRead) {
      bench.upstream.send(PIECE);
      sent += PIECE.length;
    }
    bench.upstream.finish();
    // Read on all the same: behind them may be its end.
    for (const read of [4, 8]) {
      wire.write('late');
      await bench.until(() => bench.stat('downstream_cx_rx_bytes_total') === read, 'the bytes');
    }
    wire.socket.end();
    await bench.settle();
    assert.equal(bench.closed, 0);
    assert.equal(bench.upstream.received, '');
    wire.socket.resume();
    assert.equal((await wire.rest()).length, sent);
    assert.equal(wire.error, null);
    await bench.untilClosed();
  });

  test('holds its upstream back as long as the client takes nothing', async (t) => {
    const { bench, wire } = await opened(t);
    wire.socket.pause();
    let sent = 0;
    while (bench.upstream.isRead) {
      bench.upstream.send(PIECE);
      sent += PIECE.length;
    }
    const count = (what: 'paused' | 'resumed'): number =>
      bench.clusterStat(`upstream_flow_control_${what}_reading_total`);
    assert.deepEqual([count('paused'), count('resumed')], [1, 0]);
    assert.ok(bench.stat('downstream_cx_tx_bytes_buffered') >= PIECE.length);
    wire.socket.resume();
    await wire.bytes(sent);
    await bench.until(() => bench.upstream.isRead, 'reading goes on');
    assert.equal(bench.stat('downstream_cx_tx_bytes_buffered'), 0);
    assert.deepEqual([count('paused'), count('resumed')], [1, 1]);
  });

  for (const [side, breakOff] of Object.entries({
    client: ({ wire }: { wire: WireClient }) => wire.socket.resetAndDestroy(),
    upstream: ({ bench }: { bench: TcpProxyBench }) => bench.upstream.reset(),
  })) {
    test(`is broken off on the other side when the ${side} is`, async (t) => {
      const fixture = await opened(t);
      const { bench, wire } = fixture;
      wire.socket.removeAllListeners('error');
      const ended = side === 'upstream' ? peerEnd(wire.socket) : null;
      wire.socket.on('error', () => {});
      breakOff(fixture);
      await bench.untilClosed();
      if (ended === null) assert.ok(bench.upstream.wasReset);
      else assert.equal(await ended, 'ECONNRESET');
    });
  }

  test('is ended on both sides when nothing waits, and broken off when something does', async (t) => {
    for (const hasBytes of [false, true]) {
      const { bench, wire } = await opened(t);
      if (hasBytes) await heldBack({ bench, wire });
      wire.socket.removeAllListeners('error');
      const ended = peerEnd(wire.socket);
      bench.proxy.destroyConnections();
      assert.ok(!bench.upstream.isLive);
      assert.equal(bench.upstream.wasReset, hasBytes);
      assert.equal(await ended, hasBytes ? 'ECONNRESET' : 'end');
      await bench.untilClosed();
    }
  });

  test('is over when its host has failed and its cluster wants no connections to such hosts', async (t) => {
    const { bench, wire } = await opened(t, { cluster: { closeConnectionsOnHostHealthFailure: true } });
    bench.upstream.send('last words');
    const { recordAddress } = bench.snapshot.hosts[0]!;
    bench.workers.records.setHealthFlag(recordAddress, HealthFlag.failedActiveHealthCheck, true);
    bench.clusters.update(packClusters([bench.snapshot]), [], () => {});
    assert.ok(!bench.upstream.isLive);
    assert.equal(await wire.rest(), 'last words');
    await bench.untilClosed();
  });
});

describe('a client that is slow to take what its upstream sent before it left', () => {
  /** @returns what was sent: a part waits here, and more in the system. */
  async function behind(t: TestContext, options: TcpProxyBenchOptions = {}) {
    const { bench, wire } = await opened(t, options);
    wire.socket.pause();
    let sent = 0;
    while (bench.upstream.isRead) {
      bench.upstream.send(PIECE);
      sent += PIECE.length;
    }
    return { bench, wire, sent };
  }

  /** Has the client take a read at a time, until nothing waits here any more: the rest is in the system. */
  async function untilInSystem(bench: TcpProxyBench, wire: WireClient): Promise<void> {
    const pause = (): void => void wire.socket.pause();
    wire.socket.on('data', pause);
    await bench.until(() => {
      wire.socket.resume();
      return bench.stat('downstream_cx_tx_bytes_buffered') === 0;
    }, 'nothing waits');
    wire.socket.off('data', pause).pause();
  }

  for (const [where, goOn] of Object.entries({
    'waits here': async () => {},
    'is in the system': untilInSystem,
  })) {
    test(`gets all of it that ${where}, and then the reset`, async (t) => {
      const { bench, wire, sent } = await behind(t);
      await goOn(bench, wire);
      bench.upstream.reset();
      bench.wait(IDLE_TIMEOUT_MS / 2);
      await bench.settle();
      assert.equal(bench.closed, 0);
      assert.equal(wire.error, null);
      wire.socket.resume();
      assert.equal((await wire.bytes(sent)).length, sent);
      await bench.untilClosed();
      await wire.rest();
      assert.equal((wire.error as NodeJS.ErrnoException | null)?.code, 'ECONNRESET');
      assert.equal(bench.stat('idle_timeout'), 0);
    });

    test(`gets all of it that ${where}, and then the end, whatever it says meanwhile`, async (t) => {
      const { bench, wire, sent } = await behind(t);
      await goOn(bench, wire);
      bench.upstream.finish();
      for (let said = 1; said <= 3; said++) {
        wire.write('x');
        await bench.until(() => bench.stat('downstream_cx_rx_bytes_total') === said, 'what it says');
        bench.wait(TICK_MS);
      }
      wire.socket.resume();
      assert.equal((await wire.bytes(sent)).length, sent);
      await bench.untilClosed();
      assert.equal(await wire.rest(), '');
      assert.equal(wire.error, null);
      assert.equal(bench.stat('idle_timeout'), 0);
    });
  }

  test('is read on, if it was not because of that upstream', async (t) => {
    const { bench, wire } = await behind(t);
    bench.upstream.isSlow = true;
    wire.write('held');
    await bench.until(() => bench.upstream.received === 'held', 'the bytes');
    bench.upstream.finish();
    wire.write('late');
    await bench.until(() => bench.stat('downstream_cx_rx_bytes_total') === 8, 'what it says');
    assert.equal(bench.stat('downstream_flow_control_resumed_reading_total'), 1);
    assert.equal(bench.upstream.received, 'held');
  });

  test('keeps the connection as long as it goes on taking', async (t) => {
    const { bench } = await behind(t);
    const state = { isAcknowledged: false, acknowledgedBytes: 1 };
    Object.assign(bench.context, { systemCalls: { sentState: () => state } });
    bench.upstream.reset();
    for (let round = 0; round < 3; round++) {
      bench.wait(IDLE_TIMEOUT_MS - 500);
      assert.equal(bench.closed, 0);
      state.acknowledgedBytes++;
      bench.wait(400);
    }
    assert.equal(bench.stat('idle_timeout'), 0);
    bench.wait(IDLE_TIMEOUT_MS);
    assert.equal(bench.stat('idle_timeout'), 1);
    await bench.untilClosed();
  });

  test('is not waited for beyond the idle timeout, and cannot mistake what it has for all', async (t) => {
    const { bench, wire, sent } = await behind(t);
    await untilInSystem(bench, wire);
    bench.upstream.reset();
    // What was on its way to the client counts as progress, whenever its system tells of it.
    await bench.until(() => {
      bench.wait(IDLE_TIMEOUT_MS);
      return bench.closed === 1;
    }, 'the end of the connection');
    await bench.untilClosed();
    assert.equal(bench.stat('idle_timeout'), 1);
    wire.socket.resume();
    assert.ok((await wire.rest()).length < sent);
    assert.equal((wire.error as NodeJS.ErrnoException | null)?.code, 'ECONNRESET');
  });

  test('is waited for when the process ends, until its time is up', async (t) => {
    const { bench, wire, sent } = await behind(t);
    await untilInSystem(bench, wire);
    bench.upstream.reset();
    bench.proxy.finish();
    bench.wait(40 * QUIET_MS);
    assert.equal(bench.closed, 0);
    bench.proxy.destroyConnections();
    await bench.untilClosed();
    wire.socket.resume();
    assert.ok((await wire.rest()).length < sent);
    assert.equal((wire.error as NodeJS.ErrnoException | null)?.code, 'ECONNRESET');
  });
});

describe('a client that has gone while its upstream takes nothing', () => {
  /** By the events way of reading, in which the end of the client is known although its bytes wait here. */
  async function flushing(
    t: TestContext,
    options: TcpProxyBenchOptions = {},
  ): Promise<{ bench: TcpProxyBench; sent: string }> {
    const bench = new TcpProxyBench(t, options);
    bench.context.readMode = 'events';
    const wire = await bench.client();
    bench.upstream.accept();
    bench.upstream.close();
    await wire.rest();
    bench.upstream.isSlow = true;
    wire.socket.end('last words');
    await bench.until(() => bench.stat('upstream_flush_total') === 1, 'the flush');
    assert.equal(bench.stat('upstream_flush_active'), 1);
    assert.equal(bench.closed, 0);
    return { bench, sent: 'last words' };
  }

  test('is over when that has taken all, whatever it says meanwhile', async (t) => {
    const { bench, sent } = await flushing(t, { settings: { maxConnectionDurationMs: 1000 } });
    bench.wait(2000);
    bench.upstream.send('nobody is there');
    assert.ok(bench.upstream.isRead);
    assert.ok(bench.upstream.writableEnded);
    bench.upstream.take();
    assert.equal(bench.clusterStat('upstream_flow_control_drained_total'), 1);
    bench.upstream.finish();
    await bench.untilClosed();
    assert.equal(bench.upstream.received, sent);
    assert.equal(bench.stat('max_downstream_connection_duration'), 0);
    assert.equal(bench.stat('downstream_cx_tx_bytes_total'), 0);
  });

  test('is over when that breaks off', async (t) => {
    const { bench } = await flushing(t);
    bench.upstream.reset();
    await bench.untilClosed();
  });

  test('is over after the idle timeout', async (t) => {
    const { bench } = await flushing(t);
    bench.wait(IDLE_TIMEOUT_MS + TICK_MS);
    assert.ok(!bench.upstream.isLive);
    assert.equal(bench.stat('idle_timeout'), 1);
    await bench.untilClosed();
  });
});

describe('the times of a connection', () => {
  test('idle: bytes of either side count, and silence of both ends it', async (t) => {
    const { bench, wire } = await opened(t);
    for (let round = 0; round < 3; round++) {
      bench.wait(IDLE_TIMEOUT_MS - TICK_MS);
      bench.upstream.send('x');
      await wire.bytes(1);
      bench.wait(IDLE_TIMEOUT_MS - TICK_MS);
      wire.write('y');
      await bench.until(() => bench.upstream.received.length === round + 1, 'the byte');
    }
    assert.equal(bench.stat('idle_timeout'), 0);
    bench.wait(IDLE_TIMEOUT_MS + TICK_MS);
    assert.equal(bench.stat('idle_timeout'), 1);
    assert.equal(await wire.rest(), '');
    assert.ok(!bench.upstream.wasReset);
    await bench.untilClosed();
  });

  test('idle: a client that is silent for too long ends it, whatever the upstream sends', async (t) => {
    const { bench, wire } = await opened(t, { settings: { clientIdleTimeoutMs: 10_000 } });
    for (let round = 0; round < 3; round++) {
      bench.wait(10_000 - TICK_MS);
      wire.write('y');
      await bench.until(() => bench.upstream.received.length === round + 1, 'the byte');
    }
    bench.wait(10_000 - TICK_MS);
    bench.upstream.send('x');
    await wire.bytes(1);
    assert.equal(bench.stat('idle_timeout'), 0);
    bench.wait(2 * TICK_MS);
    assert.equal(bench.stat('idle_timeout'), 1);
    await bench.untilClosed();
  });

  test('idle: an upstream that is silent for too long ends it, whatever the client sends', async (t) => {
    const { bench, wire } = await opened(t, { settings: { upstreamIdleTimeoutMs: 10_000, idleTimeoutMs: 0 } });
    for (let round = 0; round < 3; round++) {
      bench.wait(10_000 - TICK_MS);
      bench.upstream.send('x');
      await wire.bytes(1);
    }
    bench.wait(10_000 - TICK_MS);
    wire.write('y');
    await bench.until(() => bench.upstream.received.length === 1, 'the byte');
    bench.wait(2 * TICK_MS);
    assert.equal(bench.stat('idle_timeout'), 1);
    await bench.untilClosed();
  });

  test('idle: a side that has ended may be silent', async (t) => {
    const settings = { clientIdleTimeoutMs: 10_000, upstreamIdleTimeoutMs: 60_000 };
    const { bench, wire } = await opened(t, { settings });
    wire.socket.end();
    await bench.until(() => bench.upstream.writableEnded, 'the end');
    bench.wait(20_000);
    bench.upstream.send('x');
    await wire.bytes(1);
    assert.equal(bench.stat('idle_timeout'), 0);
  });

  test('without an idle timeout it may be silent for ever', async (t) => {
    const { bench } = await opened(t, { settings: { idleTimeoutMs: 0 } });
    bench.wait(100 * 24 * 3_600_000);
    assert.ok(bench.upstream.isOpen);
  });

  test('at the end of the process: it ends when it has been silent for a moment', async (t) => {
    const { bench, wire } = await opened(t, { settings: { idleTimeoutMs: 0 } });
    bench.wait(CONNECT_TIMEOUT_MS + TICK_MS);
    bench.proxy.finish();
    bench.wait(QUIET_MS - TICK_MS);
    assert.ok(bench.upstream.isOpen);
    bench.wait(2 * TICK_MS);
    assert.ok(!bench.upstream.isLive);
    assert.equal(await wire.rest(), '');
    await bench.untilClosed();
  });

  test('at the end of the process: silence counts from when bytes on their way were seen last', async (t) => {
    const { bench, wire } = await opened(t);
    await heldBack({ bench, wire });
    bench.proxy.finish();
    bench.wait(QUIET_MS + TICK_MS);
    bench.upstream.take();
    bench.wait(QUIET_MS - 3 * TICK_MS);
    assert.ok(bench.upstream.isOpen);
    bench.wait(4 * TICK_MS);
    assert.ok(!bench.upstream.isLive);
  });

  test('at the end of the process: silence ends it, bytes on their way do not', async (t) => {
    const { bench, wire } = await opened(t, { settings: { idleTimeoutMs: 0 } });
    await heldBack({ bench, wire });
    bench.proxy.finish();
    bench.wait(5000);
    assert.ok(bench.upstream.isOpen);
    bench.upstream.take();
    wire.write('last');
    await bench.until(() => bench.upstream.received.endsWith('last'), 'the rest');
    bench.wait(240);
    assert.ok(bench.upstream.isOpen);
    bench.wait(300);
    assert.ok(!bench.upstream.isLive);
    assert.ok(!bench.upstream.wasReset);
    assert.equal(await wire.rest(), '');
    assert.equal(bench.stat('idle_timeout'), 0);
    await bench.untilClosed();
  });
});
