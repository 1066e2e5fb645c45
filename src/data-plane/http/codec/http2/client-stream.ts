// One request over an HTTP/2 connection to an upstream. Step 4 of the request flow.
//
//   request:   OPENED ──start──► (AWAITING SETTINGS ──►) SENDING ──► sent              either side may end first
//   response:  nothing ──► head ──► body ──► ended ──what was kept has gone──► over
//
// The stream has its place on the connection until its response has ended, whatever of it still waits for the client: that
// lies here, bounded by the window that the upstream has for this stream. A response that ends before its request does
// ends both; one that is lost is so behind what was kept of it. The first content of a response goes out together with its head, if it has come with it.

import { CLUSTER_STATS } from '../../../../stats/index.ts';
import { Framing, HeadFlag, Method } from '../../../../wasm/http1.ts';
import { EncodeFlag } from '../../../../wasm/http2.ts';
import type { Endpoint } from '../../../format/facts.ts';
import type { UpstreamFailure } from '../../../upstream/pool/failure.ts';
import { Dechunker } from '../../chunk-framing.ts';
import { NO_LIMITS } from '../../filtered-stream.ts';
import { Trailers } from '../../trailers.ts';
import type { ResponseReceiver, UpstreamStream } from '../upstream-stream.ts';
import type { ClientSession } from './client-session.ts';
import type { ListedExchange } from './exchange-list.ts';
import { ErrorCode } from './frames.ts';
import { LEFT_BEHIND, LEFT_BEHIND_OTHERS, type SessionStream, type StreamHandler } from './session-stream.ts';
import { UpgradedAnswer } from './upgraded-answer.ts';

const { upstream_flow_control_paused_reading_total, upstream_flow_control_resumed_reading_total } = CLUSTER_STATS.index;

const SWITCHING_PROTOCOLS = 101;
const NO_BYTES = Buffer.alloc(0);

/** A request that waits to be told whether its upstream takes such. */
interface Waiting {
  readonly head: string;
  body: Buffer;
  isEnd: boolean;
}

interface Failure {
  readonly failure: UpstreamFailure;
  readonly detail: string;
}

export class Http2ClientStream implements UpstreamStream, StreamHandler, ListedExchange<Http2ClientStream> {
  readonly protocol = 'HTTP/2';
  readonly isReused: boolean;
  wasLeftBehind = false;
  wereOthersTaken = false;
  hasResponseBytes = false;
  isListed = false;
  previousListed: Http2ClientStream | null = null;
  nextListed: Http2ClientStream | null = null;
  readonly #session: ClientSession;
  /** Null before the request has gone out, and when the exchange is over for the session. */
  #stream: SessionStream | null = null;
  /** Null when nobody wants to hear more. */
  #receiver: ResponseReceiver | null = null;
  #waiting: Waiting | null = null;
  /** Of a body in chunks, null for any other. */
  #dechunker: Dechunker | null = null;
  /** Null unless the request is an upgrade. */
  #upgrade: UpgradedAnswer | null = null;
  #hasHead = false;
  /** The receiver takes no more for now; what comes is kept, perhaps with the end. */
  #isPaused = false;
  /** Null while nothing is. */
  #kept: Buffer[] | null = null;
  #keptTrailers: Trailers | null = null;
  #isEndKept = false;
  /** How the exchange was lost behind what is kept, which is told when that has gone. */
  #failureKept: Failure | null = null;
  /** Octets that it has taken, for which the upstream gets no credit before it takes more. */
  #creditLater = 0;

  constructor(session: ClientSession, isReused: boolean) {
    this.#session = session;
    this.isReused = isReused;
  }

  get localEndpoint(): Endpoint {
    return this.#session.ends.localEndpoint;
  }

  get remoteAddress(): UpstreamStream['remoteAddress'] {
    return this.#session.ends.remoteAddress;
  }

  get times(): UpstreamStream['times'] {
    return this.#session.ends.times;
  }

  get tls(): UpstreamStream['tls'] {
    return this.#session.ends.tls;
  }

  get unsentBytes(): number {
    return this.#waiting?.body.length ?? this.#stream?.pendingBytes ?? 0;
  }

  start(
    receiver: ResponseReceiver,
    _method: number,
    head: string,
    bytes: Buffer,
    start: number,
    end: number,
    isEnd: boolean,
  ): boolean {
    this.#receiver = receiver;
    if (receiver.requestFraming === Framing.CHUNKED) this.#dechunker = new Dechunker();
    if (receiver.awaitsUpgrade && !this.#session.hasSettings) {
      this.#waiting = { head, body: Buffer.from(bytes.subarray(start, end)), isEnd };
      return false;
    }
    return this.#begin(head, bytes, start, end, isEnd);
  }

  send(bytes: Buffer, start: number, end: number, isEnd: boolean): boolean {
    const waiting = this.#waiting;
    if (waiting !== null) {
      waiting.body = Buffer.concat([waiting.body, bytes.subarray(start, end)]);
      waiting.isEnd = isEnd;
      return false;
    }
    if (this.#stream === null) return true;
    return this.#sendBody(this.#stream, bytes, start, end, isEnd, isEnd ? this.#receiver!.requestTrailers : null);
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#session.countCluster(upstream_flow_control_resumed_reading_total);
    this.#deliverKept();
  }

  abort(): void {
    this.#receiver = null;
    this.#waiting = null;
    this.#kept = null;
    this.#cancel(ErrorCode.CANCEL);
  }

  /** The upstream has said what it takes. */
  onSettings(): void {
    const waiting = this.#waiting;
    if (waiting === null) return;
    this.#waiting = null;
    const { head, body, isEnd } = waiting;
    if (this.#begin(head, body, 0, body.length, isEnd)) this.#receiver?.onUpstreamDrain();
  }

  /** The session has ended: nothing more comes of it. */
  detach(): void {
    if (this.#stream !== null) this.#stream.handler = null;
    this.#stream = null;
    this.#waiting = null;
  }

  /** Behind `detach`. */
  lose(failure: UpstreamFailure, detail: string): void {
    this.#fail(failure, detail);
  }

  /** The head that the codec holds goes on without content. */
  releaseHead(): void {
    this.#deliver(NO_BYTES, 0, 0, false);
  }

  // ---- From the session ----

  onHead(isEnd: boolean): void {
    this.hasResponseBytes = true;
    const wire = this.#receiver?.upstreamWire;
    if (wire) wire.receivedBlockText(this.#session.codec.response.headLength);
    this.#upgrade?.apply(this.#session.codec);
    if (!isEnd) {
      this.#session.hold(this);
      return;
    }
    this.#leave();
    this.#deliver(NO_BYTES, 0, 0, true);
  }

  onInterimHead(status: number): void {
    this.hasResponseBytes = true;
    if (status !== SWITCHING_PROTOCOLS) this.#receiver?.onInterimHead();
  }

  onData(bytes: Buffer, start: number, end: number, isEnd: boolean): void {
    this.#session.releaseHeadBut(this);
    const stream = this.#stream!;
    if (isEnd) this.#leave();
    const isKept = this.#isPaused;
    if (isKept) this.#keep(bytes, start, end, isEnd);
    else this.#deliver(bytes, start, end, isEnd);
    // What is kept is the stream's own affair: other streams of the connection go on.
    if (isKept || this.#isPaused) this.#session.keep(end - start);
    else this.#session.consume(stream, end - start);
    if (!isKept && this.#isPaused) this.#creditLater += end - start;
  }

  onTrailers(lines: string): void {
    this.#session.releaseHeadBut(null);
    const trailers = Trailers.parse(lines);
    this.#leave();
    if (this.#isPaused) {
      this.#keptTrailers = trailers;
      this.#keep(NO_BYTES, 0, 0, true);
      return;
    }
    this.#receiver?.onResponseTrailers(trailers);
    this.#deliver(NO_BYTES, 0, 0, true);
  }

  onReset(code: number, isLocal: boolean, reason: string): void {
    this.#session.releaseHeadBut(null);
    this.#stream = null;
    this.#session.onStreamEnd(this);
    this.wereOthersTaken = reason === LEFT_BEHIND_OTHERS;
    this.wasLeftBehind = this.wereOthersTaken || reason === LEFT_BEHIND;
    if (isLocal) this.#fail('protocol error', reason);
    else this.#fail(code === ErrorCode.REFUSED_STREAM ? 'remote refused stream reset' : 'remote reset', '');
  }

  onWritable(): void {
    this.#session.releaseHeadBut(null);
    this.#receiver?.onUpstreamDrain();
  }

  // ---- Inside ----

  #begin(head: string, bytes: Buffer, start: number, end: number, isEnd: boolean): boolean {
    const { codec } = this.#session;
    if (!codec.hasWritten(head) && codec.parseRequestText(head, NO_LIMITS) <= 0)
      return this.#refuse('local reset', 'request_head_refused');
    const isUpgrade = (codec.request.flags & HeadFlag.UPGRADE) !== 0;
    if (isUpgrade && !this.#session.takesConnectProtocol) {
      return this.#refuse('protocol error', 'extended_connect_not_supported');
    }
    const trailers = isEnd ? this.#receiver!.requestTrailers : null;
    const isAll = isEnd && start === end && trailers === null;
    const wire = this.#receiver!.upstreamWire;
    if (wire !== null) wire.sentBlockText(head.length);
    const stream = this.#session.request(this.#encodeFlags(isUpgrade), isAll, wire);
    if (stream === null) return this.#refuse('local reset', 'request_head_refused');
    this.#stream = stream;
    stream.handler = this;
    if (isUpgrade) {
      this.#upgrade = new UpgradedAnswer(head);
      // Its answer opens a tunnel as that to any CONNECT does.
      stream.requestMethod = Method.CONNECT;
    }
    return isAll || this.#sendBody(stream, bytes, start, end, isEnd, trailers);
  }

  #encodeFlags(isUpgrade: boolean): number {
    const flags = isUpgrade ? EncodeFlag.CONNECT_PROTOCOL : 0;
    if (!this.#receiver!.matchesUpstreamScheme) return flags;
    return flags | (this.tls === null ? EncodeFlag.SCHEME_HTTP : EncodeFlag.SCHEME_HTTPS);
  }

  #sendBody(
    stream: SessionStream,
    bytes: Buffer,
    start: number,
    end: number,
    isEnd: boolean,
    trailers: Trailers | null,
  ): boolean {
    const dechunker = this.#dechunker;
    if (dechunker === null) return this.#session.send(stream, bytes, start, end, isEnd, trailers);
    const content = dechunker.decode(bytes, start, end);
    return this.#session.send(stream, content, 0, content.length, isEnd, trailers);
  }

  /** It cannot be sent. Whoever starts it does not expect to hear of that before it has started. */
  #refuse(failure: UpstreamFailure, detail: string): boolean {
    this.#session.later(() => {
      this.#session.onStreamEnd(this);
      this.#fail(failure, detail);
    });
    return true;
  }

  /** What came before is the client's, as it is where the system keeps it (docs/decisions/0059-a-reset-waits-for-the-last-byte.md). */
  #fail(failure: UpstreamFailure, detail: string): void {
    if (this.#kept !== null) {
      this.#failureKept = { failure, detail };
      return;
    }
    const receiver = this.#receiver;
    this.#receiver = null;
    receiver?.onUpstreamReset(failure, detail);
  }

  /** The response has ended: so does the request, and the place on the connection is free. */
  #leave(): void {
    const stream = this.#stream!;
    // Whoever hears of the free place may open a stream there at once.
    if (stream.isLocalEnded) this.#session.release(stream);
    else this.#session.reset(stream, ErrorCode.CANCEL);
    // The connection may end with its last stream: this one has ended before.
    stream.handler = null;
    this.#stream = null;
    this.#session.onStreamEnd(this);
  }

  #cancel(code: number): void {
    const stream = this.#stream;
    this.#stream = null;
    if (stream !== null) this.#session.reset(stream, code);
    this.#session.onStreamEnd(this);
  }

  #deliver(bytes: Buffer, start: number, end: number, isEnd: boolean): void {
    const receiver = this.#receiver;
    if (receiver === null) return;
    if (isEnd) this.#receiver = null;
    const isFirst = !this.#hasHead;
    this.#hasHead = true;
    const { nowMs } = this.#session;
    const goesOn = isFirst
      ? receiver.onResponseHead(bytes, start, end, isEnd, false, nowMs)
      : receiver.onResponseBody(bytes, start, end, isEnd, false, nowMs);
    if (goesOn || isEnd || this.#receiver === null) return;
    this.#isPaused = true;
    this.#session.countCluster(upstream_flow_control_paused_reading_total);
  }

  #keep(bytes: Buffer, start: number, end: number, isEnd: boolean): void {
    if (end > start) {
      this.#kept ??= [];
      this.#kept.push(Buffer.from(bytes.subarray(start, end)));
    }
    this.#isEndKept = isEnd;
  }

  #deliverKept(): void {
    let octets = this.#creditLater;
    this.#creditLater = 0;
    while (!this.#isPaused && this.#kept !== null) {
      const bytes = this.#kept.shift()!;
      if (this.#kept.length === 0) this.#kept = null;
      const isEnd = this.#isEndKept && this.#kept === null;
      if (isEnd && this.#keptTrailers !== null) this.#receiver?.onResponseTrailers(this.#keptTrailers);
      octets += bytes.length;
      this.#deliver(bytes, 0, bytes.length, isEnd);
    }
    if (!this.#isPaused && this.#isEndKept && this.#receiver !== null) {
      if (this.#keptTrailers !== null) this.#receiver.onResponseTrailers(this.#keptTrailers);
      this.#deliver(NO_BYTES, 0, 0, true);
    }
    if (this.#stream !== null) this.#session.consumeKept(this.#stream, octets);
    if (this.#failureKept !== null) this.#fail(this.#failureKept.failure, this.#failureKept.detail);
  }
}
