// An upstream whose connections misbehave, each in one of the ways below, drawn anew with every connection. In the
// process of the test: it does next to nothing.

import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';

const HALF_ANSWER = 'HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\nhalf of it';
const EARLY_ANSWER = 'HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n';

const WAYS: readonly ((socket: Socket) => void)[] = [
  // Takes the connection and nothing else.
  (socket) => void socket.pause(),
  // Takes all, answers nothing.
  (socket) => void socket.resume(),
  // Stops in the middle of its answer.
  (socket) => void socket.once('data', () => socket.write(HALF_ANSWER)),
  // Breaks off in the middle of its answer.
  (socket) => void socket.once('data', () => socket.write(HALF_ANSWER, () => socket.resetAndDestroy())),
  // Answers before the request is whole, and leaves without reading the rest.
  (socket) => void socket.once('data', () => socket.pause().end(EARLY_ANSWER, () => socket.destroy())),
  (socket) => void socket.resetAndDestroy(),
];

export class StallingUpstream {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #accepted = 0;

  private constructor() {
    this.#server = createServer({ allowHalfOpen: true }, (socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => {}).on('close', () => this.#sockets.delete(socket));
      WAYS[this.#accepted % WAYS.length]!(socket);
      this.#accepted += 1;
    });
  }

  static async start(): Promise<StallingUpstream> {
    const upstream = new StallingUpstream();
    upstream.#server.listen(0, '127.0.0.1');
    await once(upstream.#server, 'listening');
    return upstream;
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port;
  }

  /** Ends what hangs. */
  endConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.endConnections();
    await closed;
  }
}
