// One HTTP/2 connection from a client: its session between the socket and the exchanges that it carries. Steps 2 and 5 of the
// request flow.
//
//   OPEN ──fault, or drained and idle──► CLOSING ──peer's end, or time──► CLOSED
//     └────────────── peer gone, reset ───────────────────────────────────►┘
//
// It is always read: what a client may send is bounded by windows, and what answers its frames by the session's limits. All that
// it has to say in a turn of the event loop leaves in one write; while the kernel has not taken that, the rest waits.
// CLOSING sends what is left and the end of the stream, and reads nothing any more.

import type { Socket } from 'node:net';
import { HTTP_STATS, HTTP2_STATS, type Http2Stat } from '../../../../stats/index.ts';
import { BufferedBytes } from '../../../network/buffered-bytes.ts';
import type { DownstreamConnection } from '../../../network/downstream-connection.ts';
import { attachAccepted, resetSocket, type SocketOwner } from '../../../network/socket-events.ts';
import { type ExpensiveStream, QUIET_MS } from '../../../network/terminal-filter.ts';
import type { WorkerContext } from '../../../worker-context.ts';
import { protocolViolation } from '../../local-reply.ts';
import { ConnectionLife, type MortalConnection } from '../connection-life.ts';
import type { CodecOwner, ServerConnection } from '../server-connection.ts';
import { StreamConnection } from '../stream-connection.ts';
import { Deadlines, type DeadlinesOwner } from './deadlines.ts';
import { ExchangeList } from './exchange-list.ts';
import type { Flushable } from './flush-queue.ts';
import { ErrorCode } from './frames.ts';
import { Keepalive, type KeepaliveOwner } from './keepalive.ts';
import { Fault, type SessionFault } from './options.ts';
import { Http2ServerStream, type Http2StreamOwner } from './server-stream.ts';
import { Http2Session } from './session.ts';
import type { SessionOwner } from './session-owner.ts';
import type { SessionStream } from './session-stream.ts';

const FILE = 'src/data-plane/http/codec/http2/server-connection.ts';
const {
  downstream_cx_delayed_close_timeout,
  downstream_cx_idle_timeout,
  downstream_cx_protocol_error,
  downstream_cx_rx_bytes_total,
  downstream_cx_tx_bytes_buffered,
  downstream_cx_tx_bytes_total,
  downstream_rq_header_timeout,
  downstream_rq_http2_total,
  downstream_rq_too_large,
  downstream_rq_too_many_premature_resets,
} = HTTP_STATS.index;
const { pending_send_bytes, streams_active } = HTTP2_STATS.index;

const OPEN = 0;
const CLOSING = 1;
const CLOSED = 2;

// Deadlines, in the order in which they are told.
/** The peer has not closed a connection that was closed from this side. */
const CLOSE = 0;
/** The client has not said, or not confirmed, its settings. */
const SETTINGS = 1;
/** A header block has begun and not ended. */
const HEADERS = 2;
/** The client has been told that the connection is about to end. */
const DRAIN = 3;
/** No stream runs. */
const IDLE = 4;
/** A drain has taken its time to come to this connection. */
const NOTICE = 5;
const KINDS = 6;

/** From the first byte, to the client's confirmation of this side's settings. */
const SETTINGS_TIMEOUT_MS = 10_000;
/**
 * From the client's knowledge of a drain to the last stream that is taken. Its codec has read the first GOAWAY then, but not yet
 * whoever begins its requests: those that were on their way from there are taken, too.
 */
const DRAIN_GRACE_MS = 100;
/** For a client that asks for nothing to show that it has read the first GOAWAY. */
const IDLE_DRAIN_MS = 1000;
/** Status of the answer to a head beyond its bounds. */
const HEAD_TOO_LARGE = 431;
/** Up to here a latin1 string is cheaper than any buffer. */
const TEXT_LIMIT_BYTES = 1024;

export class Http2ServerConnection
  implements
    ServerConnection,
    SocketOwner,
    SessionOwner,
    Http2StreamOwner,
    Flushable,
    DeadlinesOwner,
    KeepaliveOwner,
    MortalConnection
{
  readonly codec = 'http2';
  readonly connection: StreamConnection;
  readonly context: WorkerContext;
  readonly codecOwner: CodecOwner;
  readonly session: Http2Session;
  /** Monotonic time of the read at hand. */
  readMs: number;
  readonly isBorrowed: boolean;
  readonly #socket: Socket;
  readonly #deadlines: Deadlines;
  /** Null where it has none. */
  readonly #life: ConnectionLife | null;
  /** Null where clients are not pinged. */
  readonly #keepalive: Keepalive | null;
  readonly #streams = new ExchangeList<Http2ServerStream>();
  /** Of what the kernel has not taken. */
  readonly #unsent: BufferedBytes;
  /** Of content that waits for windows. */
  readonly #pending: BufferedBytes;
  #state: number = OPEN;
  #closesByPeer = false;
  #hasBytes = false;

  constructor(context: WorkerContext, owner: CodecOwner, downstream: DownstreamConnection) {
    const { socket } = downstream;
    const { settings, statBase } = owner;
    downstream.isHttp2 = true;
    this.context = context;
    this.codecOwner = owner;
    this.#socket = socket;
    this.readMs = context.clock.monotonicMs();
    this.connection = new StreamConnection(context, downstream, owner.internalAddresses);
    this.#unsent = new BufferedBytes(context, statBase + downstream_cx_tx_bytes_buffered);
    this.#pending = new BufferedBytes(context, context.http2StatBase + pending_send_bytes);
    this.#deadlines = new Deadlines(this, context.wheel, KINDS);
    this.#life = ConnectionLife.of(context, owner, this);
    this.session = new Http2Session(context.http2, this, true, settings.http2, owner.headLimits);
    this.#awaitStream();
    const { keepalive } = settings.http2;
    this.#keepalive = keepalive === null ? null : new Keepalive(context, this, keepalive);
    this.#keepalive?.start(this.readMs);
    this.session.start();
    this.isBorrowed = attachAccepted(socket, this, context.readMode, context.codec.readBuffer);
  }

  onBlock(): void {
    // A request's head goes on when it comes.
  }

  onSettings(): void {
    // No answer waits for them.
  }

  get isBusy(): boolean {
    return this.#streams.size > 0;
  }

  drain(): void {
    if (this.#state === OPEN) this.#drain();
  }

  drainWithin(timeoutMs: number): void {
    const nowMs = this.context.clock.monotonicMs();
    if (this.#state !== OPEN || this.#deadlines.dueMs(NOTICE) <= nowMs + timeoutMs) return;
    this.#deadlines.set(NOTICE, nowMs, Math.max(1, timeoutMs));
  }

  expectSoon(timeoutMs: number): void {
    const nowMs = this.context.clock.monotonicMs();
    if (!this.isBusy && this.#deadlines.dueMs(IDLE) > nowMs + timeoutMs) this.#deadlines.set(IDLE, nowMs, timeoutMs);
  }

  finish(): void {
    const nowMs = this.context.clock.monotonicMs();
    for (const stream of this.#streams.all()) {
      if (stream.isOpenTunnel) stream.deadlines.setStreamIdleTimeout(QUIET_MS, nowMs);
    }
  }

  destroy(): void {
    if (this.#state === CLOSED) return;
    const isReset = this.isBusy;
    if (this.#state === OPEN && !this.session.isBlocked) {
      this.session.sayLast();
      this.session.flush();
    }
    this.#close(true, isReset);
    if (isReset) resetSocket(this.#socket);
    else this.#socket.destroy();
  }

  rescaleTimeouts(): void {
    if (this.#deadlines.isSet(IDLE)) this.#awaitStream();
    for (const stream of this.#streams.all()) stream.deadlines.rescale();
  }

  findExpensive(fromBytes: number, found: ExpensiveStream[]): void {
    for (const stream of this.session.handlers()) {
      if (stream instanceof Http2ServerStream && stream.heldBytes >= fromBytes) found.push(stream);
    }
  }

  /** Reads what has come before the connection was known to be one of HTTP/2. */
  receive(bytes: Buffer): void {
    this.#receive(bytes, 0, bytes.length);
  }

  // ---- Socket events ----

  onBytes(chunk: Buffer, length: number): boolean {
    this.#count(downstream_cx_rx_bytes_total, length);
    this.#receive(chunk, 0, length);
    return true;
  }

  onEnd(): void {
    if (this.#state === CLOSED) return;
    // A client that has closed does not want an answer any more; one that is complete may still be on its way.
    if (this.#state === OPEN && !this.isBusy && (this.session.isBlocked || this.session.output.length > 0)) {
      this.#closeGracefully(true);
      return;
    }
    if (this.#state === CLOSING && this.#socket.writableLength > 0) return;
    this.#close(this.#isClosedByUs, false);
    this.#socket.destroy();
  }

  onDrain(): void {
    if (this.#state === CLOSED) return;
    this.#unsent.note(0);
    this.session.drained();
    this.#pending.note(this.session.pendingBytes);
    if (this.#state === CLOSING) this.#finishClosing();
  }

  onClose(error: NodeJS.ErrnoException | null): void {
    this.#close(this.#isClosedByUs, error !== null);
  }

  onFault(error: unknown): void {
    this.context.logFault(`the connection of ${this.connection.peerAddress}`, error);
    this.#close(true, true);
  }

  // ---- From the session ----

  onStream(stream: SessionStream): void {
    stream.handler = this.#begin(stream);
  }

  onOversizedRequest(stream: SessionStream, reason: string): void {
    this.#count(downstream_rq_too_large, 1);
    const exchange = this.#begin(stream);
    const reply = { ...protocolViolation(HEAD_TOO_LARGE, reason), details: `http2.${reason}` };
    exchange.refuse(this.codecOwner.refuseRequest(this.connection, reply, 'HTTP/2', this.readMs), this.readMs);
  }

  onDirty(): void {
    this.context.http2.flushes.add(this);
  }

  count(stat: Http2Stat): void {
    this.#countSession(HTTP2_STATS.index[stat], 1);
  }

  onGoaway(): void {
    // The client opens no more streams; those that run get their answers.
  }

  onPong(): void {
    this.#keepalive?.onPong(this.readMs);
  }

  onDrainRead(): void {
    // Not put off by another answer, nor beyond the time that a drain has.
    const dueMs = this.readMs + DRAIN_GRACE_MS;
    if (this.#deadlines.dueMs(DRAIN) > dueMs) this.#deadlines.setAt(DRAIN, dueMs);
  }

  onSessionFault(fault: SessionFault): void {
    const log = this.context.logs.http.ofFile(FILE);
    if (log.enabled('debug')) log.debug(`${this.connection.peerAddress} ended by ${fault.reason}`);
    this.#count(downstream_cx_protocol_error, 1);
    if (fault === Fault.resets) this.#count(downstream_rq_too_many_premature_resets, 1);
    // Who reads nothing would not read why, either.
    if (this.session.isBlocked) this.destroy();
    else this.#closeGracefully(false);
  }

  onIdle(): void {
    if (this.#state !== OPEN) return;
    if (this.session.isDrained) this.#closeGracefully(false);
    else if (this.codecOwner.endsBetweenRequests()) this.#drain();
  }

  // ---- From the streams ----

  onResponse(): void {
    if (!this.session.isDraining && this.codecOwner.endsWithResponse()) this.#drain();
  }

  onStreamEnded(stream: Http2ServerStream): void {
    if (!this.#streams.delete(stream)) return;
    this.#countSession(streams_active, -1);
    if (this.#streams.size === 0 && this.#state === OPEN) this.#awaitStream();
  }

  onFlushTimeout(): void {
    this.count('tx_flush_timeout');
  }

  // ---- Deadlines that have passed ----

  onDeadline(kind: number): void {
    switch (kind) {
      case CLOSE:
        this.#count(downstream_cx_delayed_close_timeout, 1);
        this.destroy();
        return;
      case SETTINGS:
        if (!this.session.isSettled) this.session.end(Fault.settingsTimeout);
        return;
      case HEADERS:
        this.#count(downstream_rq_header_timeout, 1);
        this.session.end(Fault.headTimeout);
        return;
      case DRAIN:
        this.session.finishDrain();
        return;
      case IDLE:
        this.#count(downstream_cx_idle_timeout, 1);
        // What it asks for in this moment is answered still.
        this.#drain(IDLE_DRAIN_MS);
        return;
      case NOTICE:
        if (this.session.isDraining) return;
        this.codecOwner.onDrainNotice();
        this.#drain();
    }
  }

  onAged(): number {
    if (this.#state === OPEN) this.#drain();
    return 0;
  }

  // ---- From the keepalive ----

  sendPing(): void {
    this.session.ping();
  }

  onPingTimeout(): void {
    this.session.end(Fault.keepaliveTimeout);
  }

  // ---- Writing ----

  flush(): void {
    if (this.#state === CLOSED || this.session.isBlocked) return;
    this.session.flush();
    this.#pending.note(this.session.pendingBytes);
    if (this.#state === CLOSING) this.#finishClosing();
  }

  write(slab: Buffer, length: number): boolean {
    this.#count(downstream_cx_tx_bytes_total, length);
    const isTaken =
      length <= TEXT_LIMIT_BYTES
        ? this.#socket.write(slab.toString('latin1', 0, length), 'latin1')
        : this.#socket.write(slab.subarray(0, length));
    if (!isTaken) this.#unsent.note(this.#socket.writableLength);
    return isTaken;
  }

  // ---- Inside ----

  #begin(stream: SessionStream): Http2ServerStream {
    this.#count(downstream_rq_http2_total, 1);
    this.#deadlines.clear(IDLE);
    if (this.#life?.onRequest()) this.#drain();
    const exchange = new Http2ServerStream(this, stream);
    this.#streams.add(exchange);
    this.#countSession(streams_active, 1);
    return exchange;
  }

  #receive(bytes: Buffer, start: number, end: number): void {
    if (this.#state !== OPEN) return;
    const nowMs = this.context.clock.monotonicMs();
    this.readMs = nowMs;
    if (this.codecOwner.overload.abortsDispatch()) {
      for (const stream of this.#streams.all()) stream.abortDispatch();
      this.#closeGracefully(false);
      return;
    }
    if (!this.#hasBytes) {
      this.#hasBytes = true;
      this.#deadlines.set(SETTINGS, nowMs, SETTINGS_TIMEOUT_MS);
    }
    this.session.receive(bytes, start, end);
    const { hasOpenBlock } = this.session;
    if (hasOpenBlock === this.#deadlines.isSet(HEADERS)) return;
    if (hasOpenBlock) this.#deadlines.set(HEADERS, nowMs, this.codecOwner.settings.requestHeadersTimeoutMs);
    else this.#deadlines.clear(HEADERS);
  }

  #awaitStream(): void {
    const { overload, settings } = this.codecOwner;
    const timeoutMs = overload.timeoutMs('HTTP_DOWNSTREAM_CONNECTION_IDLE', settings.idleTimeoutMs);
    this.#deadlines.set(IDLE, this.context.clock.monotonicMs(), timeoutMs);
  }

  /** The client is told in two steps, and has its time between them. @param longestMs bound of that. */
  #drain(longestMs = Number.POSITIVE_INFINITY): void {
    if (this.session.isDraining) return;
    this.session.drain();
    const timeoutMs = Math.min(this.codecOwner.settings.drainTimeoutMs, longestMs);
    this.#deadlines.set(DRAIN, this.context.clock.monotonicMs(), Math.max(1, timeoutMs));
  }

  get #isClosedByUs(): boolean {
    return this.#state === CLOSING && !this.#closesByPeer;
  }

  #closeGracefully(byPeer: boolean): void {
    if (this.#state !== OPEN) return;
    this.#state = CLOSING;
    this.#closesByPeer = byPeer;
    this.#deadlines.remove();
    this.#keepalive?.remove();
    this.#life?.remove();
    // A slow reader may take its time for what is still on the way, as on any other stream.
    this.#deadlines.set(CLOSE, this.context.clock.monotonicMs(), this.codecOwner.settings.streamFlushTimeoutMs);
    if (this.session.isBlocked) return;
    this.session.flush();
    this.#finishClosing();
  }

  #finishClosing(): void {
    if (this.session.isBlocked || this.#socket.writableEnded) return;
    const { delayedCloseTimeoutMs } = this.codecOwner.settings;
    if (delayedCloseTimeoutMs === 0) {
      this.#socket.end(() => this.destroy());
      return;
    }
    this.#socket.end();
    this.#deadlines.set(CLOSE, this.context.clock.monotonicMs(), delayedCloseTimeoutMs);
  }

  /** @param isLocal this side ends the connection. @param isReset it is broken off. */
  #close(isLocal: boolean, isReset: boolean): void {
    if (this.#state === CLOSED) return;
    const hadStream = this.isBusy;
    this.#state = CLOSED;
    this.#deadlines.remove();
    this.#keepalive?.remove();
    this.#life?.remove();
    this.#unsent.note(0);
    this.#pending.note(0);
    this.codecOwner.onConnectionClosed(this, isLocal, hadStream);
    for (const stream of this.#streams.all()) stream.onConnectionLost(isLocal, isReset);
    if (!this.session.isEnded) this.session.close(ErrorCode.CANCEL, isLocal, 'connection_closed');
  }

  #count(stat: number, n: number): void {
    this.context.stats.values[this.codecOwner.statBase + stat]! += n;
  }

  #countSession(stat: number, n: number): void {
    this.context.stats.values[this.context.http2StatBase + stat]! += n;
  }
}
