// Long transfers and long streams over HTTP/2 on both sides of the real program: what is on its way is bounded by the slower side,
// whichever that is, and a drain lets it end. `WEIR_TRANSFER_MIB=1024` has the long ones be that long, and --test-reporter=spec tells
// what they have taken.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type ClientHttp2Session, connect, createServer, type ServerHttp2Stream } from 'node:http2';
import { type AddressInfo, connect as connectSocket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Client, credentials } from '@grpc/grpc-js';
import { RandomSequence } from '../../src/base/random.ts';
import { untilEqual } from '../support/eventually.ts';
import { grpcService, read, write } from '../support/grpc-calls.ts';
import { Http2Program, type Http2ProgramOptions, WAYS, type Way } from '../support/http2-program.ts';

const MIB = 1 << 20;
const LONG_BYTES = Number(process.env.WEIR_TRANSFER_MIB ?? 256) * MIB;
/** Beside what the program holds at rest, garbage of a second included; a transfer that it held whole would be far beyond. */
const GROWTH_LIMIT_BYTES = 192 * MIB;
/** Shorter than this no transfer rests that goes on. */
const STALL_MS = 300;
const PIECE_BYTES = 256 * 1024;
/** No two that lie near one another are the same: what is lost, doubled or out of order shows. */
const PIECES = Array.from({ length: 16 }, (_none, index) => randomPiece(index));
const HTTP2_UPSTREAM = {
  typed_extension_protocol_options: {
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
      '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
      explicit_http_config: { http2_protocol_options: {} },
    },
  },
};

interface Upstream {
  readonly port: number;
  /** The last stream that has come. */
  readonly stream: () => ServerHttp2Stream;
}

/** Answers `/long` with so many bytes, says the digest of what comes to `/digest`, and leaves `/slow` to the test. */
async function upstreamOf(t: TestContext): Promise<Upstream> {
  let last: ServerHttp2Stream | undefined;
  const server = createServer();
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    last = stream;
    stream.on('error', () => {});
    const path = String(headers[':path']);
    if (path === '/long') {
      stream.respond({ ':status': 200 });
      stream.resume();
      send(stream, LONG_BYTES);
    } else if (path === '/digest') {
      const digest = createHash('sha256');
      stream.on('data', (chunk: Buffer) => digest.update(chunk));
      stream.on('end', () => {
        stream.respond({ ':status': 200 });
        stream.end(digest.digest('hex'));
      });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return { port: (server.address() as AddressInfo).port, stream: () => last! };
}

/** As fast as it is taken. */
function send(to: NodeJS.WritableStream, bytes: number): void {
  let sent = 0;
  const more = (): void => {
    while (sent < bytes) {
      const piece = PIECES[(sent / PIECE_BYTES) % PIECES.length]!;
      sent += PIECE_BYTES;
      if (!to.write(piece)) return void to.once('drain', more);
    }
    to.end();
  };
  more();
}

function randomPiece(seed: number): Buffer {
  const random = new RandomSequence(seed);
  return Buffer.from(Uint32Array.from({ length: PIECE_BYTES / 4 }, () => random.u32()).buffer);
}

/** Of all that a long transfer consists of. */
function longDigest(): string {
  const digest = createHash('sha256');
  for (let at = 0; at < LONG_BYTES; at += PIECE_BYTES) digest.update(PIECES[(at / PIECE_BYTES) % PIECES.length]!);
  return digest.digest('hex');
}

async function programTo(
  t: TestContext,
  upstreamPort: number,
  options: Http2ProgramOptions = {},
): Promise<Http2Program> {
  return await Http2Program.start(t, { upstreamPort, cluster: HTTP2_UPSTREAM, ...options });
}

function sessionOf(t: TestContext, program: Http2Program, way: Way): ClientHttp2Session {
  const session = connect('http://a.example', {
    createConnection: () => {
      const socket = connectSocket(program.port(way), '127.0.0.1');
      return way === 'plain' ? socket : program.secure(socket);
    },
  });
  session.on('error', () => {});
  t.after(() => session.destroy());
  return session;
}

for (const way of WAYS) {
  test(`long transfers pass both ways at once, and are never held, ${way}`, async (t) => {
    const upstream = await upstreamOf(t);
    const program = await programTo(t, upstream.port);
    const session = sessionOf(t, program, way);
    const before = program.peakBytes();
    const download = session.request({ ':path': '/long' });
    const upload = session.request({ ':path': '/digest', ':method': 'POST' });
    const received = createHash('sha256');
    const startMs = performance.now();
    download.on('data', (chunk: Buffer) => received.update(chunk));
    send(upload, LONG_BYTES);
    const [arrived] = await Promise.all([textOf(upload), once(download, 'end')]);
    const seconds = (performance.now() - startMs) / 1000;
    const sent = longDigest();
    assert.equal(received.digest('hex'), sent);
    assert.equal(arrived, sent);
    const grown = program.peakBytes() - before;
    const rate = ((2 * LONG_BYTES) / MIB / seconds).toFixed(0);
    t.diagnostic(`${LONG_BYTES / MIB} MiB each way, ${rate} MiB/s, ${Math.round(grown / MIB)} MiB more memory`);
    assert.ok(grown < GROWTH_LIMIT_BYTES, `${Math.round(grown / MIB)} MiB more`);
    await program.weir.untilStat('http2.pending_send_bytes', 0);
    await program.weir.untilStat('cluster.web.http2.pending_send_bytes', 0);
  });
}

test('who reads nothing has nothing sent ahead, and holds nobody else back', async (t) => {
  const upstream = await upstreamOf(t);
  const program = await programTo(t, upstream.port);
  const session = sessionOf(t, program, 'plain');
  const before = program.peakBytes();

  // A client that does not read.
  const download = session.request({ ':path': '/long' });
  await once(download, 'response');
  const sender = upstream.stream();
  assert.ok((await stalled(program, 'cluster.web.upstream_cx_rx_bytes_total')) < LONG_BYTES / 2);
  const direct = session.request({ ':path': '/direct' });
  assert.equal(await textOf(direct), 'direct');

  // An upstream that does not read.
  const upload = session.request({ ':path': '/slow', ':method': 'POST' });
  send(upload, LONG_BYTES);
  await untilEqual(true, () => upstream.stream() !== sender, 'the upload');
  assert.ok((await stalled(program, 'http.ingress.downstream_cx_rx_bytes_total')) < LONG_BYTES / 2);
  assert.equal(await textOf(session.request({ ':path': '/direct' })), 'direct');
  assert.ok(program.peakBytes() - before < GROWTH_LIMIT_BYTES);

  // Both go on, and all of it arrives.
  const receiver = upstream.stream();
  let taken = 0;
  receiver.on('data', (chunk: Buffer) => (taken += chunk.length));
  receiver.once('end', () => {
    receiver.respond({ ':status': 200 });
    receiver.end();
  });
  let received = 0;
  download.on('data', (chunk: Buffer) => (received += chunk.length));
  upload.resume();
  await Promise.all([once(download, 'end'), once(upload, 'end')]);
  assert.deepEqual([received, taken], [LONG_BYTES, LONG_BYTES]);
});

test('a call of gRPC that lasts goes on while the process ends, and ends with its status', async (t) => {
  const service = await grpcService();
  t.after(() => service.close());
  const program = await programTo(t, service.port, { args: ['--shutdown-grace-s', '80'] });
  const client = new Client(`127.0.0.1:${program.port('plain')}`, credentials.createInsecure());
  t.after(() => client.close());
  const call = client.makeBidiStreamRequest('/test.Service/Echo', write, read);
  const ended = once(call, 'status');
  const echoed = async (text: string): Promise<void> => {
    const answer = once(call, 'data');
    call.write(text);
    assert.deepEqual(await answer, [text]);
  };
  await echoed('before');
  const end = program.weir.stop();
  await program.untilRefused('plain');
  await echoed('meanwhile');
  await echoed('still');
  call.end();
  const [{ code }] = (await ended) as [{ code: number }];
  assert.equal(code, 0);
  client.close();
  assert.equal((await end).code, 0);
});

/** @returns a count that has stopped to grow, or has not grown for a while. */
async function stalled({ weir }: Http2Program, stat: string): Promise<number> {
  for (let last = 0; ; ) {
    const count = (await weir.stat(stat)) ?? 0;
    if (count > 0 && count === last) return count;
    last = count;
    await delay(STALL_MS);
  }
}

async function textOf(stream: NodeJS.ReadableStream): Promise<string> {
  let text = '';
  for await (const chunk of stream.setEncoding('latin1')) text += String(chunk);
  return text;
}
