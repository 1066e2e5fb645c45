// An HTTP/2 session without a socket, for tests: frames in, what it says and tells its users out.

import { DEFAULT_HTTP2_SETTINGS } from '../../src/config/resources/http2-options.ts';
import { FrameSlabs } from '../../src/data-plane/http/codec/http2/frame-output.ts';
import { FrameFlag, FrameType, PREFACE } from '../../src/data-plane/http/codec/http2/frames.ts';
import type { Http2Options, SessionFault } from '../../src/data-plane/http/codec/http2/options.ts';
import { Http2Session } from '../../src/data-plane/http/codec/http2/session.ts';
import type { SessionOwner } from '../../src/data-plane/http/codec/http2/session-owner.ts';
import type { SessionStream, StreamHandler } from '../../src/data-plane/http/codec/http2/session-stream.ts';
import { LIMITS, plainBlock, TestHeads } from './http2-heads.ts';
import type { Field } from './reference/hpack.ts';

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

export function frame(type: number, flags: number, streamId: number, payload: Buffer | readonly number[] = []): Buffer {
  const bytes = Buffer.from(payload);
  const header = Buffer.alloc(9);
  header.writeUIntBE(bytes.length, 0, 3);
  header[3] = type;
  header[4] = flags;
  header.writeUInt32BE(streamId, 5);
  return Buffer.concat([header, bytes]);
}

export function word(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

export const SETTINGS = frame(FrameType.SETTINGS, 0, 0);
export const GET: readonly Field[] = [
  [':method', 'GET'],
  [':scheme', 'http'],
  [':authority', 'a.example'],
  [':path', '/'],
];
export const POST: readonly Field[] = [[':method', 'POST'], ...GET.slice(1)];

export function headers(
  streamId: number,
  fields: readonly Field[] = GET,
  flags: number = FrameFlag.END_STREAM,
): Buffer {
  return frame(FrameType.HEADERS, flags | FrameFlag.END_HEADERS, streamId, plainBlock(fields));
}

export function data(streamId: number, text: string, flags = 0): Buffer {
  return frame(FrameType.DATA, flags, streamId, Buffer.from(text));
}

/** What this side takes, and most peers do. */
export const FRAME_BYTES = 16_384;

/** A block as HEADERS and CONTINUATIONs of these lengths, and of the largest ones behind them. */
export function blockFrames(streamId: number, block: Buffer, lengths: readonly number[] = [], flags = 0): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0; at < block.length; ) {
    const length = lengths[pieces.length] ?? FRAME_BYTES;
    pieces.push(block.subarray(at, at + length));
    at += length;
  }
  return pieces.map((piece, index) =>
    frame(
      index === 0 ? FrameType.HEADERS : FrameType.CONTINUATION,
      (index === 0 ? flags : 0) | (index === pieces.length - 1 ? FrameFlag.END_HEADERS : 0),
      streamId,
      piece,
    ),
  );
}

export function readFrames(bytes: Buffer): Frame[] {
  const frames: Frame[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readUIntBE(at, 3);
    const payload = bytes.subarray(at + 9, at + 9 + length);
    frames.push({ type: bytes[at + 3]!, flags: bytes[at + 4]!, streamId: bytes.readUInt32BE(at + 5), payload });
    at += 9 + length;
  }
  return frames;
}

const shared = new TestHeads();
const slabs = new FrameSlabs();

/** Notes what it is told, as lines. */
class NotingHandler implements StreamHandler {
  readonly #id: number;
  readonly #events: string[];
  readonly #session: () => Http2Session;
  readonly #stream: SessionStream;
  readonly #consumes: boolean;

  constructor(stream: SessionStream, events: string[], session: () => Http2Session, consumes: boolean) {
    this.#stream = stream;
    this.#consumes = consumes;
    this.#id = stream.id;
    this.#events = events;
    this.#session = session;
  }

  onHead(isEnd: boolean): void {
    const { codec } = shared;
    const what = this.#session().isServer
      ? `${codec.request.method} ${codec.request.path()}`
      : `${codec.response.status}`;
    this.#events.push(`${this.#id} head ${what}${isEnd ? ' end' : ''}`);
  }

  onInterimHead(status: number): void {
    this.#events.push(`${this.#id} interim ${status}`);
  }

  onData(bytes: Buffer, start: number, end: number, isEnd: boolean): void {
    this.#events.push(`${this.#id} data ${bytes.toString('latin1', start, end)}${isEnd ? ' end' : ''}`);
    if (this.#consumes) this.#session().consume(this.#stream, end - start);
  }

  onTrailers(lines: string): void {
    this.#events.push(`${this.#id} trailers ${lines.trimEnd()}`);
  }

  onReset(code: number, isLocal: boolean, reason: string): void {
    this.#events.push(`${this.#id} reset ${code} ${isLocal ? 'here' : 'there'} ${reason}`);
  }

  onWritable(): void {
    this.#events.push(`${this.#id} writable`);
  }
}

export class TestSession implements SessionOwner {
  readonly session: Http2Session;
  readonly events: string[] = [];
  readonly stats: string[] = [];
  readonly streams: SessionStream[] = [];
  fault: SessionFault | null = null;
  /** The socket takes what it is given, and not only holds it. */
  isRead = true;
  #said: Buffer[] = [];
  /** Content is of use to somebody, who gives its credit back. */
  consumes = true;
  /** Called with each new stream, behind its handler's making. */
  answer: (stream: SessionStream) => void = () => undefined;

  constructor(isServer: boolean, options: Partial<Http2Options> = {}) {
    const all = { ...DEFAULT_HTTP2_SETTINGS, ...options };
    const codecs = { codec: shared.codec, heads: shared.heads, slabs };
    this.session = new Http2Session(codecs, this, isServer, all, LIMITS);
    this.session.start();
  }

  /** A server that has had the client's preface, and said its own. */
  static server(options: Partial<Http2Options> = {}): TestSession {
    const test = new TestSession(true, options);
    test.feed(PREFACE, SETTINGS);
    test.take();
    return test;
  }

  feed(...parts: Buffer[]): this {
    const bytes = Buffer.concat(parts);
    this.session.receive(bytes, 0, bytes.length);
    return this;
  }

  /** What was said since the last time. */
  take(): Frame[] {
    if (this.session.isBlocked) this.session.drained();
    else this.session.flush();
    const bytes = Buffer.concat(this.#said);
    this.#said = [];
    return readFrames(bytes.subarray(0, 24).equals(PREFACE) ? bytes.subarray(24) : bytes);
  }

  /** A request from this client with the head given as HTTP/1. */
  request(head: string, isEnd = true): SessionStream | null {
    const bytes = Buffer.from(head, 'latin1');
    shared.codec.parseRequest(bytes, 0, bytes.length, LIMITS);
    const stream = this.session.request(0, isEnd);
    if (stream !== null) this.onStream(stream);
    return stream;
  }

  onStream(stream: SessionStream): void {
    this.streams.push(stream);
    stream.handler = new NotingHandler(stream, this.events, () => this.session, this.consumes);
    this.answer(stream);
  }

  onOversizedRequest(stream: SessionStream): void {
    this.session.respondLines(stream, 431, 'content-length: 0\r\n', true);
  }

  onDirty(): void {
    // Tests take the output themselves.
  }

  write(slab: Buffer, length: number): boolean {
    this.#said.push(Buffer.from(slab.subarray(0, length)));
    return this.isRead;
  }

  onBlock(): void {
    // Tests read heads at once.
  }

  onSettings(): void {
    // Nothing waits for them.
  }

  count(stat: string): void {
    this.stats.push(stat);
  }

  onGoaway(lastStreamId: number, code: number): void {
    this.events.push(`goaway ${lastStreamId} ${code}`);
  }

  onPong(): void {
    this.events.push('pong');
  }

  onDrainRead(): void {
    this.events.push('drain read');
  }

  onSessionFault(fault: SessionFault): void {
    this.fault = fault;
  }

  onIdle(): void {
    this.events.push('idle');
  }
}

export const codecs = { codec: shared.codec, heads: shared.heads, slabs };
