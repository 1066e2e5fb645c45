// One HTTP/1.1 connection to an upstream host: writes requests, frames responses. Step 4 of the request flow.
//
//   CONNECTING ──connected──► IDLE ◄──reusable── BUSY         response of a BUSY connection:
//       │                      │ └────start──────►│             HEAD ──► BODY, or TUNNEL ──► done
//       └───────failed──────►  └──► CLOSED ◄──────┘
//
// A connection is reused only when both messages have ended, the response allowed it, and not one byte came behind
// the response: a byte too many means that the two ends disagree on framing. Bytes on an idle connection, too.
// An upstream that takes no more bytes may have answered before: a response goes on while its bytes come.
// A tunnel, which is opened by a 101 or by a 2xx to CONNECT, ends with the upstream's last byte. The client's last one
// is passed on as the end of this side.
//
// Bytes of a response are borrowed by the receiver for the length of the call. Body bytes in a private slab may
// stay with the kernel after it; then the receiver returns false, and the slab is not read into before `resume`.

import type { Socket } from 'node:net';
import type { Address } from '../../../../base/address.ts';
import { CLUSTER_STATS } from '../../../../stats/index.ts';
import { tlsFailureOf } from '../../../../tls/failure.ts';
import { codecError, Framing, HeadFlag } from '../../../../wasm/http1.ts';
import type { Endpoint } from '../../../format/facts.ts';
import type { WireBytes } from '../../../format/wire-bytes.ts';
import { BulkReads } from '../../../network/bulk-reads.ts';
import { freeGiven } from '../../../network/given-memory.ts';
import { LastBytes } from '../../../network/last-bytes.ts';
import { plainAddress } from '../../../network/peer-address.ts';
import { readLimit } from '../../../network/shared-reads.ts';
import { UNKNOWN_LENGTH } from '../../../network/slab-pool.ts';
import { resetSocket, resumeUpstream } from '../../../network/socket-events.ts';
import type { TlsFacts } from '../../../network/tls/connection-tls.ts';
import type { UpstreamConnectionStats } from '../../../upstream/connection-stats.ts';
import { connectToHost, type HostConnectionOwner } from '../../../upstream/host-connection.ts';
import { HTTP1_ALPN } from '../../../upstream/opening.ts';
import { type BegunConnection, ConnectionLife, type LifeOwner } from '../../../upstream/pool/connection-life.ts';
import type { ConnectionOwner, PooledConnection } from '../../../upstream/pool/connection-owner.ts';
import type { PoolHost } from '../../../upstream/pool/pool-host.ts';
import type { ConnectionTimes } from '../../../upstream/upstream-facts.ts';
import type { WorkerContext } from '../../../worker-context.ts';
import type { ResponseReceiver, UpstreamStream } from '../upstream-stream.ts';
import { MessageBody } from './message-body.ts';
import { bodyInChunks, headInChunks, isInChunks } from './request-framing.ts';

/** As loggers know this file. */
const FILE = 'src/data-plane/http/codec/http1/client-connection.ts';

const {
  upstream_cx_close_notify,
  upstream_cx_http1_total,
  upstream_cx_max_requests,
  upstream_cx_protocol_error,
  upstream_cx_rx_bytes_total,
  upstream_cx_tx_bytes_total,
} = CLUSTER_STATS.index;

const CONNECTING = 0;
const IDLE = 1;
const BUSY = 2;
const CLOSED = 3;

/** Bodies with less than this to come are read through the shared buffer and copied. */
const SLAB_THRESHOLD = 64 * 1024;

export class Http1ClientConnection implements UpstreamStream, PooledConnection, HostConnectionOwner, LifeOwner {
  readonly protocol = 'HTTP/1.1';
  readonly wasLeftBehind = false;
  readonly wereOthersTaken = false;
  readonly host: PoolHost;
  readonly #context: WorkerContext;
  readonly #pool: ConnectionOwner;
  /** Of a host with several addresses, or TLS: a stand-in until the connection is there. */
  #socket: Socket;
  readonly #life: ConnectionLife;
  readonly #stats: UpstreamConnectionStats;
  readonly #body = new MessageBody();
  /** The host's may be another one by now. */
  remoteAddress: Address;
  /** Null for a plain connection. */
  tls: TlsFacts | null = null;
  #state: number = CONNECTING;
  #receiver: ResponseReceiver | null = null;
  /** Of the exchange at hand; null where nobody asks. */
  #wire: WireBytes | null = null;
  #requestMethod = 0;
  #requestsLeft: number;
  #isRequestDone = false;
  /** The request's body is. */
  #isInChunks = false;
  #isHeadDone = false;
  #isReusable = false;
  /** The connection has come to an age, or its pool wants new ones. */
  #isLastRequest = false;
  #hasResponseBytes = false;
  /** The start of a head whose rest has not come yet. */
  #partialHead: Buffer | null = null;
  #slab: Buffer | null = null;
  /** What the kernel has not taken in full. */
  #unsent: Buffer | null = null;
  #isPaused = false;
  isReady = false;
  expected = 0;
  /** Null as long as the upstream takes bytes. */
  #lastBytes: LastBytes | null = null;
  /** Of a tunnel; null otherwise. */
  #bulk: BulkReads | null = null;

  /** @param begun null for one that is to be made. */
  constructor(context: WorkerContext, host: PoolHost, pool: ConnectionOwner, begun: BegunConnection | null = null) {
    const { settings } = host.cluster;
    this.#context = context;
    this.host = host;
    this.#pool = pool;
    this.#requestsLeft =
      settings.maxRequestsPerConnection === 0 ? Number.MAX_SAFE_INTEGER : settings.maxRequestsPerConnection;
    this.remoteAddress = host.address;
    this.#socket = begun?.socket ?? connectToHost(context, host, this, pool.opening, HTTP1_ALPN);
    this.#life = begun?.life ?? new ConnectionLife(context, host, pool.breaker, this);
    this.#life.owner = this;
    this.#stats = this.#life.stats;
    this.#stats.count(upstream_cx_http1_total);
    host.cluster.showHttp1Stats();
  }

  get freeStreams(): number {
    return this.#state === IDLE ? 1 : 0;
  }

  get comingStreams(): number {
    return this.#state === CONNECTING ? 1 : 0;
  }

  get isReused(): boolean {
    return this.#stats.requests > 1;
  }

  get times(): ConnectionTimes {
    return this.#stats;
  }

  /** This end of the connection, while it is open; for logs. */
  get localEndpoint(): Endpoint {
    return { ip: plainAddress(this.#socket.localAddress ?? ''), port: this.#socket.localPort ?? 0 };
  }

  get unsentBytes(): number {
    return this.#socket.writableLength;
  }

  get hasResponseBytes(): boolean {
    return this.#hasResponseBytes;
  }

  start(
    receiver: ResponseReceiver,
    method: number,
    head: string,
    bytes: Buffer,
    start: number,
    end: number,
    isEnd: boolean,
  ): boolean {
    this.#state = BUSY;
    this.#receiver = receiver;
    this.#wire = receiver.upstreamWire;
    this.#requestMethod = method;
    this.#isRequestDone = isEnd;
    this.#isHeadDone = false;
    this.#hasResponseBytes = false;
    this.#requestsLeft--;
    this.#life.used();
    const framing = receiver.requestFraming;
    this.#isInChunks = isInChunks(framing);
    if (!this.#isInChunks) return this.#begin(head, bytes, start, end);
    const whole = headInChunks(head, framing);
    const body = this.#bodyInChunks(receiver, bytes, start, end, isEnd);
    return body === null ? this.#begin(whole, bytes, start, end) : this.#begin(whole, body, 0, body.length);
  }

  send(bytes: Buffer, start: number, end: number, isEnd: boolean): boolean {
    this.#isRequestDone = isEnd;
    const framed = this.#isInChunks ? this.#bodyInChunks(this.#receiver!, bytes, start, end, isEnd) : null;
    const isTaken = framed === null ? this.#sendRange(bytes, start, end) : this.#sendRange(framed, 0, framed.length);
    if (isEnd && this.#bulk !== null) this.#socket.end();
    return isTaken;
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#stats.resumedReading();
    this.#lastBytes?.wait(false);
    resumeUpstream(this.#socket);
  }

  /** As UpstreamStream says; closes the connection. */
  abort(isReset: boolean): void {
    if (isReset && this.#bulk !== null) resetSocket(this.#socket);
    this.#close(true);
  }

  close(): void {
    this.#close(true);
  }

  openStream(): UpstreamStream {
    return this;
  }

  closeAfterStreams(): void {
    if (this.#state === IDLE) this.#close(true);
    else if (this.#state === BUSY) this.#isLastRequest = true;
  }

  // ---- Socket events ----

  readBuffer(): Buffer {
    const shared = this.#sharedBuffer;
    if (!this.#isHeadDone || this.#state !== BUSY) return shared;
    if (this.#bulk !== null && this.#slab === null && !this.#bulk.isBulk) return shared;
    if (shared.length < SLAB_THRESHOLD) return shared;
    const remaining = this.#body.framing === Framing.LENGTH ? this.#body.remaining : UNKNOWN_LENGTH;
    if (this.#body.framing === Framing.LENGTH && remaining < SLAB_THRESHOLD && this.#slab === null) return shared;
    this.#slab ??= this.#context.slabs.take(remaining, this.#bufferLimitBytes);
    return this.#slab;
  }

  /** How much of a response may wait for its client. */
  get #bufferLimitBytes(): number {
    const { bufferLimitBytes } = this.host.cluster.settings;
    return this.#receiver === null ? bufferLimitBytes : Math.min(bufferLimitBytes, this.#receiver.bufferLimitBytes);
  }

  /** What all connections read through, or the part of it that may wait for a client. */
  get #sharedBuffer(): Buffer {
    const { readBuffer } = this.#context.codec;
    const limitBytes = this.#bufferLimitBytes;
    return limitBytes >= readBuffer.length ? readBuffer : readBuffer.subarray(0, readLimit(limitBytes));
  }

  onFurtherAttempt(): void {
    this.#stats.attemptedAgain();
  }

  onChosen(socket: Socket, address: Address, tls: TlsFacts | null): this {
    this.#socket = socket;
    this.tls = tls;
    this.remoteAddress = address;
    return this;
  }

  onConnect(): void {
    if (this.#state !== CONNECTING) return;
    this.#state = IDLE;
    this.#life.connected(this.#context.clock.monotonicMs());
    this.#pool.onConnected(this);
  }

  onBytes(chunk: Buffer, length: number): boolean {
    this.#stats.count(upstream_cx_rx_bytes_total, length);
    if (this.#state !== BUSY) {
      if (this.#state === IDLE) this.#protocolError();
      return false;
    }
    this.#hasResponseBytes = true;
    if (this.#wire !== null) this.#wire.receivedBytes(length);
    const nowMs = this.#context.clock.monotonicMs();
    const goesOn = this.#isHeadDone ? this.#readBody(chunk, 0, length, nowMs) : this.#readHead(chunk, length, nowMs);
    // The connection may already carry the next request, or be closed: both say what reading should do.
    this.#isPaused = !goesOn && this.#state === BUSY;
    if (this.#isPaused) this.#stats.pausedReading();
    if (this.#lastBytes !== null && this.#state === BUSY) this.#lastBytes.wait(this.#isPaused);
    return !this.#isPaused;
  }

  onEnd(): void {
    if (this.#state === BUSY && this.#isHeadDone && this.#body.framing >= Framing.UNTIL_CLOSE) {
      this.#deliver(this.#context.codec.readBuffer, 0, 0, true, this.#context.clock.monotonicMs());
      return;
    }
    this.#close(false);
  }

  onDrain(): void {
    if (this.#unsent !== null) freeGiven(this.#unsent);
    this.#unsent = null;
    this.#stats.drained();
    this.#receiver?.onUpstreamDrain();
  }

  onSendFailed(): void {
    if (this.#state !== BUSY) return;
    this.#lastBytes = new LastBytes(this.#context, () => this.#close(false));
    this.#lastBytes.wait(this.#isPaused);
  }

  onClose(error: NodeJS.ErrnoException | null): void {
    if (this.#state === CLOSED) return;
    if (this.#state === CONNECTING) {
      this.#state = CLOSED;
      this.#life.connectFailed(error);
      this.#pool.onConnectFailed(this, error);
      return;
    }
    this.#close(false, tlsFailureOf(error));
  }

  onFault(error: unknown): void {
    this.#context.logFault(`the connection to ${this.host.label}`, error);
    if (this.#state === CONNECTING) this.onClose(null);
    else this.#close(false);
  }

  onConnectTimeout(): void {
    this.#state = CLOSED;
    this.#socket.destroy();
    this.#pool.onConnectTimeout(this);
  }

  #write(head: string, bytes: Buffer, start: number, end: number): boolean {
    const isTaken = this.#context.writer.owned(this.#socket, head, bytes, start, end);
    if (isTaken) return true;
    this.#unsent = bytes;
    this.#stats.backedUp(this.#socket.writableLength);
    return false;
  }

  #bodyInChunks(receiver: ResponseReceiver, bytes: Buffer, start: number, end: number, isEnd: boolean): Buffer | null {
    return bodyInChunks(receiver, this.host.cluster.settings.enableTrailers, bytes, start, end, isEnd);
  }

  #begin(head: string, bytes: Buffer, start: number, end: number): boolean {
    const { requestForm } = this.host.cluster;
    const formed = requestForm === null ? head : requestForm.apply(head, this.#requestMethod, this.#schemeToTell);
    this.#stats.beginRequest(formed.length + end - start);
    if (this.#wire !== null) {
      this.#wire.sentText(formed.length);
      this.#wire.sentBytes(formed.length + end - start);
    }
    return this.#write(formed, bytes, start, end);
  }

  /** Undefined for that of the request. */
  get #schemeToTell(): 'http' | 'https' | undefined {
    if (!this.#receiver!.matchesUpstreamScheme) return undefined;
    return this.tls === null ? 'http' : 'https';
  }

  #sendRange(bytes: Buffer, start: number, end: number): boolean {
    if (start === end) return true;
    this.#stats.count(upstream_cx_tx_bytes_total, end - start);
    if (this.#wire !== null) this.#wire.sentBytes(end - start);
    return this.#write('', bytes, start, end);
  }

  // ---- Responses ----

  #readHead(chunk: Buffer, length: number, nowMs: number): boolean {
    const { codec } = this.#context;
    const limits = this.host.cluster.responseHeadLimits;
    let bytes = chunk;
    let end = length;
    if (this.#partialHead !== null) {
      bytes = Buffer.concat([this.#partialHead, chunk.subarray(0, length)]);
      end = bytes.length;
      this.#partialHead = null;
      this.#stats.held.note(0);
    }
    let start = 0;
    for (;;) {
      const headLength = codec.parseResponse(bytes, start, end, limits, this.#requestMethod);
      if (headLength < 0) {
        this.#protocolError(codecError(headLength).reason);
        return false;
      }
      if (headLength === 0) {
        this.#partialHead = start === end ? null : Buffer.from(bytes.subarray(start, end));
        this.#stats.held.note(end - start);
        return true;
      }
      start += headLength;
      this.#wire?.receivedText(headLength);
      const { status } = codec.response;
      if (status >= 200) break;
      if (status === 101) {
        if (this.#receiver!.awaitsUpgrade && (codec.response.flags & HeadFlag.UPGRADE) !== 0) break;
        this.#protocolError('upgrade_not_requested');
        return false;
      }
      this.#receiver!.onInterimHead();
    }
    const { response } = codec;
    this.#isReusable = response.isPersistent;
    this.#body.begin(response, limits, this.host.cluster.settings.enableTrailers);
    if (this.#body.framing === Framing.TUNNEL) this.#bulk = new BulkReads();
    return this.#readBody(bytes, start, end, nowMs);
  }

  /** Hands on what belongs to the body. */
  #readBody(bytes: Buffer, start: number, end: number, nowMs: number): boolean {
    const bodyEnd = this.#body.read(bytes, start, end);
    if (bodyEnd < 0) {
      this.#protocolError(codecError(bodyEnd).reason);
      return false;
    }
    const { isDone: isEnd } = this.#body;
    if (isEnd && bodyEnd < end) {
      this.#isReusable = false;
      this.#stats.count(upstream_cx_protocol_error);
    }
    if (this.#body.hasTrailers) {
      return this.#deliverTrailing(this.#body.withoutTrailers(bytes, start), isEnd, nowMs);
    }
    return this.#deliver(bytes, start, bodyEnd, isEnd, nowMs);
  }

  /** Hands on the last of a body that has trailers. */
  #deliverTrailing(bytes: Buffer, isEnd: boolean, nowMs: number): boolean {
    if (isEnd) {
      const trailers = this.#body.takeTrailers();
      if (trailers !== null) this.#receiver!.onResponseTrailers(trailers);
    } else if (bytes.length === 0 && this.#isHeadDone) return true;
    return this.#deliver(bytes, 0, bytes.length, isEnd, nowMs);
  }

  #deliver(bytes: Buffer, start: number, end: number, isEnd: boolean, nowMs: number): boolean {
    const receiver = this.#receiver!;
    const isFirst = !this.#isHeadDone;
    const slab = this.#slab;
    const isSlab = slab !== null && bytes === slab;
    this.#isHeadDone = true;
    // First back to the pool, then the bytes: a request that follows at once finds this connection free.
    if (isEnd) this.#finish(nowMs);
    const goesOn = isFirst
      ? receiver.onResponseHead(bytes, start, end, isEnd, isSlab, nowMs)
      : receiver.onResponseBody(bytes, start, end, isEnd, isSlab, nowMs);
    if (!isEnd) {
      if (this.#bulk !== null) this.#adaptToTunnel(end - start, isSlab && goesOn);
      return goesOn;
    }
    this.#returnSlab(slab, goesOn);
    return true;
  }

  /** @param isSlabFree nobody reads any more what came in the slab. */
  #adaptToTunnel(length: number, isSlabFree: boolean): void {
    const bulk = this.#bulk!;
    bulk.note(length, this.#context.codec.readBuffer.length);
    if (bulk.isBulk || !isSlabFree || this.#slab === null) return;
    this.#returnSlab(this.#slab, true);
    this.#slab = null;
  }

  #finish(nowMs: number): void {
    this.#receiver = null;
    this.#slab = null;
    this.#stats.endRequest();
    if (this.#mayCarryAnother()) {
      this.#state = IDLE;
      this.#life.idle(nowMs);
      this.#pool.onStreamEnd(this);
      return;
    }
    if (this.#bulk !== null) {
      this.#close(false);
      return;
    }
    if (this.#requestsLeft <= 0) this.#stats.count(upstream_cx_max_requests);
    else if (!this.#isReusable) this.#stats.count(upstream_cx_close_notify);
    this.#close(true);
  }

  #mayCarryAnother(): boolean {
    return (
      this.#isReusable &&
      !this.#isLastRequest &&
      this.#requestsLeft > 0 &&
      this.#isRequestDone &&
      this.#lastBytes === null &&
      this.#socket.writableLength === 0
    );
  }

  #protocolError(reason = 'unexpected_bytes'): void {
    this.#stats.count(upstream_cx_protocol_error);
    const log = this.#context.logs.http.ofFile(FILE);
    if (log.enabled('debug')) log.debug(`upstream ${this.host.label} broke the protocol: ${reason}`);
    const receiver = this.#receiver;
    this.#close(true);
    receiver?.onUpstreamReset('protocol error', reason);
  }

  // ---- Life ----

  /** Ends the connection from this side, or notes that the peer has; in the latter case the receiver is told. */
  #close(isLocal: boolean, transportDetail = ''): void {
    if (this.#state === CLOSED) return;
    const lostStreams = this.#state === BUSY ? 1 : 0;
    const receiver = this.#receiver;
    this.#receiver = null;
    if (receiver !== null) this.#stats.cutRequest(isLocal);
    // Whoever received from the slab may still be writing it.
    this.#returnSlab(this.#slab, false);
    this.#slab = null;
    this.#state = CLOSED;
    this.#lastBytes?.remove();
    this.#life.ended(isLocal);
    this.#socket.destroy();
    this.#pool.onClosed(this, lostStreams);
    if (!isLocal) receiver?.onUpstreamReset('connection termination', transportDetail);
  }

  #returnSlab(slab: Buffer | null, isFree: boolean): void {
    if (slab === null) return;
    if (isFree) this.#context.slabs.give(slab);
    else this.#context.slabs.forget(slab);
  }
}
