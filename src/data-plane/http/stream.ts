// One request and its response on a downstream connection. Steps 3, 4 and 6 of the request flow; knows no protocol
// version beyond what its codec tells it.
//
//   request:   head ──► body … ──► complete          response:  nothing ──► started ──► complete
//
// A stream ends in one of three ways, each counted once: its response is complete (by class of status), the client
// went away (rx_reset), or a response that had begun could not be finished (tx_reset).

import { HTTP_STATS } from '../../stats/index.ts';
import { codecError, Framing, HeadFlag, JOINED_LIMIT_BYTES, Method, type RequestHead } from '../../wasm/http1.ts';
import type { AccessLog } from '../access-log/access-log.ts';
import { flagBit, NO_FLAGS, ResponseFlag } from '../response-flags.ts';
import type { ClusterTarget } from '../route/forward-plan.ts';
import type { EditableHead } from '../route/header-editor.ts';
import type { Route } from '../route/route.ts';
import type { UpstreamRequest } from '../router/upstream-request.ts';
import type { Host } from '../upstream/host.ts';
import type { UpstreamFailure } from '../upstream/pool/failure.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { Http1ClientConnection } from './codec/http1/client-connection.ts';
import type { BodyMode } from './codec/http1/response-writer.ts';
import type { ConnectionManager } from './connection-manager.ts';
import type { RequestLimits } from './control-headers.ts';
import type { DownstreamCodec } from './downstream-codec.ts';
import type { StreamFilters } from './filter-chain.ts';
import { HttpStreamFacts } from './http-stream-facts.ts';
import * as replies from './local-reply.ts';
import { ReplyHead } from './reply-head.ts';
import { applyConnectionManagerEdits, type RequestOrigin, requestOrigin, UNKNOWN_ORIGIN } from './request-edits.ts';
import { applyServiceTime } from './response-edits.ts';
import { editResponse, hasResponseEdits, type RoutedStream } from './route-response-edits.ts';
import { DURATION_LIMIT, PER_TRY_LIMIT, ROUTE_LIMIT, type StreamLimit } from './stream-limits.ts';

const {
  downstream_flow_control_paused_reading_total,
  downstream_flow_control_resumed_reading_total,
  downstream_rq_active,
  downstream_rq_http1_total,
  downstream_rq_idle_timeout,
  downstream_rq_response_before_rq_complete,
  downstream_rq_rx_reset,
  downstream_rq_time,
  downstream_rq_timeout,
  downstream_rq_total,
  downstream_rq_tx_reset,
  rq_reset_after_downstream_response_started,
} = HTTP_STATS.index;

const NOTHING = 0;
const STARTED = 1;
const COMPLETE = 2;

const NO_BYTES = Buffer.alloc(0);
const VIA_UPSTREAM = 'via_upstream';

export class HttpStream implements RequestLimits, RoutedStream {
  readonly methodId: number;
  /** The client is an HTTP/1.0 one, which knows no chunks and no interim responses. */
  readonly isHttp10: boolean;
  /** The client lets the connection go on after this exchange. */
  readonly isPersistent: boolean;
  readonly startedMs: number;
  isInternal = false;
  /** The chosen route, once there is one, and the cluster that it has chosen. */
  route: Route | null = null;
  target: ClusterTarget | null = null;
  // Limits of this request, by the route and by its own headers; 0 for none.
  timeoutMs = 0;
  perTryTimeoutMs = 0;
  maxStreamDurationMs = 0;
  wantsAltResponse = false;
  /** Status sent or about to be; 0 before. */
  status = 0;
  /** Bits of ResponseFlag: why the response is what it is. */
  flags = NO_FLAGS;
  details: string = VIA_UPSTREAM;
  readonly #context: WorkerContext;
  readonly #manager: ConnectionManager;
  readonly #codec: DownstreamCodec;
  #upstream: UpstreamRequest | null = null;
  /** What logs and header values ask for; null while nobody does. */
  #facts: HttpStreamFacts | null = null;
  #isRequestComplete = false;
  #requestCompleteMs = 0;
  #response: number = NOTHING;
  #hasEnded = false;
  #isRequestPaused = false;
  /** The response head whose fields are being changed. */
  #editedHead: EditableHead | null = null;
  #origin: RequestOrigin = UNKNOWN_ORIGIN;
  /** Null when the request meets only the router. */
  #filters: StreamFilters | null = null;
  #isContinueSent = false;
  #isHealthCheck = false;

  constructor(context: WorkerContext, manager: ConnectionManager, codec: DownstreamCodec, nowMs: number) {
    const head = context.codec.request;
    this.#context = context;
    this.#manager = manager;
    this.#codec = codec;
    this.methodId = head.methodId;
    this.isHttp10 = head.minorVersion === 0;
    this.isPersistent = head.isPersistent && head.methodId !== Method.CONNECT;
    this.startedMs = nowMs;
    const base = manager.statBase;
    const { values } = context.stats;
    values[base + downstream_rq_total]! += 1;
    values[base + downstream_rq_http1_total]! += 1;
    values[base + downstream_rq_active]! += 1;
    if (manager.accessLog !== null) this.#facts = this.#newFacts();
  }

  get bufferLimitBytes(): number {
    return this.#codec.bufferLimitBytes;
  }

  get isRequestComplete(): boolean {
    return this.#isRequestComplete;
  }

  /** Monotonic time of the request's last byte; 0 before. */
  get requestCompleteMs(): number {
    return this.#requestCompleteMs;
  }

  /** Made at the first question, if there is no log that wants them from the start. */
  get facts(): HttpStreamFacts {
    this.#facts ??= this.#newFacts();
    const facts = this.#facts;
    facts.status = this.status;
    facts.flags = this.flags;
    facts.details = this.details;
    facts.isHealthCheck = this.#isHealthCheck;
    facts.liveResponse = this.#editedHead;
    if (this.#isRequestComplete) facts.requestEndMs = this.#requestCompleteMs;
    if (this.route !== null) facts.noteRoute(this.route);
    return facts;
  }

  // ---- From the downstream codec ----

  /**
   * The head lies in the codec; the first body bytes, in bytes[start..end), are given away.
   * @returns false when no more of the body should come before `resumeRequest`.
   */
  begin(bytes: Buffer, start: number, end: number, isEnd: boolean): boolean {
    if (isEnd) this.#completeRequest(this.startedMs);
    if (this.#facts !== null) this.#facts.bytesReceived = end - start;
    const head = this.#context.codec.request;
    const refusal = this.#refusal(head);
    if (refusal !== null) {
      this.reply(refusal);
      return true;
    }
    const { filters } = this.#manager;
    if (filters === null) return this.forward(bytes, start, end, isEnd);
    return this.#beginFiltered(filters.open(this.#context, this), bytes.subarray(start, end), isEnd);
  }

  /** More of the body; the same rules. */
  onRequestBody(bytes: Buffer, start: number, end: number, isEnd: boolean, nowMs: number): boolean {
    if (this.#facts !== null) this.#facts.bytesReceived += end - start;
    if (isEnd) {
      this.#completeRequest(nowMs);
      this.#armTimeouts(nowMs);
    }
    if (this.#filters === null || this.#filters.decoding.isTransparent) {
      return this.forwardBody(bytes, start, end, isEnd, nowMs);
    }
    return this.#filters.decoding.push(bytes.subarray(start, end), isEnd) || isEnd;
  }

  onDownstreamDrain(): void {
    this.#upstream?.resumeResponse();
  }

  /** The connection is lost. */
  onDownstreamGone(): void {
    if (this.#hasEnded) return;
    this.flags |= ResponseFlag.DC;
    this.details = 'downstream_remote_disconnect';
    this.#count(downstream_rq_rx_reset);
    this.#end(this.#context.clock.monotonicMs());
    this.#upstream?.cancel();
  }

  /** The request's body broke HTTP; nothing after it can be read. */
  onProtocolViolation(status: number, reason: string): void {
    this.#giveUp(replies.protocolViolation(status, reason));
  }

  // ---- Deadlines that have passed ----

  onLimit(limit: StreamLimit): void {
    const reply = this.#isRequestComplete ? limit.reply : limit.earlyReply;
    this.#upstream?.timeOut(limit.stat);
    this.#upstream = null;
    this.#giveUp(this.wantsAltResponse ? replies.altResponse(reply) : reply);
  }

  onIdleTimeout(): void {
    this.#count(downstream_rq_idle_timeout);
    this.#giveUp(this.#isRequestComplete ? replies.STREAM_IDLE_RESPONSE : replies.STREAM_IDLE_REQUEST);
  }

  onRequestTimeout(): void {
    this.#count(downstream_rq_timeout);
    this.#giveUp(replies.REQUEST_TIMEOUT);
  }

  // ---- From the filters, or straight from the codec where there are none ----

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  get hasResponse(): boolean {
    return this.#response !== NOTHING;
  }

  /** The head lies in the codec; as for `begin`. */
  forward(bytes: Buffer, start: number, end: number, isEnd: boolean): boolean {
    const head = this.#context.codec.request;
    const awaitsContinue = (head.flags & HeadFlag.EXPECT_CONTINUE) !== 0 && !isEnd && end === start;
    const upstream = this.#manager.router.route(this, head);
    if (upstream === null) return true;
    this.#upstream = upstream;
    this.#facts?.noteForwarding(upstream);
    if (awaitsContinue) this.#sendContinue();
    upstream.start(bytes, start, end, isEnd);
    if (this.#hasEnded) return true;
    if (this.maxStreamDurationMs > 0) this.#limit(DURATION_LIMIT, this.startedMs + this.maxStreamDurationMs);
    if (isEnd) this.#armTimeouts(this.#requestCompleteMs);
    return isEnd || this.#noteSending(upstream.canSend);
  }

  forwardBody(bytes: Buffer, start: number, end: number, isEnd: boolean, nowMs: number): boolean {
    const upstream = this.#upstream;
    if (upstream === null) return true;
    const goesOn = upstream.send(bytes, start, end, isEnd);
    if (isEnd && this.#facts !== null && upstream.isSending) this.#facts.requestSentMs = nowMs;
    return this.#noteSending(goesOn) || isEnd;
  }

  /** The request's head has been taken out of the codec. */
  noteHeldHead(head: string): void {
    if (this.#facts !== null) this.#facts.requestHead = head;
  }

  markHealthCheck(): void {
    this.#isHealthCheck = true;
  }

  /** A filter, or what filters hold, has come to an end of its own; nothing if the stream is over already. */
  giveUp(reply: replies.LocalReply): void {
    this.#giveUp(reply);
  }

  // ---- From the router ----

  /** Finds out who sent the request. */
  identify(head: RequestHead): void {
    this.#origin = requestOrigin(head, this.#manager.settings, this.#codec);
    this.isInternal = this.#origin.isInternal;
  }

  applyConnectionManagerEdits(head: RequestHead): void {
    const { settings, requestLines } = this.#manager;
    applyConnectionManagerEdits(head, settings, requestLines, this.#codec, this.#origin);
  }

  /** Replaces the connection manager's time after which this stream counts as idle; 0 for never. */
  setIdleTimeout(timeoutMs: number): void {
    this.#codec.setStreamIdleTimeout(timeoutMs, this.startedMs);
  }

  /** An attempt goes to this host. */
  onUpstreamHost(host: Host, attempts: number): void {
    this.#facts?.noteHost(host, attempts);
  }

  /** The request goes out, with this head. */
  onUpstreamConnection(connection: Http1ClientConnection, head: string): void {
    this.#facts?.noteConnection(connection.localEndpoint, head, this.#isRequestComplete);
  }

  onUpstreamWritable(): void {
    if (!this.#isRequestPaused) return;
    this.#isRequestPaused = false;
    this.#count(downstream_flow_control_resumed_reading_total);
    this.#codec.resumeRequest();
  }

  onNoHealthyUpstream(): void {
    this.#upstream = null;
    this.#giveUp(replies.NO_HEALTHY_UPSTREAM);
  }

  onUpstreamFailure(failure: UpstreamFailure, transport: string, wasRetried: boolean): void {
    this.#upstream = null;
    this.flags |= flagBit(replies.failureFlag(failure));
    if (this.#facts !== null) this.#facts.upstreamTransportFailure = transport;
    if (this.#response === STARTED) {
      this.details = `upstream_reset_after_response_started{${failure.replaceAll(' ', '_')}}`;
      this.#count(rq_reset_after_downstream_response_started);
    }
    this.#giveUp(replies.upstreamReset(failure, transport, wasRetried));
  }

  /** The response head lies in the codec. @returns false when no more should come before `resumeResponse`. */
  onResponseHead(bytes: Buffer, start: number, end: number, isEnd: boolean, nowMs: number): boolean {
    const { settings, responseLines } = this.#manager;
    const head = this.#context.codec.response;
    this.status = head.status;
    if (!settings.suppressProxyHeaders) {
      const serviceMs = this.#isRequestComplete ? Math.trunc(nowMs - this.#requestCompleteMs) : 0;
      applyServiceTime(head, responseLines.names, serviceMs);
    }
    const isEdited = hasResponseEdits(this);
    if (isEdited) this.#editResponse(head, head.status);
    const filters = this.#filters;
    if (filters === null || !filters.encodes) return this.respond(bytes, start, end, isEnd, isEdited, nowMs);
    // What waits must outlive the buffer that it came in.
    return filters.encoding.begin(Buffer.from(bytes.subarray(start, end)), isEnd, head.framing === Framing.CHUNKED);
  }

  onResponseBody(bytes: Buffer, start: number, end: number, isEnd: boolean, isSlab: boolean, nowMs: number): boolean {
    const filters = this.#filters;
    if (filters === null || !filters.encodes || filters.encoding.isTransparent) {
      return this.respondBody(bytes, start, end, isEnd, isSlab, nowMs);
    }
    return filters.encoding.push(Buffer.from(bytes.subarray(start, end)), isEnd);
  }

  /** The response's head lies in the codec and lacks only what the connection manager adds. */
  respond(bytes: Buffer, start: number, end: number, isEnd: boolean, isEdited: boolean, nowMs: number): boolean {
    const { codec, date } = this.#context;
    const { responseLines } = this.#manager;
    const head = codec.response;
    const mustClose = this.#mustClose(isEnd);
    responseLines.apply(head, date.text(nowMs), isEdited);
    const mode = this.#chooseBodyMode(head.framing);
    const closes = mustClose || (this.isHttp10 && head.framing >= Framing.CHUNKED);
    if (closes) head.appendPrepared(responseLines.close);
    else if (this.isHttp10) head.appendPrepared(responseLines.keepAlive);
    const length = codec.writeResponse();
    if (length < 0) {
      this.refuseResponse(codecError(length).reason);
      return true;
    }
    this.status = head.status;
    this.#response = STARTED;
    const goesOn = this.#writeHead(length, mode, closes, bytes, start, end, isEnd, nowMs);
    if (isEnd) this.#completeResponse(nowMs);
    return goesOn;
  }

  respondBody(bytes: Buffer, start: number, end: number, isEnd: boolean, isSlab: boolean, nowMs: number): boolean {
    if (this.#facts !== null) this.#facts.bytesSent += end - start;
    const goesOn = this.#codec.writeBody(bytes, start, end, isEnd, isSlab);
    if (isEnd) this.#completeResponse(nowMs);
    return goesOn;
  }

  /** The response's head cannot be written as it has become. */
  refuseResponse(reason: string): void {
    this.#context.logs.router.warning(`cannot rewrite a response: ${reason}`);
    this.#giveUp(replies.REWRITE_FAILED);
  }

  /** Answers in place of an upstream. Only before a response has begun. */
  reply(reply: replies.LocalReply): void {
    this.#filters?.abandon();
    const mustClose = this.#mustClose(true);
    const nowMs = this.#context.clock.monotonicMs();
    this.status = reply.status;
    this.flags |= flagBit(reply.flag);
    this.details = reply.details;
    const head = this.#replyHead(reply, mustClose, nowMs);
    const hasBody = reply.body !== '' && this.methodId !== Method.HEAD && replies.mayHaveBody(reply.status);
    const body = hasBody ? (reply.bytes ?? Buffer.from(reply.body)) : NO_BYTES;
    this.#response = STARTED;
    this.#facts?.noteReply(head, reply.body, body.length);
    this.#codec.writeHead(head, 'raw', mustClose, body, 0, body.length, true);
    this.#completeResponse(nowMs);
  }

  // ---- Inside ----

  #beginFiltered(filters: StreamFilters, bytes: Buffer, isEnd: boolean): boolean {
    const head = this.#context.codec.request;
    const awaitsContinue = (head.flags & HeadFlag.EXPECT_CONTINUE) !== 0 && !isEnd && bytes.length === 0;
    this.#filters = filters;
    const goesOn = filters.decoding.begin(bytes, isEnd, head.framing === Framing.CHUNKED);
    // A filter may be waiting for the body, and the client for leave to send it.
    if (awaitsContinue && !this.#hasEnded) this.#sendContinue();
    return goesOn;
  }

  #sendContinue(): void {
    if (this.#isContinueSent) return;
    this.#isContinueSent = true;
    this.#codec.writeContinue();
  }

  #refusal(head: RequestHead): replies.LocalReply | null {
    if (this.methodId === Method.CONNECT) return replies.CONNECT_REFUSED;
    if ((head.flags & HeadFlag.EXPECT_OTHER) !== 0) return replies.EXPECTATION_FAILED;
    if (this.isHttp10 && head.authority() === '') return replies.HOST_MISSING;
    return null;
  }

  #replyHead(reply: replies.LocalReply, mustClose: boolean, nowMs: number): string {
    const { settings, responseLines } = this.#manager;
    const date = this.#context.date.text(nowMs);
    let extra = '';
    if (reply.isOverload && !settings.suppressProxyHeaders) extra = `${responseLines.names.overloaded}: true\r\n`;
    if (mustClose) extra += 'connection: close\r\n';
    else if (this.isHttp10) extra += 'connection: keep-alive\r\n';
    const filters = this.#filters;
    const isFiltered = filters?.encodes ?? false;
    const isEdited = hasResponseEdits(this);
    if (!isEdited && !isFiltered) return replies.localReplyHead(reply, responseLines.local, date, extra);
    const head = new ReplyHead(reply);
    if (isEdited) this.#editResponse(head, reply.status);
    if (isFiltered) filters!.encodeLocalReply(head, reply);
    head.setOwn(responseLines.local, date);
    return head.text(extra);
  }

  /** Applies what the route asks for. @param status of the response at hand. */
  #editResponse(head: EditableHead, status: number): void {
    this.status = status;
    this.#editedHead = head;
    editResponse(head, this, this.#manager.responseLines.names, this.#upstream?.attempts ?? 0);
    this.#editedHead = null;
  }

  /** What has gone wrong becomes a reply while there is none, else the end of the connection. */
  #giveUp(reply: replies.LocalReply): void {
    if (this.#hasEnded) return;
    const upstream = this.#upstream;
    this.#upstream = null;
    upstream?.cancel();
    if (this.#response === NOTHING) {
      this.reply(reply);
      return;
    }
    this.flags |= flagBit(reply.flag);
    // A failure of the upstream has said more of itself than a reply that cannot be sent.
    if (this.details === VIA_UPSTREAM) this.details = reply.details;
    this.#count(downstream_rq_tx_reset);
    this.#end(this.#context.clock.monotonicMs());
    this.#codec.resetStream();
  }

  #completeRequest(nowMs: number): void {
    this.#isRequestComplete = true;
    this.#requestCompleteMs = nowMs;
  }

  #armTimeouts(nowMs: number): void {
    if (this.timeoutMs > 0) this.#limit(ROUTE_LIMIT, nowMs + this.timeoutMs);
    if (this.perTryTimeoutMs > 0) this.#limit(PER_TRY_LIMIT, nowMs + this.perTryTimeoutMs);
  }

  #limit(limit: StreamLimit, atMs: number): void {
    if (this.#response !== COMPLETE) this.#codec.limitStream(limit, atMs);
  }

  #completeResponse(nowMs: number): void {
    this.#response = COMPLETE;
    if (!this.#isRequestComplete) this.#count(downstream_rq_response_before_rq_complete);
    this.#manager.countResponse(this.status);
    this.#end(nowMs);
    this.#codec.endStream(nowMs);
  }

  #end(nowMs: number): void {
    this.#hasEnded = true;
    this.#filters?.destroy();
    this.#context.stats.record(this.#manager.statBase + downstream_rq_time, nowMs - this.startedMs);
    if (this.#manager.accessLog !== null) this.#log(this.#manager.accessLog, nowMs);
    this.#context.stats.values[this.#manager.statBase + downstream_rq_active]! -= 1;
    this.#codec.clearLimits();
  }

  #log(log: AccessLog, nowMs: number): void {
    const { facts } = this;
    facts.endMs = nowMs;
    log.write(facts);
  }

  /** With all that is known so far. */
  #newFacts(): HttpStreamFacts {
    const { chainName, liveHead } = this.#manager;
    const facts = new HttpStreamFacts(this.#context.clock, {
      downstream: this.#codec.facts,
      filterChainName: chainName,
      liveHead,
      startedMs: this.startedMs,
      isHttp10: this.isHttp10,
    });
    if (this.#upstream !== null) facts.noteForwarding(this.#upstream);
    else if (this.#filters !== null) facts.requestHead = this.#filters.heldRequestHead;
    return facts;
  }

  /** A request that has not arrived in full leaves bytes that must not be taken for the next one. */
  #mustClose(isResponseEnd: boolean): boolean {
    return !this.isPersistent || this.#manager.isDraining || (isResponseEnd && !this.#isRequestComplete);
  }

  /** Hands on the head that the codec has written, `length` bytes of it, with the body bytes behind it. */
  #writeHead(
    length: number,
    mode: BodyMode,
    closes: boolean,
    bytes: Buffer,
    start: number,
    end: number,
    isEnd: boolean,
    nowMs: number,
  ): boolean {
    const { codec } = this.#context;
    // A short body is joined to its head where both lie as bytes, unless a log wants to read the head alone.
    if (mode === 'raw' && this.#facts === null && end > start && length + end - start <= JOINED_LIMIT_BYTES) {
      const text = codec.responseTextWithBody(length, bytes, start, end);
      return this.#codec.writeHead(text, mode, closes, bytes, end, end, isEnd);
    }
    const text = codec.responseText(length);
    this.#facts?.noteResponse(text, end - start, nowMs);
    return this.#codec.writeHead(text, mode, closes, bytes, start, end, isEnd);
  }

  #chooseBodyMode(framing: number): BodyMode {
    const { response } = this.#context.codec;
    if (framing === Framing.UNTIL_CLOSE && !this.isHttp10) {
      response.appendPrepared(this.#manager.responseLines.chunked);
      return 'chunk';
    }
    if (framing === Framing.CHUNKED && this.isHttp10) {
      response.dropByName('transfer-encoding');
      return 'dechunk';
    }
    return 'raw';
  }

  #noteSending(goesOn: boolean): boolean {
    if (goesOn || this.#isRequestPaused || this.#isRequestComplete) return goesOn;
    this.#isRequestPaused = true;
    this.#count(downstream_flow_control_paused_reading_total);
    return false;
  }

  #count(stat: number): void {
    this.#context.stats.values[this.#manager.statBase + stat]! += 1;
  }
}
