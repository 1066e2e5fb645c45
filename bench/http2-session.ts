// Requests per second and processor of HTTP/2 sessions over loopback sockets, client and server in one process: ours at both
// ends, node:http2 at both ends. What a proxy adds is not in it.
// node bench/http2-session.ts

import { once } from 'node:events';
import http2 from 'node:http2';
import net from 'node:net';
import { DEFAULT_HTTP2_SETTINGS } from '../src/config/resources/http2-options.ts';
import { FrameSlabs } from '../src/data-plane/http/codec/http2/frame-output.ts';
import { Http2Session } from '../src/data-plane/http/codec/http2/session.ts';
import type { SessionOwner } from '../src/data-plane/http/codec/http2/session-owner.ts';
import type { SessionStream, StreamHandler } from '../src/data-plane/http/codec/http2/session-stream.ts';
import { compileHttp1, Http1Codec } from '../src/wasm/http1.ts';
import { compileHttp2, Http2Heads } from '../src/wasm/http2.ts';

const STREAMS = 32;
const REQUESTS = 20_000;
const ROUNDS = 5;
const LIMITS = { maxHeadBytes: 61440, maxFields: 100 };
const codec = new Http1Codec(compileHttp1());
const shared = { codec, heads: new Http2Heads(compileHttp2(), codec), slabs: new FrameSlabs() };
const HEAD = Buffer.from(
  'GET /api/v1/items?id=42 HTTP/1.1\r\nhost: shop.example.com\r\nuser-agent: bench\r\naccept: */*\r\n\r\n',
);
const NOTHING = Buffer.alloc(0);

class Owner implements SessionOwner {
  readonly session: Http2Session;
  readonly #socket: net.Socket;
  onStream: (stream: SessionStream) => void = () => undefined;

  constructor(socket: net.Socket, isServer: boolean) {
    this.#socket = socket;
    this.session = new Http2Session(shared, this, isServer, DEFAULT_HTTP2_SETTINGS, LIMITS);
    this.session.start();
    socket.on('data', (bytes: Buffer) => this.session.receive(bytes, 0, bytes.length));
    socket.on('drain', () => this.session.drained());
    socket.on('close', () => this.session.close(0, false, 'closed'));
  }

  onOversizedRequest(): string {
    return 'content-length: 0\r\n';
  }

  onBlock(): void {}

  onSettings(): void {}

  onDirty(): void {
    setImmediate(() => this.session.flush());
  }

  write(slab: Buffer, length: number): boolean {
    return this.#socket.write(slab.subarray(0, length));
  }

  count(): void {
    // Nothing is counted here.
  }
  onGoaway(): void {
    // Nobody drains.
  }
  onPong(): void {
    // Nobody pings.
  }
  onDrainRead(): void {
    // Nor drains.
  }
  onSessionFault(fault: { reason: string }): void {
    throw new Error(fault.reason);
  }
  onIdle(): void {
    // The next request follows.
  }
}

async function listen(server: net.Server | http2.Http2Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as net.AddressInfo).port;
}

async function runOurs(body: Buffer): Promise<void> {
  const server = net.createServer({ highWaterMark: 1, noDelay: true }, (socket) => {
    const owner = new Owner(socket, true);
    const handler: StreamHandler = {
      onHead: () => undefined,
      onInterimHead: () => undefined,
      onData: () => undefined,
      onTrailers: () => undefined,
      onReset: () => undefined,
      onWritable: () => undefined,
    };
    owner.onStream = (stream) => {
      stream.handler = handler;
      owner.session.respondLines(stream, 200, 'content-type: text/plain\r\nserver: bench\r\n', false);
      owner.session.send(stream, body, 0, body.length, true);
    };
  });
  const port = await listen(server);
  const options = { port, host: '127.0.0.1', highWaterMark: 1, noDelay: true };
  const socket = net.connect(options);
  const { session } = new Owner(socket, false);
  await once(socket, 'connect');
  let sent = 0;
  let done = 0;
  await new Promise<void>((resolve) => {
    const ask = (): void => {
      sent += 1;
      codec.parseRequest(HEAD, 0, HEAD.length, LIMITS);
      const stream = session.request(0, true)!;
      stream.handler = {
        onHead: () => undefined,
        onInterimHead: () => undefined,
        onData: (_bytes, start, end, isEnd) => {
          session.consume(stream, end - start);
          if (!isEnd) return;
          done += 1;
          if (done === REQUESTS) resolve();
          else if (sent < REQUESTS) ask();
        },
        onTrailers: () => undefined,
        onReset: (code) => {
          throw new Error(`reset ${code}`);
        },
        onWritable: () => undefined,
      };
    };
    for (let stream = 0; stream < STREAMS; stream += 1) ask();
  });
  socket.destroy();
  server.close();
}

async function runNode(body: Buffer): Promise<void> {
  const server = http2.createServer({ settings: { initialWindowSize: 2 ** 24 } });
  server.on('stream', (stream: http2.ServerHttp2Stream) => {
    stream.respond({ ':status': 200, 'content-type': 'text/plain', server: 'bench' });
    stream.end(body);
  });
  const port = await listen(server);
  const client = http2.connect(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: 2 ** 24 } });
  await once(client, 'connect');
  client.setLocalWindowSize(24 * 2 ** 20);
  let sent = 0;
  let done = 0;
  await new Promise<void>((resolve) => {
    const ask = (): void => {
      sent += 1;
      const request = client.request({ ':path': '/api/v1/items?id=42', 'user-agent': 'bench', accept: '*/*' });
      request.on('data', () => undefined);
      request.on('end', () => {
        done += 1;
        if (done === REQUESTS) resolve();
        else if (sent < REQUESTS) ask();
      });
    };
    for (let stream = 0; stream < STREAMS; stream += 1) ask();
  });
  client.destroy();
  server.close();
}

const rows: Record<string, object> = {};
for (const [what, body] of [
  ['100 bytes', Buffer.alloc(100, 'x')],
  ['16 KB', Buffer.alloc(16_384, 'x')],
  ['nothing', NOTHING],
] as const) {
  for (const [name, run] of [
    ['ours', runOurs],
    ['node:http2', runNode],
  ] as const) {
    let wallUs = Number.POSITIVE_INFINITY;
    let cpuUs = Number.POSITIVE_INFINITY;
    for (let round = 0; round < ROUNDS; round += 1) {
      const before = process.cpuUsage();
      const start = process.hrtime.bigint();
      await run(body);
      const { user, system } = process.cpuUsage(before);
      wallUs = Math.min(wallUs, Number(process.hrtime.bigint() - start) / 1000 / REQUESTS);
      cpuUs = Math.min(cpuUs, (user + system) / REQUESTS);
    }
    rows[`${what}, ${name}`] = { 'us per exchange': wallUs.toFixed(2), 'processor us': cpuUs.toFixed(2) };
  }
}
console.table(rows);
