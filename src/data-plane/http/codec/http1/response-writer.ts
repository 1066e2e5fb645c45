// Writes the responses of one connection to its client, each with the body framing that this client understands, and
// counts what it is given of them:
//
//   raw        the framing that the head announces is there already, or there is no body
//   chunk      a body whose end nothing but its sender tells, for a client whose connection stays
//   dechunk    a chunked body for an HTTP/1.0 client; the end of the connection ends it

import type { Socket } from 'node:net';
import { HTTP_STATS } from '../../../../stats/index.ts';
import { Framing, HEADER_ID, JOINED_LIMIT_BYTES, type ResponseHead } from '../../../../wasm/http1.ts';
import type { WireBytes } from '../../../format/wire-bytes.ts';
import { BufferedBytes } from '../../../network/buffered-bytes.ts';
import type { WorkerContext } from '../../../worker-context.ts';
import { Dechunker } from '../../chunk-framing.ts';
import type { ProperCase } from '../../proper-case.ts';
import type { ResponseLines } from '../../response-edits.ts';
import { insertTrailers, type Trailers } from '../../trailers.ts';
import { keepUpgradeFields } from '../../upgrade-fields.ts';
import type { ResponseNotes } from '../downstream-stream.ts';

const { downstream_cx_tx_bytes_buffered, downstream_cx_tx_bytes_total } = HTTP_STATS.index;

type BodyMode = 'raw' | 'chunk' | 'dechunk';

const CONTENT_LENGTH = HEADER_ID['content-length'];
const LAST_CHUNK = '0\r\n';
const LINE_END = '\r\n';
const CLOSE = 'connection: close\r\n';
const KEEP_ALIVE = 'connection: keep-alive\r\n';

export class ResponseWriter {
  readonly #socket: Socket;
  readonly #context: WorkerContext;
  readonly #lines: ResponseLines;
  readonly #properCase: ProperCase | null;
  /** First cell of HTTP_STATS. */
  readonly #statBase: number;
  readonly #unsent: BufferedBytes;
  /** The client is an HTTP/1.0 one, which knows no chunks and keeps its connection only where it is told so. */
  isForHttp10 = false;
  /** The request was HEAD: a length would be that of another answer. */
  isForHead = false;
  /** Of the exchange at hand; null where nobody asks. */
  wire: WireBytes | null = null;
  /** Of the response that ends with the next write. */
  trailers: Trailers | null = null;
  #mode: BodyMode = 'raw';
  #isInChunks = false;
  #dechunker: Dechunker | null = null;
  #headLength = 0;

  constructor(socket: Socket, context: WorkerContext, statBase: number, lines: ResponseLines) {
    this.#socket = socket;
    this.#context = context;
    this.#statBase = statBase;
    this.#lines = lines;
    this.#properCase = lines.properCase;
    this.#unsent = new BufferedBytes(context, statBase + downstream_cx_tx_bytes_buffered);
  }

  /** The response that has begun comes in chunks, behind which a client reads trailers. */
  get isInChunks(): boolean {
    return this.#isInChunks;
  }

  /** As DownstreamStream.prepareHead. @param mustClose the connection ends with this response. */
  prepareHead(framing: number, mustClose: boolean): number {
    const { codec } = this.#context;
    const head = codec.response;
    if (framing === Framing.TUNNEL) {
      this.#setMode('raw', false);
      keepUpgradeFields(head);
    } else {
      this.#chooseMode(framing, head);
      if (mustClose) head.appendPrepared(this.#lines.close);
      else if (this.isForHttp10) head.appendPrepared(this.#lines.keepAlive);
    }
    const length = codec.writeResponse();
    if (length < 0) return length;
    this.#headLength = length;
    return 0;
  }

  /** As DownstreamStream.writeHead. */
  writeHead(
    notes: ResponseNotes | null,
    bytes: Buffer,
    start: number,
    end: number,
    isEnd: boolean,
    nowMs: number,
  ): boolean {
    const { codec } = this.#context;
    const length = this.#headLength;
    const mayJoin = this.#mode === 'raw' && notes === null && this.trailers === null && this.#properCase === null;
    // A short body is joined to its head where both lie as bytes, unless a log wants to read the head alone.
    if (mayJoin && end > start && length + end - start <= JOINED_LIMIT_BYTES) {
      const text = codec.responseTextWithBody(length, bytes, start, end);
      return this.#write(text, bytes, end, end, isEnd, false);
    }
    const text = codec.responseText(length);
    notes?.noteResponse(text, end - start, nowMs);
    this.wire?.sentText(text.length);
    return this.#write(this.#formed(text), bytes, start, end, isEnd, false);
  }

  /** As DownstreamStream.writeBody: what is not pinnable is copied where needed. */
  writeBody(bytes: Buffer, start: number, end: number, isEnd: boolean, isPinnable: boolean): boolean {
    return this.#write('', bytes, start, end, isEnd, isPinnable);
  }

  /** As DownstreamStream.prepareReply. */
  prepareReply(lines: string, mustClose: boolean): string {
    if (mustClose) return lines + CLOSE + LINE_END;
    return this.isForHttp10 ? lines + KEEP_ALIVE + LINE_END : lines + LINE_END;
  }

  writeReply(head: string, body: Buffer): void {
    this.#setMode('raw', false);
    this.wire?.sentText(head.length);
    this.#write(this.#formed(head), body, 0, body.length, true, false);
  }

  /** As DownstreamStream.writeInterim. */
  writeInterim(): boolean {
    const { codec } = this.#context;
    const length = codec.writeResponse();
    if (length > 0) this.writeText(this.#formed(codec.responseText(length)));
    return length > 0;
  }

  /** Writes what has a framing of its own: an interim response, or one that is ready as it is. */
  writeText(text: string): void {
    this.#count(text.length);
    if (!this.#context.writer.text(this.#socket, text)) this.#noteUnsent();
  }

  /** The kernel has taken everything, or the connection is gone. */
  noteSent(): void {
    this.#unsent.note(0);
  }

  #formed(head: string): string {
    return this.#properCase === null ? head : this.#properCase.apply(head);
  }

  #chooseMode(framing: number, head: ResponseHead): void {
    if (framing === Framing.UNTIL_CLOSE && !this.isForHttp10) {
      head.appendPrepared(this.#lines.chunked);
      this.#setMode('chunk', true);
    } else if (framing === Framing.CHUNKED && this.isForHttp10) {
      head.removeField('transfer-encoding');
      // A body without chunks has no trailers to announce (RFC 9112 section 7.1.3).
      head.removeField('trailer');
      this.#setMode('dechunk', false);
    } else {
      if (framing === Framing.NONE && !head.has(CONTENT_LENGTH)) this.#announceNothing(head);
      this.#setMode('raw', framing === Framing.CHUNKED);
    }
  }

  /** An upstream that speaks HTTP/2 ends a message without saying so in its head; this client would wait for more. */
  #announceNothing(head: ResponseHead): void {
    const { status } = head;
    const cannotHave = status < 200 || status === 204 || status === 304;
    if (!cannotHave && !this.isForHead && !head.hasField('content-length')) head.append('content-length', '0');
  }

  #setMode(mode: BodyMode, isInChunks: boolean): void {
    this.#mode = mode;
    this.#isInChunks = isInChunks;
    this.trailers = null;
    this.#dechunker = mode === 'dechunk' ? new Dechunker() : null;
  }

  #write(head: string, bytes: Buffer, start: number, end: number, isEnd: boolean, isPinnable: boolean): boolean {
    const isTaken = this.#writeFramed(head, bytes, start, end, isEnd, isPinnable);
    if (!isTaken) this.#noteUnsent();
    return isTaken;
  }

  #writeFramed(head: string, bytes: Buffer, start: number, end: number, isEnd: boolean, isPinnable: boolean): boolean {
    if (this.#mode === 'chunk') return this.#writeChunk(head, bytes, start, end, isEnd, isPinnable);
    if (isEnd && this.trailers !== null) return this.#writeWithTrailers(head, bytes, start, end, this.trailers);
    this.#count(head.length + end - start);
    const { writer } = this.#context;
    if (this.#dechunker !== null) {
      const data = this.#dechunker.decode(bytes, start, end);
      return head.length + data.length === 0 || writer.copied(this.#socket, head, data, 0, data.length);
    }
    if (head.length + end - start === 0) return true;
    if (isPinnable) return writer.pinned(this.#socket, head, bytes, start, end, '');
    return writer.copied(this.#socket, head, bytes, start, end);
  }

  #writeWithTrailers(head: string, bytes: Buffer, start: number, end: number, trailers: Trailers): boolean {
    const whole = insertTrailers(bytes, start, end, trailers);
    this.#count(head.length + whole.length);
    return this.#context.writer.copied(this.#socket, head, whole, 0, whole.length);
  }

  #writeChunk(head: string, bytes: Buffer, start: number, end: number, isEnd: boolean, isPinnable: boolean): boolean {
    const { writer } = this.#context;
    const length = end - start;
    this.#count(head.length + length);
    const after = (length > 0 ? LINE_END : '') + (isEnd ? this.#lastChunk() : '');
    const before = length > 0 ? `${head}${length.toString(16)}\r\n` : head;
    if (this.wire !== null) this.wire.sentBytes(before.length - head.length + after.length);
    if (isPinnable) return writer.pinned(this.#socket, before, bytes, start, end, after);
    if (length === 0) return before.length + after.length === 0 || writer.text(this.#socket, before + after);
    const isSent = writer.copied(this.#socket, before, bytes, start, end);
    return writer.text(this.#socket, after) && isSent;
  }

  #lastChunk(): string {
    return LAST_CHUNK + (this.trailers?.text() ?? '') + LINE_END;
  }

  #noteUnsent(): void {
    this.#unsent.note(this.#socket.writableLength);
  }

  #count(bytes: number): void {
    this.#context.stats.values[this.#statBase + downstream_cx_tx_bytes_total]! += bytes;
    if (this.wire !== null) this.wire.sentBytes(bytes);
  }
}
