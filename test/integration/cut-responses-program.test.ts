// Responses that upstreams cut while clients are slow, through the real program: whichever protocols both sides speak, and with TLS
// or without, a client gets all that the proxy had taken, and sees then that this was not all.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { descriptorOf } from '../../src/base/descriptor-budget.ts';
import { ErrorCode, FrameFlag, FrameType, PREFACE, Setting } from '../../src/data-plane/http/codec/http2/frames.ts';
import { untilEqual } from '../support/eventually.ts';
import type { FrameClient } from '../support/http2-clients.ts';
import { get, Http2Program, WAYS, type Way } from '../support/http2-program.ts';
import { frame, headers, word } from '../support/http2-session.ts';
import { FrameUpstream } from '../support/http2-upstream.ts';
import { httpOptions } from '../support/secure-upstream.ts';
import { systemCalls } from '../support/unread-pair.ts';
import { WireUpstream } from '../support/wire.ts';

const MIB = 1 << 20;
/** More than the systems of both sides take of one connection. */
const CONTENT_BYTES = 16 * MIB;
const FRAME_BYTES = 16_384;
const SMALL_WINDOW = 1024;
const LARGE_WINDOW = 64 * MIB;
const HEAD = 'HTTP/1.1 200 OK\r\ncontent-length: 999999999\r\n\r\n';
const CONTENT = Buffer.alloc(CONTENT_BYTES, 'x');

/** An upstream that begins an answer with `CONTENT`, and cuts it when it is told to. */
interface CuttingUpstream {
  readonly port: number;
  readonly cluster: object;
  /** @returns how much of the content the proxy had taken, or its system, when the answer was cut. */
  cut(program: Http2Program): Promise<number>;
}

async function byHttp1(t: TestContext): Promise<CuttingUpstream> {
  const upstream = await WireUpstream.start((socket) => {
    socket.once('data', () => {
      socket.write(HEAD);
      socket.write(CONTENT);
    });
  });
  t.after(() => upstream.close());
  return {
    port: upstream.port,
    cluster: {},
    cut: async ({ weir }) => {
      const paused = async (): Promise<boolean> =>
        ((await weir.stat('cluster.web.upstream_flow_control_paused_reading_total')) ?? 0) > 0;
      await untilEqual(true, paused, 'a pause');
      const socket = upstream.sockets[0]!;
      const { acknowledgedBytes } = systemCalls.sentState(descriptorOf(socket))!;
      socket.resetAndDestroy();
      return acknowledgedBytes - HEAD.length;
    },
  };
}

/** @param breaksConnection and not the stream alone. */
async function byHttp2(t: TestContext, breaksConnection: boolean): Promise<CuttingUpstream> {
  const windows = { initial_stream_window_size: LARGE_WINDOW, initial_connection_window_size: LARGE_WINDOW };
  let id = 0;
  const upstream = await FrameUpstream.start(t, ({ type, streamId }) => {
    if (type !== FrameType.HEADERS) return null;
    id = streamId;
    const answer = [headers(streamId, [[':status', '200']], 0)];
    for (let at = 0; at < CONTENT_BYTES; at += FRAME_BYTES) {
      answer.push(frame(FrameType.DATA, 0, streamId, CONTENT.subarray(at, at + FRAME_BYTES)));
    }
    return Buffer.concat(answer);
  });
  return {
    port: upstream.port,
    cluster: httpOptions({ explicit_http_config: { http2_protocol_options: windows } }),
    cut: async ({ weir }) => {
      const isRead = async (): Promise<boolean> =>
        ((await weir.stat('cluster.web.upstream_cx_rx_bytes_total')) ?? 0) > CONTENT_BYTES;
      await untilEqual(true, isRead, 'the content');
      const socket = upstream.sockets[0]!;
      if (breaksConnection) {
        socket.resetAndDestroy();
        await weir.untilStat('cluster.web.upstream_cx_active', 0);
      } else {
        socket.write(frame(FrameType.RST_STREAM, 0, id, word(ErrorCode.INTERNAL_ERROR)));
        await weir.untilStat('cluster.web.http2.rx_reset', 1);
      }
      return CONTENT_BYTES;
    },
  };
}

const UPSTREAMS: Readonly<Record<string, (t: TestContext) => Promise<CuttingUpstream>>> = {
  'the connection of HTTP/1': byHttp1,
  'the connection of HTTP/2': (t) => byHttp2(t, true),
  'the stream of HTTP/2': (t) => byHttp2(t, false),
};

/** A client that has asked, and takes nothing yet. */
interface SlowClient {
  /** Takes everything from now on. @returns how much content there was, once that was seen to be cut. */
  rest(): Promise<number>;
}

type Opening = (t: TestContext, program: Http2Program, way: Way) => Promise<SlowClient>;

const CLIENTS: Readonly<Record<string, Opening>> = {
  'HTTP/1 that reads nothing': async (t, program, way) => {
    const socket = await program.connect(way, ['http/1.1']);
    t.after(() => socket.destroy());
    socket.pause().write('GET / HTTP/1.1\r\nhost: a.example\r\n\r\n');
    return {
      rest: async () => {
        let head = '';
        let content = 0;
        socket.on('data', (chunk: Buffer) => {
          const end = head.indexOf('\r\n\r\n');
          if (end !== -1) {
            content += chunk.length;
            return;
          }
          head += chunk.toString('latin1');
          const found = head.indexOf('\r\n\r\n');
          if (found !== -1) content = head.length - found - 4;
        });
        socket.resume();
        const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException];
        assert.equal(error.code, 'ECONNRESET');
        return content;
      },
    };
  },

  'HTTP/2 that reads nothing': async (_t, program, way) => {
    const client = await program.client(way, opening(LARGE_WINDOW));
    client.socket.pause();
    client.send(get(1, '/'));
    return {
      rest: async () => {
        client.socket.resume();
        return await cutContent(client);
      },
    };
  },

  'HTTP/2 that leaves no window': async (_t, program, way) => {
    const client = await program.client(way, opening(SMALL_WINDOW));
    client.send(get(1, '/'));
    return {
      rest: async () => {
        client.send(frame(FrameType.WINDOW_UPDATE, 0, 1, word(LARGE_WINDOW)));
        return await cutContent(client);
      },
    };
  },
};

/** What a client says first, one with so much room for a stream. */
function opening(streamWindow: number): Buffer {
  const settings = Buffer.alloc(6);
  settings.writeUInt16BE(Setting.INITIAL_WINDOW_SIZE, 0);
  settings.writeUInt32BE(streamWindow, 2);
  const widened = frame(FrameType.WINDOW_UPDATE, 0, 0, word(LARGE_WINDOW));
  return Buffer.concat([PREFACE, frame(FrameType.SETTINGS, 0, 0, settings), widened]);
}

async function cutContent(client: FrameClient): Promise<number> {
  const last = await client.ofType(FrameType.RST_STREAM);
  assert.equal(last?.payload.readUInt32BE(0), ErrorCode.INTERNAL_ERROR);
  const pieces = client.frames.filter(({ type }) => type === FrameType.DATA);
  assert.ok(pieces.every(({ flags }) => (flags & FrameFlag.END_STREAM) === 0));
  // Its neighbours go on.
  client.send(get(3, '/direct'));
  const answer = await client.find(({ type, streamId }) => type === FrameType.DATA && streamId === 3);
  assert.equal(answer?.payload.toString(), 'direct');
  return pieces.reduce((sum, { payload }) => sum + payload.length, 0);
}

for (const [what, start] of Object.entries(UPSTREAMS)) {
  for (const way of WAYS) {
    for (const [who, open] of Object.entries(CLIENTS)) {
      test(`when ${what} is cut, a client of ${who}, ${way}, gets all that came before`, async (t) => {
        const upstream = await start(t);
        const program = await Http2Program.start(t, { upstreamPort: upstream.port, cluster: upstream.cluster });
        const client = await open(t, program, way);
        const taken = await upstream.cut(program);
        const content = await client.rest();
        assert.ok(taken > 0);
        assert.ok(content >= taken, `${content} of ${taken} bytes`);
        await program.weir.untilStat('http.ingress.downstream_rq_active', 0);
        await program.weir.untilStat('http2.pending_send_bytes', 0);
      });
    }
  }
}
