// Clients that send frames which cost the proxy more than themselves: the connection ends with the right code, counted, and
// neighbours go on.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ErrorCode, FrameFlag, FrameType, PREFACE } from '../../src/data-plane/http/codec/http2/frames.ts';
import { DataPlaneFixture, directRoute, loopback, routeTo } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { FrameClient, Http2Client } from '../support/http2-clients.ts';
import { ENDLESS_WINDOWS, FLOODS, get, many, UNREAD_FLOODS, UNREAD_LIMIT_BYTES } from '../support/http2-floods.ts';
import { frame } from '../support/http2-session.ts';
import { WireUpstream } from '../support/wire.ts';

interface Bench {
  readonly proxy: DataPlaneFixture;
  readonly port: number;
  readonly asked: () => number;
}

async function bench(t: TestContext): Promise<Bench> {
  const upstream = await WireUpstream.start(() => {});
  const proxy = new DataPlaneFixture();
  proxy.cluster('web', [loopback(upstream.port)]);
  const port = await proxy.http([
    directRoute('/direct', 200, 'direct'),
    directRoute('/empty', 204, ''),
    directRoute('/large', 200, 'x'.repeat(4096)),
    routeTo('web'),
  ]);
  t.after(async () => {
    await proxy.close();
    await upstream.close();
  });
  return { proxy, port, asked: () => proxy.clusterStat('web', 'upstream_rq_active') };
}

/**
 * Reads nothing, asks for content until that waits in the proxy, because kernels on both sides hold all that they take, and
 * then sends pieces until the connection is over.
 */
async function sendUnread(t: TestContext, { proxy, port }: Bench, piece: (streamId: number) => Buffer): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  t.after(() => socket.destroy());
  socket.on('error', () => {});
  socket.pause();
  const ended = new Promise((resolve) => socket.once('close', resolve));
  const hasRoom = (): Promise<unknown> => new Promise((resolve) => socket.once('drain', resolve));
  let streamId = 1;
  const send = async (make: (streamId: number) => Buffer, count: number): Promise<void> => {
    assert.ok(socket.bytesWritten < UNREAD_LIMIT_BYTES, 'the proxy answers without end');
    const isTaken = socket.write(Buffer.concat(many(count, (index) => make(streamId + 2 * index))));
    streamId += 2 * count;
    await (isTaken ? nextTurn() : Promise.race([hasRoom(), ended]));
  };
  socket.write(Buffer.concat([PREFACE, ...ENDLESS_WINDOWS]));
  while (proxy.httpStat('downstream_cx_tx_bytes_buffered') === 0) await send((id) => get(id, '/large'), 10);
  while (!socket.destroyed) await send(piece, 100);
  await ended;
}

describe('a client that floods', () => {
  for (const { name, stat, frames } of FLOODS) {
    test(`with ${name} is told to be calm, and nobody else notices`, async (t) => {
      const { proxy, port, asked } = await bench(t);
      const neighbour = new Http2Client(t, port);
      assert.equal((await neighbour.get('/direct')).body, 'direct');
      const client = new FrameClient(t, port);
      client.send(...frames);
      assert.equal(await client.goaway(), ErrorCode.ENHANCE_YOUR_CALM);
      await client.ended();
      if (stat !== null) assert.equal(proxy.http2Stat(stat), 1);
      assert.equal(proxy.httpStat('downstream_rq_too_many_premature_resets'), stat === null ? 1 : 0);
      assert.equal(proxy.httpStat('downstream_cx_protocol_error'), 1);
      assert.equal((await neighbour.get('/direct')).body, 'direct');
      await eventually(() => asked() === 0, 'the end of what it has asked');
      assert.equal(proxy.http2Stat('streams_active'), 0);
    });
  }

  for (const { name, stat, piece } of UNREAD_FLOODS) {
    test(`with ${name}, and reads nothing, is cut off`, async (t) => {
      const here = await bench(t);
      const { proxy, port } = here;
      const neighbour = new Http2Client(t, port);
      await sendUnread(t, here, piece);
      assert.equal(proxy.http2Stat(stat), 1);
      assert.equal((await neighbour.get('/direct')).body, 'direct');
      await eventually(() => proxy.httpStat('downstream_cx_http2_active') === 1, 'the neighbour alone');
      assert.equal(proxy.httpStat('downstream_cx_tx_bytes_buffered'), 0);
    });
  }

  test('by stopping in the middle of a frame costs nobody else anything', async (t) => {
    const { proxy, port } = await bench(t);
    const client = new FrameClient(t, port);
    client.send(frame(FrameType.DATA, FrameFlag.PADDED, 1).subarray(0, 5));
    const neighbour = new Http2Client(t, port);
    assert.equal((await neighbour.get('/direct')).body, 'direct');
    assert.equal(proxy.httpStat('downstream_cx_http2_active'), 2);
  });
});
