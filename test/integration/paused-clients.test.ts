// Clients that leave while nothing is read from them: it is noticed all the same, and what they held is given back.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { SystemCalls } from '../../src/base/system-calls.ts';
import type { DataPlaneFixture } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { RAW_PATHS } from '../support/raw-paths.ts';
import { digest, flood, tunnelBench } from '../support/tunnel-bench.ts';
import { type WireClient, WireUpstream } from '../support/wire.ts';

const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
const UPLOADS = {
  'by length': ['content-length: 1000000000', (bytes: Buffer): Buffer => bytes],
  'in chunks': [
    'transfer-encoding: chunked',
    (bytes: Buffer): Buffer => Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, CRLF]),
  ],
} as const;
const CRLF = Buffer.from('\r\n');
const PIECE = Buffer.alloc(32 * 1024, 'x');
/** Turns of the event loop in which nothing moves. */
const STILL_TURNS = 20;

/** An end goes at once, whatever of the upload has not left the client. */
const WAYS: Readonly<Record<string, (socket: Socket) => void>> = {
  'its end': (socket) => void socket.destroy(),
  'a reset': (socket) => void socket.resetAndDestroy(),
};

/** Accepts, and neither reads nor answers. */
async function stalledUpstream(t: TestContext): Promise<WireUpstream> {
  const upstream = await WireUpstream.start((socket) => socket.pause());
  t.after(() => upstream.close());
  return upstream;
}

async function assertReleased(proxy: DataPlaneFixture): Promise<void> {
  await eventually(() => proxy.httpStat('downstream_cx_active') === 0, 'the end of the connection');
  assert.equal(proxy.httpStat('downstream_rq_active'), 0);
  assert.equal(proxy.httpStat('downstream_rq_rx_reset'), 1);
  assert.equal(proxy.clusterStat('web', 'upstream_rq_active'), 0);
  for (const count of [0, 4, 8] as const) assert.equal(proxy.breakerCount('web', count), 0);
}

/**
 * Sends until the stalled upstream has taken all that it can, and little more: the end of a client behind more than the
 * systems on the way take does not even leave it.
 */
async function uploadUntilPaused(proxy: DataPlaneFixture, wire: WireClient, frame: (bytes: Buffer) => Buffer) {
  const { httpStat } = proxy;
  const isPaused = (): boolean =>
    httpStat('downstream_flow_control_paused_reading_total') >
    httpStat('downstream_flow_control_resumed_reading_total');
  for (let still = 0; still < STILL_TURNS; still = isPaused() ? still + 1 : 0) {
    if (still === 0) wire.write(frame(PIECE));
    await new Promise(setImmediate);
  }
}

for (const readMode of ['lean', 'events'] as const) {
  describe(`a client that leaves while it is not read, reading by ${readMode}`, () => {
    for (const [way, leave] of Object.entries(WAYS)) {
      for (const [framing, [field, frame]] of Object.entries(UPLOADS)) {
        test(`in an upload ${framing} into an upstream that has stalled, by ${way}`, async (t) => {
          const upstream = await stalledUpstream(t);
          const { proxy, client, entries } = await tunnelBench(t, { upstreamPort: upstream.port, readMode });
          const wire = client().write(`POST / HTTP/1.1\r\nhost: x\r\n${field}\r\n\r\n`);
          await uploadUntilPaused(proxy, wire, frame);
          leave(wire.socket);
          await assertReleased(proxy);
          assert.match((await entries()).join(), /^0 DC downstream_remote_disconnect /);
        });
      }

      test(`with a request behind one that is not answered, by ${way}`, async (t) => {
        const upstream = await stalledUpstream(t);
        const { proxy, client, entries } = await tunnelBench(t, { upstreamPort: upstream.port, readMode });
        const wire = client().write(GET + GET);
        await eventually(() => proxy.clusterStat('web', 'upstream_rq_active') === 1, 'the first request');
        leave(wire.socket);
        await assertReleased(proxy);
        assert.match((await entries()).join(), /^0 DC downstream_remote_disconnect /);
      });
    }

    for (const [name, open] of Object.entries(RAW_PATHS)) {
      test(`on ${name}, by a reset: the upstream is reset at once`, async (t) => {
        const { proxy, wire, server, paused } = await open(t, { readMode });
        const reset = once(server, 'error');
        server.pause();
        await flood(
          (bytes) => wire.write(bytes),
          () => paused() > 0,
        );
        wire.socket.resetAndDestroy();
        await eventually(() => proxy.listenerStat('downstream_cx_active') === 0, 'the end of the connection');
        assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 0);
        server.resume();
        assert.equal(((await reset)[0] as NodeJS.ErrnoException).code, 'ECONNRESET');
      });

      test(`on ${name}, by its end: all that it has sent arrives first`, async (t) => {
        const looks = t.mock.method(SystemCalls.prototype, 'peerStates');
        const { wire, server, paused } = await open(t, { readMode });
        server.pause();
        const sent = await flood(
          (bytes) => wire.write(bytes),
          () => paused() > 0,
        );
        wire.socket.end();
        const ended = once(server, 'end');
        const before = looks.mock.callCount();
        await eventually(() => looks.mock.callCount() > before + 2, 'looks at the end of the client');
        assert.equal(await digest(server, sent.bytes), sent.sha256);
        await ended;
      });
    }
  });
}
