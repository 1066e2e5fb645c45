// A client by bytes, made for large bodies: it reads when asked, one chunk after the other, and notices when nothing
// comes any more.

import { connect, type Socket } from 'node:net';

/** No byte and no end for so long is a connection that the proxy has forgotten. */
const SILENCE_LIMIT_MS = 60_000;

export interface WireResponse {
  readonly status: number;
  readonly head: string;
  /** Whether the connection is over with this response. */
  readonly isLast: boolean;
}

export class Silence extends Error {}

export class HttpWire {
  readonly socket: Socket;
  #unread: Buffer = Buffer.alloc(0);
  #isOver = false;
  #waiting: (() => void)[] = [];

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    const wake = (): void => {
      for (const go of this.#waiting.splice(0)) go();
    };
    const finish = (): void => {
      this.#isOver = true;
      wake();
    };
    this.socket.on('readable', wake).on('drain', wake).on('end', finish).on('close', finish).on('error', finish);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Writes in step with the reader; what cannot be written any more is dropped, as the answer may be there already. */
  async write(bytes: Buffer | string): Promise<void> {
    if (this.socket.writable && !this.socket.write(bytes)) {
      while (!this.#isOver && this.socket.writableNeedDrain) await this.#event();
    }
  }

  /** The next bytes, or null at the end. */
  async chunk(): Promise<Buffer | null> {
    if (this.#unread.length > 0) {
      const bytes = this.#unread;
      this.#unread = Buffer.alloc(0);
      return bytes;
    }
    for (;;) {
      const bytes = this.socket.read() as Buffer | null;
      if (bytes !== null) return bytes;
      if (this.#isOver) return null;
      await this.#event();
    }
  }

  /** A final response with its body; null when the connection ends before it is whole. */
  async response(onBody: (chunk: Buffer) => Promise<void> | void = () => {}): Promise<WireResponse | null> {
    const head = await this.#until('\r\n\r\n');
    if (head === null) return null;
    const response = {
      status: Number(head.slice(9, 12)),
      head,
      isLast: /\r\nconnection: close\r\n/i.test(head),
    };
    if (response.status === 100) return await this.response(onBody);
    const length = /\r\ncontent-length: (\d+)\r\n/i.exec(head)?.[1];
    const isWhole =
      length !== undefined
        ? await this.#body(Number(length), onBody)
        : !/\r\ntransfer-encoding: chunked\r\n/i.test(head) || (await this.#chunkedBody(onBody));
    return isWhole ? response : null;
  }

  /** Everything up to the end, of which the number of bytes is told. */
  async rest(): Promise<number> {
    let bytes = 0;
    for (let chunk = await this.chunk(); chunk !== null; chunk = await this.chunk()) bytes += chunk.length;
    return bytes;
  }

  close(): void {
    this.socket.destroy();
  }

  async #chunkedBody(onBody: (chunk: Buffer) => Promise<void> | void): Promise<boolean> {
    for (;;) {
      const line = await this.#until('\r\n');
      if (line === null) return false;
      const size = Number.parseInt(line, 16);
      if (size > 0 && !(await this.#body(size, onBody))) return false;
      if ((await this.#until('\r\n')) === null) return false;
      if (size === 0) return true;
    }
  }

  async #body(length: number, onBody: (chunk: Buffer) => Promise<void> | void): Promise<boolean> {
    for (let left = length; left > 0; ) {
      const chunk = await this.chunk();
      if (chunk === null) return false;
      const taken = chunk.subarray(0, left);
      this.#unread = chunk.subarray(left);
      left -= taken.length;
      await onBody(taken);
    }
    return true;
  }

  async #until(pattern: string): Promise<string | null> {
    let text = Buffer.alloc(0);
    for (;;) {
      const end = text.indexOf(pattern);
      if (end !== -1) {
        this.#unread = text.subarray(end + pattern.length);
        return text.toString('latin1', 0, end + pattern.length);
      }
      const chunk = await this.chunk();
      if (chunk === null) return null;
      text = Buffer.concat([text, chunk]);
    }
  }

  /** Anything: bytes, room, the end. A reader and a writer may wait at once. */
  #event(): Promise<void> {
    return new Promise((resolve, reject) => {
      const giveUp = (): void => reject(new Silence(`nothing happened for ${SILENCE_LIMIT_MS} ms: ${this.#state()}`));
      const timer = setTimeout(giveUp, SILENCE_LIMIT_MS);
      this.#waiting.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #state(): string {
    const { localPort, bytesWritten, bytesRead, writableLength, writableEnded } = this.socket;
    const end = writableEnded ? ', ended' : '';
    return `port ${localPort}, ${bytesWritten} bytes written${end}, ${writableLength} wait, ${bytesRead} read`;
  }
}
