// A server to be checked, byte by byte: each connection gets what the test says, as often as something arrives on it.

import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

/** What to do with a connection on which bytes have come. */
export type Behaviour = (socket: Socket, received: string) => void;

export class HealthServer implements AsyncDisposable {
  /** What came, one entry for each time that something did. */
  readonly received: string[] = [];
  connections = 0;
  /** Where connections came from. */
  readonly clients: string[] = [];
  behaviour: Behaviour;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server, behaviour: Behaviour) {
    this.#server = server;
    this.behaviour = behaviour;
    server.on('connection', (socket) => {
      this.connections++;
      this.clients.push(socket.remoteAddress!);
      this.#sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => this.#sockets.delete(socket));
      socket.on('data', (bytes) => {
        this.received.push(bytes.toString('latin1'));
        this.behaviour(socket, bytes.toString('latin1'));
      });
    });
  }

  static async start(behaviour: Behaviour, port = 0): Promise<HealthServer> {
    const server = createServer();
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return new HealthServer(server, behaviour);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get openConnections(): number {
    return this.#sockets.size;
  }

  /** Ends every connection that is open, and goes on. */
  dropConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Sends something that nobody has asked for, on every connection. */
  greetAll(text: string): void {
    for (const socket of this.#sockets) socket.write(text);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.dropConnections();
    await closed;
  }
}

/** Answers every request that has no body. */
export function answer(status: number, headers = '', body = ''): Behaviour {
  return (socket, received) => {
    if (!received.includes('\r\n\r\n')) return;
    socket.write(`HTTP/1.1 ${status} x\r\n${headers}content-length: ${body.length}\r\n\r\n${body}`);
  };
}

const BLOCK = Buffer.alloc(1024 * 1024);

/** Answers with `head` and then `blocks` mebibytes of zeros. `isClosed` tells how many had been written at the end. */
export function floodOf(blocks: number, head = ''): { behaviour: Behaviour; isClosed: Promise<number> } {
  const { promise: isClosed, resolve } = Promise.withResolvers<number>();
  const behaviour: Behaviour = (socket) => {
    let written = 0;
    const pour = (): void => {
      while (written < blocks) {
        written++;
        if (!socket.write(BLOCK)) return;
      }
    };
    socket.on('drain', pour);
    socket.on('close', () => resolve(written));
    socket.write(head);
    pour();
  };
  return { behaviour, isClosed };
}
