// A client of datagrams, and a server of them that answers.

import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { once } from 'node:events';
import type { TestContext } from 'node:test';

export class UdpClient {
  readonly socket: Socket;
  readonly #received: string[] = [];
  #wake: (() => void) | null = null;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('error', () => {});
    socket.on('message', (bytes: Buffer) => {
      this.#received.push(bytes.toString('latin1'));
      this.#wake?.();
    });
  }

  /** Of this port at an address of loopback. @param from an address of this machine. */
  static async to(t: TestContext, port: number, from = '127.0.0.1'): Promise<UdpClient> {
    const socket = createSocket(from.includes(':') ? 'udp6' : 'udp4');
    t.after(() => socket.close());
    socket.bind(0, from);
    await once(socket, 'listening');
    socket.connect(port, from.includes(':') ? '::1' : '127.0.0.1');
    await once(socket, 'connect');
    return new UdpClient(socket);
  }

  send(data: string | Buffer): this {
    this.socket.send(data);
    return this;
  }

  /** The next datagram. */
  async next(): Promise<string> {
    while (this.#received.length === 0) await new Promise<void>((resolve) => (this.#wake = resolve));
    return this.#received.shift()!;
  }

  /** Sends, and waits for what comes back. */
  ask(data: string): Promise<string> {
    return this.send(data).next();
  }
}

export class UdpServer {
  readonly socket: Socket;
  /** Ports of those who have sent something, in order, each once. */
  readonly peers = new Set<number>();
  readonly port: number;

  private constructor(socket: Socket) {
    this.socket = socket;
    this.port = socket.address().port;
  }

  /** @param answer what is said to a datagram; nothing when null. */
  static async start(
    t: TestContext,
    answer: (text: string, from: RemoteInfo) => string | Buffer | null,
    port = 0,
  ): Promise<UdpServer> {
    const socket = createSocket('udp4');
    let isOpen = true;
    socket.on('close', () => (isOpen = false));
    t.after(() => isOpen && socket.close());
    socket.bind(port, '127.0.0.1');
    await once(socket, 'listening');
    const server = new UdpServer(socket);
    socket.on('message', (bytes, from) => {
      server.peers.add(from.port);
      const said = answer(bytes.toString('latin1'), from);
      if (said !== null) socket.send(said, from.port, from.address);
    });
    return server;
  }
}
