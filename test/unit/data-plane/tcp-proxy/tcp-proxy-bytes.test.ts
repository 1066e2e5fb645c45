// Bytes on their way through a proxied TCP connection: the gauges of those that wait, and the buffers that they are read
// into.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, type TestContext, test } from 'node:test';
import { SLAB_SIZES } from '../../../../src/data-plane/network/slab-pool.ts';
import { TcpProxyBench, type TcpProxyBenchOptions } from '../../../support/tcp-proxy-bench.ts';
import type { WireClient } from '../../../support/wire.ts';

async function opened(
  t: TestContext,
  options: TcpProxyBenchOptions = {},
): Promise<{ bench: TcpProxyBench; wire: WireClient }> {
  const bench = new TcpProxyBench(t, options);
  const wire = await bench.client();
  bench.upstream.accept();
  return { bench, wire };
}

/** Sends to a client that takes nothing, until no more is read. @returns how many bytes. */
function fill({ bench, wire }: { bench: TcpProxyBench; wire: WireClient }): number {
  wire.socket.pause();
  const piece = 'x'.repeat(bench.upstream.owner.readBuffer().length);
  let sent = 0;
  while (bench.upstream.isRead) {
    bench.upstream.send(piece);
    sent += piece.length;
  }
  return sent;
}

describe('bytes that wait', () => {
  const waiting = (bench: TcpProxyBench): number[] => [
    bench.stat('downstream_cx_rx_bytes_buffered'),
    bench.stat('downstream_cx_tx_bytes_buffered'),
  ];

  test('for their upstream to be there are counted as long as they do', async (t) => {
    const bench = new TcpProxyBench(t, {});
    (await bench.client()).write('early');
    await bench.until(() => bench.stat('downstream_cx_rx_bytes_total') === 5, 'the bytes');
    assert.deepEqual(waiting(bench), [5, 0]);
    bench.upstream.accept();
    assert.deepEqual(waiting(bench), [0, 0]);
  });

  test('for an upstream that never comes are counted to the end', async (t) => {
    const bench = new TcpProxyBench(t, {});
    (await bench.client()).write('early');
    await bench.until(() => bench.stat('downstream_cx_rx_bytes_total') === 5, 'the bytes');
    bench.upstream.refuse();
    assert.deepEqual(waiting(bench), [0, 0]);
    await bench.untilClosed();
  });

  test('for the client are counted as long as they do', async (t) => {
    const { bench, wire } = await opened(t);
    const sent = fill({ bench, wire });
    const [received, unsent] = waiting(bench);
    assert.equal(received, 0);
    assert.ok(unsent! > 0 && unsent! <= sent, String(unsent));
    wire.socket.resume();
    await wire.bytes(sent);
    await bench.until(() => bench.upstream.isRead, 'reading goes on');
    assert.deepEqual(waiting(bench), [0, 0]);
  });

  test('for a client that goes are counted no longer', async (t) => {
    const { bench, wire } = await opened(t);
    fill({ bench, wire });
    bench.proxy.destroyConnections();
    assert.deepEqual(waiting(bench), [0, 0]);
    await bench.untilClosed();
  });
});

describe('what an upstream sends is read', () => {
  const shared = (bench: TcpProxyBench): Buffer => bench.context.codec.readBuffer;
  const readBuffer = (bench: TcpProxyBench): Buffer => bench.upstream.owner.readBuffer();
  const full = (bench: TcpProxyBench): string => 'x'.repeat(readBuffer(bench).length);

  test('into the buffer of all, and into one of its own when there is much of it', async (t) => {
    const { bench, wire } = await opened(t);
    const { slabs } = bench.context;
    let sent = 0;
    const send = (text: string): void => {
      bench.upstream.send(text);
      sent += text.length;
    };
    send(full(bench));
    assert.equal(readBuffer(bench), shared(bench));
    assert.equal(slabs.outstandingBytes, 0);
    send(full(bench));
    const slab = readBuffer(bench);
    assert.equal(slab.length, SLAB_SIZES[1]);
    assert.equal(slabs.outstandingBytes, slab.length);
    send('a');
    // Small reads again: the buffer is not needed.
    assert.equal(readBuffer(bench), shared(bench));
    assert.deepEqual([slabs.outstandingBytes, slabs.freeBytes], [0, slab.length]);
    const received = await wire.bytes(sent);
    assert.ok(received.toString('latin1').endsWith('xa'));
  });

  test('into no buffer of its own any more once the connection is over', async (t) => {
    const { bench } = await opened(t);
    const { slabs } = bench.context;
    for (let read = 0; read < 2; read++) bench.upstream.send(full(bench));
    assert.ok(slabs.outstandingBytes > 0);
    bench.proxy.destroyConnections();
    // The kernel may still have a part of it.
    assert.deepEqual([slabs.outstandingBytes, slabs.freeBytes], [0, 0]);
    await bench.untilClosed();
  });

  test('into a part of the buffer of all where less may wait for the client', async (t) => {
    const { bench, wire } = await opened(t, { cluster: { bufferLimitBytes: 4096 } });
    assert.equal(readBuffer(bench).length, 4096);
    for (let read = 0; read < 3; read++) bench.upstream.send(full(bench));
    assert.equal(readBuffer(bench).length, 4096);
    assert.equal(bench.context.slabs.outstandingBytes, 0);
    await wire.bytes(3 * 4096);
  });

  test('as it came while an earlier read waits for the client', async (t) => {
    const { bench, wire } = await opened(t);
    for (let read = 0; read < 2; read++) bench.upstream.send(full(bench));
    const slab = readBuffer(bench);
    wire.socket.pause();
    let sent = 2 * shared(bench).length;
    while (bench.upstream.isRead) {
      bench.upstream.send('y'.repeat(slab.length));
      sent += slab.length;
    }
    assert.equal(readBuffer(bench), slab);
    wire.socket.resume();
    const received = await wire.bytes(sent);
    assert.ok(received.subarray(2 * shared(bench).length).every((byte) => byte === 'y'.charCodeAt(0)));
  });
});

test('what a client has sent is freed when its upstream has taken it', async (t) => {
  const { bench, wire } = await opened(t);
  bench.upstream.isSlow = true;
  const piece = Buffer.alloc(60_000, 'z');
  wire.socket.end(piece);
  await Promise.all([
    once(wire.socket, 'finish'),
    bench.until(() => bench.upstream.received.length > 0, 'the first of it'),
  ]);
  assert.equal(bench.clusterStat('upstream_flow_control_drained_total'), 0);
  bench.upstream.take();
  assert.equal(bench.clusterStat('upstream_flow_control_drained_total'), 1);
  await bench.until(() => bench.upstream.received.length === piece.length && bench.upstream.writableEnded, 'the end');
  assert.equal(bench.clusterStat('upstream_cx_tx_bytes_total'), piece.length);
});
