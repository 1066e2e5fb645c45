// One HTTP/1.1 connection from a client: frames requests, keeps their order, writes responses. Steps 2 and 5 of
// the request flow.
//
//   OPEN ──last response sent, or refused──► CLOSING ──peer's end, or time──► CLOSED
//     └──────────── peer gone, reset, idle ───────────────────────────────────►┘
//
// A request for an upgrade, or CONNECT, may turn the connection into a tunnel:
//
//   NONE ──such a request──► AWAITED ──101, or 2xx to CONNECT──► OPEN: bytes pass unread until both sides have ended
//                               └──any other final answer──► REFUSED: bytes that came too early end the connection
//
// One request at a time: bytes of the next one wait, and reading stops, until the response is done and has left.
// While reading is stopped the client's end is looked for all the same (paused-peers.ts): a client that has closed its side
// has left, whatever it sent before, unless that is a tunnel's: there its reset is looked for.
// CLOSING sends the end of the stream and throws away what still comes, so that the last response is not lost to
// a reset; nothing in it is ever read as HTTP again.

import type { Socket } from 'node:net';
import { HTTP_STATS } from '../../../../stats/index.ts';
import { type CodecError, codecError, type HeadLimits } from '../../../../wasm/http1.ts';
import { BufferedBytes } from '../../../network/buffered-bytes.ts';
import { Delivery, type DeliveryOwner } from '../../../network/delivery.ts';
import type { DownstreamConnection } from '../../../network/downstream-connection.ts';
import { HeldBytes } from '../../../network/held-bytes.ts';
import { PausedPeer, type PausedPeerOwner } from '../../../network/paused-peers.ts';
import {
  attachAccepted,
  type ReadMode,
  resetSocket,
  resumeAccepted,
  type SocketOwner,
} from '../../../network/socket-events.ts';
import { type ExpensiveStream, QUIET_MS } from '../../../network/terminal-filter.ts';
import type { WorkerContext } from '../../../worker-context.ts';
import {
  DISPATCH_ABORTED,
  HEADERS_TIMEOUT,
  type LocalReply,
  protocolViolation,
  REQUEST_TIMEOUT,
  STREAM_IDLE_REQUEST,
} from '../../local-reply.ts';
import type { StreamLimit } from '../../stream-limits.ts';
import { ConnectionLife, type MortalConnection } from '../connection-life.ts';
import { connectionLoss, type RequestReceiver, ResetReason } from '../downstream-stream.ts';
import type { CodecOwner, ServerConnection } from '../server-connection.ts';
import { StreamConnection } from '../stream-connection.ts';
import { hasLineFeed, isEmptyLine, isOfHttp10 } from './head-start.ts';
import { MessageBody } from './message-body.ts';
import { type DeadlineOwner, ServerDeadlines } from './server-deadlines.ts';
import { Http1ServerStream, type ServerStreamOwner } from './server-stream.ts';

/** As loggers know this file. */
const FILE = 'src/data-plane/http/codec/http1/server-connection.ts';

const {
  downstream_cx_delayed_close_timeout,
  downstream_cx_idle_timeout,
  downstream_cx_protocol_error,
  downstream_cx_rx_bytes_buffered,
  downstream_cx_rx_bytes_total,
  downstream_rq_header_timeout,
  downstream_rq_http1_total,
  downstream_rq_idle_timeout,
  downstream_rq_overload_close,
  downstream_rq_timeout,
  downstream_rq_too_large,
} = HTTP_STATS.index;

const OPEN = 0;
const CLOSING = 1;
const CLOSED = 2;

const TUNNEL_NONE = 0;
const TUNNEL_AWAITED = 1;
const TUNNEL_OPEN = 2;
const TUNNEL_REFUSED = 3;

const NO_BYTES = Buffer.alloc(0);

export class Http1ServerConnection
  implements
    ServerConnection,
    ServerStreamOwner,
    ExpensiveStream,
    SocketOwner,
    DeadlineOwner,
    PausedPeerOwner,
    DeliveryOwner,
    MortalConnection
{
  readonly connection: StreamConnection;
  readonly deadlines: ServerDeadlines;
  readonly life: ConnectionLife | null;
  readonly #context: WorkerContext;
  readonly #owner: CodecOwner;
  readonly #limits: HeadLimits;
  readonly #socket: Socket;
  readonly #mode: ReadMode;
  /** What is read lies in memory that the next read of any connection fills. */
  readonly #isBorrowed: boolean;
  readonly #held = new HeldBytes();
  /** Of bytes that wait for their turn. */
  readonly #heldCount: BufferedBytes;
  readonly #body = new MessageBody();
  readonly #exchange: Http1ServerStream;
  /** The connection counts as one of HTTP/1: it is that by order, or its first request was. */
  #isCertain: boolean;
  #state: number = OPEN;
  #stream: RequestReceiver | null = null;
  /** The stream takes more of the request's body. */
  #isBodyWelcome = true;
  #tunnel: number = TUNNEL_NONE;
  /** Bytes lie behind the part of the request that the stream is looking at. */
  #hasBytesBehind = false;
  #isReadStopped = false;
  /** Null before reading stops for the first time, or comes to its end in a tunnel. */
  #pausedPeer: PausedPeer | null = null;
  #isProcessing = false;
  #closesByPeer = false;
  /** Of a response that its upstream has cut; null without one. */
  #delivery: Delivery | null = null;

  /** @param isCertain it speaks HTTP/1, whatever comes. */
  constructor(context: WorkerContext, owner: CodecOwner, downstream: DownstreamConnection, isCertain: boolean) {
    this.#isCertain = isCertain;
    const { socket } = downstream;
    this.#context = context;
    this.#owner = owner;
    this.#limits = owner.headLimits;
    this.#socket = socket;
    this.#mode = context.readMode;
    this.connection = new StreamConnection(context, downstream, owner.internalAddresses);
    this.#heldCount = new BufferedBytes(context, owner.statBase + downstream_cx_rx_bytes_buffered);
    this.deadlines = new ServerDeadlines(this, owner.settings, owner.overload, context);
    this.life = ConnectionLife.of(context, owner, this);
    this.#exchange = new Http1ServerStream(socket, context, owner, this);
    this.deadlines.awaitRequest(context.clock.monotonicMs());
    this.#isBorrowed = attachAccepted(socket, this, this.#mode, context.codec.readBuffer);
  }

  get codec(): 'http1' | null {
    return this.#isCertain ? 'http1' : null;
  }

  get isBusy(): boolean {
    return this.#stream !== null || (this.#held.length > 0 && !isEmptyLine(this.#held.peek(), 0, this.#held.length));
  }

  /** Bytes that wait here on behalf of a stream, both ways; 0 without a stream. */
  get heldBytes(): number {
    if (this.#stream === null) return 0;
    return this.#held.length + this.#socket.writableLength + this.#stream.heldBytes;
  }

  /** The stream holds too much: it ends. */
  resetExpensive(): void {
    this.#stream?.onTooExpensive();
  }

  drain(): void {
    if (this.#state === OPEN && !this.isBusy) this.#closeGracefully(false);
  }

  drainWithin(): void {
    // HTTP/1 tells with a response.
  }

  expectSoon(timeoutMs: number): void {
    this.deadlines.expectSoon(this.#context.clock.monotonicMs(), timeoutMs);
  }

  finish(): void {
    if (this.#tunnel === TUNNEL_OPEN) this.deadlines.setStreamIdleTimeout(QUIET_MS, this.#context.clock.monotonicMs());
  }

  /** Ends the connection now; what runs on it is broken off, unless that is a tunnel in which nothing moves. */
  destroy(): void {
    if (this.#state === CLOSED) return;
    const isReset = this.#delivery !== null || (this.#stream !== null && !this.#isQuietTunnel);
    this.#close(true, isReset);
    if (isReset) resetSocket(this.#socket);
    else this.#socket.destroy();
  }

  rescaleTimeouts(): void {
    this.deadlines.rescale();
  }

  findExpensive(fromBytes: number, found: ExpensiveStream[]): void {
    if (this.heldBytes >= fromBytes) found.push(this);
  }

  // ---- Socket events ----

  onBytes(chunk: Buffer, length: number): boolean {
    this.#count(downstream_cx_rx_bytes_total, length);
    if (this.#state !== OPEN) return true;
    if (this.#owner.overload.abortsDispatch() && this.#tunnel !== TUNNEL_OPEN) {
      this.#abortDispatch();
    } else if (this.#held.length > 0) {
      this.#held.append(chunk, 0, length);
      // A head ends with a line: without a new one there is nothing to find out, unless it is too long already.
      if (this.#stream === null && this.#held.length < this.#limits.maxHeadBytes && !hasLineFeed(chunk, length))
        return true;
      if (this.#stream === null) this.#processHeld();
    } else {
      this.#process(chunk, 0, length);
    }
    this.#heldCount.note(this.#held.length);
    const shouldRead = this.#shouldRead();
    this.#isReadStopped = !shouldRead;
    if (!shouldRead) this.#context.pausedPeers.pause(this.#watchedPeer);
    return shouldRead;
  }

  #abortDispatch(): void {
    if (this.#stream === null) this.#refuseHeadAfter(downstream_rq_overload_close, DISPATCH_ABORTED);
    else this.#stream.onDispatchAborted();
  }

  onEnd(): void {
    // What was cut does not end like something complete.
    if (this.#state === CLOSED || this.#delivery !== null) return;
    if (this.#state === OPEN && this.#stream !== null && this.#tunnel === TUNNEL_OPEN) {
      this.#body.end();
      this.#context.pausedPeers.ended(this.#watchedPeer);
      this.#stream.onRequestBody(NO_BYTES, 0, 0, true, this.#context.clock.monotonicMs());
      return;
    }
    // A client that has closed does not want an answer any more; one that is complete may still be on its way.
    if (this.#state === OPEN && this.#stream === null && this.#socket.writableLength > 0) {
      this.#closeGracefully(true);
      return;
    }
    // What the socket still has to send goes out; it closes by itself after that.
    if (this.#state === CLOSING && this.#socket.writableLength > 0) return;
    this.#close(this.#isClosedByUs, false);
    this.#socket.destroy();
  }

  onDrain(): void {
    this.#exchange.noteSent();
    if (this.#state !== OPEN) return;
    if (this.#stream !== null) this.#stream.onDownstreamDrain();
    else this.#continueWithHeld();
  }

  onClose(error: NodeJS.ErrnoException | null): void {
    this.#close(this.#isClosedByUs, error !== null);
  }

  onFault(error: unknown): void {
    this.#context.logFault(`the connection of ${this.connection.peerAddress}`, error);
    this.#close(true, true);
  }

  /** A client that has ended waits for no answer, also where its end lies behind bytes that are not read. */
  onPausedPeerGone(isReset: boolean): void {
    if (isReset) {
      this.#close(this.#isClosedByUs, true);
      this.#socket.destroy();
    } else if (this.#tunnel !== TUNNEL_OPEN) this.onEnd();
  }

  // ---- Deadlines that have passed ----

  onCloseDeadline(): void {
    this.#count(downstream_cx_delayed_close_timeout, 1);
    this.destroy();
  }

  onStreamLimit(limit: StreamLimit): void {
    this.#stream?.onLimit(limit);
  }

  onRequestDeadline(): void {
    if (this.#stream === null) this.#refuseHeadAfter(downstream_rq_timeout, REQUEST_TIMEOUT);
    else this.#stream.onRequestTimeout();
  }

  onStreamIdle(): void {
    const isAtStop = this.#owner.isFinishing && this.#tunnel === TUNNEL_OPEN;
    if (this.#stream === null) this.#refuseHeadAfter(downstream_rq_idle_timeout, STREAM_IDLE_REQUEST);
    else if (!isAtStop) this.#stream.onIdleTimeout();
    // Bytes that a slow peer has not taken yet are waited for.
    else if (this.#isQuietTunnel) this.destroy();
    else this.finish();
  }

  onHeadersDeadline(): void {
    this.#refuseHeadAfter(downstream_rq_header_timeout, HEADERS_TIMEOUT);
  }

  onAged(): number {
    const { connectionLife, drainTimeoutMs } = this.#owner.settings;
    return connectionLife!.endsHttp1WithResponse ? 0 : Math.max(1, drainTimeoutMs);
  }

  onIdle(): void {
    this.#count(downstream_cx_idle_timeout, 1);
    this.#closeGracefully(false);
  }

  // ---- The rest of a response that was cut ----

  onDeliveryProgress(): void {
    this.#armClose(this.deadlines.flushTimeoutMs);
  }

  onDelivered(): void {
    this.#breakOff();
  }

  // ---- What the stream asks for ----

  endStream(isLast: boolean, nowMs: number): void {
    this.#stream = null;
    this.deadlines.endStream();
    const hasEarlyBytes = this.#tunnel === TUNNEL_REFUSED && this.#held.length > 0;
    this.#tunnel = TUNNEL_NONE;
    if (isLast || hasEarlyBytes || this.life?.isOver || this.#owner.endsBetweenRequests()) {
      this.#closeGracefully(false);
      return;
    }
    this.deadlines.awaitRequest(nowMs);
    if (!this.#isProcessing) this.#continueWithHeld();
  }

  resetStream(reason: ResetReason): void {
    this.#stream = null;
    if (this.#state === CLOSED) return;
    if (reason === ResetReason.upstream) this.#breakOffWhenDelivered();
    else this.#breakOff();
  }

  resumeRequest(): void {
    this.#isBodyWelcome = true;
    this.#updateReading();
  }

  get isMessageDone(): boolean {
    return this.#body.isDone;
  }

  get isTunnelRequest(): boolean {
    return this.#tunnel !== TUNNEL_NONE;
  }

  awaitTunnel(): void {
    this.#tunnel = TUNNEL_AWAITED;
  }

  openTunnel(): void {
    this.#tunnel = TUNNEL_OPEN;
    this.#body.openTunnel();
    this.#isBodyWelcome = true;
    this.deadlines.touchNow();
    if (this.#owner.isFinishing) this.finish();
    if (!this.#isProcessing) this.#continueWithHeld();
  }

  refuseTunnel(): boolean {
    this.#tunnel = TUNNEL_REFUSED;
    return this.#body.isDone && !this.#hasBytesBehind && this.#held.length === 0;
  }

  // ---- Requests ----

  #process(bytes: Buffer, from: number, end: number): void {
    const nowMs = this.#context.clock.monotonicMs();
    let start = from;
    this.#isProcessing = true;
    while (start < end && this.#state === OPEN) {
      if (this.#stream === null) {
        // The next request waits until the last response has left: the peer sets the pace.
        if (this.#socket.writableLength > 0) break;
        const length = this.#context.codec.parseRequest(bytes, start, end, this.#limits);
        if (length <= 0) {
          if (length < 0) this.#endBrokenHead(codecError(length), bytes.subarray(start, end), nowMs);
          else if (!isEmptyLine(bytes, start, end)) this.deadlines.awaitHead(nowMs);
          break;
        }
        start = this.#beginRequest(bytes, start + length, end, nowMs);
      } else if (!this.#body.isDone) {
        start = this.#readBody(bytes, start, end, nowMs);
      } else {
        break;
      }
    }
    this.#isProcessing = false;
    if (start < end && this.#state === OPEN) this.#held.append(bytes, start, end);
  }

  #beginRequest(bytes: Buffer, start: number, end: number, nowMs: number): number {
    const head = this.#context.codec.request;
    if (!this.#isCertain) this.#becomeCertain();
    this.#count(downstream_rq_http1_total, 1);
    const stream = this.#exchange.begin(head, this.deadlines.endHead(nowMs), nowMs);
    this.#stream = stream;
    this.#body.begin(head, this.#limits, this.#owner.settings.enableTrailers);
    const bodyEnd = this.#body.read(bytes, start, end);
    if (bodyEnd < 0) {
      this.#onBodyViolation(stream, codecError(bodyEnd));
      return end;
    }
    const wire = stream.downstreamWire;
    if (wire !== null) {
      wire.receivedText(head.headLength);
      wire.receivedBytes(head.headLength + bodyEnd - start);
    }
    this.deadlines.startStream(nowMs, this.#body.isDone);
    this.#isBodyWelcome = true;
    this.#hasBytesBehind = bodyEnd < end;
    const body = this.#bodyToGive(stream, bytes, start, bodyEnd);
    const goesOn =
      body === null
        ? stream.begin(bytes, start, bodyEnd, this.#body.isDone)
        : stream.begin(body, 0, body.length, this.#body.isDone);
    if (this.#stream === stream) this.#isBodyWelcome = goesOn;
    return bodyEnd;
  }

  #readBody(bytes: Buffer, start: number, end: number, nowMs: number): number {
    const stream = this.#stream!;
    const bodyEnd = this.#body.read(bytes, start, end);
    if (bodyEnd < 0) {
      this.#onBodyViolation(stream, codecError(bodyEnd));
      return end;
    }
    const wire = stream.downstreamWire;
    if (wire !== null) wire.receivedBytes(bodyEnd - start);
    if (this.#body.isDone) this.deadlines.endRequest();
    this.deadlines.touchStream(nowMs);
    this.#hasBytesBehind = bodyEnd < end;
    const isEnd = this.#body.isDone && this.#tunnel === TUNNEL_NONE;
    const body = this.#bodyToGive(stream, bytes, start, bodyEnd);
    if (body === null) {
      this.#isBodyWelcome = stream.onRequestBody(bytes, start, bodyEnd, isEnd, nowMs);
    } else if (body.length > 0) {
      this.#isBodyWelcome = stream.onRequestBody(body, 0, body.length, isEnd, nowMs);
    }
    return bodyEnd;
  }

  /**
   * The bytes of a body in memory of their own, without trailers, of which the stream gets what passes. Null where
   * bytes[start..end) may be given away as they lie: also an empty range would give away all of the buffer.
   */
  #bodyToGive(stream: RequestReceiver, bytes: Buffer, start: number, end: number): Buffer | null {
    const body = this.#body;
    if (!body.hasTrailers) {
      if (!this.#isBorrowed) return null;
      return start === end ? NO_BYTES : Buffer.copyBytesFrom(bytes, start, end - start);
    }
    if (body.isDone) stream.requestTrailers = body.takeTrailers();
    const rest = body.withoutTrailers(bytes, start);
    return this.#isBorrowed ? Buffer.from(rest) : rest;
  }

  // ---- Refusals ----

  /** @param bytes as they were read: they may be the beginning of another protocol, which keeps them. */
  #endBrokenHead(error: CodecError, bytes: Buffer, nowMs: number): void {
    if (this.#isCertain || !this.#owner.takeOver(this, this.#isBorrowed ? Buffer.from(bytes) : bytes)) {
      this.#refuseBrokenHead(error, bytes, nowMs);
      return;
    }
    this.#state = CLOSED;
    this.#pausedPeer?.resume();
    this.deadlines.remove();
    this.life?.remove();
  }

  #becomeCertain(): void {
    this.#isCertain = true;
    this.#owner.onCodecKnown(this);
  }

  #refuseBrokenHead(error: CodecError, bytes: Buffer, nowMs: number): void {
    this.#count(downstream_cx_protocol_error, 1);
    if (error.status === 431) this.#count(downstream_rq_too_large, 1);
    const log = this.#context.logs.http.ofFile(FILE);
    if (log.enabled('debug')) log.debug(`${this.connection.peerAddress} broke the protocol: ${error.reason}`);
    this.#refuse(protocolViolation(error.status, error.reason), bytes, nowMs);
  }

  /** A head has begun, and not ended in its time. @param stat of the timeout. */
  #refuseHeadAfter(stat: number, reply: LocalReply): void {
    this.#count(stat, 1);
    this.#refuse(reply, this.#held.peek(), this.#context.clock.monotonicMs());
  }

  /**
   * A request that never became a stream gets its answer, the last one of the connection.
   * @param bytes of its head, as far as they are known.
   */
  #refuse(reply: LocalReply, bytes: Buffer, nowMs: number): void {
    if (!this.#isCertain) this.#becomeCertain();
    this.#count(downstream_rq_http1_total, 1);
    const protocol = isOfHttp10(bytes) ? 'HTTP/1.0' : 'HTTP/1.1';
    const { lines, body } = this.#owner.refuseRequest(this.connection, reply, protocol, this.deadlines.endHead(nowMs));
    this.#exchange.writeRefusal(lines, body);
    this.#closeGracefully(false);
  }

  #onBodyViolation(stream: RequestReceiver, error: CodecError): void {
    this.#count(downstream_cx_protocol_error, 1);
    stream.onProtocolViolation(error.status, error.reason);
  }

  // ---- Flow ----

  get #isClosedByUs(): boolean {
    return this.#state === CLOSING && !this.#closesByPeer;
  }

  /** Nothing waits in the tunnel, on its way to either side. */
  get #isQuietTunnel(): boolean {
    return this.#tunnel === TUNNEL_OPEN && this.#socket.writableLength === 0 && this.#isBodyWelcome;
  }

  #shouldRead(): boolean {
    if (this.#state !== OPEN) return true;
    if (this.#stream === null) return this.#held.length === 0 || this.#socket.writableLength === 0;
    // A client that waits for its response is still read: that is how its end is noticed.
    return this.#body.isDone ? this.#held.length === 0 : this.#isBodyWelcome;
  }

  #updateReading(): void {
    if (!this.#isReadStopped || !this.#shouldRead()) return;
    this.#isReadStopped = false;
    this.#pausedPeer?.resume();
    resumeAccepted(this.#socket, this.#mode);
  }

  get #watchedPeer(): PausedPeer {
    this.#pausedPeer ??= new PausedPeer(this, this.#socket);
    return this.#pausedPeer;
  }

  #processHeld(): void {
    const bytes = this.#held.take();
    this.#process(bytes, 0, bytes.length);
  }

  #continueWithHeld(): void {
    if (this.#held.length > 0) this.#processHeld();
    this.#heldCount.note(this.#held.length);
    this.#updateReading();
  }

  // ---- End ----

  /** Not a plain end: to a client that reads until the end the response would look complete. */
  #breakOff(): void {
    this.#close(true, true);
    resetSocket(this.#socket);
  }

  /** Behind what the client was sent, for as long as it goes on taking that. */
  #breakOffWhenDelivered(): void {
    this.#takeNoMore();
    this.onDeliveryProgress();
    this.#delivery = new Delivery(this.#context, this.#socket, this);
    this.#delivery.start();
  }

  #takeNoMore(): void {
    this.#state = CLOSING;
    this.deadlines.endRequests();
    this.life?.remove();
    this.#held.take();
    this.#heldCount.note(0);
  }

  #closeGracefully(byPeer: boolean): void {
    if (this.#state !== OPEN) return;
    this.#takeNoMore();
    this.#closesByPeer = byPeer;
    const { delayedCloseTimeoutMs } = this.#owner.settings;
    if (this.#socket.writableLength === 0 && delayedCloseTimeoutMs > 0) {
      this.#socket.end();
      this.#armClose(delayedCloseTimeoutMs);
    } else {
      // A slow reader may take its time for what is still on the way, as on any other stream.
      this.#armClose(this.deadlines.flushTimeoutMs);
      this.#socket.end(() => {
        if (delayedCloseTimeoutMs > 0) this.#armClose(delayedCloseTimeoutMs);
        else this.destroy();
      });
    }
    this.#updateReading();
  }

  #armClose(timeoutMs: number): void {
    if (this.#state === CLOSED) return;
    this.deadlines.awaitClose(this.#context.clock.monotonicMs(), timeoutMs);
  }

  /** @param isLocal this side ends the connection. @param isReset it is broken off. */
  #close(isLocal: boolean, isReset: boolean): void {
    if (this.#state === CLOSED) return;
    const hadStream = this.#stream !== null;
    const stream = this.#stream;
    this.#state = CLOSED;
    this.#stream = null;
    this.#heldCount.note(0);
    this.#exchange.noteSent();
    this.#pausedPeer?.resume();
    this.#delivery?.stop();
    this.deadlines.remove();
    this.life?.remove();
    this.#owner.onConnectionClosed(this, isLocal, hadStream);
    stream?.onDownstreamGone(connectionLoss(isLocal, isReset));
  }

  #count(stat: number, n: number): void {
    this.#context.stats.values[this.#owner.statBase + stat]! += n;
  }
}
