// Both ends of a wire by bytes: a raw client that a test drives, and a raw upstream that it scripts.

import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { closeAtEnd } from './close-at-end.ts';
import { within } from './eventually.ts';
import { ReservedPort } from './reserved-port.ts';

/** A client connection whose received bytes a test waits for. */
export class WireClient {
  readonly socket: Socket;
  #received = Buffer.alloc(0);
  #isEnded = false;
  #error: Error | null = null;
  #wake: (() => void) | null = null;

  /** @param localAddress of this machine; one that the system chooses when absent. */
  constructor(port: number, host = '127.0.0.1', localAddress?: string) {
    this.socket = connect({ port, host, allowHalfOpen: true, ...(localAddress && { localAddress }) });
    this.socket.on('data', (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk]);
      this.#wake?.();
    });
    this.socket.on('end', () => this.#finish());
    const forget = closeAtEnd(() => this.close());
    this.socket.on('close', () => {
      forget();
      this.#finish();
    });
    this.socket.on('error', (error) => {
      this.#error = error;
    });
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  get error(): Error | null {
    return this.#error;
  }

  write(data: string | Buffer): this {
    this.socket.write(data);
    return this;
  }

  /** Waits until the pattern is found; takes everything up to its end off and returns it as latin1 text. */
  async until(pattern: string | RegExp): Promise<string> {
    for (;;) {
      const text = this.#received.toString('latin1');
      const end = typeof pattern === 'string' ? text.indexOf(pattern) + pattern.length : matchEnd(text, pattern);
      if (end >= (typeof pattern === 'string' ? pattern.length : 1)) return this.#take(end).toString('latin1');
      if (this.#isEnded) throw new Error(`the connection ended before ${pattern}; received: ${shortened(text)}`);
      await this.#more(String(pattern));
    }
  }

  /** Waits for a number of bytes and takes them off. */
  async bytes(count: number): Promise<Buffer> {
    while (this.#received.length < count) {
      if (this.#isEnded) throw new Error(`the connection ended after ${this.#received.length} of ${count} bytes`);
      await this.#more(`${count} bytes`);
    }
    return this.#take(count);
  }

  /** Waits for anything, and takes it off; empty where the connection ends without a word. */
  async some(): Promise<string> {
    while (this.#received.length === 0 && !this.#isEnded) await this.#more('a word, or the end of the connection');
    return this.#take(this.#received.length).toString('latin1');
  }

  /** Everything up to the end of the connection. */
  async rest(): Promise<string> {
    while (!this.#isEnded) await this.#more('the end of the connection');
    return this.#take(this.#received.length).toString('latin1');
  }

  /** One response with content-length (or none): its head and body. */
  async response(): Promise<{ head: string; body: string; status: number }> {
    const head = await this.until('\r\n\r\n');
    const length = Number(/^content-length: (\d+)\r$/im.exec(head)?.[1] ?? 0);
    const body = (await this.bytes(length)).toString('latin1');
    return { head, body, status: Number(head.slice(9, 12)) };
  }

  close(): void {
    this.socket.destroy();
  }

  #take(count: number): Buffer {
    const taken = this.#received.subarray(0, count);
    this.#received = this.#received.subarray(count);
    return taken;
  }

  #finish(): void {
    this.#isEnded = true;
    this.#wake?.();
  }

  async #more(what: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    await within(promise, () => `${what}; received: ${shortened(this.#received.toString('latin1'))}`);
    this.#wake = null;
  }
}

function shortened(text: string): string {
  return `${text.length} bytes, ${JSON.stringify(text.slice(0, 500))}`;
}

function matchEnd(text: string, pattern: RegExp): number {
  const match = pattern.exec(text);
  return match === null ? -1 : match.index + match[0].length;
}

/** An upstream by bytes: what each connection received, and what to do about it. */
export class WireUpstream {
  readonly #server: Server;
  readonly #forget = closeAtEnd(() => this.#end());
  readonly sockets: Socket[] = [];
  port = 0;

  private constructor(onConnection: (socket: Socket, index: number) => void) {
    this.#server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => {});
      this.sockets.push(socket);
      onConnection(socket, this.sockets.length - 1);
    });
  }

  static async start(onConnection: (socket: Socket, index: number) => void): Promise<WireUpstream> {
    const upstream = new WireUpstream(onConnection);
    upstream.#server.listen(0, '127.0.0.1');
    await once(upstream.#server, 'listening');
    upstream.port = (upstream.#server.address() as { port: number }).port;
    return upstream;
  }

  /** Answers each request head (bodies are not looked at) with the same bytes; keeps the heads. */
  static async answering(answer: string | Buffer): Promise<WireUpstream & { heads: string[] }> {
    const heads: string[] = [];
    const upstream = await WireUpstream.start((socket) => {
      let text = '';
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString('latin1');
        for (let end = text.indexOf('\r\n\r\n'); end !== -1; end = text.indexOf('\r\n\r\n')) {
          heads.push(text.slice(0, end + 4));
          text = text.slice(end + 4);
          socket.write(answer);
        }
      });
      socket.on('end', () => socket.end());
    });
    return Object.assign(upstream, { heads });
  }

  async close(): Promise<void> {
    this.#forget();
    this.#end();
    await once(this.#server, 'close');
  }

  #end(): void {
    for (const socket of this.sockets) socket.destroy();
    this.#server.close();
  }
}

/**
 * Reads on, and waits for how the peer ends the connection: `end`, or the code of the error that it is for this side; `close` where
 * this side has closed it.
 */
export async function peerEnd(socket: Socket): Promise<string> {
  const ended = Promise.withResolvers<string>();
  socket.once('end', () => ended.resolve('end'));
  socket.once('error', ({ code }: NodeJS.ErrnoException) => ended.resolve(code ?? 'error'));
  socket.once('close', () => ended.resolve('close'));
  socket.resume();
  return await within(ended.promise, () => `the end of a connection that has read ${socket.bytesRead} bytes`);
}

/** Whether short writes are not held back for longer ones; Node shows it nowhere else. */
export function sendsAtOnce(socket: Socket): boolean {
  const noDelay = Object.getOwnPropertySymbols(socket).find(({ description }) => description === 'kSetNoDelay')!;
  return (socket as unknown as Record<symbol, unknown>)[noDelay] === true;
}

/** A port on which nobody listens, nor will before this process ends, but whoever is told it. */
export async function unusedPort(): Promise<number> {
  return (await ReservedPort.take()).port;
}
