// Clients that leave while nothing is read from them, by a clock turned by hand: who is gone within a second, and what
// goes on because something still moves. paused-clients.test.ts has the same by the clock that there is.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, type TestContext, test } from 'node:test';
import { descriptorOf } from '../../src/base/descriptor-budget.ts';
import { PeerState, SystemCalls } from '../../src/base/system-calls.ts';
import { startProgram } from '../support/child-process.ts';
import { type DataPlaneFixture, routeTo } from '../support/data-plane.ts';
import { eventually, untilEqual } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { RAW_PATHS } from '../support/raw-paths.ts';
import { fill, type TunnelBench, tunnelBench, UPGRADE } from '../support/tunnel-bench.ts';
import { peerStateOf } from '../support/unread-pair.ts';
import { peerEnd, type WireClient, WireUpstream } from '../support/wire.ts';

const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
const POST = 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999\r\n\r\n';
const SECOND_MS = 1000;
/** Less than lies between two looks at who has left. */
const BRIEFLY_MS = 350;
/** Turns of the event loop in which nothing moves. */
const STILL_TURNS = 20;
const WAYS: Readonly<Record<string, (wire: WireClient) => Promise<unknown>>> = {
  ends: async (wire) => {
    wire.socket.end();
    await once(wire.socket, 'finish');
  },
  resets: async (wire) => {
    wire.socket.resetAndDestroy();
    await once(wire.socket, 'close');
  },
};

interface Bench extends TunnelBench {
  readonly upstream: WireUpstream;
  readonly clock: ManualClock;
  readonly received: () => number;
}

/** In front of an upstream that reads nothing before it is told to. */
async function bench(t: TestContext, readMode: 'lean' | 'events'): Promise<Bench> {
  const upstream = await WireUpstream.start((socket) => socket.pause());
  t.after(() => upstream.close());
  const clock = new ManualClock();
  const routes = [routeTo('web', { timeoutMs: 0 })];
  const opened = await tunnelBench(t, { upstreamPort: upstream.port, clock, readMode, routes });
  return { ...opened, upstream, clock, received: () => opened.proxy.httpStat('downstream_cx_rx_bytes_total') };
}

/** The upstream may see a connection first: a clock that is turned then ends the time to connect. */
function isConnected(proxy: DataPlaneFixture): boolean {
  return proxy.clusterSamples('web', 'upstream_cx_connect_ms').length === 1;
}

/** An upload that its upstream does not take, with more behind it than was read. */
async function stalledUpload({ client, proxy, received }: Bench): Promise<WireClient> {
  const { httpStat } = proxy;
  const wire = client().write(POST);
  await eventually(() => isConnected(proxy) && received() === POST.length, 'the head');
  const isPaused = (): boolean =>
    httpStat('downstream_flow_control_paused_reading_total') >
    httpStat('downstream_flow_control_resumed_reading_total');
  for (let still = 0; still < STILL_TURNS; still = isPaused() ? still + 1 : 0) {
    if (still === 0) await fill((piece) => wire.write(piece), received, isPaused);
    await new Promise(setImmediate);
  }
  wire.write('unread');
  return wire;
}

function assertGone({ proxy }: Bench): void {
  assert.equal(proxy.httpStat('downstream_rq_active'), 0);
  assert.equal(proxy.httpStat('downstream_rq_rx_reset'), 1);
  assert.equal(proxy.httpStat('downstream_cx_active'), 0);
  assert.equal(proxy.httpStat('downstream_cx_destroy_remote_active_rq'), 1);
  assert.equal(proxy.clusterStat('web', 'upstream_rq_active'), 0);
  for (const count of [0, 4, 8] as const) assert.equal(proxy.breakerCount('web', count), 0);
}

const HANGING: Readonly<Record<string, (bench: Bench) => Promise<WireClient>>> = {
  'an upload that its upstream does not take': stalledUpload,
  'a request behind one that hangs': async ({ client, proxy }) => {
    const wire = client().write(GET.repeat(2));
    await eventually(() => isConnected(proxy), 'the first request');
    assert.equal(proxy.clusterStat('web', 'upstream_rq_active'), 1);
    return wire;
  },
  'an upgrade without an answer, whose first bytes wait': async ({ client, proxy }) => {
    const wire = client().write(`${UPGRADE}early`);
    await eventually(() => isConnected(proxy), 'the request');
    return wire;
  },
};

for (const readMode of ['lean', 'events'] as const) {
  for (const [what, begin] of Object.entries(HANGING)) {
    describe(`${what}, reading by ${readMode}`, () => {
      for (const [how, leave] of Object.entries(WAYS)) {
        test(`is gone within a second when its client ${how}, and looked after no more`, async (t) => {
          const fixture = await bench(t, readMode);
          const wire = await begin(fixture);
          fixture.clock.turn(5 * SECOND_MS);
          assert.equal(fixture.proxy.httpStat('downstream_rq_active'), 1);
          await leave(wire);
          fixture.clock.turn(SECOND_MS);
          assertGone(fixture);
          fixture.clock.turn(SECOND_MS);
          const looks = t.mock.method(SystemCalls.prototype, 'peerStates');
          fixture.clock.turn(10 * SECOND_MS);
          assert.equal(looks.mock.callCount(), 0);
        });
      }
    });
  }

  describe(`what a client has sent before its end, reading by ${readMode}`, () => {
    test('arrives whole as long as the upstream takes some of it', async (t) => {
      const fixture = await bench(t, readMode);
      const { clock, upstream, proxy, received } = fixture;
      const wire = await stalledUpload(fixture);
      wire.write(Buffer.alloc(150_000));
      const sent = received() + 'unread'.length + 150_000;
      await WAYS.ends!(wire);
      while (proxy.httpStat('downstream_cx_active') === 1) {
        clock.turn(BRIEFLY_MS);
        const before = received();
        upstream.sockets[0]!.resume();
        const hasMoved = (): boolean => received() > before || proxy.httpStat('downstream_cx_active') === 0;
        await eventually(hasMoved, 'some of the upload');
        upstream.sockets[0]!.pause();
      }
      assert.equal(received(), sent);
      assertGone(fixture);
    });
  });

  for (const [name, open] of Object.entries(RAW_PATHS)) {
    describe(`${name}, reading by ${readMode}`, () => {
      test('carries everything before an end, however long it waits', async (t) => {
        const clock = new ManualClock();
        const path = await open(t, { readMode, clock });
        const { proxy, wire, server } = path;
        const sent = await fill(
          (piece) => wire.write(piece),
          path.received,
          () => path.paused() > 0,
        );
        wire.write('unread');
        await WAYS.ends!(wire);
        clock.turn(60 * SECOND_MS);
        assert.equal(proxy.dataPlane.connectionCount, 1);
        let arrived = 0;
        server.on('data', (chunk: Buffer) => {
          arrived += chunk.length;
        });
        assert.equal(await peerEnd(server), 'end');
        assert.equal(arrived, sent + 'unread'.length);
        server.end('answer');
        assert.equal(await wire.rest(), 'answer');
        await eventually(() => proxy.dataPlane.connectionCount === 0, 'the end of the connection');
      });

      test('passes on a reset behind an end within a second', async (t) => {
        const clock = new ManualClock();
        const { proxy, wire, server } = await open(t, { readMode, clock });
        await WAYS.ends!(wire.write('all'));
        assert.equal(await peerEnd(server), 'end');
        clock.turn(60 * SECOND_MS);
        assert.equal(proxy.dataPlane.connectionCount, 1);
        await WAYS.resets!(wire);
        clock.turn(SECOND_MS);
        assert.equal(proxy.dataPlane.connectionCount, 0);
        assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 0);
        await untilEqual(PeerState.reset, () => peerStateOf(descriptorOf(server)), 'what the upstream sees');
      });
    });
  }
}

for (const readMode of ['lean', 'events'] as const) {
  test(`an upstream that resets a proxied connection behind its end is gone within a second, reading by ${readMode}`, async (t) => {
    const clock = new ManualClock();
    const { proxy, wire, server } = await RAW_PATHS['the TCP proxy']!(t, { readMode, clock });
    server.end('all');
    assert.equal(await wire.rest(), 'all');
    clock.turn(60 * SECOND_MS);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 1);
    server.resetAndDestroy();
    await once(server, 'close');
    clock.turn(SECOND_MS);
    assert.equal(proxy.clusterStat('web', 'upstream_cx_destroy_remote'), 1);
    // Its client's system may take a moment to acknowledge the end.
    await eventually(() => {
      clock.turn(1);
      return proxy.dataPlane.connectionCount === 0;
    }, 'the end of the connection');
    assert.equal(wire.error, null);
    const looks = t.mock.method(SystemCalls.prototype, 'peerStates');
    clock.turn(10 * SECOND_MS);
    assert.equal(looks.mock.callCount(), 0);
  });
}

test('a client whose process is killed is gone, by the clock and the system that there are', async (t) => {
  const upstream = await WireUpstream.start(() => {});
  t.after(() => upstream.close());
  const { proxy, port } = await tunnelBench(t, { upstreamPort: upstream.port });
  const script = `require('node:net').connect(${port}, '127.0.0.1').write(${JSON.stringify(GET.repeat(2))})`;
  const program = startProgram(process.execPath, ['-e', script]);
  await eventually(() => proxy.clusterStat('web', 'upstream_rq_active') === 1, 'the request');
  program.kill('SIGKILL');
  await eventually(() => proxy.httpStat('downstream_rq_active') === 0, 'the end of the request');
  assert.equal(proxy.httpStat('downstream_rq_rx_reset'), 1);
  assert.equal(proxy.clusterStat('web', 'upstream_rq_active'), 0);
});
