// One exchange on an HTTP/2 connection from a client: between its session, which knows frames and windows, and the HTTP
// stream, which knows neither. Steps 2, 3 and 5 of the request flow.
//
//   request:  content goes on while the stream takes more; then it waits here, and its credit is not given back
//   tunnel:   NONE ──CONNECT, extended or not──► AWAITED: content waits ──2xx──► OPEN
//                                                  └──any other answer──► REFUSED: content is thrown away
//   response: written to the session at once, whose windows may keep it; the exchange ends with the last byte given
//
// Behind its end, or the reset by its upstream, a response may still wait for the client to take it, which has the time of an
// idle stream for that.

import { randomBytes } from 'node:crypto';
import { isForbiddenTrailer } from '../../../../base/forbidden-trailers.ts';
import { codecError, Framing, Method, type RequestHead } from '../../../../wasm/http1.ts';
import { EncodeFlag } from '../../../../wasm/http2.ts';
import { HeldBytes } from '../../../network/held-bytes.ts';
import type { ExpensiveStream } from '../../../network/terminal-filter.ts';
import { ResponseFlag } from '../../../response-flags.ts';
import type { WorkerContext } from '../../../worker-context.ts';
import { Dechunker } from '../../chunk-framing.ts';
import type { StreamLimit } from '../../stream-limits.ts';
import { Trailers } from '../../trailers.ts';
import { upgradeType } from '../../upgrade-fields.ts';
import {
  connectionLoss,
  type DownstreamStream,
  type RequestReceiver,
  ResetReason,
  type ResponseNotes,
  type StreamLoss,
} from '../downstream-stream.ts';
import type { CodecOwner, Refusal } from '../server-connection.ts';
import type { StreamConnection } from '../stream-connection.ts';
import type { ListedExchange } from './exchange-list.ts';
import { ErrorCode } from './frames.ts';
import type { Http2Session } from './session.ts';
import type { SessionStream, StreamHandler } from './session-stream.ts';
import { Http2StreamDeadlines, type StreamDeadlineOwner } from './stream-deadlines.ts';

const TUNNEL_NONE = 0;
const TUNNEL_AWAITED = 1;
const TUNNEL_OPEN = 2;
const TUNNEL_REFUSED = 3;

const NO_BYTES = Buffer.alloc(0);
/** A piece of a read that is shorter than this part of it is copied, or it would keep all of the read alive. */
const SHARE_WORTH_KEEPING = 4;
const STATUS_AT = 'HTTP/1.1 '.length;
const LINE_END = '\r\n';
const KEY = 'sec-websocket-key';
const KEY_BYTES = 16;

const RESET_CODES: Readonly<Record<ResetReason, number>> = {
  [ResetReason.internal]: ErrorCode.INTERNAL_ERROR,
  [ResetReason.cancelled]: ErrorCode.CANCEL,
  [ResetReason.overload]: ErrorCode.ENHANCE_YOUR_CALM,
  [ResetReason.upstream]: ErrorCode.INTERNAL_ERROR,
  [ResetReason.malformed]: ErrorCode.PROTOCOL_ERROR,
};

/** The connection, as its exchanges see it. */
export interface Http2StreamOwner {
  readonly connection: StreamConnection;
  readonly context: WorkerContext;
  readonly codecOwner: CodecOwner;
  readonly session: Http2Session;
  /** Monotonic time of the read at hand. */
  readonly readMs: number;
  /** What is read lies in memory that the next read of any connection fills. */
  readonly isBorrowed: boolean;
  /** A response begins: perhaps it is the last one but those that run. */
  onResponse(): void;
  /** The exchange is over; what it has written may still wait. */
  onStreamEnded(stream: Http2ServerStream): void;
  /** A client has not taken in time what was answered. */
  onFlushTimeout(): void;
}

export class Http2ServerStream
  implements DownstreamStream, StreamHandler, StreamDeadlineOwner, ExpensiveStream, ListedExchange<Http2ServerStream>
{
  readonly protocol = 'HTTP/2';
  isListed = false;
  previousListed: Http2ServerStream | null = null;
  nextListed: Http2ServerStream | null = null;
  readonly deadlines: Http2StreamDeadlines;
  readonly #owner: Http2StreamOwner;
  readonly #stream: SessionStream;
  /** Null before the head, and when the exchange is over. */
  #receiver: RequestReceiver | null = null;
  #isMessageDone = false;
  /** The HTTP stream takes more of the request. */
  #isWelcome = true;
  /** Content that it has been given, but that takes up the client's credit until it takes more. */
  #owedBytes = 0;
  /** Content that waits to be welcome, null for none; whether the end waits behind it, and with which trailers. */
  #held: HeldBytes | null = null;
  #isEndHeld = false;
  #heldTrailers: Trailers | null = null;
  #tunnel: number = TUNNEL_NONE;
  /** It stands for a connection of TCP. */
  #isConnect = false;
  #dechunker: Dechunker | null = null;
  #responseTrailers = '';
  /** Length of the block that `prepareHead` has written, and its kept form where somebody asks. */
  #headBytes = 0;
  #headText = '';
  /** The upgrade's key is none of the client's. */
  #hasOwnKey = false;

  constructor(owner: Http2StreamOwner, stream: SessionStream) {
    const { context, codecOwner } = owner;
    this.#owner = owner;
    this.#stream = stream;
    this.deadlines = new Http2StreamDeadlines(
      this,
      codecOwner.overload,
      context.wheel,
      codecOwner.settings.streamFlushTimeoutMs,
    );
  }

  get connection(): StreamConnection {
    return this.#owner.connection;
  }

  /** Bytes that wait here on behalf of the stream, both ways. */
  get heldBytes(): number {
    if (this.#receiver === null) return this.#stream.pendingBytes;
    return (this.#held?.length ?? 0) + this.#stream.pendingBytes + this.#receiver.heldBytes;
  }

  resetExpensive(): void {
    if (this.#receiver !== null) {
      this.#receiver.onTooExpensive();
      return;
    }
    this.#owner.session.reset(this.#stream, ErrorCode.ENHANCE_YOUR_CALM);
    this.#leave();
  }

  /** By order of the overload manager. */
  abortDispatch(): void {
    this.#receiver?.onDispatchAborted();
  }

  /** Answers a request whose head nobody could read. */
  refuse({ lines, body }: Refusal, nowMs: number): void {
    const hasContent = this.#stream.requestMethod !== Method.HEAD;
    this.writeReply(this.prepareReply(lines), hasContent ? body : NO_BYTES);
    this.endStream(nowMs);
  }

  get isOpenTunnel(): boolean {
    return this.#tunnel === TUNNEL_OPEN;
  }

  // ---- From the session ----

  onHead(isEnd: boolean): void {
    const { context, codecOwner, readMs } = this.#owner;
    this.#isMessageDone = isEnd;
    const head = context.codec.request;
    this.#isConnect = head.methodId === Method.CONNECT;
    this.#addKey(head);
    const receiver = codecOwner.newStream(this, readMs, readMs);
    this.#receiver = receiver;
    const wire = receiver.downstreamWire;
    if (wire !== null) {
      this.#stream.wire = wire;
      wire.receivedBlock(this.#stream.blockBytes);
      wire.receivedBlockText(head.headLength);
    }
    this.deadlines.start(codecOwner.settings, readMs, isEnd);
    const goesOn = receiver.begin(NO_BYTES, 0, 0, isEnd);
    if (this.#receiver !== null) this.#isWelcome &&= goesOn;
  }

  onInterimHead(): void {
    // Requests have none.
  }

  onData(bytes: Buffer, start: number, end: number, isEnd: boolean): void {
    this.deadlines.touch(this.#owner.readMs);
    if (isEnd) this.#endMessage();
    if (this.#tunnel === TUNNEL_REFUSED) this.#owner.session.consume(this.#stream, end - start);
    else if (this.#canPass) this.#pass(this.#ownPiece(bytes, start, end), isEnd, null);
    else this.#hold(bytes, start, end, isEnd, null);
  }

  onTrailers(lines: string): void {
    const trailers = passingTrailers(lines);
    this.deadlines.touch(this.#owner.readMs);
    this.#endMessage();
    if (this.#tunnel === TUNNEL_REFUSED) return;
    if (this.#canPass) this.#pass(NO_BYTES, true, trailers);
    else this.#hold(NO_BYTES, 0, 0, true, trailers);
  }

  onReset(code: number, isLocal: boolean, reason: string): void {
    this.#lose(streamLoss(code, isLocal, reason));
  }

  /** The connection is gone. */
  onConnectionLost(isLocal: boolean, isReset: boolean): void {
    this.#lose(connectionLoss(isLocal, isReset));
  }

  onWritable(): void {
    this.deadlines.touch(this.#owner.context.clock.monotonicMs());
    if (this.#receiver === null) this.deadlines.remove();
    else this.#receiver.onDownstreamDrain();
  }

  // ---- Deadlines that have passed ----

  onStreamLimit(limit: StreamLimit): void {
    this.#receiver?.onLimit(limit);
  }

  onRequestDeadline(): void {
    this.#receiver?.onRequestTimeout();
  }

  onStreamIdle(): void {
    const { codecOwner, session } = this.#owner;
    if (this.#receiver === null) {
      this.#owner.onFlushTimeout();
      session.reset(this.#stream, ErrorCode.CANCEL);
      this.#leave();
    } else if (codecOwner.isFinishing && this.isOpenTunnel) {
      session.reset(this.#stream, ErrorCode.NO_ERROR);
      this.#lose(connectionLoss(true, false));
    } else {
      this.#receiver.onIdleTimeout();
    }
  }

  // ---- What the HTTP stream asks for ----

  get isMessageDone(): boolean {
    return this.#isMessageDone || this.#tunnel !== TUNNEL_NONE;
  }

  get takesTrailers(): boolean {
    return this.#tunnel !== TUNNEL_OPEN;
  }

  set responseTrailers(trailers: Trailers) {
    this.#responseTrailers = trailers.text();
  }

  writeContinue(): void {
    this.#owner.session.respondLines(this.#stream, 100, '', false);
  }

  writeInterim(): boolean {
    const { session } = this.#owner;
    const length = session.prepareResponse(0);
    if (length < 0) return false;
    session.sendHead(this.#stream, length, false, false);
    return true;
  }

  prepareHead(framing: number, _isEnd: boolean, isNoted: boolean): number {
    const { session, context } = this.#owner;
    const { codec } = context;
    this.#owner.onResponse();
    this.#dechunker = framing === Framing.CHUNKED ? new Dechunker() : null;
    const isTunnel = framing === Framing.TUNNEL;
    if (isTunnel && this.#hasOwnKey) codec.response.removeField('sec-websocket-accept');
    if (!isNoted) {
      this.#headBytes = session.prepareResponse(isTunnel ? EncodeFlag.CONNECT_PROTOCOL : 0);
    } else {
      const length = codec.writeResponse();
      if (length < 0) return length;
      this.#headText = codec.responseText(length);
      const lines = this.#headText.slice(this.#headText.indexOf(LINE_END) + LINE_END.length, -LINE_END.length);
      this.#headBytes = session.prepareLines(isTunnel ? 200 : codec.response.status, lines);
    }
    return Math.min(this.#headBytes, 0);
  }

  writeHead(
    notes: ResponseNotes | null,
    bytes: Buffer,
    start: number,
    end: number,
    isEnd: boolean,
    nowMs: number,
  ): boolean {
    notes?.noteResponse(this.#headText, end - start, nowMs);
    if (this.#stream.wire !== null) this.#stream.wire.sentBlockText(this.#headText.length);
    const isWhole = isEnd && start === end && this.#responseTrailers === '';
    this.#owner.session.sendHead(this.#stream, this.#headBytes, isWhole);
    return isWhole || this.writeBody(bytes, start, end, isEnd);
  }

  writeBody(bytes: Buffer, start: number, end: number, isEnd: boolean): boolean {
    const { session, context } = this.#owner;
    this.deadlines.touch(context.clock.monotonicMs());
    const trailers = isEnd ? this.#responseTrailers : '';
    if (this.#dechunker === null) return session.send(this.#stream, bytes, start, end, isEnd, trailers);
    const data = this.#dechunker.decode(bytes, start, end);
    return session.send(this.#stream, data, 0, data.length, isEnd, trailers);
  }

  prepareReply(lines: string): string {
    this.#owner.onResponse();
    return lines + LINE_END;
  }

  writeReply(head: string, body: Buffer): void {
    const { session } = this.#owner;
    const status = Number(head.slice(STATUS_AT, STATUS_AT + 3));
    const lines = head.slice(head.indexOf(LINE_END) + LINE_END.length, -LINE_END.length);
    if (this.#stream.wire !== null) this.#stream.wire.sentBlockText(head.length);
    const error = session.respondLines(this.#stream, status, lines, body.length === 0);
    if (error < 0) {
      this.#owner.context.logs.http.warning(`cannot answer over HTTP/2: ${codecError(error).reason}`);
      session.reset(this.#stream, ErrorCode.INTERNAL_ERROR);
    } else if (body.length > 0) {
      session.send(this.#stream, body, 0, body.length, true, '');
    }
  }

  endStream(nowMs: number): void {
    const { session } = this.#owner;
    const stream = this.#stream;
    this.#leave();
    if (!stream.isRemoteEnded) session.discard(stream);
    stream.handler = null;
    if (!stream.isWaiting) return;
    // Whoever does not take its answer gets some time for it.
    stream.handler = this;
    this.deadlines.setStreamIdleTimeout(this.deadlines.flushTimeoutMs, nowMs);
  }

  resetStream(reason: ResetReason): void {
    const { context, session } = this.#owner;
    if (reason !== ResetReason.upstream) {
      this.#leave();
      session.reset(this.#stream, RESET_CODES[reason]);
      return;
    }
    // RFC 9113 section 8.5.
    const code = this.#isConnect && this.isOpenTunnel ? ErrorCode.CONNECT_ERROR : RESET_CODES[reason];
    // What came before is still the client's.
    this.endStream(context.clock.monotonicMs());
    session.resetWhenSent(this.#stream, code);
  }

  resumeRequest(): void {
    this.#isWelcome = true;
    this.#giveCredit(this.#owedBytes);
    this.#owedBytes = 0;
    this.#passHeld();
  }

  awaitTunnel(): void {
    this.#tunnel = TUNNEL_AWAITED;
  }

  openTunnel(): void {
    this.#tunnel = TUNNEL_OPEN;
    this.#stream.isTunnel = true;
    // Nobody behind the proxy may get any either.
    this.#heldTrailers = null;
    this.#isWelcome = true;
    if (this.#isMessageDone) this.#isEndHeld = true;
    this.#passHeld();
  }

  /** What comes of a refused tunnel is nobody's, so that the request is its head. */
  refuseTunnel(): boolean {
    this.#tunnel = TUNNEL_REFUSED;
    this.#dropHeld();
    return true;
  }

  // ---- Inside ----

  get #canPass(): boolean {
    return this.#isWelcome && this.#tunnel !== TUNNEL_AWAITED && this.#held === null;
  }

  #endMessage(): void {
    this.#isMessageDone = true;
    this.deadlines.endRequest();
  }

  /** @param bytes given away. */
  #pass(bytes: Buffer, isEnd: boolean, trailers: Trailers | null): void {
    const receiver = this.#receiver;
    const { length } = bytes;
    if (receiver === null) {
      this.#giveCredit(length);
      return;
    }
    if (trailers !== null) receiver.requestTrailers = trailers;
    // Resuming may come within the call.
    this.#isWelcome = false;
    this.#owedBytes += length;
    const goesOn = receiver.onRequestBody(bytes, 0, length, isEnd, this.#owner.readMs);
    if (!goesOn && !this.#isWelcome) return;
    this.#isWelcome = true;
    this.#giveCredit(this.#owedBytes);
    this.#owedBytes = 0;
  }

  /** A piece of a read that may be kept, and freed by whoever gets it, without touching the rest. */
  #ownPiece(bytes: Buffer, start: number, end: number): Buffer {
    if (start === end) return NO_BYTES;
    const piece = bytes.subarray(start, end);
    const isWorthKeeping = !this.#owner.isBorrowed && piece.length * SHARE_WORTH_KEEPING >= bytes.length;
    return isWorthKeeping ? piece : Buffer.from(piece);
  }

  #hold(bytes: Buffer, start: number, end: number, isEnd: boolean, trailers: Trailers | null): void {
    this.#held ??= new HeldBytes();
    this.#held.append(bytes, start, end);
    this.#isEndHeld = isEnd;
    this.#heldTrailers = trailers;
  }

  #passHeld(): void {
    const held = this.#held;
    if (held === null && !this.#isEndHeld) return;
    const isEnd = this.#isEndHeld;
    this.#held = null;
    this.#isEndHeld = false;
    this.#pass(held?.take() ?? NO_BYTES, isEnd, this.#heldTrailers);
  }

  #dropHeld(): void {
    const bytes = this.#owedBytes + (this.#held?.length ?? 0);
    this.#owedBytes = 0;
    this.#held = null;
    this.#isEndHeld = false;
    this.#giveCredit(bytes);
  }

  #giveCredit(bytes: number): void {
    if (bytes > 0) this.#owner.session.consume(this.#stream, bytes);
  }

  /** The exchange is over: what it has kept of the request is nobody's. */
  #leave(): void {
    this.#receiver = null;
    this.deadlines.remove();
    this.#dropHeld();
    this.#owner.onStreamEnded(this);
  }

  #lose(loss: StreamLoss): void {
    const receiver = this.#receiver;
    this.#leave();
    receiver?.onDownstreamGone(loss);
  }

  /** A WebSocket client of HTTP/2 sends no key (RFC 8441 section 5), which servers of HTTP/1 ask for. */
  #addKey(head: RequestHead): void {
    if (head.methodId !== Method.GET || upgradeType(head) !== 'websocket' || head.hasField(KEY)) return;
    this.#hasOwnKey = true;
    head.append(KEY, randomBytes(KEY_BYTES).toString('base64'));
  }
}

function passingTrailers(lines: string): Trailers {
  const trailers = Trailers.parse(lines);
  for (const [name] of trailers.entries()) if (isForbiddenTrailer(name)) trailers.remove(name);
  return trailers;
}

function streamLoss(_code: number, isLocal: boolean, reason: string): StreamLoss {
  const flag = isLocal ? ResponseFlag.DPE : ResponseFlag.DC;
  return { isLocal, isReset: true, flag, details: reason.startsWith('http2') ? reason : `http2.${reason}` };
}
