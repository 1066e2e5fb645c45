// Services that filters ask, and that hang, lie or vanish: what each does with a question, and a proxy's cluster for it.

import { once } from 'node:events';
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import type { JsonObject } from './bootstrap.ts';
import { clusterAt } from './embedded.ts';
import { HTTP2 } from './guarded-proxy.ts';
import { unusedPort, WireUpstream } from './wire.ts';

const HUGE = 8 * 1024 * 1024;
/** There is no such service. */
export const AWAY = 'is away';
/** What all the others are measured by. */
export const WELL = 'says yes';
const NO_BYTES = Buffer.alloc(0);
const GRPC_HEAD = { ':status': 200, 'content-type': 'application/grpc' };

type OverHttp = Readonly<Record<string, (socket: Socket, yes: string) => void>>;
type OverGrpc = Readonly<Record<string, (stream: ServerHttp2Stream, yes: Buffer) => void>>;

const head = (length: number): string => `HTTP/1.1 200 OK\r\ncontent-length: ${length}\r\n\r\n`;

/** What one over HTTP does with the connection of a question. */
const OVER_HTTP: OverHttp = {
  'says nothing': () => {},
  'says half a head': (socket) => void socket.write('HTTP/1.1 200 OK\r\ncontent-'),
  'stops in its body': (socket, yes) => void socket.write(`${head(yes.length + 9)}${yes}`),
  'leaves without a word': (socket) => void socket.destroy(),
  'leaves in its head': (socket) => void socket.end('HTTP/1.1 200 OK\r\ncontent-'),
  'breaks off in its body': (socket, yes) => void socket.end(`${head(yes.length + 9)}${yes}`),
  'is none of HTTP': (socket) => void socket.end('220 mail.example ESMTP\r\n'),
  'has two lengths': (socket, yes) =>
    void socket.end(`${head(yes.length).trimEnd()}\r\ncontent-length: ${yes.length + 4}\r\n\r\n${yes}`),
  'has no end of its head': (socket) => void socket.write(`HTTP/1.1 200 OK\r\nx: ${'a'.repeat(HUGE)}`),
  'has no end of its body': (socket) => {
    socket.write(head(2 * HUGE));
    socket.write(Buffer.alloc(HUGE));
  },
  [WELL]: (socket, yes) => void socket.end(`${head(yes.length)}${yes}`),
  'answers 500': (socket, yes) => void socket.end(`${head(yes.length).replace('200 OK', '500 Oh')}${yes}`),
};

function answers(stream: ServerHttp2Stream, body: Buffer, trailers: Record<string, string> | null): void {
  stream.respond(GRPC_HEAD, { waitForTrailers: trailers !== null });
  if (trailers !== null) stream.on('wantTrailers', () => stream.sendTrailers(trailers));
  stream.end(body);
}

/** The same of gRPC and the stream of a question. `yes` is a message in its frame. */
const OVER_GRPC: OverGrpc = {
  'says nothing': () => {},
  'says yes, and does not end': (stream, yes) => {
    stream.respond(GRPC_HEAD);
    stream.write(yes);
  },
  'resets the stream': (stream) => void stream.close(2),
  'closes the connection': (stream) => void stream.session?.destroy(),
  'says yes, and fails': (stream, yes) => answers(stream, yes, { 'grpc-status': '13' }),
  'says yes, and nothing of its end': (stream, yes) => answers(stream, yes, null),
  'has a status that is no number': (stream, yes) => answers(stream, yes, { 'grpc-status': 'fine' }),
  'says yes twice': (stream, yes) => answers(stream, Buffer.concat([yes, yes]), { 'grpc-status': '0' }),
  'says nothing, and ends well': (stream) => answers(stream, NO_BYTES, { 'grpc-status': '0' }),
  'says half of what it announces': (stream) =>
    answers(stream, Buffer.from([0, 0, 0, 0, 9, 1]), { 'grpc-status': '0' }),
  'says what is no message': (stream) =>
    answers(stream, Buffer.from([0, 0, 0, 0, 2, 0xff, 0xff]), { 'grpc-status': '0' }),
  'says it in a coding that nobody has offered': (stream) =>
    answers(stream, Buffer.from([1, 0, 0, 0, 0]), { 'grpc-status': '0' }),
  'says too much': (stream) => answers(stream, Buffer.alloc(HUGE), { 'grpc-status': '0' }),
  [WELL]: (stream, yes) => answers(stream, yes, { 'grpc-status': '0' }),
  'answers 500': (stream) => {
    stream.respond({ ':status': 500 });
    stream.end();
  },
};

/** What services do, by protocol. */
export const FAILINGS: Readonly<Record<'http' | 'grpc', readonly string[]>> = {
  http: [...Object.keys(OVER_HTTP), AWAY],
  grpc: [...Object.keys(OVER_GRPC), AWAY],
};

/** One that does this, and the cluster through which it is asked. @param yes its answer where it is well. */
export async function failingService(
  protocol: 'http' | 'grpc',
  what: string,
  cluster: string,
  yes: string | Buffer,
): Promise<{ readonly cluster: JsonObject; close(): void }> {
  const fields = protocol === 'grpc' ? HTTP2 : {};
  if (what === AWAY) return { cluster: clusterAt(cluster, await unusedPort(), fields), close() {} };
  if (protocol === 'http') {
    const act = OVER_HTTP[what]!;
    const service = await WireUpstream.start((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => act(socket, String(yes)));
    });
    return { cluster: clusterAt(cluster, service.port), close: () => void service.close() };
  }
  const act = OVER_GRPC[what]!;
  const server = createHttp2Server();
  server.on('session', (session) => session.on('error', () => {}));
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.on('error', () => {});
    stream.resume().on('end', () => act(stream, Buffer.from(yes)));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    cluster: clusterAt(cluster, (server.address() as AddressInfo).port, fields),
    close: () => void server.close(),
  };
}
