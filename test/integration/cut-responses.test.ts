// Responses that their upstream cuts while the client is slow: what was sent before is still the client's, and the reset
// comes behind it.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { descriptorOf } from '../../src/base/descriptor-budget.ts';
import { SystemCalls } from '../../src/base/system-calls.ts';
import { DataPlaneFixture, type FixtureOptions, forwardTo, loopback, routeFor } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { systemCalls } from '../support/unread-pair.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
const PIECE = Buffer.alloc(16 * 1024, 'x');
const FLUSH_TIMEOUT_MS = 10_000;

/** A response without an end, of which the client takes nothing until the proxy waits, and that is cut then. */
async function cutResponse(
  t: TestContext,
  options: FixtureOptions = {},
  beforeTheCut = (): void => {},
  flushTimeoutMs: number | null = null,
) {
  const upstream = await WireUpstream.start((socket) => void socket.resume());
  const proxy = new DataPlaneFixture(options);
  proxy.cluster('web', [loopback(upstream.port)]);
  const settings = { streamFlushTimeoutMs: FLUSH_TIMEOUT_MS };
  const wire = new WireClient(await proxy.http([routeFor('/', forwardTo('web', { flushTimeoutMs }))], settings));
  t.after(async () => {
    wire.close();
    await proxy.close();
    await upstream.close();
  });
  wire.write(GET);
  const socketOf = (): (typeof upstream.sockets)[number] => upstream.sockets[0]!;
  await eventually(() => upstream.sockets.length === 1 && socketOf().bytesRead >= GET.length, 'the request');
  const head = 'HTTP/1.1 200 OK\r\ncontent-length: 999999999\r\n\r\n';
  socketOf().write(head);
  await wire.until('\r\n\r\n');
  wire.socket.pause();
  const stat = (name: Parameters<typeof proxy.clusterStat>[1]): number => proxy.clusterStat('web', name);
  let sent = 0;
  while (stat('upstream_flow_control_paused_reading_total') === 0) {
    const before = stat('upstream_cx_rx_bytes_total');
    socketOf().write(PIECE);
    sent += PIECE.length;
    const isRead = (): boolean => stat('upstream_cx_rx_bytes_total') >= before + PIECE.length;
    await eventually(() => isRead() || stat('upstream_flow_control_paused_reading_total') > 0, 'the proxy reads');
  }
  // All that the proxy will read lies with its system, before the reset empties the queue of the sender's.
  const descriptor = descriptorOf(socketOf());
  const isOnItsWay = (): boolean => !systemCalls.sentState(descriptor)!.isAcknowledged;
  await eventually(() => socketOf().writableLength === 0 && !isOnItsWay(), 'the last piece');
  beforeTheCut();
  socketOf().resetAndDestroy();
  // A read at a time, until the proxy reads on and so meets the reset: a client that took more might have all of it by then.
  const pause = (): void => void wire.socket.pause();
  wire.socket.on('data', pause);
  await eventually(() => {
    if (stat('upstream_flow_control_resumed_reading_total') === 0) wire.socket.resume();
    return stat('upstream_cx_active') === 0;
  }, 'the proxy has done with the upstream');
  wire.socket.off('data', pause).pause();
  return { proxy, wire, sent };
}

function assertReset(wire: WireClient): void {
  assert.equal((wire.error as NodeJS.ErrnoException | null)?.code, 'ECONNRESET');
}

for (const readMode of ['lean', 'events'] as const) {
  describe(`a client that is slow to take a response that is cut, reading by ${readMode}`, () => {
    test('gets all that came before, and then the reset', async (t) => {
      const { proxy, wire, sent } = await cutResponse(t, { readMode });
      assert.equal(proxy.httpStat('downstream_cx_active'), 1);
      assert.equal(proxy.httpStat('downstream_rq_active'), 0);
      wire.socket.resume();
      assert.equal((await wire.rest()).length, sent);
      await eventually(() => wire.error !== null, 'the reset');
      assertReset(wire);
      assert.equal(proxy.httpStat('downstream_rq_tx_reset'), 1);
      assert.equal(proxy.httpStat('downstream_cx_active'), 0);
      assert.equal(proxy.httpStat('downstream_cx_delayed_close_timeout'), 0);
    });

    test('gets that also if it ends its side, or asks for more', async (t) => {
      const { proxy, wire, sent } = await cutResponse(t, { readMode });
      const received = proxy.httpStat('downstream_cx_rx_bytes_total');
      wire.socket.end(GET);
      await eventually(() => proxy.httpStat('downstream_cx_rx_bytes_total') > received, 'what it asks for');
      wire.socket.resume();
      assert.equal((await wire.rest()).length, sent);
      await eventually(() => wire.error !== null, 'the reset');
      assertReset(wire);
      assert.equal(proxy.httpStat('downstream_rq_total'), 1);
    });

    test('is reset when it has taken nothing for the time of a flush', async (t) => {
      const clock = new ManualClock();
      const { proxy, wire, sent } = await cutResponse(t, { readMode, clock });
      clock.turn(FLUSH_TIMEOUT_MS - 100);
      assert.equal(proxy.httpStat('downstream_cx_active'), 1);
      // What was on its way counts as progress, whenever the system tells of it.
      await eventually(() => {
        clock.turn(FLUSH_TIMEOUT_MS);
        return proxy.httpStat('downstream_cx_active') === 0;
      }, 'the connection is over');
      assert.equal(proxy.httpStat('downstream_cx_delayed_close_timeout'), 1);
      wire.socket.resume();
      assert.ok((await wire.rest()).length < sent);
      await eventually(() => wire.error !== null, 'the reset');
      assertReset(wire);
    });

    test('is reset at the end of a stop', async (t) => {
      const { proxy, wire, sent } = await cutResponse(t, { readMode });
      await proxy.dataPlane.shutdown(20);
      wire.socket.resume();
      assert.ok((await wire.rest()).length < sent);
      await eventually(() => wire.error !== null, 'the reset');
      assertReset(wire);
    });
  });
}

test('a client that goes on taking a response that was cut has all the time that this takes', async (t) => {
  const clock = new ManualClock();
  const state = { isAcknowledged: false, acknowledgedBytes: 1 };
  const { proxy } = await cutResponse(t, { clock }, () => {
    t.mock.method(SystemCalls.prototype, 'sentState', () => state);
  });
  for (let round = 0; round < 3; round++) {
    clock.turn(FLUSH_TIMEOUT_MS - 500);
    assert.equal(proxy.httpStat('downstream_cx_active'), 1);
    state.acknowledgedBytes++;
    clock.turn(400);
  }
  assert.equal(proxy.httpStat('downstream_cx_delayed_close_timeout'), 0);
  clock.turn(FLUSH_TIMEOUT_MS);
  await eventually(() => proxy.httpStat('downstream_cx_active') === 0, 'the connection is over');
});

test('a client that takes nothing of a response that was cut is not waited for any longer', async (t) => {
  const clock = new ManualClock();
  const { proxy } = await cutResponse(t, { clock }, () => {
    t.mock.method(SystemCalls.prototype, 'sentState', () => ({ isAcknowledged: false, acknowledgedBytes: 1 }));
  });
  clock.turn(FLUSH_TIMEOUT_MS - 100);
  assert.equal(proxy.httpStat('downstream_cx_active'), 1);
  clock.turn(200);
  assert.equal(proxy.httpStat('downstream_cx_active'), 0);
});

test('a route has another time for that than its connection manager', async (t) => {
  const clock = new ManualClock();
  const mocked = (): void => {
    t.mock.method(SystemCalls.prototype, 'sentState', () => ({ isAcknowledged: false, acknowledgedBytes: 1 }));
  };
  const { proxy } = await cutResponse(t, { clock }, mocked, 3 * FLUSH_TIMEOUT_MS);
  clock.turn(3 * FLUSH_TIMEOUT_MS - 100);
  assert.equal(proxy.httpStat('downstream_cx_active'), 1);
  clock.turn(200);
  assert.equal(proxy.httpStat('downstream_cx_active'), 0);
});
