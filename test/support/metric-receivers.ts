// Receivers of metrics for tests: what comes over UDP and TCP, as lines.

import { createSocket, type Socket as DatagramSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { untilEqual } from './eventually.ts';

/** Lines that have come, and sums over them. */
abstract class LineReceiver {
  abstract get lines(): readonly string[];

  /** Resolves when the lines are so. */
  async until(isSo: (lines: readonly string[]) => boolean): Promise<void> {
    await untilEqual(true, () => isSo(this.lines), 'the lines that have come');
  }

  /** Of all values that a counter was sent with. */
  sumOf(name: string): number {
    const values = this.lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1));
    return values.reduce((sum, value) => sum + Number.parseFloat(value), 0);
  }
}

export class DatagramReceiver extends LineReceiver implements AsyncDisposable {
  readonly datagrams: string[] = [];
  readonly #socket: DatagramSocket;

  static async open(port = 0): Promise<DatagramReceiver> {
    const socket = createSocket({ type: 'udp4', recvBufferSize: 4 * 1024 * 1024 });
    socket.bind(port, '127.0.0.1');
    await once(socket, 'listening');
    return new DatagramReceiver(socket);
  }

  private constructor(socket: DatagramSocket) {
    super();
    this.#socket = socket;
    socket.on('message', (bytes) => this.datagrams.push(bytes.toString()));
  }

  get port(): number {
    return this.#socket.address().port;
  }

  get lines(): readonly string[] {
    return this.datagrams.flatMap((datagram) => datagram.split('\n'));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close();
    await once(this.#socket, 'close');
  }
}

export class TcpReceiver extends LineReceiver implements AsyncDisposable {
  readonly sockets = new Set<Socket>();
  text = '';
  readonly #server: Server;

  /** @param isDeaf takes connections and reads nothing. */
  static async open({ port = 0, isDeaf = false } = {}): Promise<TcpReceiver> {
    const server = createServer({ pauseOnConnect: isDeaf });
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return new TcpReceiver(server);
  }

  private constructor(server: Server) {
    super();
    this.#server = server;
    server.on('connection', (socket) => {
      this.sockets.add(socket);
      socket.on('data', (bytes) => {
        this.text += bytes.toString();
      });
      socket.on('error', () => {});
      socket.on('close', () => this.sockets.delete(socket));
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get lines(): readonly string[] {
    return this.text.split('\n').slice(0, -1);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
