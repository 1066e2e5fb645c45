// How long clients' connections and streams may live, over HTTP/1 and HTTP/2, by bytes on the wire and a clock that the test
// turns.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, type TestContext, test } from 'node:test';
import { ErrorCode, FrameType, PREFACE } from '../../src/data-plane/http/codec/http2/frames.ts';
import type { ConnectionLifeSettings, HttpConnectionManagerSettings } from '../../src/snapshot/index.ts';
import { eventually } from '../support/eventually.ts';
import { GET, type HttpBench, httpBench, TELL_FLAGS } from '../support/http-bench.ts';
import { direct, type Http2Bench, http2Bench, settledClient } from '../support/http2-bench.ts';
import { answerOf, Http2Client } from '../support/http2-clients.ts';
import { drainedBy } from '../support/http2-program.ts';
import { frame, headers, POST, readFrames, SETTINGS } from '../support/http2-session.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { arrived, silent } from '../support/silent-upstream.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const DIRECT = 'GET /direct HTTP/1.1\r\nhost: x\r\n\r\n';
const FOR_EVER = { maxDurationMs: 0, maxRequests: 0, endsHttp1WithResponse: false };
/** Of the second GOAWAY: the last stream that is taken. */
const ALL_STREAMS = 2 ** 31 - 1;

function life(settings: Partial<ConnectionLifeSettings>): Pick<HttpConnectionManagerSettings, 'connectionLife'> {
  return { connectionLife: { ...FOR_EVER, ...settings } };
}

/** Answers the ping that comes with the first GOAWAY. */
describe('an HTTP/1 connection', () => {
  interface Http1Bench extends HttpBench {
    readonly clock: ManualClock;
  }

  async function bench(t: TestContext, settings: Partial<HttpConnectionManagerSettings>): Promise<Http1Bench> {
    const clock = new ManualClock();
    return { ...(await httpBench(t, { clock, settings })), clock };
  }

  test('carries as many requests as it may, and says so with the last', async (t) => {
    const { client, proxy } = await bench(t, life({ maxRequests: 2 }));
    const wire = client().write(DIRECT);
    assert.doesNotMatch((await wire.response()).head, /connection: close/);
    assert.equal(proxy.httpStat('downstream_cx_max_requests_reached'), 0);
    assert.match((await wire.write(DIRECT).response()).head, /\r\nconnection: close\r\n/);
    assert.equal(await wire.rest(), '');
    assert.equal(proxy.httpStat('downstream_cx_max_requests_reached'), 1);
  });

  test('ends some time after it has come of age, when nothing runs on it', async (t) => {
    const { client, proxy, clock } = await bench(t, { ...life({ maxDurationMs: 1000 }), drainTimeoutMs: 500 });
    const wire = client().write(DIRECT);
    await wire.response();
    clock.turn(1100);
    assert.equal(proxy.httpStat('downstream_cx_max_duration_reached'), 1);
    assert.equal(proxy.httpStat('downstream_cx_active'), 1);
    assert.equal(wire.isEnded, false);
    clock.turn(600);
    assert.equal(await wire.rest(), '');
    assert.equal(proxy.httpStat('downstream_cx_idle_timeout'), 0);
  });

  test('of age ends with the next response', async (t) => {
    const { client, clock } = await bench(t, life({ maxDurationMs: 1000 }));
    const wire = client().write(DIRECT);
    await wire.response();
    clock.turn(1100);
    assert.match((await wire.write(DIRECT).response()).head, /\r\nconnection: close\r\n/);
    assert.equal(await wire.rest(), '');
  });

  test('ends only with a response that says so, where that is asked for', async (t) => {
    const settings = { ...life({ maxDurationMs: 1000, endsHttp1WithResponse: true }), drainTimeoutMs: 500 };
    const { client, clock, proxy } = await bench(t, settings);
    const wire = client().write(DIRECT);
    await wire.response();
    clock.turn(10_000);
    assert.equal(proxy.httpStat('downstream_cx_max_duration_reached'), 1);
    assert.match((await wire.write(DIRECT).response()).head, /\r\nconnection: close\r\n/);
    assert.equal(await wire.rest(), '');
  });

  test('ends behind a response that began before it was of age', async (t) => {
    const clock = new ManualClock();
    const answering = Promise.withResolvers<() => void>();
    const upstream = await WireUpstream.start((socket) => {
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\no');
        answering.resolve(() => socket.write('k'));
      });
    });
    const settings = { ...life({ maxDurationMs: 1000 }), drainTimeoutMs: 500 };
    const { client } = await httpBench(t, { clock, settings, upstream });
    const wire = client().write(GET);
    assert.doesNotMatch(await wire.until('\r\n\r\no'), /connection: close/);
    clock.turn(1100);
    clock.turn(600);
    (await answering.promise)();
    assert.equal(await wire.rest(), 'k');
  });

  test('that turns out to be one of HTTP/2 comes of age once', async (t) => {
    const { client, proxy, clock } = await bench(t, { ...life({ maxDurationMs: 1000 }), drainTimeoutMs: 500 });
    const wire = client().write(Buffer.concat([PREFACE, SETTINGS]));
    await eventually(() => proxy.httpStat('downstream_cx_http2_active') === 1, 'HTTP/2');
    clock.turn(1100);
    clock.turn(600);
    const frames = readFrames(Buffer.from(await wire.rest(), 'latin1'));
    assert.equal(frames.at(-1)?.type, FrameType.GOAWAY);
    assert.equal(proxy.httpStat('downstream_cx_max_duration_reached'), 1);
  });
});

describe('an HTTP/2 connection', () => {
  test('carries as many requests as it may, and is told in two steps', async (t) => {
    const here = await http2Bench(t, life({ maxRequests: 3 }));
    const client = await settledClient(t, here);
    client.send(direct(3));
    assert.ok(await client.find(({ type, streamId }) => type === FrameType.DATA && streamId === 3));
    assert.equal(here.proxy.httpStat('downstream_cx_max_requests_reached'), 0);
    client.send(direct(5));
    assert.equal((await client.ofType(FrameType.GOAWAY))?.payload.readUInt32BE(0), ALL_STREAMS);
    assert.ok(await client.find(({ type, streamId }) => type === FrameType.DATA && streamId === 5));
    await drainedBy(here.clock, client);
    assert.equal(await client.goaway(), ErrorCode.NO_ERROR);
    await client.ended();
    assert.equal(here.proxy.httpStat('downstream_cx_max_requests_reached'), 1);
  });

  test('of age is told in two steps, and ends', async (t) => {
    const here = await http2Bench(t, life({ maxDurationMs: 1000 }));
    const client = await settledClient(t, here);
    here.clock.turn(1100);
    assert.equal((await client.ofType(FrameType.GOAWAY))?.payload.readUInt32BE(0), ALL_STREAMS);
    client.send(direct(3));
    assert.ok(await client.find(({ type, streamId }) => type === FrameType.DATA && streamId === 3));
    await drainedBy(here.clock, client);
    assert.equal(await client.goaway(), ErrorCode.NO_ERROR);
    await client.ended();
    assert.equal(here.proxy.httpStat('downstream_cx_max_duration_reached'), 1);
  });

  test('of age that answers nothing ends, too, and no later for what it asks', async (t) => {
    const here = await http2Bench(t, { ...life({ maxDurationMs: 1000, maxRequests: 2 }), drainTimeoutMs: 500 });
    const client = await settledClient(t, here);
    here.clock.turn(1100);
    await client.ofType(FrameType.GOAWAY);
    here.clock.turn(400);
    client.send(direct(3));
    assert.ok(await client.find(({ type, streamId }) => type === FrameType.DATA && streamId === 3));
    here.clock.turn(150);
    assert.equal(await client.goaway(), ErrorCode.NO_ERROR);
    await client.ended();
  });
});

for (const protocol of ['HTTP/1', 'HTTP/2'] as const) {
  describe(`the duration of a stream over ${protocol}, as the connection manager bounds it`, () => {
    const settings = { maxStreamDurationMs: 1000 };
    const flags = { responseEdits: [TELL_FLAGS] };

    /** Sends a request, whole or not, and gives its answer. */
    async function ask(t: TestContext, port: number, isWhole: boolean): Promise<() => Promise<[number, string]>> {
      if (protocol === 'HTTP/2') {
        const client = new Http2Client(t, port);
        const stream = client.open(isWhole ? {} : { ':method': 'POST' }, { endStream: isWhole });
        if (!isWhole) stream.write('half');
        const answer = answerOf(stream);
        answer.catch(() => {});
        return async () => [(await answer).status, (await answer).body];
      }
      const wire = new WireClient(port);
      wire.write(isWhole ? GET : 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nhalf');
      return async () => {
        const { status, body } = await wire.response();
        wire.close();
        return [status, body];
      };
    }

    for (const [isWhole, status] of [
      [true, 504],
      [false, 408],
    ] as const) {
      test(`ends ${isWhole ? 'a request that nobody answers' : 'one that is still being sent'}: ${status}`, async (t) => {
        const [upstream, clock] = [await silent(), new ManualClock()];
        const { port, proxy } = await httpBench(t, { upstream, clock, settings, routeFields: flags });
        const answer = await ask(t, port, isWhole);
        const { socket } = await arrived(upstream.requests, 1);
        const closed = once(socket, 'close');
        clock.turn(990);
        assert.equal(proxy.httpStat('downstream_rq_max_duration_reached'), 0);
        clock.turn(50);
        assert.deepEqual(await answer(), [status, 'downstream duration timeout']);
        await closed;
        assert.equal(proxy.httpStat('downstream_rq_max_duration_reached'), 1);
        assert.equal(proxy.clusterStat('web', 'upstream_rq_max_duration_reached'), 0);
      });
    }

    test('gives way to what the route says, were it nothing', async (t) => {
      const [upstream, clock] = [await silent(), new ManualClock()];
      const route = { replacesStreamDuration: true, maxStreamDurationMs: 3000 };
      const { port, proxy } = await httpBench(t, { upstream, clock, settings, route });
      const answer = await ask(t, port, true);
      await arrived(upstream.requests, 1);
      clock.turn(2900);
      assert.equal(proxy.httpStat('downstream_rq_active'), 1);
      assert.equal(proxy.httpStat('downstream_rq_max_duration_reached'), 0);
      clock.turn(200);
      assert.deepEqual(await answer(), [504, 'downstream duration timeout']);
      assert.equal(proxy.httpStat('downstream_rq_max_duration_reached'), 1);
    });

    test('begins anew with a redirect that is followed', async (t) => {
      const clock = new ManualClock();
      const second = Promise.withResolvers<void>();
      const redirect = Promise.withResolvers<() => void>();
      const upstream = await WireUpstream.start((socket) => {
        socket.on('data', (chunk: Buffer) => {
          if (chunk.includes('/second')) second.resolve();
          else
            redirect.resolve(() =>
              socket.write('HTTP/1.1 302 Found\r\nlocation: http://x/second\r\ncontent-length: 0\r\n\r\n'),
            );
        });
      });
      const follows = { maxRedirects: 1, statuses: [302], predicates: [], allowsCrossScheme: false, headersToCopy: [] };
      const { port, proxy } = await httpBench(t, { upstream, clock, settings, route: { internalRedirects: follows } });
      const answer = await ask(t, port, true);
      const tell = await redirect.promise;
      clock.turn(700);
      tell();
      await second.promise;
      clock.turn(700);
      assert.equal(proxy.httpStat('downstream_rq_max_duration_reached'), 0);
      clock.turn(400);
      assert.deepEqual(await answer(), [504, 'downstream duration timeout']);
    });
  });
}

test('an answer that takes too long breaks off', async (t) => {
  const clock = new ManualClock();
  const upstream = await WireUpstream.start((socket) => {
    socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf'));
  });
  const { port, proxy } = await httpBench(t, { upstream, clock, settings: { maxStreamDurationMs: 1000 } });
  const stream = new Http2Client(t, port).open({}, { endStream: true });
  await once(stream, 'data');
  const failed = once(stream, 'error');
  clock.turn(1100);
  await failed;
  assert.equal(stream.rstCode, ErrorCode.INTERNAL_ERROR);
  assert.equal(proxy.httpStat('downstream_rq_max_duration_reached'), 1);
  assert.equal(proxy.httpStat('downstream_rq_tx_reset'), 1);
});

describe('the end of a connection', () => {
  const CLOSE = 'GET /direct HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n';
  /** Ends with a GOAWAY. */
  const BROKEN = Buffer.concat([PREFACE, SETTINGS, frame(FrameType.DATA, 0, 0)]);

  for (const [protocol, opening] of [
    ['HTTP/1', CLOSE],
    ['HTTP/2', BROKEN],
  ] as const) {
    test(`over ${protocol} waits for the client's as long as it may`, async (t) => {
      const { proxy, port, clock } = await http2Bench(t, { delayedCloseTimeoutMs: 3000 });
      const wire = new WireClient(port).write(opening);
      await wire.rest();
      clock.turn(2900);
      assert.equal(proxy.httpStat('downstream_cx_active'), 1);
      clock.turn(200);
      assert.equal(proxy.httpStat('downstream_cx_active'), 0);
      assert.equal(proxy.httpStat('downstream_cx_delayed_close_timeout'), 1);
      wire.close();
    });

    test(`over ${protocol} does not wait for the client's where it may not`, async (t) => {
      const { proxy, port } = await http2Bench(t, { delayedCloseTimeoutMs: 0 });
      const wire = new WireClient(port).write(opening);
      await wire.rest();
      await eventually(() => proxy.httpStat('downstream_cx_active') === 0, 'the end');
      assert.equal(proxy.httpStat('downstream_cx_delayed_close_timeout'), 0);
      wire.close();
    });
  }

  test('of a response that its client does not take has a time of its own', async (t) => {
    const here: Http2Bench = await http2Bench(t, { streamIdleTimeoutMs: 60_000, streamFlushTimeoutMs: 1000 });
    const client = await settledClient(t, here);
    client.send(frame(FrameType.SETTINGS, 0, 0, [0, 4, 0, 0, 0, 0]), direct(3), headers(5, POST, 0));
    await client.find(({ type, streamId }) => type === FrameType.HEADERS && streamId === 3);
    here.clock.turn(1100);
    const reset = await client.ofType(FrameType.RST_STREAM);
    assert.deepEqual([reset?.streamId, reset?.payload.readUInt32BE(0)], [3, ErrorCode.CANCEL]);
    assert.equal(here.proxy.http2Stat('tx_flush_timeout'), 1);
  });
});
