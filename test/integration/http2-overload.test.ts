// What the overload manager of the real program asks of connections that carry many streams: each action ends as little as it can.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { ErrorCode, FrameType, PREFACE } from '../../src/data-plane/http/codec/http2/frames.ts';
import type { JsonObject } from '../support/bootstrap.ts';
import { untilEqual } from '../support/eventually.ts';
import type { FrameClient } from '../support/http2-clients.ts';
import {
  confirmDrain,
  ended,
  get,
  goaways,
  Http2Program,
  type Http2ProgramOptions,
  readSoFar,
  WAYS,
} from '../support/http2-program.ts';
import { frame, word } from '../support/http2-session.ts';
import { AT_HALF, actionAtHalf, injected, type PressureFile, pressureFile } from '../support/pressure.ts';
import { ReferenceDecoder } from '../support/reference/hpack.ts';
import { WireUpstream } from '../support/wire.ts';

const ANY_STREAM = 2 ** 31 - 1;
const ACTION = 'overload.proxy.overload_actions';
const HEAVY_BYTES = 64 * 1024;
const HEAVY = `HTTP/1.1 200 OK\r\ncontent-length: ${HEAVY_BYTES}\r\n\r\n${'x'.repeat(HEAVY_BYTES)}`;

interface Pressed {
  readonly program: Http2Program;
  readonly pressure: PressureFile;
}

async function pressed(t: TestContext, overload: JsonObject, options: Http2ProgramOptions = {}): Promise<Pressed> {
  const pressure = pressureFile();
  const monitors = { refresh_interval: '0.01s', resource_monitors: [injected(pressure.path)] };
  const program = await Http2Program.start(t, {
    ...options,
    bootstrap: { overload_manager: { ...monitors, ...overload } },
  });
  return { program, pressure };
}

/** Statuses by stream, in the order of all blocks of the connection. */
function statuses(client: FrameClient): Map<number, string> {
  const decoder = new ReferenceDecoder();
  const heads = client.frames.filter(({ type }) => type === FrameType.HEADERS);
  return new Map(heads.map(({ streamId, payload }) => [streamId, decoder.decode(payload)[0]![1]]));
}

/** Asks on one stream after the other, until one has this status. @returns the stream behind it. */
async function untilStatus(client: FrameClient, first: number, status: string): Promise<number> {
  let streamId = first;
  await untilEqual(
    status,
    async () => {
      client.send(get(streamId, '/direct'));
      await ended(client, streamId);
      streamId += 2;
      return statuses(client).get(streamId - 2);
    },
    'the status',
  );
  return streamId;
}

for (const way of WAYS) {
  test(`requests are refused one by one, and their connection goes on, ${way}`, async (t) => {
    const { program, pressure } = await pressed(t, actionAtHalf('stop_accepting_requests'));
    const client = await program.settled(way);
    client.send(get(3, '/'));
    await program.asked(1);
    pressure.set(0.5);
    const behind = await untilStatus(client, 5, '503');
    program.answer();
    assert.equal(await ended(client, 3), 'ok');
    pressure.set(0);
    await untilStatus(client, behind, '200');
    assert.equal(statuses(client).get(3), '200');
    assert.deepEqual(goaways(client), []);
    assert.ok((await program.weir.stat('http.ingress.downstream_rq_overload_close'))! > 0);
  });

  test(`a connection that may not be kept is told so with its next answer, and ends its streams well, ${way}`, async (t) => {
    const { program, pressure } = await pressed(t, actionAtHalf('disable_http_keepalive'));
    const client = await program.settled(way);
    client.send(get(3, '/'));
    await program.asked(1);
    pressure.set(0.5);
    await program.weir.untilStat(`${ACTION}.disable_http_keepalive.active`, 1);
    let streamId = 5;
    for (; goaways(client).length === 0; streamId += 2) {
      client.send(get(streamId, '/direct'));
      assert.equal(await ended(client, streamId), 'direct');
      await readSoFar(client, `${streamId}`);
    }
    await confirmDrain(client);
    assert.equal(await client.goaway(), ErrorCode.NO_ERROR);
    assert.deepEqual(goaways(client), [ANY_STREAM, streamId - 2]);
    program.answer();
    assert.equal(await ended(client, 3), 'ok');
    await client.ended();
    await program.weir.untilStat('http.ingress.downstream_cx_overload_disable_keepalive', 1);
  });
}

test('streams that hold much are reset, and those beside them on the same connection go on', async (t) => {
  let answer = (): void => {};
  const upstream = await WireUpstream.start((socket) => {
    socket.on('data', (head: Buffer) => {
      if (head.includes('/heavy')) socket.write(HEAVY);
      else answer = () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
    });
  });
  t.after(() => upstream.close());
  const { program, pressure } = await pressed(
    t,
    {
      ...actionAtHalf('reset_high_memory_stream'),
      buffer_factory_config: { minimum_account_to_track_power_of_two: 10 },
    },
    { upstreamPort: upstream.port },
  );
  // It takes content of no stream.
  const closedWindow = frame(FrameType.SETTINGS, 0, 0, Buffer.concat([Buffer.from([0, 4]), word(0)]));
  const client = await program.client('plain', Buffer.concat([PREFACE, closedWindow]));
  client.acknowledge();
  client.send(get(1, '/'), get(3, '/large'), get(5, '/heavy'));
  const hasHead = (streamId: number) =>
    client.find((found) => found.type === FrameType.HEADERS && found.streamId === streamId);
  await Promise.all([hasHead(3), hasHead(5)]);
  await untilEqual(
    true,
    async () => ((await program.weir.stat('http2.pending_send_bytes')) ?? 0) > 4096,
    'content that waits',
  );
  pressure.set(1);
  for (const streamId of [3, 5]) {
    const reset = await client.find((found) => found.type === FrameType.RST_STREAM && found.streamId === streamId);
    assert.equal(reset?.payload.readUInt32BE(0), ErrorCode.ENHANCE_YOUR_CALM);
  }
  await program.weir.untilStat(`${ACTION}.reset_high_memory_stream.count`, 2);
  await program.weir.untilStat('http2.pending_send_bytes', 0);
  client.send(frame(FrameType.WINDOW_UPDATE, 0, 1, word(100)));
  await readSoFar(client, 'window');
  answer();
  assert.equal(await ended(client, 1), 'ok');
  assert.deepEqual(goaways(client), []);
});

test('times of connections and streams that run already are shortened', async (t) => {
  const floors = (...timers: string[]): JsonObject => ({
    actions: [
      {
        name: 'envoy.overload_actions.reduce_timeouts',
        triggers: [AT_HALF],
        typed_config: {
          '@type': 'type.googleapis.com/envoy.config.overload.v3.ScaleTimersOverloadActionConfig',
          timer_scale_factors: timers.map((timer) => ({ timer, min_timeout: '0.001s' })),
        },
      },
    ],
  });
  await t.test('of a stream, whose connection goes on', async (each) => {
    const { program, pressure } = await pressed(each, floors('HTTP_DOWNSTREAM_STREAM_IDLE'));
    const client = await program.settled('tls');
    client.send(get(3, '/'));
    await program.asked(1);
    pressure.set(1);
    assert.notEqual(await ended(client, 3), undefined);
    assert.equal(statuses(client).get(3), '504');
    await program.weir.untilStat('http.ingress.downstream_rq_idle_timeout', 1);
    await readSoFar(client, 'goes on');
    assert.deepEqual(goaways(client), []);
  });
  await t.test('of a connection without streams, but of none with', async (each) => {
    const { program, pressure } = await pressed(each, floors('HTTP_DOWNSTREAM_CONNECTION_IDLE'));
    const [idle, busy] = [await program.settled('tls'), await program.settled('plain')];
    busy.send(get(3, '/'));
    await program.asked(1);
    pressure.set(1);
    assert.equal(await idle.goaway(), ErrorCode.NO_ERROR);
    await idle.ended();
    await program.weir.untilStat('http.ingress.downstream_cx_idle_timeout', 1);
    program.answer();
    assert.equal(await ended(busy, 3), 'ok');
  });
});
