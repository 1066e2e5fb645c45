// When clients of HTTP/2 hear of a drain that gives them time: those that get no response in it, too, and not all at once.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { ErrorCode, FrameType } from '../../src/data-plane/http/codec/http2/frames.ts';
import type { DrainProgress, ListenerSettings } from '../../src/snapshot/index.ts';
import { DataPlaneFixture, directRoute, forwardTo, httpManager, loopback, routeFor } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { direct, settledClient } from '../support/http2-bench.ts';
import type { FrameClient } from '../support/http2-clients.ts';
import { drainedBy, ended, goaways, readSoFar } from '../support/http2-program.ts';
import { headers } from '../support/http2-session.ts';
import { filterChain } from '../support/listeners.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const ANY_STREAM = 2 ** 31 - 1;
const DRAIN_MS = 60_000;
const DRAIN_TIMEOUT_MS = 5000;
const GRADUAL: DrainProgress = { strategy: 'gradual', elapsedMs: 0, durationMs: DRAIN_MS };
const FIRST_LISTENER = 1;

interface Bench {
  readonly proxy: DataPlaneFixture;
  readonly clock: ManualClock;
  readonly port: number;
  readonly upstream: WireUpstream;
  /** What moments are chosen by, and responses judged. */
  draw: () => number;
}

async function benchOf(t: TestContext, settings: Partial<ListenerSettings> = {}): Promise<Bench> {
  const upstream = await WireUpstream.start((socket) => void socket.resume());
  const clock = new ManualClock();
  const bench = { draw: () => 0 };
  const proxy = new DataPlaneFixture({ clock, random: { u32: () => bench.draw() } });
  proxy.cluster('web', [loopback(upstream.port)]);
  const routes = [directRoute('/direct', 200, 'direct'), routeFor('/', forwardTo('web', { timeoutMs: 0 }))];
  const manager = httpManager(routes, { drainTimeoutMs: DRAIN_TIMEOUT_MS });
  const [port] = await proxy.listenWith({
    addresses: [{ kind: 'ip', ip: '127.0.0.1', port: 0 }],
    filterChains: [filterChain(manager)],
    ...settings,
  });
  t.after(async () => {
    await proxy.close();
    await upstream.close();
  });
  return Object.assign(bench, { proxy, clock, port: port!, upstream });
}

/** How drains begin: by the operator's order, or because the listener is no more. */
const BEGINNINGS: Readonly<Record<string, (bench: Bench, progress?: DrainProgress) => void>> = {
  'is ordered': ({ proxy }, progress = GRADUAL) => proxy.dataPlane.updateDrains({ inbound: null, others: progress }),
  'comes of a removal': ({ proxy }, progress = GRADUAL) =>
    void proxy.dataPlane.stopListener(FIRST_LISTENER, { drain: progress }),
};

async function toldNothing(client: FrameClient, mark: string): Promise<void> {
  await readSoFar(client, mark);
  assert.deepEqual(goaways(client), []);
}

for (const [how, begin] of Object.entries(BEGINNINGS)) {
  describe(`when a drain ${how}, a client of HTTP/2`, () => {
    test('that has asked for nothing is told in its time, and in two steps', async (t) => {
      const here = await benchOf(t);
      const client = await settledClient(t, here);
      here.draw = () => 20_000;
      begin(here);
      here.clock.turn(19_900);
      await toldNothing(client, 'early');
      here.clock.turn(200);
      await client.ofType(FrameType.GOAWAY);
      assert.deepEqual(goaways(client), [ANY_STREAM]);
      // Between them it is served.
      client.send(direct(3));
      assert.equal(await ended(client, 3), 'direct');
      here.clock.turn(DRAIN_TIMEOUT_MS - 200);
      await readSoFar(client, 'between');
      assert.deepEqual(goaways(client), [ANY_STREAM]);
      here.clock.turn(400);
      assert.equal(await client.goaway(), ErrorCode.NO_ERROR);
      await client.ended();
      assert.deepEqual(goaways(client), [ANY_STREAM, 3]);
      assert.equal(here.proxy.httpStat('downstream_cx_drain_close'), 1);
    });

    test('that waits for an answer is told in its time, and gets the answer', async (t) => {
      const here = await benchOf(t);
      const client = await settledClient(t, here);
      client.send(headers(3));
      await eventually(() => here.upstream.sockets.length === 1, 'the request');
      here.draw = () => 20_000;
      begin(here);
      here.clock.turn(20_100);
      await drainedBy(here.clock, client);
      assert.equal(await client.goaway(), ErrorCode.NO_ERROR);
      assert.deepEqual(goaways(client), [ANY_STREAM, 3]);
      here.upstream.sockets[0]!.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
      assert.equal(await ended(client, 3), 'ok');
      await client.ended();
    });

    test('that a response has told is not told again', async (t) => {
      const here = await benchOf(t);
      const client = await settledClient(t, here);
      here.draw = () => 20_000;
      begin(here);
      here.clock.turn(18_000);
      here.draw = () => 0;
      client.send(direct(3));
      assert.equal(await ended(client, 3), 'direct');
      assert.deepEqual(goaways(client), [ANY_STREAM]);
      here.clock.turn(2100);
      here.clock.turn(3000);
      await client.ended();
      assert.deepEqual(goaways(client), [ANY_STREAM, 3]);
      assert.equal(here.proxy.httpStat('downstream_cx_drain_close'), 1);
    });

    test('is told no later for another order', async (t) => {
      const here = await benchOf(t);
      const client = await settledClient(t, here);
      here.draw = () => 20_000;
      begin(here);
      here.draw = () => 50_000;
      BEGINNINGS['is ordered']!(here);
      here.clock.turn(20_100);
      await client.ofType(FrameType.GOAWAY);
      assert.deepEqual(goaways(client), [ANY_STREAM]);
    });

    test('is told at once where all drain at once', async (t) => {
      const here = await benchOf(t);
      const client = await settledClient(t, here);
      begin(here, { ...GRADUAL, strategy: 'immediate' });
      here.clock.turn(100);
      await client.ofType(FrameType.GOAWAY);
      assert.deepEqual(goaways(client), [ANY_STREAM]);
    });
  });
}

test('clients of HTTP/2 are told each in a time of their own', async (t) => {
  const here = await benchOf(t);
  const clients = [await settledClient(t, here), await settledClient(t, here), await settledClient(t, here)];
  // The manager asks once for each connection.
  const moments = [10_000, 30_000, 50_000];
  here.draw = () => moments.shift() ?? DRAIN_MS - 1;
  BEGINNINGS['is ordered']!(here);
  for (const [index, client] of clients.entries()) {
    await toldNothing(client, `${index}`);
    here.clock.turn(index === 0 ? 10_100 : 20_000);
    await client.ofType(FrameType.GOAWAY);
    assert.deepEqual(goaways(client), [ANY_STREAM]);
  }
});

describe('a client of HTTP/2 that comes while its listener drains', () => {
  test('is told in the time that is left', async (t) => {
    const here = await benchOf(t);
    BEGINNINGS['is ordered']!(here);
    here.clock.turn(40_000);
    // 10 of the 20 seconds that are left, and too much for responses.
    here.draw = () => 50_000;
    const client = await settledClient(t, here);
    here.clock.turn(9900);
    await toldNothing(client, 'early');
    here.clock.turn(200);
    await client.ofType(FrameType.GOAWAY);
    assert.deepEqual(goaways(client), [ANY_STREAM]);
  });

  test('is told with its first response when the time is over', async (t) => {
    const here = await benchOf(t);
    BEGINNINGS['is ordered']!(here);
    here.clock.turn(DRAIN_MS + 100);
    const client = await settledClient(t, here);
    await client.ofType(FrameType.GOAWAY);
    assert.deepEqual(goaways(client), [ANY_STREAM]);
    assert.equal(here.proxy.httpStat('downstream_cx_drain_close'), 1);
  });
});

test('a drain of inbound listeners is none of others', async (t) => {
  const inbound = await benchOf(t, { trafficDirection: 'INBOUND' });
  const outbound = await benchOf(t, { trafficDirection: 'OUTBOUND' });
  const told = async ({ proxy, clock, port }: Bench): Promise<number[]> => {
    const client = await settledClient(t, { proxy, port });
    proxy.dataPlane.updateDrains({ inbound: GRADUAL, others: null });
    clock.turn(100);
    await readSoFar(client, 'all');
    return goaways(client);
  };
  assert.deepEqual(await told(inbound), [ANY_STREAM]);
  assert.deepEqual(await told(outbound), []);
});

test('a client of HTTP/1 that has nothing to hear it with stays', async (t) => {
  const here = await benchOf(t);
  const client = new WireClient(here.port);
  t.after(() => client.close());
  const ask = async (): Promise<string> =>
    (await client.write('GET /direct HTTP/1.1\r\nhost: a\r\n\r\n').response()).head;
  assert.doesNotMatch(await ask(), /connection: close/i);
  BEGINNINGS['is ordered']!(here);
  here.clock.turn(DRAIN_MS + 100);
  assert.match(await ask(), /connection: close/i);
});
