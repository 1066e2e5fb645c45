// An upstream of the soak, a process of its own that is killed and started again. Usage: node upstream-server.ts
// <http port> <tcp port>; prints a line when it serves. Paths say what to do, and `x-soak-id` comes back with every answer:
//
//   /get/<seed>/<length>      a body with content-length      /chunked/<seed>/<length>   the same in chunks
//   /sink/<seed>/<length>     takes that body and says ok     /echo                      the body as it comes
//   /reset/head, /reset/body  resets before or in the answer
//
// What asks for an upgrade gets it, and from then on every byte back.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { PayloadCheck, payload } from './payload.ts';

type Answer = (request: IncomingMessage, response: ServerResponse, args: readonly string[]) => Promise<void> | void;

async function sink(request: IncomingMessage, response: ServerResponse, [seed, length]: readonly string[]) {
  const check = new PayloadCheck(Number(seed), Number(length));
  for await (const chunk of request) check.accept(chunk as Buffer);
  const verdict = check.verdict();
  // Not a status that the proxy answers by itself.
  response.writeHead(verdict === '' ? 200 : 599, { 'content-length': Buffer.byteLength(verdict) });
  response.end(verdict);
}

function send(isChunked: boolean): Answer {
  return async (request, response, [seed, length]) => {
    request.resume();
    if (!isChunked) response.setHeader('content-length', length!);
    await pipeline(Readable.from(payload(Number(seed), Number(length))), response);
  };
}

function reset(request: IncomingMessage, response: ServerResponse, [stage]: readonly string[]): void {
  if (stage === 'body') {
    response.setHeader('content-length', 1_000_000);
    response.write('x'.repeat(1000), () => request.socket.resetAndDestroy());
  } else request.socket.resetAndDestroy();
}

const ANSWERS: Readonly<Record<string, Answer>> = {
  get: send(false),
  chunked: send(true),
  sink,
  echo: async (request, response) => {
    const length = request.headers['content-length'];
    if (length !== undefined) response.setHeader('content-length', length);
    response.flushHeaders();
    await pipeline(request, response);
  },
  reset,
};

const server = createServer(async (request, response) => {
  const [, kind = '', ...args] = request.url!.split('/');
  response.setHeader('x-soak-id', request.headers['x-soak-id'] ?? 'none');
  try {
    await ANSWERS[kind]!(request, response, args);
  } catch {
    // The proxy has gone away in the middle, as it does when its client has.
    request.socket.destroy();
  }
});
server.keepAliveTimeout = 300_000;
server.requestTimeout = 0;

server.on('upgrade', (request: IncomingMessage, socket: Socket, first: Buffer) => {
  socket.on('error', () => socket.destroy());
  const id = request.headers['x-soak-id'];
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nx-soak-id: ${id}\r\n\r\n`,
  );
  socket.write(first);
  socket.pipe(socket);
});

const echo = createTcpServer({ allowHalfOpen: true }, (socket: Socket) => {
  socket.on('error', () => socket.destroy());
  socket.pipe(socket);
});

const [httpPort, tcpPort] = process.argv.slice(2).map(Number);
server.listen(httpPort, '127.0.0.1', () => echo.listen(tcpPort, '127.0.0.1', () => process.stdout.write('serving\n')));
