// Drives the HTTP/1 codec over a byte stream as a connection would, and writes down what it saw: the event log of
// test/conformance/http1. However the stream is cut into pieces, the log must be the same.

import {
  ChunkScanner,
  ChunkSpan,
  codecError,
  Framing,
  HeadFlag,
  type HeadLimits,
  type Http1Codec,
  type MessageHead,
  Method,
} from '../../src/wasm/http1.ts';

export interface Conversation {
  readonly direction: 'request' | 'response';
  /** Method of the request that every response of the stream answers. */
  readonly method: keyof typeof Method;
  readonly limits: HeadLimits;
}

const quote = (text: string): string =>
  JSON.stringify(text).replace(/[\x7f-\xff]/g, (char) => `\\x${char.charCodeAt(0).toString(16)}`);

type Phase = 'head' | 'length' | 'chunked' | 'until-close' | 'tunnel' | 'closed' | 'failed';

export class EventLog {
  readonly events: string[] = [];
  readonly #codec: Http1Codec;
  readonly #conversation: Conversation;
  readonly #scanner = new ChunkScanner();
  #phase: Phase = 'head';
  #pending = Buffer.alloc(0);
  #body = '';
  #trailers = '';
  #remaining = 0;
  #persistent = false;

  constructor(codec: Http1Codec, conversation: Conversation) {
    this.#codec = codec;
    this.#conversation = conversation;
  }

  push(piece: Buffer): void {
    this.#pending = Buffer.concat([this.#pending, piece]);
    while (this.#pending.length > 0 && this.#step());
  }

  end(): string[] {
    if (this.#phase === 'failed') return this.events;
    if (this.#phase === 'until-close' || this.#phase === 'tunnel') this.#endBody();
    else if (this.#phase !== 'head' && this.#phase !== 'closed')
      this.events.push(`incomplete body ${quote(this.#body)}`);
    else if (this.#pending.length > 0) {
      this.events.push(`${this.#phase === 'head' ? 'incomplete head' : 'ignored'} ${this.#pending.length} bytes`);
    }
    return this.events;
  }

  /** Consumes something of the pending bytes; false when it needs more. */
  #step(): boolean {
    switch (this.#phase) {
      case 'head':
        return this.#readHead();
      case 'length':
        return this.#readLength();
      case 'chunked':
        return this.#readChunked();
      case 'closed':
      case 'failed':
        return false;
      default:
        this.#body += this.#take(this.#pending.length);
        return true;
    }
  }

  #take(count: number): string {
    const text = this.#pending.toString('latin1', 0, count);
    this.#pending = this.#pending.subarray(count);
    return text;
  }

  #fail(code: number): false {
    const { reason, status } = codecError(code);
    this.events.push(this.#conversation.direction === 'request' ? `error ${reason} ${status}` : `error ${reason}`);
    this.#phase = 'failed';
    return false;
  }

  #readHead(): boolean {
    const { direction, limits, method } = this.#conversation;
    const bytes = this.#pending;
    const isRequest = direction === 'request';
    const length = isRequest
      ? this.#codec.parseRequest(bytes, 0, bytes.length, limits)
      : this.#codec.parseResponse(bytes, 0, bytes.length, limits, Method[method]);
    if (length === 0) return false;
    if (length < 0) return this.#fail(length);
    this.#take(length);
    const head = isRequest ? this.#codec.request : this.#codec.response;
    this.events.push(isRequest ? this.#requestLine() : this.#statusLine());
    this.#logFields(head);
    this.#beginBody(head);
    return true;
  }

  #requestLine(): string {
    const { request } = this.#codec;
    const marks = [`HTTP/1.${request.minorVersion}`, request.isPersistent ? 'persistent' : 'close'];
    if ((request.flags & HeadFlag.UPGRADE) !== 0) marks.push('upgrade');
    if ((request.flags & HeadFlag.EXPECT_CONTINUE) !== 0) marks.push('expect-continue');
    if ((request.flags & HeadFlag.EXPECT_OTHER) !== 0) marks.push('expect-other');
    return `request ${request.method} ${quote(request.path())} for ${quote(request.authority())} ${marks.join(' ')}`;
  }

  #statusLine(): string {
    const { response } = this.#codec;
    const end = response.isPersistent ? 'persistent' : 'close';
    return `response ${response.status} ${quote(response.reason())} HTTP/1.${response.minorVersion} ${end}`;
  }

  #logFields(head: MessageHead): void {
    for (let index = 0; index < head.fieldCount; index += 1) {
      const verb = head.isDropped(index) ? 'drop' : 'field';
      this.events.push(`${verb} ${head.nameAt(index)}: ${quote(head.valueAt(index))}`);
    }
  }

  #beginBody(head: MessageHead): void {
    this.#body = '';
    this.#trailers = '';
    this.#persistent = head.isPersistent;
    this.#phase = 'head';
    if (head.framing === Framing.LENGTH) {
      this.#phase = 'length';
      this.#remaining = head.contentLength;
    } else if (head.framing === Framing.CHUNKED) {
      this.#phase = 'chunked';
      this.#scanner.reset(this.#conversation.limits);
    } else if (head.framing === Framing.UNTIL_CLOSE) this.#phase = 'until-close';
    else if (head.framing === Framing.TUNNEL) this.#phase = 'tunnel';
    else this.#endMessage('no body');
  }

  #readLength(): boolean {
    const text = this.#take(Math.min(this.#remaining, this.#pending.length));
    this.#body += text;
    this.#remaining -= text.length;
    if (this.#remaining === 0) this.#endBody();
    return true;
  }

  #readChunked(): boolean {
    const end = this.#scanner.next(this.#pending, 0, this.#pending.length);
    if (end < 0) return this.#fail(end);
    const text = this.#take(end);
    if (this.#scanner.span === ChunkSpan.DATA) this.#body += text;
    if (this.#scanner.span === ChunkSpan.TRAILERS) this.#trailers += text;
    if (this.#scanner.isDone) this.#endBody();
    return true;
  }

  #endBody(): void {
    const trailers = this.#trailers === '' || this.#trailers === '\r\n' ? '' : ` trailers ${quote(this.#trailers)}`;
    this.#endMessage(`${this.#phase} body ${quote(this.#body)}${trailers}`);
  }

  #endMessage(event: string): void {
    this.events.push(event);
    // After an interim response the same exchange goes on, whatever the connection does behind it.
    const isInterim = this.#conversation.direction === 'response' && this.#codec.response.status < 200;
    this.#phase = this.#persistent || isInterim ? 'head' : 'closed';
  }
}

/** The log of a stream that arrives in these pieces and then ends. */
export function eventsOf(codec: Http1Codec, conversation: Conversation, pieces: readonly Buffer[]): string[] {
  const log = new EventLog(codec, conversation);
  for (const piece of pieces) log.push(piece);
  return log.end();
}
