// Floods and broken frames against the real program, with prior knowledge and over TLS: what each ends with and counts, that others
// are served meanwhile, and that memory stays within its bounds.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ErrorCode, FrameFlag, FrameType, PREFACE } from '../../src/data-plane/http/codec/http2/frames.ts';
import { untilEqual } from '../support/eventually.ts';
import type { FrameClient } from '../support/http2-clients.ts';
import { ENDLESS_WINDOWS, FLOODS, many, UNREAD_FLOODS, UNREAD_LIMIT_BYTES } from '../support/http2-floods.ts';
import { numbers, randomFrame } from '../support/http2-mutations.ts';
import { ended, get, Http2Program, WAYS, type Way } from '../support/http2-program.ts';
import { SETTINGS } from '../support/http2-session.ts';

/** Answers wait in the proxy only while their client does not read them, which takes another kind of client. */
const READERS_FLOODS = FLOODS.filter(({ stat }) => stat !== 'outbound_control_flood');
const UNREAD_AT_A_TIME = 4;
/** Answers of 4 KiB that are asked for at a time, well below what is a flood. */
const FILLING = 50;
const MEBIBYTE = 1 << 20;
/** What that takes was 20 to 40 MiB. */
const GROWTH_LIMIT_BYTES = 150 * MEBIBYTE;
const BUFFERED = 'http.ingress.downstream_cx_tx_bytes_buffered';

const FRAMES = 100_000;
const FRAMES_PER_CLIENT = 20;
const CLIENTS_AT_A_TIME = 25;

/** Somebody else, who is served all the time. */
class Neighbour {
  readonly #client: FrameClient;
  #streamId = 1;

  constructor(client: FrameClient) {
    this.#client = client;
  }

  async isServed(): Promise<void> {
    this.#streamId += 2;
    this.#client.send(get(this.#streamId, '/direct'));
    assert.equal(await ended(this.#client, this.#streamId), 'direct');
  }
}

/** A client that reads nothing any more, so that what it asks for waits in the proxy: the kernels hold all that they take. */
async function unreading(program: Http2Program): Promise<{ readonly client: FrameClient; readonly streamId: number }> {
  const client = await program.client('plain', Buffer.concat([PREFACE, ...ENDLESS_WINDOWS]));
  client.socket.pause();
  const waiting = async (): Promise<number> => (await program.weir.stat(BUFFERED)) ?? 0;
  const before = await waiting();
  let streamId = 1;
  for (; (await waiting()) === before; streamId += 2 * FILLING) {
    client.send(...many(FILLING, (index) => get(streamId + 2 * index, '/large')));
  }
  return { client, streamId };
}

/** Sends pieces until the connection is over. @param first stream. */
async function sendUnread(
  { socket }: Pick<FrameClient, 'socket'>,
  first: number,
  piece: (streamId: number) => Buffer,
): Promise<void> {
  const over = new Promise((resolve) => socket.once('close', resolve));
  for (let streamId = first; !socket.destroyed; streamId += 200) {
    assert.ok(socket.bytesWritten < UNREAD_LIMIT_BYTES, 'the proxy answers without end');
    const isTaken = socket.write(Buffer.concat(many(100, (index) => piece(streamId + 2 * index))));
    await (isTaken ? nextTurn() : Promise.race([new Promise((resolve) => socket.once('drain', resolve)), over]));
  }
}

for (const way of WAYS) {
  test(`clients that flood are told to be calm, ${way}`, async (t) => {
    const program = await Http2Program.start(t);
    const neighbour = new Neighbour(await program.settled(way));
    const counts = new Map<string, number>();
    for (const { name, stat, frames } of READERS_FLOODS) {
      await t.test(name, async () => {
        const client = await program.client(way);
        client.send(...frames);
        assert.equal(await client.goaway(), ErrorCode.ENHANCE_YOUR_CALM);
        await client.ended();
        await neighbour.isServed();
        if (stat === null) return;
        counts.set(stat, (counts.get(stat) ?? 0) + 1);
        await program.weir.untilStat(`http2.${stat}`, counts.get(stat)!);
      });
    }
    await program.weir.untilStat('http.ingress.downstream_cx_protocol_error', READERS_FLOODS.length);
    await program.weir.untilStat('http2.streams_active', 0);
    await program.weir.untilStat('cluster.web.upstream_rq_active', 0);
  });
}

test('clients that read nothing of what they make the proxy say are cut off, and cost little memory', async (t) => {
  for (const { name, stat, piece } of UNREAD_FLOODS) {
    await t.test(name, async (each) => {
      const program = await Http2Program.start(each);
      const neighbour = new Neighbour(await program.settled('plain'));
      const before = program.peakBytes();
      const clients: Awaited<ReturnType<typeof unreading>>[] = [];
      while (clients.length < UNREAD_AT_A_TIME) clients.push(await unreading(program));
      await Promise.all(clients.map(({ client, streamId }) => sendUnread(client, streamId, piece)));
      await neighbour.isServed();
      // One whose answers have been slow to fill the kernels has as many streams open as it may, and its next requests are refused.
      const cutOff = async (): Promise<number> =>
        ((await program.weir.stat('http2.outbound_flood')) ?? 0) +
        ((await program.weir.stat('http2.outbound_control_flood')) ?? 0);
      await untilEqual(UNREAD_AT_A_TIME, cutOff, 'ended for a flood');
      assert.ok(((await program.weir.stat(`http2.${stat}`)) ?? 0) > 0, stat);
      await program.weir.untilStat('http.ingress.downstream_cx_http2_active', 1);
      await program.weir.untilStat('http2.pending_send_bytes', 0);
      const grown = program.peakBytes() - before;
      assert.ok(grown < GROWTH_LIMIT_BYTES, `${Math.round(grown / MEBIBYTE)} MiB more`);
    });
  }
});

/** What a client sees of a connection up to its end, but for its dates. */
async function reading(t: TestContext, program: Http2Program, way: Way, parts: readonly Buffer[]): Promise<string[]> {
  const client = await program.client(way, Buffer.concat([PREFACE, SETTINGS, parts[0]!]));
  for (const part of parts.slice(1)) {
    await nextTurn();
    client.send(part);
  }
  client.socket.end();
  await client.ended();
  t.after(() => client.socket.destroy());
  const lines: string[] = [];
  const contents = new Map<number, string>();
  for (const { type, flags, streamId, payload } of client.frames) {
    const isContent = type === FrameType.DATA || type === FrameType.HEADERS;
    if (type === FrameType.DATA) contents.set(streamId, (contents.get(streamId) ?? '') + payload.toString('latin1'));
    if (!isContent) lines.push(`${type} ${flags} ${streamId} ${payload.toString('hex')}`);
    else if ((flags & FrameFlag.END_STREAM) !== 0) lines.push(`end of ${streamId}: ${contents.get(streamId) ?? ''}`);
  }
  return lines;
}

test('a hundred thousand frames with faults are each read in one way, and do no harm', async (t) => {
  // All is answered by the proxy, so that what comes back depends on nothing else.
  const routes = [{ match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: 'direct' } } }];
  const program = await Http2Program.start(t, {
    manager: {
      route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] },
      http2_protocol_options: { override_stream_error_on_invalid_http_message: true },
    },
  });
  const neighbour = new Neighbour(await program.settled('plain'));
  const pick = numbers(7_541_9113);
  const ends = new Map<string, number>();
  for (let done = 0; done < FRAMES; done += FRAMES_PER_CLIENT * CLIENTS_AT_A_TIME) {
    await Promise.all(
      Array.from({ length: CLIENTS_AT_A_TIME }, async () => {
        const whole = Buffer.concat(many(FRAMES_PER_CLIENT, () => randomFrame(pick, true)));
        const at = pick(whole.length);
        const first = await reading(t, program, 'plain', [whole]);
        assert.deepEqual(await reading(t, program, 'plain', [whole.subarray(0, at), whole.subarray(at)]), first);
        const goaway = first.find((line) => line.startsWith(`${FrameType.GOAWAY} `)) ?? 'none';
        const code = goaway.slice(-8);
        ends.set(code, (ends.get(code) ?? 0) + 1);
      }),
    );
    await neighbour.isServed();
  }
  assert.ok(ends.size >= 5, JSON.stringify([...ends]));
  await program.weir.untilStat('http2.streams_active', 0);
  await program.weir.untilStat('http.ingress.downstream_cx_active', 1);
  assert.equal(await program.weir.stat('server.contained_faults'), 0);
});
