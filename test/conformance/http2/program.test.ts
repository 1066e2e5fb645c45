// The same tables asked of the real program over sockets, with prior knowledge and over TLS with ALPN: what a client sees of each
// fault, that nothing of it gets to the upstream, and that a stream's fault is nobody else's.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { ErrorCode, FrameType, PREFACE } from '../../../src/data-plane/http/codec/http2/frames.ts';
import { Fault } from '../../../src/data-plane/http/codec/http2/options.ts';
import type { FrameClient } from '../../support/http2-clients.ts';
import { ended, get, Http2Program, readSoFar, WAYS, type Way } from '../../support/http2-program.ts';
import { frame, headers, SETTINGS } from '../../support/http2-session.ts';
import { ReferenceDecoder } from '../../support/reference/hpack.ts';
import { BROKEN_BLOCKS, SOUND_BLOCKS } from './block-cases.ts';
import { FRAME_CASES, type Outcome, STREAMWISE } from './frame-cases.ts';
import { REQUEST_CASES } from './head-cases.ts';

/** Behind the streams of all cases. */
const LAST = 99_999;
const LENIENT = { manager: { http2_protocol_options: { override_stream_error_on_invalid_http_message: true } } };
const FEW = { manager: { http2_protocol_options: { max_concurrent_streams: 1 } } };
const CODES = new Map(Object.values(Fault).map(({ reason, code }) => [reason, code]));
/** The program writes between what it reads, so that its answers wait only for who reads none; see the floods. */
const UNREAD = new Set(['http2_outbound_control_flood']);

/** What the case does to a connection of the program; undefined where it depends on who uses the session. */
function seen({ fault, code, resets = {}, answers = {} }: Outcome): string | undefined {
  if (fault !== undefined && UNREAD.has(fault)) return undefined;
  if (fault !== undefined) return `goaway ${code ?? CODES.get(fault) ?? ErrorCode.PROTOCOL_ERROR}`;
  const text = (what: string, byStream: object): string[] =>
    Object.entries(byStream).map(([streamId, value]) => `${what} ${streamId} ${value}`);
  return [...text('answer', answers), ...text('reset', resets)].join(', ');
}

/** Ends of streams and of the connection, if it has ended, when the program has read everything. */
async function ends(client: FrameClient, takesMore: boolean): Promise<string> {
  if (!client.isEnded) await Promise.race([readSoFar(client, 'all read'), client.ended()]);
  const decoder = new ReferenceDecoder();
  const answers: string[] = [];
  const resets: string[] = [];
  for (const { type, streamId, payload } of client.frames) {
    if (type === FrameType.GOAWAY) {
      await client.ended();
      return `goaway ${payload.readUInt32BE(4)}`;
    }
    if (type === FrameType.HEADERS) answers.push(`answer ${streamId} ${decoder.decode(payload)[0]![1]}`);
    if (type === FrameType.RST_STREAM) resets.push(`reset ${streamId} ${payload.readUInt32BE(0)}`);
  }
  if (takesMore) {
    client.send(get(LAST, '/direct'));
    assert.equal(await ended(client, LAST), 'direct');
  }
  return [...answers, ...resets].join(', ');
}

async function asked(
  t: TestContext,
  program: Http2Program,
  way: Way,
  bytes: readonly Buffer[],
  takesMore = true,
): Promise<string> {
  const client = await program.client(way);
  t.after(() => client.socket.destroy());
  client.acknowledge();
  client.send(...bytes);
  return await ends(client, takesMore);
}

for (const way of WAYS) {
  test(`frames and streams, ${way}`, async (t) => {
    const strict = await Http2Program.start(t);
    const lenient = await Http2Program.start(t, LENIENT);
    const few = await Http2Program.start(t, FEW);
    let asks = 0;
    for (const [what, frames, outcome, options = {}] of FRAME_CASES) {
      const expected = seen(outcome);
      const isFew = options.maxConcurrentStreams === 1;
      const isPlain = Object.keys(options).length === 0;
      if (expected === undefined || !(isPlain || isFew || options === STREAMWISE)) continue;
      const program = options === STREAMWISE ? lenient : isFew ? few : strict;
      await t.test(what, async (each) => assert.equal(await asked(each, program, way, frames, !isFew), expected));
      asks += 1;
    }
    assert.ok(asks > 70, `${asks} cases`);
    for (const { weir } of [strict, lenient, few]) {
      await weir.untilStat('http2.streams_active', 0);
      assert.equal(await weir.stat('server.contained_faults'), 0);
    }
  });

  test(`heads of requests, ${way}`, async (t) => {
    const program = await Http2Program.start(t, LENIENT);
    let faults = 0;
    for (const [what, fields, expected, flags = 1] of REQUEST_CASES) {
      if (typeof expected !== 'string') continue;
      // Only where it was announced.
      if (flags > 1) continue;
      await t.test(what, async (each) => {
        assert.equal(await asked(each, program, way, [headers(1, fields, flags)]), 'reset 1 1');
      });
      faults += 1;
    }
    assert.ok(faults > 45, `${faults} faults`);
    assert.equal(await program.weir.stat('cluster.web.upstream_rq_total'), 0);
    assert.equal(await program.weir.stat('cluster.web.upstream_cx_total'), 0);
  });

  test(`blocks that cannot be decoded, ${way}`, async (t) => {
    const program = await Http2Program.start(t);
    for (const [what, bytes] of BROKEN_BLOCKS) {
      const broken = frame(FrameType.HEADERS, 0x5, 1, bytes);
      await t.test(what, async (each) =>
        assert.equal(await asked(each, program, way, [broken]), `goaway ${ErrorCode.COMPRESSION_ERROR}`),
      );
    }
    for (const [what, bytes] of SOUND_BLOCKS) {
      await t.test(`none: ${what}`, async (each) =>
        assert.equal(await asked(each, program, way, [frame(FrameType.HEADERS, 0x5, 1, bytes)]), ''),
      );
    }
    assert.equal(await program.weir.stat('cluster.web.upstream_rq_total'), SOUND_BLOCKS.length);
  });
}

test('which protocol is spoken over TLS is what was agreed on, or else what the first bytes say', async (t) => {
  const program = await Http2Program.start(t);
  const agreed = async (offered: readonly string[]): Promise<string | false | null> => {
    const socket = program.secure(connect(program.port('tls'), '127.0.0.1'), offered);
    await once(socket, 'secureConnect');
    return socket.alpnProtocol;
  };
  assert.equal(await agreed(['http/1.1', 'h2']), 'h2');
  assert.equal(await agreed(['http/1.1']), 'http/1.1');
  assert.equal(await agreed([]), false);
  const first = await program.client('tls', undefined, []);
  first.send(get(1, '/direct'));
  assert.equal(await ended(first, 1), 'direct');
  await program.weir.untilStat('http.ingress.downstream_cx_http2_total', 2);
  // Who has agreed on one speaks no other.
  const second = program.secure(connect(program.port('tls'), '127.0.0.1'), ['http/1.1']);
  second.write(Buffer.concat([PREFACE, SETTINGS]));
  const [answer] = (await once(second, 'data')) as [Buffer];
  assert.match(answer.toString('latin1'), /^HTTP\/1\.1 (?:400|505) /);
  const third = await program.client('tls', Buffer.from('GET / HTTP/1.1\r\nhost: a.example\r\n\r\n'));
  assert.equal(await third.goaway(), ErrorCode.PROTOCOL_ERROR);
});
