// The upstream half of a proxied connection by itself: what it reads into, and that it tells nothing after its end.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { PausedPeers } from '../../../../src/data-plane/network/paused-peers.ts';
import { TcpUpstream, type TcpUpstreamOwner } from '../../../../src/data-plane/tcp-proxy/tcp-upstream.ts';
import { type FakeUpstreamSocket, UpstreamWorkers } from '../../../support/upstream-workers.ts';

const SMALLEST_READ = 1024;
/** A read below this is no bulk. */
const BULK_BYTES = 16 * 1024;

class Client implements TcpUpstreamOwner {
  readonly bufferLimitBytes: number;
  takes = true;
  events: string[] = [];
  /** What it does when bytes or their end have come. */
  react = (): void => {};
  closedBy: Error | null = null;

  constructor(bufferLimitBytes: number) {
    this.bufferLimitBytes = bufferLimitBytes;
  }

  onUpstreamConnected(): void {
    this.events.push('connected');
  }

  onUpstreamConnectFailed(detail: string, failure: string): void {
    this.events.push(`${failure} ${detail}`.trim());
  }

  onUpstreamBytes(_bytes: Buffer, length: number, isSlab: boolean): boolean {
    this.events.push(`${length}${isSlab ? ' in a slab' : ''}`);
    this.react();
    return this.takes;
  }

  onUpstreamEnd(): void {
    this.events.push('end');
    this.react();
  }

  onUpstreamDrain(): void {
    this.events.push('drain');
  }

  onUpstreamClosed(error: Error | null): void {
    this.closedBy = error;
    this.events.push(`closed ${error?.message ?? ''}`.trim());
  }
}

function connecting({ clusterLimit = 1 << 20, clientLimit = 1 << 20 } = {}) {
  let socket: FakeUpstreamSocket | null = null;
  const workers = new UpstreamWorkers(1, (opened) => {
    socket = opened;
  });
  const [context] = workers.contexts;
  const snapshot = workers.cluster(1, { bufferLimitBytes: clusterLimit });
  const cluster = workers.open(0, snapshot);
  const [host] = cluster.hosts;
  assert.ok(host!.tryAcquireConnection(cluster.breaker));
  const client = new Client(clientLimit);
  const upstream = new TcpUpstream(context!, host!, client, context!.clock.monotonicMs(), cluster.breaker);
  const stat = (name: Parameters<UpstreamWorkers['clusterStat']>[1]): number => workers.clusterStat(snapshot, name);
  const samples = (name: Parameters<UpstreamWorkers['clusterSamples']>[1]) => workers.clusterSamples(snapshot, name);
  const { clock } = workers;
  return { context: context!, host: host!, client, upstream, socket: socket!, stat, samples, clock };
}

function open(limits: Parameters<typeof connecting>[0] = {}) {
  const bench = connecting(limits);
  (bench.socket as FakeUpstreamSocket).accept();
  assert.deepEqual(bench.client.events.splice(0), ['connected']);
  return bench as typeof bench & { readonly socket: FakeUpstreamSocket };
}

describe('what an upstream is read into', () => {
  test('is the buffer of all connections, or the part of it that may wait for the client', () => {
    const limit = fc.oneof(fc.integer({ min: 0, max: 4096 }), fc.integer({ min: 0, max: 1 << 20 }));
    fc.assert(
      fc.property(limit, limit, (clusterLimit, clientLimit) => {
        const { upstream, context } = open({ clusterLimit, clientLimit });
        const { readBuffer } = context.codec;
        const expected = Math.min(readBuffer.length, Math.max(SMALLEST_READ, Math.min(clusterLimit, clientLimit)));
        const buffer = upstream.readBuffer();
        assert.equal(buffer.length, expected);
        assert.equal(buffer.buffer, readBuffer.buffer);
        assert.equal(buffer.byteOffset, readBuffer.byteOffset);
      }),
      { numRuns: 20 },
    );
  });

  test('is a slab of its own in bulk, as long as that lasts and as long as the client has not taken it', () => {
    const { upstream, socket, client, context } = open();
    const { slabs, codec } = context;
    const full = 'x'.repeat(codec.readBuffer.length);
    const send = (text: string, takes = true): string => {
      client.takes = takes;
      socket.send(text);
      return client.events.splice(0).join();
    };
    assert.equal(send(full), `${full.length}`);
    assert.equal(slabs.outstandingBytes, 0);
    assert.equal(send(full), `${full.length}`);
    const slab = upstream.readBuffer();
    assert.equal(slabs.outstandingBytes, slab.length);
    assert.notEqual(slab.buffer, codec.readBuffer.buffer);
    assert.equal(send('x'.repeat(BULK_BYTES)), `${BULK_BYTES} in a slab`);
    assert.equal(upstream.readBuffer(), slab);
    assert.equal(send('x', false), '1 in a slab');
    assert.equal(upstream.readBuffer(), slab);
    upstream.resume();
    assert.equal(send('x'), '1 in a slab');
    assert.equal(slabs.outstandingBytes, 0);
    assert.equal(slabs.freeBytes, slab.length);
    assert.equal(upstream.readBuffer().buffer, codec.readBuffer.buffer);
    assert.equal(send('x'), '1');
  });

  test('is a slab again after two full reads, of which one may have come in the slab of before', () => {
    const { upstream, socket, client, context } = open();
    const full = 'x'.repeat(context.codec.readBuffer.length);
    for (let read = 0; read < 2; read++) socket.send(full);
    client.takes = false;
    socket.send('x');
    upstream.resume();
    client.takes = true;
    client.events = [];
    socket.send(full);
    assert.deepEqual(client.events, [`${full.length} in a slab`]);
    assert.equal(context.slabs.outstandingBytes, 0);
    socket.send(full);
    assert.ok(context.slabs.outstandingBytes > full.length);
  });

  test('is no slab where no more than the smallest one may wait', () => {
    const { socket, client, context } = open({ clusterLimit: 32 * 1024 });
    for (let read = 0; read < 4; read++) socket.send('x'.repeat(32 * 1024));
    assert.equal(client.events.length, 4);
    assert.equal(context.slabs.outstandingBytes, 0);
  });

  test('is left to the kernel, which may still read from it, when the connection ends', () => {
    const { upstream, socket, context } = open();
    for (let read = 0; read < 2; read++) socket.send('x'.repeat(context.codec.readBuffer.length));
    assert.ok(context.slabs.outstandingBytes > 0);
    upstream.destroy();
    assert.equal(context.slabs.outstandingBytes, 0);
    assert.equal(context.slabs.freeBytes, 0);
  });
});

describe('the end of an upstream', () => {
  const ways: Readonly<Record<string, readonly [(bench: ReturnType<typeof open>) => void, readonly string[]]>> = {
    'destroyed by its owner': [({ upstream }) => upstream.destroy(), []],
    'reset by its owner': [({ upstream }) => upstream.reset(), []],
    'closed by its peer': [({ socket }) => socket.finish(), ['closed']],
    'reset by its peer': [({ socket }) => socket.reset(), ['closed ECONNRESET']],
    'of a host that has failed': [({ upstream }) => upstream.onHostFailed(), ['closed']],
    'by a fault': [({ upstream }) => upstream.onFault(new Error('deliberate')), ['closed fault']],
  };

  for (const [way, [end, expected]] of Object.entries(ways)) {
    test(`${way}, is told and counted once, and nothing is told behind it`, async () => {
      const bench = open();
      const { upstream, socket, client, stat, context } = bench;
      end(bench);
      assert.equal(socket.wasReset, way === 'reset by its owner');
      for (let turn = 0; turn < 3; turn++) await null;
      assert.equal(upstream.onBytes(Buffer.alloc(1), 1), false);
      socket.owner.onConnect();
      socket.owner.onEnd();
      socket.owner.onDrain();
      socket.owner.onSendFailed(new Error('late'));
      upstream.onHostFailed();
      upstream.destroy();
      upstream.reset();
      socket.owner.onClose(null);
      assert.deepEqual(client.events, expected);
      assert.equal(stat('upstream_cx_active'), 0);
      assert.equal(stat('upstream_cx_destroy'), 1);
      assert.equal(
        stat('upstream_cx_destroy_local'),
        expected[0]?.startsWith('closed') && way !== 'of a host that has failed' ? 0 : 1,
      );
      assert.equal(stat('upstream_cx_rx_bytes_total'), 0);
      assert.equal(context.wheel.size, 0);
    });
  }

  test('and its beginning are timed', () => {
    const { upstream, socket, samples, clock } = connecting();
    clock.turn(30);
    (socket as FakeUpstreamSocket).accept();
    clock.turn(12);
    upstream.destroy();
    assert.deepEqual([samples('upstream_cx_connect_ms'), samples('upstream_cx_length_ms')], [[30], [42]]);
  });

  test('before it was there is a failure to connect, which says why', async () => {
    const refused = connecting();
    const error = Object.assign(new Error('refused'), { code: 'ECONNREFUSED', errno: -111 });
    (refused.socket as FakeUpstreamSocket).refuse(error);
    assert.deepEqual(refused.client.events, ['remote connection failure delayed connect error: 111']);
    assert.equal(refused.stat('upstream_cx_connect_fail'), 1);
    const late = connecting();
    late.upstream.timeOut();
    assert.ok(!(late.socket as FakeUpstreamSocket).isLive);
    await null;
    assert.deepEqual(late.client.events, ['connection timeout']);
    assert.equal(late.stat('upstream_cx_connect_timeout'), 1);
    const unconnected = connecting();
    unconnected.upstream.onHostFailed();
    assert.deepEqual(unconnected.client.events, []);
    assert.ok((unconnected.socket as FakeUpstreamSocket).isLive);
  });
});

test('an upstream hears of the end of what is sent to it', () => {
  const { upstream, socket } = open();
  upstream.end();
  assert.ok(socket.writableFinished);
});

describe('what an upstream does not take', () => {
  test('is on its way until it has, also behind an end', () => {
    for (const ends of [false, true]) {
      const { upstream, socket, client, stat } = open();
      socket.isSlow = true;
      assert.equal(upstream.write(Buffer.from('bytes'), 5), false);
      assert.equal(upstream.unsentBytes, 5);
      assert.equal(stat('upstream_cx_tx_bytes_buffered'), 5);
      if (ends) upstream.end();
      socket.take();
      assert.equal(stat('upstream_cx_tx_bytes_buffered'), 0);
      assert.equal(stat('upstream_flow_control_drained_total'), 1);
      assert.deepEqual(client.events, ends ? [] : ['drain']);
      assert.ok(upstream.write(Buffer.from('more'), 4));
      assert.equal(stat('upstream_cx_tx_bytes_total'), 9);
    }
  });

  test('of what comes is counted where the client is slow, once for each time', () => {
    const { upstream, socket, client, stat } = open();
    client.takes = false;
    for (let time = 1; time <= 2; time++) {
      socket.send('x');
      assert.equal(socket.isRead, false);
      upstream.resume();
      upstream.resume();
      assert.equal(socket.isRead, true);
      client.takes = true;
      socket.send('x');
      client.takes = false;
      assert.equal(stat('upstream_flow_control_paused_reading_total'), time);
      assert.equal(stat('upstream_flow_control_resumed_reading_total'), time);
    }
    assert.equal(stat('upstream_cx_rx_bytes_total'), 4);
  });
});

test('the near end of a connection is that of its socket, while it has one', () => {
  const { upstream, socket } = open();
  assert.deepEqual(upstream.localEndpoint, { ip: '127.0.0.1', port: 1 });
  Object.assign(socket, { localAddress: '::ffff:10.0.0.1', localPort: 2 });
  assert.deepEqual(upstream.localEndpoint, { ip: '10.0.0.1', port: 2 });
  Object.assign(socket, { localAddress: undefined, localPort: undefined });
  assert.deepEqual(upstream.localEndpoint, { ip: '', port: 0 });
});

describe('an upstream that takes nothing any more', () => {
  const SILENCE_MS = 1000;
  const TICK_MS = 8;

  test('is over when nothing more has come from it for a while', () => {
    const { socket, client, clock } = open();
    socket.failSending();
    clock.turn(SILENCE_MS - TICK_MS);
    assert.deepEqual(client.events, []);
    clock.turn(2 * TICK_MS);
    assert.deepEqual(client.events, ['closed ECONNRESET']);
    assert.equal(socket.isLive, false);
  });

  test('is not waited for any longer by a client that reads on although it had not stopped', () => {
    const { upstream, socket, client, clock } = open();
    socket.failSending();
    clock.turn(SILENCE_MS - TICK_MS);
    upstream.resume();
    clock.turn(2 * TICK_MS);
    assert.deepEqual(client.events, ['closed ECONNRESET']);
  });

  test('is waited for as long as the client is slow to take what has come', () => {
    for (const stopsFirst of [true, false]) {
      const { upstream, socket, client, clock } = open();
      client.takes = false;
      if (!stopsFirst) socket.failSending();
      socket.send('x');
      if (stopsFirst) socket.failSending();
      clock.turn(10 * SILENCE_MS);
      assert.deepEqual(client.events, ['1']);
      upstream.resume();
      clock.turn(SILENCE_MS + TICK_MS);
      assert.deepEqual(client.events, ['1', 'closed ECONNRESET']);
    }
  });

  test('is over in its time also when the client was slow before', () => {
    const { upstream, socket, client, clock } = open();
    client.takes = false;
    socket.send('x');
    upstream.resume();
    socket.failSending();
    clock.turn(SILENCE_MS + TICK_MS);
    assert.deepEqual(client.events, ['1', 'closed ECONNRESET']);
  });
});

describe('an upstream that has ended its side', () => {
  test('is over when it resets the connection then', (t) => {
    const ended = t.mock.method(PausedPeers.prototype, 'ended');
    const { socket, client } = open();
    socket.close();
    assert.equal(ended.mock.callCount(), 1);
    ended.mock.calls[0]!.arguments[0].owner.onPausedPeerGone(true);
    assert.deepEqual(client.events, ['end', 'closed']);
    assert.equal(socket.isLive, false);
  });

  test('is not watched when its owner lets it go for that', (t) => {
    const ended = t.mock.method(PausedPeers.prototype, 'ended');
    const { upstream, socket, client } = open();
    client.react = () => upstream.destroy();
    socket.close();
    assert.equal(ended.mock.callCount(), 0);
  });
});

test('an upstream whose owner lets it go for what it sends is not read any more', () => {
  const { upstream, socket, client, stat } = open();
  client.react = () => upstream.destroy();
  socket.send('x');
  assert.equal(socket.isRead, false);
  assert.equal(stat('upstream_flow_control_paused_reading_total'), 0);
});

test('a fault of an upstream is told with its host, and its owner is told why', (t) => {
  const { upstream, client, context } = open();
  const told = t.mock.method(context, 'logFault', () => {});
  const bug = new Error('deliberate');
  upstream.onFault(bug);
  assert.deepEqual(told.mock.calls[0]!.arguments, ['the connection to 127.0.0.1:1', bug]);
  assert.equal(client.closedBy!.cause, bug);
});

test('what waited for an upstream is freed when it has taken it', () => {
  const { upstream, socket } = open();
  socket.isSlow = true;
  const bytes = Buffer.from(new ArrayBuffer(32 * 1024));
  upstream.write(bytes, bytes.length);
  assert.equal(bytes.length, 32 * 1024);
  socket.take();
  assert.equal(bytes.length, 0);
});

test('a host that has left is used until the connection ends', async () => {
  const { upstream, host } = open();
  let unused = 0;
  host.retire(() => void unused++);
  for (let turn = 0; turn < 3; turn++) await null;
  assert.equal(unused, 0);
  upstream.destroy();
  for (let turn = 0; turn < 3; turn++) await null;
  assert.equal(unused, 1);
});
