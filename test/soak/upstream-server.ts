// An upstream of the soak, a process of its own that is killed and started again. Usage: node upstream-server.ts
// <http port> <tcp port>; prints a line when it serves. What it answers stands in upstream-answers.ts.
//
// What asks for an upgrade gets it, and from then on every byte back.

import { createServer, type IncomingMessage } from 'node:http';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { answer } from './upstream-answers.ts';

const server = createServer((request, response) => void answer(request, response));
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
