// An HTTP/2 client for tests over node:http2, and a client of bare frames for what no library sends.

import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect, type OutgoingHttpHeaders } from 'node:http2';
import { connect as connectSocket, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { FrameType, PREFACE } from '../../src/data-plane/http/codec/http2/frames.ts';
import { type Frame, frame, readFrames, SETTINGS } from './http2-session.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
  readonly trailers: Readonly<Record<string, unknown>>;
}

export class Http2Client {
  readonly session: ClientHttp2Session;

  constructor(t: TestContext, port: number, options: object = {}) {
    this.session = connect(`http://127.0.0.1:${port}`, options);
    this.session.on('error', () => {});
    t.after(() => this.session.destroy());
  }

  open(
    headers: OutgoingHttpHeaders,
    options: { endStream?: boolean; waitForTrailers?: boolean } = {},
  ): ClientHttp2Stream {
    return this.session.request(headers, { endStream: false, ...options });
  }

  /** @throws with the code of the reset when there is one. */
  async fetch(headers: OutgoingHttpHeaders, body?: string): Promise<Answer> {
    const stream = this.open(headers, { endStream: body === undefined });
    if (body !== undefined) stream.end(body);
    return await answerOf(stream);
  }

  async get(path: string): Promise<Answer> {
    return await this.fetch({ ':path': path });
  }
}

export async function answerOf(stream: ClientHttp2Stream): Promise<Answer> {
  let trailers = {};
  stream.on('trailers', (fields: object) => (trailers = { ...fields }));
  const [headers] = (await once(stream, 'response')) as [Record<string, unknown>];
  const body = await text(stream);
  return { status: Number(headers[':status']), headers: { ...headers }, body, trailers };
}

/** Writes frames, and keeps those that come. */
export class FrameClient {
  readonly socket: Socket;
  readonly frames: Frame[] = [];
  isEnded = false;
  #bytes: Buffer = Buffer.alloc(0);
  #change = Promise.withResolvers<void>();

  /** @param over a port of this machine, or a socket of another kind. */
  constructor(t: TestContext, over: number | Socket, opening: Buffer = Buffer.concat([PREFACE, SETTINGS])) {
    this.socket = typeof over === 'number' ? connectSocket(over, '127.0.0.1') : over;
    this.socket.setNoDelay(true);
    this.socket.write(opening);
    this.socket.on('data', (chunk: Buffer) => this.#take(chunk));
    this.socket.on('error', () => {});
    this.socket.on('close', () => {
      this.isEnded = true;
      this.#tell();
    });
    t.after(() => this.socket.destroy());
  }

  send(...frames: Buffer[]): void {
    this.socket.write(Buffer.concat(frames));
  }

  /** Takes up what the proxy has said of itself. */
  acknowledge(): void {
    this.send(frame(FrameType.SETTINGS, 1, 0));
  }

  /** The first frame that is so, of those that have come or come. Undefined at the end of the connection. */
  async find(isWanted: (frame: Frame) => boolean): Promise<Frame | undefined> {
    for (;;) {
      const found = this.frames.find(isWanted);
      if (found !== undefined || this.isEnded) return found;
      await this.#change.promise;
    }
  }

  async ofType(type: number): Promise<Frame | undefined> {
    return await this.find((candidate) => candidate.type === type);
  }

  /** Code of the GOAWAY that ends the connection. */
  async goaway(): Promise<number | undefined> {
    const found = await this.find(
      ({ type, payload }) => type === FrameType.GOAWAY && payload.readUInt32BE(0) !== 2 ** 31 - 1,
    );
    return found?.payload.readUInt32BE(4);
  }

  async ended(): Promise<void> {
    while (!this.isEnded) await this.#change.promise;
  }

  #take(chunk: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, chunk]);
    let end = 0;
    while (this.#bytes.length - end >= 9 && this.#bytes.length - end >= 9 + this.#bytes.readUIntBE(end, 3)) {
      end += 9 + this.#bytes.readUIntBE(end, 3);
    }
    this.frames.push(...readFrames(this.#bytes.subarray(0, end)));
    this.#bytes = this.#bytes.subarray(end);
    this.#tell();
  }

  #tell(): void {
    const change = this.#change;
    this.#change = Promise.withResolvers<void>();
    change.resolve();
  }
}
